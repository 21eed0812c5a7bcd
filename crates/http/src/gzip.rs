//! Bodies that clients send compressed (`Content-Encoding: gzip`), as CouchDB takes them.

use std::io::{self, Read, Write};

use flate2::read::MultiGzDecoder;
use flate2::write::GzDecoder;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use scrinium_contents::{Content, ContentError, Upload};

use crate::error::{HttpError, Result};

/// Inflated at a time.
const STEP_BYTES: u64 = 64 << 10;

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
}

impl Encoding {
    /// What the headers of a request say.
    ///
    /// # Errors
    /// 415 for an encoding that CouchDB does not take either.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self> {
        headers
            .get(CONTENT_ENCODING)
            .map_or(Ok(Self::Identity), |value| Self::named(value.to_str().unwrap_or("?")))
    }

    /// The encoding of this name.
    ///
    /// # Errors
    /// 415 where it is unknown.
    pub(crate) fn named(name: &str) -> Result<Self> {
        match name.trim() {
            "identity" => Ok(Self::Identity),
            "gzip" => Ok(Self::Gzip),
            other => Err(Self::unsupported(other)),
        }
    }

    /// The refusal of an encoding that is unknown, or that a route does not take.
    pub(crate) fn unsupported(name: &str) -> HttpError {
        HttpError::new(
            http::StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "bad_content_type",
            format!("{name} is not a supported content encoding."),
        )
    }
}

/// What `bytes` are inflated. `cover` gets its size before it becomes larger. Blocks.
///
/// # Errors
/// 400 where it is no gzip, and those of `cover`.
pub(crate) fn inflate(bytes: &[u8], mut cover: impl FnMut(usize) -> Result<()>) -> Result<Vec<u8>> {
    let mut decoder = MultiGzDecoder::new(bytes);
    let mut inflated = Vec::new();
    loop {
        cover(inflated.len() + bytes.len())?;
        let read = decoder.by_ref().take(STEP_BYTES).read_to_end(&mut inflated).map_err(|_| malformed())?;
        if read == 0 {
            return Ok(inflated);
        }
    }
}

fn malformed() -> HttpError {
    HttpError::bad_request("The body is not gzip, as its encoding says.")
}

/// An upload whose bytes come compressed; what is stored is what they stand for. It holds no more than a
/// step of it, however much that is.
pub(crate) struct GzipUpload(GzDecoder<Sink>);

struct Sink {
    upload: Upload,
    /// Why the upload took no more; the decoder tells only that it failed.
    failure: Option<ContentError>,
}

impl GzipUpload {
    pub(crate) fn may_leave(&self) -> bool {
        self.0.get_ref().upload.may_leave()
    }

    pub(crate) fn new(upload: Upload) -> Self {
        Self(GzDecoder::new(Sink { upload, failure: None }))
    }

    /// Takes the next compressed bytes. Blocks.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).map_err(|_| self.0.get_mut().failure())
    }

    /// The whole content. Blocks.
    pub(crate) fn finish(mut self) -> Result<Content> {
        if self.0.try_finish().is_err() {
            return Err(self.0.get_mut().failure());
        }
        let sink = self.0.finish().map_err(|_| malformed())?;
        sink.upload.finish().map_err(HttpError::of_attachment)
    }
}

impl Sink {
    fn failure(&mut self) -> HttpError {
        self.failure.take().map_or_else(malformed, HttpError::of_attachment)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.upload.write(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                self.failure = Some(error);
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

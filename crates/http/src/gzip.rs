//! Bodies that clients send compressed (`Content-Encoding: gzip`), as CouchDB takes them, and clients that take them so.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};

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

/// Whether a client takes gzip (RFC 9110 §12.5.3). Who says nothing gets what everybody can read.
pub(crate) fn is_taken(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    let mut others = None;
    for coding in lines.flat_map(|line| line.split(',')) {
        let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = parameters
            .trim()
            .strip_prefix("q=")
            .is_some_and(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0));
        match name.trim() {
            name if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") => {
                return !is_refused;
            }
            "*" => others = Some(!is_refused),
            _ => {}
        }
    }
    others.unwrap_or(false)
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

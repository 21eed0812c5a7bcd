//! A content on its way in, bit by bit: read from the network only as fast as the store takes it.

use bytes::BytesMut;
use scrinium_contents::{Content, EncodedUpload, Upload};

use crate::access::Opened;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::gzip::Encoding;

/// What is gathered before it is handed to the store.
const PIECE_BYTES: usize = 256 << 10;

/// A content being received. Dropped unfinished, it is thrown away.
pub(crate) struct Inlet {
    opened: Opened,
    content_type: String,
    encoding: Encoding,
    gathered: BytesMut,
    sink: Option<Sink>,
    settled: Option<Content>,
}

enum Sink {
    Plain(Box<Upload>),
    Gzip(Box<EncodedUpload>),
}

impl Inlet {
    pub(crate) fn new(opened: Opened, content_type: &str, encoding: Encoding) -> Self {
        let content_type = content_type.to_owned();
        Self { opened, content_type, encoding, gathered: BytesMut::new(), sink: None, settled: None }
    }

    /// Takes more bytes; waits while a full piece is written.
    pub(crate) async fn push(&mut self, context: &Context, bytes: &[u8]) -> Result<()> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() < PIECE_BYTES {
            return Ok(());
        }
        let piece = self.gathered.split().freeze();
        let mut sink = self.take_sink();
        self.sink = Some(
            context
                .state
                .run(move || {
                    sink.write(&piece)?;
                    Ok(sink)
                })
                .await?,
        );
        Ok(())
    }

    /// All has arrived. A content that may go to a store of objects is sent there, outside the worker pool, so that
    /// nobody else waits for that store.
    pub(crate) async fn settle(&mut self) -> Result<()> {
        if !self.sink.as_ref().is_some_and(Sink::may_leave) {
            return Ok(());
        }
        let (mut sink, gathered) = (self.take_sink(), self.gathered.split().freeze());
        let sent = tokio::task::spawn_blocking(move || {
            sink.write(&gathered)?;
            sink.finish()
        });
        let sent = sent.await.map_err(|_| HttpError::internal("An attachment could not be stored."))?;
        self.settled = Some(sent?);
        Ok(())
    }

    /// Blocks: the content, for an edit to refer to. To be called on the worker pool, after [`Inlet::settle`].
    pub(crate) fn finish(mut self) -> Result<Content> {
        if let Some(content) = self.settled.take() {
            return Ok(content);
        }
        if self.sink.is_none() && self.encoding == Encoding::Identity {
            let content = self.opened.store_content(&self.gathered, &self.content_type);
            return content.map_err(HttpError::of_attachment);
        }
        let mut sink = self.take_sink();
        sink.write(&self.gathered)?;
        sink.finish()
    }

    fn take_sink(&mut self) -> Sink {
        self.sink.take().unwrap_or_else(|| {
            let upload = self.opened.upload(&self.content_type);
            match self.encoding {
                Encoding::Identity => Sink::Plain(Box::new(upload)),
                Encoding::Gzip => Sink::Gzip(Box::new(EncodedUpload::new(upload))),
            }
        })
    }
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Plain(upload) => upload.write(bytes),
            Self::Gzip(upload) => upload.write(bytes),
        }
        .map_err(HttpError::of_attachment)
    }

    fn may_leave(&self) -> bool {
        match self {
            Self::Plain(upload) => upload.may_leave(),
            Self::Gzip(upload) => upload.may_leave(),
        }
    }

    fn finish(self) -> Result<Content> {
        match self {
            Self::Plain(upload) => upload.finish(),
            Self::Gzip(upload) => upload.finish(),
        }
        .map_err(HttpError::of_attachment)
    }
}

/// Refuses a content that is not what the client's `Content-MD5` says (RFC 1864).
pub(crate) fn check_digest(content: &Content, declared: Option<&str>) -> Result<()> {
    let digest = content.digest();
    let ours = digest.strip_prefix("md5-").unwrap_or(&digest);
    if declared.is_none_or(|declared| declared.trim() == ours) { Ok(()) } else { Err(HttpError::corrupted()) }
}

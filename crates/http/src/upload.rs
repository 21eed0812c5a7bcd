//! A content on its way in, bit by bit: read from the network only as fast as the store takes it.

use bytes::BytesMut;
use scrinium_contents::{Content, ContentUpload};

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
    upload: Option<ContentUpload>,
    settled: Option<Content>,
}

impl Inlet {
    pub(crate) fn new(opened: Opened, content_type: &str, encoding: Encoding) -> Self {
        let content_type = content_type.to_owned();
        Self { opened, content_type, encoding, gathered: BytesMut::new(), upload: None, settled: None }
    }

    /// Takes more bytes; waits while a full piece is written.
    pub(crate) async fn push(&mut self, context: &Context, bytes: &[u8]) -> Result<()> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() < PIECE_BYTES {
            return Ok(());
        }
        let piece = self.gathered.split().freeze();
        let mut upload = self.take_upload();
        self.upload = Some(
            context
                .state
                .run(move || {
                    upload.write(&piece).map_err(HttpError::of_attachment)?;
                    Ok(upload)
                })
                .await?,
        );
        Ok(())
    }

    /// All has arrived. A content that may go to a store of objects is sent there, outside the worker pool, so that
    /// nobody else waits for that store.
    pub(crate) async fn settle(&mut self) -> Result<()> {
        if !self.upload.as_ref().is_some_and(ContentUpload::may_leave) {
            return Ok(());
        }
        let (mut upload, gathered) = (self.take_upload(), self.gathered.split().freeze());
        let sent = tokio::task::spawn_blocking(move || {
            upload.write(&gathered)?;
            upload.finish()
        });
        let sent = sent.await.map_err(|_| HttpError::internal("An attachment could not be stored."))?;
        self.settled = Some(sent.map_err(HttpError::of_attachment)?);
        Ok(())
    }

    /// Blocks: the content, for an edit to refer to. To be called on the worker pool, after [`Inlet::settle`].
    pub(crate) fn finish(mut self) -> Result<Content> {
        if let Some(content) = self.settled.take() {
            return Ok(content);
        }
        if self.upload.is_none() && self.encoding == Encoding::Identity {
            let content = self.opened.store_content(&self.gathered, &self.content_type);
            return content.map_err(HttpError::of_attachment);
        }
        let mut upload = self.take_upload();
        upload.write(&self.gathered).and_then(|()| upload.finish()).map_err(HttpError::of_attachment)
    }

    fn take_upload(&mut self) -> ContentUpload {
        self.upload.take().unwrap_or_else(|| {
            let upload = self.opened.upload(&self.content_type);
            ContentUpload::new(upload, self.encoding == Encoding::Gzip)
        })
    }
}

/// Refuses a content that is not what the client's `Content-MD5` says (RFC 1864).
pub(crate) fn check_digest(content: &Content, declared: Option<&str>) -> Result<()> {
    let digest = content.digest();
    let ours = digest.strip_prefix("md5-").unwrap_or(&digest);
    if declared.is_none_or(|declared| declared.trim() == ours) { Ok(()) } else { Err(HttpError::corrupted()) }
}

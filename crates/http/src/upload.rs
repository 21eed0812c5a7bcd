//! A content on its way in, bit by bit: read from the network only as fast as the store takes it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use scrinium_database::{Content, Database, Upload};

use crate::context::Context;
use crate::error::{HttpError, Result};

/// What is gathered before it is handed to the store.
const PIECE_BYTES: usize = 256 << 10;

/// A content being received. Dropped unfinished, it is thrown away.
pub(crate) struct Inlet {
    database: Arc<Database>,
    content_type: String,
    gathered: BytesMut,
    upload: Option<Upload>,
}

impl Inlet {
    pub(crate) fn new(database: Arc<Database>, content_type: &str) -> Self {
        Self { database, content_type: content_type.to_owned(), gathered: BytesMut::new(), upload: None }
    }

    /// Takes more bytes; waits while a full piece is written.
    pub(crate) async fn push(&mut self, context: &Context, bytes: &[u8]) -> Result<()> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() < PIECE_BYTES {
            return Ok(());
        }
        let piece = self.gathered.split().freeze();
        let upload = self.upload.take().unwrap_or_else(|| self.database.upload(&self.content_type));
        self.upload = Some(context.state.run(move || write(upload, &piece)).await?);
        Ok(())
    }

    /// Blocks: the content, for an edit to refer to. To be called on the worker pool.
    pub(crate) fn finish(self) -> Result<Content> {
        match self.upload {
            None => Ok(self.database.store_content(&self.gathered, &self.content_type)?),
            Some(upload) => Ok(write(upload, &self.gathered.freeze())?.finish()?),
        }
    }
}

fn write(mut upload: Upload, piece: &Bytes) -> Result<Upload> {
    upload.write(piece)?;
    Ok(upload)
}

/// Refuses a content that is not what the client's `Content-MD5` says (RFC 1864).
pub(crate) fn check_digest(content: &Content, declared: Option<&str>) -> Result<()> {
    let digest = content.digest();
    let ours = digest.strip_prefix("md5-").unwrap_or(&digest);
    if declared.is_none_or(|declared| declared.trim() == ours) {
        Ok(())
    } else {
        Err(HttpError::new(
            http::StatusCode::BAD_REQUEST,
            "content_md5_mismatch",
            "Possible message corruption.",
        ))
    }
}

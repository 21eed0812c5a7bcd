//! The content of an attachment on its way: when the source breaks off, it goes on where it was.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use md5::{Digest as _, Md5};

use crate::count::{Counts, add};
use crate::document::Stub;
use crate::end::{AttachmentPlace, ContentStream, End, Work};
use crate::error::{ReplicationError, Result};

/// So often in a row it is tried to go on, without a byte in between.
const TRIES_MAX: u32 = 6;

/// A content that survives broken connections, and is checked against what its document says.
pub(crate) struct ResumedContent {
    source: Arc<dyn End>,
    place: AttachmentPlace,
    length: u64,
    digest: Option<String>,
    counts: Arc<Counts>,
    stream: Option<Box<dyn ContentStream>>,
    offset: u64,
    md5: Md5,
    failures: u32,
    first_wait: Duration,
}

impl ResumedContent {
    pub(crate) fn new(
        (source, place): (Arc<dyn End>, AttachmentPlace),
        stub: &Stub,
        (counts, first_wait): (Arc<Counts>, Duration),
    ) -> Self {
        let digest = stub.digest.as_deref().and_then(|digest| digest.strip_prefix("md5-"));
        Self {
            source,
            place,
            length: stub.length,
            digest: digest.map(str::to_owned),
            counts,
            stream: None,
            offset: 0,
            md5: Md5::new(),
            failures: 0,
            first_wait,
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if self.offset == self.length {
                return self.end();
            }
            match self.read().await {
                Ok(Some(piece)) => {
                    self.failures = 0;
                    return self.take(piece).map(Some);
                }
                Ok(None) => {
                    self.stream = None;
                    self.fail(ReplicationError::protocol(format!(
                        "The attachment {:?} of {:?} ended after {} of {} bytes.",
                        self.place.name, self.place.id, self.offset, self.length
                    )))
                    .await?;
                }
                Err(error) => {
                    self.stream = None;
                    self.fail(error).await?;
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Option<Bytes>> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.source.attachment(&self.place, self.offset).await?,
        };
        let stream = self.stream.insert(stream);
        loop {
            match stream.next_piece().await? {
                Some(piece) if piece.is_empty() => {}
                piece => return Ok(piece),
            }
        }
    }

    fn take(&mut self, piece: Bytes) -> Result<Bytes> {
        self.offset = self.offset.saturating_add(piece.len() as u64);
        if self.offset > self.length {
            return Err(ReplicationError::protocol(format!(
                "The attachment {:?} of {:?} is longer than its document says.",
                self.place.name, self.place.id
            )));
        }
        self.md5.update(&piece);
        add(&self.counts.attachment_bytes, piece.len());
        Ok(piece)
    }

    /// Waits before the next try.
    async fn fail(&mut self, error: ReplicationError) -> Result<()> {
        if !error.is_transient() || self.failures + 1 >= TRIES_MAX {
            return Err(error);
        }
        tokio::time::sleep(self.first_wait * 2_u32.pow(self.failures)).await;
        self.failures += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<Option<Bytes>> {
        let Some(digest) = self.digest.take() else { return Ok(None) };
        if STANDARD.encode(std::mem::take(&mut self.md5).finalize()) == digest {
            return Ok(None);
        }
        Err(ReplicationError::protocol(format!(
            "The attachment {:?} of {:?} came damaged: its digest is another one.",
            self.place.name, self.place.id
        )))
    }
}

impl ContentStream for ResumedContent {
    fn next_piece(&mut self) -> Work<'_, Option<Bytes>> {
        Box::pin(self.next())
    }
}

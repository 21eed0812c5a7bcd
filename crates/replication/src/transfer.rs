//! What the changes of one page bring from the source to the target.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::content::ResumedContent;
use crate::count::{Counts, add};
use crate::document::{SourceDocument, Stub};
use crate::end::{AttachmentPlace, Change, ContentStream, End, IncomingAttachment, Missing, Refusal};
use crate::engine::Replication;
use crate::error::{ErrorKind, ReplicationError, Result};

/// Attachments of a document that take no more than this go with it in its JSON.
const INLINE_BYTES: u64 = 64 << 10;

/// Documents are sent on when they hold this many bytes.
const WRITE_BYTES: usize = 4 << 20;

/// Documents that are asked for at once, at most.
const READ_DOCUMENTS_MAX: usize = 500;

/// What moves documents; clones share it.
#[derive(Clone)]
pub(crate) struct Transfer {
    source: Arc<dyn End>,
    target: Arc<dyn End>,
    counts: Arc<Counts>,
    documents_at_once: usize,
    content_wait: Duration,
    /// Documents that are asked for at once: fewer where they are large.
    read_at_once: Arc<AtomicUsize>,
}

impl Transfer {
    pub(crate) fn of(replication: &Replication) -> Self {
        Self {
            source: Arc::clone(&replication.source),
            target: Arc::clone(&replication.target),
            counts: Arc::clone(&replication.counts),
            documents_at_once: replication.options.documents_at_once.max(1),
            content_wait: replication.options.content_wait,
            read_at_once: Arc::clone(&replication.read_at_once),
        }
    }

    /// Brings what the target has not of these changes.
    pub(crate) async fn move_changes(self, changes: Vec<Change>) -> Result<()> {
        add(&self.counts.revisions_checked, changes.iter().map(|change| change.revisions.len()).sum());
        let conflicts = changes.iter().filter(|change| change.revisions.len() > 1).count();
        add(&self.counts.conflicts_seen, conflicts);
        let missing = self.target.difference(&changes).await?;
        let found = missing.iter().map(|missing| missing.revisions.len()).sum();
        add(&self.counts.missing_revisions_found, found);
        let mut left = missing.as_slice();
        while !left.is_empty() {
            let count =
                self.read_at_once.load(Ordering::Relaxed).clamp(1, READ_DOCUMENTS_MAX).min(left.len());
            let (now, later) = left.split_at(count);
            if self.move_missing(now).await? {
                left = later;
            }
        }
        Ok(())
    }

    /// False if these documents are too much at once; then fewer are asked for from now on.
    async fn move_missing(&self, missing: &[Missing]) -> Result<bool> {
        let documents = match self.source.documents(missing).await {
            Err(error) if error.kind == ErrorKind::TooLarge && missing.len() > 1 => {
                self.read_at_once.store(missing.len() / 2, Ordering::Relaxed);
                return Ok(false);
            }
            read => read?,
        };
        if missing.len() == self.read_at_once.load(Ordering::Relaxed) {
            self.read_at_once.store((missing.len() * 2).min(READ_DOCUMENTS_MAX), Ordering::Relaxed);
        }
        add(&self.counts.docs_read, documents.len());
        add(&self.counts.bulk_get_attempts, 1);
        add(&self.counts.bulk_get_docs, documents.len());
        let mut plain = Vec::new();
        let mut large = Vec::new();
        for document in documents {
            if document.attachments.is_empty() {
                plain.push(document);
                continue;
            }
            let known = missing.iter().find(|missing| missing.id == document.id);
            let known = known.map_or(&[][..], |missing| &missing.possible_ancestors);
            let wanted = document.missing_attachments(known);
            if wanted.is_empty() {
                plain.push(document);
            } else {
                large.push((document, wanted));
            }
        }
        self.write_plain(&plain).await?;
        let moves = stream::iter(large).map(|(document, wanted)| self.boxed_move(document, wanted));
        moves.buffer_unordered(self.documents_at_once).try_for_each(|()| std::future::ready(Ok(()))).await?;
        Ok(true)
    }

    fn boxed_move(
        &self,
        document: SourceDocument,
        wanted: Vec<Stub>,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let transfer = self.clone();
        async move { Box::pin(transfer.move_with_attachments(document, wanted)).await }
    }

    /// In portions of bounded size. A stub that the target does not know is brought with its content.
    async fn write_plain(&self, documents: &[SourceDocument]) -> Result<()> {
        let mut begin = 0;
        let mut bytes = 0;
        for (place, document) in documents.iter().enumerate() {
            if bytes > 0 && bytes + document.json.len() > WRITE_BYTES {
                self.write_portion(documents.get(begin..place).unwrap_or_default()).await?;
                (begin, bytes) = (place, 0);
            }
            bytes += document.json.len();
        }
        self.write_portion(documents.get(begin..).unwrap_or_default()).await
    }

    async fn write_portion(&self, documents: &[SourceDocument]) -> Result<()> {
        let mut left = vec![documents];
        while let Some(portion) = left.pop() {
            let Some(first) = portion.first() else { continue };
            match self.target.write(portion).await {
                Ok(refused) => self.note(portion.len(), refused),
                Err(error) if error.kind == ErrorKind::TooLarge && portion.len() > 1 => {
                    let (one, other) = portion.split_at(portion.len() / 2);
                    left.extend([other, one]);
                }
                Err(error) if error.kind == ErrorKind::MissingStub => {
                    self.write_each(portion).await?;
                }
                Err(error) if portion.len() == 1 && is_of_document(&error) => {
                    self.note(1, vec![refusal(first, &error)]);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// One of them has a stub that the target does not know.
    async fn write_each(&self, documents: &[SourceDocument]) -> Result<()> {
        for document in documents {
            let written = if document.attachments.is_empty() {
                self.target.write(std::slice::from_ref(document)).await.map(|refused| self.note(1, refused))
            } else {
                Box::pin(self.clone().move_with_attachments(document.clone(), document.attachments.clone()))
                    .await
            };
            match written {
                Err(error) if is_of_document(&error) => self.note(1, vec![refusal(document, &error)]),
                written => written?,
            }
        }
        Ok(())
    }

    async fn move_with_attachments(self, document: SourceDocument, wanted: Vec<Stub>) -> Result<()> {
        let written = self.try_with_attachments(&document, wanted).await;
        let written = match written {
            // What the target was believed to have of it is gone: all of it then.
            Err(error) if error.kind == ErrorKind::MissingStub => {
                self.try_with_attachments(&document, document.attachments.clone()).await
            }
            written => written,
        };
        match written {
            Ok(refused) => self.note(1, refused.into_iter().collect()),
            Err(error) if is_of_document(&error) => self.note(1, vec![refusal(&document, &error)]),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn try_with_attachments(
        &self,
        document: &SourceDocument,
        wanted: Vec<Stub>,
    ) -> Result<Option<Refusal>> {
        let wanted: Vec<Stub> = match self.target.takes_encoded() {
            true => wanted,
            false => wanted.into_iter().map(Stub::decoded).collect(),
        };
        let bytes = wanted.iter().fold(0_u64, |bytes, stub| bytes.saturating_add(stub.length));
        // In the JSON it could not say that it is gzip.
        if bytes <= INLINE_BYTES && wanted.iter().all(|stub| !stub.is_encoded) {
            let mut contents = Vec::with_capacity(wanted.len());
            for stub in wanted {
                let content = self.whole(document, &stub).await?;
                contents.push((stub, content));
            }
            let document = document.with_inline(&contents)?;
            return Ok(self.target.write(std::slice::from_ref(&document)).await?.pop());
        }
        let announced = document.with_following(&wanted)?;
        let contents = wanted.into_iter().map(|stub| IncomingAttachment {
            name: stub.name.clone(),
            content_type: stub.content_type.clone(),
            length: stub.length,
            is_encoded: stub.is_encoded,
            content: Box::new(self.content(document, &stub)),
        });
        self.target.write_with(&announced, contents.collect()).await
    }

    fn content(&self, document: &SourceDocument, stub: &Stub) -> ResumedContent {
        let place = AttachmentPlace {
            id: document.id.clone(),
            revision: document.revision.clone(),
            name: stub.name.clone(),
            is_encoded: stub.is_encoded,
        };
        let told = (Arc::clone(&self.counts), self.content_wait);
        ResumedContent::new((Arc::clone(&self.source), place), stub, told)
    }

    async fn whole(&self, document: &SourceDocument, stub: &Stub) -> Result<Bytes> {
        let mut content = self.content(document, stub);
        let mut whole = BytesMut::new();
        while let Some(piece) = content.next_piece().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    fn note(&self, count: usize, refused: Vec<Refusal>) {
        add(&self.counts.docs_written, count.saturating_sub(refused.len()));
        add(&self.counts.doc_write_failures, refused.len());
        if let Some(last) = refused.into_iter().next_back() {
            let Refusal { id, revision, reason } = last;
            tracing::debug!(id, revision, reason, "the target of a replication refuses a document");
            self.counts.change_place(|place| {
                place.last_refusal = Some(format!("{id:?} {revision}: {reason}"));
            });
        }
    }
}

/// Whether the target refuses the document, and would whenever it came.
fn is_of_document(error: &ReplicationError) -> bool {
    matches!(error.kind, ErrorKind::TooLarge | ErrorKind::Refused | ErrorKind::MissingStub)
}

fn refusal(document: &SourceDocument, error: &ReplicationError) -> Refusal {
    Refusal { id: document.id.clone(), revision: document.revision.clone(), reason: error.reason.clone() }
}

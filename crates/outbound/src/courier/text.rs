//! A message's text as it goes out: short ones from memory, long ones piece by piece from the store.

use std::sync::Arc;

use bytes::Bytes;
use scrinium_database::{AttachmentReader, Database, DatabaseError};
use scrinium_mail::{QUEUE_KEEPER, QueuedDocument, SOURCE_ATTACHMENT};

/// A message that is shorter is read at once.
const SHORT_BYTES: u64 = 32 << 10;

/// Read of a longer one at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A message's text. It may be read several times.
#[derive(Clone)]
pub struct TextSource {
    /// Goes out before what is kept.
    beginning: Bytes,
    kept: Kept,
}

#[derive(Clone)]
enum Kept {
    Short(Bytes),
    Long { reader: Arc<AttachmentReader>, start_bytes: u64 },
}

impl From<Bytes> for TextSource {
    fn from(bytes: Bytes) -> Self {
        Kept::Short(bytes).into()
    }
}

impl From<Kept> for TextSource {
    fn from(kept: Kept) -> Self {
        Self { beginning: Bytes::new(), kept }
    }
}

impl TextSource {
    /// The text of an entry. Blocks.
    ///
    /// # Errors
    /// What the database reports.
    pub fn open(database: &Database, document: &QueuedDocument) -> Result<Self, DatabaseError> {
        let QueuedDocument { entry, start_bytes, .. } = document;
        let reader = database.open_attachment(&entry.id, SOURCE_ATTACHMENT, None, &QUEUE_KEEPER)?;
        let start_bytes = *start_bytes;
        if entry.size_bytes > SHORT_BYTES {
            return Ok(Kept::Long { reader: Arc::new(reader), start_bytes }.into());
        }
        let length = usize::try_from(entry.size_bytes).unwrap_or(0);
        let mut text = Vec::with_capacity(length);
        while text.len() < length {
            let piece = reader.read(start_bytes + text.len() as u64, length - text.len())?;
            if piece.is_empty() {
                break;
            }
            text.extend_from_slice(&piece);
        }
        Ok(Kept::Short(text.into()).into())
    }

    /// The same with fields before it, in place of those that were there.
    pub(crate) fn with_beginning(self, beginning: Bytes) -> Self {
        Self { beginning, kept: self.kept }
    }

    /// Bytes that go out before what is kept.
    pub(crate) fn beginning_bytes(&self) -> u64 {
        self.beginning.len() as u64
    }

    /// The piece at an offset; empty at the end.
    ///
    /// # Errors
    /// Why it cannot be read, in words.
    pub(crate) async fn piece(&self, offset: u64) -> Result<Bytes, String> {
        let stands = self.beginning.len() as u64;
        if offset < stands {
            return Ok(self.beginning.slice(usize::try_from(offset).unwrap_or(usize::MAX)..));
        }
        let offset = offset - stands;
        match &self.kept {
            Kept::Short(text) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
                Ok(text.slice(start..))
            }
            Kept::Long { reader, start_bytes } => {
                let (reader, offset) = (Arc::clone(reader), start_bytes + offset);
                let read = tokio::task::spawn_blocking(move || reader.read(offset, PIECE_BYTES));
                read.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
            }
        }
    }
}

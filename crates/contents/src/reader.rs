//! Reading stored contents, wherever their bytes are.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::RwLock;
use scrinium_objects::ObjectReader;
use scrinium_store::Family;

use crate::contents::{Content, Contents, PIECE_BYTES};
use crate::encoded::Decoding;
use crate::error::{ContentError, Result};
use crate::hex::hex;
use crate::keys::{self, Digest};
use crate::record::{Data, Placement, Record};

/// A stored content, readable at any offset.
pub struct ContentReader {
    contents: Contents,
    digest: Digest,
    length: u64,
    /// Another one once the content has been moved.
    source: RwLock<Arc<Source>>,
}

/// A content that is opened when it is first read, so that nothing of it is in memory before, and stays where it is while this
/// is held: a document may have very many. A gzip is read as what it stands for.
pub struct HeldContent {
    /// None of one that was opened at once, which goes where others send it.
    kept: Option<Content>,
    digest: Digest,
    length: u64,
    contents: Contents,
    reader: OnceLock<Arc<ContentReader>>,
    decoding: Option<Decoding>,
}

impl HeldContent {
    pub(crate) fn new(contents: &Contents, kept: Content) -> Self {
        let (digest, length, contents) = (*kept.name(), kept.length(), contents.clone());
        let decoding = kept.decoded_length().map(Decoding::new);
        Self { kept: Some(kept), digest, length, contents, reader: OnceLock::new(), decoding }
    }

    pub(crate) fn opened(reader: ContentReader, decoded_length: Option<u64>) -> Self {
        let (digest, length, contents) = (reader.digest, reader.length, reader.contents.clone());
        let (reader, decoding) = (OnceLock::from(Arc::new(reader)), decoded_length.map(Decoding::new));
        Self { kept: None, digest, length, contents, reader, decoding }
    }

    /// The same, read as it is stored.
    #[must_use]
    pub fn as_stored(self) -> Self {
        Self { decoding: None, ..self }
    }

    /// Bytes that can be read.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.decoding.as_ref().map_or(self.length, |decoding| decoding.length)
    }

    /// Bytes that are stored.
    #[must_use]
    pub const fn stored_length(&self) -> u64 {
        self.length
    }

    /// As [`ContentReader::read`].
    ///
    /// # Errors
    /// As there.
    pub fn read(&self, offset: u64, max_bytes: usize) -> Result<Bytes> {
        match &self.decoding {
            Some(decoding) => decoding.read(self.reader()?, offset, max_bytes),
            None => self.reader()?.read(offset, max_bytes),
        }
    }

    /// All that can be read; for those that are known to be small.
    ///
    /// # Errors
    /// As [`HeldContent::read`].
    pub fn read_all(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let piece = self.read(bytes.len() as u64, PIECE_BYTES)?;
            if piece.is_empty() {
                return Ok(bytes);
            }
            bytes.extend_from_slice(&piece);
        }
    }

    fn reader(&self) -> Result<&Arc<ContentReader>> {
        if let Some(reader) = self.reader.get() {
            return Ok(reader);
        }
        let digest = self.kept.as_ref().map_or(&self.digest, Content::name);
        let reader = self.contents.reader(digest)?;
        if reader.length() != self.length {
            return Err(ContentError::damaged("content", hex(digest)));
        }
        Ok(self.reader.get_or_init(|| Arc::new(reader)))
    }
}

struct Source {
    record: Record,
    object: Option<ObjectReader>,
}

impl ContentReader {
    pub(crate) fn new(contents: &Contents, digest: &Digest, record: Record) -> Result<Self> {
        let length = record.length;
        let source = RwLock::new(Arc::new(Source::new(contents, digest, record)?));
        Ok(Self { contents: contents.clone(), digest: *digest, length, source })
    }

    /// Bytes of it.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// What it is named by.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Whether it lies in a store of objects.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.source.read().object.is_some()
    }

    /// At most `max_bytes` from `offset`; empty at the end. A content in pieces gives one piece at most.
    ///
    /// # Errors
    /// What cannot be read, and what the store reports.
    pub fn read(&self, offset: u64, max_bytes: usize) -> Result<Bytes> {
        if offset >= self.length {
            return Ok(Bytes::new());
        }
        let source = Arc::clone(&self.source.read());
        let piece = match self.read_from(&source, offset, max_bytes) {
            Ok(piece) => return Ok(piece),
            Err(error) => error,
        };
        // It may have been moved since it was opened.
        let record = self.contents.record(&self.digest)?.filter(|record| *record != source.record);
        let Some(record) = record else { return Err(piece) };
        let source = Arc::new(Source::new(&self.contents, &self.digest, record)?);
        *self.source.write() = Arc::clone(&source);
        self.read_from(&source, offset, max_bytes)
    }

    fn read_from(&self, source: &Source, offset: u64, max_bytes: usize) -> Result<Bytes> {
        let damaged = || ContentError::damaged("content", hex(&self.digest));
        let (piece, start) = match (&source.record.placement, &source.object) {
            (_, Some(object)) => return Ok(object.read(offset, max_bytes)?),
            (Placement::Inline(data), _) => (data.open(self.length).ok_or_else(damaged)?, offset),
            (Placement::Upload { upload, piece_bytes }, _) => {
                let number = u32::try_from(offset / piece_bytes).map_err(|_| damaged())?;
                let stored = self.contents.store.get(Family::Blob, &keys::chunk(*upload, number))?;
                let data = Data::decode(&stored.ok_or_else(damaged)?).ok_or_else(damaged)?;
                (data.open(*piece_bytes).ok_or_else(damaged)?, offset % piece_bytes)
            }
            (Placement::Object(_), None) => return Err(damaged()),
        };
        let start = usize::try_from(start).map_err(|_| damaged())?;
        let end = start.saturating_add(max_bytes).min(piece.len());
        if start >= end {
            return Err(damaged());
        }
        Ok(piece.slice(start..end))
    }

    /// Gives all bytes in order, in pieces, until `take` answers false; an object with few requests, past the cache.
    ///
    /// # Errors
    /// What cannot be read, what the store reports, and that of `take`.
    pub fn each(&self, mut take: impl FnMut(&[u8]) -> Result<bool>) -> Result<()> {
        let source = Arc::clone(&self.source.read());
        if let Some(object) = &source.object {
            return object.each(take);
        }
        let mut offset = 0;
        loop {
            let piece = self.read(offset, PIECE_BYTES)?;
            if piece.is_empty() || !take(&piece)? {
                return Ok(());
            }
            offset += piece.len() as u64;
        }
    }
}

impl Source {
    fn new(contents: &Contents, digest: &Digest, record: Record) -> Result<Self> {
        let object = match record.object() {
            None => None,
            Some(object) => {
                let (address, stored) = contents.places().locate(digest, record.length, &object)?;
                Some(contents.places().objects().reader(&address, stored))
            }
        };
        Ok(Self { record, object })
    }
}

//! Contents: attachments and large field values, stored once by their BLAKE3 digest, compressed where
//! it pays, counted by the documents that refer to them, and collected when none is left.
//!
//! A content of up to [`PIECE_BYTES`] is one record; a larger one is a record that names an upload,
//! whose pieces were written before, or an object of a store of objects. A content that a caller holds (a
//! [`Content`]) is *pinned*: the collector leaves it alone until the document that refers to it is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use md5::{Digest as _, Md5};
use scrinium_store::{Batch, Family, Store, StoreError};

use crate::error::{ContentError, Result};
use crate::hex::hex;
use crate::keys::{self, Digest};
use crate::pins::{Collecting, Pins};
use crate::places::Places;
use crate::reader::{ContentReader, HeldContent};
use crate::record::{Placement, Record};
use crate::upload::Upload;
use crate::{object, upload};

/// Contents are read and written in pieces of at most this many bytes.
pub const PIECE_BYTES: usize = 256 * 1024;

/// All contents of a server.
#[derive(Clone)]
pub struct Contents {
    pub(crate) store: Store,
    shared: Arc<SharedContents>,
}

struct SharedContents {
    pins: Pins,
    places: Places,
    next_upload: AtomicU64,
}

/// A content that is stored already, or that the next update stores.
///
/// While it is held, the collector leaves the content alone.
#[derive(Clone)]
pub struct Content {
    inner: Arc<Inner>,
    /// How many bytes it stands for, where it is gzip.
    decoded_length: Option<u64>,
}

struct Inner {
    pin: Pin,
    md5: [u8; 16],
    length: u64,
    /// What the update that refers to it must write; nothing if the content is stored already.
    record: Option<Record>,
    written: AtomicBool,
}

/// What a document knows of a content that it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownContent {
    /// What it is named by.
    pub digest: Digest,
    /// Its MD5 digest.
    pub md5: [u8; 16],
    /// Bytes of it.
    pub length: u64,
    /// How many bytes it stands for, where it is gzip and to be read as that.
    pub decoded_length: Option<u64>,
}

/// What became of bringing a content of another store.
pub enum Brought {
    /// It is here.
    Here(Content),
    /// It is not there either.
    Missing,
    /// It is an object that is missing or damaged, with why.
    Lost(String),
}

/// Keeps the collector away from a content, and from the note that it may be collected.
pub struct Pin {
    contents: Contents,
    digest: Digest,
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.contents.shared.pins.unpin(&self.digest);
    }
}

impl Contents {
    /// The contents of a store. Removes uploads that an earlier run left unfinished.
    ///
    /// # Errors
    /// What the store reports.
    pub fn open(store: Store) -> Result<Self> {
        let (from, to) = keys::PENDING_UPLOAD_RANGE;
        let snapshot = store.snapshot();
        let mut cursor = snapshot.cursor(
            Family::Meta,
            scrinium_store::KeyRange { from, to: Some(to) },
            scrinium_store::Direction::Forward,
        );
        let mut next_upload = 1;
        let mut batch = Batch::for_removing();
        while let Some((key, _)) = cursor.next()? {
            let Some(upload) = key.get(1..).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes)
            else {
                continue;
            };
            next_upload = next_upload.max(upload + 1);
            let (first, last) = keys::chunk_range(upload);
            batch.delete_range(Family::Blob, &first, &last);
            batch.delete(Family::Meta, key);
        }
        drop(cursor);
        if !batch.is_empty() {
            tracing::info!("removing uploads that an earlier run left unfinished");
            match store.commit(batch) {
                // The server is needed for reading, and for making space; they go with the next start.
                Err(error @ StoreError::Full) => tracing::warn!(%error, "unfinished uploads stay"),
                removed => removed?,
            }
        }
        // Where the last one lies in a damaged file, numbers go on far behind any that was ever given.
        let last = Self::last_upload(&store).unwrap_or_else(|error| {
            tracing::error!(%error, "the last upload cannot be read");
            store.clock().now_ms() << 16
        });
        let next_upload = AtomicU64::new(next_upload.max(last + 1));
        let places = Places::open(&store)?;
        Ok(Self { store, shared: Arc::new(SharedContents { pins: Pins::new(), places, next_upload }) })
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        self.store.clock().now_ms()
    }

    /// Where contents are that are objects.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.shared.places
    }

    /// `None` if somebody holds the content; else nobody gets hold of it until the answer is dropped.
    pub(crate) fn collecting(&self, digest: &Digest) -> Option<Collecting<'_>> {
        self.shared.pins.collect(digest)
    }

    fn last_upload(store: &Store) -> Result<u64> {
        let snapshot = store.snapshot();
        let mut cursor = snapshot.cursor(
            Family::Blob,
            scrinium_store::KeyRange { from: b"u", to: Some(b"v") },
            scrinium_store::Direction::Backward,
        );
        let last = cursor.next()?.and_then(|(key, _)| key.get(1..9)?.try_into().ok());
        Ok(last.map_or(0, u64::from_be_bytes))
    }

    pub(crate) fn new_upload(&self) -> u64 {
        self.shared.next_upload.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits while the collector is busy with this content.
    #[must_use]
    pub fn pin(&self, digest: &Digest) -> Pin {
        self.shared.pins.pin(digest);
        Pin { contents: self.clone(), digest: *digest }
    }

    /// A content of bytes at hand; at most [`PIECE_BYTES`] of them, else use an upload.
    ///
    /// # Errors
    /// [`ContentError::Damaged`], and what the store reports.
    pub fn of_bytes(&self, bytes: &[u8], compressible: bool) -> Result<Content> {
        let digest = *blake3::hash(bytes).as_bytes();
        let md5 = Md5::digest(bytes).into();
        let pin = self.pin(&digest);
        let is_stored = self.store.contains(Family::Blob, &keys::content(&digest))?;
        let record = (!is_stored).then(|| Record::inline(bytes, md5, compressible));
        Ok(Content::new(pin, md5, bytes.len() as u64, record))
    }

    /// A stored content, for reading.
    ///
    /// # Errors
    /// [`ContentError::Damaged`], and what the store reports.
    pub fn reader(&self, digest: &Digest) -> Result<ContentReader> {
        let record = self.record(digest)?.ok_or_else(|| ContentError::damaged("content", hex(digest)))?;
        ContentReader::new(self, digest, record)
    }

    /// Stores a content of another volume's store here as well; contents are shared within one store.
    ///
    /// # Errors
    /// [`ContentError::Damaged`], and what the store reports.
    pub fn own(&self, content: &mut Content) -> Result<()> {
        let inner = &content.inner;
        let theirs = &inner.pin.contents;
        if Arc::ptr_eq(&self.shared, &theirs.shared) {
            return Ok(());
        }
        let digest = content.name();
        let held = match self.hold(digest)? {
            Some(held) => held,
            None => self.copy(&match &inner.record {
                Some(record) => ContentReader::new(theirs, digest, record.clone())?,
                None => theirs.reader(digest)?,
            })?,
        };
        *content = held.standing_for(content.decoded_length);
        Ok(())
    }

    /// A content of another store, kept here as long as the answer is held. Where it is an object there, it is one of this
    /// store's own here, or none: what the other store removes is then nothing that this one needs.
    ///
    /// # Errors
    /// [`ContentError::Damaged`], and what the store reports.
    pub fn bring(&self, theirs: &Self, digest: &Digest) -> Result<Brought> {
        if let Some(content) = self.hold(digest)? {
            return Ok(Brought::Here(content));
        }
        // Kept there while it is read.
        let Some(_kept) = theirs.hold(digest)? else { return Ok(Brought::Missing) };
        let reader = theirs.reader(digest)?;
        match self.receive(&reader) {
            Err(error) if error.is_damage() && reader.is_object() => Ok(Brought::Lost(error.to_string())),
            received => finish(received?, digest).map(Brought::Here),
        }
    }

    /// Whether bringing a content may take as long as a store of objects does.
    ///
    /// # Errors
    /// [`ContentError::Damaged`], and what the store reports.
    pub fn asks_objects(&self, theirs: &Self, digest: &Digest) -> Result<bool> {
        if self.store.contains(Family::Blob, &keys::content(digest))? {
            return Ok(false);
        }
        let goes =
            |record: Record| record.object().is_some() || self.places().place_for(record.length).is_some();
        Ok(theirs.record(digest)?.is_some_and(goes))
    }

    fn copy(&self, reader: &ContentReader) -> Result<Content> {
        finish(self.receive(reader)?, reader.digest())
    }

    fn receive(&self, reader: &ContentReader) -> Result<Upload> {
        // Compressed is what can be, as it was.
        let mut upload = Upload::new(self, "text/plain", u64::MAX);
        reader.each(|piece| upload.write(piece).map(|()| true))?;
        Ok(upload)
    }

    /// A content that is stored here, kept as long as the answer is held; `None` if it is not.
    ///
    /// # Errors
    /// [`ContentError::Damaged`], and what the store reports.
    pub fn hold(&self, digest: &Digest) -> Result<Option<Content>> {
        let pin = self.pin(digest);
        let Some(stored) = self.store.get(Family::Blob, &keys::content(digest))? else { return Ok(None) };
        let record = Record::decode(&stored).ok_or_else(|| ContentError::damaged("content", hex(digest)))?;
        Ok(Some(Content::new(pin, record.md5, record.length, None)))
    }

    /// A content as a document knows it, for another document to refer to.
    ///
    /// # Errors
    /// [`ContentError::Damaged`] if it is not there, and what the store reports.
    pub fn share(&self, known: &KnownContent) -> Result<Content> {
        let pin = self.pin(&known.digest);
        if !self.store.contains(Family::Blob, &keys::content(&known.digest))? {
            return Err(ContentError::damaged("content", hex(&known.digest)));
        }
        Ok(Content::new(pin, known.md5, known.length, None).standing_for(known.decoded_length))
    }

    /// A content as a document knows it, opened.
    ///
    /// # Errors
    /// [`ContentError::Damaged`], and what the store reports.
    pub fn opened(&self, known: &KnownContent) -> Result<HeldContent> {
        Ok(HeldContent::opened(self.reader(&known.digest)?, known.decoded_length))
    }

    /// A content as a document knows it, to be read later.
    ///
    /// # Errors
    /// As [`Contents::share`].
    pub fn held(&self, known: &KnownContent) -> Result<HeldContent> {
        Ok(HeldContent::new(self, self.share(known)?))
    }

    /// A whole stored content; for those that are known to be small.
    ///
    /// # Errors
    /// [`ContentError::Damaged`], and what the store reports.
    pub fn read_all(&self, digest: &Digest) -> Result<Vec<u8>> {
        let reader = self.reader(digest)?;
        let mut bytes = Vec::new();
        loop {
            let piece = reader.read(bytes.len() as u64, PIECE_BYTES)?;
            if piece.is_empty() {
                return Ok(bytes);
            }
            bytes.extend_from_slice(&piece);
        }
    }
}

/// Ends the copy of a content.
fn finish(upload: Upload, digest: &Digest) -> Result<Content> {
    let content = upload.finish()?;
    if content.name() != digest {
        // Under its own name nobody would find it, and under this one it must not lie.
        return Err(ContentError::damaged("content", hex(digest)));
    }
    Ok(content)
}

impl Content {
    /// `record` is what the update that refers to it must write; `None`: it is stored already.
    pub(crate) fn new(pin: Pin, md5: [u8; 16], length: u64, record: Option<Record>) -> Self {
        let written = AtomicBool::new(record.is_none());
        Self { inner: Arc::new(Inner { pin, md5, length, record, written }), decoded_length: None }
    }

    /// Bytes of the content, uncompressed.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.inner.length
    }

    /// The same, said to be gzip that stands for so many bytes, if it is.
    #[must_use]
    pub fn standing_for(self, decoded_length: Option<u64>) -> Self {
        Self { decoded_length, ..self }
    }

    /// How many bytes it stands for, where it is gzip.
    #[must_use]
    pub const fn decoded_length(&self) -> Option<u64> {
        self.decoded_length
    }

    /// CouchDB's digest of an attachment: `md5-` and base64.
    #[must_use]
    pub fn digest(&self) -> String {
        md5_text(&self.inner.md5)
    }

    /// Its MD5 digest.
    #[must_use]
    pub fn md5(&self) -> [u8; 16] {
        self.inner.md5
    }

    /// Whether storing it takes anything.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.inner.record.is_some()
    }

    /// What it is named by.
    #[must_use]
    pub fn name(&self) -> &Digest {
        &self.inner.pin.digest
    }

    /// Adds what storing the content takes to the batch whose document refers to it.
    pub fn write(&self, batch: &mut Batch) {
        if let Some(record) = &self.inner.record {
            batch.put(Family::Blob, &keys::content(self.name()), &record.encode());
            match record.placement {
                Placement::Inline(_) => {}
                Placement::Upload { upload, .. } => batch.delete(Family::Meta, &keys::pending_upload(upload)),
                Placement::Object(object) => {
                    let now_ms = self.inner.pin.contents.now_ms();
                    object::need(batch, self.name(), record.length, object, now_ms);
                }
            }
        }
    }

    /// The batch that [`Content::write`] added to is stored.
    pub fn stored(&self) {
        let first = !self.inner.written.swap(true, Ordering::Relaxed);
        if let Some(object) = self.inner.record.as_ref().filter(|_| first).and_then(Record::object) {
            self.inner.pin.contents.places().totals.add(1, object.stored_bytes);
        }
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Content({}, {} bytes)", hex(self.name()), self.inner.length)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let written = self.written.load(Ordering::Relaxed);
        if let (false, Some(Record { placement: Placement::Upload { upload, .. }, .. })) =
            (written, &self.record)
        {
            upload::discard(&self.pin.contents.store, *upload);
        }
    }
}

/// CouchDB's spelling of an MD5 digest.
#[must_use]
pub fn md5_text(md5: &[u8; 16]) -> String {
    use base64::Engine as _;
    format!("md5-{}", base64::engine::general_purpose::STANDARD.encode(md5))
}

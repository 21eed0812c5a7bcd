//! Contents that are objects: on their way there, and what is known of each.
//!
//! An object is noted before it is written, in a batch that is durable first. Its note says when to look whether it is
//! needed: so nothing that a crash leaves behind is forgotten, and nothing has to be searched. The record of the
//! content, which makes the object one that is needed, comes with the first document that refers to it.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use scrinium_assertion::never;
use scrinium_objects::{ObjectName, Spool, WriteOptions};
use scrinium_store::{Batch, Family};

use crate::contents::{Content, Contents, PIECE_BYTES};
use crate::error::Result;
use crate::hex::hex;
use crate::keys::{self, Digest};
use crate::places::BucketPart;
use crate::reader::ContentReader;
use crate::record::{ObjectPlace, Placement, Record};
use crate::wire::{Input, put_number};

const VERSION: u8 = 1;

/// The object of a content, which is needed, or was until lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectState {
    /// Which object it is.
    pub object: ObjectPlace,
    /// Bytes of the content.
    pub length: u64,
    /// When it came to be needed.
    pub created_ms: u64,
    /// Since when it is not; 0: it is.
    pub removed_ms: u64,
}

impl ObjectState {
    /// As it is stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        self.object.put(&mut out);
        put_number(&mut out, self.length);
        put_number(&mut out, self.created_ms);
        put_number(&mut out, self.removed_ms);
        out
    }

    /// `None`: damaged, or of a version that is not known.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        if input.byte()? != VERSION {
            return None;
        }
        let object = ObjectPlace::read(&mut input)?;
        Some(Self {
            object,
            length: input.number()?,
            created_ms: input.number()?,
            removed_ms: input.number()?,
        })
    }
}

/// A content whose bytes are all there, to be made an object.
pub(crate) struct Outgoing<'a> {
    pub(crate) digest: Digest,
    pub(crate) md5: [u8; 16],
    pub(crate) length: u64,
    pub(crate) compressible: bool,
    pub(crate) spool: &'a mut Spool,
}

/// Notes that an object is to be looked at some time after `now_ms`.
pub fn note(batch: &mut Batch, now_ms: u64, digest: &Digest, object: &ObjectPlace) {
    let key = keys::object_note(now_ms, digest, object.upload);
    batch.put(Family::Point, &key, &object.place.to_be_bytes());
}

/// Notes that a document refers to an object from `now_ms` on.
pub(crate) fn need(batch: &mut Batch, digest: &Digest, length: u64, object: ObjectPlace, now_ms: u64) {
    let state = ObjectState { object, length, created_ms: now_ms, removed_ms: 0 };
    batch.put(Family::Point, &keys::object(digest), &state.encode());
}

/// Notes that nobody refers to an object any more, since `removed_ms`.
pub(crate) fn release(
    batch: &mut Batch,
    digest: &Digest,
    (object, length): (ObjectPlace, u64),
    before: Option<ObjectState>,
    removed_ms: u64,
) {
    let created_ms = before.map_or(0, |state| state.created_ms);
    let state = ObjectState { object, length, created_ms, removed_ms };
    batch.put(Family::Point, &keys::object(digest), &state.encode());
    note(batch, removed_ms, digest, &object);
}

impl Contents {
    /// What is known of the object of a content, if it was ever one.
    ///
    /// # Errors
    /// What the store reports.
    pub fn object_state(&self, digest: &Digest) -> Result<Option<ObjectState>> {
        let stored = self.store.get(Family::Point, &keys::object(digest))?;
        Ok(stored.and_then(|stored| ObjectState::decode(&stored)))
    }

    /// How a content is stored; `None` if it is not.
    ///
    /// # Errors
    /// What the store reports.
    pub fn record(&self, digest: &Digest) -> Result<Option<Record>> {
        let stored = self.store.get(Family::Blob, &keys::content(digest))?;
        Ok(stored.and_then(|stored| Record::decode(&stored)))
    }

    /// Whether the object of a record is known to be lost. One whose store cannot be asked is not.
    fn is_lost(&self, digest: &Digest, record: &Record) -> Result<bool> {
        let Placement::Object(object) = &record.placement else { return Ok(false) };
        let (address, stored) = self.places().locate(digest, record.length, object)?;
        Ok(self.places().objects().check(&address, &stored).is_err_and(|error| error.is_lost()))
    }

    /// Makes an object of a content, unless it is stored already.
    pub(crate) fn send(
        &self,
        (number, place): &(u32, BucketPart),
        outgoing: Outgoing<'_>,
    ) -> Result<Content> {
        let Outgoing { digest, md5, length, compressible, spool } = outgoing;
        let pin = self.pin(&digest);
        let before = self.record(&digest)?;
        if let Some(record) = &before
            && !self.is_lost(&digest, record)?
        {
            return Ok(Content::new(pin, md5, length, None));
        }
        let object = match self.kept(&digest, length)? {
            Some(object) if before.is_none() => object,
            _ => {
                let lost = before.as_ref().and_then(Record::object);
                let content = spool.reader()?;
                let how = WriteOptions { compressible, keep: true };
                self.write_object(*number, place, (digest, length), content, how, lost)?
            }
        };
        let record = Record { length, md5, placement: Placement::Object(object) };
        Ok(Content::new(pin, md5, length, Some(record)))
    }

    /// The object of a content that was removed lately, if it is still there.
    fn kept(&self, digest: &Digest, length: u64) -> Result<Option<ObjectPlace>> {
        let Some(state) = self.object_state(digest)? else { return Ok(None) };
        if state.removed_ms == 0 || state.length != length || !self.places().is_own(state.object.place) {
            return Ok(None);
        }
        let (address, stored) = self.places().locate(digest, length, &state.object)?;
        match self.places().objects().check(&address, &stored) {
            Ok(()) => Ok(Some(state.object)),
            Err(error) if error.is_lost() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes an object under a new name, noted before; so is the one that it stands in for, if there is one.
    pub(crate) fn write_object(
        &self,
        number: u32,
        place: &BucketPart,
        (digest, length): (Digest, u64),
        content: &mut dyn Read,
        how: WriteOptions,
        instead_of: Option<ObjectPlace>,
    ) -> Result<ObjectPlace> {
        let mut object = ObjectPlace { place: number, upload: rand::random(), stored_bytes: 0 };
        let mut batch = Batch::new();
        let now_ms = self.now_ms();
        note(&mut batch, now_ms, &digest, &object);
        if let Some(lost) = instead_of {
            note(&mut batch, now_ms, &digest, &lost);
        }
        self.store.commit(batch)?;
        let name = ObjectName { home: place.home(), digest, upload: object.upload };
        object.stored_bytes = self.places().objects().write(&place.address, &name, length, content, how)?;
        Ok(object)
    }
}

impl Record {
    /// The object that the content is, if it is one.
    #[must_use]
    pub const fn object(&self) -> Option<ObjectPlace> {
        match self.placement {
            Placement::Object(object) => Some(object),
            Placement::Inline(_) | Placement::Upload { .. } => None,
        }
    }
}

/// Told of each piece that was read, in bytes, and how long it took; may hold anyone who reads, or say that there is to be no
/// other piece.
pub(crate) type Pacer<'a> = dyn Fn(u64, Duration) -> Result<()> + 'a;

/// The bytes of a stored content, one after the other.
pub(crate) struct Bytewise<'a> {
    reader: &'a ContentReader,
    pacer: &'a Pacer<'a>,
    offset: u64,
    /// When the piece before was given out.
    given: Instant,
}

impl<'a> Bytewise<'a> {
    pub(crate) fn new(reader: &'a ContentReader, pacer: &'a Pacer<'a>) -> Self {
        Self { reader, pacer, offset: 0, given: Instant::now() }
    }
}

impl Read for Bytewise<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = self.reader.read(self.offset, buffer.len().min(PIECE_BYTES)).map_err(io::Error::other)?;
        (self.pacer)(piece.len() as u64, self.given.elapsed()).map_err(io::Error::other)?;
        let space = buffer.get_mut(..piece.len());
        let space =
            space.ok_or_else(|| io::Error::other(never!("no more is read than there is room for")))?;
        space.copy_from_slice(&piece);
        self.offset += piece.len() as u64;
        self.given = Instant::now();
        Ok(piece.len())
    }
}

/// How an object is called in messages.
#[must_use]
pub fn called(digest: &Digest, object: &ObjectPlace) -> String {
    format!("{}-{:016x}", hex(digest), object.upload)
}

//! A large content on its way in: written piece by piece, so that memory holds one piece only.

use md5::{Digest as _, Md5};
use scrinium_objects::{ObjectError, Spool};
use scrinium_store::{Batch, Durability, Family, Store};

use crate::contents::{Content, Contents, PIECE_BYTES};
use crate::error::{ContentError, Result};
use crate::keys;
use crate::object::Outgoing;
use crate::record::{Data, Placement, Record, is_compressible};

/// A content on its way in. Dropped before [`Upload::finish`], it is thrown away.
///
/// Up to one piece stays in memory; more is written as it comes, and is durable but unseen until a
/// document refers to it. Pieces that a crash leaves behind are removed at the next start.
pub struct Upload {
    contents: Contents,
    compressible: bool,
    max_bytes: u64,
    length: u64,
    blake3: blake3::Hasher,
    md5: Md5,
    buffer: Vec<u8>,
    /// The upload's number and how many pieces it has, once there is one.
    pieces: Option<(u64, u32)>,
    /// What was written where it may become an object.
    spool: Option<Spool>,
}

impl Upload {
    /// A content of this MIME type, of at most `max_bytes`.
    #[must_use]
    pub fn new(contents: &Contents, content_type: &str, max_bytes: u64) -> Self {
        Self {
            contents: contents.clone(),
            compressible: is_compressible(content_type),
            max_bytes,
            length: 0,
            blake3: blake3::Hasher::new(),
            md5: Md5::new(),
            buffer: Vec::new(),
            pieces: None,
            spool: None,
        }
    }

    pub(crate) const fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Whether finishing it may take as long as sending all of it to a store of objects.
    #[must_use]
    pub const fn may_leave(&self) -> bool {
        self.spool.is_some()
    }

    /// Takes the next bytes; may wait for the disk.
    ///
    /// # Errors
    /// [`ContentError::TooLarge`] beyond the server's limit, and what the store reports.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.length = self.length.saturating_add(bytes.len() as u64);
        if self.length > self.max_bytes {
            return Err(ContentError::TooLarge { limit_bytes: self.max_bytes });
        }
        self.blake3.update(bytes);
        self.md5.update(bytes);
        while self.buffer.len() + bytes.len() > PIECE_BYTES {
            let (now, later) = bytes.split_at(PIECE_BYTES - self.buffer.len());
            self.buffer.extend_from_slice(now);
            self.pass_on()?;
            bytes = later;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// A piece is full: writes it, to a file where it is not known yet which store is to have it.
    fn pass_on(&mut self) -> Result<()> {
        if self.spool.is_none() && self.pieces.is_none() && self.contents.places().has_store() {
            self.spool = Some(self.contents.places().objects().spool()?);
        }
        let Some(spool) = &mut self.spool else { return self.write_piece() };
        spool.write(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn write_piece(&mut self) -> Result<()> {
        let mut batch = Batch::new();
        let (upload, piece) = match self.pieces {
            Some(pieces) => pieces,
            None => {
                let upload = self.contents.new_upload();
                batch.put(Family::Meta, &keys::pending_upload(upload), &[]);
                (upload, 0)
            }
        };
        let data = Data::new(&self.buffer, self.compressible);
        batch.put(Family::Blob, &keys::chunk(upload, piece), &data.encode());
        // Noted before the commit, so that a failed one is cleaned up as well.
        self.pieces = Some((upload, piece + 1));
        self.contents.store.commit(batch)?;
        self.buffer.clear();
        Ok(())
    }

    /// As [`finish`](Self::finish), with nothing of the content left in memory, however short it is: for those who hold
    /// very many until they are stored.
    ///
    /// # Errors
    /// What the store reports.
    pub fn finish_written(mut self) -> Result<Content> {
        if self.pieces.is_none() && self.spool.is_none() && !self.buffer.is_empty() {
            self.write_piece()?;
        }
        self.finish()
    }

    /// All is there: the content, for an edit to refer to.
    ///
    /// # Errors
    /// What the store reports.
    pub fn finish(mut self) -> Result<Content> {
        if self.pieces.is_none() && self.spool.is_none() {
            return self.contents.of_bytes(&self.buffer, self.compressible);
        }
        if !self.buffer.is_empty() {
            self.pass_on()?;
        }
        let digest = *self.blake3.finalize().as_bytes();
        let md5 = std::mem::take(&mut self.md5).finalize().into();
        if let Some(mut spool) = self.spool.take() {
            if let Some(place) = self.contents.places().place_for(self.length) {
                let (length, compressible) = (self.length, self.compressible);
                let outgoing = Outgoing { digest, md5, length, compressible, spool: &mut spool };
                return self.contents.send(&place, outgoing);
            }
            self.keep(&mut spool)?;
        }
        let pin = self.contents.pin(&digest);
        let mut record = None;
        // A content that is there already makes this upload superfluous: dropping `self` discards it.
        if !self.contents.store.contains(Family::Blob, &keys::content(&digest))?
            && let Some((upload, _)) = self.pieces.take()
        {
            let placement = Placement::Upload { upload, piece_bytes: PIECE_BYTES as u64 };
            record = Some(Record { length: self.length, md5, placement });
        }
        Ok(Content::new(pin, md5, self.length, record))
    }
}

impl Upload {
    /// Brings what was spooled to the other contents.
    fn keep(&mut self, spool: &mut Spool) -> Result<()> {
        let content = spool.reader()?;
        let mut left = self.length;
        while left > 0 {
            self.buffer.resize(usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES), 0);
            content.read_exact(&mut self.buffer).map_err(|error| ObjectError::Source(error.to_string()))?;
            left -= self.buffer.len() as u64;
            self.write_piece()?;
        }
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some((upload, _)) = self.pieces {
            discard(&self.contents.store, upload);
        }
    }
}

/// Removes the pieces of an upload that no document refers to. What cannot be removed now is removed
/// at the next start.
pub(crate) fn discard(store: &Store, upload: u64) {
    let mut batch = Batch::for_removing();
    let (from, to) = keys::chunk_range(upload);
    batch.delete_range(Family::Blob, &from, &to);
    batch.delete(Family::Meta, &keys::pending_upload(upload));
    if let Err(error) = store.write(batch, Durability::Logged, None) {
        tracing::warn!(upload, %error, "the pieces of an unfinished upload stay until the next start");
    }
}

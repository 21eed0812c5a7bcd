//! Files of a repository that are encrypted on their way in, and decrypted on their way out.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::BackupError;
use crate::age::{CipherError, Identities, Opener, Recipient, Sealer};
use crate::aligned::{Buffer, PIECE_BYTES};
use crate::manifest::StoredEntry;
use crate::place::{Pieces, Sink};

/// What became of a file that was written: its length and digest as it lies there.
pub(crate) type Stored = Rc<RefCell<Option<StoredEntry>>>;

/// Encrypts what it takes.
pub(crate) struct SealingSink<'a> {
    inner: Box<dyn Sink + 'a>,
    name: String,
    sealer: Sealer,
    buffer: Buffer,
    hasher: blake3::Hasher,
    bytes: u64,
    stored: Stored,
}

impl<'a> SealingSink<'a> {
    pub(crate) fn new(
        inner: Box<dyn Sink + 'a>,
        name: &str,
        recipient: &Recipient,
        stored: Stored,
    ) -> Result<Self, BackupError> {
        Ok(Self {
            inner,
            name: name.to_owned(),
            sealer: Sealer::new(recipient).map_err(|error| BackupError::cipher(name, error))?,
            buffer: Buffer::new(),
            hasher: blake3::Hasher::new(),
            bytes: 0,
            stored,
        })
    }

    /// Hands on what is encrypted, in whole pieces, and at the end all of it.
    fn hand_on(&mut self, all: bool) -> Result<(), BackupError> {
        let sealed = self.sealer.take();
        let mut given = 0;
        while sealed.len() - given >= PIECE_BYTES || (all && sealed.len() > given) {
            let piece = sealed.get(given..sealed.len().min(given + PIECE_BYTES)).unwrap_or_default();
            given += piece.len();
            self.hasher.update(piece);
            self.bytes += piece.len() as u64;
            self.buffer.fill(piece);
            self.inner.put(&mut self.buffer)?;
        }
        sealed.drain(..given);
        Ok(())
    }
}

impl Sink for SealingSink<'_> {
    fn put(&mut self, piece: &mut Buffer) -> Result<(), BackupError> {
        self.sealer.put(piece.content()).map_err(|error| BackupError::cipher(&self.name, error))?;
        self.hand_on(false)
    }

    fn finish(mut self: Box<Self>) -> Result<(), BackupError> {
        self.sealer.finish().map_err(|error| BackupError::cipher(&self.name, error))?;
        self.hand_on(true)?;
        let blake3 = self.hasher.finalize().to_hex().to_string();
        *self.stored.borrow_mut() = Some(StoredEntry { bytes: self.bytes, blake3 });
        self.inner.finish()
    }
}

/// Decrypts what it reads.
pub(crate) struct OpeningPieces {
    inner: Box<dyn Pieces>,
    name: String,
    keys: Arc<Identities>,
    opener: Opener,
    buffer: Buffer,
    ended: bool,
}

impl OpeningPieces {
    pub(crate) fn new(inner: Box<dyn Pieces>, name: &str, keys: &Arc<Identities>) -> Self {
        let keys = Arc::clone(keys);
        Self {
            inner,
            name: name.to_owned(),
            keys,
            opener: Opener::new(),
            buffer: Buffer::new(),
            ended: false,
        }
    }
}

impl Pieces for OpeningPieces {
    fn next(&mut self, buffer: &mut Buffer) -> Result<(), BackupError> {
        while !self.ended && self.opener.take().len() < PIECE_BYTES {
            self.inner.next(&mut self.buffer)?;
            self.ended = self.buffer.filled < PIECE_BYTES;
            let opened = self.opener.put(self.buffer.content(), self.ended, &self.keys);
            opened.map_err(|error| BackupError::cipher(&self.name, error))?;
        }
        let opened = self.opener.take();
        let piece = opened.get(..opened.len().min(PIECE_BYTES)).unwrap_or_default();
        buffer.fill(piece);
        let given = piece.len();
        opened.drain(..given);
        Ok(())
    }
}

/// Encrypts what fits into memory.
pub(crate) fn seal(content: &[u8], recipient: &Recipient) -> Result<Vec<u8>, CipherError> {
    let mut sealer = Sealer::new(recipient)?;
    sealer.put(content)?;
    sealer.finish()?;
    Ok(std::mem::take(sealer.take()))
}

/// Decrypts what fits into memory.
pub(crate) fn open(sealed: &[u8], keys: &Identities) -> Result<Vec<u8>, CipherError> {
    let mut opener = Opener::new();
    opener.put(sealed, true, keys)?;
    Ok(std::mem::take(opener.take()))
}

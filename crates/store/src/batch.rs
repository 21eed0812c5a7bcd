//! A batch: an ordered list of changes as plain bytes that mean the same on every machine.
//!
//! ```text
//! batch     = version operation*
//! version   = 0x01
//! operation = put | delete | range
//! put       = (0x10 + family) length key length value
//! delete    = (0x20 + family) length key
//! range     = (0x30 + family) length from length to      from < to; `to` itself stays
//! family    = 0..=7, the code of a Family
//! length    = unsigned LEB128, shortest form, at most u32::MAX
//! ```
//!
//! Operations take effect in order, so that a put after a range deletion that covers it stays. A batch
//! is absolute: applying it twice leaves what applying it once leaves.

use bytes::{BufMut, Bytes, BytesMut};
use scrinium_assertion::{Fault, always, never};

use crate::{Family, MAX_BATCH_BYTES, StoreError};

/// The only version so far, and the first byte of every batch.
const VERSION: u8 = 1;

const PUT: u8 = 0x10;
const DELETE: u8 = 0x20;
const DELETE_RANGE: u8 = 0x30;

/// An ordered list of changes that takes effect as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    bytes: BytesMut,
    families: FamilySet,
    frees_space: bool,
}

/// One change of a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Sets the value of a key.
    Put {
        /// Where the key lives.
        family: Family,
        /// The key; may be empty.
        key: &'a [u8],
        /// The value; may be empty.
        value: &'a [u8],
    },
    /// Removes a key; one that is absent is no error.
    Delete {
        /// Where the key lives.
        family: Family,
        /// The key.
        key: &'a [u8],
    },
    /// Removes every key from `from` up to, not including, `to`.
    DeleteRange {
        /// Where the keys live.
        family: Family,
        /// The first key removed.
        from: &'a [u8],
        /// The first key that stays.
        to: &'a [u8],
    },
}

impl Operation<'_> {
    /// The family that this operation changes.
    #[must_use]
    pub fn family(&self) -> Family {
        match self {
            Self::Put { family, .. } | Self::Delete { family, .. } | Self::DeleteRange { family, .. } => {
                *family
            }
        }
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// A batch without changes.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// A batch without changes, with room for `bytes` of keys and values.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        let mut buffer = BytesMut::with_capacity(bytes.saturating_add(1));
        buffer.put_u8(VERSION);
        Self { bytes: buffer, families: FamilySet::default(), frees_space: false }
    }

    /// A batch without changes, for removing what takes space: see [`frees_space`](Self::frees_space).
    #[must_use]
    pub fn for_removing() -> Self {
        let mut batch = Self::new();
        batch.frees_space();
        batch
    }

    /// Says that more space is given back than taken once this is done. A full disk takes such a batch longer than
    /// others, for half of the reserve: else nothing could make space but the operating system.
    pub fn frees_space(&mut self) {
        self.frees_space = true;
    }

    pub(crate) fn does_give_space_back(&self) -> bool {
        self.frees_space
    }

    /// Sets the value of `key`.
    pub fn put(&mut self, family: Family, key: &[u8], value: &[u8]) {
        self.start(PUT, family, key.len() + value.len());
        self.push(key);
        self.push(value);
    }

    /// Removes `key`; one that is absent is no error.
    pub fn delete(&mut self, family: Family, key: &[u8]) {
        self.start(DELETE, family, key.len());
        self.push(key);
    }

    /// Removes every key from `from` up to, not including, `to_exclusive`. An empty range adds nothing.
    pub fn delete_range(&mut self, family: Family, from: &[u8], to_exclusive: &[u8]) {
        if from < to_exclusive {
            self.start(DELETE_RANGE, family, from.len() + to_exclusive.len());
            self.push(from);
            self.push(to_exclusive);
        }
    }

    /// Adds the changes of `other` after those already here.
    pub fn append(&mut self, other: &Self) {
        let changes = other.bytes.get(1..).unwrap_or_else(|| {
            never!("a batch begins with its version");
            &[]
        });
        self.bytes.extend_from_slice(changes);
        self.families.add_all(other.families);
        self.frees_space &= other.frees_space;
    }

    /// Takes back the changes that were added since [`len_bytes`](Self::len_bytes) was `len_bytes`.
    pub fn truncate(&mut self, len_bytes: usize) {
        if len_bytes > self.bytes.len() {
            never!("changes that were never made are not taken back", "{len_bytes} of {}", self.bytes.len());
        }
        self.bytes.truncate(len_bytes.max(1));
    }

    /// Whether there is nothing to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() <= 1
    }

    /// The length of the encoded batch in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The encoded batch.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The encoded batch, without copying it.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes.freeze()
    }

    /// Takes an encoded batch, having checked every byte of it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Batch`] with the offset of what cannot be understood.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, StoreError> {
        let mut families = FamilySet::default();
        for operation in operations_of(&bytes)? {
            families.add(operation?.family());
        }
        let bytes = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(shared.as_ref()));
        Ok(Self { bytes, families, frees_space: false })
    }

    /// The changes in order. Those of a batch that was built here, or checked by
    /// [`Batch::from_bytes`], are all `Ok`.
    #[must_use]
    pub fn operations(&self) -> Operations<'_> {
        Operations { bytes: &self.bytes, at: 1 }
    }

    /// A family of the batch that is derived (or, with `derived` false, that is logged).
    pub(crate) fn family_that_is(&self, derived: bool) -> Option<Family> {
        Family::ALL.into_iter().find(|family| family.is_derived() == derived && self.families.has(*family))
    }

    /// The record that goes into the log, once every byte of it is seen to say what was put in: what is read after a
    /// crash is found out before it is written.
    pub(crate) fn into_record(self) -> Result<Bytes, Fault> {
        if self.bytes.len() > MAX_BATCH_BYTES {
            // No log takes it: the committer refuses it.
            return Ok(self.into_bytes());
        }
        let mut families = FamilySet::default();
        for operation in
            operations_of(&self.bytes).map_err(|error| never!("a batch has its version", "{error}"))?
        {
            let operation =
                operation.map_err(|error| never!("a batch that was made here can be read", "{error}"))?;
            families.add(operation.family());
        }
        always!(
            families.is_within(self.families),
            "a batch changes no family but those that it was admitted for",
            "{families:?}, {:?}",
            self.families
        )?;
        Ok(self.into_bytes())
    }

    fn start(&mut self, kind: u8, family: Family, payload_bytes: usize) {
        self.bytes.reserve(payload_bytes.saturating_add(11));
        self.bytes.put_u8(kind + family.code());
        self.families.add(family);
    }

    fn push(&mut self, part: &[u8]) {
        let mut length = part.len();
        while length >= 0x80 {
            self.bytes.put_u8(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
            length >>= 7;
        }
        self.bytes.put_u8(u8::try_from(length).unwrap_or_default());
        self.bytes.extend_from_slice(part);
    }
}

/// Which families occur, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FamilySet(u8);

impl FamilySet {
    fn add(&mut self, family: Family) {
        self.0 |= 1 << family.code();
    }

    fn add_all(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    fn has(self, family: Family) -> bool {
        self.0 & (1 << family.code()) != 0
    }
}

/// Reads the changes of an encoded batch one after the other.
///
/// # Errors
///
/// [`StoreError::Batch`] when the version is not one that is understood here.
pub(crate) fn operations_of(bytes: &[u8]) -> Result<Operations<'_>, StoreError> {
    match bytes.first() {
        Some(&VERSION) => Ok(Operations { bytes, at: 1 }),
        Some(_) => Err(damaged(0, "its version is unknown; a newer server may have written it")),
        None => Err(damaged(0, "it is empty, without even a version")),
    }
}

/// The changes of a batch in order; see [`Batch::operations`]. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Operations<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<Operation<'a>, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let operation = self.read();
        if operation.is_err() {
            self.at = self.bytes.len();
        }
        Some(operation)
    }
}

impl<'a> Operations<'a> {
    fn read(&mut self) -> Result<Operation<'a>, StoreError> {
        let start = self.at;
        let tag = self.byte()?;
        let family = Family::from_code(tag & 0x0f).ok_or_else(|| damaged(start, "its family is unknown"))?;
        match tag & 0xf0 {
            PUT => Ok(Operation::Put { family, key: self.part()?, value: self.part()? }),
            DELETE => Ok(Operation::Delete { family, key: self.part()? }),
            DELETE_RANGE => {
                let (from, to) = (self.part()?, self.part()?);
                if from >= to {
                    return Err(damaged(start, "a range ends before it begins"));
                }
                Ok(Operation::DeleteRange { family, from, to })
            }
            _ => Err(damaged(start, "an operation is unknown")),
        }
    }

    fn byte(&mut self) -> Result<u8, StoreError> {
        let byte = self.bytes.get(self.at).ok_or_else(|| damaged(self.at, "it ends within an operation"))?;
        self.at += 1;
        Ok(*byte)
    }

    fn length(&mut self) -> Result<usize, StoreError> {
        let start = self.at;
        let mut length = 0_u64;
        for shift in [0_u32, 7, 14, 21, 28] {
            let byte = self.byte()?;
            length |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                if byte == 0 && shift > 0 {
                    return Err(damaged(start, "a length is not in its shortest form"));
                }
                return u32::try_from(length)
                    .ok()
                    .and_then(|length| usize::try_from(length).ok())
                    .ok_or_else(|| damaged(start, "a length is over 4 GB"));
            }
        }
        Err(damaged(start, "a length is over 4 GB"))
    }

    fn part(&mut self) -> Result<&'a [u8], StoreError> {
        let length = self.length()?;
        let end = self.at.saturating_add(length);
        let part = self
            .bytes
            .get(self.at..end)
            .ok_or_else(|| damaged(self.at, "it ends within a key or a value"))?;
        self.at = end;
        Ok(part)
    }
}

fn damaged(offset: usize, what: &'static str) -> StoreError {
    StoreError::Batch { offset, what }
}

//! What one append carries: one group of the committer, or one record of the cluster's own.
//!
//! ```text
//! bytes  field, little-endian
//! 1      version, 1
//! 1      kind: 1 begin, 2 claim, 3 records, 4 hand over, 5 seal
//! 4      member: who claims, or whom is handed over to; else 0
//! 8      epoch
//! 8      number of the first record
//! 4      how many records
//! 32     digest of all records before the first
//! 32     digest of all records up to the last
//! then   for each record its length (4 bytes) and its bytes
//! 16     the beginning of BLAKE3 of everything before
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};
use scrinium_log::{Chain, Sequence};

use crate::{Epoch, MemberId};

/// The most that an entry takes in the engine, in bytes.
pub const LARGEST_ENTRY_BYTES: usize = 256 << 10;

/// The most that the records of an entry take, each with the four bytes of its length.
pub const LARGEST_RECORDS_BYTES: usize = LARGEST_ENTRY_BYTES - HEAD_BYTES - CHECK_BYTES;

/// The most records in one entry: more than a group of the committer has, in which an empty one counts for 36 bytes.
pub const MOST_RECORDS: usize = 8192;

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 1 + 1 + 4 + 8 + 8 + 4 + 32 + 32;
const CHECK_BYTES: usize = 16;
const LENGTH_BYTES: usize = 4;

/// What an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// The group begins, with its first leader.
    Begin(MemberId),
    /// A member has become the leader.
    Claim(MemberId),
    /// What was submitted.
    Records,
    /// The leader gives up, and this member need not wait for silence.
    HandOver(MemberId),
    /// Nothing comes after it in this engine.
    Seal,
}

/// Some records at their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    kind: EntryKind,
    epoch: Epoch,
    parent: Chain,
    chain: Chain,
    records: Vec<Bytes>,
}

/// Why bytes are no entry, or records make none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum EntryError {
    /// Its bytes are not those that were written.
    #[error("its bytes are not those that were written")]
    Damaged,
    /// A newer release has written it.
    #[error("it has format {found}, this release reads {VERSION}; upgrade this member")]
    Newer {
        /// Its format.
        found: u8,
    },
    /// Its digest is not that of its records.
    #[error("its digest is not that of its records")]
    WrongDigest,
    /// It is too large.
    #[error("it takes {bytes} bytes, and an entry at most {LARGEST_ENTRY_BYTES} with {MOST_RECORDS} records")]
    TooLarge {
        /// What it takes.
        bytes: usize,
    },
    /// It has no record.
    #[error("it has no record")]
    Empty,
}

impl Entry {
    /// Records that follow `parent`.
    ///
    /// # Errors
    /// [`EntryError::Empty`], [`EntryError::TooLarge`].
    pub fn new(
        kind: EntryKind,
        epoch: Epoch,
        parent: Chain,
        records: Vec<Bytes>,
    ) -> Result<Self, EntryError> {
        if records.is_empty() {
            return Err(EntryError::Empty);
        }
        let bytes = HEAD_BYTES
            + CHECK_BYTES
            + records.iter().map(|record| LENGTH_BYTES + record.len()).sum::<usize>();
        if bytes > LARGEST_ENTRY_BYTES || records.len() > MOST_RECORDS {
            return Err(EntryError::TooLarge { bytes });
        }
        let chain = parent.with_all(&records);
        Ok(Self { kind, epoch, parent, chain, records })
    }

    /// What it is for.
    #[must_use]
    pub const fn kind(&self) -> EntryKind {
        self.kind
    }

    /// In which leadership it was written.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// What it follows.
    #[must_use]
    pub const fn parent(&self) -> Chain {
        self.parent
    }

    /// All records up to its last.
    #[must_use]
    pub const fn chain(&self) -> Chain {
        self.chain
    }

    /// The number of its first record.
    #[must_use]
    pub const fn first(&self) -> Sequence {
        self.parent.next()
    }

    /// Its records.
    #[must_use]
    pub fn records(&self) -> &[Bytes] {
        &self.records
    }

    /// Its records.
    #[must_use]
    pub fn into_records(self) -> Vec<Bytes> {
        self.records
    }

    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let payload: usize = self.records.iter().map(|record| LENGTH_BYTES + record.len()).sum();
        let mut bytes = BytesMut::with_capacity(HEAD_BYTES + payload + CHECK_BYTES);
        let (kind, member) = match self.kind {
            EntryKind::Begin(member) => (1, member.0),
            EntryKind::Claim(member) => (2, member.0),
            EntryKind::Records => (3, 0),
            EntryKind::HandOver(member) => (4, member.0),
            EntryKind::Seal => (5, 0),
        };
        bytes.put_u8(VERSION);
        bytes.put_u8(kind);
        bytes.put_u32_le(member);
        bytes.put_u64_le(self.epoch.0);
        bytes.put_u64_le(self.first().0);
        bytes.put_u32_le(u32::try_from(self.records.len()).unwrap_or(u32::MAX));
        bytes.put_slice(self.parent.digest());
        bytes.put_slice(self.chain.digest());
        for record in &self.records {
            bytes.put_u32_le(u32::try_from(record.len()).unwrap_or(u32::MAX));
            bytes.put_slice(record);
        }
        let check = check(&bytes);
        bytes.put_slice(&check);
        bytes.freeze()
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`EntryError`]; nothing of it is to be used then.
    pub fn decode(bytes: &Bytes) -> Result<Self, EntryError> {
        if bytes.len() > LARGEST_ENTRY_BYTES {
            return Err(EntryError::TooLarge { bytes: bytes.len() });
        }
        let (head, found) = bytes.split_last_chunk::<CHECK_BYTES>().ok_or(EntryError::Damaged)?;
        match head.first() {
            Some(&VERSION) if *found == check(head) => {}
            Some(&newer) if newer > VERSION && *found == check(head) => {
                return Err(EntryError::Newer { found: newer });
            }
            _ => return Err(EntryError::Damaged),
        }
        if head.len() < HEAD_BYTES {
            return Err(EntryError::Damaged);
        }
        let mut rest = bytes.slice(1..head.len());
        let (kind, member) = (rest.get_u8(), MemberId(rest.get_u32_le()));
        let kind = match kind {
            1 => EntryKind::Begin(member),
            2 => EntryKind::Claim(member),
            3 => EntryKind::Records,
            4 => EntryKind::HandOver(member),
            5 => EntryKind::Seal,
            _ => return Err(EntryError::Damaged),
        };
        let epoch = Epoch(rest.get_u64_le());
        let before = rest.get_u64_le().checked_sub(1).ok_or(EntryError::Damaged)?;
        let count = usize::try_from(rest.get_u32_le()).unwrap_or(usize::MAX);
        let (mut parent, mut digest) = ([0; 32], [0; 32]);
        rest.copy_to_slice(&mut parent);
        rest.copy_to_slice(&mut digest);
        let records = decode_records(rest, count)?;
        let entry = Self::new(kind, epoch, Chain::new(Sequence(before), parent), records)?;
        if *entry.chain.digest() == digest { Ok(entry) } else { Err(EntryError::WrongDigest) }
    }
}

fn decode_records(mut rest: Bytes, count: usize) -> Result<Vec<Bytes>, EntryError> {
    if count > MOST_RECORDS {
        return Err(EntryError::Damaged);
    }
    let mut records = Vec::with_capacity(count);
    for _ in 0..count {
        let length = rest.try_get_u32_le().map_err(|_| EntryError::Damaged)?;
        let length = usize::try_from(length).ok().filter(|length| *length <= rest.len());
        records.push(rest.split_to(length.ok_or(EntryError::Damaged)?));
    }
    if rest.is_empty() { Ok(records) } else { Err(EntryError::Damaged) }
}

fn check(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let digest = blake3::hash(bytes);
    let mut check = [0; CHECK_BYTES];
    check.iter_mut().zip(digest.as_bytes()).for_each(|(to, from)| *to = *from);
    check
}

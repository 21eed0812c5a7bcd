//! A digest over all records up to a number, by which two logs are known to be the same.
//!
//! ```text
//! c(n) = BLAKE3( c(n-1) ‖ n as 8 bytes, little-endian ‖ BLAKE3(record n) )
//! ```
//!
//! It depends on the records and their numbers alone: not on the groups in which they were written, nor on the log's key or format.
//! So it can be computed over any log, also one that was written before there were chains, from any record on whose
//! digest is known. The files of the log do not hold it.

use bytes::Bytes;

use crate::Sequence;

/// The digest of all records up to one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chain {
    last: Sequence,
    digest: [u8; 32],
}

impl Chain {
    /// Of no records at all.
    pub const EMPTY: Self = Self { last: Sequence(0), digest: [0; 32] };

    /// As it was noted: the digest of all records up to `last`.
    #[must_use]
    pub const fn new(last: Sequence, digest: [u8; 32]) -> Self {
        Self { last, digest }
    }

    /// The last record in it.
    #[must_use]
    pub const fn last(&self) -> Sequence {
        self.last
    }

    /// The number of the record that comes next.
    #[must_use]
    pub const fn next(&self) -> Sequence {
        Sequence(self.last.0.saturating_add(1))
    }

    /// The digest of all records up to the last.
    #[must_use]
    pub const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// With one record more.
    #[must_use]
    pub fn with(&self, record: &[u8]) -> Self {
        let last = self.next();
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.digest);
        hasher.update(&last.0.to_le_bytes());
        hasher.update(blake3::hash(record).as_bytes());
        Self { last, digest: *hasher.finalize().as_bytes() }
    }

    /// With these records more.
    #[must_use]
    pub fn with_all(&self, records: &[Bytes]) -> Self {
        records.iter().fold(*self, |chain, record| chain.with(record))
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, ..] = self.digest;
        write!(formatter, "Chain({}: {a:02x}{b:02x}{c:02x}{d:02x}…)", self.last.0)
    }
}

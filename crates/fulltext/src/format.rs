//! The records of full-text indexes in the store.
//!
//! ```text
//! postings  DerivedScan   id, 'p', field (6), kind, term, 00, last address (4) → a block of postings
//! chunk     DerivedScan   id, 'd' | 'l' | 'x', number (4)                      → ids, lengths, dead of 1,024 addresses
//! column    DerivedScan   id, 'v', field (6), number (4)                       → sort keys of 1,024 addresses
//! address   DerivedPoint  id, 'i', document id                                 → address (4)
//! state     DerivedPoint  id                                                   → see state.rs
//! tail      DerivedChurn  id, first address (4)                                → a segment
//! ```
//!
//! `id`, numbers and addresses are big endian. `id` comes from the same source as those of other indexes, which lie in the same
//! families. A term has no byte 00, so that the order of keys is the order of terms, and within one, of addresses.

use scrinium_store::{Batch, Family};
use xxhash_rust::xxh3::xxh3_64;

use crate::FullTextError;

pub(crate) const POSTINGS: Family = Family::DerivedScan;
pub(crate) const CHUNKS: Family = Family::DerivedScan;
pub(crate) const POINTS: Family = Family::DerivedPoint;
pub(crate) const TAIL: Family = Family::DerivedChurn;

const ID_BYTES: usize = 8;
pub(crate) const FIELD_BYTES: usize = 6;
pub(crate) const ADDRESS_BYTES: usize = 4;

/// The longest term: longer ones are cut.
pub(crate) const TERM_BYTES_MAX: usize = 256;

/// Where a document lies in an index. They count down.
pub(crate) type Address = u32;
/// Behind the last address that is given out, the first of all.
pub(crate) const ADDRESSES_END: Address = Address::MAX << 10;

/// The addresses of documents in a row, of which a damaged record may have more than there are.
pub(crate) fn addresses_from(first: Address) -> impl Iterator<Item = Address> {
    (0..=Address::MAX - first).map(move |number| first + number)
}

/// A field, by a digest of its name: 47 bits, so that an index needs no list of its fields. Zero is that of the readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FieldId([u8; FIELD_BYTES]);

impl FieldId {
    /// Who may read a document.
    pub(crate) const READERS: Self = Self([0; FIELD_BYTES]);

    pub(crate) fn of(name: &str) -> Self {
        let [first, b, c, d, e, f, ..] = xxh3_64(name.as_bytes()).to_be_bytes();
        Self([first | 0x80, b, c, d, e, f])
    }

    pub(crate) fn bytes(self) -> [u8; FIELD_BYTES] {
        self.0
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// What a term is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TermKind {
    /// A word as written, folded. It has frequencies and places.
    Word,
    /// A stem. It has frequencies.
    Stem,
    /// A whole value.
    Exact,
    /// A document that is open to everybody, in the field of readers; one that has the field, in any other.
    Any,
    /// A number without its lowest bits.
    Number(u8),
}

impl TermKind {
    fn code(self) -> u8 {
        match self {
            Self::Word => 1,
            Self::Stem => 2,
            Self::Exact => 3,
            Self::Any => 4,
            Self::Number(shift) => 0x10 + shift,
        }
    }

    /// Whether its postings say how often, and where.
    pub(crate) fn details(code: u8) -> (bool, bool) {
        (code == 1 || code == 2, code == 1)
    }

    /// Adds the key of a term: field, kind, content.
    pub(crate) fn push_key(self, field: FieldId, content: &[u8], key: &mut Vec<u8>) {
        key.extend_from_slice(&field.bytes());
        key.push(self.code());
        let most = key.len() + TERM_BYTES_MAX;
        for byte in content {
            match byte {
                0 => key.extend_from_slice(&[1, 1]),
                1 => key.extend_from_slice(&[1, 2]),
                byte => key.push(*byte),
            }
        }
        key.truncate(most);
    }

    pub(crate) fn key(self, field: FieldId, content: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(FIELD_BYTES + 1 + content.len());
        self.push_key(field, content, &mut key);
        key
    }
}

/// The kind's code in a term's key.
pub(crate) fn kind_code(term: &[u8]) -> u8 {
    term.get(FIELD_BYTES).copied().unwrap_or_default()
}

/// The content in a term's key.
pub(crate) fn content(term: &[u8]) -> &[u8] {
    term.get(FIELD_BYTES + 1..).unwrap_or_default()
}

/// The keys of one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) id: u64,
}

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkKind {
    Ids,
    Lengths,
    Dead,
    Column(FieldId),
}

impl Keys {
    pub(crate) fn damaged(self, what: &'static str) -> FullTextError {
        FullTextError::Damaged { id: self.id, what }
    }

    fn begin(self, tag: u8, room: usize) -> Vec<u8> {
        let mut key = Vec::with_capacity(ID_BYTES + 1 + room);
        key.extend_from_slice(&self.id.to_be_bytes());
        key.push(tag);
        key
    }

    pub(crate) fn state(self) -> [u8; ID_BYTES] {
        self.id.to_be_bytes()
    }

    /// The beginning of the keys of a term's blocks.
    pub(crate) fn term(self, term: &[u8]) -> Vec<u8> {
        let mut key = self.term_beginning(term);
        key.push(0);
        key
    }

    /// Behind the keys of a term's blocks.
    pub(crate) fn term_end(self, term: &[u8]) -> Vec<u8> {
        let mut key = self.term_beginning(term);
        key.push(1);
        key
    }

    /// The beginning of the keys of all terms that begin so.
    pub(crate) fn term_beginning(self, term: &[u8]) -> Vec<u8> {
        let mut key = self.begin(b'p', term.len() + 1 + ADDRESS_BYTES);
        key.extend_from_slice(term);
        key
    }

    pub(crate) fn block(self, term: &[u8], last: Address) -> Vec<u8> {
        let mut key = self.term(term);
        key.extend_from_slice(&last.to_be_bytes());
        key
    }

    /// The term and the last address in the key of a block.
    pub(crate) fn read_block(self, key: &[u8]) -> Option<(&[u8], Address)> {
        let (rest, address) = key.split_last_chunk::<ADDRESS_BYTES>()?;
        let term = rest.get(ID_BYTES + 1..)?.strip_suffix(&[0])?;
        Some((term, Address::from_be_bytes(*address)))
    }

    pub(crate) fn chunk(self, kind: ChunkKind, number: u32) -> Vec<u8> {
        let mut key = match kind {
            ChunkKind::Ids => self.begin(b'd', ADDRESS_BYTES),
            ChunkKind::Lengths => self.begin(b'l', ADDRESS_BYTES),
            ChunkKind::Dead => self.begin(b'x', ADDRESS_BYTES),
            ChunkKind::Column(_) => self.begin(b'v', FIELD_BYTES + ADDRESS_BYTES),
        };
        if let ChunkKind::Column(field) = kind {
            key.extend_from_slice(&field.bytes());
        }
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    /// All keys with this tag.
    pub(crate) fn tagged(self, tag: u8) -> (Vec<u8>, Vec<u8>) {
        (self.begin(tag, 0), self.begin(tag + 1, 0))
    }

    pub(crate) fn address(self, document: &str) -> Vec<u8> {
        let mut key = self.begin(b'i', document.len());
        key.extend_from_slice(document.as_bytes());
        key
    }

    pub(crate) fn tail(self, first: Address) -> Vec<u8> {
        [&self.id.to_be_bytes()[..], &first.to_be_bytes()].concat()
    }

    /// All keys of the index in any family.
    pub(crate) fn all(self) -> ([u8; ID_BYTES], [u8; ID_BYTES]) {
        (self.id.to_be_bytes(), self.id.saturating_add(1).to_be_bytes())
    }

    pub(crate) fn remove_all(self, batch: &mut Batch) {
        let (from, to) = self.all();
        for family in [POINTS, POSTINGS, TAIL] {
            batch.delete_range(family, &from, &to);
        }
    }
}

/// Adds a number in as few bytes as it needs (unsigned LEB128).
pub(crate) fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or_default());
}

/// Adds bytes with their number before them.
pub(crate) fn push_part(bytes: &mut Vec<u8>, part: &[u8]) {
    push_number(bytes, part.len() as u64);
    bytes.extend_from_slice(part);
}

/// Reads what was written; every step answers `None` where the bytes say nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'b>(pub(crate) &'b [u8]);

impl<'b> Bytes<'b> {
    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Option<u32> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(u32::from(first));
        }
        let mut number = u64::from(first & 0x7f);
        for shift in [7, 14, 21, 28] {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(number).ok();
            }
        }
        None
    }

    pub(crate) fn size(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Bytes with their number before them.
    pub(crate) fn part(&mut self) -> Option<&'b [u8]> {
        let count = self.size()?;
        self.take(count)
    }

    pub(crate) fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (fixed, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*fixed)
    }
}

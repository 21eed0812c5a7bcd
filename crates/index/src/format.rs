//! The records of an index in the store.
//!
//! ```text
//! entry   DerivedScan   id, place (4), key  → per column 8 bytes (double, little endian), value
//! chunk   DerivedChurn  id, lower bound     → varints place, debris, count; per column 16 bytes (two doubles)
//! state   DerivedPoint  id                  → 03, columns, collation version (4), next place (4), reached (8),
//!                                             entries (8), numbers of the first and the next pack (8 each)
//! ```
//!
//! Records of chunks that were changed of late are in packs, of which [`recent`](crate::recent) tells.
//!
//! `id` is 8 bytes, big endian, as are places and the state's numbers. A chunk holds the entries from its lower bound
//! up to the next chunk's; the first one's is empty. An index without state does not exist, whatever else is there.
//!
//! The entries of a chunk lie in a *place* of their own. A removed entry leaves a mark in the store that cursors must
//! pass until a compaction clears it away, which may be long after; so when the marks of a place, its *debris*,
//! outnumber its entries, the entries move to a new place and nobody reads the old one again. That bounds
//! what a read can meet, however often an index has been turned over.

use scrinium_assertion::never;
use scrinium_store::{Batch, Family, KeyRange};

use crate::IndexError;
use crate::node::{ChunkPlace, Row};
use crate::sum::Sum;

pub(crate) const ENTRIES: Family = Family::DerivedScan;
pub(crate) const CHUNKS: Family = Family::DerivedChurn;
pub(crate) const STATE: Family = Family::DerivedPoint;

/// The longest key in bytes.
pub const KEY_BYTES_MAX: usize = 65_535;
/// The most sums that an entry may carry.
pub const COLUMNS_MAX: usize = 16;

const VERSION: u8 = 3;
const ID_BYTES: usize = 8;
const PLACE_BYTES: usize = 4;

/// Where an index lies and how its records are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) id: u64,
    pub(crate) columns: usize,
    /// The version of the collation that orders the keys.
    pub(crate) collation: u32,
}

/// The state record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexState {
    /// The first place that was never used.
    pub(crate) next_place: u32,
    pub(crate) reached: u64,
    pub(crate) entries: u64,
    /// The first pack, and the one behind the last.
    pub(crate) packs: (u64, u64),
}

/// The first key of all keys of index `id`, and the first behind them.
pub(crate) fn bounds(id: u64) -> ([u8; ID_BYTES], [u8; ID_BYTES]) {
    (id.to_be_bytes(), id.saturating_add(1).to_be_bytes())
}

/// Removes every record of index `id`.
pub(crate) fn remove_all(batch: &mut Batch, id: u64) {
    let (from, to) = bounds(id);
    // The state, and the packs behind it.
    batch.delete_range(STATE, &from, &to);
    batch.delete_range(ENTRIES, &from, &to);
    batch.delete_range(CHUNKS, &from, &to);
}

impl Layout {
    /// The store's key of a chunk record.
    pub(crate) fn chunk_key(&self, fence: &[u8]) -> Vec<u8> {
        [&self.id.to_be_bytes(), fence].concat()
    }

    /// The store's key of an entry.
    pub(crate) fn entry_key(&self, place: u32, key: &[u8]) -> Vec<u8> {
        let mut full = Vec::with_capacity(ID_BYTES + PLACE_BYTES + key.len());
        full.extend_from_slice(&self.id.to_be_bytes());
        full.extend_from_slice(&place.to_be_bytes());
        full.extend_from_slice(key);
        full
    }

    /// The key in the store's key of an entry.
    pub(crate) fn strip<'a>(&self, full: &'a [u8]) -> &'a [u8] {
        full.get(ID_BYTES + PLACE_BYTES..).unwrap_or_else(|| {
            never!(
                "the key of an entry begins with its index and its place",
                "{full:?} of index {}",
                self.id
            );
            &[]
        })
    }

    /// The store's keys of the entries of a place from `from` up to, not including, `to`; `None`: all from there on.
    pub(crate) fn entry_range(&self, place: u32, from: &[u8], to: Option<&[u8]>) -> (Vec<u8>, Vec<u8>) {
        let end = match (to, place.checked_add(1)) {
            (Some(to), _) => self.entry_key(place, to),
            (None, Some(next)) => self.entry_key(next, &[]),
            (None, None) => bounds(self.id).1.to_vec(),
        };
        (self.entry_key(place, from), end)
    }

    /// The store's keys of all entries, and of all chunk records.
    pub(crate) fn whole_range(&self) -> (Vec<u8>, Vec<u8>) {
        let (from, to) = bounds(self.id);
        (from.to_vec(), to.to_vec())
    }

    pub(crate) fn entry_value(&self, sums: &[f64], value: &[u8]) -> Vec<u8> {
        let mut full = Vec::with_capacity(self.columns * 8 + value.len());
        for column in 0..self.columns {
            let sum = Sum::of(sums.get(column).copied().unwrap_or_default());
            full.extend_from_slice(&sum.value().to_le_bytes());
        }
        full.extend_from_slice(value);
        full
    }

    /// The sums' bytes and the value of an entry.
    pub(crate) fn split_entry<'a>(&self, full: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), IndexError> {
        full.split_at_checked(self.columns * 8).ok_or_else(|| self.damaged("an entry is too short"))
    }

    pub(crate) fn chunk_value(&self, place: ChunkPlace, count: u64, sums: &[Sum]) -> Vec<u8> {
        let mut value = Vec::with_capacity(8 + self.columns * 16);
        for number in [place.number.into(), place.debris.into(), count] {
            write_varint(&mut value, number);
        }
        sums.iter().for_each(|sum| value.extend_from_slice(&sum.to_bytes()));
        value
    }

    pub(crate) fn read_chunk(&self, full_key: &[u8], mut value: &[u8]) -> Result<Row, IndexError> {
        let damaged = || self.damaged("a chunk record cannot be read");
        let mut number = || read_varint(&mut value).ok_or_else(damaged);
        let (place, debris, count) = (number()?, number()?, number()?);
        let place = ChunkPlace {
            number: u32::try_from(place).map_err(|_| damaged())?,
            debris: u32::try_from(debris).map_err(|_| damaged())?,
        };
        let (sums, rest) = value.as_chunks::<16>();
        if sums.len() != self.columns || !rest.is_empty() {
            return Err(damaged());
        }
        let sums = sums.iter().map(|bytes| Sum::from_bytes(*bytes)).collect();
        let fence = full_key.get(ID_BYTES..);
        let fence =
            fence.ok_or_else(|| never!("the key of a chunk begins with its index", "{full_key:?}"))?;
        Ok(Row { fence: fence.to_vec(), place, count, sums })
    }

    pub(crate) fn put_state(&self, batch: &mut Batch, state: IndexState) {
        let columns = u8::try_from(self.columns).unwrap_or_else(|_| {
            never!("an index has as many sums as it may have", "{} of index {}", self.columns, self.id);
            u8::MAX
        });
        let mut value = vec![VERSION, columns];
        value.extend_from_slice(&self.collation.to_be_bytes());
        value.extend_from_slice(&state.next_place.to_be_bytes());
        value.extend_from_slice(&state.reached.to_be_bytes());
        value.extend_from_slice(&state.entries.to_be_bytes());
        value.extend_from_slice(&state.packs.0.to_be_bytes());
        value.extend_from_slice(&state.packs.1.to_be_bytes());
        batch.put(STATE, &self.id.to_be_bytes(), &value);
    }

    pub(crate) fn read_state(&self, value: &[u8]) -> Result<IndexState, IndexError> {
        let id = self.id;
        let (&version, rest) = value.split_first().ok_or_else(|| self.damaged("its state is empty"))?;
        if version > VERSION {
            return Err(IndexError::NewerFormat { id, found: version, newest: VERSION });
        }
        if version < VERSION {
            return Err(IndexError::Outdated { id, what: "format" });
        }
        let short = || self.damaged("its state has the wrong length");
        let (&columns, rest) = rest.split_first().ok_or_else(short)?;
        let (collation, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        let (next_place, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        let ([reached, entries, first_pack, next_pack], []) = rest.as_chunks::<8>() else {
            return Err(short());
        };
        if usize::from(columns) != self.columns {
            return Err(IndexError::Outdated { id, what: "number of sums" });
        }
        if u32::from_be_bytes(*collation) != self.collation {
            return Err(IndexError::Outdated { id, what: "collation" });
        }
        Ok(IndexState {
            next_place: u32::from_be_bytes(*next_place),
            reached: u64::from_be_bytes(*reached),
            entries: u64::from_be_bytes(*entries),
            packs: (u64::from_be_bytes(*first_pack), u64::from_be_bytes(*next_pack)),
        })
    }

    pub(crate) fn damaged(&self, what: &'static str) -> IndexError {
        IndexError::Damaged { id: self.id, what }
    }
}

/// The change number in a stored state of this version, whatever index it is of.
pub(crate) fn reached_in(state: &[u8]) -> Option<u64> {
    let (&version, rest) = state.split_first()?;
    let reached = rest.get(9..)?.first_chunk::<8>()?;
    (version == VERSION).then_some(u64::from_be_bytes(*reached))
}

/// A range of the store's keys.
pub(crate) fn key_range(range: &(Vec<u8>, Vec<u8>)) -> KeyRange<'_> {
    KeyRange::new(&range.0, &range.1)
}

/// The sums that an entry carries.
pub(crate) fn read_sums(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes))
}

pub(crate) fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

pub(crate) fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let length = bytes.iter().take(9).position(|byte| byte & 0x80 == 0)? + 1;
    let (number, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(number.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f)))
}

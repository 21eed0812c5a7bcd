//! The records of an index in the store.
//!
//! ```text
//! entry   DerivedScan   id, key            → per column 8 bytes (double, little endian), value
//! chunk   DerivedChurn  id, lower bound    → varint count, per column 16 bytes (two doubles, little endian)
//! state   DerivedPoint  id                 → 01, columns, collation version (4), reached (8), entries (8)
//! ```
//!
//! `id` is 8 bytes, big endian, as are the state's numbers. A chunk holds the entries from its lower bound up to
//! the next chunk's; the first one's is empty. An index without state does not exist, whatever else is there.

use scrinium_document::collation::COLLATION_VERSION;
use scrinium_store::{Batch, Family, KeyRange};

use crate::IndexError;
use crate::node::Row;
use crate::sum::Sum;

pub(crate) const ENTRIES: Family = Family::DerivedScan;
pub(crate) const CHUNKS: Family = Family::DerivedChurn;
pub(crate) const STATE: Family = Family::DerivedPoint;

/// The longest key in bytes.
pub const KEY_BYTES_MAX: usize = 65_535;
/// The most sums that an entry may carry.
pub const COLUMNS_MAX: usize = 16;

const VERSION: u8 = 1;
const ID_BYTES: usize = 8;

/// Where an index lies and how its records are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) id: u64,
    pub(crate) columns: usize,
}

/// The state record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) reached: u64,
    pub(crate) entries: u64,
}

/// The first key of all keys of index `id`, and the first behind them.
pub(crate) fn bounds(id: u64) -> ([u8; ID_BYTES], [u8; ID_BYTES]) {
    (id.to_be_bytes(), id.saturating_add(1).to_be_bytes())
}

/// Removes every record of index `id`.
pub(crate) fn remove_all(batch: &mut Batch, id: u64) {
    let (from, to) = bounds(id);
    batch.delete(STATE, &from);
    batch.delete_range(ENTRIES, &from, &to);
    batch.delete_range(CHUNKS, &from, &to);
}

impl Layout {
    /// The store's key of an entry or chunk.
    pub(crate) fn key(&self, key: &[u8]) -> Vec<u8> {
        let mut full = Vec::with_capacity(ID_BYTES + key.len());
        full.extend_from_slice(&self.id.to_be_bytes());
        full.extend_from_slice(key);
        full
    }

    /// The key in a store's key.
    pub(crate) fn strip<'a>(&self, full: &'a [u8]) -> &'a [u8] {
        full.get(ID_BYTES..).unwrap_or_default()
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

    pub(crate) fn chunk_value(&self, count: u64, sums: &[Sum]) -> Vec<u8> {
        let mut value = Vec::with_capacity(3 + self.columns * 16);
        let mut rest = count;
        while rest >= 0x80 {
            value.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        value.push((rest & 0x7f) as u8);
        sums.iter().for_each(|sum| value.extend_from_slice(&sum.to_bytes()));
        value
    }

    pub(crate) fn read_chunk(&self, full_key: &[u8], value: &[u8]) -> Result<Row, IndexError> {
        let damaged = || self.damaged("a chunk record cannot be read");
        let count_bytes = value.iter().position(|byte| byte & 0x80 == 0).ok_or_else(damaged)? + 1;
        let (count, sums) =
            value.split_at_checked(count_bytes).filter(|_| count_bytes <= 9).ok_or_else(damaged)?;
        let count = count.iter().rev().fold(0, |count, byte| count << 7 | u64::from(byte & 0x7f));
        let (sums, rest) = sums.as_chunks::<16>();
        if sums.len() != self.columns || !rest.is_empty() {
            return Err(damaged());
        }
        let sums = sums.iter().map(|bytes| Sum::from_bytes(*bytes)).collect();
        Ok(Row { fence: self.strip(full_key).to_vec(), count, sums })
    }

    pub(crate) fn put_state(&self, batch: &mut Batch, state: State) {
        let mut value = vec![VERSION, u8::try_from(self.columns).unwrap_or(u8::MAX)];
        value.extend_from_slice(&COLLATION_VERSION.to_be_bytes());
        value.extend_from_slice(&state.reached.to_be_bytes());
        value.extend_from_slice(&state.entries.to_be_bytes());
        batch.put(STATE, &self.id.to_be_bytes(), &value);
    }

    pub(crate) fn read_state(&self, value: &[u8]) -> Result<State, IndexError> {
        let id = self.id;
        let (&version, rest) = value.split_first().ok_or_else(|| self.damaged("its state is empty"))?;
        if version > VERSION {
            return Err(IndexError::NewerFormat { id, found: version, newest: VERSION });
        }
        let (&columns, rest) = rest.split_first().ok_or_else(|| self.damaged("its state is cut short"))?;
        let (collation, rest) =
            rest.split_first_chunk::<4>().ok_or_else(|| self.damaged("its state is cut short"))?;
        let numbers = rest.as_chunks::<8>();
        let ([reached, entries], []) = numbers else { return Err(self.damaged("its state is cut short")) };
        if usize::from(columns) != self.columns {
            return Err(IndexError::Outdated { id, what: "number of sums" });
        }
        if u32::from_be_bytes(*collation) != COLLATION_VERSION {
            return Err(IndexError::Outdated { id, what: "collation" });
        }
        Ok(State { reached: u64::from_be_bytes(*reached), entries: u64::from_be_bytes(*entries) })
    }

    pub(crate) fn damaged(&self, what: &'static str) -> IndexError {
        IndexError::Damaged { id: self.id, what }
    }

    /// Keys of this index from `from` up to, not including, `to` (`None`: all from there on), as the store's.
    pub(crate) fn range(&self, from: &[u8], to: Option<&[u8]>) -> (Vec<u8>, Vec<u8>) {
        let end = to.map_or_else(|| bounds(self.id).1.to_vec(), |to| self.key(to));
        (self.key(from), end)
    }
}

/// A range of the store's keys.
pub(crate) fn key_range(range: &(Vec<u8>, Vec<u8>)) -> KeyRange<'_> {
    KeyRange::new(&range.0, &range.1)
}

/// The sums that an entry carries.
pub(crate) fn read_sums(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes))
}

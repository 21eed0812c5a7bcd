//! Which entries a document has in indexes, so that they can be taken out again when it changes.
//!
//! Indexes that are built together have a *home* together, and a document's lists in all of them are one record there:
//! one read and one write, whatever the number of views. What is built anew gets another home, so that nothing of
//! an earlier build is ever taken for its own.
//!
//! | family | key | value |
//! |---|---|---|
//! | DerivedPoint | number `FFFFFFFE` id home | for each index: its number, the list with its length before it |
//!
//! A zero byte in an id is followed by `FF`, and `00 00` ends it. Views with responses keep records of their own under
//! the index's number ([`hierarchy`](super::hierarchy)); homes and indexes are numbered together.

use std::collections::HashSet;

use parking_lot::{Mutex, MutexGuard};
use scrinium_store::{Batch, Direction, Family, KeyRange, ScanOptions, Store};

use super::registry::numbers_of;
use crate::error::Result;
use crate::wire::{Input, put_bytes, put_number};

/// In the place of an index's number.
const LISTS: u32 = u32::MAX - 1;
/// In the place of an index's number: what is behind the lists.
const BEHIND: u32 = u32::MAX;

/// Lists looked at by one step of clearing away.
const LISTS_AT_ONCE: usize = 10_000;

/// The lists of one document in the indexes of one home.
#[derive(Debug, Default)]
pub(super) struct Lists<'a> {
    lists: Vec<(u32, &'a [u8])>,
}

impl<'a> Lists<'a> {
    /// `None`: damaged.
    pub(super) fn decode(record: &'a [u8]) -> Option<Self> {
        let mut input = Input::new(record);
        let mut lists = Vec::new();
        while !input.rest().is_empty() {
            lists.push((u32::try_from(input.number()?).ok()?, input.bytes()?));
        }
        Some(Self { lists })
    }

    /// The document's list in an index.
    pub(super) fn of(&self, index: u32) -> Option<&'a [u8]> {
        self.lists.iter().find(|(number, _)| *number == index).map(|(_, list)| *list)
    }

    /// The record with new lists for some indexes, of which an empty one is none; `None` if nothing is left.
    pub(super) fn with(&self, new: &[(u32, Vec<u8>)]) -> Option<Vec<u8>> {
        let mut record = Vec::new();
        let is_new = |index: &u32| new.iter().any(|(number, _)| number == index);
        let kept = self.lists.iter().filter(|(index, _)| !is_new(index)).map(|(index, list)| (*index, *list));
        for (index, list) in kept.chain(new.iter().map(|(index, list)| (*index, list.as_slice()))) {
            put_list(&mut record, index, list);
        }
        Some(record).filter(|record| !record.is_empty())
    }
}

/// Appends a document's list in an index to a record, unless it is empty.
pub(super) fn put_list(record: &mut Vec<u8>, index: u32, list: &[u8]) {
    if !list.is_empty() {
        put_number(record, u64::from(index));
        put_bytes(record, list);
    }
}

/// The key of a document's lists in a home, which is given with the number of the database; or, with an index in the
/// place of a home, of its record in a view with responses.
pub(super) fn list_key(home: u64, id: &str) -> Vec<u8> {
    let (database, home) = numbers_of(home);
    let mut key = Vec::with_capacity(id.len() + 14);
    key.extend_from_slice(&database.to_be_bytes());
    key.extend_from_slice(&LISTS.to_be_bytes());
    write_ended(&mut key, id);
    key.extend_from_slice(&home.to_be_bytes());
    key
}

/// Appends an id so that its end can be told.
pub(super) fn write_ended(key: &mut Vec<u8>, id: &str) {
    for byte in id.bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(u8::MAX);
        }
    }
    key.extend_from_slice(&[0, 0]);
}

/// Removes all lists of a database whose home is not in `used`, but for homes from `next` on, which may be new.
pub(super) fn remove_unused(store: &Store, database: u32, used: &HashSet<u32>, next: u32) -> Result<()> {
    let mut from = [database.to_be_bytes(), LISTS.to_be_bytes()].concat();
    let to = [database.to_be_bytes(), BEHIND.to_be_bytes()].concat();
    let is_unused = |key: &[u8]| {
        let home = key.last_chunk().map(|home| u32::from_be_bytes(*home));
        home.is_some_and(|home| home < next && !used.contains(&home))
    };
    loop {
        let snapshot = store.snapshot();
        let range = KeyRange { from: &from, to: Some(&to) };
        let options = ScanOptions::long(Direction::Forward);
        let mut cursor = snapshot.cursor_with(Family::DerivedPoint, range, options);
        let (mut batch, mut last) = (Batch::new(), None);
        for _ in 0..LISTS_AT_ONCE {
            let Some((key, _)) = cursor.next()? else { break };
            if is_unused(key) {
                batch.delete(Family::DerivedPoint, key);
            }
            last = Some([key, &[0]].concat());
        }
        store.write_derived(batch)?;
        match last {
            Some(next) => from = next,
            None => return Ok(()),
        }
    }
}

/// Who changes lists of some homes holds these, so that two indexes of one home can be updated by two at once.
#[derive(Default)]
pub(super) struct Homes {
    locks: [Mutex<()>; 16],
}

impl Homes {
    /// Waits for others who change lists of these homes.
    pub(super) fn hold(&self, homes: impl Iterator<Item = u64>) -> Vec<MutexGuard<'_, ()>> {
        let count = self.locks.len() as u64;
        // In one order for all, so that nobody waits for somebody who waits for him.
        let places: std::collections::BTreeSet<u64> = homes.map(|home| home % count).collect();
        let lock = |place: u64| self.locks.get(usize::try_from(place).ok()?);
        places.into_iter().filter_map(lock).map(Mutex::lock).collect()
    }
}

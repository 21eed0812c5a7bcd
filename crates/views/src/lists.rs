//! Which entries a document has in indexes, so that they can be taken out again when it changes.
//!
//! Indexes that are built together have a *home* together, and a document's lists in all of them are one record there:
//! one read and one write, whatever the number of views. What is rebuilt gets another home, so that nothing of
//! an earlier build is ever taken for its own.
//!
//! | family | key | value |
//! |---|---|---|
//! | DerivedPoint | number `FFFFFFFE` home id | for each index: its number, the list with its length before it |
//!
//! An index that goes alone leaves its lists where others have theirs; [`gone`] says how they are freed.
//!
//! Views with responses keep records of their own under the index's number ([`hierarchy`](crate::hierarchy)); homes and
//! indexes are numbered together.

use std::collections::HashSet;

use parking_lot::{Mutex, MutexGuard};
use scrinium_contents::wire::{Input, put_bytes, put_number};
use scrinium_database::{DatabaseError, Result};
use scrinium_store::{Batch, Direction, Family, KeyRange, ScanOptions, Snapshot, Store};

use crate::gone;
use crate::registry::numbers_of;

/// In the place of an index's number.
const LISTS: u32 = u32::MAX - 1;

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

    /// The record with new lists for some indexes, of which an empty one does not count, and without those of indexes that are
    /// `gone`; `None` if nothing is left.
    pub(super) fn with(&self, new: &[(u32, Vec<u8>)], gone: &[u32]) -> Option<Vec<u8>> {
        let mut record = Vec::new();
        let is_kept = |index: &u32| !gone.contains(index) && !new.iter().any(|(number, _)| number == index);
        let kept = self.lists.iter().filter(|(index, _)| is_kept(index)).map(|(index, list)| (*index, *list));
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
    [&home_prefix(database, home)[..], id.as_bytes()].concat()
}

pub(super) fn home_prefix(database: u32, home: u32) -> [u8; 12] {
    let mut prefix = [0; 12];
    for (part, number) in prefix.chunks_exact_mut(4).zip([database, LISTS, home]) {
        part.copy_from_slice(&number.to_be_bytes());
    }
    prefix
}

/// About how many bytes of disk the lists of a home take.
pub(super) fn size_bytes(store: &Store, home: u64) -> u64 {
    let (database, home) = numbers_of(home);
    let (from, to) = (home_prefix(database, home), home_prefix(database, home.saturating_add(1)));
    store.admin().size_of(Family::DerivedPoint, &from, &to)
}

/// Calls `look` with each document's list in an index; false: the lists of a document cannot be read.
pub(super) fn each_list(
    snapshot: &Snapshot,
    home: u64,
    index: u32,
    mut look: impl FnMut(&str, &[u8]) -> Result<()>,
) -> Result<bool> {
    let (database, home) = numbers_of(home);
    let (from, to) = (home_prefix(database, home), home_prefix(database, home.saturating_add(1)));
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = snapshot.cursor_with(Family::DerivedPoint, range, ScanOptions::long(Direction::Forward));
    while let Some((key, record)) = cursor.next()? {
        let id = key.get(from.len()..).and_then(|id| std::str::from_utf8(id).ok());
        let Some((id, lists)) = id.zip(Lists::decode(record)) else { return Ok(false) };
        if let Some(list) = lists.of(index) {
            look(id, list)?;
        }
    }
    Ok(true)
}

/// Removes all lists of a database whose home is not in `used`, but for homes from `next` on, which may be new. Looks
/// at one key of each home.
pub(super) fn remove_unused(store: &Store, database: u32, used: &HashSet<u32>, next: u32) -> Result<()> {
    let _alone = gone::alone();
    let (snapshot, mut home, mut batch) = (store.snapshot(), 0, Batch::new());
    let end = home_prefix(database, next);
    loop {
        let from = home_prefix(database, home);
        let range = KeyRange { from: &from, to: Some(&end) };
        let mut cursor = snapshot.cursor(Family::DerivedPoint, range, Direction::Forward);
        let Some((key, _)) = cursor.next()? else { break };
        let found = key.get(8..).and_then(|rest| rest.first_chunk());
        let found = found.ok_or_else(|| DatabaseError::damaged("list of entries", "key"))?;
        let found = u32::from_be_bytes(*found);
        home = found.saturating_add(1);
        if !used.contains(&found) {
            let (from, to) = (home_prefix(database, found), home_prefix(database, home));
            batch.delete_range(Family::DerivedPoint, &from, &to);
            batch.delete(Family::DerivedPoint, &gone::key(database, found));
        }
    }
    Ok(store.derived().write(batch)?)
}

/// Who changes lists of some homes holds these, so that two indexes of one home can be updated by two at once.
#[derive(Default)]
pub(super) struct ListStorage {
    locks: [Mutex<()>; 16],
}

impl ListStorage {
    /// Waits for others who change lists of these homes.
    pub(super) fn hold(&self, homes: impl Iterator<Item = u64>) -> Vec<MutexGuard<'_, ()>> {
        let count = self.locks.len() as u64;
        // In one order for all, so that nobody waits for somebody who waits for him.
        let places: std::collections::BTreeSet<u64> = homes.map(|home| home % count).collect();
        let lock = |place: u64| self.locks.get(usize::try_from(place).ok()?);
        places.into_iter().filter_map(lock).map(Mutex::lock).collect()
    }
}

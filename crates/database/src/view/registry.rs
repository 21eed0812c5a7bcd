//! Which index belongs to which view, and where it lies.
//!
//! | family | key | value |
//! |---|---|---|
//! | DerivedPoint | number `FFFFFFFF` `v` identity | number of the index (4 bytes) |
//! | DerivedPoint | number index `o` id | the entries that the document has in the index |
//!
//! Entries and chunk records begin with the same eight bytes: the database's number and the index's.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use scrinium_index::{Index, IndexError};
use scrinium_store::{Batch, Direction, Family, KeyRange, Store};

use super::definition::Definition;
use crate::database::Database;
use crate::error::Result;
use crate::keys;

const NO_INDEX: u32 = u32::MAX;

/// The index of a view.
pub(crate) struct ViewIndex {
    pub(super) id: u64,
    pub(super) index: Index,
    /// Held by whoever brings it up to date.
    pub(super) updater: Mutex<()>,
    pub(super) updating: AtomicBool,
}

impl ViewIndex {
    /// The number of the last change that it has followed.
    pub(super) fn reached(&self) -> u64 {
        self.index.reached()
    }

    pub(super) fn len(&self) -> u64 {
        self.index.len()
    }

    pub(super) fn is_updating(&self) -> bool {
        self.updating.load(Ordering::Relaxed)
    }

    /// Bytes on disk, about, with the list of each document's entries.
    pub(super) fn size_bytes(&self, store: &Store) -> u64 {
        let (from, to) = (self.id.to_be_bytes(), (self.id + 1).to_be_bytes());
        [Family::DerivedPoint, Family::DerivedScan, Family::DerivedChurn]
            .iter()
            .map(|family| store.size_of(*family, &from, &to))
            .sum()
    }
}

fn index_id(database: u32, index: u32) -> u64 {
    u64::from(database) << 32 | u64::from(index)
}

fn identity_key(database: u32, identity: &[u8]) -> Vec<u8> {
    [&database.to_be_bytes()[..], &NO_INDEX.to_be_bytes(), b"v", identity].concat()
}

/// The key of the list of a document's entries in an index.
pub(super) fn entries_key(index: u64, id: &str) -> Vec<u8> {
    [&index.to_be_bytes()[..], b"o", id.as_bytes()].concat()
}

/// The index of a view: the one that is open, the one that is stored, or a new one.
pub(super) fn index(database: &Database, definition: &Definition) -> Result<Arc<ViewIndex>> {
    let mut indexes = database.views.indexes.lock();
    if let Some(index) = indexes.get(&definition.identity) {
        return Ok(Arc::clone(index));
    }
    let store = database.store();
    let key = identity_key(database.number(), &definition.identity);
    let stored = store.get(Family::DerivedPoint, &key)?;
    let number = match stored.and_then(|bytes| bytes.as_ref().try_into().ok()) {
        Some(bytes) => u32::from_be_bytes(bytes),
        None => new_index(database, &key)?,
    };
    let id = index_id(database.number(), number);
    let index = Arc::new(ViewIndex {
        id,
        index: open_index(store, id, definition.totals().count())?,
        updater: Mutex::new(()),
        updating: AtomicBool::new(false),
    });
    indexes.insert(definition.identity, Arc::clone(&index));
    Ok(index)
}

/// An index that cannot be used any more is begun anew.
fn open_index(store: &Store, id: u64, sums: usize) -> Result<Index> {
    match Index::open(store, id, sums) {
        Err(error @ (IndexError::Outdated { .. } | IndexError::Damaged { .. })) => {
            tracing::warn!(%error, "building the index of a view anew");
            drop_index(store, id)?;
            Ok(Index::open(store, id, sums)?)
        }
        opened => Ok(opened?),
    }
}

fn new_index(database: &Database, key: &[u8]) -> Result<u32> {
    let store = database.store();
    let number = stored_indexes(database)?.iter().map(|(_, number)| number + 1).max().unwrap_or(1);
    // A crash may have left entries of an index that was built but not yet noted.
    drop_index(store, index_id(database.number(), number))?;
    let mut batch = Batch::new();
    batch.put(Family::DerivedPoint, key, &number.to_be_bytes());
    store.write_derived(batch)?;
    Ok(number)
}

/// Identities and numbers of all indexes of a database.
fn stored_indexes(database: &Database) -> Result<Vec<(Vec<u8>, u32)>> {
    let from = identity_key(database.number(), &[]);
    let to = keys::successor(&from);
    let snapshot = database.store().snapshot();
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = snapshot.cursor(Family::DerivedPoint, range, Direction::Forward);
    let mut indexes = Vec::new();
    while let Some((key, value)) = cursor.next()? {
        if let (Some(identity), Ok(number)) = (key.get(from.len()..), value.try_into()) {
            indexes.push((identity.to_vec(), u32::from_be_bytes(number)));
        }
    }
    Ok(indexes)
}

fn drop_index(store: &Store, id: u64) -> Result<()> {
    Index::drop_index(store, id)?;
    drop_lists(store, id)
}

/// Removes the lists of all documents' entries in an index.
pub(super) fn drop_lists(store: &Store, id: u64) -> Result<()> {
    let from = entries_key(id, "");
    let mut batch = Batch::new();
    batch.delete_range(Family::DerivedPoint, &from, &keys::successor(&from));
    store.write_derived(batch)?;
    Ok(())
}

/// Removes the indexes of a database but those in `used`. Returns how many.
pub(super) fn drop_unused(database: &Database, used: &HashSet<[u8; 16]>) -> Result<usize> {
    let mut indexes = database.views.indexes.lock();
    let mut dropped = 0;
    for (identity, number) in stored_indexes(database)? {
        let Ok(identity) = <[u8; 16]>::try_from(identity) else { continue };
        // Somebody may be reading it still; the next call finds it again.
        let held = indexes.get(&identity).is_some_and(|index| Arc::strong_count(index) > 1);
        if used.contains(&identity) || held {
            continue;
        }
        indexes.remove(&identity);
        let mut batch = Batch::new();
        batch.delete(Family::DerivedPoint, &identity_key(database.number(), &identity));
        database.store().write_derived(batch)?;
        drop_index(database.store(), index_id(database.number(), number))?;
        dropped += 1;
    }
    Ok(dropped)
}

/// Removes everything derived from a database that was dropped.
pub(crate) fn drop_all(store: &Store, database: u32) -> Result<()> {
    let (from, to) = keys::database_range(database);
    let mut batch = Batch::new();
    for family in [Family::DerivedPoint, Family::DerivedScan, Family::DerivedChurn] {
        batch.delete_range(family, &from, &to);
    }
    store.write_derived(batch)?;
    Ok(())
}

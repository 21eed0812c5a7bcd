//! Which index belongs to which view, and where it lies.
//!
//! | family | key | value |
//! |---|---|---|
//! | DerivedPoint | number `FFFFFFFF` `v` identity | number of the index (4 bytes) |
//! | DerivedPoint | number `FFFFFFFF` `b` index | lists of the index may be left, though it is empty |
//! | DerivedPoint | number `FFFFFFFE` id index | the entries that the document has in the index |
//!
//! Entries and chunk records begin with the same eight bytes: the database's number and the index's. The lists of
//! one document lie side by side, since an update changes those of several views; a zero byte in an id is
//! followed by `FF`, and `00 00` ends it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_index::{Index, IndexError};
use scrinium_javascript::ScriptError;
use scrinium_store::{Batch, Direction, Family, KeyRange, ScanOptions, Snapshot, Store};

use super::definition::Definition;
use super::entries::decode_list;
use super::hierarchy::record::{Record, remove_links};
use super::info::Working;
use super::usage::{self, Usage};
use crate::collation::Collation;
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::keys;

const NO_INDEX: u32 = u32::MAX;
const LISTS: u32 = u32::MAX - 1;

/// Lists looked at by one step of clearing away.
const LISTS_AT_ONCE: usize = 10_000;

/// The index of a view.
pub(crate) struct ViewIndex {
    pub(super) id: u64,
    pub(super) identity: [u8; 16],
    /// What orders its keys.
    pub(super) collation: Collation,
    pub(crate) index: Index,
    pub(crate) usage: Usage,
    /// When it was last known to hold all there is.
    current: Mutex<Option<Instant>>,
    /// A reader wants it brought up to date, whatever its policy says.
    pub(super) wanted: AtomicBool,
    /// Held by whoever brings it up to date.
    pub(super) updater: Mutex<()>,
    pub(super) updating: AtomicBool,
    pub(super) working: Working,
    /// When all its entries were last known to hold, in seconds since 1970; of views that depend on the time.
    pub(super) evaluated_s: AtomicI64,
    pub(super) errors: Mutex<Errors>,
    /// Whether nothing lay behind what is everybody's when it had followed a change.
    pub(super) plain_at: Mutex<Option<(u64, bool)>>,
}

/// Documents that a view's functions failed on, since the server was started.
#[derive(Clone, Debug, Default)]
pub(super) struct Errors {
    pub(super) count: u64,
    pub(super) last: String,
}

impl ViewIndex {
    /// The number of the last change that it has followed.
    pub(super) fn reached(&self) -> u64 {
        self.index.reached()
    }

    /// It holds everything that there was at `moment`.
    pub(super) fn note_current(&self, moment: Instant) {
        let mut current = self.current.lock();
        *current = (*current).max(Some(moment));
    }

    /// How long ago it was last known to hold all there is; `None`: that is not known.
    pub(super) fn age(&self) -> Option<Duration> {
        self.current.lock().map(|current| current.elapsed())
    }

    pub(super) fn is_younger_than(&self, age: Duration) -> bool {
        self.age().is_some_and(|now| now < age)
    }

    /// A function failed on a document, or as a whole, which costs what it would have emitted.
    pub(super) fn note_error(&self, id: Option<&str>, error: &ScriptError) {
        let mut errors = self.errors.lock();
        errors.count += 1;
        errors.last = id.map_or_else(|| error.to_string(), |id| format!("document {id}: {error}"));
        // The first is worth a line, and then ever fewer, or one bad function would fill the log.
        if errors.count.is_power_of_two() {
            tracing::warn!(count = errors.count, last = errors.last, "a view's function failed");
        }
    }

    /// The keys of a document's entries.
    pub(super) fn entry_keys(
        &self,
        database: &Database,
        definition: &Definition,
        id: &str,
    ) -> Result<Vec<Vec<u8>>> {
        let stored = database.store().get(Family::DerivedPoint, &list_key(self.id, id))?;
        let Some(stored) = stored else { return Ok(Vec::new()) };
        let damaged = || DatabaseError::damaged("list of entries", id);
        let totals = definition.totals().count();
        if definition.responses.is_some() {
            return Ok(Record::decode(totals, &stored).ok_or_else(damaged)?.keys());
        }
        let entries = decode_list(id, totals, &stored).ok_or_else(damaged)?;
        Ok(entries.into_iter().map(|(key, _)| key).collect())
    }

    pub(super) fn is_updating(&self) -> bool {
        self.updating.load(Ordering::Relaxed)
    }

    /// Bytes on disk, about, without the lists, which all indexes of a database share.
    pub(super) fn size_bytes(&self, store: &Store) -> u64 {
        let (from, to) = (self.id.to_be_bytes(), (self.id + 1).to_be_bytes());
        [Family::DerivedScan, Family::DerivedChurn]
            .iter()
            .map(|family| store.size_of(*family, &from, &to))
            .sum()
    }
}

fn index_id(database: u32, index: u32) -> u64 {
    u64::from(database) << 32 | u64::from(index)
}

pub(super) fn numbers_of(id: u64) -> (u32, u32) {
    let [a, b, c, d, rest @ ..] = id.to_be_bytes();
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes(rest))
}

fn identity_key(database: u32, identity: &[u8]) -> Vec<u8> {
    [&database.to_be_bytes()[..], &NO_INDEX.to_be_bytes(), b"v", identity].concat()
}

fn leftover_key(id: u64) -> Vec<u8> {
    let (database, index) = numbers_of(id);
    [&database.to_be_bytes()[..], &NO_INDEX.to_be_bytes(), b"b", &index.to_be_bytes()].concat()
}

/// The key of the list of a document's entries in an index.
pub(super) fn list_key(index: u64, id: &str) -> Vec<u8> {
    let (database, index) = numbers_of(index);
    let mut key = Vec::with_capacity(id.len() + 14);
    key.extend_from_slice(&database.to_be_bytes());
    key.extend_from_slice(&LISTS.to_be_bytes());
    write_ended(&mut key, id);
    key.extend_from_slice(&index.to_be_bytes());
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

/// What an index belongs to: what the view is, and what orders its keys.
pub(super) fn stored_identity(definition: &[u8; 16], collation: Collation) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(definition);
    hasher.update(&collation.version.to_be_bytes());
    let mut identity = [0; 16];
    hasher.finalize_xof().fill(&mut identity);
    identity
}

/// The index of a view: the one that is open, the one that is stored, or a new one.
pub(super) fn index(database: &Database, definition: &Definition) -> Result<Arc<ViewIndex>> {
    let collation = database.common.collation;
    let identity = stored_identity(&definition.identity, collation);
    let mut indexes = database.views.indexes.lock();
    if let Some(index) = indexes.get(&identity) {
        return Ok(Arc::clone(index));
    }
    let number = match stored_number(database, &identity)? {
        Some(number) => number,
        None => new_index(database, &identity_key(database.number(), &identity))?,
    };
    let index = Arc::new(open_view(database, definition, collation, number)?);
    indexes.insert(identity, Arc::clone(&index));
    Ok(index)
}

/// The index of a view with keys of a collation, if there is one.
pub(super) fn stored_index(
    database: &Database,
    definition: &Definition,
    collation: Collation,
) -> Result<Option<Arc<ViewIndex>>> {
    let identity = stored_identity(&definition.identity, collation);
    let mut indexes = database.views.indexes.lock();
    if let Some(index) = indexes.get(&identity) {
        return Ok(Some(Arc::clone(index)));
    }
    let Some(number) = stored_number(database, &identity)? else { return Ok(None) };
    let index = Arc::new(open_view(database, definition, collation, number)?);
    indexes.insert(identity, Arc::clone(&index));
    Ok(Some(index))
}

fn stored_number(database: &Database, identity: &[u8; 16]) -> Result<Option<u32>> {
    let stored = database.store().get(Family::DerivedPoint, &identity_key(database.number(), identity))?;
    Ok(stored.and_then(|bytes| bytes.as_ref().try_into().ok()).map(u32::from_be_bytes))
}

fn open_view(
    database: &Database,
    definition: &Definition,
    collation: Collation,
    number: u32,
) -> Result<ViewIndex> {
    let (store, id) = (database.store(), index_id(database.number(), number));
    let identity = stored_identity(&definition.identity, collation);
    Ok(ViewIndex {
        id,
        identity,
        collation,
        index: open_index(store, id, definition.totals().count(), collation.version)?,
        usage: Usage::open(store, database.number(), &identity, &definition.name)?,
        current: Mutex::new(None),
        wanted: AtomicBool::new(false),
        updater: Mutex::new(()),
        updating: AtomicBool::new(false),
        working: Working::default(),
        evaluated_s: AtomicI64::new(0),
        errors: Mutex::default(),
        plain_at: Mutex::default(),
    })
}

/// An index that cannot be used any more is begun anew, as is one that a build has not completed.
fn open_index(store: &Store, id: u64, sums: usize, collation: u32) -> Result<Index> {
    if store.contains(Family::DerivedPoint, &leftover_key(id))? {
        Index::drop_index(store, id)?;
    }
    match Index::open_collated(store, id, sums, collation) {
        Err(error @ (IndexError::Outdated { .. } | IndexError::Damaged { .. })) => {
            tracing::warn!(%error, "building the index of a view anew");
            empty_index(store, id)?;
            Ok(Index::open_collated(store, id, sums, collation)?)
        }
        opened => Ok(opened?),
    }
}

fn new_index(database: &Database, key: &[u8]) -> Result<u32> {
    let store = database.store();
    let number = stored_indexes(database)?.iter().map(|(_, number)| number + 1).max().unwrap_or(1);
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

/// Empties an index; its lists go when it is built again or forgotten.
fn empty_index(store: &Store, id: u64) -> Result<()> {
    note_leftovers(store, id)?;
    Ok(Index::drop_index(store, id)?)
}

/// Notes that lists of an index that is empty, or not yet complete, may lie in the store.
pub(super) fn note_leftovers(store: &Store, id: u64) -> Result<()> {
    let mut batch = Batch::new();
    batch.put(Family::DerivedPoint, &leftover_key(id), &[]);
    Ok(store.write_derived(batch)?)
}

/// The index and its lists are complete.
pub(super) fn forget_leftovers(store: &Store, id: u64) -> Result<()> {
    let mut batch = Batch::new();
    batch.delete(Family::DerivedPoint, &leftover_key(id));
    Ok(store.write_derived(batch)?)
}

/// Removes the lists that a build left which did not come to its end; a look at one key if there was none.
pub(super) fn clear_leftovers(store: &Store, id: u64) -> Result<()> {
    if store.contains(Family::DerivedPoint, &leftover_key(id))? {
        remove_lists(store, id)?;
        forget_leftovers(store, id)?;
    }
    Ok(())
}

/// Goes through the lists of all indexes of the database, since they lie side by side.
pub(super) fn remove_lists(store: &Store, id: u64) -> Result<()> {
    remove_links(store, id)?;
    let (database, index) = numbers_of(id);
    let mut from = [database.to_be_bytes(), LISTS.to_be_bytes()].concat();
    let to = [database.to_be_bytes(), NO_INDEX.to_be_bytes()].concat();
    loop {
        let snapshot = store.snapshot();
        let range = KeyRange { from: &from, to: Some(&to) };
        let options = ScanOptions::long(Direction::Forward);
        let mut cursor = snapshot.cursor_with(Family::DerivedPoint, range, options);
        let (mut batch, mut last) = (Batch::new(), None);
        for _ in 0..LISTS_AT_ONCE {
            let Some((key, _)) = cursor.next()? else { break };
            if key.ends_with(&index.to_be_bytes()) {
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

/// Calls `look` with each document's list of entries in an index, and with `None` for one whose document cannot be told.
pub(super) fn lists_of(
    snapshot: &Snapshot,
    id: u64,
    mut look: impl FnMut(Option<&str>, &[u8]) -> Result<()>,
) -> Result<()> {
    let (database, index) = numbers_of(id);
    let from = [database.to_be_bytes(), LISTS.to_be_bytes()].concat();
    let to = [database.to_be_bytes(), NO_INDEX.to_be_bytes()].concat();
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor =
        snapshot.cursor_with(Family::DerivedPoint, range, ScanOptions::long(Direction::Forward));
    while let Some((key, list)) = cursor.next()? {
        let Some(ended) = key.strip_suffix(&index.to_be_bytes()) else { continue };
        let id = ended.get(from.len()..).and_then(read_ended);
        look(id.as_deref(), list)?;
    }
    Ok(())
}

/// The id that [`write_ended`] wrote.
fn read_ended(ended: &[u8]) -> Option<String> {
    let mut bytes = ended.strip_suffix(&[0, 0])?.iter();
    let mut id = Vec::with_capacity(ended.len());
    while let Some(byte) = bytes.next() {
        id.push(*byte);
        if *byte == 0 && bytes.next() != Some(&u8::MAX) {
            return None;
        }
    }
    String::from_utf8(id).ok()
}

/// Removes the indexes of a database but those in `used`. Returns how many.
pub(super) fn drop_unused(database: &Database, used: &HashSet<[u8; 16]>) -> Result<usize> {
    let mut indexes = database.views.indexes.lock();
    let mut dropped = 0;
    for (identity, _) in stored_indexes(database)? {
        let Ok(identity) = <[u8; 16]>::try_from(identity) else { continue };
        // Somebody may be reading it still; the next call finds it again.
        let held = indexes.get(&identity).is_some_and(|index| Arc::strong_count(index) > 1);
        if used.contains(&identity) || held {
            continue;
        }
        indexes.remove(&identity);
        dropped += usize::from(drop_stored(database, &identity)?);
    }
    let mut batch = Batch::new();
    for identity in usage::noted_identities(database)? {
        if !used.contains(&identity) && !indexes.contains_key(&identity) {
            usage::forget(&mut batch, database.number(), &identity);
        }
    }
    drop(indexes);
    if !batch.is_empty() {
        database.store().write_derived(batch)?;
    }
    Ok(dropped)
}

/// Removes an index that is not open, if there is such a one.
pub(super) fn drop_stored(database: &Database, identity: &[u8; 16]) -> Result<bool> {
    let Some(number) = stored_number(database, identity)? else { return Ok(false) };
    let (store, id) = (database.store(), index_id(database.number(), number));
    empty_index(store, id)?;
    remove_lists(store, id)?;
    let mut batch = Batch::new();
    batch.delete(Family::DerivedPoint, &identity_key(database.number(), identity));
    batch.delete(Family::DerivedPoint, &leftover_key(id));
    store.write_derived(batch)?;
    Ok(true)
}

/// Removes everything derived from a database that was dropped.
pub(crate) fn drop_all(store: &Store, database: u32) -> Result<()> {
    let (from, to) = keys::database_range(database);
    let mut batch = Batch::new();
    for family in [Family::DerivedPoint, Family::DerivedScan, Family::DerivedChurn] {
        batch.delete_range(family, &from, &to);
    }
    let (from, to) = usage::usage_range(database);
    batch.delete_range(Family::DerivedPoint, &from, &to);
    store.write_derived(batch)?;
    Ok(())
}

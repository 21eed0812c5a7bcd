//! Which index belongs to which view, and where it lies.
//!
//! | family | key | value |
//! |---|---|---|
//! | DerivedPoint | number `FFFFFFFF` `v` identity | numbers of the index and of its lists' home (4 bytes each) |
//! | DerivedPoint | number `FFFFFFFF` `b` index | lists of the index may be left, though it is empty |
//!
//! Entries and chunk records begin with the same eight bytes: the database's number and the index's. Of lists and
//! their homes [`lists`] tells.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_clock::Clock;
use scrinium_database::{Collation, DatabaseError, Result, keys};
use scrinium_index::{Index, IndexError};
use scrinium_store::{Batch, Direction, Family, KeyRange, Store};

use crate::definition::Definition;
use crate::entries::decode_list;
use crate::error::OrDatabaseError as _;
use crate::failures::{self, Failures};
use crate::gone;
use crate::group::View;
use crate::hierarchy::record::{Record, remove_links};
use crate::info::Working;
use crate::lists::{self, Lists, list_key};
use crate::open::OpenDatabase;
use crate::usage::{self, Usage};

pub(crate) const NO_INDEX: u32 = u32::MAX;

/// The index of a view.
pub(crate) struct ViewIndex {
    pub(super) id: u64,
    /// Where its lists are; changed by who holds `updater`.
    home: AtomicU32,
    pub(super) identity: [u8; 16],
    /// What orders its keys.
    pub(super) collation: Collation,
    pub(crate) index: Index,
    pub(crate) usage: Usage,
    clock: Clock,
    /// When it was last known to hold all there is, by `clock`.
    current: Mutex<Option<Instant>>,
    /// A reader wants it brought up to date, whatever its policy says.
    pub(super) wanted: AtomicBool,
    /// Held by the one who brings it up to date.
    pub(super) updater: Mutex<()>,
    pub(super) updating: AtomicBool,
    pub(super) working: Working,
    /// When all its entries were last known to hold, in seconds since 1970; of views that depend on the time.
    pub(super) evaluated_s: AtomicI64,
    pub(super) failures: Failures,
    /// Whether nothing lay behind what is everybody's when it had followed a change.
    pub(super) plain_at: Mutex<Option<(u64, bool)>>,
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
        self.current.lock().map(|current| self.clock.elapsed(current))
    }

    pub(super) fn is_younger_than(&self, age: Duration) -> bool {
        self.age().is_some_and(|now| now < age)
    }

    /// The keys of a document's entries.
    pub(super) fn entry_keys(
        &self,
        database: &OpenDatabase,
        definition: &Definition,
        id: &str,
    ) -> Result<Vec<Vec<u8>>> {
        let damaged = || DatabaseError::damaged("list of entries", id);
        let (store, totals) = (database.store(), definition.totals().count());
        if definition.responses.is_some() {
            let stored = store.get(Family::DerivedPoint, &list_key(self.id, id))?;
            let Some(stored) = stored else { return Ok(Vec::new()) };
            return Ok(Record::decode(totals, &stored).ok_or_else(damaged)?.keys());
        }
        let stored = store.get(Family::DerivedPoint, &list_key(self.home(), id))?;
        let Some(stored) = stored else { return Ok(Vec::new()) };
        let lists = Lists::decode(&stored).ok_or_else(damaged)?;
        let Some(list) = lists.of(self.number()) else { return Ok(Vec::new()) };
        let entries = decode_list(id, totals, list).ok_or_else(damaged)?;
        Ok(entries.into_iter().map(|(key, _)| key).collect())
    }

    /// Its number among those of the database.
    pub(super) fn number(&self) -> u32 {
        numbers_of(self.id).1
    }

    /// Where its lists, or in a view with responses its records, are, with the number of the database.
    pub(super) fn home_of(&self, definition: &Definition) -> u64 {
        if definition.responses.is_some() { self.id } else { self.home() }
    }

    /// Where its lists are, with the number of the database.
    pub(super) fn home(&self) -> u64 {
        index_id(numbers_of(self.id).0, self.home.load(Ordering::Acquire))
    }

    pub(super) fn is_updating(&self) -> bool {
        self.updating.load(Ordering::Relaxed)
    }

    /// Bytes on disk, about, without the lists, which all indexes of a database share.
    pub(super) fn size_bytes(&self, store: &Store) -> u64 {
        let (from, to) = (self.id.to_be_bytes(), (self.id + 1).to_be_bytes());
        [Family::DerivedScan, Family::DerivedChurn]
            .iter()
            .map(|family| store.admin().size_of(*family, &from, &to))
            .sum()
    }
}

pub(crate) fn index_id(database: u32, index: u32) -> u64 {
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

/// What an index belongs to: what the view is, and what orders its keys.
pub(super) fn stored_identity(definition: &[u8; 16], collation: Collation) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(definition);
    hasher.update(&collation.version.to_be_bytes());
    hasher.update(&collation.read_back.to_be_bytes());
    let mut identity = [0; 16];
    hasher.finalize_xof().fill(&mut identity);
    identity
}

/// The index of a view: the one that is open, the one that is stored, or a new one.
pub(super) fn index(database: &OpenDatabase, definition: &Definition) -> Result<Arc<ViewIndex>> {
    let collation = database.context.collation;
    let identity = stored_identity(&definition.identity, collation);
    let mut indexes = database.views.indexes.lock();
    if let Some(index) = indexes.get(&identity) {
        return Ok(Arc::clone(index));
    }
    let numbers = match stored_numbers(database, &identity)? {
        Some(numbers) => numbers,
        None => new_index(database, &identity)?,
    };
    let index = Arc::new(open_view(database, definition, collation, numbers)?);
    indexes.insert(identity, Arc::clone(&index));
    Ok(index)
}

/// The index of a view with keys of a collation, if there is one.
pub(super) fn stored_index(
    database: &OpenDatabase,
    definition: &Definition,
    collation: Collation,
) -> Result<Option<Arc<ViewIndex>>> {
    let identity = stored_identity(&definition.identity, collation);
    let mut indexes = database.views.indexes.lock();
    if let Some(index) = indexes.get(&identity) {
        return Ok(Some(Arc::clone(index)));
    }
    let Some(numbers) = stored_numbers(database, &identity)? else { return Ok(None) };
    let index = Arc::new(open_view(database, definition, collation, numbers)?);
    indexes.insert(identity, Arc::clone(&index));
    Ok(Some(index))
}

/// The number of an index, and that of its lists' home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) index: u32,
    home: u32,
}

impl Numbers {
    /// Indexes of earlier versions, which no view asks for any more, had lists under their own number.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (index, home) = match bytes.as_chunks::<4>() {
            ([index], []) => (index, index),
            ([index, home], []) => (index, home),
            _ => return None,
        };
        Some(Self { index: u32::from_be_bytes(*index), home: u32::from_be_bytes(*home) })
    }

    fn put(self, batch: &mut Batch, database: u32, identity: &[u8; 16]) {
        let value = [self.index.to_be_bytes(), self.home.to_be_bytes()].concat();
        batch.put(Family::DerivedPoint, &identity_key(database, identity), &value);
    }
}

fn stored_numbers(database: &OpenDatabase, identity: &[u8; 16]) -> Result<Option<Numbers>> {
    let stored = database.store().get(Family::DerivedPoint, &identity_key(database.number(), identity))?;
    Ok(stored.and_then(|bytes| Numbers::decode(&bytes)))
}

fn open_view(
    database: &OpenDatabase,
    definition: &Definition,
    collation: Collation,
    numbers: Numbers,
) -> Result<ViewIndex> {
    let (store, id) = (database.store(), index_id(database.number(), numbers.index));
    let identity = stored_identity(&definition.identity, collation);
    Ok(ViewIndex {
        id,
        home: AtomicU32::new(numbers.home),
        identity,
        collation,
        index: open_index(store, id, definition.totals().count(), collation.version)?,
        usage: Usage::open(database, &identity, &definition.name)?,
        clock: store.clock().clone(),
        current: Mutex::new(None),
        wanted: AtomicBool::new(false),
        updater: Mutex::new(()),
        updating: AtomicBool::new(false),
        working: Working::default(),
        evaluated_s: AtomicI64::new(0),
        failures: Failures::open(database, &identity)?,
        plain_at: Mutex::default(),
    })
}

/// An index that cannot be used any more is started over, as is one that a build has not completed.
fn open_index(store: &Store, id: u64, sums: usize, collation: u32) -> Result<Index> {
    if store.contains(Family::DerivedPoint, &leftover_key(id))? {
        Index::drop_index(store, id).or_database_error()?;
    }
    match Index::open(store, id, sums, collation) {
        Err(error @ (IndexError::Outdated { .. } | IndexError::Damaged { .. })) => {
            tracing::warn!(%error, "rebuilding the index of a view");
            empty_index(store, id)?;
            Index::open(store, id, sums, collation).or_database_error()
        }
        opened => opened.or_database_error(),
    }
}

fn new_index(database: &OpenDatabase, identity: &[u8; 16]) -> Result<Numbers> {
    let number = next_number(database.store(), database.number())?;
    let numbers = Numbers { index: number, home: number };
    let mut batch = Batch::new();
    numbers.put(&mut batch, database.number(), identity);
    batch.delete(Family::DerivedPoint, &gone::key(database.number(), number));
    database.store().derived().write(batch)?;
    Ok(numbers)
}

/// Gives indexes, which are to be built together and are held by their updaters, a home where no list is.
pub(super) fn assign_home(database: &OpenDatabase, views: &[&View]) -> Result<()> {
    let _indexes = database.views.indexes.lock();
    let all = stored_indexes(database.store(), database.number())?;
    let home = behind_all(&all);
    let mut batch = Batch::new();
    for view in views {
        let numbers = Numbers { index: view.index.number(), home };
        numbers.put(&mut batch, database.number(), &view.index.identity);
    }
    batch.delete(Family::DerivedPoint, &gone::key(database.number(), home));
    database.store().derived().write(batch)?;
    let numbers = |index: u32| views.iter().any(|view| view.index.number() == index);
    note_gone(database.store(), database.number(), &all, |of| !numbers(of.index))?;
    views.iter().for_each(|view| view.index.home.store(home, Ordering::Release));
    Ok(())
}

/// A number that neither an index nor a home has.
fn next_number(store: &Store, database: u32) -> Result<u32> {
    Ok(behind_all(&stored_indexes(store, database)?))
}

fn behind_all(indexes: &[(Vec<u8>, Numbers)]) -> u32 {
    indexes.iter().flat_map(|(_, numbers)| [numbers.index, numbers.home]).max().unwrap_or(0) + 1
}

/// Identities and numbers of all indexes of a database.
pub(super) fn stored_indexes(store: &Store, database: u32) -> Result<Vec<(Vec<u8>, Numbers)>> {
    let from = identity_key(database, &[]);
    let to = keys::successor(&from);
    let snapshot = store.snapshot();
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = snapshot.cursor(Family::DerivedPoint, range, Direction::Forward);
    let mut indexes = Vec::new();
    while let Some((key, value)) = cursor.next()? {
        if let Some((identity, numbers)) = key.get(from.len()..).zip(Numbers::decode(value)) {
            indexes.push((identity.to_vec(), numbers));
        }
    }
    Ok(indexes)
}

/// Empties an index; its lists go when it is built again or forgotten.
fn empty_index(store: &Store, id: u64) -> Result<()> {
    note_leftovers(store, id)?;
    Index::drop_index(store, id).or_database_error()
}

/// Notes that lists of an index that is empty, or not yet complete, may lie in the store.
pub(super) fn note_leftovers(store: &Store, id: u64) -> Result<()> {
    let mut batch = Batch::new();
    batch.put(Family::DerivedPoint, &leftover_key(id), &[]);
    Ok(store.derived().write(batch)?)
}

/// The index and its lists are complete.
pub(super) fn forget_leftovers(store: &Store, id: u64) -> Result<()> {
    let mut batch = Batch::new();
    batch.delete(Family::DerivedPoint, &leftover_key(id));
    Ok(store.derived().write(batch)?)
}

/// Whether there is a view of this identity whose index is yet to be built.
pub(super) fn awaits_build(database: &OpenDatabase, identity: &[u8; 16]) -> Result<bool> {
    let Some(numbers) = stored_numbers(database, identity)? else { return Ok(false) };
    let (store, id) = (database.store(), index_id(database.number(), numbers.index));
    let is_begun = store.contains(Family::DerivedPoint, &leftover_key(id))?;
    Ok(is_begun || Index::stored_reached(store, id).or_database_error()?.is_none_or(|reached| reached == 0))
}

/// Removes the lists that a build left which did not come to its end; a look at one key if there was none.
pub(super) fn clear_leftovers(store: &Store, id: u64) -> Result<()> {
    if store.contains(Family::DerivedPoint, &leftover_key(id))? {
        remove_lists(store, id)?;
        forget_leftovers(store, id)?;
    }
    Ok(())
}

/// Removes what is next to an index that is empty, with all lists that no other one uses.
pub(super) fn remove_lists(store: &Store, id: u64) -> Result<()> {
    remove_links(store, id)?;
    let (database, index) = numbers_of(id);
    remove_lists_but(store, database, |numbers| numbers.index != index)
}

/// Removes the lists in homes that the indexes of a database had before they were rebuilt.
pub(super) fn remove_former_lists(store: &Store, database: u32) -> Result<()> {
    remove_lists_but(store, database, |_| true)
}

/// Notes that all indexes but those that are kept leave their homes, where others have theirs there.
fn note_gone(
    store: &Store,
    database: u32,
    all: &[(Vec<u8>, Numbers)],
    is_kept: impl Fn(&Numbers) -> bool,
) -> Result<()> {
    let (kept, gone): (Vec<&Numbers>, Vec<&Numbers>) =
        all.iter().map(|(_, numbers)| numbers).partition(|numbers| is_kept(numbers));
    let is_shared = |home: u32| kept.iter().any(|numbers| numbers.home == home);
    let gone: Vec<(u32, u32)> = gone
        .iter()
        .filter(|numbers| is_shared(numbers.home))
        .map(|numbers| (numbers.home, numbers.index))
        .collect();
    gone::note(store, database, &gone)
}

/// Removes all lists of a database but those of indexes that are kept.
fn remove_lists_but(store: &Store, database: u32, is_kept: impl Fn(&Numbers) -> bool) -> Result<()> {
    let all = stored_indexes(store, database)?;
    note_gone(store, database, &all, &is_kept)?;
    let kept = all.iter().map(|(_, numbers)| numbers).filter(|numbers| is_kept(numbers));
    let used = kept.flat_map(|numbers| [numbers.index, numbers.home]).collect();
    lists::remove_unused(store, database, &used, behind_all(&all))
}

/// Removes the indexes of a database but those in `used`. Returns how many.
pub(super) fn drop_unused(database: &OpenDatabase, used: &HashSet<[u8; 16]>) -> Result<usize> {
    let mut indexes = database.views.indexes.lock();
    let mut dropped = 0;
    for (identity, _) in stored_indexes(database.store(), database.number())? {
        // A note that is damaged names no index that could be dropped.
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
        database.store().derived().write(batch)?;
    }
    Ok(dropped)
}

/// Removes an index that is not open, if there is such a one.
pub(super) fn drop_stored(database: &OpenDatabase, identity: &[u8; 16]) -> Result<bool> {
    let Some(numbers) = stored_numbers(database, identity)? else { return Ok(false) };
    let (store, id) = (database.store(), index_id(database.number(), numbers.index));
    empty_index(store, id)?;
    remove_lists(store, id)?;
    let mut batch = Batch::new();
    batch.delete(Family::DerivedPoint, &identity_key(database.number(), identity));
    batch.delete(Family::DerivedPoint, &leftover_key(id));
    failures::forget(&mut batch, database.number(), identity);
    store.derived().write(batch)?;
    Ok(true)
}

/// Removes everything derived from a database that was dropped.
///
/// # Errors
/// What the store reports.
pub fn drop_all(store: &Store, database: u32) -> Result<()> {
    let (from, to) = keys::database_range(database);
    let mut batch = Batch::new();
    for family in keys::DERIVED_FAMILIES {
        batch.delete_range(family, &from, &to);
    }
    let (from, to) = usage::usage_range(database);
    batch.delete_range(Family::DerivedPoint, &from, &to);
    store.derived().write(batch)?;
    Ok(())
}

//! When indexes were last read, and discarding those that nobody reads.
//!
//! | family | key | value |
//! |---|---|---|
//! | DerivedPoint | 0 `FFFFFFFF` `r` number identity | when it was last read, in seconds since 1970 (8 bytes); 1 once it was discarded for that, else 0 (1 byte); the view's name |
//!
//! The records of all databases lie together, so that the search for what can be discarded reads one range, however
//! many databases there are. A record is written at most once an hour.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::{RwLock, RwLockReadGuard};
use scrinium_database::header::Header;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_store::{Batch, Direction, Family, KeyRange, Store};

use crate::counts::ViewCounts;
use crate::error::OrDatabaseError as _;
use crate::open::OpenDatabase;
use crate::registry::{self, ViewIndex};

const NO_INDEX: u32 = u32::MAX;

/// How far a stored time may lie behind.
const NOTED_EVERY_S: i64 = 3600;

/// Records looked at by one step of the search.
const RECORDS_AT_ONCE: usize = 1000;

/// When an index was last read.
pub(crate) struct Usage {
    store: Store,
    key: Vec<u8>,
    name: String,
    /// Held for reading from before an index is brought up to date until its entries are read from a snapshot, and
    /// for writing while it is emptied.
    reading: RwLock<()>,
    read_s: AtomicI64,
    /// What the record says; 0: there is none.
    noted_s: AtomicI64,
    discarded: AtomicBool,
    counts: Arc<ViewCounts>,
}

/// A record.
struct Noted {
    read_s: i64,
    discarded: bool,
    name: String,
}

impl Usage {
    pub(super) fn open(database: &OpenDatabase, identity: &[u8; 16], name: &str) -> Result<Self> {
        let (store, key) = (database.store(), usage_key(database.number(), identity));
        let noted = store.get(Family::DerivedPoint, &key)?;
        let noted = noted.and_then(|value| Noted::decode(&value));
        let noted_s = noted.as_ref().map_or(0, |noted| noted.read_s);
        Ok(Self {
            store: store.clone(),
            key,
            name: name.to_owned(),
            reading: RwLock::new(()),
            read_s: AtomicI64::new(noted_s),
            noted_s: AtomicI64::new(noted_s),
            discarded: AtomicBool::new(noted.is_some_and(|noted| noted.discarded)),
            counts: Arc::clone(&database.server.view_counts),
        })
    }

    /// Somebody reads the index. It is not discarded as long as what this returns is held.
    pub(crate) fn begin(&self) -> RwLockReadGuard<'_, ()> {
        let reading = self.reading.read();
        self.note_read();
        reading
    }

    fn now_s(&self) -> i64 {
        self.store.clock().timestamp().as_second()
    }

    fn note_read(&self) {
        let now_s = self.now_s();
        self.read_s.store(now_s, Ordering::Relaxed);
        let noted_s = self.noted_s.load(Ordering::Relaxed);
        if now_s - noted_s < NOTED_EVERY_S && !self.is_discarded() {
            return;
        }
        // Of several who read it at this moment, one writes.
        let is_first =
            self.noted_s.compare_exchange(noted_s, now_s, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_first {
            if self.is_discarded() {
                self.counts.read_again();
            }
            self.note(now_s, false);
        }
    }

    /// The index is built, and from now on waits to be read.
    pub(super) fn note_built(&self) {
        self.note(self.now_s(), false);
    }

    /// Whether nobody read it for so long that it was discarded, and nobody has read it since.
    pub(crate) fn is_discarded(&self) -> bool {
        self.discarded.load(Ordering::Relaxed)
    }

    /// In seconds since 1970; 0 if it is not known.
    pub(super) fn last_read_s(&self) -> i64 {
        self.read_s.load(Ordering::Relaxed)
    }

    /// Whether somebody read it within this time.
    pub(super) fn was_read_within(&self, time: Duration) -> bool {
        let ago_s = self.now_s().saturating_sub(self.read_s.load(Ordering::Relaxed));
        ago_s <= i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
    }

    /// A time that is not stored costs nothing but that the index may be discarded sooner.
    fn note(&self, read_s: i64, discarded: bool) {
        self.noted_s.store(read_s, Ordering::Relaxed);
        self.discarded.store(discarded, Ordering::Relaxed);
        let mut batch = Batch::new();
        let noted = Noted { read_s, discarded, name: self.name.clone() };
        batch.put(Family::DerivedPoint, &self.key, &noted.encode());
        if let Err(error) = self.store.derived().write(batch) {
            tracing::warn!(view = self.name, %error, "the time when a view was read could not be recorded");
        }
    }
}

impl Noted {
    fn encode(&self) -> Vec<u8> {
        [&self.read_s.to_be_bytes()[..], &[u8::from(self.discarded)], self.name.as_bytes()].concat()
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let (read_s, rest) = value.split_first_chunk::<8>()?;
        let (discarded, name) = rest.split_first()?;
        Some(Self {
            read_s: i64::from_be_bytes(*read_s),
            discarded: *discarded != 0,
            name: String::from_utf8_lossy(name).into_owned(),
        })
    }
}

fn usage_key(database: u32, identity: &[u8]) -> Vec<u8> {
    [&0u32.to_be_bytes()[..], &NO_INDEX.to_be_bytes(), b"r", &database.to_be_bytes(), identity].concat()
}

/// The records of a database.
pub(super) fn usage_range(database: u32) -> (Vec<u8>, Vec<u8>) {
    let from = usage_key(database, &[]);
    let to = keys::successor(&from);
    (from, to)
}

/// The indexes of a database that have a record.
pub(super) fn noted_identities(database: &OpenDatabase) -> Result<Vec<[u8; 16]>> {
    let (from, to) = usage_range(database.number());
    let snapshot = database.store().snapshot();
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = snapshot.cursor(Family::DerivedPoint, range, Direction::Forward);
    let mut identities = Vec::new();
    while let Some((key, _)) = cursor.next()? {
        identities.extend(key.get(from.len()..).and_then(|identity| <[u8; 16]>::try_from(identity).ok()));
    }
    Ok(identities)
}

/// Adds to `batch` that nothing is known of an index.
pub(super) fn forget(batch: &mut Batch, database: u32, identity: &[u8; 16]) {
    batch.delete(Family::DerivedPoint, &usage_key(database, identity));
}

impl ViewIndex {
    /// Empties the index, if nobody has read it since `until_s` and nobody is about to. It is built again by the next
    /// read.
    fn discard(&self, store: &Store, until_s: i64) -> Result<bool> {
        let Some(nobody_reads) = self.usage.reading.try_write() else { return Ok(false) };
        let Some(updating) = self.updater.try_lock() else { return Ok(false) };
        if self.usage.read_s.load(Ordering::Relaxed) > until_s {
            return Ok(false);
        }
        let is_built = self.reached() > 0;
        if is_built {
            registry::note_leftovers(store, self.id)?;
            let nothing = std::iter::empty::<Result<(Vec<u8>, Vec<u8>, Vec<f64>)>>();
            self.index.rebuild(nothing, 0).or_database_error()?;
        }
        self.usage.note(self.usage.noted_s.load(Ordering::Relaxed), true);
        drop(nobody_reads);
        if is_built {
            registry::clear_leftovers(store, self.id)?;
        }
        drop(updating);
        Ok(is_built)
    }
}

/// Finds a database by its name.
pub type FindDatabase<'a> = dyn Fn(&str) -> Result<OpenDatabase> + 'a;

/// Discards the indexes in a store that nobody has read since `until_s`; `open` finds a database by its name. Returns how many
/// there were.
///
/// # Errors
/// What the store reports; the rest is done by the next call.
pub fn discard_unused(store: &Store, until_s: i64, open: &FindDatabase<'_>) -> Result<usize> {
    let mut discarded = 0;
    let mut from = usage_range(0).0;
    while let Some(step) = UsageSearchStep::read(store, &from, until_s)? {
        for (database, identity) in step.unused {
            discarded += usize::from(discard(store, database, &identity, (until_s, open))?);
        }
        from = step.next;
    }
    Ok(discarded)
}

fn discard(
    store: &Store,
    number: u32,
    identity: &[u8; 16],
    (until_s, open): (i64, &FindDatabase<'_>),
) -> Result<bool> {
    let header = store.get(Family::Meta, &keys::header(number))?;
    let database = match header.and_then(|header| Header::decode(&header)) {
        Some(header) => open(&header.name),
        None => Err(DatabaseError::no_database()),
    };
    match database {
        Ok(database) if database.number() == number => database.discard_index(identity, until_s),
        // Its records go with the rest of it.
        Ok(_) | Err(DatabaseError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

impl OpenDatabase {
    pub(super) fn discard_index(&self, identity: &[u8; 16], until_s: i64) -> Result<bool> {
        let indexes = self.views.indexes.lock();
        let discarded = match indexes.get(identity).cloned() {
            Some(index) => {
                drop(indexes);
                index.discard(self.store(), until_s)?
            }
            None => {
                // Under the lock, so that nobody opens it meanwhile.
                let discarded = registry::drop_stored(self, identity)?;
                note_discarded(self.store(), self.number(), identity)?;
                drop(indexes);
                discarded
            }
        };
        if discarded {
            let noted = self.store().get(Family::DerivedPoint, &usage_key(self.number(), identity))?;
            let view = noted.and_then(|value| Noted::decode(&value)).map(|noted| noted.name);
            tracing::info!(database = self.name(), view, "discarded the index of a view that nobody reads");
        }
        Ok(discarded)
    }
}

fn note_discarded(store: &Store, database: u32, identity: &[u8; 16]) -> Result<()> {
    let key = usage_key(database, identity);
    let Some(noted) = store.get(Family::DerivedPoint, &key)?.and_then(|value| Noted::decode(&value)) else {
        return Ok(());
    };
    let mut batch = Batch::new();
    batch.put(Family::DerivedPoint, &key, &Noted { discarded: true, ..noted }.encode());
    Ok(store.derived().write(batch)?)
}

/// What a step of the search has found.
struct UsageSearchStep {
    /// Database and identity.
    unused: Vec<(u32, [u8; 16])>,
    next: Vec<u8>,
}

impl UsageSearchStep {
    /// `None` at the end.
    fn read(store: &Store, from: &[u8], until_s: i64) -> Result<Option<Self>> {
        let to = usage_range(u32::MAX).1;
        let prefix_bytes = usage_key(0, &[]).len() - 4;
        let snapshot = store.snapshot();
        let range = KeyRange { from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::DerivedPoint, range, Direction::Forward);
        let (mut unused, mut next) = (Vec::new(), None);
        for _ in 0..RECORDS_AT_ONCE {
            let Some((key, value)) = cursor.next()? else { break };
            let index = key.get(prefix_bytes..).and_then(|key| key.split_first_chunk::<4>());
            let identity = index.and_then(|(_, identity)| <[u8; 16]>::try_from(identity).ok());
            if let (Some((database, _)), Some(identity), Some(noted)) =
                (index, identity, Noted::decode(value))
                && !noted.discarded
                && noted.read_s <= until_s
            {
                unused.push((u32::from_be_bytes(*database), identity));
            }
            next = Some([key, &[0]].concat());
        }
        Ok(next.map(|next| Self { unused, next }))
    }
}

//! Compacting databases while everybody continues: what is dead leaves the disk, and then the files are merged slice by
//! slice.
//!
//! A database is a range of keys in files that it shares with others, so compacting it is merging its ranges: superseded
//! and deleted records fall away, and nothing that a reader finds changes. Before that goes what only stands for
//! something that is gone: tombstones of documents and memberships that are old enough ([`purge`]), and contents that
//! nobody refers to. One database is compacted at a time; a task shows how far it is and can be paused and stopped
//! between two slices.

mod earlier;
mod figures;
mod limit;
mod purge;
mod stem;
#[cfg(test)]
mod tests;
mod work;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use scrinium_catalog::{Databases, NameRange};
use scrinium_database::{DatabaseError, DatabaseSizes, Result};
use scrinium_statistics::Task;
use scrinium_store::Store;
use scrinium_views::OpenDatabase;

use work::{Halt, Work};

pub use purge::Purged;

/// Smaller amounts of garbage are not worth the work, whatever share of a database they are.
const LEAST_GARBAGE_BYTES: u64 = 16 << 20;

/// How thoroughly a database is compacted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactStyle {
    /// Files that hold garbage are merged (the seeds' `-b`).
    #[default]
    Reclaim,
    /// And files of contents are rewritten until hardly any garbage is left in them (`-B`).
    Shrink,
    /// And all other files of the database are rewritten, garbage or not (`-c`).
    Copy,
}

/// What is to be compacted, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactOrder {
    /// How thoroughly.
    pub style: CompactStyle,
    /// Discard the indexes of views and folders, which are built again when they are read (`-D`).
    pub discard_views: bool,
    /// Leave a database alone that has less garbage, in percent of its file size (`-S`).
    pub least_garbage_percent: u64,
    /// Take what is written out of the system's file cache (`-Q`). Where files are written past it, nothing is in it.
    pub bypass_file_cache: bool,
    /// Only the indexes of this design document.
    pub design: Option<String>,
    /// Stop then, if it is not done.
    pub until: Option<Instant>,
}

/// What holds for all compactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactOptions {
    /// Tombstones are purged after this time; zero: never.
    pub purge_after: Duration,
}

/// What a compaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// The sizes before.
    pub before: DatabaseSizes,
    /// The sizes after.
    pub after: DatabaseSizes,
    /// What was purged.
    pub purged: Purged,
    /// Indexes that were removed or discarded.
    pub indexes: usize,
    /// Nothing was done: there was too little garbage.
    pub skipped: bool,
    /// Somebody stopped it; what was done by then is done.
    pub stopped: bool,
}

/// What all compactions of a server share.
#[derive(Default)]
pub(crate) struct Compactions {
    options: RwLock<CompactOptions>,
    /// Held by the one that works.
    turn: Mutex<()>,
    /// Databases that are being compacted or wait for it.
    under_way: Mutex<HashSet<u32>>,
    counts: Counts,
}

/// What compactions have done since the server was started.
#[derive(Default)]
struct Counts {
    completed: AtomicU64,
    stopped: AtomicU64,
    failed: AtomicU64,
    slices: AtomicU64,
    reclaimed_bytes: AtomicU64,
    purged_documents: AtomicU64,
    purged_memberships: AtomicU64,
    last_ms: AtomicU64,
    /// Of all databases, as they were looked at last.
    garbage_bytes: AtomicU64,
    file_bytes: AtomicU64,
}

impl Counts {
    fn note(&self, compacted: &Result<Compacted>, took: Duration) {
        let add = |count: &AtomicU64, more: u64| {
            count.fetch_add(more, Ordering::Relaxed);
        };
        match compacted {
            Ok(done) if done.skipped => return,
            Ok(done) => {
                add(if done.stopped { &self.stopped } else { &self.completed }, 1);
                add(&self.reclaimed_bytes, done.before.file_bytes.saturating_sub(done.after.file_bytes));
            }
            Err(_) => add(&self.failed, 1),
        }
        self.last_ms.store(scrinium_clock::milliseconds(took), Ordering::Relaxed);
    }
}

/// A database is noted as under way until this is dropped.
struct UnderWay<'a> {
    compactions: &'a Compactions,
    number: u32,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.compactions.under_way.lock().remove(&self.number);
    }
}

/// Compacts and purges the databases of a server. Those of one server share a turn, and what they count.
#[derive(Clone)]
pub struct Compactor {
    databases: Databases,
    compactions: Arc<Compactions>,
}

impl Compactor {
    /// What compacts these databases.
    #[must_use]
    pub fn of(databases: &Databases) -> Self {
        Self { databases: databases.clone(), compactions: databases.service() }
    }

    fn subject<'a>(&'a self, database: &'a OpenDatabase) -> Subject<'a> {
        Subject { database, compactions: &self.compactions }
    }

    /// Sets what holds for all compactions from now on, also for one that is under way.
    pub fn set_options(&self, options: CompactOptions) {
        *self.compactions.options.write() = options;
    }

    /// Compacts a database, after those that wait already; nothing is done if it is one of them. Takes as long as it
    /// takes; the task `database_compaction` (`view_compaction` for indexes alone) shows how far it is.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], [`DatabaseError::Full`] with what it needs if the disk has no room for it, and what
    /// the store reports. Nothing is lost then.
    pub fn compact(&self, name: &str, order: &CompactOrder) -> Result<Compacted> {
        let database = self.databases.get(name)?;
        let compactions = &*self.compactions;
        let number = database.number();
        if !compactions.under_way.lock().insert(number) {
            return Ok(Compacted { skipped: true, ..Compacted::default() });
        }
        let _under_way = UnderWay { compactions, number };
        let _turn = compactions.turn.lock();
        let begun = Instant::now();
        let compacted = self.compact_now(&database, order);
        compactions.counts.note(&compacted, begun.elapsed());
        compacted
    }

    fn compact_now(&self, database: &OpenDatabase, order: &CompactOrder) -> Result<Compacted> {
        let before = database.sizes()?;
        if before.garbage_percent() < order.least_garbage_percent {
            return Ok(Compacted { before, after: before, skipped: true, ..Compacted::default() });
        }
        let kind = if order.design.is_some() { "view_compaction" } else { "database_compaction" };
        let tasks = database.context.tasks().cloned().unwrap_or_default();
        let task = tasks.start(kind, Some(database.name()), None);
        task.allow_pause();
        if let Some(design) = &order.design {
            task.detail("design_document", design.as_str());
        }
        let mut compacted = Compacted { before, after: before, ..Compacted::default() };
        let mut work = Work::new(self, database.store(), &task, order);
        let done = match &order.design {
            Some(design) => work.compact_indexes(database, design),
            None => work.compact(database, &mut compacted),
        };
        let done = match done {
            Err(Halt::Stopped) => {
                compacted.stopped = true;
                Ok(())
            }
            Err(Halt::Failed(error)) => Err(error),
            Ok(()) => Ok(()),
        };
        end(task, &done, compacted.stopped);
        done?;
        compacted.after = database.sizes()?;
        report(database.name(), &compacted);
        Ok(compacted)
    }

    /// Writes files of contents again until hardly any garbage is left in them, after the databases that wait already; the
    /// task `contents_compaction` shows how far it is, one for each volume. Of the order, `bypass_file_cache` and `until`
    /// count. Whether it came to its end, and was not stopped.
    ///
    /// # Errors
    /// As [`Compactor::compact`].
    pub fn compact_contents(&self, order: &CompactOrder) -> Result<bool> {
        for context in self.databases.contexts() {
            if !self.compact_contents_of(&context.store, order)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn compact_contents_of(&self, store: &Store, order: &CompactOrder) -> Result<bool> {
        let _turn = self.compactions.turn.lock();
        let tasks = self.databases.first().tasks().cloned().unwrap_or_default();
        let task = tasks.start("contents_compaction", None, None);
        task.allow_pause();
        let done = match Work::new(self, store, &task, order).compact_all_contents() {
            Err(Halt::Failed(error)) => Err(error),
            Err(Halt::Stopped) => Ok(false),
            Ok(()) => Ok(true),
        };
        end(task, &done.clone().map(drop), matches!(done, Ok(false)));
        done
    }

    /// How much of the files of contents is garbage, in percent; 0 where it is too little to be worth the work.
    #[must_use]
    pub fn contents_garbage_percent(&self) -> u64 {
        let contents =
            self.databases.contexts().into_iter().map(|context| context.store.admin().blob_figures());
        let (garbage_bytes, file_bytes) = contents.fold((0, 0), |(garbage, file), contents| {
            (garbage + contents.garbage_bytes, file + contents.file_bytes)
        });
        if garbage_bytes < LEAST_GARBAGE_BYTES {
            return 0;
        }
        garbage_bytes.saturating_mul(100).checked_div(file_bytes).unwrap_or(0)
    }

    /// Whether a database is being compacted, or waits for it.
    #[must_use]
    pub fn is_compacting(&self, number: u32) -> bool {
        self.compactions.under_way.lock().contains(&number)
    }

    /// Databases of which at least `percent` of the files is garbage, and enough to be worth the work, the most garbage
    /// first; and adds up the garbage of all databases for the statistics. Looks at a few records of each database.
    ///
    /// # Errors
    /// What the store reports.
    pub fn with_garbage(&self, percent: u64) -> Result<Vec<String>> {
        let (mut found, mut garbage_bytes, mut file_bytes) = (Vec::new(), 0, 0);
        for name in self.databases.names(&NameRange::default())? {
            let sizes = match self.databases.get(&name).and_then(|database| database.sizes()) {
                Ok(sizes) => sizes,
                // It is gone, or damaged, or on a volume that is.
                Err(DatabaseError::NotFound { .. } | DatabaseError::Unavailable { .. }) => continue,
                Err(error) => return Err(error),
            };
            garbage_bytes += sizes.garbage_bytes();
            file_bytes += sizes.file_bytes;
            if sizes.garbage_percent() >= percent && sizes.garbage_bytes() >= LEAST_GARBAGE_BYTES {
                found.push((sizes.garbage_bytes(), name));
            }
        }
        let counts = &self.compactions.counts;
        counts.garbage_bytes.store(garbage_bytes, Ordering::Relaxed);
        counts.file_bytes.store(file_bytes, Ordering::Relaxed);
        found.sort_unstable_by(|left, right| right.cmp(left));
        Ok(found.into_iter().map(|(_, name)| name).collect())
    }

    /// Purges the tombstones of a database that are older than `after`, whatever is set for others
    /// ([`CompactOptions::purge_after`]), as far as all replicas that are known and all indexes have seen them. Does not
    /// wait for a compaction that is under way: then nothing is purged, and [`Purged::held_by`] says so.
    ///
    /// # Errors
    /// As [`Compactor::purge_tombstones`].
    pub fn purge_tombstones_after(&self, name: &str, after: Duration) -> Result<Purged> {
        let database = self.databases.get(name)?;
        let Some(_turn) = self.compactions.turn.try_lock() else {
            let held_by = Some("a compaction that is under way".to_owned());
            return Ok(Purged { held_by, ..Purged::default() });
        };
        purged_or_stopped(self.subject(&database).purge_tombstones(after, &mut || Ok(())))
    }

    /// Purges the tombstones of a database that are old enough, as its compaction would; costs what has become old since
    /// it was done last.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn purge_tombstones(&self, name: &str) -> Result<Purged> {
        let database = self.databases.get(name)?;
        let compactions = &*self.compactions;
        let _turn = compactions.turn.lock();
        let after = compactions.options.read().purge_after;
        purged_or_stopped(self.subject(&database).purge_tombstones(after, &mut || Ok(())))
    }
}

fn purged_or_stopped(purged: std::result::Result<Purged, Halt>) -> Result<Purged> {
    match purged {
        Ok(purged) => Ok(purged),
        Err(Halt::Failed(error)) => Err(error),
        Err(Halt::Stopped) => Ok(Purged::default()),
    }
}

fn end(task: Task, done: &Result<()>, stopped: bool) {
    match done {
        Ok(()) if stopped => drop(task),
        Ok(()) => task.finish(),
        Err(error) => task.fail(error.to_string()),
    }
}

fn report(database: &str, compacted: &Compacted) {
    let Compacted { before, after, purged, indexes, stopped, .. } = compacted;
    tracing::info!(
        database,
        file_bytes_before = before.file_bytes,
        file_bytes = after.file_bytes,
        purged_documents = purged.documents,
        purged_memberships = purged.memberships,
        indexes,
        stopped,
        "a database was compacted"
    );
    if let Some(held_by) = &purged.held_by {
        tracing::info!(database, held_by, "older tombstones are kept until this has seen them");
    }
}

/// A database that is being compacted, or whose tombstones are purged.
pub(crate) struct Subject<'a> {
    database: &'a OpenDatabase,
    compactions: &'a Compactions,
}

impl std::ops::Deref for Subject<'_> {
    type Target = OpenDatabase;

    fn deref(&self) -> &OpenDatabase {
        self.database
    }
}

impl Subject<'_> {
    fn note_compacted(&self, written_bytes: u64) -> Result<()> {
        let (finished_ms, share_ppm) = (self.now_ms(), self.measured_share(written_bytes)?);
        self.change_record(|record| {
            record.finished_ms = finished_ms;
            record.share_ppm = share_ppm.unwrap_or(record.share_ppm);
        })
    }
}

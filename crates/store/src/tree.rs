//! The tree: RocksDB with its own log off, and the position of the transaction log that it has reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rocksdb::{
    ColumnFamily, ColumnFamilyDescriptor, DB, ErrorKind, FlushOptions, Options, ReadOptions, ReadTier,
    WriteBatch, WriteOptions, properties,
};
use scrinium_log::Sequence;
use self_cell::self_cell;

use crate::account::Accounts;
use crate::batch::operations_of;
use crate::budget::Budget;
use crate::damage::{self, DamagedFile};
use crate::folder::Folder;
use crate::touched::Watched;
use crate::{Family, Operation, StoreError, StoreOptions, manifest, tuning};

/// The store's own family; every family above it belongs to the store's users.
pub(crate) const OWN_FAMILY: &str = rocksdb::DEFAULT_COLUMN_FAMILY_NAME;

/// How long a write waits on a disk that is nearly full while RocksDB takes none, and how often it looks.
const WAIT_WHILE_STOPPED: Duration = Duration::from_secs(5);
const LOOK_WHILE_STOPPED: Duration = Duration::from_millis(20);

/// How often a flush looks whether its memtables are in files, and after how many looks it asks RocksDB again.
const LOOK_WHILE_FLUSHING: Duration = Duration::from_micros(500);
const LOOKS_BEFORE_ANOTHER_FLUSH: u32 = 200;

/// This many flushes of RocksDB, each waited for to its end and a tenth of a second more, bring into files what was
/// written before, or it is an error.
const MOST_FLUSHES: u32 = 600;

/// Holds the number of the last log record applied, eight bytes, big-endian.
pub(crate) const POSITION_KEY: &[u8] = b"log-position";

/// Holds the number of the last flush that was asked for, as the position.
const FLUSH_KEY: &[u8] = b"flush";

self_cell!(
    struct OpenedCell {
        owner: DB,
        #[covariant]
        dependent: Families,
    }
);

/// The handle of each family, looked up once.
struct Families<'db> {
    own: &'db ColumnFamily,
    meta: &'db ColumnFamily,
    point: &'db ColumnFamily,
    scan: &'db ColumnFamily,
    churn: &'db ColumnFamily,
    blob: &'db ColumnFamily,
    derived_point: &'db ColumnFamily,
    derived_scan: &'db ColumnFamily,
    derived_churn: &'db ColumnFamily,
}

impl<'db> Families<'db> {
    fn of(db: &'db DB, folder: &Folder) -> Result<Self, StoreError> {
        let named = |name: &str| {
            db.cf_handle(name).ok_or_else(|| folder.corrupt(format!("the family {name} is missing")))
        };
        let handle = |family: Family| named(family.name());
        Ok(Self {
            own: named(OWN_FAMILY)?,
            meta: handle(Family::Meta)?,
            point: handle(Family::Point)?,
            scan: handle(Family::Scan)?,
            churn: handle(Family::Churn)?,
            blob: handle(Family::Blob)?,
            derived_point: handle(Family::DerivedPoint)?,
            derived_scan: handle(Family::DerivedScan)?,
            derived_churn: handle(Family::DerivedChurn)?,
        })
    }

    fn get(&self, family: Family) -> &'db ColumnFamily {
        match family {
            Family::Meta => self.meta,
            Family::Point => self.point,
            Family::Scan => self.scan,
            Family::Churn => self.churn,
            Family::Blob => self.blob,
            Family::DerivedPoint => self.derived_point,
            Family::DerivedScan => self.derived_scan,
            Family::DerivedChurn => self.derived_churn,
        }
    }
}

/// What goes past the system's cache of files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Direct {
    pub(crate) writes: bool,
    pub(crate) reads: bool,
}

impl Direct {
    /// Nothing does.
    pub(crate) const NOTHING: Self = Self { writes: false, reads: false };

    /// As the options say, where the file system takes it.
    pub(crate) fn of(options: &StoreOptions, folder: &Folder) -> Self {
        let above_bytes = options.direct_reads_above_bytes;
        let reads = options.direct_reads || (above_bytes > 0 && folder.tree_bytes() > above_bytes);
        let taken = (options.direct_io || reads) && folder.takes_direct_io();
        if reads && !taken {
            tracing::warn!(dir = %folder.dir.display(), "the file system has no direct I/O: its files are read through its cache");
        }
        Self { writes: options.direct_io && taken, reads: reads && taken }
    }
}

/// The last flush that was asked for, and the sequence number of RocksDB with which nothing was written after it.
struct LastFlush {
    number: Option<u64>,
    sequence: u64,
}

/// RocksDB, opened. It is closed when the last snapshot, cursor or value read from it is gone, and only
/// then is the folder's lock given back.
pub(crate) struct Tree {
    opened: OpenedCell,
    /// RocksDB counts its statistics into these.
    options: Options,
    pub(crate) direct: Direct,
    reads: ReadOptions,
    writes: WriteOptions,
    /// For writes that would rather fail than wait.
    prompt_writes: WriteOptions,
    /// What is in memory may not fit on the disk.
    pub(crate) short_of_space: AtomicBool,
    pub(crate) budget: Arc<Budget>,
    pub(crate) accounts: Accounts,
    pub(crate) watched: Arc<Watched>,
    last_flush: Mutex<LastFlush>,
    pub(crate) folder: Folder,
    /// Files that are missing or cannot be read, as found when it was opened.
    pub(crate) damaged: Vec<DamagedFile>,
}

impl Tree {
    pub(crate) fn open(
        folder: Folder,
        budget: Arc<Budget>,
        direct: Direct,
        memtable_bytes: usize,
    ) -> Result<Self, StoreError> {
        manifest::check(&folder.tree)?;
        let mut options = tuning::tree_options(&budget, direct)
            .map_err(|error| StoreError::tree("set up", &folder.dir, &error))?;
        let open = |options: &Options| {
            let families = std::iter::once((OWN_FAMILY, None))
                .chain(Family::ALL.into_iter().map(|family| (family.name(), Some(family))))
                .map(|(name, family)| {
                    let mut options = tuning::family_options(family, &budget);
                    options.set_write_buffer_size(memtable_bytes);
                    ColumnFamilyDescriptor::new(name, options)
                });
            DB::open_cf_descriptors(options, &folder.tree, families)
        };
        let mut is_damaged = damage::is_noted(&folder);
        options.set_paranoid_checks(!is_damaged);
        let mut opened = open(&options);
        if !is_damaged && damage::is_shown_by(&opened) {
            is_damaged = true;
            options.set_paranoid_checks(false);
            // Before it is opened again.
            drop(opened);
            opened = open(&options);
        }
        let db = opened.map_err(|error| StoreError::tree("open", &folder.dir, &error))?;
        let damaged = if is_damaged { damage::damaged_files(&db, &folder)? } else { Vec::new() };
        damage::report(&folder.dir, &damaged);
        // What is opened has nothing in memory.
        let last_flush = LastFlush { number: None, sequence: db.latest_sequence_number() };
        let opened = OpenedCell::try_new(db, |db| Families::of(db, &folder))?;
        let mut writes = WriteOptions::default();
        writes.disable_wal(true);
        let mut prompt_writes = WriteOptions::default();
        prompt_writes.disable_wal(true);
        prompt_writes.set_no_slowdown(true);
        let short_of_space = AtomicBool::new(false);
        Ok(Self {
            opened,
            options,
            direct,
            reads: read_options(),
            writes,
            prompt_writes,
            short_of_space,
            budget,
            accounts: Accounts::default(),
            watched: Arc::default(),
            last_flush: Mutex::new(last_flush),
            folder,
            damaged,
        })
    }

    /// Whether the disk has space for all that is in memory, as far as it tells.
    pub(crate) fn has_room_to_flush(&self) -> bool {
        self.folder.free_bytes().map_or(true, |free_bytes| free_bytes > self.budget.memtable_bytes())
    }

    fn write(&self, batch: WriteBatch, options: &WriteOptions) -> Result<(), StoreError> {
        self.db().write_opt(batch, options).map_err(|error| self.error("write to", &error))
    }

    /// Whether RocksDB holds all writes, as it does when too much waits to be flushed.
    fn takes_no_writes(&self) -> bool {
        self.db()
            .property_int_value(properties::IS_WRITE_STOPPED)
            .ok()
            .flatten()
            .is_some_and(|stopped| stopped > 0)
    }

    pub(crate) fn db(&self) -> &DB {
        self.opened.borrow_owner()
    }

    pub(crate) fn statistics(&self) -> &Options {
        &self.options
    }

    /// Options of a read of what is newest.
    pub(crate) fn reads(&self) -> &ReadOptions {
        &self.reads
    }

    pub(crate) fn family(&self, family: Family) -> &ColumnFamily {
        self.opened.borrow_dependent().get(family)
    }

    pub(crate) fn error(&self, action: &'static str, error: &rocksdb::Error) -> StoreError {
        StoreError::tree(action, &self.folder.dir, error)
    }

    /// Starts a write of any number of batches that becomes visible as a whole.
    pub(crate) fn start_write(&self) -> TreeWrite<'_> {
        TreeWrite { tree: self, batch: WriteBatch::default() }
    }

    /// The last log record whose effect is visible.
    pub(crate) fn position(&self) -> Result<Sequence, StoreError> {
        self.position_by(&self.reads)
    }

    /// The last log record whose effect is in synced files, by whatever flush.
    pub(crate) fn flushed_position(&self) -> Result<Sequence, StoreError> {
        self.position_by(&persisted_reads())
    }

    fn position_by(&self, reads: &ReadOptions) -> Result<Sequence, StoreError> {
        let own = self.opened.borrow_dependent().own;
        let found = self
            .db()
            .get_pinned_cf_opt(own, POSITION_KEY, reads)
            .map_err(|error| self.error("read", &error))?;
        let Some(value) = found else { return Ok(Sequence(0)) };
        let bytes: [u8; 8] =
            value.as_ref().try_into().map_err(|_| self.folder.corrupt("its log position is not a number"))?;
        Ok(Sequence(u64::from_be_bytes(bytes)))
    }

    /// A number that the store keeps for itself, besides the position.
    pub(crate) fn note(&self, key: &[u8]) -> Result<Option<u64>, StoreError> {
        self.note_by(&self.reads, key)
    }

    fn note_by(&self, reads: &ReadOptions, key: &[u8]) -> Result<Option<u64>, StoreError> {
        let own = self.opened.borrow_dependent().own;
        let found =
            self.db().get_pinned_cf_opt(own, key, reads).map_err(|error| self.error("read", &error))?;
        let Some(value) = found else { return Ok(None) };
        let value = value.as_ref().try_into();
        Ok(Some(u64::from_be_bytes(
            value.map_err(|_| self.folder.corrupt("a number of its own has the wrong length"))?,
        )))
    }

    /// Sets such a number; it is on disk after the next flush.
    pub(crate) fn set_note(&self, key: &[u8], value: u64) -> Result<(), StoreError> {
        let mut write = self.start_write();
        write.batch.put(key, value.to_be_bytes());
        write.finish()
    }

    /// Writes a memtable of each family to a file at this size from now on.
    pub(crate) fn set_memtable_bytes(&self, bytes: usize) -> Result<(), StoreError> {
        let bytes = bytes.to_string();
        for family in Family::ALL {
            let set = self.db().set_options_cf(self.family(family), &[("write_buffer_size", &bytes)]);
            set.map_err(|error| self.error("set memtables of", &error))?;
        }
        Ok(())
    }

    /// What a figure of RocksDB is for all families together.
    pub(crate) fn sum_of(&self, property: &rocksdb::properties::PropName) -> u64 {
        let families = Family::ALL.into_iter().map(|family| self.family(family));
        families.filter_map(|family| self.db().property_int_value_cf(family, property).ok().flatten()).sum()
    }

    /// Writes the memtables of all families to synced files, up to the same batch.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        let Some(number) = self.number_of_flush()? else { return Ok(()) };
        for _ in 0..MOST_FLUSHES {
            self.begin_flush()?;
            for _ in 0..LOOKS_BEFORE_ANOTHER_FLUSH {
                if self.persisted_note(FLUSH_KEY)? >= Some(number) {
                    return Ok(());
                }
                std::thread::sleep(LOOK_WHILE_FLUSHING);
            }
        }
        let message = format!("{MOST_FLUSHES} flushes ended without what was written before them in files");
        Err(StoreError::Tree { action: "flush", message })
    }

    /// What is in memory now is on its way, and mostly in files when this returns. Not where another flush is under way
    /// that has begun before: RocksDB 11.8 waits for the memtables of one family by the number of another's
    /// (`DBImpl::AtomicFlushMemTables`), so that it may be content with the flush before. Hence [`flush`](Self::flush) looks
    /// for itself; and comes back here, which tells an error that keeps memtables from being flushed.
    fn begin_flush(&self) -> Result<(), StoreError> {
        let own = self.opened.borrow_dependent().own;
        let handles: Vec<_> =
            std::iter::once(own).chain(Family::ALL.into_iter().map(|family| self.family(family))).collect();
        let mut options = FlushOptions::default();
        options.set_wait(true);
        self.db().flush_cfs_opt(&handles, &options).map_err(|error| self.error("flush", &error))
    }

    /// Writes a number behind everything that was written before: where it is in files, that is, too. `None` if that is
    /// known, since nothing was written after the last one.
    fn number_of_flush(&self) -> Result<Option<u64>, StoreError> {
        let mut last = self.last_flush.lock();
        let sequence = self.db().latest_sequence_number();
        let persisted = self.persisted_note(FLUSH_KEY)?;
        if sequence == last.sequence && persisted >= last.number {
            return Ok(None);
        }
        let number = last.number.or(persisted).map_or(1, |number| number.saturating_add(1));
        self.set_note(FLUSH_KEY, number)?;
        *last = LastFlush { number: Some(number), sequence: sequence.saturating_add(1) };
        Ok(Some(number))
    }

    /// As [`note`](Self::note), as far as it is in synced files.
    fn persisted_note(&self, key: &[u8]) -> Result<Option<u64>, StoreError> {
        self.note_by(&persisted_reads(), key)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Before RocksDB closes it waits until it has recovered from its last error. While the disk is full it does not,
        // unless it knows that it is about to end.
        self.db().cancel_all_background_work(false);
    }
}

/// Options that every read starts from.
pub(crate) fn read_options() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_total_order_seek(true);
    // Files that a reader was the last to hold are deleted by a background thread, not by the reader.
    options.set_background_purge_on_iterator_cleanup(true);
    options
}

/// Options of a read of what is in synced files.
fn persisted_reads() -> ReadOptions {
    let mut options = read_options();
    options.set_read_tier(ReadTier::Persisted);
    options
}

/// Changes on their way into the tree.
pub(crate) struct TreeWrite<'tree> {
    tree: &'tree Tree,
    batch: WriteBatch,
}

impl TreeWrite<'_> {
    /// Adds the changes of an encoded batch.
    ///
    /// # Errors
    /// [`StoreError::Batch`]: a record of the log is no batch, or of a newer server.
    pub(crate) fn add(&mut self, batch: &[u8]) -> Result<(), StoreError> {
        for operation in operations_of(batch)? {
            let operation = operation?;
            self.tree.watched.note(&operation);
            let handle = self.tree.family(operation.family());
            match operation {
                Operation::Put { family, key, value } => {
                    self.tree.accounts.of(family, key).wrote(key.len() + value.len());
                    self.batch.put_cf(handle, key, value);
                }
                Operation::Delete { family, key } => {
                    self.tree.accounts.of(family, key).wrote(key.len());
                    self.batch.delete_cf(handle, key);
                }
                Operation::DeleteRange { from, to, .. } => self.batch.delete_range_cf(handle, from, to),
            }
        }
        Ok(())
    }

    /// Records that the changes so far are those of the log up to `position`.
    pub(crate) fn reach(&mut self, position: Sequence) {
        self.batch.put(POSITION_KEY, position.0.to_be_bytes());
    }

    /// Bytes that wait to be written.
    pub(crate) fn size_bytes(&self) -> usize {
        self.batch.size_in_bytes()
    }

    /// Makes the changes visible as a whole. They are on disk only after a flush.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        if self.tree.short_of_space.load(Ordering::Relaxed) {
            return self.finish_or_leave();
        }
        self.tree.write(self.batch, &self.tree.writes)
    }

    /// As [`finish`](Self::finish), but does not wait within RocksDB while it takes no writes: on a full disk a write
    /// that waits there keeps RocksDB from flushing what is in memory, for which it waits, when there is space again.
    fn finish_or_leave(self) -> Result<(), StoreError> {
        let batch = || WriteBatch::from_data(self.batch.data());
        let deadline = Instant::now() + WAIT_WHILE_STOPPED;
        loop {
            match self.tree.db().write_opt(batch(), &self.tree.prompt_writes) {
                Err(error) if error.kind() == ErrorKind::Incomplete => {}
                written => return written.map_err(|error| self.tree.error("write to", &error)),
            }
            if !self.tree.takes_no_writes() {
                // It is slowed down only, which is over soon.
                return self.tree.write(batch(), &self.tree.writes);
            }
            if Instant::now() >= deadline {
                return Err(StoreError::Full);
            }
            std::thread::sleep(LOOK_WHILE_STOPPED);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use scrinium_statistics::Registry;

    use super::{Tree, persisted_reads};
    use crate::{Batch, Family, Store, StoreOptions};

    const OTHERS: [Family; 4] = [Family::Point, Family::Scan, Family::Churn, Family::Blob];

    fn write(tree: &Tree, families: &[Family], value: &[u8]) {
        let mut batch = Batch::new();
        families.iter().for_each(|family| batch.put(*family, b"key", value));
        let mut write = tree.start_write();
        write.add(batch.as_bytes()).unwrap();
        write.finish().unwrap();
    }

    #[test]
    fn a_flush_beside_another_does_not_return_before_its_own_memtables_are_in_files() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(StoreOptions::new(folder.path()), &Registry::new()).unwrap();
        let tree = store.tree();
        let family = Family::DerivedChurn;
        // The numbers of its memtables run ahead of the others'.
        for _ in 0..100 {
            write(tree, &[family], b"before");
            tree.flush().unwrap();
        }
        let persisted = persisted_reads();
        let over = AtomicBool::new(false);
        let too_early = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    write(tree, &OTHERS, &[7; 1 << 20]);
                    tree.flush().unwrap();
                }
            });
            let is_in_files = |round: &u64| {
                write(tree, &[family], &round.to_be_bytes());
                tree.flush().unwrap();
                let found = tree.db().get_cf_opt(tree.family(family), b"key", &persisted).unwrap();
                found.as_deref() == Some(round.to_be_bytes().as_slice())
            };
            let too_early = (0..100_u64).filter(|round| !is_in_files(round)).count();
            over.store(true, Ordering::Relaxed);
            too_early
        });
        assert_eq!(too_early, 0, "of 100 flushes this many returned before");
    }
}

//! The store itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use scrinium_clock::Clock;
use scrinium_log::{ArchiveStatus, Committer, DirectIo, Log, LogError, LogOptions};
use scrinium_statistics::Registry;

use crate::applier::{Applier, replay};
use crate::archiving::{self, Archiving};
use crate::backup::BackupPoint;
use crate::budget::Budget;
use crate::damage::DamagedFile;
use crate::folder::Folder;
use crate::health::Health;
use crate::ingest::{SortedFiles, Together};
use crate::keeper::{Bell, Core, Keeper};
use crate::memory;
use crate::options::max_batch_bytes;
use crate::progress::Progress;
use crate::redo::Redo;
use crate::syncs::{Syncs, WatchedSystem};
use crate::tree::{Direct, Tree};
use crate::{
    Batch, Commit, Family, LogFavor, LogStyle, Purpose, Reservation, Slice, Snapshot, StoreError,
    StoreOptions, Touched, Usage, figures, salvage, slice,
};

/// Ordered keys and bytes, changed by atomic batches that are durable once answered. Clones share it.
///
/// Dropping the last clone without [`Store::close`] is safe, and makes the next opening read the log.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    core: Arc<Core>,
    keeper: Mutex<Option<Keeper>>,
    syncs: Arc<Syncs>,
    clock: Clock,
}

/// Under this name the tree keeps how fast the log was last read again, in bytes a second.
const REPLAY_SPEED: &[u8] = b"replay-speed";

/// How the log of a store in `folder` is opened.
pub(crate) fn log_options(options: &StoreOptions, folder: &Folder) -> LogOptions {
    let mut log_options = LogOptions::new(&folder.log);
    log_options.extent_bytes = options.log_extent_bytes;
    log_options.spare_extents = options.log_spare_extents;
    log_options.direct_io = if options.direct_io { DirectIo::Auto } else { DirectIo::Off };
    log_options.max_record_bytes = max_batch_bytes(options.log_extent_bytes);
    log_options.queue_bytes = options.queue_bytes;
    log_options.max_bytes = options.log_max_bytes;
    log_options.sync = options.sync;
    log_options.clock = options.clock.clone();
    log_options.archive_dir = options.log_archive.as_ref().map(|archive| archive.dir.clone());
    log_options
}

impl Store {
    /// Opens the store, or makes a new one; after a crash, applies what the log holds beyond it.
    ///
    /// # Errors
    /// [`StoreError::Locked`], [`StoreError::NewerFormat`], [`StoreError::DamagedLog`],
    /// [`StoreError::ForeignLog`], [`StoreError::Corrupt`], or an error of the file system.
    #[allow(clippy::needless_pass_by_value, reason = "callers make options for this call only")]
    pub fn open(options: StoreOptions, statistics: &Registry) -> Result<Self, StoreError> {
        let folder = Folder::open(&options)?;
        let log_options = log_options(&options, &folder);
        let budget = Arc::new(Budget::new(options.budget_bytes));
        budget.set_read_ahead(options.read_ahead_bytes);
        budget.set_open_files(options.open_files);
        let memtable_bytes = options.log_favor.memtable_bytes();
        let direct = Direct::of(&options, &folder);
        let tree = Arc::new(Tree::open(folder, budget, direct, memtable_bytes)?);
        let syncs = Syncs::register(statistics, options.report_syncs_above);
        let (mut log, recovery) = Log::open_on(Arc::new(WatchedSystem(Arc::clone(&syncs))), log_options)?;
        if let Some(cut) = &recovery.cut {
            tracing::warn!(
                ?cut,
                "the log ended within a record that was never acknowledged; it was cut there"
            );
        }
        let progress = Arc::new(Progress::default());
        let restart = replay(&tree, &log, &recovery, &progress)?;
        salvage::note_opened(&tree.folder.log);
        if let Some(speed) = restart.speed() {
            tree.set_note(REPLAY_SPEED, speed)?;
        }
        if let Some(archive) = &options.log_archive {
            archiving::begin(&tree, &mut log, &archive.dir)?;
        }
        let redo = Arc::new(Redo::new(&options, restart, tree.note(REPLAY_SPEED)?));

        let health = Arc::new(Health::new(options.reserve_bytes));
        health.measure(&tree);
        let bell = Arc::new(Bell::default());
        let applier = Applier {
            tree: Arc::clone(&tree),
            health: Arc::clone(&health),
            progress: Arc::clone(&progress),
            redo: Arc::clone(&redo),
            bell: Arc::clone(&bell),
        };
        let committer = Committer::start(log, applier, statistics);
        let checkpoints = statistics.counter("Log.Checkpoints");
        let archive_every = options.log_archive.as_ref().map(|archive| archive.every);
        let archiving = Archiving::new(&committer, archive_every.unwrap_or_default(), &options.clock);
        let style = if options.log_archive.is_some() { LogStyle::Archive } else { options.log_style };
        let (log, shared) = ((style, archiving), (redo, bell));
        let core = Core::new(tree, health, progress, committer, log, shared, checkpoints);
        let core = Arc::new(core);
        figures::register(&core, statistics);
        if core.style == LogStyle::Off {
            // Nothing of the log is needed from here on.
            if let Err(error) = core.checkpoint() {
                tracing::warn!(%error, "the log could not be emptied, though it is not used any more");
            }
        }
        let keeper = Keeper::start(Arc::clone(&core))?;
        let (keeper, clock) = (Mutex::new(Some(keeper)), options.clock);
        Ok(Self { inner: Arc::new(Inner { core, keeper, syncs, clock }) })
    }

    /// What tells the time to all that is kept in the store.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Hands a batch over. Batches take effect in the order of calls; the answer comes when this one is
    /// synced and visible. Blocks only while more than `queue_bytes` wait.
    ///
    /// # Errors
    /// [`StoreError::WrongFamily`] for a derived family, [`StoreError::TooLarge`], [`StoreError::Full`],
    /// [`StoreError::Failed`], [`StoreError::Closed`]; nothing was changed then.
    pub fn submit(&self, batch: Batch) -> Result<Commit, StoreError> {
        if self.log_style() == LogStyle::Off {
            return self.hand_over(batch, |committer, record| committer.submit_unlogged(None, record));
        }
        self.hand_over(batch, Committer::submit)
    }

    fn hand_over(
        &self,
        batch: Batch,
        submit: impl FnOnce(&Committer, Bytes) -> Result<scrinium_log::Commit, LogError>,
    ) -> Result<Commit, StoreError> {
        self.admit(&batch, "submit")?;
        if batch.is_empty() {
            return Ok(Commit::of_nothing());
        }
        let committer = self.inner.core.open_committer()?;
        let committer = committer.as_ref().ok_or(StoreError::Closed)?;
        submit(committer, batch.into_bytes()).map(Commit::of).map_err(StoreError::of_commit)
    }

    /// What tells this store from every other one, also from copies of it that were restored: its identity, of 32
    /// hexadecimal digits, and after a `-` the key of its log, of 16.
    ///
    /// # Errors
    /// [`StoreError::Closed`], or that `store.format` cannot be read.
    pub fn history(&self) -> Result<String, StoreError> {
        Ok(format!("{}-{:016x}", self.identity()?, self.log_key()?))
    }

    /// The longest batch that one commit takes, in bytes as encoded.
    #[must_use]
    pub fn batch_max_bytes(&self) -> usize {
        let committer = self.inner.core.committer.read();
        committer.as_ref().map_or(crate::MAX_BATCH_BYTES, Committer::max_record_bytes)
    }

    /// The folder that the store lies in.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.inner.core.tree.folder.dir
    }

    /// How many commits have failed. Whoever keeps in memory what its batches have made of the store reads it
    /// again when this number has changed.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.inner.core.committer.read().as_ref().map_or(0, Committer::failures)
    }

    /// As [`Store::submit`], unless a commit has failed since [`Store::failures`] was `failures`: a batch that
    /// builds on one that failed must not be stored.
    ///
    /// # Errors
    /// As [`Store::submit`], and [`StoreError::Failed`] if a commit has failed since.
    pub fn submit_after(&self, failures: u64, batch: Batch) -> Result<Commit, StoreError> {
        if self.log_style() == LogStyle::Off {
            return self.submit_unlogged_after(failures, batch);
        }
        self.hand_over(batch, |committer, record| committer.submit_after(failures, record))
    }

    /// As [`Store::submit_after`], past the log: it is answered when the tree's files hold the batch, with all that
    /// wait for the same. Readers see it a moment earlier, but nothing that they commit is durable before it is.
    ///
    /// Such batches take effect in the order of calls among themselves, and so do those of the log; between the two
    /// only what was answered comes before what is submitted then.
    ///
    /// # Errors
    /// As [`Store::submit_after`].
    ///
    /// Where the log is archived they go through it all the same: what does not could not be restored.
    pub fn submit_unlogged_after(&self, failures: u64, batch: Batch) -> Result<Commit, StoreError> {
        if self.log_style() == LogStyle::Archive {
            return self.submit_after(failures, batch);
        }
        self.hand_over(batch, |committer, record| committer.submit_unlogged(Some(failures), record))
    }

    /// As [`Store::commit`], past the log; see [`Store::submit_unlogged_after`].
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn commit_unlogged(&self, batch: Batch) -> Result<(), StoreError> {
        if self.log_style() == LogStyle::Archive {
            return self.commit(batch);
        }
        self.hand_over(batch, |committer, record| committer.submit_unlogged(None, record))?.wait()
    }

    /// Whether commits go into the log, unless they are made to stay out of it.
    #[must_use]
    pub fn log_style(&self) -> LogStyle {
        self.inner.core.style
    }

    /// Favors running or restarting from now on.
    ///
    /// # Errors
    /// What RocksDB reports.
    pub fn set_log_favor(&self, favor: LogFavor) -> Result<(), StoreError> {
        let core = &self.inner.core;
        core.tree.set_memtable_bytes(favor.memtable_bytes())?;
        core.redo.favor(favor);
        core.bell.ring();
        Ok(())
    }

    /// [`Store::submit`], then waits for the answer; faster than these two while nobody else writes.
    ///
    /// # Errors
    /// As [`Store::submit`] and [`Commit::wait`].
    pub fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        if self.log_style() == LogStyle::Off {
            return self.commit_unlogged(batch);
        }
        self.admit(&batch, "commit")?;
        if batch.is_empty() {
            return Ok(());
        }
        let committer = self.inner.core.open_committer()?;
        let committer = committer.as_ref().ok_or(StoreError::Closed)?;
        committer.commit(batch.into_bytes()).map(|_| ()).map_err(StoreError::of_commit)
    }

    /// Changes derived families: visible as a whole when this returns, and on disk with some later flush.
    /// After a crash, the derived families stand as they stood after one of their changes, with all
    /// before it and none after, but for sorted files that came in later ([`bring_in`](Self::bring_in)). What a change
    /// is derived from must have been committed before.
    ///
    /// On a full disk it goes on longer than commits do, for half of the reserve.
    ///
    /// # Errors
    /// [`StoreError::WrongFamily`] for a logged family, [`StoreError::Full`], [`StoreError::Failed`],
    /// [`StoreError::Closed`].
    #[allow(clippy::needless_pass_by_value, reason = "a batch is used up by writing it, here as in submit")]
    pub fn write_derived(&self, batch: Batch) -> Result<(), StoreError> {
        if let Some(family) = batch.family_that_is(false) {
            return Err(StoreError::WrongFamily { family, operation: "write_derived" });
        }
        if batch.is_empty() {
            return Ok(());
        }
        let core = &self.inner.core;
        core.health.admit_on_reserve(&core.tree, batch.len_bytes())?;
        self.check_committer()?;
        let mut write = self.inner.core.tree.start_write();
        write.add(batch.as_bytes())?;
        write.finish().inspect_err(|error| self.note_failure(error))
    }

    /// Brings many entries into a derived family at once, faster than batches: all of them are visible
    /// when this returns, or none. Keys must come in strictly ascending order.
    ///
    /// They are on disk when this returns, and so is every change of derived families that was done before the call.
    ///
    /// # Errors
    /// [`StoreError::Unsorted`], [`StoreError::WrongFamily`], [`StoreError::Full`], or an error of the
    /// file system.
    pub fn ingest_derived(
        &self,
        family: Family,
        sorted: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<u64, StoreError> {
        let files = self.sort_derived(family, sorted)?;
        let entries = files.entries();
        self.bring_in(vec![files])?;
        Ok(entries)
    }

    /// Writes entries of a derived family into sorted files, which are not part of the store before
    /// [`bring_in`](Self::bring_in). Keys must come in strictly ascending order.
    ///
    /// # Errors
    /// As [`Store::ingest_derived`].
    pub fn sort_derived(
        &self,
        family: Family,
        sorted: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<SortedFiles, StoreError> {
        if !family.is_derived() {
            return Err(StoreError::WrongFamily { family, operation: "ingest_derived" });
        }
        let core = &self.inner.core;
        // As other derived changes, these go on longer than commits do when the disk is full.
        core.health.admit_on_reserve(&core.tree, 0)?;
        SortedFiles::write(&core.tree, family, sorted)
    }

    /// Brings sorted files in, between which no key may come twice; those of one family at once, one family after the
    /// other. They are on disk when this returns, and so is every change of derived families that was done before the
    /// call. Who writes meanwhile hardly waits.
    ///
    /// # Errors
    /// As [`Store::ingest_derived`]. Some of the files may be in then.
    #[allow(clippy::needless_pass_by_value, reason = "files are used up by bringing them in")]
    pub fn bring_in(&self, files: Vec<SortedFiles>) -> Result<(), StoreError> {
        self.check_committer()?;
        let mut together = Together::of(&files);
        if together.is_empty() {
            return Ok(());
        }
        // What was written before is on the disk before the files are.
        let tree = &self.inner.core.tree;
        tree.flush()?;
        together.bring_in_at_once(tree)?;
        if together.is_empty() {
            return Ok(());
        }
        // Where somebody has written between the keys of the files, the tree flushes while all writes wait: the less there
        // is left to flush, the shorter.
        tree.flush()?;
        together.bring_in(tree)
    }

    /// Files of the store that were missing or damaged when it was opened: what lies in them cannot be read.
    #[must_use]
    pub fn damaged_files(&self) -> &[DamagedFile] {
        &self.inner.core.tree.damaged
    }

    pub(crate) fn position(&self) -> Result<scrinium_log::Sequence, StoreError> {
        self.inner.core.tree.position()
    }

    pub(crate) fn free_bytes(&self) -> Result<u64, StoreError> {
        self.inner.core.tree.folder.free_bytes()
    }

    /// The newest value of `key`, if it is there.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a damaged block, [`StoreError::Tree`] when a file cannot be read.
    pub fn get(&self, family: Family, key: &[u8]) -> Result<Option<Slice>, StoreError> {
        let tree = &self.inner.core.tree;
        slice::get(tree, tree.reads(), family, key)
    }

    /// The newest values of `keys` in their order, `None` for one that is not there. All are of one moment.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        family: Family,
        keys: &[K],
    ) -> Result<Vec<Option<Slice>>, StoreError> {
        let tree = &self.inner.core.tree;
        slice::multi_get(tree, tree.reads(), family, keys)
    }

    /// Whether `key` is there.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn contains(&self, family: Family, key: &[u8]) -> Result<bool, StoreError> {
        let tree = &self.inner.core.tree;
        slice::contains(tree, tree.reads(), family, key)
    }

    /// All families as they stand now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.inner.core.tree)
    }

    /// Writes memtables to files and lets go of the log before that, so that a crash has less to read
    /// again. Commits go on meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Full`] or an error of the file system; nothing is lost then.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        self.inner.core.checkpoint()
    }

    /// Makes a checkpoint of the tree's files beside them, for a backup: everything that was answered before this
    /// call, and what is derived from it. It costs hard links, and disk only for what changes while it is kept.
    /// With an archive, the log up to there is archived when this returns.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Closed`], [`StoreError::Log`] if the archive takes nothing, or an error
    /// of the file system.
    pub fn backup_point(&self) -> Result<BackupPoint, StoreError> {
        BackupPoint::take(&self.inner.core, &self.inner.clock)
    }

    /// How the log's archive stands; `None` if the log is not archived.
    #[must_use]
    pub fn archive_status(&self) -> Option<ArchiveStatus> {
        Some(self.inner.core.archiving.archive()?.status())
    }

    /// Has everything that was answered before this call copied into the log's archive, if there is one.
    ///
    /// # Errors
    /// [`StoreError::Log`] if it is not there after the time that is given.
    pub fn archive_log(&self, limit: Duration) -> Result<(), StoreError> {
        self.inner.core.archive_log(limit)
    }

    /// Whether writes are taken now.
    ///
    /// # Errors
    /// Why not: [`StoreError::Full`], [`StoreError::Failed`] or [`StoreError::Closed`].
    pub fn check_writable(&self) -> Result<(), StoreError> {
        let core = &self.inner.core;
        core.health.admit(&core.tree, 0)?;
        self.check_committer()
    }

    /// Sets the memory for blocks, memtables and all that is [reserved](Self::reserve), at least 16 MB. Blocks beyond it
    /// are dropped before this returns, and their memory is the system's again; memtables and what is reserved shrink as
    /// they are given back.
    pub fn set_budget(&self, bytes: u64) {
        let tree = &self.inner.core.tree;
        let is_smaller = bytes < tree.budget.bytes();
        tree.budget.set(bytes);
        if is_smaller {
            memory::give_back();
        }
    }

    /// Has long scans read so much ahead from now on; 0: as the budget allows. Merging follows when the store is opened
    /// again.
    pub fn set_read_ahead(&self, bytes: u64) {
        self.inner.core.tree.budget.set_read_ahead(bytes);
    }

    /// Notes which keys that begin with `number`, four bytes, big-endian, are changed from now on, `max` of them.
    #[must_use]
    pub fn watch_keys(&self, number: u32, max: usize) -> Touched {
        Touched::watch(&self.inner.core.tree.watched, number, max)
    }

    /// What tells the store's log from all others; a store that was restored begins another one.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    pub fn log_key(&self) -> Result<u64, StoreError> {
        Ok(self.inner.core.committer.read().as_ref().ok_or(StoreError::Closed)?.log_key())
    }

    /// What tells this store from all others, 32 hexadecimal digits.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] or an error of the file system.
    pub fn identity(&self) -> Result<String, StoreError> {
        self.inner.core.tree.folder.identity()
    }

    /// From now on reports syncs of the log that take so long or longer; zero: none.
    pub fn report_syncs_above(&self, time: Duration) {
        self.inner.syncs.report_above(time);
    }

    /// Takes memory for something else than blocks and memtables from the budget.
    #[must_use]
    pub fn reserve(&self, purpose: Purpose, bytes: u64) -> Reservation {
        Reservation::new(&self.inner.core.tree.budget, purpose, bytes)
    }

    /// What is reserved for a purpose, in bytes.
    #[must_use]
    pub fn reserved(&self, purpose: Purpose) -> u64 {
        self.inner.core.tree.budget.reserved_for(purpose)
    }

    /// The memory for blocks, memtables and all that is reserved, in bytes.
    #[must_use]
    pub fn budget(&self) -> u64 {
        self.inner.core.tree.budget.bytes()
    }

    /// What was read and written under keys that begin with `number`, four bytes, big-endian, since the store was opened.
    /// Contents, which users share, are not among it.
    #[must_use]
    pub fn usage(&self, number: u32) -> Usage {
        self.inner.core.tree.accounts.usage(number)
    }

    /// About how many bytes of disk the keys from `from` up to, not including, `to` take. What is still in
    /// memtables only is left out.
    #[must_use]
    pub fn size_of(&self, family: Family, from: &[u8], to: &[u8]) -> u64 {
        let tree = &self.inner.core.tree;
        let sizes = tree.db().get_approximate_sizes_cf(tree.family(family), &[rocksdb::Range::new(from, to)]);
        sizes.into_iter().sum()
    }

    /// Takes no more writes, waits for those under way, and makes a checkpoint, so that the next opening
    /// has nothing to read again. Snapshots and clones may go on reading; the folder's lock is given
    /// back with the last of them.
    ///
    /// # Errors
    /// As [`Store::checkpoint`]. The store is closed all the same, and nothing is lost.
    pub fn close(self) -> Result<(), StoreError> {
        self.inner.close()
    }

    pub(crate) fn core(&self) -> &Core {
        &self.inner.core
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.inner.core.tree
    }

    fn admit(&self, batch: &Batch, operation: &'static str) -> Result<(), StoreError> {
        if let Some(family) = batch.family_that_is(true) {
            return Err(StoreError::WrongFamily { family, operation });
        }
        let core = &self.inner.core;
        if batch.does_give_space_back() {
            return core.health.admit_on_reserve(&core.tree, batch.len_bytes());
        }
        core.health.admit(&core.tree, batch.len_bytes())
    }

    /// What is derived from commits must not go on when they do not.
    fn check_committer(&self) -> Result<(), StoreError> {
        match self.inner.core.committer.read().as_ref() {
            None => Err(StoreError::Closed),
            Some(committer) => {
                committer.failure().map_or(Ok(()), |failure| Err(StoreError::of_commit(failure)))
            }
        }
    }

    fn note_failure(&self, error: &StoreError) {
        if !matches!(error, StoreError::Full) {
            self.inner.core.health.fail(&error.to_string());
        }
    }
}

impl Inner {
    fn close(&self) -> Result<(), StoreError> {
        self.keeper.lock().take();
        let Some(committer) = self.core.committer.write().take() else { return Ok(()) };
        committer.stop();
        self.core.checkpoint()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.keeper.lock().take();
        self.core.committer.write().take();
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Store").field("dir", &self.inner.core.tree.folder.dir).finish_non_exhaustive()
    }
}

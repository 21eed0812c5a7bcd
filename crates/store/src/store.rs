//! The store itself.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_clock::Clock;
use scrinium_log::{Committer, DirectIo, FailureEpoch, Log, LogOptions};
use scrinium_statistics::Registry;

use crate::admin::Admin;
use crate::applier::{Applier, replay};
use crate::archiving::{self, Archiving};
use crate::budget::Budget;
use crate::derived::Derived;
use crate::folder::Folder;
use crate::health::Health;
use crate::keeper::{Bell, Core, CoreParts, Keeper};
use crate::options::max_batch_bytes;
use crate::progress::Progress;
use crate::redo::ReplayEstimate;
use crate::syncs::{Syncs, WatchedSystem};
use crate::tree::{Direct, Tree};
use crate::{
    Batch, Commit, Durability, Family, LogStyle, Slice, Snapshot, StoreError, StoreOptions, figures, salvage,
    slice,
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
        let redo = Arc::new(ReplayEstimate::new(&options, restart, tree.note(REPLAY_SPEED)?));

        let health = Arc::new(Health::new(options.reserve_bytes));
        health.measure(&tree);
        let bell = Arc::new(Bell::default());
        let applier = Applier {
            reached: tree.position()?,
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
        let parts =
            CoreParts { tree, health, progress, committer, archiving, style, redo, bell, checkpoints };
        let core = Arc::new(Core::new(parts));
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

    /// Hands a batch over, which is answered when it is visible and as durable as `durability` says. Blocks only while
    /// more than `queue_bytes` wait. With `after`, the batch is taken only if no commit has failed since
    /// [`Store::failures`] answered with that: a batch that builds on one that failed must not be stored.
    ///
    /// Batches of one durability take effect in the order of calls; between the two only what was answered comes before
    /// what is submitted then. Nothing that was submitted when a batch was visible is durable before that batch is.
    ///
    /// # Errors
    /// [`StoreError::WrongFamily`] for a derived family, [`StoreError::TooLarge`], [`StoreError::Full`],
    /// [`StoreError::Failed`], [`StoreError::Closed`]; nothing was changed then.
    pub fn write(
        &self,
        batch: Batch,
        durability: Durability,
        after: Option<FailureEpoch>,
    ) -> Result<Commit, StoreError> {
        self.admit(&batch, "write")?;
        if batch.is_empty() {
            return Ok(Commit::of_nothing());
        }
        let committer = self.inner.core.open_committer()?;
        let committer = committer.as_ref().ok_or(StoreError::Closed)?;
        let record = batch.into_record()?;
        let submitted = match (durability.within(self.inner.core.style), after) {
            (Durability::Logged, None) => committer.submit(record),
            (Durability::Logged, Some(epoch)) => committer.submit_after(epoch, record),
            (Durability::Flushed, after) => committer.submit_unlogged(after, record),
        };
        submitted.map(Commit::of).map_err(StoreError::of_commit)
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

    /// It changes when a commit fails. What keeps in memory what its batches have made of the store reads it again then.
    #[must_use]
    pub fn failures(&self) -> FailureEpoch {
        self.inner.core.committer.read().as_ref().map_or_else(FailureEpoch::default, Committer::failures)
    }

    /// Whether commits go into the log, unless they are made to stay out of it.
    #[must_use]
    pub fn log_style(&self) -> LogStyle {
        self.inner.core.style
    }

    /// As [`Store::write`] with [`Durability::Logged`], then waits for the answer; faster than these two while nobody else
    /// writes.
    ///
    /// # Errors
    /// As [`Store::write`] and [`Commit::wait`].
    pub fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        if Durability::Logged.within(self.inner.core.style) == Durability::Flushed {
            return self.write(batch, Durability::Flushed, None)?.wait();
        }
        self.admit(&batch, "commit")?;
        if batch.is_empty() {
            return Ok(());
        }
        let committer = self.inner.core.open_committer()?;
        let committer = committer.as_ref().ok_or(StoreError::Closed)?;
        committer.commit(batch.into_record()?).map(|_| ()).map_err(StoreError::of_commit)
    }

    /// What is derived from commits: written past the log.
    #[must_use]
    pub fn derived(&self) -> Derived<'_> {
        Derived::new(self)
    }

    /// What runs the store: checkpoints, backups, memory, sizes.
    #[must_use]
    pub fn admin(&self) -> Admin<'_> {
        Admin::new(self)
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

    /// Whether writes are taken now.
    ///
    /// # Errors
    /// Why not: [`StoreError::Full`], [`StoreError::Failed`] or [`StoreError::Closed`].
    pub fn check_writable(&self) -> Result<(), StoreError> {
        let core = &self.inner.core;
        core.health.admit(&core.tree, 0)?;
        self.check_committer()
    }

    /// Takes no more writes, waits for those under way, and makes a checkpoint, so that the next opening
    /// has nothing to read again. Snapshots and clones may keep reading; the folder's lock is given
    /// back with the last of them.
    ///
    /// # Errors
    /// As [`Admin::checkpoint`]. The store is closed all the same, and nothing is lost.
    pub fn close(self) -> Result<(), StoreError> {
        self.inner.close()
    }

    pub(crate) fn core(&self) -> &Core {
        &self.inner.core
    }

    pub(crate) fn syncs(&self) -> &Syncs {
        &self.inner.syncs
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
    pub(crate) fn check_committer(&self) -> Result<(), StoreError> {
        match self.inner.core.committer.read().as_ref() {
            None => Err(StoreError::Closed),
            Some(committer) => {
                committer.failure().map_or(Ok(()), |failure| Err(StoreError::of_commit(failure)))
            }
        }
    }

    pub(crate) fn note_failure(&self, error: &StoreError) {
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

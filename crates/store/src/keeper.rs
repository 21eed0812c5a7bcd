//! The thread that makes checkpoints, watches the disk and remembers the most memory used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock};
use rocksdb::properties;
use scrinium_assertion::always;
use scrinium_log::{Committer, LogError, Sequence};

use crate::archiving::Archiving;
use crate::freeze::Hold;
use crate::health::Health;
use crate::progress::Progress;
use crate::redo::ReplayEstimate;
use crate::returning;
use crate::tree::Tree;
use crate::{LogStyle, Purpose, Reservation, StoreError};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);

/// What the store's threads share.
pub(crate) struct Core {
    pub(crate) tree: Arc<Tree>,
    pub(crate) health: Arc<Health>,
    pub(crate) progress: Arc<Progress>,
    /// `None` once the store is closed.
    pub(crate) committer: RwLock<Option<Committer>>,
    /// Whether commits are held for a snapshot.
    pub(crate) hold: Hold,
    pub(crate) archiving: Archiving,
    pub(crate) style: LogStyle,
    pub(crate) redo: Arc<ReplayEstimate>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) checkpoints: scrinium_statistics::Counter,
    /// Held while a checkpoint is made, so that two do not run side by side.
    checkpoint: Mutex<()>,
    open_files: Reservation,
    /// The last checkpoint failed, and that was said.
    stuck: AtomicBool,
    /// The log has failed, and what was acknowledged was brought into the tree's files.
    rescued: AtomicBool,
}

/// What [`Core`] is made of.
pub(crate) struct CoreParts {
    pub(crate) tree: Arc<Tree>,
    pub(crate) health: Arc<Health>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) committer: Committer,
    pub(crate) archiving: Archiving,
    pub(crate) style: LogStyle,
    pub(crate) redo: Arc<ReplayEstimate>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) checkpoints: scrinium_statistics::Counter,
}

impl Core {
    pub(crate) fn new(parts: CoreParts) -> Self {
        let CoreParts { tree, health, progress, committer, archiving, style, redo, bell, checkpoints } =
            parts;
        let open_files = Reservation::new(&tree.budget, Purpose::OpenFiles, 0);
        Self {
            tree,
            health,
            progress,
            committer: RwLock::new(Some(committer)),
            hold: Hold::default(),
            archiving,
            style,
            redo,
            bell,
            checkpoints,
            checkpoint: Mutex::new(()),
            open_files,
            stuck: AtomicBool::new(false),
            rescued: AtomicBool::new(false),
        }
    }

    /// Flushes the tree and lets go of the log before it.
    pub(crate) fn checkpoint(&self) -> Result<(), StoreError> {
        let _alone = self.checkpoint.lock();
        self.tree.flush()?;
        self.checkpoints.add(1);
        self.release_flushed()
    }

    /// Lets go of the log up to where the tree's files have come, by whatever flush.
    fn release_flushed(&self) -> Result<(), StoreError> {
        let position = self.tree.flushed_position()?;
        if self.progress.flushed(position)
            && let Some(committer) = self.committer.read().as_ref()
        {
            always!(
                position <= committer.last_synced(),
                "the tree's files hold nothing of the log that is not durable there",
                "{position:?} of {:?}",
                committer.last_synced()
            )?;
            committer.release_before(Sequence(position.0.saturating_add(1)));
        }
        Ok(())
    }

    /// Once the log has failed, nobody knows what of it can be read again. What was acknowledged is still in memory,
    /// so it is brought into the tree's files.
    fn rescue(&self) {
        let failure = {
            let committer = self.committer.read();
            let Some(committer) = committer.as_ref() else { return };
            if self.style != LogStyle::Off {
                committer.check_there();
            }
            committer.failure()
        };
        let Some(failure) = failure.filter(|failure| !matches!(failure, LogError::Stopped)) else { return };
        if self.rescued.swap(true, Ordering::Relaxed) {
            return;
        }
        let rescued = self.tree.flush().and_then(|()| self.tree.flushed_position());
        match rescued {
            Ok(position) => tracing::error!(
                %failure,
                position = position.0,
                "the transaction log failed and the store takes reads only; everything that was acknowledged, up to \
                 record {}, is in the databases' own files now; put the log right and restart (docs/operate/logging.md)",
                position.0
            ),
            Err(error) => tracing::error!(
                %failure,
                %error,
                "the transaction log failed, and what was acknowledged last could not be written to the databases' own \
                 files either; keep the log's folder and restart (docs/operate/logging.md)"
            ),
        }
    }

    /// Makes blocks give room to what RocksDB holds outside its cache, and remembers the most that was used.
    fn note_memory(&self) {
        self.open_files.set(self.tree.sum_of(properties::ESTIMATE_TABLE_READERS_MEM));
        self.tree.budget.fit_reserved();
        self.tree.budget.used_bytes();
    }

    fn look(&self) {
        self.look_at_archive();
        self.health.measure(&self.tree);
        self.note_memory();
        self.rescue();
        let checkpointed = self.release_flushed().and_then(|()| {
            if self.progress.unflushed_bytes() < self.redo.limit_bytes() {
                Ok(())
            } else if self.tree.has_room_to_flush() {
                self.checkpoint()
            } else {
                // A flush that fails stops RocksDB for seconds beyond the end of the want of space.
                Err(StoreError::Full)
            }
        });
        self.health.checkpoint_found_space(!matches!(checkpointed, Err(StoreError::Full)));
        match checkpointed {
            Ok(()) => {
                self.stuck.store(false, Ordering::Relaxed);
                self.bell.rung.store(false, Ordering::Relaxed);
            }
            Err(error) if !self.stuck.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, "a checkpoint was not possible; it is tried every second");
            }
            // The bell stays rung, so that nobody rings again until one was possible.
            Err(_) => {}
        }
    }
}

/// The thread. It ends when this is dropped.
pub(crate) struct Keeper {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(core: Arc<Core>) -> Result<Self, StoreError> {
        let bell = Arc::clone(&core.bell);
        let dir = core.tree.folder.dir.clone();
        let thread = std::thread::Builder::new()
            .name("store-keeper".to_owned())
            .spawn(move || run(&core))
            .map_err(|error| StoreError::io("start a thread for", &dir, error))?;
        Ok(Self { bell, thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.bell.call(|calls| calls.stop = true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's keeper panicked");
        }
    }
}

fn run(core: &Core) {
    while core.bell.wait() {
        core.look();
        returning::give_back_if_due();
    }
}

/// What the keeper is called by before its time.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    calls: Mutex<Calls>,
    called: Condvar,
    /// It has rung and nobody has answered yet.
    rung: AtomicBool,
}

#[derive(Debug, Default)]
struct Calls {
    stop: bool,
    look: bool,
}

impl Bell {
    /// Makes the keeper look now.
    pub(crate) fn ring(&self) {
        if !self.rung.swap(true, Ordering::Relaxed) {
            self.call(|calls| calls.look = true);
        }
    }

    fn call(&self, change: impl FnOnce(&mut Calls)) {
        change(&mut self.calls.lock());
        self.called.notify_all();
    }

    /// Waits until it is time to look; `false`: to stop.
    fn wait(&self) -> bool {
        let mut calls = self.calls.lock();
        if !calls.stop && !calls.look {
            self.called.wait_for(&mut calls, EVERY);
        }
        calls.look = false;
        !calls.stop
    }
}

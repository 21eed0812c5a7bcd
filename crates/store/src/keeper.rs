//! The thread that makes checkpoints, watches the disk and remembers the most memory used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock};
use rocksdb::properties;
use scrinium_log::{Committer, Sequence};

use crate::health::Health;
use crate::progress::Progress;
use crate::tree::Tree;
use crate::{Purpose, Reservation, StoreError};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);

/// What the store's threads share.
pub(crate) struct Core {
    pub(crate) tree: Arc<Tree>,
    pub(crate) health: Arc<Health>,
    pub(crate) progress: Arc<Progress>,
    /// `None` once the store is closed.
    pub(crate) committer: RwLock<Option<Committer>>,
    pub(crate) checkpoint_log_bytes: u64,
    pub(crate) checkpoints: scrinium_statistics::Counter,
    /// Held while a checkpoint is made, so that two do not run side by side.
    checkpoint: Mutex<()>,
    open_files: Reservation,
    /// The last checkpoint failed, and that was said.
    stuck: AtomicBool,
}

impl Core {
    pub(crate) fn new(
        tree: Arc<Tree>,
        health: Arc<Health>,
        progress: Arc<Progress>,
        committer: Committer,
        checkpoint_log_bytes: u64,
        checkpoints: scrinium_statistics::Counter,
    ) -> Self {
        let open_files = Reservation::new(&tree.budget, Purpose::OpenFiles, 0);
        Self {
            tree,
            health,
            progress,
            committer: RwLock::new(Some(committer)),
            checkpoint_log_bytes,
            checkpoints,
            checkpoint: Mutex::new(()),
            open_files,
            stuck: AtomicBool::new(false),
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
            committer.release_before(Sequence(position.0.saturating_add(1)));
        }
        Ok(())
    }

    /// Has blocks make room for what RocksDB holds beside its cache, and remembers the most that was used.
    fn note_memory(&self) {
        self.open_files.set(self.tree.sum_of(properties::ESTIMATE_TABLE_READERS_MEM));
        self.tree.budget.fit_reserved();
        self.tree.budget.used_bytes();
    }

    fn look(&self) {
        self.health.measure(&self.tree);
        self.note_memory();
        let checkpointed = self.release_flushed().and_then(|()| {
            if self.progress.unflushed_bytes() >= self.checkpoint_log_bytes {
                self.checkpoint()
            } else {
                Ok(())
            }
        });
        match checkpointed {
            Ok(()) => self.stuck.store(false, Ordering::Relaxed),
            Err(error) if !self.stuck.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, "a checkpoint was not possible; it is tried every second");
            }
            Err(_) => {}
        }
    }
}

/// The thread. It ends when this is dropped.
pub(crate) struct Keeper {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(core: Arc<Core>) -> Result<Self, StoreError> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let seen = Arc::clone(&stop);
        let dir = core.tree.folder.dir.clone();
        let thread = std::thread::Builder::new()
            .name("store-keeper".to_owned())
            .spawn(move || run(&core, &seen))
            .map_err(|error| StoreError::io("start a thread for", &dir, error))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's keeper had panicked");
        }
    }
}

fn run(core: &Core, stop: &(Mutex<bool>, Condvar)) {
    let mut stopping = stop.0.lock();
    while !*stopping {
        stop.1.wait_for(&mut stopping, EVERY);
        if !*stopping {
            parking_lot::MutexGuard::unlocked(&mut stopping, || core.look());
        }
    }
}

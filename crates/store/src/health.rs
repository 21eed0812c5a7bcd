//! Whether the store takes writes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::StoreError;
use crate::tree::Tree;

/// Free space is measured again after this many bytes were taken, besides once a second.
const MEASURE_BYTES: u64 = 8 << 20;

/// With less than this free, besides twice what is in memory, a flush may find no space before it is measured again.
const SHORT_BYTES: u64 = 128 << 20;

/// Whether writes are taken, and why not.
pub(crate) struct Health {
    reserve_bytes: u64,
    /// Less than the reserve is free.
    full: AtomicBool,
    /// Less than half of the reserve is free.
    half_used: AtomicBool,
    /// The tree was refused space.
    waiting: AtomicBool,
    /// The last checkpoint was refused space. Writes would only pile up in memory until RocksDB stops them; one
    /// that it holds then keeps it from flushing what is there when there is space again.
    unflushable: AtomicBool,
    since_measured: AtomicU64,
    failure: OnceLock<String>,
}

impl Health {
    pub(crate) fn new(reserve_bytes: u64) -> Self {
        Self {
            reserve_bytes,
            full: AtomicBool::new(false),
            half_used: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            unflushable: AtomicBool::new(false),
            since_measured: AtomicU64::new(0),
            failure: OnceLock::new(),
        }
    }

    /// Free space that is left alone.
    pub(crate) fn reserve_bytes(&self) -> u64 {
        self.reserve_bytes
    }

    /// Refuses all further writes. The first reason is kept.
    pub(crate) fn fail(&self, reason: &str) {
        if self.failure.set(reason.to_owned()).is_ok() {
            tracing::error!(reason, "the store takes no more writes until it is opened again");
        }
    }

    /// Whether a commit of `bytes` may be taken.
    pub(crate) fn admit(&self, tree: &Tree, bytes: usize) -> Result<(), StoreError> {
        self.admit_unless(&self.full, tree, bytes)
    }

    /// Whether `bytes` may be written that are derived from commits or give space back. They have half of the
    /// reserve to themselves: on a full disk indexes can still follow what was accepted last, so that they are
    /// read, and what nobody needs can be removed.
    pub(crate) fn admit_on_reserve(&self, tree: &Tree, bytes: usize) -> Result<(), StoreError> {
        self.admit_unless(&self.half_used, tree, bytes)
    }

    fn admit_unless(&self, refused: &AtomicBool, tree: &Tree, bytes: usize) -> Result<(), StoreError> {
        if let Some(reason) = self.failure.get() {
            return Err(StoreError::Failed { reason: reason.clone(), cause: None });
        }
        let bytes = bytes as u64;
        if self.since_measured.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) >= MEASURE_BYTES {
            self.measure(tree);
        }
        let is_full = || {
            let tree_waits = self.waiting.load(Ordering::Relaxed) || self.unflushable.load(Ordering::Relaxed);
            tree_waits || refused.load(Ordering::Relaxed)
        };
        if is_full() {
            // What was measured last may be a second old, and there may be space again.
            self.measure(tree);
        }
        if is_full() { Err(StoreError::Full) } else { Ok(()) }
    }

    /// Refuses writes as [`StoreError::Full`] while what is already in the log waits for space in the tree.
    pub(crate) fn wait_for_space(&self, waiting: bool) {
        if self.waiting.swap(waiting, Ordering::Relaxed) != waiting {
            tracing::warn!(waiting, "commits that are in the log wait for space in the tree");
        }
    }

    /// Refuses writes as [`StoreError::Full`] until a checkpoint finds space, or there is seen to be enough.
    pub(crate) fn checkpoint_found_space(&self, found: bool) {
        self.unflushable.store(!found, Ordering::Relaxed);
    }

    /// Looks at the disk.
    pub(crate) fn measure(&self, tree: &Tree) {
        self.since_measured.store(0, Ordering::Relaxed);
        // A file system that cannot tell how much is free is written to until it refuses.
        let Ok(free_bytes) = tree.folder.free_bytes() else { return };
        self.half_used.store(free_bytes < self.reserve_bytes / 2, Ordering::Relaxed);
        // What was accepted and is not in its files yet will take space too, and not that of the reserve.
        let memtable_bytes = tree.budget.memtable_bytes();
        let short = free_bytes < memtable_bytes.saturating_mul(2).saturating_add(SHORT_BYTES);
        tree.short_of_space.store(short, Ordering::Relaxed);
        if free_bytes > memtable_bytes {
            self.checkpoint_found_space(true);
        }
        let left_bytes = free_bytes.saturating_sub(memtable_bytes);
        self.set_full(left_bytes < self.reserve_bytes, free_bytes);
    }

    fn set_full(&self, full: bool, free_bytes: u64) {
        if self.full.swap(full, Ordering::Relaxed) == full {
            return;
        }
        let reserve_bytes = self.reserve_bytes;
        if full {
            tracing::error!(free_bytes, reserve_bytes, "the disk is full: the store takes reads only");
        } else {
            tracing::info!(free_bytes, reserve_bytes, "the disk has space again: the store takes writes");
        }
    }
}

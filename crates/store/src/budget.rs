//! The memory budget: one block cache, to which memtables are charged.

use std::sync::atomic::{AtomicU64, Ordering};

use rocksdb::{Cache, WriteBufferManager};

use crate::memory;

/// A smaller budget would hold hardly more than memtables.
const MIN_BYTES: u64 = 16 << 20;

/// Memtables take at most a quarter of the budget, and never more than this: larger ones make flushes
/// rarer but each commit slower, as the sorted lists outgrow the processor's caches.
const MAX_MEMTABLE_BYTES: u64 = 512 << 20;

/// What blocks, memtables and iterators may use together.
pub(crate) struct Budget {
    cache: Cache,
    memtables: WriteBufferManager,
    bytes: AtomicU64,
    peak_bytes: AtomicU64,
}

impl Budget {
    /// A budget of `bytes`, or of a quarter of the memory there is.
    pub(crate) fn new(bytes: Option<u64>) -> Self {
        let bytes = bytes.unwrap_or_else(|| memory::available_bytes() / 4).max(MIN_BYTES);
        let cache = Cache::new_hyper_clock_cache(to_usize(bytes), 0);
        let memtables = WriteBufferManager::new_write_buffer_manager_with_cache(
            to_usize(memtable_share(bytes)),
            false,
            cache.clone(),
        );
        Self { cache, memtables, bytes: AtomicU64::new(bytes), peak_bytes: AtomicU64::new(0) }
    }

    /// Grows or shrinks the budget. Shrinking evicts blocks at once and flushes memtables at the next write.
    pub(crate) fn set(&self, bytes: u64) {
        let bytes = bytes.max(MIN_BYTES);
        self.cache.clone().set_capacity(to_usize(bytes));
        self.memtables.set_buffer_size(to_usize(memtable_share(bytes)));
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    pub(crate) fn memtables(&self) -> &WriteBufferManager {
        &self.memtables
    }

    /// Bytes in use, memtables included. Remembers the most that it has seen.
    pub(crate) fn used_bytes(&self) -> u64 {
        let used = self.cache.get_usage() as u64;
        self.peak_bytes.fetch_max(used, Ordering::Relaxed);
        used
    }

    /// The most bytes in use that were seen.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.used_bytes();
        self.peak_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.memtables.get_usage() as u64
    }
}

fn memtable_share(bytes: u64) -> u64 {
    (bytes / 4).min(MAX_MEMTABLE_BYTES)
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

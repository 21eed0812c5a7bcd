//! The memory budget: one block cache, to which memtables are charged, and which is smaller by
//! what is reserved for other purposes.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use rocksdb::{Cache, LruCacheOptions, WriteBufferManager};

use crate::memory;
use crate::purpose::{Purpose, Reserved};
use crate::returning;

const MEGABYTE: u64 = 1 << 20;

/// A smaller budget would hold hardly more than memtables.
const MIN_BYTES: u64 = 16 * MEGABYTE;

/// Memtables take at most a quarter of the budget, and never more than this: larger ones make flushes
/// rarer but each commit slower, as the sorted lists outgrow the processor's caches.
const MAX_MEMTABLE_BYTES: u64 = 512 * MEGABYTE;

/// Blocks and memtables keep this many eighths of the budget, whatever is reserved.
const KEPT_EIGHTHS: u64 = 3;

/// The cache's capacity is changed when what is reserved has changed by so much.
const STEP_BYTES: u64 = MEGABYTE / 2;

/// Each shard of the cache has a lock of its own, and a share of this much or more.
const SHARD_BYTES: u64 = 4 * MEGABYTE;
const MAX_SHARD_BITS: u32 = 6;

/// What the store may use in memory.
pub(crate) struct Budget {
    cache: Cache,
    memtables: WriteBufferManager,
    bytes: AtomicU64,
    peak_bytes: AtomicU64,
    reserved: Reserved,
    /// 0: as the budget allows.
    read_ahead_bytes: AtomicU64,
    /// 0: half of what the process may open.
    open_files: AtomicU32,
    /// What the cache's capacity was made smaller by.
    taken_bytes: Mutex<u64>,
}

impl Budget {
    /// A budget of `bytes`, or of a quarter of the memory there is.
    pub(crate) fn new(bytes: Option<u64>) -> Self {
        let bytes = bytes.unwrap_or_else(|| memory::available_bytes() / 4).max(MIN_BYTES);
        // Half of this cache is for what was read more than once, which a scan of anything cannot push out; and it gives
        // back at once what it has too much. RocksDB's other cache does neither.
        let mut options = LruCacheOptions::default();
        options.set_capacity(to_usize(bytes));
        options.set_num_shard_bits(shard_bits(bytes));
        let cache = Cache::new_lru_cache_opts(&options);
        let memtables = WriteBufferManager::new_write_buffer_manager_with_cache(
            to_usize(memtable_share(bytes)),
            false,
            cache.clone(),
        );
        returning::budget_changed(0, bytes);
        Self {
            cache,
            memtables,
            bytes: AtomicU64::new(bytes),
            peak_bytes: AtomicU64::new(0),
            reserved: Reserved::default(),
            read_ahead_bytes: AtomicU64::new(0),
            open_files: AtomicU32::new(0),
            taken_bytes: Mutex::new(0),
        }
    }

    /// Grows or shrinks the budget. Shrinking evicts blocks at once and flushes memtables at the next write.
    pub(crate) fn set(&self, bytes: u64) {
        let bytes = bytes.max(MIN_BYTES);
        self.memtables.set_buffer_size(to_usize(memtable_share(bytes)));
        returning::budget_changed(self.bytes.swap(bytes, Ordering::Relaxed), bytes);
        self.fit(&mut self.taken_bytes.lock());
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

    /// Bytes in use. Remembers the most that it has seen.
    pub(crate) fn used_bytes(&self) -> u64 {
        let used = self.cache_bytes() + self.reserved.total();
        self.peak_bytes.fetch_max(used, Ordering::Relaxed);
        used
    }

    /// The most bytes in use that were seen.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.used_bytes();
        self.peak_bytes.load(Ordering::Relaxed)
    }

    /// Blocks, memtables and files that are built.
    pub(crate) fn cache_bytes(&self) -> u64 {
        self.cache.get_usage() as u64
    }

    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.memtables.get_usage() as u64
    }

    pub(crate) fn reserved_for(&self, purpose: Purpose) -> u64 {
        self.reserved.of(purpose)
    }

    /// Reserves `new` bytes where there were `old` ones.
    pub(crate) fn reserve(&self, purpose: Purpose, old: u64, new: u64) {
        self.reserved.replace(purpose, old, new);
        // Somebody who has the lock looks at the total after this, or else the next one does.
        if let Some(mut taken) = self.taken_bytes.try_lock()
            && self.reserved.total().abs_diff(*taken) >= STEP_BYTES
        {
            self.fit(&mut taken);
        }
    }

    /// Lets the cache have what is not reserved.
    pub(crate) fn fit_reserved(&self) {
        self.fit(&mut self.taken_bytes.lock());
    }

    fn fit(&self, taken: &mut u64) {
        *taken = self.reserved.total();
        let bytes = self.bytes();
        let capacity = bytes.saturating_sub(*taken).max(bytes / 8 * KEPT_EIGHTHS);
        self.cache.clone().set_capacity(to_usize(capacity));
    }

    /// What a compaction or a long scan reads at once, of each file that it is in.
    pub(crate) fn read_ahead_bytes(&self) -> usize {
        const MAX: u64 = 2 << 20;
        const MIN: u64 = 256 << 10;
        const MAX_SET: u64 = 16 << 20;
        let set = self.read_ahead_bytes.load(Ordering::Relaxed);
        if set > 0 {
            return to_usize(set.min(MAX_SET));
        }
        to_usize((self.bytes() / 128).clamp(MIN, MAX))
    }

    /// How many files a tree that is opened with this budget keeps open.
    pub(crate) fn open_files(&self) -> Option<u32> {
        Some(self.open_files.load(Ordering::Relaxed)).filter(|files| *files > 0)
    }

    /// Sets it for trees that are opened later.
    pub(crate) fn set_open_files(&self, files: Option<u32>) {
        self.open_files.store(files.unwrap_or(0), Ordering::Relaxed);
    }

    /// Sets it; 0: as the budget allows.
    pub(crate) fn set_read_ahead(&self, bytes: u64) {
        self.read_ahead_bytes.store(bytes, Ordering::Relaxed);
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        returning::budget_changed(self.bytes(), 0);
    }
}

fn memtable_share(bytes: u64) -> u64 {
    (bytes / 4).min(MAX_MEMTABLE_BYTES)
}

fn shard_bits(bytes: u64) -> i32 {
    let bits = (bytes / SHARD_BYTES).max(1).ilog2().min(MAX_SHARD_BITS);
    i32::try_from(bits).unwrap_or_default()
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

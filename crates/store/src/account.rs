//! What each user of the store reads and writes. Keys of one user begin with the same four bytes.
//!
//! Counting costs an addition for each key. Blocks that came from files are counted by RocksDB for the thread that reads
//! them; a cursor takes the difference from its making to its end, less what other reads in between have taken.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;

use rocksdb::{PerfContext, PerfMetric};

use crate::Family;

/// Numbers beyond `GROUPS * GROUP` are counted together.
const GROUPS: usize = 4096;
const GROUP: usize = 256;

/// What was read and written under keys that begin with one number, since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Keys looked up, and entries that cursors gave.
    pub reads: u64,
    /// Blocks that were in no memory of the store when they were needed, about.
    pub blocks_from_files: u64,
    /// Keys put and deleted.
    pub writes: u64,
    /// Bytes of these.
    pub written_bytes: u64,
}

#[derive(Default)]
pub(crate) struct Account {
    reads: AtomicU64,
    blocks_from_files: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
}

impl Account {
    pub(crate) fn wrote(&self, bytes: usize) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts this many reads, and the blocks that `read` takes from files.
    pub(crate) fn reading<T>(&self, reads: usize, read: impl FnOnce() -> T) -> T {
        let before = blocks_read();
        let found = read();
        self.took(reads as u64, blocks_read().saturating_sub(before));
        found
    }

    fn took(&self, reads: u64, blocks: u64) {
        self.reads.fetch_add(reads, Ordering::Relaxed);
        if blocks > 0 {
            self.blocks_from_files.fetch_add(blocks, Ordering::Relaxed);
            let _ = THREAD.try_with(|thread| thread.taken.set(thread.taken.get().saturating_add(blocks)));
        }
    }
}

/// All accounts.
pub(crate) struct Accounts {
    groups: Box<[OnceLock<Box<[Account]>>]>,
    others: Account,
}

impl Default for Accounts {
    fn default() -> Self {
        Self { groups: (0..GROUPS).map(|_| OnceLock::new()).collect(), others: Account::default() }
    }
}

impl Accounts {
    /// The account that a key belongs to. Contents are shared, and what is known of the store as a whole is nobody's.
    pub(crate) fn of(&self, family: Family, key: &[u8]) -> &Account {
        match (family, key.first_chunk::<4>()) {
            (Family::Meta | Family::Blob, _) | (_, None) => &self.others,
            (_, Some(number)) => self.numbered(u32::from_be_bytes(*number)).unwrap_or(&self.others),
        }
    }

    fn numbered(&self, number: u32) -> Option<&Account> {
        let number = usize::try_from(number).ok()?;
        let group = self.groups.get(number / GROUP)?;
        group.get_or_init(|| (0..GROUP).map(|_| Account::default()).collect()).get(number % GROUP)
    }

    pub(crate) fn usage(&self, number: u32) -> Usage {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let group = self.groups.get(number / GROUP).and_then(OnceLock::get);
        let Some(account) = group.and_then(|group| group.get(number % GROUP)) else {
            return Usage::default();
        };
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Usage {
            reads: read(&account.reads),
            blocks_from_files: read(&account.blocks_from_files),
            writes: read(&account.writes),
            written_bytes: read(&account.written_bytes),
        }
    }
}

/// What a cursor reads, until it is dropped.
pub(crate) struct Reading<'a> {
    account: &'a Account,
    reads: u64,
    thread: ThreadId,
    /// Blocks that the thread had read, and those of them that had been taken.
    begun: (u64, u64),
}

impl<'a> Reading<'a> {
    pub(crate) fn new(account: &'a Account) -> Self {
        Self {
            account,
            reads: 0,
            thread: std::thread::current().id(),
            begun: (blocks_read(), blocks_taken()),
        }
    }

    pub(crate) fn count(&mut self) {
        self.reads += 1;
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        // Another thread knows nothing of the blocks.
        let is_here = self.thread == std::thread::current().id();
        let (read, taken) = if is_here { (blocks_read(), blocks_taken()) } else { self.begun };
        let all = read.saturating_sub(self.begun.0);
        self.account.took(self.reads, all.saturating_sub(taken.saturating_sub(self.begun.1)));
    }
}

/// What is known of blocks on one thread.
struct Thread {
    context: PerfContext,
    /// Blocks that are in an account.
    taken: Cell<u64>,
}

thread_local! {
    static THREAD: Thread = Thread { context: PerfContext::default(), taken: Cell::new(0) };
}

fn blocks_read() -> u64 {
    THREAD.try_with(|thread| thread.context.metric(PerfMetric::BlockReadCount)).unwrap_or_default()
}

fn blocks_taken() -> u64 {
    THREAD.try_with(|thread| thread.taken.get()).unwrap_or_default()
}

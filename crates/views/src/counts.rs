//! What is counted of the views of all databases.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Who waits for an update. What readers wait for is counted by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Reader,
    Nobody,
}

/// Since the start.
#[derive(Default)]
pub(crate) struct ViewCounts {
    pub(crate) builds: AtomicU64,
    pub(crate) build_us: AtomicU64,
    pub(crate) spilled_bytes: AtomicU64,
    pub(crate) read_again: AtomicU64,
    pub(crate) refreshes: AtomicU64,
    pub(crate) refresh_us: AtomicU64,
    pub(crate) script_us: AtomicU64,
    pub(crate) script_failures: AtomicU64,
    pub(crate) for_readers: UpdateCounts,
    pub(crate) for_nobody: UpdateCounts,
}

/// Of indexes that were there.
#[derive(Default)]
pub(crate) struct UpdateCounts {
    pub(crate) updates: AtomicU64,
    pub(crate) changes: AtomicU64,
    pub(crate) took_us: AtomicU64,
}

impl ViewCounts {
    /// Indexes were built from all documents together, with this many bytes of sorted files.
    pub(super) fn built(&self, took: Duration, spilled_bytes: u64) {
        add(&self.builds, 1);
        add(&self.build_us, micros(took));
        add(&self.spilled_bytes, spilled_bytes);
    }

    /// An index that was discarded because nobody read it is read.
    pub(super) fn read_again(&self) {
        add(&self.read_again, 1);
    }

    /// A view that depends on the time was evaluated again, whole.
    pub(super) fn refreshed(&self, took: Duration) {
        add(&self.refreshes, 1);
        add(&self.refresh_us, micros(took));
    }

    /// Map functions were run.
    pub(super) fn ran_scripts(&self, took: Duration) {
        add(&self.script_us, micros(took));
    }

    /// Indexes that are updated together were this many changes behind, and that took so long. None were behind, and a
    /// reader waited all the same, where another had begun to update them.
    pub(super) fn updated(&self, waiting: Waiting, changes: u64, took: Duration) {
        let counts = match waiting {
            Waiting::Reader => &self.for_readers,
            Waiting::Nobody => &self.for_nobody,
        };
        if changes > 0 {
            add(&counts.updates, 1);
            add(&counts.changes, changes);
        }
        add(&counts.took_us, micros(took));
    }

    /// A function failed on a document, or as a whole.
    pub(super) fn script_failed(&self) {
        add(&self.script_failures, 1);
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

pub(crate) fn value(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

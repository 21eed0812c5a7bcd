//! What memory besides blocks and memtables is used for, and how it is taken from the budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scrinium_assertion::never;

use crate::budget::Budget;

/// A use of memory that is no block and no memtable. Anyone who holds much of it reserves it, and the store keeps so much
/// less of its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The counted trees of views' indexes.
    ViewTrees,
    /// Views that are being built: documents on their way, entries that are sorted, sorted files that are merged.
    ViewBuilds,
    /// What long scans read ahead.
    Scans,
    /// Files of the store that are open, without their blocks.
    OpenFiles,
    /// Bodies of requests.
    Requests,
}

impl Purpose {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] =
        [Self::ViewTrees, Self::ViewBuilds, Self::Scans, Self::OpenFiles, Self::Requests];

    /// The last part of its statistic's name, as in `Database.BufferPool.ByPurpose.ViewTrees`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ViewTrees => "ViewTrees",
            Self::ViewBuilds => "ViewBuilds",
            Self::Scans => "Scans",
            Self::OpenFiles => "OpenFiles",
            Self::Requests => "Requests",
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::ViewTrees => 0,
            Self::ViewBuilds => 1,
            Self::Scans => 2,
            Self::OpenFiles => 3,
            Self::Requests => 4,
        }
    }
}

/// What is reserved, by purpose.
#[derive(Debug, Default)]
pub(crate) struct Reserved {
    by_purpose: [AtomicU64; Purpose::ALL.len()],
}

impl Reserved {
    pub(crate) fn of(&self, purpose: Purpose) -> u64 {
        self.counter(purpose).map_or(0, |bytes| bytes.load(Ordering::Relaxed))
    }

    fn counter(&self, purpose: Purpose) -> Option<&AtomicU64> {
        let counter = self.by_purpose.get(purpose.index());
        if counter.is_none() {
            never!("each purpose has a counter", "{purpose:?}");
        }
        counter
    }

    pub(crate) fn total(&self) -> u64 {
        self.by_purpose.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }

    /// Reserves `new` bytes where there were `old` ones.
    pub(crate) fn replace(&self, purpose: Purpose, old: u64, new: u64) {
        let Some(bytes) = self.counter(purpose) else { return };
        if new >= old {
            bytes.fetch_add(new - old, Ordering::Relaxed);
        } else {
            bytes.fetch_sub(old - new, Ordering::Relaxed);
        }
    }
}

/// Memory taken from the budget until this is dropped.
pub struct Reservation {
    budget: Arc<Budget>,
    purpose: Purpose,
    bytes: AtomicU64,
}

impl Reservation {
    pub(crate) fn new(budget: &Arc<Budget>, purpose: Purpose, bytes: u64) -> Self {
        let this = Self { budget: Arc::clone(budget), purpose, bytes: AtomicU64::new(0) };
        this.set(bytes);
        this
    }

    /// Takes more, or gives back. It is never refused: memory that is needed is used, and blocks make room.
    pub fn set(&self, bytes: u64) {
        let old = self.bytes.swap(bytes, Ordering::Relaxed);
        if old != bytes {
            self.budget.reserve(self.purpose, old, bytes);
        }
    }

    /// How much it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} bytes for {}", self.bytes(), self.purpose.name())
    }
}

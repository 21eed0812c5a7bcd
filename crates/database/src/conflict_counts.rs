//! How many documents have come into conflict since the start, and how many of them are in conflict no more.

use std::sync::atomic::{AtomicU64, Ordering};

use scrinium_document::RevisionTree;

/// What updates have done since the start.
#[derive(Default)]
pub struct ConflictCounts {
    made: AtomicU64,
    settled: AtomicU64,
}

/// What one update does.
#[derive(Clone, Copy, Default)]
pub(crate) struct ConflictChange {
    made: u64,
    settled: u64,
}

impl ConflictCounts {
    /// Documents that got a second leaf that is not deleted.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Documents that have one such leaf, or none, where they had several.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, change: ConflictChange) {
        self.made.fetch_add(change.made, Ordering::Relaxed);
        self.settled.fetch_add(change.settled, Ordering::Relaxed);
    }
}

impl ConflictChange {
    /// A document's revisions were these, and are those.
    pub(crate) fn note(&mut self, before: &RevisionTree, after: &RevisionTree) {
        match (is_in_conflict(before), is_in_conflict(after)) {
            (false, true) => self.made += 1,
            (true, false) => self.settled += 1,
            _ => {}
        }
    }
}

fn is_in_conflict(tree: &RevisionTree) -> bool {
    tree.leaf_count() > 1 && tree.unordered_leaves().filter(|(leaf, _)| !leaf.deleted).count() > 1
}

//! What a replication has done so far, in CouchDB's words.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};

/// Counters of one replication; they only grow within a session.
#[derive(Debug, Default)]
pub struct Counts {
    /// Revisions that the target was asked about.
    pub revisions_checked: AtomicU64,
    /// Those of them that it had not.
    pub missing_revisions_found: AtomicU64,
    /// Documents that were asked for and came.
    pub docs_read: AtomicU64,
    /// Documents that the target took.
    pub docs_written: AtomicU64,
    /// Documents that it refused.
    pub doc_write_failures: AtomicU64,
    /// Requests for many documents at once.
    pub bulk_get_attempts: AtomicU64,
    /// Documents that came by them.
    pub bulk_get_docs: AtomicU64,
    /// Checkpoints that were written.
    pub checkpoints_written: AtomicU64,
    /// Bytes of attachments that were sent on.
    pub attachment_bytes: AtomicU64,
    /// Documents that the target has now in more than one leaf, as the source has them.
    pub conflicts_seen: AtomicU64,
    place: Mutex<Place>,
}

/// How far a replication is.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The last change of the source that was looked at.
    pub source_sequence: Option<String>,
    /// Everything up to here is at the target.
    pub through_sequence: Option<String>,
    /// Everything up to here would not be looked at again.
    pub checkpointed_sequence: Option<String>,
    /// Changes still to look at, where the source says so.
    pub pending: Option<u64>,
    /// The last refusal of a document.
    pub last_refusal: Option<String>,
}

pub(crate) fn add(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Counts {
    /// How far it is.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place.lock().clone()
    }

    pub(crate) fn change_place(&self, change: impl FnOnce(&mut Place)) {
        change(&mut self.place.lock());
    }

    /// What a checkpoint's history tells.
    #[must_use]
    pub fn of_history(&self) -> [(&'static str, u64); 7] {
        [
            ("missing_checked", read(&self.revisions_checked)),
            ("missing_found", read(&self.missing_revisions_found)),
            ("docs_read", read(&self.docs_read)),
            ("docs_written", read(&self.docs_written)),
            ("doc_write_failures", read(&self.doc_write_failures)),
            ("bulk_get_docs", read(&self.bulk_get_docs)),
            ("bulk_get_attempts", read(&self.bulk_get_attempts)),
        ]
    }

    /// What `_scheduler/jobs` and `_active_tasks` tell.
    #[must_use]
    pub fn shown(&self) -> Value {
        let place = self.place();
        json!({
            "revisions_checked": read(&self.revisions_checked),
            "missing_revisions_found": read(&self.missing_revisions_found),
            "docs_read": read(&self.docs_read),
            "docs_written": read(&self.docs_written),
            "doc_write_failures": read(&self.doc_write_failures),
            "bulk_get_attempts": read(&self.bulk_get_attempts),
            "bulk_get_docs": read(&self.bulk_get_docs),
            "attachment_bytes": read(&self.attachment_bytes),
            "conflicts_seen": read(&self.conflicts_seen),
            "changes_pending": place.pending,
            "source_seq": place.source_sequence,
            "through_seq": place.through_sequence,
            "checkpointed_source_seq": place.checkpointed_sequence,
        })
    }
}

/// Documents that the target took.
pub(crate) fn written(counts: &Counts) -> u64 {
    read(&counts.docs_written)
}

//! The index follows the documents: what others have written comes by the change feed.

use scrinium_database::{ChangesQuery, DatabaseError, Since};
use scrinium_mail_queue::{QueueEntry, QueuePolicy};

use super::{QueueManager, Told};
use crate::index::{DiskDueIndex, IndexedEntry};

/// Changes taken from the feed at a time.
const CHANGES_AT_ONCE: usize = 256;

/// Entries of which something is left to do, read at a time.
const UNSETTLED_AT_ONCE: usize = 1_000;

impl IndexedEntry {
    /// What an entry is to the index at this time.
    #[must_use]
    pub fn of(entry: &QueueEntry, now_ms: u64, policy: &QueuePolicy) -> Self {
        let row = entry.due_row(policy);
        let is_unsettled = entry.attempt.is_some()
            || entry.notice(now_ms, policy).is_some()
            || (row.is_none() && entry.hold.is_none());
        Self { row, lane: entry.lane(), queue: entry.queue(), is_unsettled }
    }
}

impl QueueManager {
    /// Brings the index up to date.
    pub(super) fn follow(&mut self) -> Result<(), DatabaseError> {
        self.follow_move()?;
        let visible = self.database.visible_change_number();
        if visible < self.reached {
            // The database is an earlier one than the index was made from, as after a restore.
            self.index.clear()?;
            self.reached = 0;
        }
        if visible == self.reached {
            return Ok(());
        }
        let since = Since::At(self.database.sequence_text(self.reached));
        let query = ChangesQuery { since, ..ChangesQuery::default() };
        let mut changes = self.database.changes(query, &scrinium_mail::QUEUE_KEEPER)?;
        let now_ms = self.clock.now_ms();
        loop {
            let some = changes.next_changes(CHANGES_AT_ONCE)?;
            if some.is_empty() {
                break;
            }
            for change in some {
                self.reached = change.change_number;
                let own = self.own.remove(&change.id);
                let is_own = own.is_some() && own.as_ref() == change.revisions.first();
                if is_own || change.id.starts_with("_design/") {
                    continue;
                }
                let document = if change.deleted { None } else { self.read(&change.id)? };
                match document {
                    Some(document) => {
                        let indexed = IndexedEntry::of(&document.entry, now_ms, &self.options.policy);
                        self.index.set(&change.id, Some(&indexed))?;
                        self.tell_queued(&document.entry, &change.revisions);
                        if indexed.is_unsettled {
                            self.unsettled.insert(change.id.as_str().into());
                        }
                    }
                    None => self.index.set(&change.id, None)?,
                }
            }
            self.index.set_position(self.reached)?;
        }
        Ok(())
    }

    /// A message was put into the queue.
    fn tell_queued(&self, entry: &QueueEntry, revisions: &[String]) {
        let is_new = revisions.first().is_some_and(|revision| revision.starts_with("1-"));
        if let Some(told) = self.on_record.as_ref().filter(|_| is_new) {
            told(&Told { record: &entry.snapshot(entry.arrived_ms), entry });
        }
    }

    /// The database may have been moved to another volume, where there is no index yet.
    fn follow_move(&mut self) -> Result<(), DatabaseError> {
        let Some(moved) = self.database.moved() else { return Ok(()) };
        self.index = DiskDueIndex::open(moved.store().clone(), moved.number())?;
        self.index.clear()?;
        self.database = moved;
        self.reached = 0;
        self.own.clear();
        Ok(())
    }

    /// What the last manager left undone.
    pub(super) fn take_up_unsettled(&mut self) -> Result<(), DatabaseError> {
        let mut after = String::new();
        loop {
            let ids = self.index.unsettled(&after, UNSETTLED_AT_ONCE)?;
            let Some(last) = ids.last() else { return Ok(()) };
            last.as_ref().clone_into(&mut after);
            self.unsettled.extend(ids);
        }
    }
}

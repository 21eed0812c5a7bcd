//! What the next update of a database builds on, and what was read ahead for it.
//!
//! Updates are put into the log in the order of the writer's lock and synced outside of it, so a document's
//! last update may not be in the store yet: it is *pending* and kept here. To keep the lock short, the heads
//! of the documents that an update changes are read before it takes the lock. What was read then still
//! holds if every change since then is known here; so the heads of changes that have just become visible
//! stay a while when other updates are on their way.

#![allow(missing_docs, reason = "the names say it")]

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use scrinium_document::Revision;
use scrinium_store::{FailureEpoch, Family};

use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::head::Head;
use crate::header::Header;
use crate::keys;
use crate::update::records::Staged;

/// At most this many documents stay known after they became visible, as long as other updates are on their way.
const RECENT_MAX: usize = 128;

/// What the next update builds on. It may be ahead of what readers find.
pub struct Writer {
    pub header: Header,
    /// How many writes of the store had failed when `header` was read from it.
    pub failures: FailureEpoch,
    /// Documents whose last update may not be visible yet, and some of those visible since lately.
    pending: HashMap<String, Pending>,
    /// Changes of `pending` that may not be visible yet, in their order.
    waiting: VecDeque<(u64, String)>,
    /// Changes of `pending` that are visible, in their order; the store has their leaves.
    recent: VecDeque<(u64, String)>,
    /// No change after this one is unknown here.
    forgotten: u64,
    /// Records of folders and marks whose last change may not be visible yet.
    records: Staged,
}

/// A document as an update left it.
#[derive(Clone)]
pub struct Pending {
    pub head: Head,
    /// The records of those leaves that were written since what the store shows.
    pub leaves: BTreeMap<Revision, Bytes>,
}

impl Writer {
    /// `failures` must have been read before `header`.
    pub fn new(header: Header, failures: FailureEpoch) -> Self {
        Self {
            forgotten: header.change_number,
            header,
            failures,
            pending: HashMap::new(),
            waiting: VecDeque::new(),
            recent: VecDeque::new(),
            records: Staged::default(),
        }
    }

    pub(crate) const fn records(&self) -> &Staged {
        &self.records
    }

    /// Keeps the records that the last update wrote until they are visible.
    pub(crate) fn add_records(&mut self, written: BTreeMap<Vec<u8>, Option<Bytes>>) {
        self.records.add(self.header.change_number, written);
    }

    /// Keeps what an update has made of documents and records, whose header this has already.
    pub(crate) fn add_all(
        &mut self,
        changed: HashMap<String, Pending>,
        records: BTreeMap<Vec<u8>, Option<Bytes>>,
    ) {
        let mut changed: Vec<(String, Pending)> = changed.into_iter().collect();
        changed.sort_unstable_by_key(|(_, pending)| pending.head.change_number);
        for (id, pending) in changed {
            self.add_pending(&id, pending);
        }
        self.add_records(records);
    }

    pub fn pending(&self, id: &str) -> Option<&Pending> {
        self.pending.get(id)
    }

    pub(crate) fn add_pending(&mut self, id: &str, pending: Pending) {
        self.waiting.push_back((pending.head.change_number, id.to_owned()));
        self.pending.insert(id.to_owned(), pending);
    }

    /// Whether what was read of a document when change `seen` was visible is what the store shows of it, if it
    /// is not pending.
    pub(crate) const fn knows_all_since(&self, seen: u64) -> bool {
        self.forgotten <= seen
    }

    /// Documents changed with `change_number` that are not pending, and the store shows it: what was read of any before
    /// no longer holds.
    pub fn forget_what_was_read_before(&mut self, change_number: u64) {
        self.forgotten = self.forgotten.max(change_number);
    }

    /// Forgets what the store shows, but for `keep` documents.
    pub(crate) fn forget_visible(&mut self, visible: u64, keep: usize) {
        self.records.forget_visible(visible);
        while let Some((number, id)) = self.waiting.pop_front_if(|(number, _)| *number <= visible) {
            if let Some(pending) = self.pending.get_mut(&id)
                && pending.head.change_number == number
            {
                pending.leaves = BTreeMap::new();
            }
            self.recent.push_back((number, id));
        }
        while self.recent.len() > keep {
            let Some((number, id)) = self.recent.pop_front() else { return };
            self.forget_what_was_read_before(number);
            // A later update of the same document has put a later entry in its place.
            if self.pending.get(&id).is_some_and(|pending| pending.head.change_number == number) {
                self.pending.remove(&id);
            }
        }
    }
}

/// How many documents stay known for the sake of `ahead` other updates on their way.
pub(crate) const fn kept_for(ahead: usize) -> usize {
    if ahead == 0 { 0 } else { RECENT_MAX }
}

/// The heads of the documents that an update changes, as read before its lock.
pub struct PrefetchedHeads {
    database: Arc<Database>,
    /// The last change visible before the heads were read.
    seen: u64,
    /// `None`: there is no such document.
    heads: HashMap<String, Option<Head>>,
}

impl PrefetchedHeads {
    pub fn read<'a>(database: &Arc<Database>, ids: impl Iterator<Item = &'a str>) -> Result<Self> {
        database.ahead.fetch_add(1, Ordering::AcqRel);
        let seen = database.visible_change_number();
        let mut prefetched = Self { database: Arc::clone(database), seen, heads: HashMap::new() };
        for id in ids {
            if !prefetched.heads.contains_key(id) {
                prefetched.heads.insert(id.to_owned(), stored_head(database, id)?);
            }
        }
        Ok(prefetched)
    }

    /// Other updates of the database on their way.
    pub fn others(&self) -> usize {
        self.database.ahead.load(Ordering::Acquire).saturating_sub(1)
    }

    /// The head of a document that is not pending with `writer`, whose lock is held.
    pub fn head(&mut self, writer: &Writer, id: &str) -> Result<Option<Head>> {
        match self.heads.remove(id) {
            Some(head) if writer.knows_all_since(self.seen) => Ok(head),
            _ => stored_head(&self.database, id),
        }
    }
}

impl Drop for PrefetchedHeads {
    fn drop(&mut self) {
        self.database.ahead.fetch_sub(1, Ordering::AcqRel);
    }
}

fn stored_head(database: &Database, id: &str) -> Result<Option<Head>> {
    let stored = database.store().get(Family::Point, &keys::head(database.number(), id))?;
    let decode =
        |bytes: &[u8]| Head::decode(bytes).ok_or_else(|| DatabaseError::damaged("revision tree", id));
    stored.as_deref().map(decode).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An update that had read a tombstone before took one that was purged meanwhile for one that is there, and counted it
    /// once too often.
    #[test]
    fn what_a_purge_made_old_stays_old_when_earlier_changes_become_visible() {
        let mut writer = Writer::new(Header::new("a", [0; 16], 0), FailureEpoch::default());
        writer.header.change_number = 1;
        let head = Head { change_number: 1, ..Head::default() };
        writer.add_pending("a", Pending { head, leaves: BTreeMap::new() });
        writer.forget_what_was_read_before(3);
        writer.forget_visible(3, 0);
        assert!(!writer.knows_all_since(2));
        assert!(writer.knows_all_since(3));
    }
}

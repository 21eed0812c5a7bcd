//! The index by due time: what the scheduler asks of it, and one in memory that shows what the answers are.
//!
//! The index follows from the records: each entry's [`QueueEntry::due_row`](crate::QueueEntry::due_row) replaces the row
//! that it had, in the same batch as its record. Only [`DueIndex::postpone`] is the scheduler's own, and may be forgotten at
//! any time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;

use crate::message::{Destination, Priority};

/// Who takes a turn: a sender's messages of one priority.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SenderLane {
    /// How urgent they are.
    pub priority: Priority,
    /// The person or address.
    pub sender: Arc<str>,
}

/// What one sender has for one destination.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    /// Whose turn it takes.
    pub sender: SenderLane,
    /// Where it goes.
    pub destination: Arc<Destination>,
}

/// An entry in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueRow {
    /// The entry's id.
    pub id: Arc<str>,
    /// Its sender and destination.
    pub lane: Lane,
    /// When it is to be tried.
    pub due_ms: Option<u64>,
    /// When it is to be looked at in any case.
    pub deadline_ms: Option<u64>,
}

/// An index by due time. Each call costs O(log n) and what it gives.
///
/// Four orders of keys do it: (due, id); (lane, due, id); (sender, time of the lane, destination); and (time of the sender,
/// sender). The time of a lane is its first due time, or later if it was postponed; that of a sender is that of the first lane.
pub trait DueIndex {
    /// What reading may report.
    type Error;

    /// Senders with a lane whose time is reached, in the order of their times, behind `after`.
    ///
    /// # Errors
    /// What reading reports.
    fn due_senders(
        &mut self,
        now_ms: u64,
        after: Option<&(u64, SenderLane)>,
        limit: usize,
    ) -> Result<Vec<(u64, SenderLane)>, Self::Error>;

    /// Destinations for which a sender has a lane whose time is reached, in the order of their times.
    ///
    /// # Errors
    /// What reading reports.
    fn due_lanes(
        &mut self,
        sender: &SenderLane,
        now_ms: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Destination>>, Self::Error>;

    /// Entries of a lane that are due, in the order of their times.
    ///
    /// # Errors
    /// What reading reports.
    fn due_entries(&mut self, lane: &Lane, now_ms: u64, limit: usize) -> Result<Vec<Arc<str>>, Self::Error>;

    /// Until this time the lane is not due, unless a row of it is set before: a message arrives, or somebody wants one tried.
    ///
    /// # Errors
    /// What writing reports.
    fn postpone(&mut self, lane: &Lane, until_ms: u64) -> Result<(), Self::Error>;

    /// Entries whose deadline is reached, in the order of their deadlines.
    ///
    /// # Errors
    /// What reading reports.
    fn due_deadlines(&mut self, now_ms: u64, limit: usize) -> Result<Vec<Arc<str>>, Self::Error>;

    /// The first time after `now_ms` at which an entry is due, a lane's pause ends or a deadline comes.
    ///
    /// # Errors
    /// What reading reports.
    fn next_ms(&mut self, now_ms: u64) -> Result<Option<u64>, Self::Error>;
}

#[derive(Debug, Default)]
struct LaneRows {
    rows: BTreeSet<(u64, Arc<str>)>,
    not_before_ms: u64,
}

impl LaneRows {
    /// When the lane's turn comes; `None` if it is empty.
    fn time_ms(&self) -> Option<u64> {
        self.rows.first().map(|(due_ms, _)| (*due_ms).max(self.not_before_ms))
    }
}

/// An index in memory: for small queues, and as the model of one on the disk.
#[derive(Debug, Default)]
pub struct MemoryDueIndex {
    rows: HashMap<Arc<str>, DueRow>,
    by_due: BTreeSet<(u64, Arc<str>)>,
    by_deadline: BTreeSet<(u64, Arc<str>)>,
    lanes: HashMap<Lane, LaneRows>,
    senders: HashMap<SenderLane, BTreeSet<(u64, Arc<Destination>)>>,
    by_sender: BTreeSet<(u64, SenderLane)>,
    pauses: BTreeMap<u64, usize>,
}

impl MemoryDueIndex {
    /// Replaces the row of an entry, or removes it.
    pub fn set(&mut self, id: &str, row: Option<DueRow>) {
        if let Some(old) = self.rows.remove(id) {
            if let Some(due_ms) = old.due_ms {
                let key = (due_ms, Arc::clone(&old.id));
                self.by_due.remove(&key);
                self.change_lane(&old.lane, |lane| {
                    lane.rows.remove(&key);
                });
            }
            if let Some(deadline_ms) = old.deadline_ms {
                self.by_deadline.remove(&(deadline_ms, old.id));
            }
        }
        let Some(row) = row else { return };
        if let Some(due_ms) = row.due_ms {
            let key = (due_ms, Arc::clone(&row.id));
            self.by_due.insert(key.clone());
            self.change_lane(&row.lane, |lane| {
                lane.not_before_ms = 0;
                lane.rows.insert(key);
            });
        }
        if let Some(deadline_ms) = row.deadline_ms {
            self.by_deadline.insert((deadline_ms, Arc::clone(&row.id)));
        }
        self.rows.insert(Arc::clone(&row.id), row);
    }

    /// Entries that it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Changes a lane, and brings the times of it and its sender into order.
    fn change_lane(&mut self, lane: &Lane, change: impl FnOnce(&mut LaneRows)) {
        let rows = self.lanes.entry(lane.clone()).or_default();
        let before = rows.time_ms();
        change(rows);
        let after = rows.time_ms();
        if after.is_none() {
            self.lanes.remove(lane);
        }
        if before == after {
            return;
        }
        let times = self.senders.entry(lane.sender.clone()).or_default();
        let first_before = times.first().map(|(time_ms, _)| *time_ms);
        if let Some(before) = before {
            times.remove(&(before, Arc::clone(&lane.destination)));
        }
        if let Some(after) = after {
            times.insert((after, Arc::clone(&lane.destination)));
        }
        let first_after = times.first().map(|(time_ms, _)| *time_ms);
        if times.is_empty() {
            self.senders.remove(&lane.sender);
        }
        if first_before != first_after {
            if let Some(time_ms) = first_before {
                self.by_sender.remove(&(time_ms, lane.sender.clone()));
            }
            if let Some(time_ms) = first_after {
                self.by_sender.insert((time_ms, lane.sender.clone()));
            }
        }
    }
}

impl DueIndex for MemoryDueIndex {
    type Error = Infallible;

    fn due_senders(
        &mut self,
        now_ms: u64,
        after: Option<&(u64, SenderLane)>,
        limit: usize,
    ) -> Result<Vec<(u64, SenderLane)>, Infallible> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = self.by_sender.range::<(u64, SenderLane), _>((start, Bound::Unbounded));
        Ok(range.take_while(|(time_ms, _)| *time_ms <= now_ms).take(limit).cloned().collect())
    }

    fn due_lanes(
        &mut self,
        sender: &SenderLane,
        now_ms: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Destination>>, Infallible> {
        let times = self.senders.get(sender).into_iter().flatten();
        let due = times.take_while(|(time_ms, _)| *time_ms <= now_ms).take(limit);
        Ok(due.map(|(_, destination)| Arc::clone(destination)).collect())
    }

    fn due_entries(&mut self, lane: &Lane, now_ms: u64, limit: usize) -> Result<Vec<Arc<str>>, Infallible> {
        let rows = self.lanes.get(lane).into_iter().flat_map(|lane| &lane.rows);
        let due = rows.take_while(|(due_ms, _)| *due_ms <= now_ms).take(limit);
        Ok(due.map(|(_, id)| Arc::clone(id)).collect())
    }

    fn postpone(&mut self, lane: &Lane, until_ms: u64) -> Result<(), Infallible> {
        if self.lanes.contains_key(lane) {
            self.change_lane(lane, |rows| rows.not_before_ms = until_ms);
            // A pause is forgotten when it is over; that a lane is emptied before does no harm.
            *self.pauses.entry(until_ms).or_default() += 1;
        }
        Ok(())
    }

    fn due_deadlines(&mut self, now_ms: u64, limit: usize) -> Result<Vec<Arc<str>>, Infallible> {
        let due = self.by_deadline.iter().take_while(|(deadline_ms, _)| *deadline_ms <= now_ms).take(limit);
        Ok(due.map(|(_, id)| Arc::clone(id)).collect())
    }

    fn next_ms(&mut self, now_ms: u64) -> Result<Option<u64>, Infallible> {
        self.pauses = self.pauses.split_off(&now_ms.saturating_add(1));
        let later = (now_ms.saturating_add(1), Arc::from(""));
        let first =
            |times: &BTreeSet<(u64, Arc<str>)>| times.range(later.clone()..).next().map(|(ms, _)| *ms);
        let pause = self.pauses.first_key_value().map(|(ms, _)| *ms);
        Ok([first(&self.by_due), first(&self.by_deadline), pause].into_iter().flatten().min())
    }
}

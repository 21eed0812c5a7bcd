//! The index by due time, in the store: derived from the queue's documents, and read in their place, so that what waits takes
//! no memory.
//!
//! | key behind number `FFFFFFFC` | value |
//! |---|---|
//! | `r` id | [`StoredRow`], as JSON |
//! | `d` due time, id | |
//! | `x` deadline, id | |
//! | `u` id | something is left to do for the entry, whatever its times: an attempt under way, a notice, its end |
//! | `l` lane, due time, id | |
//! | `L` lane | [`StoredLane`], as JSON |
//! | `s` sender, time of the lane, lane | |
//! | `t` time of the sender, sender's name | |
//! | `p` end of a lane's pause, lane | |
//! | `m` | [`Position`], as JSON |
//!
//! A lane is written as the hash of its sender and destination, a sender as that of its name and priority; times as 8 bytes,
//! big endian. All lies in one family. A row is replaced in one batch with all orders. The position among the queue's changes
//! follows behind: after a crash some rows are set again, to what they are.
//!
//! A key that was removed leaves a mark that a cursor must pass. What is looked for lies at the beginning of an order, where most is
//! removed; so for each order the first key that may be there is remembered ([`Front`]), and cursors begin at it.

use std::collections::HashMap;
use std::sync::Arc;

use scrinium_mail_queue::{Destination, DueIndex, DueRow, Lane, Priority, Queue, SenderLane};
use scrinium_store::{Batch, Direction, Family, KeyRange, ScanOptions, Store, StoreError, prefix_end};
use serde::{Deserialize, Serialize};

const FAMILY: Family = Family::DerivedChurn;

/// Apart from all indexes of the database.
const APART: [u8; 4] = [0xff, 0xff, 0xff, 0xfc];

/// Orders of senders and lanes whose first keys are remembered; one that is forgotten is looked through from its beginning.
const FRONTS_MAX: usize = 10_000;

/// What is written otherwise is made again.
const VERSION: u32 = 1;

/// An entry as the index knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredRow {
    priority: Priority,
    sender: String,
    destination: Destination,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
    queue: String,
    is_unsettled: bool,
}

/// A lane: whose it is, where it goes, its first entry, and until when it is not due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredLane {
    priority: Priority,
    sender: String,
    destination: Destination,
    first: (u64, String),
    not_before_ms: u64,
}

impl StoredLane {
    fn time_ms(&self) -> u64 {
        self.first.0.max(self.not_before_ms)
    }
}

/// How far the queue's changes are in the index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    version: u32,
    /// The change number.
    pub reached: u64,
}

/// What an entry is to the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedEntry {
    /// Its lane and times.
    pub row: Option<DueRow>,
    /// Its lane, also where it has no times.
    pub lane: Lane,
    /// Where it is.
    pub queue: Queue,
    /// Something is to be done for it, whatever its times.
    pub is_unsettled: bool,
}

/// Where the first key of an order may be.
type Front = Vec<u8>;

/// The index of one queue. See the module.
pub struct DiskDueIndex {
    store: Store,
    prefix: Vec<u8>,
    fronts: HashMap<Vec<u8>, Front>,
    counts: HashMap<Queue, u64>,
}

impl DiskDueIndex {
    /// The index of the database of this number, as it stands in the store; empty if it was made by another version.
    ///
    /// # Errors
    /// What the store reports.
    pub fn open(store: Store, database: u32) -> Result<Self, StoreError> {
        let prefix = [&database.to_be_bytes()[..], &APART].concat();
        let mut index = Self { store, prefix, fronts: HashMap::new(), counts: HashMap::new() };
        if index.position()?.version != VERSION {
            index.clear()?;
        }
        index.count()?;
        Ok(index)
    }

    /// Forgets everything.
    ///
    /// # Errors
    /// What the store reports.
    pub fn clear(&mut self) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        if let Some(end) = prefix_end(&self.prefix) {
            batch.delete_range(FAMILY, &self.prefix, &end);
        }
        batch.put(FAMILY, &self.key(b'm', &[]), &json(&Position { version: VERSION, reached: 0 }));
        self.fronts.clear();
        self.counts.clear();
        self.store.derived().write(batch)
    }

    /// How far it is.
    ///
    /// # Errors
    /// What the store reports.
    pub fn position(&self) -> Result<Position, StoreError> {
        Ok(self.read(&self.key(b'm', &[]))?.unwrap_or_default())
    }

    /// All changes up to this one are in the index.
    ///
    /// # Errors
    /// What the store reports.
    pub fn set_position(&mut self, reached: u64) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        batch.put(FAMILY, &self.key(b'm', &[]), &json(&Position { version: VERSION, reached }));
        self.store.derived().write(batch)
    }

    /// How many entries are in a queue.
    #[must_use]
    pub fn count_of(&self, queue: Queue) -> u64 {
        self.counts.get(&queue).copied().unwrap_or(0)
    }

    /// Entries for which something is left to do, whatever their times, behind `after`.
    ///
    /// # Errors
    /// What the store reports.
    pub fn unsettled(&self, after: &str, limit: usize) -> Result<Vec<Arc<str>>, StoreError> {
        let prefix = self.key(b'u', &[]);
        let from = [&prefix[..], after.as_bytes(), if after.is_empty() { &[] } else { &[0] }].concat();
        let keys = self.keys(&from, &prefix, limit, |_| true)?;
        Ok(keys.iter().filter_map(|key| text_of(key.get(prefix.len()..)?)).collect())
    }

    /// Replaces what is known of an entry, or removes it.
    ///
    /// # Errors
    /// What the store reports.
    pub fn set(&mut self, id: &str, entry: Option<&IndexedEntry>) -> Result<(), StoreError> {
        let row_key = self.key(b'r', id.as_bytes());
        let old: Option<StoredRow> = self.read(&row_key)?;
        let new = entry.map(StoredRow::of);
        if old == new {
            // A row that is set again ends its lane's pause all the same.
            return match new.and_then(|row| row.due_ms.map(|_| row.lane())) {
                Some(lane) => self.postpone(&lane, 0),
                None => Ok(()),
            };
        }
        let mut batch = Batch::new();
        if let Some(old) = &old {
            batch.delete(FAMILY, &row_key);
            self.take_out(&mut batch, id, old)?;
            // Written by itself: both may be of one lane, which is read again below.
            self.store.derived().write(std::mem::take(&mut batch))?;
        }
        if let Some(new) = &new {
            self.put_in(&mut batch, id, new)?;
        }
        if let Some(row) = &new {
            batch.put(FAMILY, &row_key, &json(row));
        }
        self.store.derived().write(batch)?;
        self.recount(old.as_ref(), new.as_ref());
        Ok(())
    }

    fn take_out(&mut self, batch: &mut Batch, id: &str, old: &StoredRow) -> Result<(), StoreError> {
        if let Some(deadline_ms) = old.deadline_ms {
            batch.delete(FAMILY, &self.timed(b'x', deadline_ms, id));
        }
        if old.is_unsettled {
            batch.delete(FAMILY, &self.key(b'u', id.as_bytes()));
        }
        if let Some(due_ms) = old.due_ms {
            batch.delete(FAMILY, &self.timed(b'd', due_ms, id));
            self.leave_lane(batch, &old.lane(), &(due_ms, id.to_owned()))?;
        }
        Ok(())
    }

    fn put_in(&mut self, batch: &mut Batch, id: &str, new: &StoredRow) -> Result<(), StoreError> {
        if let Some(deadline_ms) = new.deadline_ms {
            let key = self.timed(b'x', deadline_ms, id);
            self.add(batch, b"x", key);
        }
        if new.is_unsettled {
            batch.put(FAMILY, &self.key(b'u', id.as_bytes()), &[]);
        }
        if let Some(due_ms) = new.due_ms {
            batch.put(FAMILY, &self.timed(b'd', due_ms, id), &[]);
            self.join_lane(batch, &new.lane(), (due_ms, id.to_owned()))?;
        }
        Ok(())
    }

    /// Puts an entry into its lane.
    fn join_lane(&mut self, batch: &mut Batch, lane: &Lane, entry: (u64, String)) -> Result<(), StoreError> {
        let hash = lane_hash(lane);
        let lane_key = self.key(b'L', &hash);
        let stored: Option<StoredLane> = self.read(&lane_key)?;
        batch.put(FAMILY, &self.in_lane(&hash, &entry), &[]);
        let first = match &stored {
            Some(stored) => stored.first.clone().min(entry),
            None => entry,
        };
        let joined = StoredLane {
            priority: lane.sender.priority,
            sender: lane.sender.sender.to_string(),
            destination: Destination::clone(&lane.destination),
            first,
            // Something new ends a pause.
            not_before_ms: 0,
        };
        batch.put(FAMILY, &lane_key, &json(&joined));
        let before = stored.map(|stored| stored.time_ms());
        self.move_lane(batch, lane, &hash, before, Some(joined.time_ms()))
    }

    /// Takes an entry out of its lane.
    fn leave_lane(
        &mut self,
        batch: &mut Batch,
        lane: &Lane,
        entry: &(u64, String),
    ) -> Result<(), StoreError> {
        let hash = lane_hash(lane);
        let lane_key = self.key(b'L', &hash);
        batch.delete(FAMILY, &self.in_lane(&hash, entry));
        let Some(mut stored) = self.read::<StoredLane>(&lane_key)? else { return Ok(()) };
        if stored.first != *entry {
            return Ok(());
        }
        let before = stored.time_ms();
        // The next one stands behind the one that goes.
        let prefix = self.key(b'l', &hash);
        let from = [&self.in_lane(&hash, entry)[..], &[0]].concat();
        let next = self.keys(&from, &prefix, 1, |_| true)?;
        let next = next.first().and_then(|key| timed_text(key.get(prefix.len()..)?));
        let after = next.map(|(due_ms, id)| {
            stored.first = (due_ms, id.to_string());
            stored.time_ms()
        });
        match after {
            Some(_) => batch.put(FAMILY, &lane_key, &json(&stored)),
            None => batch.delete(FAMILY, &lane_key),
        }
        self.move_lane(batch, lane, &hash, Some(before), after)
    }

    /// Brings the orders of lanes and senders up to date after a lane's time has changed.
    fn move_lane(
        &mut self,
        batch: &mut Batch,
        lane: &Lane,
        hash: &[u8],
        before: Option<u64>,
        after: Option<u64>,
    ) -> Result<(), StoreError> {
        if before == after {
            return Ok(());
        }
        let sender = sender_hash(&lane.sender);
        let order = self.key(b's', &sender);
        let lane_at = |time_ms: u64| [&order[..], &time_ms.to_be_bytes(), hash].concat();
        let front = [&[b's'][..], &sender].concat();
        let first = self.first_two(&front, &order)?;
        let time_of = |key: &Vec<u8>| time_at(key.get(order.len()..).unwrap_or_default());
        let first_before = first.first().map(time_of);
        let own = before.map(lane_at);
        let others_first = first.iter().find(|key| Some(*key) != own.as_ref()).map(time_of);
        let first_after = [others_first, after].into_iter().flatten().min();
        if let Some(own) = &own {
            batch.delete(FAMILY, own);
        }
        if let Some(after) = after {
            self.add(batch, &front, lane_at(after));
        }
        if first_before != first_after {
            let sender_at = |time_ms: u64| {
                let name = sender_name(&lane.sender);
                [&self.key(b't', &time_ms.to_be_bytes())[..], &name].concat()
            };
            if let Some(time_ms) = first_before {
                batch.delete(FAMILY, &sender_at(time_ms));
            }
            if let Some(time_ms) = first_after {
                let key = sender_at(time_ms);
                self.add(batch, b"t", key);
            }
        }
        Ok(())
    }

    /// Puts a key into an order whose front is remembered.
    fn add(&mut self, batch: &mut Batch, order: &[u8], key: Vec<u8>) {
        batch.put(FAMILY, &key, &[]);
        if let Some(front) = self.fronts.get_mut(order)
            && key < *front
        {
            *front = key;
        }
    }

    /// The first two keys of an order, from its front.
    fn first_two(&mut self, order: &[u8], prefix: &[u8]) -> Result<Vec<Vec<u8>>, StoreError> {
        let from = self.fronts.get(order).cloned().unwrap_or_else(|| prefix.to_vec());
        let keys = self.keys(&from, prefix, 2, |_| true)?;
        self.advance(order, prefix, keys.first());
        Ok(keys)
    }

    /// No key of an order stands before this one.
    fn advance(&mut self, order: &[u8], prefix: &[u8], first: Option<&Vec<u8>>) {
        if self.fronts.len() >= FRONTS_MAX && !self.fronts.contains_key(order) {
            self.fronts.clear();
        }
        let first = first.cloned().or_else(|| prefix_end(prefix)).unwrap_or_else(|| prefix.to_vec());
        self.fronts.insert(order.to_vec(), first);
    }

    /// Keys from `from` on that begin with `prefix`, as long as they are wanted, at most the number asked for.
    fn keys(
        &self,
        from: &[u8],
        prefix: &[u8],
        limit: usize,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let Some(end) = prefix_end(prefix) else { return Ok(Vec::new()) };
        let snapshot = self.store.snapshot();
        let mut cursor = snapshot.cursor(FAMILY, KeyRange::new(from.max(prefix), &end), Direction::Forward);
        let mut keys = Vec::new();
        while keys.len() < limit {
            match cursor.next()? {
                Some((key, _)) if is_wanted(key.get(prefix.len()..).unwrap_or_default()) => {
                    keys.push(key.to_vec());
                }
                _ => break,
            }
        }
        Ok(keys)
    }

    fn read<T: for<'de> Deserialize<'de>>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        let stored = self.store.get(FAMILY, key)?;
        // What cannot be read is made again from the documents, as is what is not there.
        Ok(stored.and_then(|stored| serde_json::from_slice(&stored).ok()))
    }

    fn key(&self, kind: u8, rest: &[u8]) -> Vec<u8> {
        [&self.prefix[..], &[kind], rest].concat()
    }

    fn timed(&self, kind: u8, time_ms: u64, id: &str) -> Vec<u8> {
        [&self.prefix[..], &[kind], &time_ms.to_be_bytes(), id.as_bytes()].concat()
    }

    fn in_lane(&self, lane: &[u8], (due_ms, id): &(u64, String)) -> Vec<u8> {
        [&self.key(b'l', lane)[..], &due_ms.to_be_bytes(), id.as_bytes()].concat()
    }

    fn recount(&mut self, old: Option<&StoredRow>, new: Option<&StoredRow>) {
        if let Some(count) = old.and_then(|old| self.counts.get_mut(&queue_of(&old.queue))) {
            *count = count.saturating_sub(1);
        }
        if let Some(new) = new {
            *self.counts.entry(queue_of(&new.queue)).or_default() += 1;
        }
    }

    /// Counts the entries of each queue, once, at the start; their blocks do not stay in memory.
    fn count(&mut self) -> Result<(), StoreError> {
        let prefix = self.key(b'r', &[]);
        let Some(end) = prefix_end(&prefix) else { return Ok(()) };
        let snapshot = self.store.snapshot();
        let range = KeyRange::new(&prefix, &end);
        let mut cursor = snapshot.cursor_with(FAMILY, range, ScanOptions::long(Direction::Forward));
        while let Some((_, row)) = cursor.next()? {
            if let Ok(row) = serde_json::from_slice::<StoredRow>(row) {
                *self.counts.entry(queue_of(&row.queue)).or_default() += 1;
            }
        }
        Ok(())
    }
}

impl StoredRow {
    fn of(entry: &IndexedEntry) -> Self {
        Self {
            priority: entry.lane.sender.priority,
            sender: entry.lane.sender.sender.to_string(),
            destination: Destination::clone(&entry.lane.destination),
            due_ms: entry.row.as_ref().and_then(|row| row.due_ms),
            deadline_ms: entry.row.as_ref().and_then(|row| row.deadline_ms),
            queue: entry.queue.word().to_owned(),
            is_unsettled: entry.is_unsettled,
        }
    }

    fn lane(&self) -> Lane {
        Lane {
            sender: SenderLane { priority: self.priority, sender: self.sender.as_str().into() },
            destination: self.destination.clone().into(),
        }
    }
}

impl DueIndex for DiskDueIndex {
    type Error = StoreError;

    fn due_senders(
        &mut self,
        now_ms: u64,
        after: Option<&(u64, SenderLane)>,
        limit: usize,
    ) -> Result<Vec<(u64, SenderLane)>, StoreError> {
        let prefix = self.key(b't', &[]);
        let front = self.fronts.get([b't'].as_slice()).cloned().unwrap_or_else(|| prefix.clone());
        let from = match after {
            Some((time_ms, sender)) => {
                [&prefix[..], &time_ms.to_be_bytes(), &sender_name(sender), &[0]].concat()
            }
            None => front,
        };
        let keys = self.keys(&from, &prefix, limit, |rest| time_at(rest) <= now_ms)?;
        if after.is_none() && !keys.is_empty() {
            self.advance(b"t", &prefix, keys.first());
        }
        let sender_of = |key: &Vec<u8>| {
            let rest = key.get(prefix.len()..)?;
            Some((time_at(rest), sender_named(rest.get(8..)?)?))
        };
        Ok(keys.iter().filter_map(sender_of).collect())
    }

    fn due_lanes(
        &mut self,
        sender: &SenderLane,
        now_ms: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Destination>>, StoreError> {
        let hash = sender_hash(sender);
        let prefix = self.key(b's', &hash);
        let order = [&[b's'][..], &hash].concat();
        let from = self.fronts.get(&order).cloned().unwrap_or_else(|| prefix.clone());
        let keys = self.keys(&from, &prefix, limit, |rest| time_at(rest) <= now_ms)?;
        if !keys.is_empty() {
            self.advance(&order, &prefix, keys.first());
        }
        let mut destinations = Vec::with_capacity(keys.len());
        for key in keys {
            let lane = key.get(prefix.len() + 8..).unwrap_or_default();
            if let Some(lane) = self.read::<StoredLane>(&self.key(b'L', lane))? {
                destinations.push(Arc::new(lane.destination));
            }
        }
        Ok(destinations)
    }

    fn due_entries(&mut self, lane: &Lane, now_ms: u64, limit: usize) -> Result<Vec<Arc<str>>, StoreError> {
        let hash = lane_hash(lane);
        let Some(stored) = self.read::<StoredLane>(&self.key(b'L', &hash))? else { return Ok(Vec::new()) };
        let prefix = self.key(b'l', &hash);
        let from = self.in_lane(&hash, &stored.first);
        let keys = self.keys(&from, &prefix, limit, |rest| time_at(rest) <= now_ms)?;
        Ok(keys.iter().filter_map(|key| Some(timed_text(key.get(prefix.len()..)?)?.1)).collect())
    }

    fn postpone(&mut self, lane: &Lane, until_ms: u64) -> Result<(), StoreError> {
        let hash = lane_hash(lane);
        let lane_key = self.key(b'L', &hash);
        let Some(mut stored) = self.read::<StoredLane>(&lane_key)? else { return Ok(()) };
        if stored.not_before_ms == until_ms {
            return Ok(());
        }
        let before = stored.time_ms();
        stored.not_before_ms = until_ms;
        let mut batch = Batch::new();
        batch.put(FAMILY, &lane_key, &json(&stored));
        if until_ms > 0 {
            let pause = [&self.key(b'p', &until_ms.to_be_bytes())[..], &hash].concat();
            self.add(&mut batch, b"p", pause);
        }
        self.move_lane(&mut batch, lane, &hash, Some(before), Some(stored.time_ms()))?;
        self.store.derived().write(batch)
    }

    fn due_deadlines(&mut self, now_ms: u64, limit: usize) -> Result<Vec<Arc<str>>, StoreError> {
        let prefix = self.key(b'x', &[]);
        let from = self.fronts.get([b'x'].as_slice()).cloned().unwrap_or_else(|| prefix.clone());
        let keys = self.keys(&from, &prefix, limit, |rest| time_at(rest) <= now_ms)?;
        if !keys.is_empty() {
            self.advance(b"x", &prefix, keys.first());
        }
        Ok(keys.iter().filter_map(|key| Some(timed_text(key.get(prefix.len()..)?)?.1)).collect())
    }

    fn next_ms(&mut self, now_ms: u64) -> Result<Option<u64>, StoreError> {
        let later = now_ms.saturating_add(1);
        let mut times = Vec::new();
        for kind in [b'd', b'x', b'p'] {
            let prefix = self.key(kind, &[]);
            let keys = self.keys(&self.key(kind, &later.to_be_bytes()), &prefix, 1, |_| true)?;
            times.extend(keys.first().map(|key| time_at(key.get(prefix.len()..).unwrap_or_default())));
        }
        // Pauses that are over tell nothing any more.
        let (from, to) = (self.key(b'p', &[]), self.key(b'p', &later.to_be_bytes()));
        if !self.keys(&from, &from, 1, |rest| time_at(rest) <= now_ms)?.is_empty() {
            let mut batch = Batch::new();
            batch.delete_range(FAMILY, &from, &to);
            self.store.derived().write(batch)?;
        }
        Ok(times.into_iter().min())
    }
}

fn json<T: Serialize>(value: &T) -> Vec<u8> {
    // Structs of texts and numbers, all of which JSON has.
    serde_json::to_vec(value).unwrap_or_default()
}

fn hashed(parts: &[&[u8]]) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes()).update(part);
    }
    hasher.finalize().as_bytes().iter().take(16).copied().collect()
}

fn sender_hash(sender: &SenderLane) -> Vec<u8> {
    hashed(&[&sender_name(sender)])
}

fn lane_hash(lane: &Lane) -> Vec<u8> {
    let destination = &lane.destination;
    hashed(&[
        &sender_name(&lane.sender),
        destination.transport.as_bytes(),
        destination.host.as_bytes(),
        &[u8::from(destination.require_tls)],
    ])
}

/// A sender so that names come in the order of [`SenderLane`].
fn sender_name(sender: &SenderLane) -> Vec<u8> {
    let priority = match sender.priority {
        Priority::High => 0,
        Priority::Normal => 1,
        Priority::Low => 2,
    };
    [&[priority][..], sender.sender.as_bytes()].concat()
}

fn sender_named(name: &[u8]) -> Option<SenderLane> {
    let (priority, sender) = name.split_first()?;
    let priority = match priority {
        0 => Priority::High,
        1 => Priority::Normal,
        _ => Priority::Low,
    };
    Some(SenderLane { priority, sender: text_of(sender)? })
}

fn queue_of(word: &str) -> Queue {
    let known = [Queue::Incoming, Queue::Active, Queue::Deferred, Queue::Hold, Queue::Dead];
    known.into_iter().find(|queue| queue.word() == word).unwrap_or(Queue::Done)
}

/// The time that bytes begin with.
fn time_at(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(u64::MAX, |time| u64::from_be_bytes(*time))
}

fn timed_text(bytes: &[u8]) -> Option<(u64, Arc<str>)> {
    Some((time_at(bytes), text_of(bytes.get(8..)?)?))
}

fn text_of(bytes: &[u8]) -> Option<Arc<str>> {
    std::str::from_utf8(bytes).ok().map(Arc::from)
}

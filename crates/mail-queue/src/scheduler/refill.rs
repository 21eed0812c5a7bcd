//! The window: what comes into it from the index, and what leaves it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Concurrency, DestinationState, LaneState, PriorityRing, Scheduler};
use crate::due::{DueIndex, Lane, SenderLane};
use crate::message::Destination;

/// A lane whose destination has enough in the window is looked at again after this, and up to five times as long.
const CROWDED_MS: u64 = 5_000;

/// Entries of a destination in the window, for each attempt that it may have at once.
const ENTRIES_FOR_EACH_PLACE: usize = 10;

/// However crowded a destination is, this number of lanes may have a few entries each in the window, so that a sender of
/// thousands does not keep the others out.
const LANES_MAX: usize = 200;
const ENTRIES_OF_EACH_LANE: usize = 2;

/// Deadlines that are looked up at a time.
const DEADLINES_AT_ONCE: usize = 1_000;

impl Scheduler {
    /// Fills the window from the index. Gives whether more may be there: then the caller goes on after it has dealt out what
    /// came, and not only at [`Scheduler::wake_ms`].
    ///
    /// # Errors
    /// What the index reports.
    pub fn refill<I: DueIndex>(&mut self, now_ms: u64, index: &mut I) -> Result<bool, I::Error> {
        self.open_destinations(now_ms);
        for (lane, until_ms) in std::mem::take(&mut self.leaving) {
            index.postpone(&lane, until_ms)?;
        }
        for _ in 0..self.hungry.len().min(self.options.refill_senders) {
            if let Some(lane) = self.hungry.pop_front() {
                self.load(&lane, now_ms, index)?;
            }
        }
        if self.known.len() >= self.options.window_entries {
            return Ok(false);
        }
        let limit = self.options.refill_senders.max(1);
        let senders = index.due_senders(now_ms, self.cursor.as_ref(), limit)?;
        let is_last = senders.len() < limit;
        self.cursor = if is_last { None } else { senders.last().cloned() };
        for (_, sender) in senders {
            self.load_sender(&sender, now_ms, index)?;
        }
        self.forget_destinations();
        Ok(!is_last || !self.hungry.is_empty())
    }

    fn load_sender<I: DueIndex>(
        &mut self,
        sender: &SenderLane,
        now_ms: u64,
        index: &mut I,
    ) -> Result<(), I::Error> {
        let has = self.sender_entries.get(sender).copied().unwrap_or(0);
        if has >= self.options.sender_entries {
            return Ok(());
        }
        // Lanes that are in the window already come first, and are passed over.
        let limit = (has + self.options.refill_senders).min(self.options.sender_entries.max(1));
        for destination in index.due_lanes(sender, now_ms, limit)? {
            let lane = Lane { sender: sender.clone(), destination };
            if !self.lanes.contains_key(&lane) {
                self.load(&lane, now_ms, index)?;
            }
        }
        Ok(())
    }

    /// Brings entries of a lane into the window, as far as there is room for them.
    fn load<I: DueIndex>(&mut self, lane: &Lane, now_ms: u64, index: &mut I) -> Result<(), I::Error> {
        let state = self.destinations.get(&lane.destination);
        if let Some(until_ms) = state.and_then(|state| state.concurrency.closed_until_ms()) {
            return index.postpone(lane, until_ms);
        }
        let (limit, loaded, lanes, open) = state
            .map_or((1, 0, 0, 0), |state| (state.concurrency.limit(), state.loaded, state.lanes, state.open));
        let has = self.lanes.get(lane).map_or(0, |state| state.entries.len());
        let places = usize::try_from(limit).unwrap_or(1).max(2);
        let has_seat = has > 0 || lanes < LANES_MAX;
        let seat = if has_seat { ENTRIES_OF_EACH_LANE.saturating_sub(has) } else { 0 };
        let room_here = places.saturating_mul(ENTRIES_FOR_EACH_PLACE).saturating_sub(loaded).max(seat);
        let room_of_sender = self
            .options
            .sender_entries
            .saturating_sub(self.sender_entries.get(&lane.sender).copied().unwrap_or(0));
        let room = self.options.window_entries.saturating_sub(self.known.len());
        if room_here == 0 && has == 0 {
            let until_ms = now_ms.saturating_add(CROWDED_MS + self.random.below(4 * CROWDED_MS));
            return index.postpone(lane, until_ms);
        }
        let wanted =
            self.options.lane_entries.saturating_sub(has).min(room_here).min(room_of_sender).min(room);
        if wanted == 0 {
            return Ok(());
        }
        // Those in the window and under way may still be in the index, and come first there.
        let skipped = has + usize::try_from(open).unwrap_or(0);
        let due = index.due_entries(lane, now_ms, wanted + skipped)?;
        let new: Vec<Arc<str>> = due.into_iter().filter(|id| !self.known.contains(id)).take(wanted).collect();
        self.admit(lane, new, now_ms);
        Ok(())
    }

    fn admit(&mut self, lane: &Lane, entries: Vec<Arc<str>>, now_ms: u64) {
        if entries.is_empty() {
            return;
        }
        let (first, most) = (self.options.first_concurrency, self.options.destination_concurrency);
        let state =
            self.destinations.entry(Arc::clone(&lane.destination)).or_insert_with(|| DestinationState {
                concurrency: Concurrency::new(first, most),
                open: 0,
                granted: 0,
                waiting: PriorityRing::default(),
                loaded: 0,
                lanes: 0,
                blocked: false,
                probe_granted: false,
                awaits_probe: false,
                used_ms: now_ms,
            });
        state.loaded += entries.len();
        state.lanes += usize::from(!self.lanes.contains_key(lane));
        *self.sender_entries.entry(lane.sender.clone()).or_default() += entries.len();
        let lane_state = self.lanes.entry(lane.clone()).or_default();
        for entry in entries {
            self.known.insert(Arc::clone(&entry));
            lane_state.entries.push_back(entry);
        }
        self.touch(&lane.destination, now_ms);
        self.list(lane);
        self.grant(&lane.destination);
    }

    /// Takes the lanes of a destination that is closed out of the window.
    pub(super) fn unload(&mut self, destination: &Arc<Destination>, until_ms: u64) {
        let Some(state) = self.destinations.get_mut(destination) else { return };
        let mut lanes = state.waiting.drain();
        state.loaded = 0;
        state.lanes = 0;
        self.probes -= usize::from(std::mem::take(&mut state.probe_granted)).min(self.probes);
        if std::mem::take(&mut state.granted) > 0 {
            for granted in self.granted.values_mut() {
                let (gone, left): (VecDeque<Lane>, VecDeque<Lane>) =
                    std::mem::take(granted).into_iter().partition(|lane| lane.destination == *destination);
                lanes.extend(gone);
                *granted = left;
            }
        }
        for lane in lanes {
            let LaneState { entries, .. } = self.lanes.remove(&lane).unwrap_or_default();
            for entry in entries {
                self.known.remove(&entry);
                self.leave_window(&lane.sender);
            }
            self.leaving.push((lane, until_ms));
        }
    }

    pub(super) fn touch(&mut self, destination: &Arc<Destination>, now_ms: u64) {
        let Some(state) = self.destinations.get_mut(destination) else { return };
        let before_ms = std::mem::replace(&mut state.used_ms, now_ms);
        self.used.remove(&(before_ms, Arc::clone(destination)));
        self.used.insert((now_ms, Arc::clone(destination)));
    }

    /// Forgets destinations that were not used for longest, once there are too many. One that is busy stays.
    fn forget_destinations(&mut self) {
        let mut looked_at = 0;
        while self.destinations.len() > self.options.destinations && looked_at < self.options.refill_senders {
            looked_at += 1;
            let Some((used_ms, destination)) = self.used.pop_first() else { return };
            let is_busy = |state: &&mut DestinationState| {
                state.open + state.granted > 0 || state.loaded > 0 || state.blocked
            };
            if let Some(state) = self.destinations.get_mut(&destination).filter(is_busy) {
                // Behind those that were used at the same time.
                state.used_ms = used_ms + 1;
                self.used.insert((used_ms + 1, destination));
                continue;
            }
            if let Some(state) = self.destinations.remove(&destination)
                && let Some(until_ms) = state.concurrency.closed_until_ms()
            {
                self.closed.remove(&(until_ms, destination));
            }
        }
    }

    /// Entries whose deadline is reached. Each is read, what its step says is done, and its row is set again, which may have
    /// been made under another policy.
    ///
    /// # Errors
    /// What the index reports.
    pub fn deadlines<I: DueIndex>(&self, now_ms: u64, index: &mut I) -> Result<Vec<Arc<str>>, I::Error> {
        index.due_deadlines(now_ms, DEADLINES_AT_ONCE)
    }

    /// When the scheduler is to be called again, if nothing happens before.
    ///
    /// # Errors
    /// What the index reports.
    pub fn wake_ms<I: DueIndex>(&self, now_ms: u64, index: &mut I) -> Result<Option<u64>, I::Error> {
        let opens = self.closed.first().map(|(until_ms, _)| *until_ms);
        let times = [index.next_ms(now_ms)?, opens, self.connections.next_end_ms()];
        Ok(times.into_iter().flatten().min().map(|time_ms| time_ms.max(now_ms.saturating_add(1))))
    }
}

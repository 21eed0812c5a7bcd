//! Which entry is tried next, over which connection.
//!
//! Entries that are due lie in an index; the scheduler holds a window of them in lanes, one for what a sender has for a
//! destination. A lane waits at its destination until that has a place free; then the destination grants the place to the lane
//! that waits longest, and the lane joins the ring of its sender. Attempts are dealt out around the ring of senders. So senders
//! take turns, a sender's destinations take turns, and a destination's senders take turns, at constant cost.
//!
//! A destination that does not answer is closed for a while, and then has one place, for a probe. Its lanes leave the window
//! and are postponed in the index, so that they cost nothing.
//!
//! The caller runs, whenever something happened and at [`Scheduler::wake_ms`]: [`Scheduler::refill`], then
//! [`Scheduler::next`] until it gives nothing. For each [`Dispatch`] it reads the entry and calls [`Scheduler::cancel`] if
//! that is no longer due; finds the hosts; asks [`Scheduler::claim_network`] before it connects to one; writes the record of
//! the attempt; works, and calls [`Scheduler::connected`] when a server has greeted; writes the record of the end, and calls
//! [`Scheduler::finish`].

mod concurrency;
mod connections;
mod networks;
mod refill;
mod ring;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::due::{Lane, SenderLane};
use crate::message::Destination;
use crate::random::Random;
use connections::Connections;
use networks::Networks;
use ring::PriorityRing;

pub use concurrency::{Concurrency, Effect};
pub use connections::{ConnectionId, ConnectionUse};
pub use networks::Network;

/// The limits of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerOptions {
    /// Attempts at once.
    pub attempts: usize,
    /// Of these, attempts at destinations that were not reached yet, or not the last time: one that does not answer holds its
    /// place until time runs out.
    pub probes: usize,
    /// Attempts at once at a destination that was reached, at first.
    pub first_concurrency: u32,
    /// Attempts at once at a destination, at most.
    pub destination_concurrency: u32,
    /// Attempts at once that hold a connection to one network.
    pub network_connections: usize,
    /// Messages over one connection.
    pub connection_messages: u32,
    /// How long a connection is used.
    pub connection_ms: u64,
    /// How long it may be idle. Servers end it after 5 minutes (RFC 5321, section 4.5.3.2.7).
    pub idle_ms: u64,
    /// Connections that are idle, at most.
    pub idle_connections: usize,
    /// Entries in the window.
    pub window_entries: usize,
    /// Entries of one sender in it.
    pub sender_entries: usize,
    /// Entries of one lane in it.
    pub lane_entries: usize,
    /// Destinations that are remembered.
    pub destinations: usize,
    /// Senders that one refill looks at.
    pub refill_senders: usize,
    /// How long a destination that does not answer is closed at first; then twice as long, and so on.
    pub first_pause_ms: u64,
    /// How long at most.
    pub pause_max_ms: u64,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            attempts: 1_000,
            probes: 500,
            first_concurrency: 5,
            destination_concurrency: 20,
            network_connections: 50,
            connection_messages: 100,
            connection_ms: 300_000,
            idle_ms: 30_000,
            idle_connections: 500,
            window_entries: 20_000,
            sender_entries: 1_000,
            lane_entries: 50,
            destinations: 10_000,
            refill_senders: 256,
            first_pause_ms: 60_000,
            pause_max_ms: 3_600_000,
        }
    }
}

/// Names an attempt until it is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId(u64);

/// An entry that is to be tried now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Names the attempt.
    pub attempt: AttemptId,
    /// The entry's id.
    pub entry: Arc<str>,
    /// Where it goes.
    pub destination: Arc<Destination>,
    /// An open connection to the destination, to be used; `None` asks for a new one.
    pub connection: Option<ConnectionId>,
}

/// A destination as an administrator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationStatus {
    /// Which.
    pub destination: Arc<Destination>,
    /// Attempts that are under way.
    pub open: u32,
    /// Attempts at once that it is thought to bear.
    pub concurrency: u32,
    /// It does not answer, and is left alone until then.
    pub closed_until_ms: Option<u64>,
    /// Times in a row that it was not reached.
    pub unreached: u32,
    /// Connections that are idle.
    pub idle: usize,
}

#[derive(Debug)]
struct DestinationState {
    concurrency: Concurrency,
    /// Attempts that are under way.
    open: u32,
    /// Places that lanes hold which wait for their sender's turn.
    granted: u32,
    /// Lanes that wait for a place.
    waiting: PriorityRing<Lane>,
    /// Entries of all its lanes in the window.
    loaded: usize,
    /// Its lanes in the window.
    lanes: usize,
    /// It waits until a connection to a network ends.
    blocked: bool,
    /// One of the places that are granted is a probe's.
    probe_granted: bool,
    /// It stands among those that wait until there are fewer probes.
    awaits_probe: bool,
    /// When it was used, as it stands among those that may be forgotten.
    used_ms: u64,
}

#[derive(Debug, Default)]
struct LaneState {
    entries: VecDeque<Arc<str>>,
    /// It holds a place, or waits for one.
    is_listed: bool,
}

#[derive(Debug)]
struct OpenAttempt {
    entry: Arc<str>,
    lane: Lane,
    started_ms: u64,
    connection: Option<ConnectionId>,
    network: Option<Network>,
    is_probe: bool,
}

/// Chooses what is tried next. See the module.
#[derive(Debug)]
pub struct Scheduler {
    options: SchedulerOptions,
    random: Random,
    destinations: HashMap<Arc<Destination>, DestinationState>,
    lanes: HashMap<Lane, LaneState>,
    /// Entries in the window and under way.
    known: HashSet<Arc<str>>,
    /// How many of a sender's entries lie in the window.
    sender_entries: HashMap<SenderLane, usize>,
    /// For each sender, lanes that hold a place.
    granted: HashMap<SenderLane, VecDeque<Lane>>,
    senders: PriorityRing<SenderLane>,
    attempts: HashMap<AttemptId, OpenAttempt>,
    probes: usize,
    /// Probes that wait for their number to fall.
    probing: VecDeque<Arc<Destination>>,
    next_attempt: u64,
    connections: Connections,
    networks: Networks,
    /// Destinations that are closed, by the time when they open.
    closed: BTreeSet<(u64, Arc<Destination>)>,
    /// Lanes that were used up, and may have more in the index.
    hungry: VecDeque<Lane>,
    /// Lanes that left the window, and the end of their pause.
    leaving: Vec<(Lane, u64)>,
    /// How far the index has been looked through; `None` at its beginning.
    cursor: Option<(u64, SenderLane)>,
    /// When destinations were used, for those that are forgotten.
    used: BTreeSet<(u64, Arc<Destination>)>,
}

impl Scheduler {
    /// A scheduler that knows of nothing yet.
    #[must_use]
    pub fn new(options: SchedulerOptions, seed: u64) -> Self {
        Self {
            connections: Connections::new(&options),
            networks: Networks::new(options.network_connections),
            options,
            random: Random::new(seed),
            destinations: HashMap::new(),
            lanes: HashMap::new(),
            known: HashSet::new(),
            sender_entries: HashMap::new(),
            granted: HashMap::new(),
            senders: PriorityRing::default(),
            attempts: HashMap::new(),
            probes: 0,
            probing: VecDeque::new(),
            next_attempt: 0,
            closed: BTreeSet::new(),
            hungry: VecDeque::new(),
            leaving: Vec::new(),
            cursor: None,
            used: BTreeSet::new(),
        }
    }

    /// The next attempt, if there is a place for one.
    pub fn next(&mut self, now_ms: u64) -> Option<Dispatch> {
        self.open_destinations(now_ms);
        if self.attempts.len() >= self.options.attempts {
            return None;
        }
        loop {
            let sender = self.senders.pop()?;
            let Some(lanes) = self.granted.get_mut(&sender) else { continue };
            let lane = lanes.pop_front();
            if lanes.is_empty() {
                self.granted.remove(&sender);
            } else {
                self.senders.push(sender.priority, sender);
            }
            let dispatch = lane.and_then(|lane| self.dispatch(lane, now_ms));
            if dispatch.is_some() {
                return dispatch;
            }
        }
    }

    fn dispatch(&mut self, lane: Lane, now_ms: u64) -> Option<Dispatch> {
        let destination = Arc::clone(&lane.destination);
        let state = self.destinations.get_mut(&destination)?;
        state.granted = state.granted.saturating_sub(1);
        let is_probe = std::mem::take(&mut state.probe_granted);
        let lane_state = self.lanes.get_mut(&lane)?;
        lane_state.is_listed = false;
        let entry = lane_state.entries.pop_front();
        let is_empty = lane_state.entries.is_empty();
        let Some(entry) = entry else {
            self.lanes.remove(&lane);
            state.lanes = state.lanes.saturating_sub(1);
            self.probes -= usize::from(is_probe).min(self.probes);
            self.grant(&destination);
            return None;
        };
        state.loaded = state.loaded.saturating_sub(1);
        state.open += 1;
        state.lanes = state.lanes.saturating_sub(usize::from(is_empty));
        self.leave_window(&lane.sender);
        if is_empty {
            self.lanes.remove(&lane);
            self.hungry.push_back(lane.clone());
        } else {
            self.list(&lane);
        }
        self.grant(&destination);
        self.touch(&destination, now_ms);
        let connection = self.connections.take(&destination, now_ms);
        let attempt = AttemptId(self.next_attempt);
        self.next_attempt += 1;
        let open = OpenAttempt {
            entry: Arc::clone(&entry),
            lane,
            started_ms: now_ms,
            connection,
            network: None,
            is_probe,
        };
        self.attempts.insert(attempt, open);
        Some(Dispatch { attempt, entry, destination, connection })
    }

    fn leave_window(&mut self, sender: &SenderLane) {
        if let Some(count) = self.sender_entries.get_mut(sender) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.sender_entries.remove(sender);
            }
        }
    }

    /// A lane that has entries waits for a place at its destination.
    fn list(&mut self, lane: &Lane) {
        let (Some(state), Some(destination)) =
            (self.lanes.get_mut(lane), self.destinations.get_mut(&lane.destination))
        else {
            return;
        };
        if !state.is_listed && !state.entries.is_empty() {
            state.is_listed = true;
            destination.waiting.push(lane.sender.priority, lane.clone());
        }
    }

    /// Gives the free places of a destination to the lanes that wait longest.
    fn grant(&mut self, destination: &Arc<Destination>) {
        let Some(state) = self.destinations.get_mut(destination) else { return };
        while !state.blocked && state.open + state.granted < state.concurrency.limit() {
            let is_probe = state.concurrency.is_probing();
            if is_probe && self.probes >= self.options.probes {
                if !state.waiting.is_empty() && !state.awaits_probe {
                    state.awaits_probe = true;
                    self.probing.push_back(Arc::clone(destination));
                }
                return;
            }
            let Some(lane) = state.waiting.pop() else { return };
            state.granted += 1;
            state.probe_granted |= is_probe;
            self.probes += usize::from(is_probe);
            // A sender stands in the ring exactly while there is a list of his lanes, even an empty one.
            match self.granted.get_mut(&lane.sender) {
                Some(lanes) => lanes.push_back(lane),
                None => {
                    self.senders.push(lane.sender.priority, lane.sender.clone());
                    self.granted.insert(lane.sender.clone(), VecDeque::from([lane]));
                }
            }
        }
    }

    /// The host was reached and has greeted: a destination that was being probed gets its places.
    pub fn connected(&mut self, attempt: AttemptId) {
        let Some(open) = self.attempts.get_mut(&attempt) else { return };
        self.probes -= usize::from(std::mem::take(&mut open.is_probe)).min(self.probes);
        let destination = Arc::clone(&open.lane.destination);
        if let Some(state) = self.destinations.get_mut(&destination) {
            state.concurrency.reached();
        }
        self.grant(&destination);
        self.grant_probes();
    }

    /// Claims a connection to a network, once for an attempt; of an earlier claim the place becomes free. If the network has
    /// no place, the attempt is over, and its entry comes again when there is one.
    pub fn claim_network(&mut self, attempt: AttemptId, network: Network, now_ms: u64) -> bool {
        let Some(open) = self.attempts.get_mut(&attempt) else { return false };
        let earlier = open.network.take();
        let destination = Arc::clone(&open.lane.destination);
        let is_claimed = self.networks.claim(network, &destination);
        if is_claimed {
            open.network = Some(network);
        }
        if let Some(earlier) = earlier {
            self.release_network(earlier);
        }
        if !is_claimed {
            if let Some(state) = self.destinations.get_mut(&destination) {
                state.blocked = true;
            }
            self.give_back(attempt, now_ms);
        }
        is_claimed
    }

    /// The attempt is not made, because the entry is no longer due.
    pub fn cancel(&mut self, attempt: AttemptId, now_ms: u64) {
        let Some(open) = self.close(attempt) else { return };
        self.known.remove(&open.entry);
        if let Some(connection) = open.connection {
            self.connections.give_back(connection, now_ms);
        }
        self.grant(&open.lane.destination);
    }

    /// The attempt is not made now: its entry is the lane's first again.
    fn give_back(&mut self, attempt: AttemptId, now_ms: u64) {
        let Some(open) = self.close(attempt) else { return };
        if let Some(connection) = open.connection {
            self.connections.give_back(connection, now_ms);
        }
        let lane = open.lane;
        let lane_state = self.lanes.entry(lane.clone()).or_default();
        let is_new = lane_state.entries.is_empty();
        lane_state.entries.push_front(open.entry);
        *self.sender_entries.entry(lane.sender.clone()).or_default() += 1;
        if let Some(state) = self.destinations.get_mut(&lane.destination) {
            state.loaded += 1;
            state.lanes += usize::from(is_new);
        }
        self.list(&lane);
        self.grant(&lane.destination);
    }

    /// The end of an attempt, after its record is written: what the destination learns from it, and what becomes of the
    /// connection.
    pub fn finish(&mut self, attempt: AttemptId, effect: Effect, connection: ConnectionUse, now_ms: u64) {
        let Some(open) = self.close(attempt) else { return };
        self.known.remove(&open.entry);
        let destination = Arc::clone(&open.lane.destination);
        self.connections.finish(open.connection, connection, &destination, now_ms);
        let (first_ms, most_ms) = (self.options.first_pause_ms, self.options.pause_max_ms);
        if let Some(state) = self.destinations.get_mut(&destination) {
            let pause = state.concurrency.learn(effect, open.started_ms, now_ms);
            if let Some(unreached) = pause {
                let wait_ms = first_ms.saturating_mul(1 << unreached.saturating_sub(1).min(20)).min(most_ms);
                let until_ms = now_ms.saturating_add(self.random.jittered(wait_ms, 10)).max(now_ms + 1);
                state.concurrency.close(until_ms);
                self.closed.insert((until_ms, Arc::clone(&destination)));
                self.unload(&destination, until_ms);
            }
        }
        self.grant(&destination);
        self.grant_probes();
        // What it freed may be what the index has waited for.
        self.hungry.push_back(open.lane);
    }

    fn close(&mut self, attempt: AttemptId) -> Option<OpenAttempt> {
        let mut open = self.attempts.remove(&attempt)?;
        self.probes -= usize::from(open.is_probe).min(self.probes);
        if let Some(state) = self.destinations.get_mut(&open.lane.destination) {
            state.open = state.open.saturating_sub(1);
        }
        if let Some(network) = open.network.take() {
            self.release_network(network);
        }
        Some(open)
    }

    fn release_network(&mut self, network: Network) {
        if let Some(destination) = self.networks.release(network) {
            if let Some(state) = self.destinations.get_mut(&destination) {
                state.blocked = false;
            }
            self.grant(&destination);
        }
    }

    /// Destinations that wait until there are fewer probes.
    fn grant_probes(&mut self) {
        while self.probes < self.options.probes {
            let Some(destination) = self.probing.pop_front() else { return };
            if let Some(state) = self.destinations.get_mut(&destination) {
                state.awaits_probe = false;
            }
            self.grant(&destination);
        }
    }

    /// `tell router retry DESTINATION`: it is probed at once, whatever it did before, by those of its entries whose rows are set
    /// again with the records of the retry.
    pub fn reopen(&mut self, destination: &Destination, now_ms: u64) {
        let Some((key, _)) = self.destinations.get_key_value(destination) else { return };
        let key = Arc::clone(key);
        if let Some(state) = self.destinations.get_mut(&key) {
            if let Some(until_ms) = state.concurrency.closed_until_ms() {
                self.closed.remove(&(until_ms, Arc::clone(&key)));
            }
            state.concurrency.open(now_ms);
        }
        self.grant(&key);
        self.cursor = None;
    }

    fn open_destinations(&mut self, now_ms: u64) {
        while let Some((until_ms, destination)) = self.closed.first().cloned() {
            if until_ms > now_ms {
                return;
            }
            self.closed.pop_first();
            let state = self.destinations.get_mut(&destination);
            // It may have answered since, and been closed again until later.
            if let Some(state) = state.filter(|state| state.concurrency.closed_until_ms() == Some(until_ms)) {
                state.concurrency.open(now_ms);
                self.grant(&destination);
            }
        }
    }

    /// Connections that are to be closed, because they were idle or in use for long enough.
    pub fn stale_connections(&mut self, now_ms: u64) -> Vec<ConnectionId> {
        self.connections.stale(now_ms)
    }

    /// A connection has ended: the server closed it while it was idle.
    pub fn connection_lost(&mut self, connection: ConnectionId) {
        self.connections.lost(connection);
    }

    /// Attempts that are under way.
    #[must_use]
    pub fn open_attempts(&self) -> usize {
        self.attempts.len()
    }

    /// Entries that it holds in memory, with those under way.
    #[must_use]
    pub fn window_entries(&self) -> usize {
        self.known.len()
    }

    /// A destination; `None` if it was not used, or is forgotten.
    #[must_use]
    pub fn destination(&self, destination: &Destination) -> Option<DestinationStatus> {
        let (key, state) = self.destinations.get_key_value(destination)?;
        Some(self.status(key, state))
    }

    /// All destinations that are remembered, in no order.
    pub fn destinations(&self) -> impl Iterator<Item = DestinationStatus> + '_ {
        self.destinations.iter().map(|(key, state)| self.status(key, state))
    }

    fn status(&self, destination: &Arc<Destination>, state: &DestinationState) -> DestinationStatus {
        DestinationStatus {
            destination: Arc::clone(destination),
            open: state.open,
            concurrency: state.concurrency.limit(),
            closed_until_ms: state.concurrency.closed_until_ms(),
            unreached: state.concurrency.unreached(),
            idle: self.connections.idle_of(destination),
        }
    }
}

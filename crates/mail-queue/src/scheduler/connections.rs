//! Open connections that wait for another message.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::SchedulerOptions;
use crate::message::Destination;

/// Names an open connection. The caller chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// What becomes of the connection of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionUse {
    /// There is none any more.
    Closed,
    /// It is open, and may bear another message.
    Open(ConnectionId),
}

#[derive(Debug)]
struct Connection {
    destination: Arc<Destination>,
    opened_ms: u64,
    messages: u32,
    /// When it is closed, while it is idle.
    until_ms: Option<u64>,
}

/// The connections of all destinations.
#[derive(Debug)]
pub(super) struct Connections {
    messages_max: u32,
    age_max_ms: u64,
    idle_ms: u64,
    idle_max: usize,
    open: HashMap<ConnectionId, Connection>,
    idle: HashMap<Arc<Destination>, VecDeque<ConnectionId>>,
    by_end: BTreeSet<(u64, ConnectionId)>,
    to_close: Vec<ConnectionId>,
}

impl Connections {
    pub(super) fn new(options: &SchedulerOptions) -> Self {
        Self {
            messages_max: options.connection_messages,
            age_max_ms: options.connection_ms,
            idle_ms: options.idle_ms,
            idle_max: options.idle_connections,
            open: HashMap::new(),
            idle: HashMap::new(),
            by_end: BTreeSet::new(),
            to_close: Vec::new(),
        }
    }

    /// The connection to a destination that was used last, so that those which are not needed end.
    pub(super) fn take(&mut self, destination: &Arc<Destination>, now_ms: u64) -> Option<ConnectionId> {
        loop {
            let idle = self.idle.get_mut(destination)?;
            let id = idle.pop_back();
            if idle.is_empty() {
                self.idle.remove(destination);
            }
            let id = id?;
            let Some(connection) = self.open.get_mut(&id) else { continue };
            let Some(until_ms) = connection.until_ms.take() else { continue };
            self.by_end.remove(&(until_ms, id));
            if until_ms > now_ms {
                return Some(id);
            }
            self.open.remove(&id);
            self.to_close.push(id);
        }
    }

    /// A connection that was taken is not used.
    pub(super) fn give_back(&mut self, id: ConnectionId, now_ms: u64) {
        let Some(connection) = self.open.get(&id) else { return };
        let destination = Arc::clone(&connection.destination);
        self.rest(id, &destination, now_ms);
    }

    /// The end of an attempt: one more message went over the connection.
    pub(super) fn finish(
        &mut self,
        taken: Option<ConnectionId>,
        used: ConnectionUse,
        destination: &Arc<Destination>,
        now_ms: u64,
    ) {
        let kept = match used {
            ConnectionUse::Open(id) => Some(id),
            ConnectionUse::Closed => None,
        };
        if let Some(taken) = taken.filter(|taken| kept != Some(*taken)) {
            self.lost(taken);
        }
        let Some(id) = kept else { return };
        let connection = self.open.entry(id).or_insert_with(|| Connection {
            destination: Arc::clone(destination),
            opened_ms: now_ms,
            messages: 0,
            until_ms: None,
        });
        connection.messages = connection.messages.saturating_add(1);
        if connection.messages >= self.messages_max {
            self.open.remove(&id);
            self.to_close.push(id);
            return;
        }
        self.rest(id, destination, now_ms);
    }

    fn rest(&mut self, id: ConnectionId, destination: &Arc<Destination>, now_ms: u64) {
        let Some(connection) = self.open.get_mut(&id) else { return };
        let oldest_ms = connection.opened_ms.saturating_add(self.age_max_ms);
        let until_ms = now_ms.saturating_add(self.idle_ms).min(oldest_ms);
        connection.until_ms = Some(until_ms);
        self.by_end.insert((until_ms, id));
        self.idle.entry(Arc::clone(destination)).or_default().push_back(id);
        if self.by_end.len() > self.idle_max
            && let Some((_, first)) = self.by_end.first().copied()
        {
            self.lost(first);
            self.to_close.push(first);
        }
    }

    pub(super) fn lost(&mut self, id: ConnectionId) {
        let Some(connection) = self.open.remove(&id) else { return };
        if let Some(until_ms) = connection.until_ms {
            self.by_end.remove(&(until_ms, id));
        }
        if let Some(idle) = self.idle.get_mut(&connection.destination) {
            idle.retain(|other| *other != id);
            if idle.is_empty() {
                self.idle.remove(&connection.destination);
            }
        }
    }

    /// Connections whose time is over.
    pub(super) fn stale(&mut self, now_ms: u64) -> Vec<ConnectionId> {
        while let Some((until_ms, id)) = self.by_end.first().copied() {
            if until_ms > now_ms {
                break;
            }
            self.lost(id);
            self.to_close.push(id);
        }
        std::mem::take(&mut self.to_close)
    }

    pub(super) fn idle_of(&self, destination: &Arc<Destination>) -> usize {
        self.idle.get(destination).map_or(0, VecDeque::len)
    }

    pub(super) fn next_end_ms(&self) -> Option<u64> {
        self.by_end.first().map(|(until_ms, _)| *until_ms)
    }
}

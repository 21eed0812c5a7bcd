//! Which databases were made, changed and dropped, for those who follow all of them.
//!
//! Nothing is noted until somebody follows: a commit costs one look at a flag until then.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

/// At most this many events wait. One that finds no place comes with the database's next change.
const EVENTS_MAX: usize = 100_000;

/// What became of a database.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum DatabaseEventKind {
    /// It was made, or brought in.
    Created,
    /// Documents in it changed.
    Updated,
    /// It was dropped.
    Deleted,
}

impl DatabaseEventKind {
    /// CouchDB's word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        }
    }

    /// What a word of CouchDB's says.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Created, Self::Updated, Self::Deleted].into_iter().find(|kind| kind.word() == word)
    }
}

/// Something that became of a database.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct DatabaseEvent {
    /// What.
    pub kind: DatabaseEventKind,
    /// The database's name.
    pub name: String,
}

/// What became of databases and was not taken yet, each kind once for each.
pub struct DatabaseEvents {
    is_followed: AtomicBool,
    waiting: Mutex<WaitingEvents>,
    came: watch::Sender<u64>,
}

#[derive(Default)]
struct WaitingEvents {
    in_order: Vec<DatabaseEvent>,
    known: HashSet<DatabaseEvent>,
    /// Databases that are not told of.
    ignored: HashSet<String>,
}

impl Default for DatabaseEvents {
    fn default() -> Self {
        Self { is_followed: AtomicBool::new(false), waiting: Mutex::default(), came: watch::Sender::new(0) }
    }
}

impl DatabaseEvents {
    /// From now on events are noted, or are not any more.
    pub fn set_followed(&self, is_followed: bool) {
        self.is_followed.store(is_followed, Ordering::Release);
        if !is_followed {
            let mut waiting = self.waiting.lock();
            waiting.in_order.clear();
            waiting.known.clear();
        }
    }

    /// Whether events are noted.
    #[must_use]
    pub fn is_followed(&self) -> bool {
        self.is_followed.load(Ordering::Acquire)
    }

    /// Tells nobody of a database: of the one in which events are kept, or one that changes as they are read.
    pub fn ignore(&self, name: &str) {
        self.waiting.lock().ignored.insert(name.to_owned());
    }

    /// Something became of a database.
    pub fn note(&self, kind: DatabaseEventKind, name: &str) {
        if !self.is_followed() {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.in_order.len() >= EVENTS_MAX || waiting.ignored.contains(name) {
            return;
        }
        let event = DatabaseEvent { kind, name: name.to_owned() };
        if waiting.known.insert(event.clone()) {
            waiting.in_order.push(event);
            drop(waiting);
            self.came.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Changes when there are new events.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.came.subscribe()
    }

    /// The oldest events, at most `max`, which are forgotten.
    #[must_use]
    pub fn take(&self, max: usize) -> Vec<DatabaseEvent> {
        let mut waiting = self.waiting.lock();
        let count = waiting.in_order.len().min(max);
        let taken: Vec<DatabaseEvent> = waiting.in_order.drain(..count).collect();
        for event in &taken {
            waiting.known.remove(event);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_wait_once_each_and_in_order_for_those_who_follow() {
        let events = DatabaseEvents::default();
        events.note(DatabaseEventKind::Created, "before");
        events.set_followed(true);
        events.ignore("events");
        for (kind, name) in [
            (DatabaseEventKind::Created, "a"),
            (DatabaseEventKind::Updated, "a"),
            (DatabaseEventKind::Updated, "events"),
            (DatabaseEventKind::Updated, "a"),
            (DatabaseEventKind::Deleted, "a"),
        ] {
            events.note(kind, name);
        }
        let kinds =
            |events: Vec<DatabaseEvent>| events.iter().map(|event| event.kind.word()).collect::<Vec<_>>();
        assert_eq!(kinds(events.take(2)), ["created", "updated"]);
        events.note(DatabaseEventKind::Updated, "a");
        assert_eq!(kinds(events.take(9)), ["deleted", "updated"]);
        events.note(DatabaseEventKind::Updated, "a");
        events.set_followed(false);
        assert!(events.take(9).is_empty());
        assert_eq!(DatabaseEventKind::of_word("updated"), Some(DatabaseEventKind::Updated));
        assert_eq!(DatabaseEventKind::of_word("other"), None);
    }
}

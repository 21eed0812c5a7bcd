//! What each person has used of each database since the hour began.

use std::collections::HashMap;

use parking_lot::Mutex;
use scrinium_http::Used;

/// Pairs of a person and a database that are told apart in an hour; what the others use is added up as one.
pub(super) const PAIRS_MAX: usize = 10_000;

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Requests that were to change something.
    pub(super) writes: u64,
    /// The others.
    pub(super) reads: u64,
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
}

impl Counts {
    fn add(&mut self, used: &Used<'_>) {
        *(if used.writes { &mut self.writes } else { &mut self.reads }) += 1;
        self.received_bytes += used.received_bytes;
        self.sent_bytes += used.sent_bytes;
    }
}

/// Who used what.
#[derive(Default)]
pub(super) struct UsageTable(Mutex<Hour>);

/// What was used in an hour.
#[derive(Default)]
pub(super) struct Hour {
    /// By database, then by person.
    databases: HashMap<String, HashMap<String, Counts>>,
    pairs: usize,
    others: Counts,
}

impl UsageTable {
    /// Counts a request. Held for two look-ups, and for two keys when a pair is seen first.
    pub(super) fn add(&self, used: &Used<'_>) {
        let person = used.person.unwrap_or_default();
        let mut hour = self.0.lock();
        let known = hour.databases.get_mut(used.database).and_then(|people| people.get_mut(person));
        if let Some(counts) = known {
            return counts.add(used);
        }
        if hour.pairs >= PAIRS_MAX {
            return hour.others.add(used);
        }
        hour.pairs += 1;
        let people = hour.databases.entry(used.database.to_owned()).or_default();
        people.entry(person.to_owned()).or_default().add(used);
    }

    /// What was used since this was asked last.
    pub(super) fn take(&self) -> Hour {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Hour {
    /// Database, person and what was used; what could not be told apart has neither.
    pub(super) fn into_lines(self) -> impl Iterator<Item = (String, String, Counts)> {
        let others = (self.others != Counts::default()).then(|| (String::new(), String::new(), self.others));
        let lines = self.databases.into_iter().flat_map(|(database, people)| {
            people.into_iter().map(move |(person, counts)| (database.clone(), person, counts))
        });
        lines.chain(others)
    }
}

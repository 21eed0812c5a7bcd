//! Attempts to log in, each with its name, address and outcome.
//!
//! The first of a kind in a minute is recorded at once; those like it are counted, and told by one more record when the
//! minute is over. So a storm of guesses leaves some hundred documents a minute, however many it is, and what became of
//! those who were let in is never lost among them.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;
use scrinium_credentials::Reason;
use scrinium_directory::{LoginAttempt, LoginOutcome};
use serde_json::{Map, Value, json};

use super::record::bounded;
use super::{Class, LogDatabase, fields_of};

/// Kinds of attempts that are told apart in a minute: those that were let in, and those that were not.
const KINDS_MAX: usize = 200;

/// Names of attempts are cut to this, since nobody has checked them.
const NAME_LETTERS_MAX: usize = 128;

/// Attempts of this minute.
#[derive(Default)]
pub(super) struct LoginTable(Mutex<Minute>);

#[derive(Default)]
struct Minute {
    accepted: HashMap<Kind, u64>,
    others: HashMap<Kind, u64>,
    /// What finds no place is shown by its outcome alone.
    uncounted: HashMap<LoginOutcome, u64>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Kind {
    name: String,
    address: Option<IpAddr>,
    outcome: LoginOutcome,
    /// What an administrator may mend.
    reason: Option<Reason>,
}

impl LoginTable {
    /// Counts an attempt; true if it is the first of its kind in this minute, and is reported by itself.
    fn add(&self, kind: Kind) -> bool {
        let mut minute = self.0.lock();
        let accepted = kind.outcome == LoginOutcome::Accepted;
        let kinds = if accepted { &mut minute.accepted } else { &mut minute.others };
        if let Some(more) = kinds.get_mut(&kind) {
            *more += 1;
            return false;
        }
        if kinds.len() < KINDS_MAX {
            kinds.insert(kind, 0);
            return true;
        }
        *minute.uncounted.entry(kind.outcome).or_default() += 1;
        false
    }

    /// The kinds of which there were more than one, and how many more, since this was asked last.
    fn take(&self) -> impl Iterator<Item = (Kind, u64)> + use<> {
        let Minute { accepted, others, uncounted } = std::mem::take(&mut *self.0.lock());
        let uncounted = uncounted.into_iter();
        let uncounted = uncounted.map(|(outcome, count)| {
            (Kind { name: String::new(), address: None, outcome, reason: None }, count)
        });
        accepted.into_iter().chain(others).filter(|(_, more)| *more > 0).chain(uncounted)
    }
}

fn fields(kind: &Kind, count: u64) -> Map<String, Value> {
    let mut fields = fields_of(json!({
        "Person": bounded(&kind.name),
        "Address": kind.address.map(|address| address.to_string()).unwrap_or_default(),
        "Outcome": kind.outcome.word(),
        "Count": count,
    }));
    if let Some(reason) = kind.reason {
        fields.insert("Reason".to_owned(), Value::from(reason.words()));
    }
    fields
}

impl LogDatabase {
    /// Records an attempt to log in, and says it on standard error where it was not let in.
    pub(crate) fn attempted(&self, attempt: &LoginAttempt<'_>) {
        let name: String = attempt.name.chars().take(NAME_LETTERS_MAX).collect();
        let LoginAttempt { address, outcome, reason, .. } = *attempt;
        let kind = Kind { name, address: Some(address), outcome, reason };
        if !self.shared.logins.add(kind.clone()) {
            return;
        }
        let outcome = attempt.outcome.word();
        if attempt.outcome == LoginOutcome::LockedNow {
            tracing::warn!(name = ?kind.name, address = %attempt.address, outcome, "a log-in was refused");
        } else if !matches!(attempt.outcome, LoginOutcome::Accepted | LoginOutcome::FirstStep) {
            tracing::info!(name = ?kind.name, address = %attempt.address, outcome, "a log-in was refused");
        }
        self.record(Class::Login, || fields(&kind, 1));
    }

    /// Tells of those that were counted in the minute that is over.
    pub(super) fn tell_of_logins(&self) {
        for (kind, more) in self.shared.logins.take() {
            self.record_always(Class::Login, || fields(&kind, more));
        }
    }
}

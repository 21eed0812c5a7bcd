//! What a probe has seen: points as they come, and times by operation, in bounded memory.

use std::collections::BTreeMap;
use std::time::Duration;

use scrinium_lab_report::run::{Subject, SubjectSummary};
use serde::{Deserialize, Serialize};

use crate::measure::Times;

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Point {
    pub subject: Subject,
    /// When it was due: milliseconds since 1970.
    pub at_unix_ms: i64,
    /// From when it was due to its last answer.
    pub response_ms: f64,
    /// Each request from its sending. Empty where the round was not begun, because the one before was still
    /// being answered: the time is then what a user would have waited who came at that moment.
    pub operations: Vec<(String, f64)>,
    /// Why it failed.
    pub failure: Option<String>,
}

#[derive(Default)]
struct Seen {
    rounds: u64,
    failed: u64,
    waited: u64,
    response: Times,
    operations: BTreeMap<String, Times>,
    last: Option<f64>,
    /// Of the last round.
    answered: bool,
    last_failure: Option<String>,
}

/// Adds points up.
#[derive(Default)]
pub struct Record {
    seen: BTreeMap<Subject, Seen>,
}

impl Record {
    /// One round more. A failed one has no response time: what it took says nothing of an answer.
    pub fn add(&mut self, point: &Point) {
        let time = |ms: f64| Duration::try_from_secs_f64(ms / 1000.0).unwrap_or_default();
        let seen = self.seen.entry(point.subject).or_default();
        seen.rounds += 1;
        seen.answered = point.failure.is_none();
        if let Some(failure) = &point.failure {
            seen.failed += 1;
            seen.last_failure = Some(failure.clone());
            return;
        }
        seen.waited += u64::from(point.operations.is_empty());
        seen.response.record(time(point.response_ms));
        seen.last = Some(point.response_ms);
        for (operation, ms) in &point.operations {
            seen.operations.entry(operation.clone()).or_default().record(time(*ms));
        }
    }

    /// What was seen until now.
    #[must_use]
    pub fn summaries(&self) -> BTreeMap<Subject, SubjectSummary> {
        let summary = |seen: &Seen| SubjectSummary {
            rounds: seen.rounds,
            failed: seen.failed,
            waited: seen.waited,
            response: seen.response.summary(),
            operations: seen.operations.iter().map(|(name, times)| (name.clone(), times.summary())).collect(),
            last_failure: seen.last_failure.clone(),
        };
        self.seen.iter().map(|(subject, seen)| (*subject, summary(seen))).collect()
    }

    /// Whether there was a round of anything, and the last one of everything was answered.
    #[must_use]
    pub fn is_up(&self) -> bool {
        !self.seen.is_empty() && self.seen.values().all(|seen| seen.answered)
    }

    /// The response of the last round that did not fail, in milliseconds.
    #[must_use]
    pub fn last_ms(&self, subject: Subject) -> Option<f64> {
        self.seen.get(&subject).and_then(|seen| seen.last)
    }
}

/// What a probe has to find.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ProbeObjectives {
    pub average_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub mail_p99_ms: Option<f64>,
    pub errors_percent: f64,
}

/// An objective, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ObjectiveFinding {
    pub subject: Subject,
    pub objective: String,
    pub limit: f64,
    pub value: f64,
    pub unit: String,
    pub reached: bool,
}

impl ProbeObjectives {
    /// Judges what was seen. A subject of which no round was done has reached nothing.
    #[must_use]
    pub fn judge(&self, summaries: &BTreeMap<Subject, SubjectSummary>) -> Vec<ObjectiveFinding> {
        let mut found = Vec::new();
        for (subject, summary) in summaries {
            let p99 = if *subject == Subject::Mail { self.mail_p99_ms } else { self.p99_ms };
            let average = self.average_ms.filter(|_| *subject == Subject::Database);
            let answered = summary.response.count > 0;
            let rows = [
                ("average response", average, summary.response.mean_ms, "ms", answered),
                ("99th percentile of response", p99, summary.response.p99_ms, "ms", answered),
                (
                    "failed rounds",
                    Some(self.errors_percent),
                    summary.failed_percent(),
                    "%",
                    summary.rounds > 0,
                ),
            ];
            for (objective, limit, value, unit, known) in rows {
                let Some(limit) = limit else { continue };
                let reached = known && value <= limit;
                let (objective, unit) = (objective.to_owned(), unit.to_owned());
                found.push(ObjectiveFinding { subject: *subject, objective, limit, value, unit, reached });
            }
        }
        found
    }
}

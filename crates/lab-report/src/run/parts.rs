//! Parts of a run's report that anyone who measures makes as they go.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::times::TimesSummary;

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Phase {
    RampUp,
    Hold,
    RampDown,
}

impl Phase {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RampUp => "ramp-up",
            Self::Hold => "hold",
            Self::RampDown => "ramp-down",
        }
    }
}

/// What became of the messages of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Deliveries {
    /// Messages that the server has taken.
    pub messages: u64,
    /// Each message counts once for each of its recipients.
    pub promised: u64,
    pub delivered: u64,
    pub missing: u64,
    pub twice: u64,
    pub altered: u64,
    /// With somebody who is not one of the recipients.
    pub strayed: u64,
    /// Deliveries of messages whose sending was not answered; that they arrive or not is no mistake.
    pub uncertain: u64,
    /// Mailboxes that could not be read.
    pub unread: u64,
    /// The first few that are wrong, for people.
    pub examples: Vec<String>,
}

impl Deliveries {
    /// Deliveries that are not as they must be, and mailboxes of which nothing is known.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        self.missing + self.twice + self.altered + self.strayed + self.unread
    }
}

/// What is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// A shared database: it is opened, a view is opened, entries and a document are read, a document is written.
    Database,
    /// A message to oneself: sent, delivered, read.
    Mail,
}

impl Subject {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Mail => "mail",
        }
    }
}

/// What was seen of one subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SubjectSummary {
    pub rounds: u64,
    pub failed: u64,
    /// Rounds that were due while the one before was still being answered; they are part of `rounds`.
    pub waited: u64,
    pub response: TimesSummary,
    pub operations: BTreeMap<String, TimesSummary>,
    /// The last failure, word for word.
    pub last_failure: Option<String>,
}

impl SubjectSummary {
    /// Share of rounds that failed.
    #[must_use]
    pub fn failed_percent(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "rounds are few")]
        let share = self.failed as f64 / self.rounds.max(1) as f64;
        100.0 * share
    }
}

/// What a probe saw in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ProbePart {
    pub database: String,
    pub view: String,
    pub mail: bool,
    pub interval_s: f64,
    /// Rounds that were due in the hold phase.
    pub summary: BTreeMap<Subject, SubjectSummary>,
    /// Those of the whole run.
    pub points: Vec<ProbePoint>,
}

/// A round on the run's time axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ProbePoint {
    pub at_s: f64,
    pub subject: Subject,
    pub response_ms: f64,
    pub failed: bool,
}

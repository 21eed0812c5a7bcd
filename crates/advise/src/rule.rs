//! One line of the table of rules.

use std::fmt;

use crate::advice::Advice;
use crate::observation::Observation;

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Subject {
    Log,
    Memory,
    Requests,
    Views,
    Compaction,
    Disk,
    Mail,
    Attachments,
    Backup,
    Errors,
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Log => "log",
            Self::Memory => "memory",
            Self::Requests => "requests",
            Self::Views => "views",
            Self::Compaction => "compaction",
            Self::Disk => "disk",
            Self::Mail => "mail",
            Self::Attachments => "attachments",
            Self::Backup => "backup",
            Self::Errors => "errors",
        })
    }
}

/// What a rule rests on, and how it can be seen on the machine at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// An experiment of the laboratory.
    Experiment(&'static str),
    /// A benchmark of `make bench`.
    Benchmark(&'static str),
    /// A page of the documentation, where there is nothing to measure.
    Page(&'static str),
}

impl fmt::Display for Support {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Experiment(name) => write!(formatter, "scrinium lab experiment {name} --quick"),
            Self::Benchmark(name) => write!(formatter, "make bench NAME={name}"),
            Self::Page(path) => formatter.write_str(path),
        }
    }
}

/// What a rule says of an observation.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Something is best changed.
    Change(Box<Advice>),
    /// There is nothing to change.
    Fine,
    /// What one might take for a problem but is fine.
    Note(String),
}

/// A rule could not say anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unjudged {
    /// Too little happened.
    #[error("{seen} {what}; it takes {needed}")]
    TooFew {
        /// What was counted.
        what: &'static str,
        /// How many were seen.
        seen: u64,
        /// How many are needed.
        needed: u64,
    },
    /// The server does not tell.
    #[error("the server does not report {0}")]
    NotTold(String),
    /// Something else is missing, in words.
    #[error("{0}")]
    Otherwise(String),
}

/// What a rule answers.
pub type Judgement = Result<Verdict, Unjudged>;

/// One rule.
pub struct Rule {
    /// What it is called, in words joined by hyphens.
    pub name: &'static str,
    /// What it is about.
    pub subject: Subject,
    /// What to do, in a few words.
    pub title: &'static str,
    /// When it speaks, for the documentation.
    pub speaks_if: &'static str,
    /// Statistics, operations and console commands (`show ...`) that it looks at.
    pub looks_at: &'static [&'static str],
    /// Configuration keys that it looks at or has changed.
    pub keys: &'static [&'static str],
    /// What it rests on.
    pub support: &'static [Support],
    /// What takes its advice off the list.
    pub until: &'static str,
    /// Looks at an observation.
    pub check: fn(&Observation) -> Judgement,
}

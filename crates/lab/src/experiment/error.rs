//! What is wrong with an experiment, or stops one.

use thiserror::Error;

use crate::driver::Failure;

/// One thing that is wrong with an experiment's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Line of the file, from 1; `None` where no line can be named.
    pub(super) line: Option<usize>,
    pub(super) what: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "line {line}: {}", self.what),
            None => formatter.write_str(&self.what),
        }
    }
}

/// Why an experiment cannot be read or run.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ExperimentError {
    #[error("there is no file and no experiment called {name}; there is: {known}")]
    Unknown { name: String, known: String },
    #[error("{origin}\n{problems}")]
    Wrong { origin: String, problems: String },
    #[error("{0}")]
    Usage(String),
    #[error(
        "{folder} holds results of another experiment, form or version of it (other {}); remove it, or name another by --report",
        .differences.join(", ")
    )]
    OtherResults { folder: String, differences: Vec<String> },
    #[error(
        "{folder} holds results of an earlier version of the laboratory, which this one cannot resume; remove it, or name another by --report"
    )]
    FormerResults { folder: String },
    #[error(
        "the server cannot be started by \u{201c}{command}\u{201d}: {cause}. Name another command by --server-command"
    )]
    NotStarted { command: String, cause: String },
    #[error("the server ended while it was starting ({status}); the end of what it said:\n{said}")]
    EndedAtOnce { status: String, said: String },
    #[error("the server did not answer within {seconds} s of its start; what it said is in {log}")]
    Silent { seconds: u64, log: String },
    #[error("step {step}: {failure}")]
    Request { step: String, failure: Failure },
    #[error("step {step}: {command} ended with {status}; the end of what it said:\n{said}")]
    Command { step: String, command: String, status: String, said: String },
    #[error("step {step}: {why}")]
    Step { step: String, why: String },
    #[error("step {step}: the server\u{2019}s process is gone; what it said is in {log}")]
    ServerGone { step: String, log: String },
    #[error("interrupted; run the same command with --resume --report {folder} to continue")]
    BrokenOff { folder: String },
    #[error("cannot {what} {path}: {source}")]
    File { what: &'static str, path: String, source: std::io::Error },
}

impl ExperimentError {
    /// Whether the command line or the file is at fault, and not the work.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. }
                | Self::Wrong { .. }
                | Self::Usage(_)
                | Self::OtherResults { .. }
                | Self::FormerResults { .. }
        )
    }
}

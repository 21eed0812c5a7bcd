//! A request that was not answered, or not answered rightly.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What kind of failure it is; errors are counted by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FailureKind {
    /// No answer in the time that was allowed.
    TimeOut,
    /// No connection, or a broken one.
    Connection,
    /// The document was changed in the meantime (HTTP 409).
    Conflict,
    /// What was asked for is not there (HTTP 404).
    Missing,
    /// The server said no, in a protocol that has no numbers for why (IMAP `NO` and `BAD`, POP3 `-ERR`).
    Refused,
    /// Any other status that is not a success.
    Status(u16),
    /// The answer came, and it is not the right one.
    WrongAnswer,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeOut => formatter.write_str("time-out"),
            Self::Connection => formatter.write_str("connection"),
            Self::Conflict => formatter.write_str("conflict"),
            Self::Missing => formatter.write_str("missing"),
            Self::Refused => formatter.write_str("refused"),
            Self::Status(status) => write!(formatter, "status {status}"),
            Self::WrongAnswer => formatter.write_str("wrong answer"),
        }
    }
}

/// A failed request: its kind, and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {detail}")]
#[allow(missing_docs, reason = "the names say it")]
pub struct Failure {
    pub kind: FailureKind,
    /// The request, and the answer as far as it is short.
    pub detail: String,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    pub(crate) fn wrong(detail: impl Into<String>) -> Self {
        Self::new(FailureKind::WrongAnswer, detail)
    }
}

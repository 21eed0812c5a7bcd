//! What stops a replication, or a part of it.

use std::time::Duration;

use scrinium_contents::ContentError;
use scrinium_database::{DatabaseError, Oversized};
use scrinium_document::DocumentError;
use scrinium_worker::WorkerError;

/// Result of a step of a replication.
pub type Result<T> = std::result::Result<T, ReplicationError>;

/// What kind of trouble it is, which says whether to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The order itself is wrong; nobody tries again.
    Order,
    /// A database is not there.
    NotFound,
    /// An end wants to know who asks, or does not believe it.
    Unauthorized,
    /// An end, or a rule of this server, does not allow it.
    Forbidden,
    /// What was sent or would come is longer than it may be; in parts it may go.
    TooLarge,
    /// A stub stands for an attachment that the target has not.
    MissingStub,
    /// An end refuses a request for another reason.
    Refused,
    /// An end cannot be reached, or cannot answer now.
    Unavailable,
    /// An end answers what makes no sense, or breaks off.
    Protocol,
    /// It was told to stop.
    Cancelled,
}

/// Why a step failed: a sentence for a person, without any credentials.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct ReplicationError {
    /// What kind of trouble it is.
    pub kind: ErrorKind,
    /// What happened, to what, and what can be done.
    pub reason: String,
    /// An end says when to come back.
    pub retry_after: Option<Duration>,
}

impl ReplicationError {
    /// An error of a kind.
    pub fn new(kind: ErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), retry_after: None }
    }

    /// An order that makes no sense.
    pub fn order(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Order, reason)
    }

    /// An answer that makes no sense.
    pub fn protocol(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Protocol, reason)
    }

    /// The replication was told to stop.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "The replication was cancelled.")
    }

    /// Whether the same may go well a moment later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::Protocol)
    }

    /// Whether it never goes well, whatever becomes of the ends.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self.kind, ErrorKind::Order | ErrorKind::Cancelled)
    }

    /// Word and reason, as CouchDB writes them into documents.
    #[must_use]
    pub fn told(&self) -> String {
        format!("{}: {}", self.word(), self.reason)
    }

    /// CouchDB's word for it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self.kind {
            ErrorKind::Order => "bad_request",
            ErrorKind::NotFound => "db_not_found",
            ErrorKind::Unauthorized => "unauthorized",
            ErrorKind::Forbidden => "forbidden",
            ErrorKind::Cancelled => "cancelled",
            _ => "replication_error",
        }
    }
}

impl From<DatabaseError> for ReplicationError {
    fn from(error: DatabaseError) -> Self {
        let kind = match &error {
            DatabaseError::NotFound { .. } => ErrorKind::NotFound,
            DatabaseError::Forbidden { .. } => ErrorKind::Forbidden,
            DatabaseError::Unauthorized { .. } => ErrorKind::Unauthorized,
            DatabaseError::MissingStub { .. } => ErrorKind::MissingStub,
            DatabaseError::TooLarge { what: Oversized::Request, .. } => ErrorKind::TooLarge,
            error if error.is_of_the_server() => ErrorKind::Unavailable,
            _ => ErrorKind::Refused,
        };
        Self::new(kind, error.reason())
    }
}

impl From<WorkerError> for ReplicationError {
    fn from(error: WorkerError) -> Self {
        Self::new(ErrorKind::Unavailable, error.to_string())
    }
}

impl From<DocumentError> for ReplicationError {
    fn from(error: DocumentError) -> Self {
        Self::protocol(error.reason().into_owned())
    }
}

impl From<ContentError> for ReplicationError {
    fn from(error: ContentError) -> Self {
        DatabaseError::from(error).into()
    }
}

//! Why a job was not done.

use std::time::Duration;

/// Why a job was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// Too many transactions wait already, or this one waited too long. HTTP answers 503 with
    /// `Retry-After`; nothing of the job was done.
    #[error("the server is busy: {running} transactions are admitted and {waiting} wait; try again in {} s", retry_after.as_secs())]
    Busy {
        /// Transactions admitted when this one was refused.
        running: usize,
        /// Transactions that waited for admission.
        waiting: usize,
        /// When it may be worth trying again; whole seconds.
        retry_after: Duration,
    },
    /// The job panicked. What it did until then stays as it is; a batch that was not submitted is not.
    #[error("the server failed while it worked on this: {message}")]
    Panicked {
        /// What the panic said.
        message: String,
    },
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Closed,
}

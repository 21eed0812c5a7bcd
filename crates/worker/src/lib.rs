//! Bounded threads for database work, and the admission limit in front of them.
//!
//! Sockets are served by a few asynchronous threads that must never wait for a disk. Whatever reads or
//! writes a database is handed to a [`WorkerPool`]: a limited number of transactions is admitted at once
//! (Domino's SERVER_MAX_CONCURRENT_TRANS), of which fewer run on a thread at once
//! (SERVER_POOL_TASKS). A transaction that waits for the log's sync is admitted but holds no thread, so
//! the first limit is the larger one. Those who find no room wait in line, for a bounded time in a
//! bounded queue, and past that are told [`WorkerError::Busy`], so that a server under too much load
//! answers what it has begun instead of slowing down for all.
//!
//! It knows nothing of what a job does.

mod admission;
mod error;
mod pool;
mod threads;

pub use admission::Admission;
pub use error::WorkerError;
pub use pool::{WorkerOptions, WorkerPool};

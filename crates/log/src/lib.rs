//! The server's transaction log.
//!
//! Records go into preallocated files ("extents"), in groups: all records that wait are written with one
//! write and made durable with one sync. The log does not know what a record means.

mod committer;
mod error;
mod group;
mod log;
mod options;

pub use committer::{Apply, Committer};
pub use error::LogError;
pub use group::Commit;
pub use log::{Log, Reader, Record, Recovery, Sequence, TornTail};
pub use options::{DirectIo, LogOptions};

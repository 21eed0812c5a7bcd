//! The server's transaction log.
//!
//! Records go into preallocated files ("extents"), in groups: all records that wait are written with one
//! write and made durable with one sync. The log does not know what a record means.

mod buffer;
mod committer;
mod control;
mod error;
mod extent;
mod frame;
mod group;
mod keeper;
mod log;
mod measures;
mod options;
mod reader;
mod recovery;
pub mod system;
mod walk;
mod writer;

pub use committer::{Apply, Committer};
pub use error::LogError;
pub use group::Commit;
pub use log::{Log, Recovery, Sequence, TornTail};
pub use options::{DirectIo, LogOptions};
pub use reader::{Reader, Record};

//! Named counters, gauges and operation histograms of one process, and the table of its long tasks.
//!
//! Every part of the server registers what it measures in one [`Registry`]; the console, `/metrics`
//! and `/_stats` only read it. Names follow Domino's: facility first, then words joined by dots
//! (`Database.BufferPool.Used`, `Mail.Delivered`); operations carry the names that
//! `show trans` prints (`OPEN_NOTE`, `READ_ENTRIES`). Long jobs report into [`Tasks`].
//!
//! It knows nothing of what is measured, and nothing here waits: recording is an atomic addition or a
//! short lock on one of several shards.

mod couchdb;
mod line;
mod operation;
mod prometheus;
mod rate;
mod registry;
mod tasks;

pub use couchdb::couchdb_stats;
pub use line::{breaks_line, one_line};
pub use operation::{Operation, OperationSummary, Timer};
pub use prometheus::{PROMETHEUS_CONTENT_TYPE, prometheus_text};
pub use rate::Rate;
pub use registry::{Counter, Registry, Snapshot};
pub use tasks::{PauseError, Task, TaskState, TaskStatus, Tasks};

//! Named counters, gauges and operation histograms of one process.
//!
//! Every part of the server registers what it measures in one [`Registry`]; the console, `/metrics`
//! and `/_stats` only read it. Names follow Domino's: facility first, then words joined by dots
//! (`Database.BufferPool.Used`, `Mail.Delivered`); operations carry the names that
//! `show trans` prints (`OPEN_NOTE`, `READ_ENTRIES`).
//!
//! It knows nothing of what is measured, and nothing here waits: recording is an atomic addition or a
//! short lock on one of several shards.

mod operation;
mod registry;

pub use operation::{Operation, OperationSummary, Timer};
pub use registry::{Counter, Registry, Snapshot};

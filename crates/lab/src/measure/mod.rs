//! What is measured of the users' operations: times, counts, failures.

mod histogram;
mod operation;
mod recorder;

pub use histogram::{SparseTimes, Times, TimesSummary};
pub use operation::Operation;
pub use recorder::{FailureLog, KeptSecond, OperationTimes, Recorder, Sample, Second, Totals};

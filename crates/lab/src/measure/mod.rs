//! What is measured of the users' operations: times, counts, failures.

mod histogram;
mod operation;
mod recorded;
mod recorder;

pub use histogram::{PackedTimes, SparseTimes, Times, TimesSummary};
pub use operation::Operation;
pub use recorded::{Recorded, RecordedFailure, RecordedOperation};
pub use recorder::{FailureLog, KeptSecond, OperationTimes, Recorder, Sample, Second, Totals};

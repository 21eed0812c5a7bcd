//! What is measured of the users' operations: times, counts, failures.

mod histogram;
mod recorded;
mod recorder;

pub use histogram::{PackedTimes, SparseTimes, Times};
pub use recorded::{Recorded, RecordedFailure, RecordedOperation};
pub use recorder::{FailureLog, KeptSecond, OperationTimes, Recorder, Sample, Second, Totals};

//! What a recorder holds, as it goes from a driver's process to the controller.

use serde::{Deserialize, Serialize};

use super::histogram::PackedTimes;
use super::recorder::{FailureLog, Totals};
use crate::driver::FailureKind;

/// Everything that one driver has recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Recorded {
    pub operations: Vec<RecordedOperation>,
    pub failures: Vec<RecordedFailure>,
    /// How late timers woke users, and how late the driver's heart beat.
    pub lag: PackedTimes,
    pub beat: PackedTimes,
    pub answered_in_hold: u64,
    pub totals: Totals,
}

/// One operation in the hold phase. It is named by its place among all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RecordedOperation {
    pub operation: usize,
    pub latency: PackedTimes,
    pub service: PackedTimes,
    pub answered: u64,
    pub failed: u64,
}

/// Failures of one operation and kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RecordedFailure {
    pub operation: usize,
    pub kind: FailureKind,
    pub log: FailureLog,
}

//! The machine of a measurement.

use serde::{Deserialize, Serialize};

/// What a reader of a report must know of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Machine {
    pub cpus: usize,
    pub cpu_model: String,
    pub memory_bytes: u64,
    pub kernel: String,
}

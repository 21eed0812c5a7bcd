//! What a server can run into.

use scrinium_lab_report::{bytes, milliseconds};

use super::servers::Servers;
use crate::range::Case;

/// A limit, in the order in which they are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Limit {
    Processors,
    Response,
    Percentile,
    Device,
    Memory,
}

impl Limit {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Processors => "Processors reach their limit",
            Self::Response => "The average response misses its objective",
            Self::Percentile => "The 99th percentile misses its objective",
            Self::Device => "The disk\u{2019}s writing reaches its limit",
            Self::Memory => "Memory is used up",
        }
    }

    /// What is wrong with this many running servers.
    pub(super) fn sentence(self, servers: &Servers<'_>, running: u32) -> String {
        let objective = &servers.organisation.objective;
        let case = Case::Expected;
        match self {
            Self::Processors => format!(
                "the processors of each would be {} busy, where {:.0} % is the limit",
                percent(servers.cpu_part(running, 1.0, case)),
                objective.cpu_percent
            ),
            Self::Response => format!(
                "the average response would be {}, where {} is wanted",
                response(servers.mean_ms(running, 1.0, case)),
                milliseconds(objective.average_ms)
            ),
            Self::Percentile => format!(
                "99 of 100 answers would come within {}, where {} is wanted",
                response(servers.p99_ms(running, 1.0, case)),
                milliseconds(objective.p99_ms.unwrap_or(0.0))
            ),
            Self::Device => format!(
                "the disk of each would be {} busy, where {:.0} % is the limit",
                percent(servers.device_part(running, 1.0, case)),
                objective.disk_percent
            ),
            Self::Memory => format!(
                "each would need {} of memory, where {} is the most",
                bytes(servers.memory_bytes(running, 1.0, case)),
                bytes(servers.organisation.machine.memory.unwrap_or(0.0))
            ),
        }
    }
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

fn response(ms: f64) -> String {
    if ms.is_finite() { milliseconds(ms) } else { "without end".to_owned() }
}

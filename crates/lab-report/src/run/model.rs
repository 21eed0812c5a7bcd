//! The report as data: what `report.json` holds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::parts::{Deliveries, Phase, ProbePart};
use crate::machine::Machine;
use crate::times::TimesSummary;

/// The form of `report.json`. A reader that finds another number behind the slash must not guess.
pub const FORMAT: &str = "scrinium-lab-report/1";

/// One run. Times are in the unit that ends their names; percentages of CPU are of all CPUs of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Report {
    pub format: String,
    /// The first line of every form of the report.
    pub heading: String,
    pub validity: Validity,
    pub objectives: Vec<ObjectiveResult>,
    pub workload: WorkloadPart,
    pub run: RunPart,
    pub machine: Machine,
    pub summary: Summary,
    pub operations: Vec<OperationRow>,
    pub failures: Vec<FailureRow>,
    /// Whether messages arrived, if that was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<Deliveries>,
    pub findings: Vec<String>,
    pub seconds: Vec<SecondRow>,
    /// One more user, besides those of the load; where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbePart>,
    /// The processes that simulated the users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drivers: Vec<DriverRow>,
    /// All runs of the same plan, where there were several; the rest of the report is about one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
}

/// Whether the run says something about the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// No reason speaks against it.
    pub valid: bool,
    /// Why it does not.
    pub reasons: Vec<String>,
    /// The only reason is a stop condition: the server did not keep up, which a search for its limit wants to know.
    #[serde(default)]
    pub overloaded: bool,
    /// What a reader should know all the same.
    pub warnings: Vec<String>,
}

/// An objective, and whether it was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ObjectiveResult {
    pub name: String,
    pub limit: f64,
    pub value: f64,
    pub unit: String,
    pub reached: bool,
}

/// What the users did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct WorkloadPart {
    pub name: String,
    pub origin: String,
    pub title: String,
    pub sources: Vec<String>,
    pub choices: Vec<String>,
    /// Results that others have published for it.
    pub published: Vec<String>,
    pub variables: BTreeMap<String, String>,
    /// Mean think time of one round, without and with the speed-up.
    pub round_s: f64,
    pub round_with_speedup_s: f64,
    pub expected: Vec<ExpectedRow>,
}

/// How often a command is run by a user who is answered at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ExpectedRow {
    pub command: String,
    pub per_round: f64,
    pub per_user_hour: f64,
}

/// How the run was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RunPart {
    pub target: String,
    pub server_name: String,
    pub server_version: String,
    pub server_pid: Option<u32>,
    pub server_program: Option<String>,
    pub users: usize,
    pub speedup: f64,
    /// After this many seconds users close an idle connection; `None` where they keep theirs.
    #[serde(default)]
    pub keep_alive_s: Option<f64>,
    /// `open` or `closed`.
    pub model: String,
    pub seed: u64,
    /// RFC 3339.
    pub began: String,
    pub phases: Vec<PhasePart>,
    pub time_out_s: f64,
    pub databases_created: u64,
    pub documents_added: u64,
    pub laboratory_version: String,
    /// The command that repeats it, without passwords.
    pub command: String,
    /// What the one who made it adds for readers, such as what went before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A phase on the time axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PhasePart {
    pub phase: Phase,
    pub from_s: f64,
    pub to_s: f64,
}

/// The hold phase in one line. `None` where nothing could be seen of the server's process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Summary {
    pub users: usize,
    pub hold_s: f64,
    pub cpu_percent: Option<f64>,
    pub user_percent: Option<f64>,
    pub system_percent: Option<f64>,
    /// Right answers that came in the hold phase.
    pub transactions_per_minute: f64,
    /// Operations that became due in it, answered or not.
    pub due_per_minute: f64,
    pub latency: TimesSummary,
    pub service: TimesSummary,
    pub resident_bytes: Option<u64>,
    /// The server's memory divided by the users, as the classic tables have it.
    pub memory_per_user_bytes: Option<f64>,
    /// Only what was added since before the users began.
    pub added_memory_per_user_bytes: Option<f64>,
    pub disk_bytes_per_transaction: Option<f64>,
    pub disk_bytes_per_s: Option<f64>,
    pub log_syncs_per_s: Option<f64>,
    pub log_syncs_per_transaction: Option<f64>,
    pub pool_hits_percent: Option<f64>,
    pub view_lag_changes: Option<f64>,
    pub failed: u64,
    pub failed_percent: f64,
    pub time_outs: u64,
    pub conflicts: u64,
    /// Users who were behind their timetable at the end, and how far on average.
    pub late_users: usize,
    pub late_mean_s: f64,
    pub driver_cpu_percent: f64,
    pub driver_lag_p99_ms: f64,
}

/// One operation in the hold phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct OperationRow {
    pub command: String,
    pub transaction: String,
    pub answered: u64,
    pub failed: u64,
    pub per_minute: f64,
    /// From when it was due.
    pub latency: TimesSummary,
    /// From when it was sent.
    pub service: TimesSummary,
}

/// One process that simulated users, in the hold phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DriverRow {
    pub name: String,
    pub users: usize,
    /// CPUs that it may use at a time, and how much of them it used.
    pub cpus: f64,
    pub cpu_percent: f64,
    /// The same for all drivers on its machine together.
    pub machine_cpu_percent: f64,
    /// How late it woke users, and how late its heart beat.
    pub lag_p99_ms: f64,
    pub beat_p99_ms: f64,
    /// How long its threads waited for a CPU each time that they needed one; `None` where nothing counts it.
    pub cpu_wait_mean_ms: Option<f64>,
    pub resident_bytes: u64,
    /// Whether the server runs on the same machine.
    pub beside_server: bool,
    pub machine: Machine,
    /// Its clock compared with the controller's: by how much that may be wrong, and by how much it had moved at the
    /// end. `None` in the controller's own process.
    pub clock_uncertainty_ms: Option<f64>,
    pub clock_drift_ms: Option<f64>,
}

/// Several runs of one plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// The run that the rest of the report is about; the first is 1.
    pub shown: usize,
    /// In the order of time.
    pub runs: Vec<RepeatRow>,
    /// How far they are apart.
    pub spreads: Vec<Spread>,
}

/// One of several runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RepeatRow {
    pub began: String,
    pub valid: bool,
    pub transactions_per_minute: f64,
    pub mean_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub cpu_percent: Option<f64>,
    pub failed: u64,
}

/// One figure in all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Spread {
    pub name: String,
    pub unit: String,
    pub min: f64,
    pub mean: f64,
    pub max: f64,
    /// The standard deviation of the runs as a share of their mean.
    pub coefficient_percent: f64,
}

/// Failures of one operation and kind, in the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FailureRow {
    pub command: String,
    pub transaction: String,
    pub kind: String,
    pub count: u64,
    /// The first few, word for word.
    pub first: Vec<String>,
}

/// One second of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SecondRow {
    pub at_s: f64,
    pub phase: Phase,
    pub users: usize,
    pub transactions_per_s: f64,
    pub failed_per_s: f64,
    pub latency: TimesSummary,
    pub server_user_percent: Option<f64>,
    pub server_system_percent: Option<f64>,
    pub server_resident_bytes: Option<u64>,
    pub server_written_bytes_per_s: Option<f64>,
    pub log_syncs_per_s: Option<f64>,
    /// Blocks that were in the buffer pool when they were needed.
    pub pool_hits_percent: Option<f64>,
    /// How many changes a view was behind, on average, when it was brought up to date.
    pub view_lag_changes: Option<f64>,
    pub driver_cpu_percent: Option<f64>,
    pub driver_lag_max_ms: f64,
}

impl Report {
    /// Whether the run is valid and every objective was reached.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.validity.valid && self.objectives.iter().all(|objective| objective.reached)
    }
}

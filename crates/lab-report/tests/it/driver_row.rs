//! A driver of reports in tests: this crate's, and those of `lab` (validity.rs).

use scrinium_lab_report::Machine;
use scrinium_lab_report::run::DriverRow;

/// A driver that is well within every limit.
pub(super) fn driver_row() -> DriverRow {
    DriverRow {
        name: "this process".to_owned(),
        users: 10,
        cpus: 2.0,
        cpu_percent: 40.0,
        machine_cpu_percent: 40.0,
        lag_p99_ms: 3.0,
        beat_p99_ms: 3.0,
        cpu_wait_mean_ms: Some(0.1),
        beside_server: true,
        machine: Machine { cpus: 2, ..Machine::default() },
        ..DriverRow::default()
    }
}

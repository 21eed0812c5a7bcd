//! `report.csv`: the seconds of a run, one a line, for a spreadsheet.

use super::model::{Report, SecondRow};

const HEADS: &[&str] = &[
    "at_s",
    "phase",
    "users",
    "transactions_per_s",
    "failed_per_s",
    "latency_mean_ms",
    "latency_p50_ms",
    "latency_p95_ms",
    "latency_p99_ms",
    "latency_max_ms",
    "server_user_percent",
    "server_system_percent",
    "server_resident_bytes",
    "server_written_bytes_per_s",
    "log_syncs_per_s",
    "pool_hits_percent",
    "view_lag_changes",
    "driver_cpu_percent",
    "driver_lag_max_ms",
];

/// The seconds with a line of heads. Nothing in it needs quoting. What was not seen is left empty.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut text = HEADS.join(",");
    text.push('\n');
    for second in &report.seconds {
        text.push_str(&line(second));
        text.push('\n');
    }
    text
}

fn line(second: &SecondRow) -> String {
    let number = |value: f64| format!("{value:.3}");
    let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
    let latency = &second.latency;
    let answered = |value: f64| if latency.count > 0 { number(value) } else { String::new() };
    [
        number(second.at_s),
        second.phase.name().to_owned(),
        second.users.to_string(),
        number(second.transactions_per_s),
        number(second.failed_per_s),
        answered(latency.mean_ms),
        answered(latency.p50_ms),
        answered(latency.p95_ms),
        answered(latency.p99_ms),
        answered(latency.max_ms),
        optional(second.server_user_percent),
        optional(second.server_system_percent),
        second.server_resident_bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
        optional(second.server_written_bytes_per_s),
        optional(second.log_syncs_per_s),
        optional(second.pool_hits_percent),
        optional(second.view_lag_changes),
        optional(second.driver_cpu_percent),
        number(second.driver_lag_max_ms),
    ]
    .join(",")
}

//! `show server`.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use scrinium_statistics::Snapshot;
use serde_json::json;

use super::Reply;
use super::log::transaction_log;
use super::table::{grouped, number, spoken};

/// What there is to say of the server as a whole, besides its statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReport {
    /// The server's name.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Number of the process.
    pub process: u32,
    /// The data folder.
    pub data_dir: PathBuf,
    /// When it started.
    pub started: SystemTime,
    /// Time since the start.
    pub elapsed: Duration,
    /// Where it listens, such as `https://127.0.0.1:5984`.
    pub ports: Vec<String>,
}

pub(super) fn show_server(report: &ServerReport, statistics: &Snapshot) -> Reply {
    let gauge = |name: &str| statistics.gauges.get(name).copied().unwrap_or_default();
    let counter = |name: &str| statistics.counters.get(name).copied().unwrap_or_default();
    let started = time(report.started);
    let minute = [gauge("Server.Trans.PerMinute"), gauge("Server.Trans.PerMinute.Peak")];
    let line = |label: &str, value: &str| format!("{label:<22} {value}\n");
    let ports = report.ports.join(", ");
    let text = [
        line("Scrinium server", &format!("{}, process {}", report.version, report.process)),
        line("Server name", &report.name),
        line("Server directory", &report.data_dir.display().to_string()),
        line("Ports", if report.ports.is_empty() { "none" } else { &ports }),
        line("Started", &format!("{started}, {} ago", spoken(report.elapsed))),
        line("Users", &number(gauge("Server.Users"))),
        line("Transactions", &grouped(counter("Server.Trans.Total"))),
        line(
            "Transactions/minute",
            &format!("last minute {}, peak {}", number(minute[0]), number(minute[1])),
        ),
        line("Refused as busy", &grouped(counter("Server.Trans.Refused"))),
    ];
    let (log_lines, log) = transaction_log(statistics);
    let log_lines: String = log_lines.iter().map(|(label, value)| line(label, value)).collect();
    let data = json!({
        "name": report.name,
        "version": report.version,
        "process": report.process,
        "data_dir": report.data_dir.display().to_string(),
        "ports": report.ports,
        "started": started,
        "elapsed_seconds": report.elapsed.as_secs(),
        "users": gauge("Server.Users"),
        "transactions": counter("Server.Trans.Total"),
        "transactions_last_minute": gauge("Server.Trans.PerMinute"),
        "transactions_per_minute_peak": gauge("Server.Trans.PerMinute.Peak"),
        "refused": counter("Server.Trans.Refused"),
        "log": log,
    });
    Reply { text: text.concat() + &log_lines, data }
}

/// RFC 3339, to the second, in UTC.
fn time(time: SystemTime) -> String {
    let seconds = i64::try_from(scrinium_clock::unix_s(time)).unwrap_or_default();
    Timestamp::from_second(seconds).map(|timestamp| timestamp.to_string()).unwrap_or_default()
}

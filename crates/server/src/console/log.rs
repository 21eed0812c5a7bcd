//! What `show server` says of the transaction log.

use scrinium_statistics::Snapshot;
use serde_json::{Value, json};

use super::table::number;

const MEGABYTE: f64 = 1_048_576.0;

/// Labels and values for people, and the same as data; nothing while no store is open.
pub(super) fn transaction_log(statistics: &Snapshot) -> (Vec<(&'static str, String)>, Value) {
    if !statistics.gauges.contains_key("Log.Redo.Limit") {
        return (Vec::new(), Value::Null);
    }
    let gauge = |name: &str| statistics.gauges.get(name).copied().unwrap_or_default();
    let counter = |name: &str| statistics.counters.get(name).copied().unwrap_or_default();
    let style = match gauge("Database.RM.Sys.Log.Type") {
        kind if kind >= 2.0 => "archive",
        kind if kind >= 1.0 => "circular",
        _ => "off",
    };
    let megabytes = |name: &str| format!("{} MB", tenths(gauge(name) / MEGABYTE));
    let seconds = |name: &str| format!("{} s", hundredths(gauge(name)));
    let lines = vec![
        ("Transaction log", format!("{style}, {} on disk", megabytes("Log.Size"))),
        (
            "Restart after a crash",
            format!(
                "would do {} again in about {}; checkpoint at {}",
                megabytes("Log.Redo.Bytes"),
                seconds("Log.Redo.Seconds"),
                megabytes("Log.Redo.Limit")
            ),
        ),
        (
            "Last restart",
            format!("did {} again in {}", megabytes("Log.Restart.Bytes"), seconds("Log.Restart.Seconds")),
        ),
    ];
    let data = json!({
        "style": style,
        "bytes": gauge("Log.Size"),
        "waits": counter("Log.Waits"),
        "redo_bytes": gauge("Log.Redo.Bytes"),
        "redo_seconds": gauge("Log.Redo.Seconds"),
        "redo_limit_bytes": gauge("Log.Redo.Limit"),
        "restart_bytes": gauge("Log.Restart.Bytes"),
        "restart_seconds": gauge("Log.Restart.Seconds"),
    });
    (lines, data)
}

fn tenths(value: f64) -> String {
    number((value * 10.0).round() / 10.0)
}

fn hundredths(value: f64) -> String {
    number((value * 100.0).round() / 100.0)
}

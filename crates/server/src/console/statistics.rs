//! `show statistics` and `show transactions`.

use std::collections::BTreeMap;

use scrinium_statistics::{OperationSummary, Snapshot};
use serde_json::{Value, json};

use super::pattern::chooses;
use super::table::{columns, milliseconds, number, table};
use super::{ConsoleError, Reply};
use crate::config::nearest;

/// Lines `Facility.Name = value`, in the order of their names.
pub(super) fn show_statistics(snapshot: &Snapshot, filter: Option<&str>) -> Result<Reply, ConsoleError> {
    let counters = snapshot.counters.iter().map(|(name, value)| (name, value.to_string(), json!(value)));
    let gauges = snapshot.gauges.iter().map(|(name, value)| (name, number(*value), json!(value)));
    let all: BTreeMap<&String, (String, Value)> =
        counters.chain(gauges).map(|(name, text, data)| (name, (text, data))).collect();

    let chosen: BTreeMap<_, _> =
        all.iter().filter(|(name, _)| filter.is_none_or(|filter| chooses(filter, name))).collect();
    if let (true, Some(filter)) = (chosen.is_empty(), filter) {
        return Err(nothing_chosen("statistic", filter, all.keys().map(|name| name.as_str())));
    }
    let mut text: String = chosen.iter().map(|(name, (value, _))| format!("  {name} = {value}\n")).collect();
    let plural = if chosen.len() == 1 { "statistic" } else { "statistics" };
    text.push_str(&format!("  {} {plural} found\n", chosen.len()));
    let data: serde_json::Map<_, _> =
        chosen.into_iter().map(|(name, (_, value))| ((*name).clone(), value.clone())).collect();
    Ok(Reply { text, data: json!({"statistics": data}) })
}

/// A line for each operation that ran since the start. Times are milliseconds.
pub(super) fn show_transactions(snapshot: &Snapshot, filter: Option<&str>) -> Result<Reply, ConsoleError> {
    let ran = || snapshot.operations.iter().filter(|(_, summary)| summary.count > 0);
    let chosen: Vec<(&String, &OperationSummary)> =
        ran().filter(|(name, _)| filter.is_none_or(|filter| chooses(filter, name))).collect();
    if let (true, Some(filter)) = (chosen.is_empty(), filter) {
        return Err(nothing_chosen("operation", filter, ran().map(|(name, _)| name.as_str())));
    }
    let titles = ["Function", "Count", "Min", "Max", "Total", "Avg", "P50", "P95", "P99"];
    let columns = columns(titles, &["Function"]);
    let rows: Vec<Vec<String>> = chosen
        .iter()
        .map(|(name, summary)| {
            let times = [
                milliseconds(summary.min_us),
                milliseconds(summary.max_us),
                milliseconds(summary.total_us),
                summary.average_us / 1000.0,
                milliseconds(summary.p50_us),
                milliseconds(summary.p95_us),
                milliseconds(summary.p99_us),
            ];
            let times = times.iter().map(|time| format!("{time:.2}"));
            [(*name).clone(), summary.count.to_string()].into_iter().chain(times).collect()
        })
        .collect();
    let data: Vec<Value> = chosen.iter().map(|(name, summary)| transaction(name, summary)).collect();
    Ok(Reply { text: table(&columns, &rows), data: json!({"transactions": data}) })
}

fn transaction(name: &str, summary: &OperationSummary) -> Value {
    json!({
        "function": name,
        "count": summary.count,
        "min_ms": milliseconds(summary.min_us),
        "max_ms": milliseconds(summary.max_us),
        "total_ms": milliseconds(summary.total_us),
        "average_ms": summary.average_us / 1000.0,
        "p50_ms": milliseconds(summary.p50_us),
        "p95_ms": milliseconds(summary.p95_us),
        "p99_ms": milliseconds(summary.p99_us),
    })
}

/// Proposes the name, or the facility, that is most like the filter.
fn nothing_chosen<'a>(
    what: &str,
    filter: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> ConsoleError {
    let facilities = names.clone().filter_map(|name| name.split_once('.')).map(|(facility, _)| facility);
    ConsoleError::NotFound(match nearest(filter, facilities.chain(names)) {
        Some(nearest) => format!("no {what} is called {filter}; did you mean {nearest}?"),
        None => format!("no {what} is called {filter}"),
    })
}

//! The report for a terminal.

use std::fmt::Write;

use super::model::{FailureRow, Report};
use crate::numbers::{bytes, thousands};
use crate::text_table::TextTable;

fn optional(value: Option<f64>, show: impl FnOnce(f64) -> String) -> String {
    value.map_or_else(|| "\u{2013}".to_owned(), show)
}

fn ms(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { format!("{value:.1}") }
}

/// The whole report as text, without colours.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut text = format!("{}\n\n", report.heading);
    summary(report, &mut text);
    text.push('\n');
    repeats(report, &mut text);
    operations(report, &mut text);
    drivers(report, &mut text);
    if !report.failures.is_empty() {
        text.push('\n');
        for failure in &report.failures {
            let FailureRow { command, transaction, kind, count, first } = failure;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{command} ({transaction}): {count} \u{d7} {kind}");
            for detail in first {
                let _ = writeln!(text, "    {detail}");
            }
        }
    }
    text.push('\n');
    for finding in &report.findings {
        let _ = writeln!(text, "\u{b7} {finding}");
    }
    for warning in &report.validity.warnings {
        let _ = writeln!(text, "Note: {warning}.");
    }
    for reason in &report.validity.reasons {
        let _ = writeln!(text, "NOT VALID: {reason}.");
    }
    for objective in report.objectives.iter().filter(|objective| !objective.reached) {
        let _ = writeln!(
            text,
            "MISSED: {} {:.2} {}, where at most {} was wanted.",
            objective.name, objective.value, objective.unit, objective.limit
        );
    }
    text
}

fn summary(report: &Report, text: &mut String) {
    let summary = &report.summary;
    let percent = |value: f64| format!("{value:.2}");
    let mut table = TextTable::new(&[
        "Users",
        "% CPU",
        "% User",
        "% System",
        "Trans/Min",
        "Avg ms",
        "p95 ms",
        "p99 ms",
        "Mem/User",
        "Disk/Trans",
        "Errors",
    ]);
    table.row([
        thousands(summary.users as f64),
        optional(summary.cpu_percent, percent),
        optional(summary.user_percent, percent),
        optional(summary.system_percent, percent),
        thousands(summary.transactions_per_minute),
        ms(summary.latency.mean_ms),
        ms(summary.latency.p95_ms),
        ms(summary.latency.p99_ms),
        optional(summary.memory_per_user_bytes, bytes),
        optional(summary.disk_bytes_per_transaction, bytes),
        thousands(summary.failed as f64),
    ]);
    table.write(text);
}

fn operations(report: &Report, text: &mut String) {
    let mut table = TextTable::new(&[
        "Command",
        "Transaction",
        "Count",
        "/Min",
        "Avg ms",
        "p50",
        "p95",
        "p99",
        "Max",
        "Sent avg",
        "Errors",
    ]);
    for row in &report.operations {
        table.row([
            row.command.clone(),
            row.transaction.clone(),
            thousands(row.answered as f64),
            thousands(row.per_minute),
            ms(row.latency.mean_ms),
            ms(row.latency.p50_ms),
            ms(row.latency.p95_ms),
            ms(row.latency.p99_ms),
            ms(row.latency.max_ms),
            ms(row.service.mean_ms),
            thousands(row.failed as f64),
        ]);
    }
    table.write(text);
}

/// The runs and how far they are apart, where there were several.
fn repeats(report: &Report, text: &mut String) {
    let Some(repeats) = &report.repeats else { return };
    let mut heads = vec!["Of the runs".to_owned()];
    heads.extend((1..=repeats.runs.len()).map(|number| format!("Run {number}")));
    heads.extend(["Mean", "Apart"].map(str::to_owned));
    let mut table = TextTable::of(heads);
    let mut row = |name: &str, values: Vec<f64>| {
        let spread = repeats.spreads.iter().find(|spread| spread.name == name);
        let Some(spread) = spread else { return };
        let mut cells = vec![format!("{} ({})", spread.name, spread.unit)];
        let show = if spread.unit == "ms" { ms } else { thousands };
        cells.extend(values.into_iter().map(show));
        cells.extend([show(spread.mean), format!("{:.1} %", spread.coefficient_percent)]);
        table.row(cells);
    };
    let all = |of: fn(&super::model::RepeatRow) -> f64| repeats.runs.iter().map(of).collect::<Vec<f64>>();
    row("throughput", all(|run| run.transactions_per_minute));
    row("average response", all(|run| run.mean_ms));
    row("95th percentile", all(|run| run.p95_ms));
    row("99th percentile", all(|run| run.p99_ms));
    row("CPU of the server", all(|run| run.cpu_percent.unwrap_or_default()));
    table.write(text);
    text.push('\n');
}

/// The drivers, where there are several.
fn drivers(report: &Report, text: &mut String) {
    if report.drivers.len() < 2 {
        return;
    }
    let mut table =
        TextTable::new(&["Driver", "Users", "% of its CPUs", "Late p99 ms", "Wait for CPU ms", "Memory"]);
    for driver in &report.drivers {
        table.row([
            driver.name.clone(),
            thousands(driver.users as f64),
            format!("{:.1}", driver.cpu_percent),
            ms(driver.lag_p99_ms.max(driver.beat_p99_ms)),
            optional(driver.cpu_wait_mean_ms, ms),
            bytes(driver.resident_bytes as f64),
        ]);
    }
    text.push('\n');
    table.write(text);
}

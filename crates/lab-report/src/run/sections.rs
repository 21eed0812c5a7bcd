//! Parts of the page that only some reports have: several runs, several drivers.

use super::model::{DriverRow, Report};
use crate::numbers::{bytes, milliseconds, thousands};
use crate::page::{escape, ms, optional, table};

/// All runs of the plan, and how far they are apart.
pub(super) fn repeats(report: &Report) -> String {
    let Some(repeats) = &report.repeats else { return String::new() };
    let rows: Vec<Vec<String>> = repeats
        .runs
        .iter()
        .enumerate()
        .map(|(index, run)| {
            let number = index + 1;
            let name =
                if number == repeats.shown { format!("<b>{number}, shown</b>") } else { number.to_string() };
            vec![
                name,
                if run.valid { "yes".to_owned() } else { "<span class=\"bad\">no</span>".to_owned() },
                thousands(run.transactions_per_minute),
                ms(run.mean_ms),
                ms(run.p95_ms),
                ms(run.p99_ms),
                optional(run.cpu_percent, |cpu| format!("{cpu:.2}")),
                thousands(run.failed as f64),
            ]
        })
        .collect();
    let heads =
        ["Run", "Valid", "Transactions<br>per minute", "Average<br>ms", "95 %", "99 %", "% CPU", "Failed"];
    let spreads: Vec<Vec<String>> = repeats
        .spreads
        .iter()
        .map(|spread| {
            vec![
                format!("{} <small>{}</small>", escape(&spread.name), escape(&spread.unit)),
                ms(spread.min),
                ms(spread.mean),
                ms(spread.max),
                format!("{:.1} %", spread.coefficient_percent),
            ]
        })
        .collect();
    format!(
        "<h2>The runs<small>{} of the same plan; the rest of this page is about run {}</small></h2>\n{}{}",
        repeats.runs.len(),
        repeats.shown,
        table(&heads, &rows),
        table(&["Figure", "Least", "Mean", "Most", "Coefficient of<br>variation"], &spreads)
    )
}

/// The drivers, where there are several.
pub(super) fn drivers(report: &Report) -> String {
    if report.drivers.len() < 2 {
        return String::new();
    }
    let row = |driver: &DriverRow| {
        vec![
            format!("{} <small>{}</small>", escape(&driver.name), escape(&driver.machine.cpu_model)),
            thousands(driver.users as f64),
            format!("{:.1} % of {}", driver.cpu_percent, thousands(driver.cpus)),
            milliseconds(driver.lag_p99_ms),
            milliseconds(driver.beat_p99_ms),
            optional(driver.cpu_wait_mean_ms, milliseconds),
            bytes(driver.resident_bytes as f64),
            optional(driver.clock_uncertainty_ms, milliseconds),
            optional(driver.clock_drift_ms, |moved| milliseconds(moved.abs())),
        ]
    };
    let rows: Vec<Vec<String>> = report.drivers.iter().map(row).collect();
    let heads = [
        "Driver",
        "Users",
        "CPU",
        "Users woken<br>late, 99 %",
        "Heart late,<br>99 %",
        "Wait for<br>a CPU",
        "Memory",
        "Clock known<br>within",
        "Clock<br>moved",
    ];
    format!(
        "<h2>Drivers<small>the processes that simulated the users, while all were at work</small></h2>\n{}",
        table(&heads, &rows)
    )
}

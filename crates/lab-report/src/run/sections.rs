//! Parts of the page that only some reports have: several runs, several drivers.

use super::model::{DriverRow, RepeatRow, Report};
use crate::numbers::{bytes, milliseconds, thousands};
use crate::page::{Markup, TableCell, heads, html, ms, optional, section_head, table};

/// All runs of the plan, and how far they are apart.
pub(super) fn repeats(report: &Report) -> Markup {
    let Some(repeats) = &report.repeats else { return Markup::default() };
    let run_heads =
        heads(["Run", "Valid", "Transactions\nper minute", "Average\nms", "95 %", "99 %", "% CPU", "Failed"]);
    let runs: Vec<Vec<TableCell>> =
        repeats.runs.iter().zip(1..).map(|(run, number)| run_row(run, number, repeats.shown)).collect();
    let spread_heads = heads(["Figure", "Least", "Mean", "Most", "Coefficient of\nvariation"]);
    let spreads: Vec<Vec<TableCell>> = repeats
        .spreads
        .iter()
        .map(|spread| {
            vec![
                html! { (spread.name) " " small { (spread.unit) } }.into(),
                ms(spread.min).into(),
                ms(spread.mean).into(),
                ms(spread.max).into(),
                format!("{:.1} %", spread.coefficient_percent).into(),
            ]
        })
        .collect();
    let about = format!(
        "{} of the same plan; the rest of this page is about run {}",
        repeats.runs.len(),
        repeats.shown
    );
    html! {
        (section_head("The runs", &about))
        (table(&run_heads, &runs))
        (table(&spread_heads, &spreads))
    }
}

fn run_row(run: &RepeatRow, number: usize, shown: usize) -> Vec<TableCell> {
    let name = if number == shown {
        html! { b { (number) ", shown" } }
    } else {
        html! { (number) }
    };
    let valid = if run.valid {
        html! { "yes" }
    } else {
        html! { span class="bad" { "no" } }
    };
    vec![
        name.into(),
        valid.into(),
        thousands(run.transactions_per_minute).into(),
        ms(run.mean_ms).into(),
        ms(run.p95_ms).into(),
        ms(run.p99_ms).into(),
        optional(run.cpu_percent, |cpu| format!("{cpu:.2}")).into(),
        thousands(run.failed as f64).into(),
    ]
}

/// The drivers, where there are several.
pub(super) fn drivers(report: &Report) -> Markup {
    if report.drivers.len() < 2 {
        return Markup::default();
    }
    let heads = heads([
        "Driver",
        "Users",
        "CPU",
        "Users woken\nlate, 99 %",
        "Heart late,\n99 %",
        "Wait for\na CPU",
        "Memory",
        "Clock known\nwithin",
        "Clock\nmoved",
    ]);
    let rows: Vec<Vec<TableCell>> = report.drivers.iter().map(driver_row).collect();
    html! {
        (section_head("Drivers", "the processes that simulated the users, while all were at work"))
        (table(&heads, &rows))
    }
}

fn driver_row(driver: &DriverRow) -> Vec<TableCell> {
    vec![
        html! { (driver.name) " " small { (driver.machine.cpu_model) } }.into(),
        thousands(driver.users as f64).into(),
        format!("{:.1} % of {}", driver.cpu_percent, thousands(driver.cpus)).into(),
        milliseconds(driver.lag_p99_ms).into(),
        milliseconds(driver.beat_p99_ms).into(),
        optional(driver.cpu_wait_mean_ms, milliseconds).into(),
        bytes(driver.resident_bytes as f64).into(),
        optional(driver.clock_uncertainty_ms, milliseconds).into(),
        optional(driver.clock_drift_ms, |moved| milliseconds(moved.abs())).into(),
    ]
}

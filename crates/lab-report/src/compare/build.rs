//! From reports to a comparison.

use std::collections::BTreeSet;

use super::side::{Side, What};
use super::{Better, Comparison, Difference, FORMAT, Metric, SidePart};
use crate::error::ReportError;
use crate::experiment::{CellPart, ExperimentReport, Spread, Unit, factor, shown};
use crate::machine::Machine;
use crate::numbers::{bytes, thousands, time};
use crate::run::Report;

pub(super) fn comparison(sides: &[Side], command: &str) -> Result<Comparison, ReportError> {
    let experiments: Vec<&ExperimentReport> = sides
        .iter()
        .filter_map(|side| match &side.what {
            What::Experiment(report) => Some(&**report),
            What::Runs(_) => None,
        })
        .collect();
    let parts = sides.iter().map(side_part).collect();
    let (differences, metrics) = match experiments.len() {
        0 => (of_runs(sides), metrics_of_runs(sides)),
        count if count == sides.len() => (of_experiments(&experiments), cells(&experiments)?),
        _ => {
            return Err(ReportError::Usage(
                "runs and experiments cannot be compared with each other; name two of a kind".to_owned(),
            ));
        }
    };
    let mut comparison = Comparison {
        format: FORMAT.to_owned(),
        sides: parts,
        warnings: Vec::new(),
        differences,
        metrics,
        verdicts: Vec::new(),
        command: command.to_owned(),
    };
    comparison.warnings = warnings(&comparison);
    comparison.verdicts = verdicts(&comparison);
    Ok(comparison)
}

fn side_part(side: &Side) -> SidePart {
    let (heading, runs, valid) = match &side.what {
        What::Runs(runs) => {
            let heading = runs.first().map(|run| run.heading.clone()).unwrap_or_default();
            (heading, runs.len(), runs.iter().all(|run| run.validity.valid))
        }
        What::Experiment(report) => {
            let heading = format!("{} ({} form)", report.title, report.form.name());
            (heading, usize::try_from(report.repeats).unwrap_or(1), report.is_whole())
        }
    };
    SidePart { name: side.name.clone(), path: side.path.clone(), heading, runs, valid }
}

fn warnings(comparison: &Comparison) -> Vec<String> {
    let mut warnings = Vec::new();
    let other: Vec<&str> = comparison
        .differences
        .iter()
        .filter(|difference| difference.of_the_workload)
        .map(|difference| difference.what.as_str())
        .collect();
    if !other.is_empty() {
        warnings.push(format!(
            "The sides did not do the same work; they differ in {}. What follows compares more than servers",
            other.join(", ")
        ));
    }
    for side in comparison.sides.iter().filter(|side| !side.valid) {
        warnings.push(format!("{} is not valid: it says little about its server", side.name));
    }
    if comparison.sides.iter().any(|side| side.runs < 2) {
        warnings.push(
            "A side was run once: nobody knows how far two runs of it would differ; repeat it to learn that"
                .to_owned(),
        );
    }
    warnings
}

/// A row of the set-ups, if they are not all the same.
fn difference(what: &str, values: Vec<String>, of_the_workload: bool) -> Option<Difference> {
    let same = values.windows(2).all(|two| two.first() == two.last());
    (!same).then_some(Difference { what: what.to_owned(), values, of_the_workload })
}

fn memory(machine: &Machine) -> String {
    bytes(machine.memory_bytes as f64)
}

/// Reads a value of a run for people.
type Look = (&'static str, bool, fn(&Report) -> String);

const LOOKS: &[Look] = &[
    ("workload", true, |run| run.workload.name.clone()),
    ("script", true, |run| run.workload.origin.clone()),
    ("users", true, |run| thousands(run.run.users as f64)),
    ("speed-up", true, |run| run.run.speedup.to_string()),
    ("model", true, |run| run.run.model.clone()),
    ("seed", false, |run| run.run.seed.to_string()),
    ("time-out", false, |run| time(run.run.time_out_s)),
    ("length of the hold phase", false, |run| format!("{:.0} s", run.summary.hold_s)),
    ("server", false, |run| run.run.server_name.clone()),
    ("server\u{2019}s version", false, |run| run.run.server_version.clone()),
    ("laboratory\u{2019}s version", false, |run| run.run.laboratory_version.clone()),
    ("CPUs", false, |run| run.machine.cpus.to_string()),
    ("CPU", false, |run| run.machine.cpu_model.clone()),
    ("memory", false, |run| memory(&run.machine)),
    ("kernel", false, |run| run.machine.kernel.clone()),
];

fn of_runs(sides: &[Side]) -> Vec<Difference> {
    let firsts: Vec<&Report> = sides.iter().filter_map(|side| side.runs().first()).collect();
    let mut differences: Vec<Difference> = LOOKS
        .iter()
        .filter_map(|(what, of_the_workload, look)| {
            difference(what, firsts.iter().map(|run| look(run)).collect(), *of_the_workload)
        })
        .collect();
    let names: BTreeSet<&String> = firsts.iter().flat_map(|run| run.workload.variables.keys()).collect();
    for name in names {
        let value = |run: &&Report| run.workload.variables.get(name).cloned().unwrap_or_default();
        differences.extend(difference(&format!("[{name}]"), firsts.iter().map(value).collect(), true));
    }
    differences
}

/// Reads a number of a run.
type Measure = (&'static str, Unit, Option<Better>, bool, fn(&Report) -> Option<f64>);

const MEASURES: &[Measure] = &[
    ("Transactions a minute", Unit::Count, Some(Better::Higher), true, |run| {
        Some(run.summary.transactions_per_minute)
    }),
    ("Average response", Unit::Milliseconds, Some(Better::Lower), true, |run| {
        latency(run, run.summary.latency.mean_ms)
    }),
    ("Median response", Unit::Milliseconds, Some(Better::Lower), false, |run| {
        latency(run, run.summary.latency.p50_ms)
    }),
    ("95 % of responses within", Unit::Milliseconds, Some(Better::Lower), false, |run| {
        latency(run, run.summary.latency.p95_ms)
    }),
    ("99 % of responses within", Unit::Milliseconds, Some(Better::Lower), true, |run| {
        latency(run, run.summary.latency.p99_ms)
    }),
    ("Slowest response", Unit::Milliseconds, Some(Better::Lower), false, |run| {
        latency(run, run.summary.latency.max_ms)
    }),
    ("CPU of the server", Unit::Percent, Some(Better::Lower), true, |run| run.summary.cpu_percent),
    ("of it in system mode", Unit::Percent, None, false, |run| run.summary.system_percent),
    ("Memory of the server", Unit::Bytes, Some(Better::Lower), true, |run| {
        run.summary.resident_bytes.map(|bytes| bytes as f64)
    }),
    ("Memory per user", Unit::Bytes, Some(Better::Lower), false, |run| run.summary.memory_per_user_bytes),
    ("Written per transaction", Unit::Bytes, Some(Better::Lower), true, |run| {
        run.summary.disk_bytes_per_transaction
    }),
    ("Log syncs per transaction", Unit::Ratio, None, false, |run| run.summary.log_syncs_per_transaction),
    ("Failed requests", Unit::Percent, Some(Better::Lower), false, |run| Some(run.summary.failed_percent)),
    ("CPU of the driver", Unit::Percent, None, false, |run| Some(run.summary.driver_cpu_percent)),
];

/// A run without answers has no response time.
fn latency(run: &Report, value: f64) -> Option<f64> {
    (run.summary.latency.count > 0).then_some(value)
}

fn metrics_of_runs(sides: &[Side]) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = MEASURES
        .iter()
        .map(|(title, unit, better, in_verdict, measure)| Metric {
            title: (*title).to_owned(),
            unit: *unit,
            better: *better,
            in_verdict: *in_verdict,
            values: sides.iter().map(|side| spread(side.runs().iter().map(measure))).collect(),
        })
        .collect();
    let all = sides.iter().flat_map(Side::runs).flat_map(|run| &run.operations);
    let operations: BTreeSet<(&str, &str)> =
        all.map(|row| (row.transaction.as_str(), row.command.as_str())).collect();
    for (transaction, command) in operations {
        let mean = |run: &Report| {
            let row =
                run.operations.iter().find(|row| row.transaction == transaction && row.command == command)?;
            (row.latency.count > 0).then_some(row.latency.mean_ms)
        };
        metrics.push(Metric {
            title: format!("{command} ({transaction}), average"),
            unit: Unit::Milliseconds,
            better: Some(Better::Lower),
            in_verdict: false,
            values: sides.iter().map(|side| spread(side.runs().iter().map(mean))).collect(),
        });
    }
    metrics.retain(|metric| metric.values.iter().any(Option::is_some));
    metrics
}

fn spread(values: impl Iterator<Item = Option<f64>>) -> Option<Spread> {
    let values: Vec<f64> = values.flatten().collect();
    Spread::of(&values)
}

fn of_experiments(reports: &[&ExperimentReport]) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut add = |what: &str, of_the_workload: bool, look: &dyn Fn(&ExperimentReport) -> String| {
        let values = reports.iter().map(|report| look(report)).collect();
        differences.extend(difference(what, values, of_the_workload));
    };
    add("experiment", true, &|report| report.name.clone());
    add("form", true, &|report| report.form.name().to_owned());
    add("server", false, &|report| report.server_name.clone());
    add("server\u{2019}s version", false, &|report| report.server_version.clone());
    add("server\u{2019}s command", false, &|report| report.server_command.clone());
    add("laboratory\u{2019}s version", false, &|report| report.laboratory_version.clone());
    add("runs of each cell", false, &|report| report.repeats.to_string());
    add("CPUs", false, &|report| report.machine.cpus.to_string());
    add("CPU", false, &|report| report.machine.cpu_model.clone());
    add("memory", false, &|report| memory(&report.machine));
    add("kernel", false, &|report| report.machine.kernel.clone());
    let names: BTreeSet<&String> = reports.iter().flat_map(|report| report.parameters.keys()).collect();
    for name in names {
        add(name, true, &|report| report.parameters.get(name).cloned().unwrap_or_default());
    }
    differences
}

/// Every value of every cell that all have.
fn cells(reports: &[&ExperimentReport]) -> Result<Vec<Metric>, ReportError> {
    let Some((first, others)) = reports.split_first() else { return Ok(Vec::new()) };
    let mut metrics = Vec::new();
    for cell in &first.cells {
        for (index, column) in first.columns.iter().enumerate() {
            let of = |report: &ExperimentReport| {
                let column = report.columns.iter().position(|other| other == column)?;
                let found = report.cells.iter().find(|other| other.labels == cell.labels)?;
                value(found, column)
            };
            let mut values = vec![value(cell, index)];
            values.extend(others.iter().map(|report| of(report)));
            if values.iter().flatten().count() > 1 {
                let better =
                    matches!(column.unit, Unit::Milliseconds | Unit::Seconds).then_some(Better::Lower);
                let title = format!("{}: {}", cell.labels.join(", "), column.title);
                metrics.push(Metric {
                    title,
                    unit: column.unit,
                    better,
                    in_verdict: better.is_some(),
                    values,
                });
            }
        }
    }
    if metrics.is_empty() {
        return Err(ReportError::Usage("the experiments have no valid cell in common".to_owned()));
    }
    Ok(metrics)
}

fn value(cell: &CellPart, column: usize) -> Option<Spread> {
    if cell.invalid.is_empty() { cell.values.get(column).copied().flatten() } else { None }
}

/// A smaller difference does not count, whatever the spread.
const SMALLEST: f64 = 0.02;

/// From one run each, of which nobody knows the spread, a smaller difference is not told.
const SMALLEST_OF_ONE_RUN: f64 = 0.1;

/// One sentence for each value that tells, and one for all that stayed the same.
fn verdicts(comparison: &Comparison) -> Vec<String> {
    let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
    let Some((first, others)) = names.split_first() else { return Vec::new() };
    let mut sentences = Vec::new();
    for (index, other) in others.iter().enumerate() {
        let mut same: Vec<&str> = Vec::new();
        for metric in comparison.metrics.iter().filter(|metric| metric.in_verdict) {
            match sentence(metric, index + 1, first, other) {
                Some(text) => sentences.push(text),
                None if metric.ratio(index + 1).is_some() => same.push(&metric.title),
                None => {}
            }
        }
        if !same.is_empty() {
            sentences.push(format!(
                "No difference between {other} and {first} that could be told from the runs: {}.",
                same.join(", ")
            ));
        }
    }
    sentences
}

/// `None` where the runs show no difference.
fn sentence(metric: &Metric, side: usize, first: &str, other: &str) -> Option<String> {
    let ratio = metric.ratio(side)?;
    let (base, value) =
        (metric.values.first().copied().flatten()?, metric.values.get(side).copied().flatten()?);
    let once = base.runs.min(value.runs) < 2;
    if (ratio - 1.0).abs() < if once { SMALLEST_OF_ONE_RUN } else { SMALLEST } || !base.differs_from(&value) {
        return None;
    }
    let word = match (metric.better, ratio < 1.0) {
        (Some(Better::Lower), true) | (Some(Better::Higher), false) => ", which is better",
        (Some(Better::Lower), false) | (Some(Better::Higher), true) => ", which is worse",
        (None, _) => "",
    };
    let certain = if once { "; from one run each" } else { "; no run of one was among those of the other" };
    Some(format!(
        "{}: {} with {other} and {} with {first} ({}){word}{certain}.",
        metric.title,
        shown(value.mean, metric.unit),
        shown(base.mean, metric.unit),
        factor(ratio)
    ))
}

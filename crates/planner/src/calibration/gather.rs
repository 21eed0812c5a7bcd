//! From the laboratory's reports to the points of a calibration.

use std::path::Path;

use scrinium_lab_report::experiment::{CellPart, ExperimentReport, LoadReport};
use scrinium_lab_report::run::{OperationRow, Phase, Report};
use serde_json::Value;

use super::definition::{Cell, MESSAGE_BYTES};
use super::{Point, Run};
use crate::class::{Class, PerClass};

/// The points of an experiment's cells, and what has to be said about them.
pub(super) fn points(report: &ExperimentReport, cells: &[Cell], folder: &Path) -> (Vec<Point>, Vec<String>) {
    let mut notes = Vec::new();
    let mut points = Vec::new();
    for cell in cells {
        let Some(part) = report.cells.iter().find(|part| part.labels.first() == Some(&cell.name)) else {
            continue;
        };
        if let Some(why) = &part.failed {
            notes.push(format!("{} could not be measured: {why}", cell.name));
        }
        let runs = runs_of(part, folder, report.machine.cpus);
        for why in runs.iter().flat_map(|run| &run.invalid) {
            let note = format!("{} is not valid: {why}", cell.name);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        if !runs.is_empty() {
            points.push(Point {
                name: cell.name.clone(),
                kind: cell.kind,
                workload: cell.workload.clone(),
                users: cell.users,
                speedup: cell.speedup,
                documents: cell.documents,
                message_bytes: MESSAGE_BYTES,
                runs,
            });
        }
    }
    (points, notes)
}

fn runs_of(part: &CellPart, folder: &Path, cpus: usize) -> Vec<Run> {
    let read = |path: &Path| -> Option<Vec<u8>> { std::fs::read(path).ok() };
    // A calibration's cell has one load, whose report lies in a folder of the run's.
    let run = |load: &LoadReport| {
        let path = format!("{}/report.json", load.folder);
        let report: Report = serde_json::from_slice(&read(&folder.join(&path))?).ok()?;
        let (run, _) = load.folder.rsplit_once('/')?;
        let values: Value = serde_json::from_slice(&read(&folder.join(format!("{run}.json")))?).ok()?;
        run_of(&report, values.get("values").unwrap_or(&Value::Null), path, cpus)
    };
    part.load_reports.iter().filter_map(run).collect()
}

/// `None` where nothing could be seen of the server's process.
fn run_of(report: &Report, values: &Value, path: String, cpus: usize) -> Option<Run> {
    #[allow(clippy::cast_precision_loss, reason = "processors are few")]
    let cpus = cpus.max(1) as f64;
    let summary = &report.summary;
    let busy = |percent: f64| percent / 100.0 * cpus;
    let mut per_s = PerClass::<f64>::default();
    let mut time_ms = PerClass::<f64>::default();
    for row in &report.operations {
        let Some(class) = Class::of(&row.transaction) else { continue };
        #[allow(clippy::cast_precision_loss, reason = "requests of a run need no more than 53 bits")]
        let count = row.latency.count as f64;
        *per_s.get_mut(class) += count / summary.hold_s.max(0.001);
        *time_ms.get_mut(class) += row.latency.mean_ms * count / summary.hold_s.max(0.001);
    }
    let latency_ms = PerClass::of(|class| match *per_s.get(class) {
        rate if rate > 0.0 => time_ms.get(class) / rate,
        _ => 0.0,
    });
    let new_per_s: f64 =
        report.operations.iter().filter(|row| is_new(row)).map(|row| row.per_minute / 60.0).sum();
    let value = |name: &str| values.get(name).and_then(Value::as_f64);
    #[allow(clippy::cast_precision_loss, reason = "documents need no more than 53 bits")]
    let documents_added = report.run.documents_added as f64;
    #[allow(clippy::cast_precision_loss, reason = "memory needs no more than 53 bits")]
    let resident_bytes = summary.resident_bytes? as f64;
    Some(Run {
        report: path,
        per_s,
        latency_ms,
        mean_ms: summary.latency.mean_ms,
        p95_ms: summary.latency.p95_ms,
        p99_ms: summary.latency.p99_ms,
        user_cpus: busy(summary.user_percent?),
        system_cpus: busy(summary.system_percent?),
        driver_cpus: busy(summary.driver_cpu_percent),
        resident_bytes,
        written_bytes_per_s: summary.disk_bytes_per_s.unwrap_or(0.0),
        syncs_per_s: summary.log_syncs_per_s,
        data_bytes: (value("stop.data_bytes").unwrap_or(0.0) - value("start.data_bytes").unwrap_or(0.0))
            .max(0.0),
        log_bytes: value("stop.log_bytes").unwrap_or(0.0),
        documents_added,
        documents_grown: new_per_s * at_work_s(report),
        failed_percent: summary.failed_percent,
        invalid: report.validity.reasons.clone(),
    })
}

/// Whether an operation leaves a document that was not there before. The body of a message is kept once, however many
/// people it is for.
fn is_new(row: &OperationRow) -> bool {
    row.transaction == "MAIL_DEPOSIT" || row.command == "Add"
}

/// Seconds in which all users were at work, where a phase in which they begin counts half.
fn at_work_s(report: &Report) -> f64 {
    let each = report.run.phases.iter().map(|phase| {
        let length_s = (phase.to_s - phase.from_s).max(0.0);
        if phase.phase == Phase::Hold { length_s } else { length_s / 2.0 }
    });
    each.sum()
}

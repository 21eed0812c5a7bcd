//! An experiment, run: every cell, as often as it is to be measured, one after the other.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::cells::{Cell, Form, Plan};
use super::error::ExperimentError;
use super::estimate::cell_s;
use super::kept::{CellRun, Kept};
use super::library::Experiment;
use super::model::{ExperimentReport, Making};
use super::server::ServerCommand;
use super::stage::Stage;
use crate::progress::Progress;
use crate::report::time;

/// What is to be run, and where.
pub(super) struct Order<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) plan: &'a Plan,
    pub(super) form: Form,
    pub(super) server: &'a ServerCommand,
    pub(super) folder: &'a Path,
    /// Where the servers' data lies while a cell is measured.
    pub(super) data: &'a Path,
    pub(super) resume: bool,
    /// The command line, without passwords.
    pub(super) command: &'a str,
}

/// Seconds of all runs that are still to be done, going by how long those before took.
#[derive(Default)]
struct Pace {
    planned_s: f64,
    taken_s: f64,
}

impl Pace {
    fn left_s(&self, planned_s: f64) -> f64 {
        let slower = if self.planned_s > 0.0 { self.taken_s / self.planned_s } else { 1.0 };
        planned_s * slower
    }
}

/// Runs all cells and gives the report. Cells are measured in rounds, so that what changes on the machine meanwhile
/// meets all of them alike.
pub(super) async fn run(order: &Order<'_>, progress: &Progress) -> Result<ExperimentReport, ExperimentError> {
    let definition = &order.experiment.definition;
    let kept = Kept::open(order.folder, &print_of(order), order.resume)?;
    let cells = &order.plan.cells;
    let repeats = order.plan.repeats;
    let planned_s: Vec<f64> = cells.iter().map(|cell| cell_s(definition, cell)).collect();
    let mut left_s = planned_s.iter().sum::<f64>() * f64::from(repeats);
    progress.say(&format!(
        "{} ({}): {}, each {}, about {}; results in {}",
        definition.title,
        order.form.name(),
        if cells.len() == 1 { "1 cell".to_owned() } else { format!("{} cells", cells.len()) },
        if repeats == 1 { "once".to_owned() } else { format!("{repeats} times") },
        time(left_s),
        order.folder.display()
    ));
    let began = jiff::Timestamp::now();
    let mut pace = Pace::default();
    let mut runs: Vec<CellRun> = Vec::new();
    let all = u64::from(repeats) * cells.len() as u64;
    progress.begin_told("experiment", all);
    for repeat in 1..=repeats {
        for (cell, planned_s) in cells.iter().zip(&planned_s) {
            let slug = cell.slug();
            left_s -= planned_s;
            if let Some(run) = kept.find(&slug, repeat) {
                runs.push(run);
                continue;
            }
            let at =
                At { order, cell, repeat, done: runs.len() as u64, left_s: pace.left_s(left_s + planned_s) };
            let measured = tokio::select! {
                measured = at.measure(&kept, progress) => measured,
                _ = tokio::signal::ctrl_c() => {
                    progress.end();
                    return Err(ExperimentError::BrokenOff { folder: order.folder.display().to_string() });
                }
            };
            let run = match measured {
                Ok(run) => {
                    kept.keep(&slug, &run)?;
                    pace.planned_s += planned_s;
                    pace.taken_s += run.seconds;
                    run
                }
                Err(error)
                    if error.is_usage()
                        || runs.iter().all(|run| run.failed.is_some()) && !runs.is_empty() =>
                {
                    progress.end();
                    return Err(error);
                }
                Err(error) => {
                    progress.say(&format!("{}: {error}", name(cell, repeat)));
                    failed(cell, repeat, &error)
                }
            };
            runs.push(run);
        }
    }
    progress.end();
    let server_command = order.server.words.join(" ");
    let making = Making {
        experiment: order.experiment,
        plan: order.plan,
        form: order.form,
        server_command: &server_command,
        command: order.command,
        began,
        // Of those that were kept from before, too.
        seconds: runs.iter().map(|run| run.seconds).sum(),
    };
    Ok(ExperimentReport::of(&making, &runs))
}

fn failed(cell: &Cell, repeat: u32, error: &ExperimentError) -> CellRun {
    CellRun {
        labels: cell.labels.clone(),
        repeat,
        values: std::collections::BTreeMap::new(),
        invalid: Vec::new(),
        notes: Vec::new(),
        search: Vec::new(),
        settings: cell.settings.clone(),
        server: None,
        seconds: 0.0,
        failed: Some(error.to_string()),
    }
}

fn name(cell: &Cell, repeat: u32) -> String {
    format!("{} #{repeat}", cell.labels.join(", "))
}

/// What tells results from those of something else in the same folder: all that is measured, and not what is said of it.
fn print_of(order: &Order<'_>) -> String {
    format!(
        "{} {} {:?} {}\n{:?}\n{:?}\n",
        order.experiment.name,
        order.form.name(),
        order.plan.parameters,
        order.server.words.join(" "),
        order.plan.factors,
        order.experiment.definition.steps,
    )
}

/// A run of a cell, about to be measured.
struct At<'a> {
    order: &'a Order<'a>,
    cell: &'a Cell,
    repeat: u32,
    done: u64,
    left_s: f64,
}

impl At<'_> {
    async fn measure(&self, kept: &Kept, progress: &Progress) -> Result<CellRun, ExperimentError> {
        let began = Instant::now();
        let slug = self.cell.slug();
        let group = format!("scrinium-lab-{}-{}-{}", std::process::id(), self.done, self.repeat);
        let data: PathBuf = self.order.data.join(&group);
        let reports = kept.reports(&slug, self.repeat);
        let mut stage = Stage::new(self.cell, self.order.server, &data, &reports, &group)?;
        let tell = |step: &str| {
            let left_s = (self.left_s - began.elapsed().as_secs_f64()).max(1.0);
            let line =
                format!("{} \u{b7} {step} \u{b7} about {} left", name(self.cell, self.repeat), time(left_s));
            progress.at(self.done, &line);
        };
        for step in &self.order.experiment.definition.steps {
            if let Err(error) = stage.run(step, &tell).await {
                // What a server said is worth more than its data.
                keep_logs(&data, &reports);
                stage.end().await;
                return Err(error);
            }
        }
        let gathered = stage.end().await;
        Ok(CellRun {
            labels: self.cell.labels.clone(),
            repeat: self.repeat,
            values: gathered.values,
            invalid: gathered.invalid,
            notes: gathered.notes,
            search: gathered.search,
            settings: gathered.settings,
            server: gathered.server,
            seconds: began.elapsed().as_secs_f64(),
            failed: None,
        })
    }
}

fn keep_logs(data: &Path, reports: &Path) {
    for server in std::fs::read_dir(data).into_iter().flatten().flatten() {
        let kept = reports.join(format!("{}.log", server.file_name().to_string_lossy()));
        // A server that never said anything has no log.
        let _ = std::fs::copy(server.path().join("server.log"), kept);
    }
}

//! An experiment, run: every cell, as often as it is to be measured, one after the other.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::cells::{Cell, Form, Group, Plan};
use super::definition::Step;
use super::error::ExperimentError;
use super::estimate::group_s;
use super::kept::{CellRun, Kept};
use super::library::Experiment;
use super::model::{ExperimentReport, Making};
use super::server::ServerCommand;
use super::stage::{Gathered, Stage};
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
    let plan = order.plan;
    let kept = Kept::open(order.folder, &print_of(order), order.resume)?;
    let groups = plan.groups();
    let planned_s: Vec<f64> = groups.iter().map(|group| group_s(definition, plan, group)).collect();
    let mut left_s = planned_s.iter().sum::<f64>() * f64::from(plan.repeats);
    progress.say(&format!(
        "{} ({}): {}, each {}, about {}; results in {}",
        definition.title,
        order.form.name(),
        if plan.cells.len() == 1 { "1 cell".to_owned() } else { format!("{} cells", plan.cells.len()) },
        if plan.runs() == 1 { "once".to_owned() } else { format!("{} times", plan.runs()) },
        time(left_s),
        order.folder.display()
    ));
    let began = jiff::Timestamp::now();
    let mut pace = Pace::default();
    let mut runs: Vec<CellRun> = Vec::new();
    progress.begin_told("experiment", u64::from(plan.runs()) * plan.cells.len() as u64);
    for repeat in 1..=plan.repeats {
        for (group, planned_s) in groups.iter().zip(&planned_s) {
            left_s -= planned_s;
            if let Some(found) = found(&kept, plan, group, repeat) {
                runs.extend(found);
                continue;
            }
            let at =
                At { order, group, repeat, done: runs.len() as u64, left_s: pace.left_s(left_s + planned_s) };
            let measured = tokio::select! {
                measured = at.measure(&kept, progress) => measured,
                _ = tokio::signal::ctrl_c() => {
                    progress.end();
                    return Err(ExperimentError::BrokenOff { folder: order.folder.display().to_string() });
                }
            };
            match measured {
                Ok(measured) => {
                    for run in &measured {
                        kept.keep(run)?;
                    }
                    pace.planned_s += planned_s;
                    pace.taken_s += measured.iter().map(|run| run.seconds).sum::<f64>();
                    runs.extend(measured);
                }
                Err(error)
                    if error.is_usage()
                        || runs.iter().all(|run| run.failed.is_some()) && !runs.is_empty() =>
                {
                    progress.end();
                    return Err(error);
                }
                Err(error) => {
                    let number = plan.number(repeat, 1);
                    let names: Vec<String> = group.cells.iter().map(|cell| name(cell, number)).collect();
                    progress.say(&format!("{}: {error}", names.join("; ")));
                    runs.extend(group.cells.iter().map(|cell| failed(cell, number, &error)));
                }
            }
        }
    }
    progress.end();
    let server_command = order.server.words.join(" ");
    let making = Making {
        experiment: order.experiment,
        plan,
        form: order.form,
        server_command: &server_command,
        command: order.command,
        began,
        // Of those that were kept from before, too.
        seconds: runs.iter().map(|run| run.seconds).sum(),
    };
    Ok(ExperimentReport::of(&making, &runs))
}

/// All runs of a group, if none has to be done again.
fn found(kept: &Kept, plan: &Plan, group: &Group<'_>, repeat: u32) -> Option<Vec<CellRun>> {
    let turns = 1..=plan.turns();
    turns
        .flat_map(|turn| group.cells.iter().map(move |cell| (turn, cell)))
        .map(|(turn, cell)| kept.find(&cell.slug(), plan.number(repeat, turn)))
        .collect()
}

fn failed(cell: &Cell, repeat: u32, error: &ExperimentError) -> CellRun {
    CellRun {
        labels: cell.labels.clone(),
        repeat,
        values: std::collections::BTreeMap::new(),
        invalid: Vec::new(),
        notes: Vec::new(),
        search: Vec::new(),
        loads: Vec::new(),
        settings: cell.settings.clone(),
        server: None,
        seconds: 0.0,
        failed: Some(error.to_string()),
    }
}

fn name(cell: &Cell, number: u32) -> String {
    format!("{} #{number}", cell.labels.join(", "))
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

/// A group of cells, about to be measured.
struct At<'a> {
    order: &'a Order<'a>,
    group: &'a Group<'a>,
    repeat: u32,
    done: u64,
    left_s: f64,
}

impl At<'_> {
    async fn measure(&self, kept: &Kept, progress: &Progress) -> Result<Vec<CellRun>, ExperimentError> {
        let plan = self.order.plan;
        let (common, own) = plan.split(&self.order.experiment.definition.steps);
        let Some(first) = self.group.cells.first() else { return Ok(Vec::new()) };
        let (began, mut counted_s) = (Instant::now(), 0.0);
        let folder = format!("scrinium-lab-{}-{}-{}", std::process::id(), self.done, self.repeat);
        let data: PathBuf = self.order.data.join(&folder);
        let reports = kept.reports(&first.slug(), plan.number(self.repeat, 1));
        let mut stage = Stage::new(first, self.order.server, &data, &reports, &folder)?;
        let mut runs = Vec::new();
        let carried_out = async {
            let number = plan.number(self.repeat, 1);
            self.carry_out(&mut stage, common, &name(first, number), 0, began, progress).await?;
            let before = stage.gathered.clone();
            for turn in 1..=plan.turns() {
                let number = plan.number(self.repeat, turn);
                for cell in self.group.in_turn(number) {
                    stage.turn_to(cell, &kept.reports(&cell.slug(), number), before.clone())?;
                    let done = runs.len() as u64;
                    self.carry_out(&mut stage, own, &name(cell, number), done, began, progress).await?;
                    let seconds = began.elapsed().as_secs_f64() - counted_s;
                    counted_s += seconds;
                    runs.push(run_of(cell, number, std::mem::take(&mut stage.gathered), seconds));
                }
            }
            Ok(())
        };
        let ended = carried_out.await;
        if ended.is_err() {
            // What a server said is worth more than its data.
            keep_logs(&data, &reports);
        }
        stage.end().await;
        ended.map(|()| runs)
    }

    async fn carry_out(
        &self,
        stage: &mut Stage<'_>,
        steps: &[Step],
        name: &str,
        done: u64,
        began: Instant,
        progress: &Progress,
    ) -> Result<(), ExperimentError> {
        let tell = |step: &str| {
            let left_s = (self.left_s - began.elapsed().as_secs_f64()).max(1.0);
            let line = format!("{name} \u{b7} {step} \u{b7} about {} left", time(left_s));
            progress.at(self.done + done, &line);
        };
        for step in steps {
            stage.run(step, &tell).await?;
        }
        Ok(())
    }
}

fn run_of(cell: &Cell, number: u32, gathered: Gathered, seconds: f64) -> CellRun {
    CellRun {
        labels: cell.labels.clone(),
        repeat: number,
        values: gathered.values,
        invalid: gathered.invalid,
        notes: gathered.notes,
        search: gathered.search,
        loads: gathered.loads,
        settings: gathered.settings,
        server: gathered.server,
        seconds,
        failed: None,
    }
}

fn keep_logs(data: &Path, reports: &Path) {
    for server in std::fs::read_dir(data).into_iter().flatten().flatten() {
        let kept = reports.join(format!("{}.log", server.file_name().to_string_lossy()));
        // A server that never said anything has no log.
        let _ = std::fs::copy(server.path().join("server.log"), kept);
    }
}

//! An experiment, run: every cell, as often as it is to be measured, one after the other.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_lab_report::experiment::{ExperimentReport, Form, cell_count};
use scrinium_lab_report::time;

use super::assemble::{ReportInputs, report_of};
use super::cells::{Cell, Group, Plan};
use super::error::ExperimentError;
use super::estimate::{group_s, steps_s};
use super::kept::{CellRun, Kept};
use super::library::Experiment;
use super::resume::ResumeKey;
use super::server::ServerCommand;
use super::stage::{Gathered, Stage};
use super::step::CellStep;
use crate::progress::Progress;

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
#[derive(Clone, Copy, Default)]
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
    let kept = Kept::open(order.folder, &key_of(order), order.resume)?;
    let groups = plan.groups();
    let once_s: f64 = groups.iter().map(|group| group_s(definition, plan, group, plan.turns())).sum();
    let left_s = once_s * f64::from(plan.repeats);
    progress.say(&format!(
        "{} ({}): {}, each {}, about {}; results in {}",
        definition.title,
        order.form.name(),
        cell_count(plan.cells.len()),
        if plan.runs() == 1 { "once".to_owned() } else { format!("{} times", plan.runs()) },
        time(left_s),
        order.folder.display()
    ));
    let began = jiff::Timestamp::now();
    progress.begin_told("experiment", u64::from(plan.runs()) * plan.cells.len() as u64);
    let mut course = ExperimentRun { order, progress, kept, pace: Pace::default(), left_s, runs: Vec::new() };
    let mut ended = Ok(());
    for (repeat, group) in
        (1..=plan.repeats).flat_map(|repeat| groups.iter().map(move |group| (repeat, group)))
    {
        ended = course.take(group, repeat).await;
        if ended.is_err() {
            break;
        }
    }
    progress.end();
    ended?;
    let server_command = order.server.words.join(" ");
    let making = ReportInputs {
        experiment: order.experiment,
        plan,
        form: order.form,
        server_command: &server_command,
        command: order.command,
        began,
        // Of those that were kept from before, too.
        seconds: course.runs.iter().map(|run| run.seconds).sum(),
    };
    Ok(report_of(&making, &course.runs))
}

/// An experiment under way.
struct ExperimentRun<'a> {
    order: &'a Order<'a>,
    progress: &'a Progress,
    kept: Kept,
    pace: Pace,
    /// Planned seconds of what is not done.
    left_s: f64,
    runs: Vec<CellRun>,
}

impl ExperimentRun<'_> {
    /// Measures what is not kept of a group, and takes all of it to the results.
    ///
    /// # Errors
    /// What makes it useless to go on; the failure of one group does not.
    async fn take(&mut self, group: &Group<'_>, repeat: u32) -> Result<(), ExperimentError> {
        let plan = self.order.plan;
        let planned_s = |turns| group_s(&self.order.experiment.definition, plan, group, turns);
        self.left_s -= planned_s(plan.turns());
        let turns = missing(&self.kept, plan, group, repeat);
        let mut failure = None;
        if !turns.is_empty() {
            let missing_s = planned_s(u32::try_from(turns.len()).unwrap_or(u32::MAX));
            let at = GroupRun {
                order: self.order,
                group,
                repeat,
                turns,
                done: self.runs.len() as u64,
                planned_s: self.left_s + missing_s,
                pace: self.pace,
            };
            let began = Instant::now();
            let measured = tokio::select! {
                measured = at.measure(&self.kept, self.progress) => measured,
                _ = tokio::signal::ctrl_c() => {
                    let folder = self.order.folder.display().to_string();
                    return Err(ExperimentError::BrokenOff { folder });
                }
            };
            match measured {
                Ok(()) => {
                    self.pace.planned_s += missing_s;
                    self.pace.taken_s += began.elapsed().as_secs_f64();
                }
                Err(error) if error.is_usage() || self.nothing_works() => return Err(error),
                Err(error) => {
                    let number = plan.number(repeat, 1);
                    let names: Vec<String> = group.cells.iter().map(|cell| name(cell, number)).collect();
                    self.progress.say(&format!("{}: {error}", names.join("; ")));
                    failure = Some(error.to_string());
                }
            }
        }
        self.runs.extend(gathered(&self.kept, plan, group, repeat, failure.as_deref()));
        Ok(())
    }

    fn nothing_works(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(|run| run.failed.is_some())
    }
}

/// The turns of a group that are not kept whole.
fn missing(kept: &Kept, plan: &Plan, group: &Group<'_>, repeat: u32) -> Vec<u32> {
    let whole = |turn: &u32| {
        group.cells.iter().all(|cell| kept.find(&cell.slug(), plan.number(repeat, *turn)).is_some())
    };
    (1..=plan.turns()).filter(|turn| !whole(turn)).collect()
}

/// All runs of a group: those that were kept, and why the others could not be done.
fn gathered(kept: &Kept, plan: &Plan, group: &Group<'_>, repeat: u32, failure: Option<&str>) -> Vec<CellRun> {
    let runs = (1..=plan.turns()).flat_map(|turn| group.cells.iter().map(move |cell| (turn, cell)));
    let found = |(turn, cell): (u32, &&Cell)| {
        let number = plan.number(repeat, turn);
        let why = || failure.unwrap_or("its results cannot be read").to_owned();
        kept.find(&cell.slug(), number).unwrap_or_else(|| failed(cell, number, why()))
    };
    runs.map(found).collect()
}

fn failed(cell: &Cell, repeat: u32, why: String) -> CellRun {
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
        failed: Some(why),
    }
}

fn name(cell: &Cell, number: u32) -> String {
    format!("{} #{number}", cell.labels.join(", "))
}

fn key_of(order: &Order<'_>) -> ResumeKey {
    let server_command = order.server.words.join(" ");
    let steps = &order.experiment.definition.steps;
    ResumeKey::of(&order.experiment.name, order.form, order.plan, &server_command, steps)
}

/// The progress of a group, and how long each of its runs took.
struct Clock {
    began: Instant,
    counted_s: f64,
    done: u64,
    /// Planned seconds of the steps that are done.
    planned_s: f64,
}

impl Clock {
    /// Seconds since the run before ended.
    fn next(&mut self) -> f64 {
        let seconds = self.began.elapsed().as_secs_f64() - self.counted_s;
        self.counted_s += seconds;
        self.done += 1;
        seconds
    }
}

/// How often the remaining time is shown again.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// A group of cells, about to be measured in turns.
struct GroupRun<'a> {
    order: &'a Order<'a>,
    group: &'a Group<'a>,
    repeat: u32,
    turns: Vec<u32>,
    /// Runs before it.
    done: u64,
    /// Planned seconds of this group and all after it.
    planned_s: f64,
    pace: Pace,
}

impl GroupRun<'_> {
    /// Each turn is kept as soon as it is whole: levels are compared within turns.
    async fn measure(&self, kept: &Kept, progress: &Progress) -> Result<(), ExperimentError> {
        let plan = self.order.plan;
        let (common, own) = plan.split(&self.order.experiment.definition.steps);
        let (Some(first), Some(turn)) = (self.group.cells.first(), self.turns.first()) else { return Ok(()) };
        let number = plan.number(self.repeat, *turn);
        let folder = format!("scrinium-lab-{}-{}-{number}", std::process::id(), self.done);
        let data: PathBuf = self.order.data.join(&folder);
        let reports = kept.reports(&first.slug(), number);
        let mut stage = Stage::new(first, self.order.server, &data, &reports, &folder)?;
        let carried_out = async {
            let mut clock = Clock { began: Instant::now(), counted_s: 0.0, done: 0, planned_s: 0.0 };
            self.carry_out(&mut stage, common, (first, number), &mut clock, progress).await?;
            let before = stage.gathered.clone();
            for turn in &self.turns {
                let number = plan.number(self.repeat, *turn);
                let mut runs = Vec::new();
                for cell in self.group.in_turn(number) {
                    stage.turn_to(cell, &kept.reports(&cell.slug(), number), before.clone())?;
                    self.carry_out(&mut stage, own, (cell, number), &mut clock, progress).await?;
                    let gathered = std::mem::take(&mut stage.gathered);
                    runs.push(run_of(cell, number, gathered, clock.next()));
                }
                runs.iter().try_for_each(|run| kept.keep(run))?;
            }
            Ok(())
        };
        let ended = carried_out.await;
        if ended.is_err() {
            // What a server said is worth more than its data.
            keep_logs(&data, &reports);
        }
        stage.end().await;
        ended
    }

    async fn carry_out(
        &self,
        stage: &mut Stage<'_>,
        steps: &[CellStep],
        (cell, number): (&Cell, u32),
        clock: &mut Clock,
        progress: &Progress,
    ) -> Result<(), ExperimentError> {
        let name = name(cell, number);
        for step in steps {
            let done = self.done + clock.done;
            let left_s = self.pace.left_s(self.planned_s - clock.planned_s);
            let begun = Instant::now();
            let told = Mutex::new(String::new());
            let message = || {
                let left_s = (left_s - begun.elapsed().as_secs_f64()).max(1.0);
                format!("{name} \u{b7} {} \u{b7} about {} left", told.lock(), time(left_s))
            };
            let tell = |step: &str| {
                step.clone_into(&mut told.lock());
                progress.at(done, &message());
            };
            let running = stage.run(step, &tell);
            tokio::pin!(running);
            loop {
                // A step may take an hour, and most say only that they begin.
                match tokio::time::timeout(BETWEEN_LOOKS, &mut running).await {
                    Ok(ended) => break ended?,
                    Err(_) => progress.still_at(done, &message()),
                }
            }
            clock.planned_s += steps_s(&self.order.experiment.definition, std::slice::from_ref(step), cell);
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

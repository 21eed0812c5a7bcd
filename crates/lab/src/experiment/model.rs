//! An experiment's results as data: what `experiment.json` holds.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cells::{Cell, Form, Plan};
use super::definition::{Column, Figure, Published, Unit};
use super::kept::CellRun;
use super::library::Experiment;
use super::objective::{Measured, ObjectivePart};
use super::search::SearchPoint;
use crate::monitor::Machine;

/// The form of `experiment.json`. A reader that finds another number behind the slash must not guess.
pub const FORMAT: &str = "scrinium-lab-experiment/1";

/// All cells of an experiment, measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ExperimentReport {
    pub format: String,
    pub name: String,
    pub title: String,
    pub hypothesis: String,
    pub source: String,
    pub choices: Vec<String>,
    pub origin: String,
    pub form: Form,
    pub repeats: u32,
    pub machine: Machine,
    pub server_name: String,
    pub server_version: String,
    pub server_command: String,
    pub laboratory_version: String,
    /// RFC 3339.
    pub began: String,
    pub seconds: f64,
    pub parameters: BTreeMap<String, String>,
    pub factors: Vec<FactorPart>,
    pub columns: Vec<ColumnPart>,
    pub cells: Vec<CellPart>,
    pub figures: Vec<FigurePart>,
    pub published: Vec<Published>,
    /// What it was asked to show, and whether it does.
    #[serde(default)]
    pub objectives: Vec<ObjectivePart>,
    pub findings: Vec<String>,
    /// What a reader should know all the same, each once.
    pub notes: Vec<String>,
    /// The command that repeats it, without passwords.
    pub command: String,
}

/// A factor with its levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FactorPart {
    pub name: String,
    pub title: String,
    pub levels: Vec<String>,
}

/// A column's head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ColumnPart {
    pub title: String,
    pub unit: Unit,
}

/// One value of all runs of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Spread {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    pub runs: u32,
}

/// A cell, measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct CellPart {
    /// In the order of the factors.
    pub labels: Vec<String>,
    /// Settings of the server that are not its defaults.
    pub settings: BTreeMap<String, String>,
    /// In the order of the columns; `None` where nothing was measured.
    pub values: Vec<Option<Spread>>,
    /// Why its values say nothing of the server. They are shown, and no part of the findings.
    pub invalid: Vec<String>,
    /// Why it could not be measured.
    pub failed: Option<String>,
    /// Runs that do not count, of a cell in which others do.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    pub search: Vec<SearchPoint>,
    /// Folders of its runs, below the experiment's.
    pub reports: Vec<String>,
    /// Reports of the loads in them.
    #[serde(default)]
    pub load_reports: Vec<LoadReport>,
}

/// A run that is no part of its cell's values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The number of the run.
    pub run: u32,
    /// Whether it could not be carried out; it is tried again when the experiment is gone on with. Otherwise it was not
    /// valid.
    pub failed: bool,
    /// What happened.
    pub why: String,
}

/// Where a load's report is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// The number of the run.
    pub run: u32,
    /// Its step, and the users of it where they were searched for.
    pub load: String,
    /// Below the experiment's folder; empty if it is not kept.
    pub folder: String,
}

/// A column against one factor, or against two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FigurePart {
    pub title: String,
    pub unit: Unit,
    /// The factor of the rows: its title, and its levels.
    pub rows_title: String,
    pub rows: Vec<String>,
    pub series_title: String,
    pub series: Vec<String>,
    /// A list for each row, of valid values.
    pub values: Vec<Vec<Option<Spread>>>,
    /// Levels of the factors that the figure does not show.
    pub fixed: Vec<String>,
    pub published: Option<Published>,
}

/// What an experiment was made with.
pub(super) struct Making<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) plan: &'a Plan,
    pub(super) form: Form,
    pub(super) server_command: &'a str,
    pub(super) command: &'a str,
    pub(super) began: jiff::Timestamp,
    pub(super) seconds: f64,
}

impl Spread {
    /// Of one cell's runs; `None` of none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let runs = u32::try_from(values.len()).ok().filter(|runs| *runs > 0)?;
        let mean = values.iter().sum::<f64>() / f64::from(runs);
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self { mean, low, high, runs })
    }

    /// How far apart they are as a factor, whichever is larger: the logarithm of it. Without a limit where one is not
    /// above 0.
    pub(super) fn distance(&self, other: &Self) -> f64 {
        if self.mean > 0.0 && other.mean > 0.0 { (other.mean / self.mean).ln().abs() } else { f64::INFINITY }
    }

    /// Whether each of several runs of both was on the same side: then it was not their spread that made them differ.
    #[must_use]
    pub fn differs_from(&self, other: &Self) -> bool {
        self.low > other.high || self.high < other.low
    }
}

impl CellPart {
    /// Whether it was measured, and its values say something of the server.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.invalid.is_empty() && self.failed.is_none()
    }
}

impl ExperimentReport {
    pub(super) fn of(making: &Making<'_>, runs: &[CellRun]) -> Self {
        let definition = &making.experiment.definition;
        let factors: Vec<FactorPart> = making
            .plan
            .factors
            .iter()
            .map(|(factor, levels)| FactorPart {
                name: factor.name.clone(),
                title: factor.title.clone(),
                levels: levels.iter().map(|level| level.label.clone()).collect(),
            })
            .collect();
        let cells: Vec<CellPart> =
            making.plan.cells.iter().map(|cell| cell_part(cell, &definition.columns, runs)).collect();
        let columns: Vec<ColumnPart> = definition
            .columns
            .iter()
            .map(|column| ColumnPart { title: column.title.clone(), unit: column.unit })
            .collect();
        let figures = definition.figures.iter().map(|figure| figure_part(figure, &factors, &columns, &cells));
        let figures = figures.collect();
        let measured = Measured { form: making.form, factors: &factors, columns: &columns, cells: &cells };
        let objectives = measured.judge(&definition.objectives);
        let server = runs.iter().find_map(|run| run.server.clone()).unwrap_or_default();
        let mut notes: Vec<String> = Vec::new();
        for note in runs.iter().flat_map(|run| &run.notes) {
            if !notes.contains(note) && notes.len() < MOST_NOTES {
                notes.push(note.clone());
            }
        }
        let mut report = Self {
            format: FORMAT.to_owned(),
            name: making.experiment.name.clone(),
            title: definition.title.clone(),
            hypothesis: definition.hypothesis.clone(),
            source: definition.source.clone(),
            choices: definition.choices.clone(),
            origin: making.experiment.origin.clone(),
            form: making.form,
            repeats: making.plan.runs(),
            machine: Machine::this(),
            server_name: server.0,
            server_version: server.1,
            server_command: making.server_command.to_owned(),
            laboratory_version: env!("CARGO_PKG_VERSION").to_owned(),
            began: format!("{:.0}", making.began),
            seconds: making.seconds,
            parameters: making.plan.parameters.clone(),
            factors,
            columns,
            cells,
            figures,
            published: definition.published.clone(),
            objectives,
            findings: Vec::new(),
            notes,
            command: making.command.to_owned(),
        };
        report.findings = super::findings::of(&report);
        report
    }

    /// Cells in which the largest number of users was searched for.
    pub(super) fn searched(&self) -> impl Iterator<Item = &CellPart> {
        self.cells.iter().filter(|cell| cell.search.len() > 1)
    }

    /// The report with links to those reports of loads that are there.
    pub(super) fn as_kept_in(&self, folder: &Path) -> Self {
        let mut kept = self.clone();
        for report in kept.cells.iter_mut().flat_map(|cell| &mut cell.load_reports) {
            if !folder.join(&report.folder).is_dir() {
                report.folder.clear();
            }
        }
        kept
    }

    /// Whether no objective was missed.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.objectives.iter().all(|objective| objective.held != Some(false))
    }

    /// Whether every cell was measured, and is valid.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.cells.iter().all(CellPart::is_valid)
    }

    /// Whether that is so of each run of every cell.
    #[must_use]
    pub fn every_run_counts(&self) -> bool {
        self.is_whole() && self.left_out() == 0
    }

    /// Whether a run could not be carried out, be it of a cell that others were measured of.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.cells.iter().any(|cell| cell.failed.is_some() || cell.left_out.iter().any(|run| run.failed))
    }

    /// How many runs do not count in cells that have others.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.cells.iter().map(|cell| cell.left_out.len()).sum()
    }
}

/// Drivers say much the same of each run.
const MOST_NOTES: usize = 40;

fn cell_part(cell: &Cell, columns: &[Column], runs: &[CellRun]) -> CellPart {
    let runs: Vec<&CellRun> = runs.iter().filter(|run| run.labels == cell.labels).collect();
    let valid: Vec<&&CellRun> =
        runs.iter().filter(|run| run.invalid.is_empty() && run.failed.is_none()).collect();
    // Values of runs that are not valid are shown where there are no others.
    let counted: Vec<&CellRun> =
        if valid.is_empty() { runs.clone() } else { valid.iter().map(|run| **run).collect() };
    let values = columns.iter().map(|column| {
        let values: Vec<f64> = counted.iter().filter_map(|run| value(column, run, cell)).collect();
        Spread::of(&values)
    });
    let invalid =
        if valid.is_empty() { runs.iter().flat_map(|run| run.invalid.clone()).collect() } else { Vec::new() };
    let failed = if valid.is_empty() { runs.iter().find_map(|run| run.failed.clone()) } else { None };
    let measured = || runs.iter().filter(|run| run.failed.is_none());
    let folder = |run: &CellRun| format!("cells/{}-{}", cell.slug(), run.repeat);
    let load_report = |run: &CellRun, load: &String| LoadReport {
        run: run.repeat,
        load: load.clone(),
        folder: format!("{}/{load}", folder(run)),
    };
    CellPart {
        labels: cell.labels.clone(),
        settings: runs.iter().map(|run| run.settings.clone()).next_back().unwrap_or_default(),
        values: values.collect(),
        invalid,
        failed,
        left_out: if valid.is_empty() {
            Vec::new()
        } else {
            runs.iter().filter_map(|run| left_out(run)).collect()
        },
        search: counted.iter().flat_map(|run| run.search.clone()).collect(),
        reports: measured().map(|run| folder(run)).collect(),
        load_reports: measured()
            .flat_map(|run| run.loads.iter().map(|load| load_report(run, load)))
            .collect(),
    }
}

fn left_out(run: &CellRun) -> Option<LeftOut> {
    let of = |failed, why: &String| LeftOut { run: run.repeat, failed, why: why.clone() };
    let failed = run.failed.as_ref().map(|why| of(true, why));
    failed.or_else(|| run.invalid.first().map(|why| of(false, why)))
}

/// A column's value of one run.
fn value(column: &Column, run: &CellRun, cell: &Cell) -> Option<f64> {
    let value = *run.values.get(&column.value)?;
    let Some(per) = &column.per else { return Some(value) };
    let divisor = match per.strip_prefix('$') {
        Some(name) => cell.values.get(name)?.parse().ok()?,
        None => *run.values.get(per)?,
    };
    (divisor != 0.0).then(|| value / divisor)
}

fn figure_part(
    figure: &Figure,
    factors: &[FactorPart],
    columns: &[ColumnPart],
    cells: &[CellPart],
) -> FigurePart {
    let at = |name: &str| factors.iter().position(|factor| factor.name == name);
    let levels = |index: Option<usize>| index.and_then(|index| factors.get(index)).cloned();
    let (rows_at, series_at) = (at(&figure.rows), figure.series.as_deref().and_then(at));
    let rows = levels(rows_at);
    let series = levels(series_at);
    let column = columns.iter().position(|column| column.title == figure.column);
    // Of the factors that it does not show, the first level.
    let others: Vec<(usize, String)> = factors
        .iter()
        .enumerate()
        .filter(|(index, _)| Some(*index) != rows_at && Some(*index) != series_at)
        .filter_map(|(index, factor)| Some((index, factor.levels.first()?.clone())))
        .collect();
    let find = |row: &str, line: Option<&str>| {
        let is = |cell: &CellPart, index: Option<usize>, label: &str| {
            index.and_then(|index| cell.labels.get(index)).is_some_and(|found| found == label)
        };
        let cell = cells.iter().find(|cell| {
            is(cell, rows_at, row)
                && line.is_none_or(|line| is(cell, series_at, line))
                && others.iter().all(|(index, label)| is(cell, Some(*index), label))
        })?;
        if cell.invalid.is_empty() { cell.values.get(column?).copied().flatten() } else { None }
    };
    let row_labels = rows.as_ref().map(|factor| factor.levels.clone()).unwrap_or_default();
    let series_labels = series.as_ref().map(|factor| factor.levels.clone()).unwrap_or_default();
    let values = row_labels.iter().map(|row| match series_labels.as_slice() {
        [] => vec![find(row, None)],
        labels => labels.iter().map(|label| find(row, Some(label))).collect(),
    });
    FigurePart {
        title: figure.column.clone(),
        unit: column.and_then(|index| columns.get(index)).map(|column| column.unit).unwrap_or_default(),
        rows_title: rows.as_ref().map(|factor| factor.title.clone()).unwrap_or_default(),
        values: values.collect(),
        rows: row_labels,
        series_title: series.map(|factor| factor.title).unwrap_or_default(),
        series: series_labels,
        fixed: others
            .into_iter()
            .filter_map(|(index, label)| Some(format!("{}: {label}", factors.get(index)?.title)))
            .collect(),
        published: figure.published.clone(),
    }
}

//! An experiment's results as data: what `experiment.json` holds.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::objective::ObjectivePart;
use super::search::SearchPoint;
use crate::machine::Machine;

/// The form of `experiment.json`. A reader that finds another number behind the slash must not guess.
pub const FORMAT: &str = "scrinium-lab-experiment/1";

/// How large an experiment is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Minutes: shows that it works and which way things go.
    Quick,
    /// As large and as long as the source, or larger.
    Full,
}

impl Form {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// In what a value is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Unit {
    #[default]
    Count,
    Percent,
    Milliseconds,
    Seconds,
    Bytes,
    Ratio,
}

/// A table of the source. The first cell of a row says what the row is.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Published {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
    #[serde(default)]
    pub note: String,
}

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
    /// Whether it could not be carried out; it is tried again when the experiment is resumed. Otherwise it was not
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

//! `lab compare A B`: what two or more runs, or two experiments, have in common and in what they differ.
//!
//! The first side is what the others are held against. A side is one run's report, a folder with the reports of several
//! runs of the same, or an experiment's report.

mod build;
mod page;
mod side;
mod text;

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::error::{LabError, Outcome};
use crate::experiment::definition::Unit;
use crate::experiment::model::Spread;
use crate::files::write_all;
use crate::output::{print, say};

pub use side::Side;

/// The form of `comparison.json`. A reader that finds another number behind the slash must not guess.
pub const FORMAT: &str = "scrinium-lab-comparison/1";

/// What `lab compare` can be told.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Reports: a report.json or experiment.json, a folder with one, or a folder with folders of several runs of the same
    #[arg(required = true, num_args = 2..=8, value_name = "REPORT")]
    pub reports: Vec<PathBuf>,
    /// Write comparison.html, comparison.json, comparison.md and comparison.csv into this folder
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Print the comparison as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Sides held against the first of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Comparison {
    pub format: String,
    pub sides: Vec<SidePart>,
    /// Why the sides cannot be held against each other without care.
    pub warnings: Vec<String>,
    /// What is not the same in the set-ups.
    pub differences: Vec<Difference>,
    pub metrics: Vec<Metric>,
    /// Sentences that are computed from the numbers.
    pub verdicts: Vec<String>,
    /// The command that repeats it.
    pub command: String,
}

/// What a side is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SidePart {
    /// `A`, `B` and so on.
    pub name: String,
    pub path: String,
    pub heading: String,
    pub runs: usize,
    pub valid: bool,
}

/// One thing in which set-ups differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Difference {
    pub what: String,
    /// A value for each side.
    pub values: Vec<String>,
    /// It makes the sides different workloads.
    pub of_the_workload: bool,
}

/// One value of all sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Metric {
    pub title: String,
    pub unit: Unit,
    /// Which way is better, where one is.
    pub better: Option<Better>,
    /// Part of the verdict in sentences.
    pub in_verdict: bool,
    pub values: Vec<Option<Spread>>,
}

/// Which way a value should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Better {
    Lower,
    Higher,
}

impl Metric {
    /// A side's value divided by the first side's.
    #[must_use]
    pub fn ratio(&self, side: usize) -> Option<f64> {
        let first = self.values.first().copied().flatten()?;
        let other = self.values.get(side).copied().flatten()?;
        (first.mean > 0.0).then(|| other.mean / first.mean)
    }
}

impl Comparison {
    /// Holds sides against the first of them.
    ///
    /// # Errors
    /// [`LabError::Usage`] where runs and experiments are mixed, or experiments have no cell in common.
    pub fn of(sides: &[Side], command: &str) -> Result<Self, LabError> {
        build::comparison(sides, command)
    }

    /// The comparison for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        text::terminal(self)
    }

    /// The page, with the sides' courses over each other.
    ///
    /// # Errors
    /// [`LabError::Chart`] when a chart cannot be drawn.
    pub fn page(&self, sides: &[Side]) -> Result<String, LabError> {
        page::page(self, sides)
    }
}

/// `lab compare`.
pub(crate) fn run(arguments: &CompareArguments) -> Result<Outcome, LabError> {
    let sides: Result<Vec<Side>, LabError> =
        arguments.reports.iter().zip('A'..).map(|(path, name)| Side::read(&name.to_string(), path)).collect();
    let sides = sides?;
    let comparison = Comparison::of(&sides, &crate::run::command_line())?;
    let printed = if arguments.json {
        print(&(serde_json::to_string_pretty(&comparison)? + "\n"))
    } else {
        print(&comparison.text())
    };
    if let Some(folder) = &arguments.report {
        let files = [
            ("comparison.json", serde_json::to_string_pretty(&comparison)? + "\n"),
            ("comparison.html", comparison.page(&sides)?),
            ("comparison.md", text::markdown(&comparison)),
            ("comparison.csv", text::csv(&comparison)),
        ];
        write_all(folder, files)?;
        say(&format!("The comparison is {}", folder.join("comparison.html").display()));
    }
    printed?;
    Ok(Outcome::Done)
}

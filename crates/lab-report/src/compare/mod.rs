//! What two or more runs, or two experiments, have in common and in what they differ.
//!
//! The first side is what the others are held against. A side is one run's report, a folder with the reports of several
//! runs of the same, or an experiment's report.

mod build;
mod page;
mod side;
mod text;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::ReportError;
use crate::experiment::{Spread, Unit};
use crate::files::write_all;

pub use side::Side;

/// The form of `comparison.json`. A reader that finds another number behind the slash must not guess.
pub const FORMAT: &str = "scrinium-lab-comparison/1";

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
    /// [`ReportError::Usage`] where runs and experiments are mixed, or experiments have no cell in common.
    pub fn of(sides: &[Side], command: &str) -> Result<Self, ReportError> {
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
    /// [`ReportError::Chart`] when a chart cannot be drawn.
    pub fn page(&self, sides: &[Side]) -> Result<String, ReportError> {
        page::page(self, sides)
    }

    /// Writes `comparison.json`, `.html`, `.md` and `.csv` into a folder, which is made if need be.
    ///
    /// # Errors
    /// A file cannot be written, or a chart not be drawn.
    pub fn write(&self, sides: &[Side], folder: &Path) -> Result<(), ReportError> {
        let files = [
            ("comparison.json", serde_json::to_string_pretty(self)? + "\n"),
            ("comparison.html", self.page(sides)?),
            ("comparison.md", text::markdown(self)),
            ("comparison.csv", text::csv(self)),
        ];
        write_all(folder, files)
    }
}

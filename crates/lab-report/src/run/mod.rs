//! What a run showed: as data, in sentences, for a terminal, as a page.

pub mod csv;
mod findings;
mod model;
pub mod page;
mod parts;
mod probe;
mod repeat;
mod sections;
pub mod table;

use std::path::Path;

use crate::error::ReportError;
use crate::files::write_all;

pub use model::{
    DriverRow, ExpectedRow, FORMAT, FailureRow, ObjectiveResult, OperationRow, PhasePart, RepeatRow, Repeats,
    Report, RunPart, SecondRow, Spread, Summary, Validity, WorkloadPart,
};
pub use parts::{Deliveries, Phase, ProbePart, ProbePoint, Subject, SubjectSummary};

impl Report {
    /// Says in sentences what the numbers show, in the place of what was said before.
    pub fn set_findings(&mut self) {
        self.findings = findings::of(self);
    }

    /// Writes `report.json`, `report.csv` and `report.html` into a folder, which is made if need be.
    ///
    /// # Errors
    /// A file cannot be written, or a chart not be drawn.
    pub fn write(&self, folder: &Path) -> Result<(), ReportError> {
        let files = [
            ("report.json", serde_json::to_string_pretty(self)? + "\n"),
            ("report.csv", csv::text(self)),
            ("report.html", page::page(self)?),
        ];
        write_all(folder, files)
    }
}

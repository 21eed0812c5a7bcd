//! What a run showed, for people and for programs.

mod build;
mod chart;
pub mod compare;
pub mod csv;
pub(crate) mod curve;
mod drivers;
mod findings;
pub mod html;
mod model;
pub mod parts;
pub(crate) mod probe;
mod repeat;
mod sections;
pub mod table;
pub mod validity;

use std::path::Path;

use crate::error::LabError;
use crate::files::write_all;

pub(crate) use chart::{HEIGHT as CHART_HEIGHT, WIDTH as CHART_WIDTH, series_variable};
pub(crate) use findings::bytes_scale;
pub use findings::{bytes, milliseconds, thousands, time};
pub use model::{
    DriverRow, ExpectedRow, FORMAT, FailureRow, ObjectiveResult, OperationRow, PhasePart, RepeatRow, Repeats,
    Report, RunPart, SecondRow, Spread, Summary, Validity, WorkloadPart,
};

impl Report {
    /// Writes `report.json`, `report.csv` and `report.html` into a folder, which is made if need be.
    ///
    /// # Errors
    /// A file cannot be written, or a chart not be drawn.
    pub fn write(&self, folder: &Path) -> Result<(), LabError> {
        let files = [
            ("report.json", serde_json::to_string_pretty(self)? + "\n"),
            ("report.csv", csv::text(self)),
            ("report.html", html::page(self)?),
        ];
        write_all(folder, files)
    }
}

//! Plans, calibrations and checks as text for a terminal, as Markdown, and as a page.

mod html;
mod lines;
mod markdown;
mod text;

use std::path::Path;

use serde::Serialize;

use crate::answer::Answer;
use crate::calibration::Calibration;
use crate::error::PlanError;
use crate::fit::Model;

pub use html::page;
pub use markdown::{check_markdown, markdown};
pub use text::{calibration as calibration_text, check as check_text, plan as plan_text};

/// A plan with what would be otherwise.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The organisation as it is.
    pub plan: Answer,
    /// What was asked on the command line, and the answer to it.
    pub what_if: Vec<Scenario>,
}

/// One change.
#[derive(Debug, Serialize)]
pub struct Scenario {
    /// As it was written.
    pub change: String,
    /// What comes of it.
    pub plan: Answer,
}

impl Plan {
    /// Writes `plan.html`, `plan.md` and `plan.json` into a folder, which is made if need be.
    ///
    /// # Errors
    /// A file cannot be written, or a chart not be drawn.
    pub fn write(&self, calibration: &Calibration, model: &Model, folder: &Path) -> Result<(), PlanError> {
        std::fs::create_dir_all(folder).map_err(PlanError::file("make the folder", folder))?;
        let files = [
            ("plan.json", serde_json::to_string_pretty(self)? + "\n"),
            ("plan.md", markdown(self)),
            ("plan.html", page(self, calibration, model)?),
        ];
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(PlanError::file("write", &path))?;
        }
        Ok(())
    }
}

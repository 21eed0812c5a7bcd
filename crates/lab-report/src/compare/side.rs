//! Reading what is compared.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::ReportError;
use crate::experiment::{ExperimentReport, FORMAT as EXPERIMENT_FORMAT};
use crate::run::{FORMAT as RUN_FORMAT, Report};

/// A report larger than this is not one of ours.
const LARGEST_BYTES: u64 = 512 << 20;

/// Runs of the same, or an experiment.
#[derive(Clone, Debug)]
pub enum What {
    /// In the order of their folders' names; at least one.
    Runs(Vec<Report>),
    /// An experiment.
    Experiment(Box<ExperimentReport>),
}

/// A side of a comparison.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Side {
    pub name: String,
    pub path: String,
    pub what: What,
}

impl Side {
    /// Reads a report, or the reports of a folder.
    ///
    /// # Errors
    /// [`ReportError::File`], or [`ReportError::Usage`] where no report is, or one of another format.
    pub fn read(name: &str, path: &Path) -> Result<Self, ReportError> {
        let shown = path.display().to_string();
        let files = if path.is_dir() { reports_in(path) } else { vec![path.to_owned()] };
        let mut runs = Vec::new();
        for file in files {
            match read(&file)? {
                What::Runs(mut read) => runs.append(&mut read),
                experiment @ What::Experiment(_) => {
                    return Ok(Self { name: name.to_owned(), path: shown, what: experiment });
                }
            }
        }
        if runs.is_empty() {
            return Err(ReportError::Usage(format!(
                "{shown} holds no report.json and no experiment.json, and neither do its folders; lab load --report and lab experiment --report write them"
            )));
        }
        Ok(Self { name: name.to_owned(), path: shown, what: What::Runs(runs) })
    }

    /// Its runs; none of an experiment.
    #[must_use]
    pub fn runs(&self) -> &[Report] {
        match &self.what {
            What::Runs(runs) => runs,
            What::Experiment(_) => &[],
        }
    }
}

/// The folder's own report, else those of the folders in it.
fn reports_in(folder: &Path) -> Vec<PathBuf> {
    for name in ["report.json", "experiment.json"] {
        let own = folder.join(name);
        if own.is_file() {
            return vec![own];
        }
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path().join("report.json")).filter(|path| path.is_file()).collect();
    found.sort();
    found
}

fn read(path: &Path) -> Result<What, ReportError> {
    let shown = path.display().to_string();
    let failed = |source| ReportError::File { what: "read", path: shown.clone(), source };
    let bytes = std::fs::metadata(path).map_err(failed)?.len();
    if bytes > LARGEST_BYTES {
        return Err(ReportError::Usage(format!("{shown} has {bytes} bytes and is no report")));
    }
    let text = std::fs::read(path).map_err(failed)?;
    let wrong = |error: serde_json::Error| {
        ReportError::Usage(format!("{shown} is no report that can be read: {error}"))
    };
    let value: Value = serde_json::from_slice(&text).map_err(wrong)?;
    match value.get("format").and_then(Value::as_str) {
        Some(RUN_FORMAT) => Ok(What::Runs(vec![serde_json::from_value(value).map_err(wrong)?])),
        Some(EXPERIMENT_FORMAT) => {
            Ok(What::Experiment(Box::new(serde_json::from_value(value).map_err(wrong)?)))
        }
        Some(other) => Err(ReportError::Usage(format!(
            "{shown} has the format {other}; this laboratory reads {RUN_FORMAT} and {EXPERIMENT_FORMAT}"
        ))),
        None => Err(ReportError::Usage(format!("{shown} does not say its format, and so is no report"))),
    }
}

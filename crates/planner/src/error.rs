//! Why a plan cannot be made.

use std::path::Path;

use scrinium_lab::LabError;
use scrinium_lab_report::ReportError;
use scrinium_lab_script::WorkloadError;
use scrinium_terminal::{CommandOutcome, OutputError};
use thiserror::Error;

/// Why a command of the planner could not be done.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PlanError {
    #[error("{0}")]
    Usage(String),
    #[error("{origin}:{line}: {what}")]
    Organisation { origin: String, line: usize, what: String },
    #[error(
        "there is no file {path}. \u{201c}scrinium plan --example > {path}\u{201d} writes one to begin with"
    )]
    NoOrganisation { path: String },
    #[error(
        "there is no calibration at {path}. Make one of this machine by \u{201c}scrinium plan calibrate\u{201d} (some minutes; --quick: fewer), or name one by --calibration"
    )]
    NoCalibration { path: String },
    #[error("{path}: {why}. Make another one by \u{201c}scrinium plan calibrate\u{201d}")]
    WrongCalibration { path: String, why: String },
    #[error("the calibration cannot be used: {why}. Calibrate again, longer and with nothing else at work")]
    Unusable { why: String },
    #[error(
        "{workload} cannot be planned: nothing has measured what {transactions} costs. Workloads of documents and mail over HTTP can"
    )]
    NotMeasured { workload: String, transactions: String },
    #[error("cannot {what} {path}: {source}")]
    File { what: &'static str, path: String, source: std::io::Error },
    #[error(
        "nothing was measured: {why}; the servers\u{2019} logs and the runs\u{2019} reports are in {folder}"
    )]
    NothingMeasured { why: String, folder: String },
    #[error(transparent)]
    Laboratory(#[from] LabError),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl PlanError {
    /// What makes an error of the system's into one that says what could not be done to which file.
    pub(crate) fn file(
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self + Clone + use<> {
        let path = path.display().to_string();
        move |source| Self::File { what, path, source }
    }

    /// Whether it is nothing that anybody need be told.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        match self {
            Self::Laboratory(error) => error.is_silent(),
            Self::Output(error) => error.is_silent(),
            _ => false,
        }
    }

    /// How the program ends because of this.
    #[must_use]
    pub fn outcome(&self) -> CommandOutcome {
        match self {
            Self::Usage(_)
            | Self::Organisation { .. }
            | Self::NoOrganisation { .. }
            | Self::NoCalibration { .. }
            | Self::WrongCalibration { .. }
            | Self::NotMeasured { .. } => CommandOutcome::Usage,
            Self::Laboratory(error) => error.outcome(),
            Self::Output(error) => error.outcome(),
            Self::Report(error) if error.is_usage() => CommandOutcome::Usage,
            Self::Workload(error) if error.is_usage() => CommandOutcome::Usage,
            _ => CommandOutcome::Failed,
        }
    }
}

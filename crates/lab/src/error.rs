//! What ends a laboratory command without a result.

use scrinium_lab_report::ReportError;
use scrinium_lab_script::WorkloadError;
use scrinium_terminal::{CommandOutcome, OutputError};
use thiserror::Error;

use crate::driver::{Failure, FailureKind};
use crate::experiment::ExperimentError;

/// Why a command could not be done.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LabError {
    #[error("cannot {what} {path}: {source}")]
    File { what: &'static str, path: String, source: std::io::Error },
    #[error("the report cannot be written into {path}: {source}. Name another folder by --report")]
    Folder { path: String, source: std::io::Error },
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error("{origin} cannot be run yet: {commands}")]
    CannotRun { origin: String, commands: String },
    #[error("{origin} needs a server for {what}: add --target {target}")]
    NoTarget { origin: String, what: String, target: String },
    #[error("{0}")]
    Usage(String),
    #[error("{}", no_server(.target, .failure))]
    NoServer { target: String, failure: Failure },
    #[error("cannot prepare {what}: {failure}{}", hint(.failure))]
    Prepare { what: String, failure: Failure },
    #[error("{name} cannot take part: {why}")]
    Driver { name: String, why: String },
    #[error("cannot listen at {address}: {source}")]
    Listen { address: String, source: std::io::Error },
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error("cannot write the report: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl LabError {
    /// Whether it is nothing that anybody need be told.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        matches!(self, Self::Output(error) if error.is_silent())
    }

    /// How the program ends because of this.
    #[must_use]
    pub fn outcome(&self) -> CommandOutcome {
        match self {
            Self::CannotRun { .. } | Self::NoTarget { .. } | Self::Usage(_) => CommandOutcome::Usage,
            Self::Workload(error) if error.is_usage() => CommandOutcome::Usage,
            Self::Report(error) if error.is_usage() => CommandOutcome::Usage,
            Self::Output(error) => error.outcome(),
            Self::Experiment(error) if error.is_usage() => CommandOutcome::Usage,
            Self::Experiment(ExperimentError::BrokenOff { .. }) => CommandOutcome::BrokenOff,
            _ => CommandOutcome::Failed,
        }
    }
}

/// Why a server cannot be measured, as it is: one that answers is not called dead.
fn no_server(target: &str, failure: &Failure) -> String {
    match failure.kind {
        FailureKind::Status(401 | 403) => format!(
            "{target} does not accept the name and password: {failure}. Are --admin and --password those of an administrator?"
        ),
        FailureKind::Connection if failure.detail.contains("certificate") => format!(
            "the certificate of {target} is not trusted: {failure}. If it is the server's own, name it by SSL_CERT_FILE=FILE"
        ),
        FailureKind::TimeOut | FailureKind::Connection => {
            format!("{target} does not answer: {failure}. Is the server running, and is --target right?")
        }
        _ => format!("{target} answers, but not as it should: {failure}. Is --target right?"),
    }
}

/// What a person can do about a request that failed before the run.
fn hint(failure: &Failure) -> &'static str {
    match failure.kind {
        FailureKind::Status(401 | 403) => {
            ". Are --admin and --password those of an administrator, and is --user-password the one that the users have?"
        }
        FailureKind::Status(530 | 535) | FailureKind::Refused => {
            ". Does the server know the user, and are --login-name and --user-password right?"
        }
        FailureKind::Connection | FailureKind::TimeOut => ". Is the server still running?",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_answers_is_not_called_dead() {
        let told = |kind, detail: &str| {
            LabError::NoServer { target: "https://x".to_owned(), failure: Failure::new(kind, detail) }
                .to_string()
        };
        assert!(told(FailureKind::Connection, "connection refused").contains("does not answer"));
        assert!(told(FailureKind::TimeOut, "after 30 s").contains("does not answer"));
        let untrusted = told(FailureKind::Connection, "invalid peer certificate: UnknownIssuer");
        assert!(untrusted.contains("is not trusted") && untrusted.contains("SSL_CERT_FILE"), "{untrusted}");
        assert!(told(FailureKind::Status(401), "GET /").contains("--password"));
        let odd = told(FailureKind::Status(500), "GET /");
        assert!(odd.contains("not as it should") && !odd.contains("does not answer"), "{odd}");
    }
}

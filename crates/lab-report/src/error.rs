//! Why a report cannot be read, made or written.

use thiserror::Error;

/// Why there is no report.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ReportError {
    #[error("cannot {what} {path}: {source}")]
    File { what: &'static str, path: String, source: std::io::Error },
    #[error("{0}")]
    Usage(String),
    #[error("cannot draw a chart: {0}")]
    Chart(String),
    #[error("cannot write the report: {0}")]
    Json(#[from] serde_json::Error),
}

impl ReportError {
    /// Whether what was asked for is at fault, and not the system.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_))
    }
}

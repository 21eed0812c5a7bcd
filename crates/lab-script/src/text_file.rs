//! Files that people have written: read within bounds.

use std::io::Read;
use std::path::Path;

use thiserror::Error;

/// Why a text cannot be read.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TextFileError {
    #[error("cannot {what} {path}: {source}")]
    File { what: &'static str, path: String, source: std::io::Error },
    #[error("cannot read {path} as {what}: {why}")]
    NoText { path: String, what: &'static str, why: String },
}

/// Text that somebody has written: `what` says what it should be, and how long it may be.
///
/// # Errors
/// [`TextFileError`]; a longer one is not read to its end.
pub fn read_text(path: &Path, what: &'static str, most_bytes: usize) -> Result<String, TextFileError> {
    let shown = || path.display().to_string();
    let no_text = |why: String| TextFileError::NoText { path: shown(), what, why };
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(most_bytes as u64 + 1).read_to_end(&mut bytes))
        .map_err(|source| TextFileError::File { what: "read", path: shown(), source })?;
    if bytes.len() > most_bytes {
        return Err(no_text(format!("it is longer than {most_bytes} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| no_text(format!("it is no text: {}", error.utf8_error())))
}

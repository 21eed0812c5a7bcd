//! The formats of a store's folder and of its log, without opening either: a server may be at work on them.

use std::fs;
use std::path::Path;

use scrinium_log::format_of;

use crate::StoreError;
use crate::folder::{self, FORMAT};

/// A format that was found, and the one that this release writes, which is the newest that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundFormat {
    /// What lies there.
    pub found: u32,
    /// What this release makes of it when it opens it.
    pub written: u32,
}

/// The formats of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreFormats {
    /// Of the folder and of what the tree holds.
    pub folder: FoundFormat,
    /// Of the transaction log; `None`: there is none.
    pub log: Option<FoundFormat>,
}

/// Looks at the store in `dir` whose log lies in `log_dir`. `None`: there is no store.
///
/// # Errors
/// [`StoreError::Corrupt`], [`StoreError::DamagedLog`] or an error of the file system. A newer format is not an error: it is what
/// was found.
pub fn look_at_formats(dir: &Path, log_dir: &Path) -> Result<Option<StoreFormats>, StoreError> {
    let path = dir.join("store.format");
    let Some(text) = folder::read_if_there(&path)? else {
        return match fs::metadata(dir.join("tree")) {
            Ok(_) => Err(StoreError::Corrupt { path, what: "it is missing".to_owned() }),
            Err(_) => Ok(None),
        };
    };
    let found = folder::field(&text, "format").and_then(|format| format.parse().ok());
    let found = found.ok_or_else(|| StoreError::Corrupt { path, what: "it names no format".to_owned() })?;
    let log = format_of(log_dir)?.map(|(found, written)| FoundFormat { found, written });
    Ok(Some(StoreFormats { folder: FoundFormat { found, written: FORMAT }, log }))
}

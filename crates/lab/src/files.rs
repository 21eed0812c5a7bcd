//! Folders that the laboratory writes into.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// What is written to find out whether there is room for anything.
const TRIAL: [u8; 4096] = [0; 4096];

/// Finds out whether a folder can be written into, and leaves nothing behind: before hours of work, not after them.
///
/// # Errors
/// [`LabError::Folder`]
pub(crate) fn try_folder(folder: &Path) -> Result<(), LabError> {
    let there = folder.ancestors().find(|place| place.exists()).unwrap_or_else(|| Path::new("."));
    let there = if there.as_os_str().is_empty() { PathBuf::from(".") } else { there.to_owned() };
    let trial = there.join(format!(".scrinium-lab-{}", std::process::id()));
    let written = fs::write(&trial, TRIAL);
    let _ = fs::remove_file(&trial);
    written.map_err(|source| LabError::Folder { path: folder.display().to_string(), source })
}

//! Files that the laboratory reads and writes: what people have written is read within bounds, and what it writes is there
//! whole or not at all.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// What is written to find out whether there is room for anything.
const TRIAL: [u8; 4096] = [0; 4096];

/// Text that somebody has written: `what` says what it should be, and how long it may be.
///
/// # Errors
/// [`LabError::File`], [`LabError::NoText`]; a longer one is not read to its end.
pub(crate) fn read_text(path: &Path, what: &'static str, most_bytes: usize) -> Result<String, LabError> {
    let no_text = |why: String| LabError::NoText { path: path.display().to_string(), what, why };
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(most_bytes as u64 + 1).read_to_end(&mut bytes))
        .map_err(failed("read", path))?;
    if bytes.len() > most_bytes {
        return Err(no_text(format!("it is longer than {most_bytes} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| no_text(format!("it is no text: {}", error.utf8_error())))
}

/// Writes files into a folder, which is made if need be. A file that cannot be written whole is not there, or as it was
/// before.
///
/// # Errors
/// [`LabError::File`]
pub(crate) fn write_all<Name: AsRef<str>>(
    folder: &Path,
    files: impl IntoIterator<Item = (Name, String)>,
) -> Result<(), LabError> {
    fs::create_dir_all(folder).map_err(failed("make the folder", folder))?;
    for (name, text) in files {
        let name = name.as_ref();
        let (path, part) = (folder.join(name), folder.join(format!("{name}.part")));
        fs::write(&part, text).and_then(|()| fs::rename(&part, &path)).map_err(|source| {
            // It takes room that nobody has any use of.
            let _ = fs::remove_file(&part);
            failed("write", &path)(source)
        })?;
    }
    Ok(())
}

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

fn failed(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> LabError {
    let path = path.display().to_string();
    move |source| LabError::File { what, path, source }
}

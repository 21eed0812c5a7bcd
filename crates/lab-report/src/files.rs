//! Files of reports: they are there whole or not at all.

use std::fs;
use std::path::Path;

use crate::error::ReportError;

/// Writes files into a folder, which is made if need be. A file that cannot be written whole is not there, or as it was
/// before.
///
/// # Errors
/// [`ReportError::File`]
pub(crate) fn write_all<Name: AsRef<str>>(
    folder: &Path,
    files: impl IntoIterator<Item = (Name, String)>,
) -> Result<(), ReportError> {
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

fn failed(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ReportError {
    let path = path.display().to_string();
    move |source| ReportError::File { what, path, source }
}

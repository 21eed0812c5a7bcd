//! Writing small files so that a reader, or a crash, finds the old text or the new one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Replaces a file's content; its permissions stay.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // A link is followed, so that the file it names is replaced and not the link.
    let path = path.canonicalize()?;
    let mode = path.metadata()?.permissions().mode() & 0o777;
    write_beside(&path, content, mode)
}

/// Writes a file that only its owner can read; an older one of the same name is replaced.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    write_beside(path, content, 0o600)
}

fn write_beside(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    // A part left by a crash is in the way of `create_new`, which keeps others' files from being used.
    match std::fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&part)?;
    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&part, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

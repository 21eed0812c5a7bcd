//! What the server keeps is for its own user alone: the mask of new files, and folders that others could read until now.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::{geteuid, umask};

use crate::config::Settings;
use crate::volumes::all_options;

/// What groups and others may do; the server's own files have none of it.
const OTHERS: u32 = 0o077;

/// Everybody makes files in such a folder (`/tmp`), so it is nobody's own.
const STICKY: u32 = 0o1000;

/// Digits of a log's key and of a store's number, by which folders in an archive and in a store of objects are named.
const NUMBER_DIGITS: usize = 16;

/// From now on the process makes files and folders that its own user alone can read, whatever mask it was started with.
pub(crate) fn set_mask() {
    umask(Mode::from_bits_truncate(OTHERS));
}

/// Closes what others could read of the folders and files that these settings name: those that earlier releases made, or
/// that were made for the server by hand. What is not the server's own it does not touch, but names, with the command that
/// closes it.
pub(crate) fn close_to_others(settings: &Settings) {
    let data_dir = &settings.server.data_dir;
    close_folder(data_dir, &|dir| dir.join("store/store.format").exists());
    for (_, options) in all_options(settings) {
        close_folder(&options.dir, &|dir| dir.join("store.format").exists());
        if let Some(log_dir) = &options.log_dir {
            close_folder(log_dir, &|dir| dir.join("store.id").exists());
        }
    }
    close_folder(&settings.in_data_dir(&settings.log.archive_dir), &holds_numbers);
    if let Some(objects) = settings.attachment.store.strip_prefix("file://") {
        close_folder(Path::new(objects), &holds_numbers);
    }
    let operation_log = settings.http.operation_log.trim();
    if !operation_log.is_empty() {
        for end in ["", ".1"] {
            close_file(&settings.in_data_dir(Path::new(&format!("{operation_log}{end}"))));
        }
    }
}

/// Whether all that lies in a folder has such names as the server gives.
fn holds_numbers(dir: &Path) -> bool {
    let is_number = |name: &str| {
        name.len() == NUMBER_DIGITS
            && name.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
    };
    fs::read_dir(dir)
        .is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name().to_str().is_some_and(is_number)))
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether others may do something with what this is of.
fn is_open(metadata: &Metadata) -> bool {
    metadata.mode() & OTHERS != 0
}

fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == geteuid().as_raw()
}

/// Closes a folder and all in it, if it is the server's own: its user owns it, and it is empty or `bears_mark`.
fn close_folder(dir: &Path, bears_mark: &dyn Fn(&Path) -> bool) {
    let Ok(metadata) = fs::metadata(dir) else { return };
    if !metadata.is_dir() || !is_open(&metadata) || metadata.mode() & STICKY != 0 {
        return;
    }
    if !is_own(&metadata) || !(is_empty(dir) || bears_mark(dir)) {
        tracing::warn!(
            path = %dir.display(),
            "others can read this folder, and it is not the server's alone: `chmod 700 {}` closes it", dir.display()
        );
        return;
    }
    // The folder first: from then on nobody else gets to what is in it.
    let closed = close(dir, &metadata).and_then(|()| close_all_in(dir, metadata.dev()));
    match closed {
        Ok(()) => {
            tracing::warn!(path = %dir.display(), "others could read this folder; now its owner alone can");
        }
        Err(error) => tracing::warn!(
            path = %dir.display(), %error,
            "others can read this folder, and it could not be closed: `chmod -R go= {}` closes it", dir.display()
        ),
    }
}

/// Links are not followed, and what is mounted in the folder is not entered.
fn close_all_in(dir: &Path, device: u64) -> io::Result<()> {
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            if metadata.is_symlink() || metadata.dev() != device || !is_own(&metadata) {
                continue;
            }
            let path = entry.path();
            close(&path, &metadata)?;
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(())
}

fn close_file(path: &PathBuf) {
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    if !metadata.is_file() || !is_open(&metadata) {
        return;
    }
    if !is_own(&metadata) || close(path, &metadata).is_err() {
        tracing::warn!(
            path = %path.display(), "others can read this file: `chmod 600 {}` closes it", path.display()
        );
    }
}

fn close(path: &Path, metadata: &Metadata) -> io::Result<()> {
    if is_open(metadata) {
        fs::set_permissions(path, Permissions::from_mode(metadata.mode() & 0o7777 & !OTHERS))?;
    }
    Ok(())
}

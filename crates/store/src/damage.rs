//! Files of the tree that are missing or damaged.
//!
//! RocksDB refuses to open a tree of which a file is missing, and takes no more writes once a compaction has reached a
//! damaged block: rightly so where nobody looks, but one file holds a few databases' keys and the tree those of
//! all. So a tree that cannot be opened otherwise, or of which damage was noted, is opened without that strictness:
//! what lies in damaged places cannot be read, which shows as an error and never as other data, and everything else
//! is served. The note is the file `store.damage`; it goes when the tree is rewritten ([`crate::rewrite`]).

use std::fs;
use std::path::Path;

use rocksdb::{DB, Error, ErrorKind};

use crate::folder::Folder;
use crate::tree::{POSITION_KEY, read_options};
use crate::{Family, StoreError};

/// Where damage is noted.
const NOTE: &str = "store.damage";

/// A note does not grow beyond this.
const NOTE_BYTES_MAX: u64 = 64 << 10;

/// A file of the tree that is missing or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedFile {
    /// Its name in the folder `tree`.
    pub name: String,
    /// The family that it has keys of; `None`: the store's own records.
    pub family: Option<Family>,
    /// Its first key.
    pub from: Vec<u8>,
    /// Its last key.
    pub to: Vec<u8>,
    /// What is wrong with it.
    pub what: String,
}

/// What the process may not do, or lacks, says nothing of a file.
const NOT_OF_THE_FILE: [&str; 5] = [
    "No space left",
    "Permission denied",
    "Operation not permitted",
    "Too many open files",
    "Cannot allocate memory",
];

/// Whether an error of opening the tree tells of damaged or missing files, and not of the disk as such.
fn is_damage(error: &Error) -> bool {
    is_of_a_file(&error.kind(), error.as_ref())
}

fn is_of_a_file(kind: &ErrorKind, message: &str) -> bool {
    let names_file = [".sst", ".blob"].iter().any(|ending| message.contains(ending));
    match kind {
        ErrorKind::Corruption => true,
        ErrorKind::IOError | ErrorKind::NotFound => {
            names_file && !NOT_OF_THE_FILE.iter().any(|words| message.contains(words))
        }
        _ => false,
    }
}

/// Whether the tree cannot be opened because of damage, or has been and does not tell its position.
pub(crate) fn is_shown_by(opened: &Result<DB, Error>) -> bool {
    match opened {
        Err(error) => is_damage(error),
        Ok(db) => db.get_pinned(POSITION_KEY).is_err_and(|error| is_damage(&error)),
    }
}

/// Whether damage was noted earlier.
pub(crate) fn is_noted(folder: &Folder) -> bool {
    folder.dir.join(NOTE).exists()
}

/// Notes damage, so that the next opening does not stumble over it. If that fails, the next opening finds out again.
pub(crate) fn note(dir: &Path, what: &str) {
    use std::io::Write;
    let path = dir.join(NOTE);
    if fs::metadata(&path).is_ok_and(|found| found.len() > NOTE_BYTES_MAX) {
        return;
    }
    let file = fs::OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| writeln!(file, "{what}").and_then(|()| file.sync_all()));
    if let Err(error) = written {
        tracing::warn!(%error, path = %path.display(), "the damage to the store could not be recorded");
    }
}

/// Takes the note away.
pub(crate) fn forget(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(NOTE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::io("remove", &path, error))
        }
        _ => Ok(()),
    }
}

/// The files that are missing, have another length than they should, or whose first or last key cannot be read.
pub(crate) fn damaged_files(db: &DB, folder: &Folder) -> Result<Vec<DamagedFile>, StoreError> {
    let files =
        db.live_files().map_err(|error| StoreError::tree("list the files of", &folder.dir, &error))?;
    let mut damaged = Vec::new();
    for file in files {
        let name = file.name.trim_start_matches('/').to_owned();
        let wrong = match fs::metadata(folder.tree.join(&name)) {
            Err(error) => Some(error.to_string()),
            Ok(found) if found.len() != file.size as u64 => {
                Some(format!("it has {} bytes and should have {}", found.len(), file.size))
            }
            Ok(_) => probe(db, &file.column_family_name, [&file.start_key, &file.end_key]),
        };
        if let Some(what) = wrong {
            let family = Family::ALL.into_iter().find(|family| family.name() == file.column_family_name);
            let (from, to) = (file.start_key.unwrap_or_default(), file.end_key.unwrap_or_default());
            damaged.push(DamagedFile { name, family, from, to, what });
        }
    }
    Ok(damaged)
}

/// Why one of these keys cannot be read.
fn probe(db: &DB, family: &str, keys: [&Option<Vec<u8>>; 2]) -> Option<String> {
    let handle = db.cf_handle(family)?;
    for key in keys.into_iter().flatten() {
        let mut reads = read_options();
        reads.fill_cache(false);
        let mut iterator = db.raw_iterator_cf_opt(handle, reads);
        iterator.seek(key);
        if let Err(error) = iterator.status() {
            return Some(error.to_string());
        }
    }
    None
}

/// Tells of damaged files, in the server's messages and in the note.
pub(crate) fn report(dir: &Path, files: &[DamagedFile]) {
    for DamagedFile { name, what, .. } in files {
        tracing::error!(file = name, what, "a file of the store is damaged; see docs/operate/fixup.md");
        note(dir, &format!("{name}: {what}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Such a store must not be rewritten, since nothing of it is damaged.
    #[test]
    fn files_that_may_not_be_opened_are_not_damaged() {
        let file = "While open a file for random read: /data/store/tree/000123.sst:";
        let of_io = |why: &str| is_of_a_file(&ErrorKind::IOError, &format!("IO error: {file} {why}"));
        for why in ["Permission denied", "Too many open files", "No space left on device"] {
            assert!(!of_io(why), "{why}");
        }
        for why in ["Input/output error", "No such file or directory"] {
            assert!(of_io(why), "{why}");
        }
        assert!(!is_of_a_file(&ErrorKind::IOError, "IO error: /data/store/tree/LOCK: Input/output error"));
        assert!(is_of_a_file(&ErrorKind::Corruption, "Corruption: block checksum mismatch"));
    }
}

//! Reading everything, to know that it is there.

use std::collections::HashMap;
use std::path::Path;

use scrinium_store::{ArchivedLog, Sequence};

use crate::pace::Pace;
use crate::repository::file_name;
use crate::stream::pass;
use crate::target::logs;
use crate::{BackupError, FileEntry, Manifest, Progress, Repository};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Backups, or segments of an archive, that are whole.
    pub whole: Vec<String>,
    /// Those that are not, with why.
    pub damaged: Vec<(String, String)>,
    /// Bytes that were read.
    pub bytes: u64,
    /// Files that were read.
    pub files: usize,
}

/// Reads every file of one backup, or of all, and checks its digest.
///
/// # Errors
/// If the repository cannot be read at all, or it was told to stop. What is damaged is no error of this.
pub fn verify(
    repository: &Repository,
    id: Option<&str>,
    bytes_per_second: Option<u64>,
    progress: &dyn Progress,
) -> Result<Verified, BackupError> {
    let _readers = repository.lock_to_read()?;
    let mut verified = Verified::default();
    let mut manifests = Vec::new();
    let found = match id {
        Some(id) => vec![(id.to_owned(), repository.backup(Some(id)))],
        None => repository.backups()?,
    };
    for (id, manifest) in found {
        match manifest {
            Ok(manifest) => manifests.push(manifest),
            Err(missing @ BackupError::NoBackup { .. }) => return Err(missing),
            Err(error) => verified.damaged.push((id, error.to_string())),
        }
    }
    let files: HashMap<&str, &FileEntry> =
        manifests.iter().flat_map(Manifest::all_files).map(|file| (file.print.as_str(), file)).collect();
    let mut files: Vec<&FileEntry> = files.into_values().collect();
    files.sort_by(|one, other| one.print.cmp(&other.print));
    progress.total(files.iter().map(|file| file.bytes).sum());
    let mut pace = Pace::new(progress, bytes_per_second);
    let mut broken: HashMap<&str, String> = HashMap::new();
    for file in &files {
        verified.files += 1;
        match check(repository, file, &mut pace) {
            Ok(()) => verified.bytes += file.bytes,
            Err(BackupError::Cancelled) => return Err(BackupError::Cancelled),
            Err(error) => {
                broken.insert(&file.print, error.to_string());
            }
        }
    }
    for manifest in &manifests {
        let problems = manifest.all_files().filter_map(|file| Some((file, broken.get(file.print.as_str())?)));
        let problems: Vec<String> =
            problems.map(|(file, problem)| format!("{}: {problem}", file.path)).collect();
        if problems.is_empty() {
            verified.whole.push(manifest.id.clone());
        } else {
            verified.damaged.push((manifest.id.clone(), problems.join("; ")));
        }
    }
    Ok(verified)
}

fn check(repository: &Repository, file: &FileEntry, pace: &mut Pace<'_>) -> Result<(), BackupError> {
    let name = file_name(&file.print);
    pass(1, &|_| repository.place.open(&name), |_| Ok(None), |_, passed| same(file, &name, &passed), pace)
}

/// Whether what was read is what was written.
pub(crate) fn same(file: &FileEntry, name: &str, passed: &crate::stream::Passed) -> Result<(), BackupError> {
    if passed.bytes != file.bytes {
        let problem = format!("it has {} bytes instead of {}", passed.bytes, file.bytes);
        return Err(BackupError::damaged(name, problem));
    }
    if passed.blake3 != file.blake3 {
        return Err(BackupError::damaged(name, "its content is not what was written"));
    }
    Ok(())
}

/// Reads every segment of the archive that the newest backup's log goes on in, and looks for gaps after `from`.
///
/// # Errors
/// If the archive cannot be read at all, or it was told to stop.
pub fn verify_archive(
    manifest: &Manifest,
    archive_dir: &Path,
    progress: &dyn Progress,
) -> Result<Verified, BackupError> {
    let mut verified = Verified::default();
    for (key, sequence) in logs(manifest)? {
        verify_log(archive_dir, (key, sequence), &mut verified, progress)?;
    }
    Ok(verified)
}

/// The part of the archive that a store's log went to, which had come to this record with the backup.
fn verify_log(
    archive_dir: &Path,
    (key, sequence): (u64, u64),
    verified: &mut Verified,
    progress: &dyn Progress,
) -> Result<(), BackupError> {
    let archived = ArchivedLog::open(archive_dir, key)?;
    let mut next: Option<Sequence> = None;
    for segment in archived.segments() {
        if progress.is_cancelled() {
            return Err(BackupError::Cancelled);
        }
        let name = segment.path.display().to_string();
        verified.files += 1;
        if let Some(next) = next.filter(|next| *next < segment.first) {
            let missing = format!("records {} to {} are missing before it", next.0, segment.first.0 - 1);
            verified.damaged.push((name.clone(), missing));
        }
        next = next.max(Some(segment.next));
        match archived.check(segment) {
            Ok(()) => verified.whole.push(name),
            Err(error) => verified.damaged.push((name, error.to_string())),
        }
    }
    let first = archived.segments().first().map(|segment| segment.first);
    if let Some(first) = first.filter(|first| first.0 > sequence + 1) {
        let missing = format!("records {} to {} are missing", sequence + 1, first.0 - 1);
        verified.damaged.push((archive_dir.display().to_string(), missing));
    }
    Ok(())
}

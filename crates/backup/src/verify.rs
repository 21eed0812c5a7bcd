//! Reading everything, to know that it is there.

use std::collections::HashMap;
use std::path::Path;

use scrinium_store::{ArchivedLog, Sequence};

use crate::digests::Digests;
use crate::pace::Pace;
use crate::repository::file_name;
use crate::stream::{Open, Passed, pass};
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
    /// What was not looked at because the private key was not given, with why.
    pub unread: Vec<(String, String)>,
}

/// Reads every file of one backup, or of all, and checks its digest. Of files that are encrypted that is the digest of what
/// lies in the repository; with the private key, what they hold is checked as well.
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
    let mut parts = HashMap::new();
    for manifest in &manifests {
        parts.insert(manifest.id.as_str(), open_part(repository, manifest));
    }
    let digests_of = |manifest: &Manifest| match parts.get(manifest.id.as_str()) {
        Some(Ok(digests)) => *digests,
        _ => None,
    };
    let files = manifests.iter().flat_map(|manifest| {
        let digests = digests_of(manifest);
        manifest.all_files().map(move |file| (file.print.as_str(), (file, digests)))
    });
    let files: HashMap<&str, (&FileEntry, Option<Digests>)> = files.collect();
    let mut files: Vec<(&FileEntry, Option<Digests>)> = files.into_values().collect();
    files.sort_by(|(one, _), (other, _)| one.print.cmp(&other.print));
    progress.total(files.iter().map(|(file, _)| file.stored_bytes()).fold(0, u64::saturating_add));
    let mut pace = Pace::new(progress, bytes_per_second);
    let mut broken: HashMap<&str, String> = HashMap::new();
    for (file, digests) in &files {
        verified.files += 1;
        match check(repository, file, *digests, &mut pace) {
            Ok(()) => verified.bytes += file.stored_bytes(),
            Err(BackupError::Cancelled) => return Err(BackupError::Cancelled),
            Err(error) => {
                broken.insert(&file.print, error.to_string());
            }
        }
    }
    for manifest in &manifests {
        let problems = manifest.all_files().filter_map(|file| Some((file, broken.get(file.print.as_str())?)));
        let problems = problems.map(|(file, problem)| format!("{}: {problem}", file.called()));
        let part = parts.get(manifest.id.as_str()).and_then(|part| part.as_ref().err());
        let problems: Vec<String> = part.map(ToString::to_string).into_iter().chain(problems).collect();
        if problems.is_empty() {
            verified.whole.push(manifest.id.clone());
        } else {
            verified.damaged.push((manifest.id.clone(), problems.join("; ")));
        }
    }
    Ok(verified)
}

/// How the contents of a backup are digested; `None` if that is encrypted and no private key was given. What is encrypted
/// of it must be there in any case.
fn open_part(repository: &Repository, manifest: &Manifest) -> Result<Option<Digests>, BackupError> {
    match &manifest.sealed {
        Some(entry) if repository.keys.is_none() => repository.sealed_part(manifest, entry).map(|_| None),
        _ => Ok(Some(repository.whole(manifest)?.1)),
    }
}

fn check(
    repository: &Repository,
    file: &FileEntry,
    digests: Option<Digests>,
    pace: &mut Pace<'_>,
) -> Result<(), BackupError> {
    let name = file_name(&file.print);
    if let Some(stored) = &file.stored {
        let as_stored = |passed: &Passed| same((stored.bytes, &stored.blake3), &name, passed);
        let open: &Open<'_> = &|_| repository.place.open(&name);
        pass((1, Digests::Plain), open, |_| Ok(None), |_, passed| as_stored(&passed), pace)?;
    }
    let Some(digests) = digests else { return Ok(()) };
    let as_written = |passed: &Passed| same((file.bytes, &file.blake3), &name, passed);
    pass((1, digests), &|_| repository.open_file(file), |_| Ok(None), |_, passed| as_written(&passed), pace)
}

/// Whether what was read is what was written.
pub(crate) fn same((bytes, blake3): (u64, &str), name: &str, passed: &Passed) -> Result<(), BackupError> {
    if passed.bytes != bytes {
        let problem = format!("it has {} bytes instead of {bytes}", passed.bytes);
        return Err(BackupError::damaged(name, problem));
    }
    if passed.blake3 != blake3 {
        return Err(BackupError::damaged(name, "its content is not what was written"));
    }
    Ok(())
}

/// Reads every segment of the archive that the newest backup's log continues in, and looks for gaps after `from`.
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

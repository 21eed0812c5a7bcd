//! Letting go of old backups, and of files that no backup needs.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use scrinium_store::ArchivedLog;

use crate::local::sync_folder;
use crate::repository::{FILES, file_name};
use crate::target::logs;
use crate::{BackupError, Manifest, Repository};

/// What was let go of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Backups that stay, oldest first.
    pub kept: Vec<String>,
    /// Backups that went.
    pub removed: Vec<String>,
    /// Files that went.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Keeps the newest `keep` backups, at least one, and the files that they need.
///
/// # Errors
/// [`BackupError`]. A backup that cannot be read is one, since what it needs is not known.
pub fn prune(repository: &Repository, keep: usize) -> Result<Pruned, BackupError> {
    let _alone = repository.lock_to_write()?;
    let manifests = readable(repository)?;
    let (old, kept) = manifests.split_at(manifests.len().saturating_sub(keep.max(1)));
    let mut pruned = Pruned::default();
    // First the backups, so that there is never one whose files are gone.
    for manifest in old {
        repository.forget(&manifest.id)?;
        pruned.removed.push(manifest.id.clone());
    }
    repository.place.settle()?;
    let needed: HashSet<String> =
        kept.iter().flat_map(Manifest::all_files).map(|file| file_name(&file.print)).collect();
    for (name, bytes) in repository.place.list(FILES)? {
        if !needed.contains(&name) {
            repository.place.remove(&name)?;
            pruned.files += 1;
            pruned.bytes += bytes;
        }
    }
    repository.place.settle()?;
    repository.forget_orphans(kept)?;
    pruned.kept = kept.iter().map(|manifest| manifest.id.clone()).collect();
    Ok(pruned)
}

fn readable(repository: &Repository) -> Result<Vec<Manifest>, BackupError> {
    repository.backups()?.into_iter().map(|(_, manifest)| manifest).collect()
}

/// Removes what the log's archive holds from before the oldest backup of the same log. Logs that no backup is of stay.
/// Returns how many segments went.
///
/// # Errors
/// [`BackupError`].
pub fn prune_archive(repository: &Repository, archive_dir: &Path) -> Result<usize, BackupError> {
    let mut oldest: HashMap<u64, u64> = HashMap::new();
    for manifest in readable(repository)? {
        for (key, reached) in logs(&manifest)? {
            let sequence = oldest.entry(key).or_insert(reached);
            *sequence = reached.min(*sequence);
        }
    }
    let mut removed = 0;
    for (key, sequence) in oldest {
        for segment in ArchivedLog::open(archive_dir, key)?.segments() {
            if segment.next.0 > sequence.saturating_add(1) {
                break;
            }
            fs::remove_file(&segment.path).map_err(BackupError::io("remove", &segment.path))?;
            removed += 1;
            segment.path.parent().map_or(Ok(()), sync_folder)?;
        }
    }
    Ok(removed)
}

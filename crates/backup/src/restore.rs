//! Restoring a server into an empty folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use scrinium_store::{
    ArchivedGroup, ArchivedLog, LogError, RESTORED_VOLUME, Reached, Sequence, StoreOptions, roll_forward,
};

use crate::digests::Digests;
use crate::local::{FileWriter, free_bytes, make_folder, sync_folder};
use crate::pace::Pace;
use crate::place::Sink;
use crate::repository::file_name;
use crate::stream::pass;
use crate::target::{key_of, log_key, spoken};
use crate::verify::same;
use crate::{BackupError, FileEntry, Manifest, Progress, Repository, Target, VolumeEntry};

/// The folder within the data folder that everything is made in. Where it is, the data folder is not whole, and no
/// server may be started on it.
pub const RESTORING: &str = "restore.part";

/// The configuration file of a backup, where it is restored: whether it is to be used is for people to say.
const CONFIGURATION: &str = "scrinium.toml.restored";

/// What is restored, and where to.
#[derive(Clone, Debug)]
pub struct Order {
    /// The backup; `None` is the newest from which the target can be reached.
    pub backup: Option<String>,
    /// Up to where.
    pub target: Target,
    /// Where the log was archived; `None` is what the backup says.
    pub archive_dir: Option<PathBuf>,
    /// The data folder, which must be empty or missing.
    pub into: PathBuf,
    /// The folder of the new log, beginning in the data folder; must be empty or missing.
    pub log_dir: PathBuf,
    /// Only the store, without the configuration, certificates and whatever else lies in the data folder.
    pub store_only: bool,
    /// How the store is opened to apply what was archived.
    pub options: StoreOptions,
    /// At most so fast.
    pub bytes_per_second: Option<u64>,
}

/// What was restored.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The backup.
    pub manifest: Manifest,
    /// The position that the store has reached.
    pub reached: Reached,
    /// What a person should know of it, if anything.
    pub warning: Option<String>,
}

/// Restores as ordered. After it a server just starts on the data folder.
///
/// # Errors
/// [`BackupError`]. What was made is then removed, or if that is not possible, marked so that no server starts on it;
/// with the mark a further restore is [`BackupError::Interrupted`].
pub fn restore(
    repository: &Repository,
    order: &Order,
    progress: &dyn Progress,
) -> Result<Restored, BackupError> {
    let _readers = repository.lock_to_read()?;
    let (manifest, digests) = repository.whole(&choose(repository, order)?)?;
    let archived = archive(&manifest, order)?;
    check_empty(&order.into)?;
    let part = order.into.join(RESTORING);
    make_folder(&part)?;
    let made = make(repository, (&manifest, digests), archived.as_ref(), order, progress);
    let restored = made.inspect_err(|_| {
        // What stays keeps a server from starting on it.
        drop(fs::remove_dir_all(&part));
    })?;
    // From here on some of it may lie where a server looks for it, which must not start without the rest: if this fails
    // the mark stays.
    put_in_place(&part, &order.into)?;
    Ok(restored)
}

/// The backup that is asked for, or else the newest from which the target can be reached.
fn choose(repository: &Repository, order: &Order) -> Result<Manifest, BackupError> {
    let target = &order.target;
    if let Some(id) = &order.backup {
        let manifest = repository.backup(Some(id))?;
        if target.is_after(&manifest) {
            return Ok(manifest);
        }
        let (sequence, taken) = (manifest.sequence, &manifest.taken);
        return Err(BackupError::OutOfReach(format!(
            "the backup {id} was made after {target} (it holds record {sequence}, of {taken}); name an earlier one"
        )));
    }
    let mut unreadable = None;
    for (id, manifest) in repository.backups()?.into_iter().rev() {
        match manifest {
            Ok(manifest) if target.is_after(&manifest) => {
                if let Some((id, error)) = &unreadable {
                    tracing::warn!(backup = id, %error, "a newer backup cannot be read and is skipped");
                }
                return Ok(manifest);
            }
            Ok(_) => {}
            // The newest backup is what was meant; silently taking an older one would lose what came after it.
            Err(error) if matches!(target, Target::Backup) => return Err(error),
            Err(error) => unreadable = Some((id, error)),
        }
    }
    match unreadable {
        Some((_, error)) => Err(error),
        None if repository.backups()?.is_empty() => Err(repository.no_backup("yet")),
        None => Err(BackupError::OutOfReach(format!(
            "every backup in {} was made after {target}; the log is applied forwards only",
            repository.name()
        ))),
    }
}

fn archive(manifest: &Manifest, order: &Order) -> Result<Option<(PathBuf, ArchivedLog)>, BackupError> {
    if order.target == Target::Backup || order.target == Target::Sequence(manifest.sequence) {
        return Ok(None);
    }
    let dir = order.archive_dir.clone().or_else(|| manifest.archive_dir.as_ref().map(PathBuf::from));
    let Some(dir) = dir else {
        return Err(BackupError::OutOfReach(format!(
            "{} is past the backup {}, and neither it nor the command names an archive of the log",
            order.target, manifest.id
        )));
    };
    let archived = ArchivedLog::open(&dir, log_key(manifest)?)?;
    Ok(Some((dir, archived)))
}

fn check_empty(dir: &Path) -> Result<(), BackupError> {
    match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => make_folder(dir),
        _ if dir.join(RESTORING).exists() => Err(BackupError::Interrupted { dir: dir.to_owned() }),
        entries => match entries.map_err(BackupError::io("list", dir))?.next() {
            None => Ok(()),
            Some(_) => Err(BackupError::NotEmpty { dir: dir.to_owned() }),
        },
    }
}

fn make(
    repository: &Repository,
    (manifest, digests): (&Manifest, Digests),
    archived: Option<&(PathBuf, ArchivedLog)>,
    order: &Order,
    progress: &dyn Progress,
) -> Result<Restored, BackupError> {
    let part = order.into.join(RESTORING);
    progress.step("copy");
    copy(repository, (manifest, digests), &part, order, progress)?;
    progress.step("apply");
    let mut options = order.options.clone();
    options.dir = part.join("store");
    let within = order.log_dir.is_relative();
    options.log_dir = Some(if within { part.join(&order.log_dir) } else { order.log_dir.clone() });
    let log_dir = options.log_dir.clone();
    let (reached, warning) = apply(options, manifest.sequence, archived, order.target, progress)?;
    drop(fs::remove_dir_all(part.join("store/ingest")));
    for folder in [Some(part.clone()), Some(part.join("store")), log_dir].into_iter().flatten() {
        sync_folder(&folder)?;
    }
    for volume in &manifest.volumes {
        progress.step(&format!("apply {}", volume.name));
        bring_volume(volume, manifest, archived, order, &reached, progress)?;
    }
    Ok(Restored { manifest: manifest.clone(), reached, warning })
}

fn is_of_volume(file: &FileEntry) -> bool {
    file.path.starts_with("volumes/")
}

/// Brings a volume forward to the moment that the first store has reached, and marks it as restored: a server takes it
/// for the volume of a server that was restored too, and the one that was there before for no part of it.
fn bring_volume(
    volume: &VolumeEntry,
    manifest: &Manifest,
    archived: Option<&(PathBuf, ArchivedLog)>,
    order: &Order,
    first: &Reached,
    progress: &dyn Progress,
) -> Result<(), BackupError> {
    let dir = order.into.join(RESTORING).join("volumes").join(&volume.name);
    check_path(&volume.name)?;
    let mut options = order.options.clone();
    options.dir.clone_from(&dir);
    options.log_dir = None;
    // A record is one of the first store's log: in the others its time counts.
    let target = match (order.target, first.time_ms) {
        (Target::Sequence(_), Some(time_ms)) => Target::Time(time_ms),
        (Target::Sequence(_), None) => Target::Backup,
        (target, _) => target,
    };
    let archived = match (archived, target) {
        (None, _) | (_, Target::Backup) => None,
        (Some((dir, _)), _) => {
            Some((dir.clone(), ArchivedLog::open(dir, key_of(&volume.log_key, manifest)?)?))
        }
    };
    apply(options, volume.sequence, archived.as_ref(), target, progress)?;
    drop(fs::remove_dir_all(dir.join("ingest")));
    let mark = dir.join(RESTORED_VOLUME);
    fs::write(&mark, format!("{}\n", manifest.id)).map_err(BackupError::io("write", &mark))?;
    fs::File::open(&mark).and_then(|file| file.sync_all()).map_err(BackupError::io("sync", &mark))?;
    for folder in [dir.join("log"), dir.clone(), dir.join("..")] {
        sync_folder(&folder)?;
    }
    Ok(())
}

fn copy(
    repository: &Repository,
    (manifest, digests): (&Manifest, Digests),
    part: &Path,
    order: &Order,
    progress: &dyn Progress,
) -> Result<(), BackupError> {
    let wanted: Vec<(PathBuf, &FileEntry)> = if order.store_only {
        let files =
            manifest.files.iter().filter(|file| file.path.starts_with("store/") || is_of_volume(file));
        files.map(|file| (part.join(&file.path), file)).collect()
    } else {
        let files = manifest.files.iter().map(|file| (part.join(&file.path), file));
        files.chain(manifest.configuration.iter().map(|file| (part.join(CONFIGURATION), file))).collect()
    };
    for (_, file) in &wanted {
        check_path(&file.path)?;
    }
    let bytes = wanted.iter().map(|(_, file)| file.bytes).sum();
    BackupError::check_space(part.display().to_string(), bytes, free_bytes(part))?;
    progress.total(bytes);
    let number = |number: usize| wanted.get(number).ok_or(BackupError::Cancelled);
    pass(
        (wanted.len(), digests),
        &|file| repository.open_file(number(file)?.1),
        |file| Ok(Some(Box::new(FileWriter::create(&number(file)?.0, 0o600)?) as Box<dyn Sink>)),
        |file, passed| {
            let (path, file) = number(file)?;
            same((file.bytes, &file.blake3), &file_name(&file.print), &passed)?;
            // What is restored is its owner's alone, as all that a server keeps, whatever an older release left open.
            let mode = fs::Permissions::from_mode(file.mode & 0o700);
            fs::set_permissions(path, mode).map_err(BackupError::io("set permissions of", path))
        },
        &mut Pace::new(progress, order.bytes_per_second),
    )
}

/// A manifest is believed only as far as files within the data folder go.
fn check_path(path: &str) -> Result<(), BackupError> {
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    if inside && !path.is_empty() {
        Ok(())
    } else {
        Err(BackupError::damaged(
            "the backup's manifest",
            format!("{path:?} is not a path in the data folder"),
        ))
    }
}

/// Brings a store forward from the record that the backup holds.
fn apply(
    options: StoreOptions,
    from: u64,
    archived: Option<&(PathBuf, ArchivedLog)>,
    target: Target,
    progress: &dyn Progress,
) -> Result<(Reached, Option<String>), BackupError> {
    let last = match target {
        Target::Backup => from,
        Target::Sequence(sequence) => sequence,
        Target::Time(_) | Target::Latest => u64::MAX,
    };
    let Some((dir, archived)) = archived else {
        return Ok((roll_forward(options, std::iter::empty(), Sequence(last))?, None));
    };
    let mut end = End { dir: dir.clone(), passed: false, last_ms: None };
    let next = Sequence(from.saturating_add(1));
    let groups = archived.groups_from(next).take_while(|_| !progress.is_cancelled());
    let groups = groups.map_while(|group| end.admit(group, target).transpose());
    let reached = roll_forward(options, groups, Sequence(last))?;
    if progress.is_cancelled() {
        return Err(BackupError::Cancelled);
    }
    if let Target::Sequence(sequence) = target
        && reached.sequence < sequence
    {
        return Err(BackupError::OutOfReach(format!(
            "the archive ends with record {}, before {sequence}; --to latest goes as far as it does",
            reached.sequence
        )));
    }
    Ok((reached, end.warning(target, &reached)))
}

/// What was seen where the target is a time.
struct End {
    dir: PathBuf,
    passed: bool,
    last_ms: Option<u64>,
}

impl End {
    fn admit(
        &mut self,
        group: Result<ArchivedGroup, LogError>,
        target: Target,
    ) -> Result<Option<ArchivedGroup>, LogError> {
        let group = group?;
        let Target::Time(time_ms) = target else { return Ok(Some(group)) };
        let Some(written_ms) = group.time_ms else {
            let reason =
                format!("record {} was written before the log recorded times; give a record", group.first.0);
            return Err(LogError::Archive { dir: self.dir.clone(), reason });
        };
        self.passed = written_ms > time_ms;
        self.last_ms = Some(written_ms);
        Ok((!self.passed).then_some(group))
    }

    /// Where nothing later was seen, something earlier may be missing.
    fn warning(&self, target: Target, reached: &Reached) -> Option<String> {
        let Target::Time(time_ms) = target else { return None };
        (!self.passed).then(|| {
            let last = self.last_ms.map_or_else(|| "the backup".to_owned(), spoken);
            format!(
                "the archive ends with record {}, of {last}: what was written between then and {}, if anything was, is \
                 not in it",
                reached.sequence,
                spoken(time_ms)
            )
        })
    }
}

/// The store comes last, so that there is none before all the rest is there.
fn put_in_place(part: &Path, into: &Path) -> Result<(), BackupError> {
    let failed = BackupError::io("list", part);
    let mut names = Vec::new();
    for entry in fs::read_dir(part).map_err(&failed)? {
        names.push(entry.map_err(&failed)?.file_name());
    }
    names.sort_by_key(|name| name == "store");
    for name in names {
        let from = part.join(&name);
        fs::rename(&from, into.join(&name)).map_err(BackupError::io("rename", &from))?;
        sync_folder(into)?;
    }
    fs::remove_dir(part).map_err(BackupError::io("remove", part))?;
    sync_folder(into)
}

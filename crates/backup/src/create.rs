//! Making a backup.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use scrinium_store::{BackupPoint, IoLimits, Store};

use crate::age::sealed_bytes;
use crate::attachments::{ObjectLister, list};
use crate::digests::Digests;
use crate::local::FileReader;
use crate::manifest::ObjectsEntry;
use crate::pace::Pace;
use crate::place::Pieces;
use crate::plan::{Planned, plan, plan_file, plan_store};
use crate::sealed::Stored;
use crate::stream::pass;
use crate::{BackupError, FileEntry, Manifest, Progress, Repository, VolumeEntry};

/// Calls what it is given while no database is made, dropped or moved between stores.
pub type WhileStill<'a> = &'a dyn Fn(&mut dyn FnMut());

/// The stores that a backup is made of.
pub struct Stores<'a> {
    /// The one in the data folder.
    pub first: &'a Store,
    /// The volumes, by name.
    pub volumes: Vec<(String, Store)>,
    /// Volumes that are not there.
    pub missing: Vec<String>,
    /// Holds the stores at one consistent point.
    pub while_still: WhileStill<'a>,
    /// What all backups of the server keep to.
    pub limits: IoLimits,
}

impl<'a> Stores<'a> {
    /// One store alone.
    #[must_use]
    pub fn one(store: &'a Store) -> Self {
        let while_still: WhileStill<'a> = &|work| work();
        Self {
            first: store,
            volumes: Vec::new(),
            missing: Vec::new(),
            while_still,
            limits: IoLimits::default(),
        }
    }
}

/// What else a backup is made of.
#[derive(Clone, Debug)]
pub struct Source {
    /// The server's name, for people.
    pub server: String,
    /// The release of the server.
    pub version: String,
    /// The folder that holds everything the server keeps, the store's `store` included.
    pub data_dir: PathBuf,
    /// Folders in it that need not be kept: the log, and what is made again.
    pub leave_out: Vec<PathBuf>,
    /// The configuration file, if there is one.
    pub configuration: Option<PathBuf>,
    /// Where the log is archived, if it is.
    pub archive_dir: Option<PathBuf>,
    /// What tells which attachments lie in a store of objects, if there may be some.
    pub objects: Option<ObjectLister>,
}

/// A backup that was made.
#[derive(Clone, Debug)]
pub struct Created {
    /// What it consists of.
    pub manifest: Manifest,
    /// Files that were copied; the others were there.
    pub new_files: usize,
}

/// Makes a backup of open stores into `repository`, at no more than `bytes_per_second`. It is valid when this
/// returns; if it fails, or the process ends before, there is none. The calling thread comes after others from then on
/// ([`scrinium_store::come_after_others`]).
///
/// # Errors
/// [`BackupError`]; the repository's other backups are as they were.
pub fn create(
    repository: &Repository,
    stores: &Stores<'_>,
    source: &Source,
    bytes_per_second: Option<u64>,
    progress: &dyn Progress,
) -> Result<Created, BackupError> {
    let started = stores.first.clock().timestamp();
    let _alone = repository.lock_to_write()?;
    let mut leave_out = source.leave_out.clone();
    if let Ok(place) = Path::new(&repository.name()).canonicalize() {
        let data_dir = source.data_dir.canonicalize().map_err(BackupError::io("find", &source.data_dir))?;
        if place.starts_with(&data_dir) {
            return Err(BackupError::OutOfReach(format!(
                "{} is inside the data folder, and would be lost with it; name a folder elsewhere",
                repository.name()
            )));
        }
        leave_out.push(place);
    }
    leave_out.extend(source.archive_dir.clone());
    progress.step("checkpoint");
    repository.place.settle()?;
    let Points { first: point, volumes } = Points::take(stores)?;
    // From here on nothing is held that anybody waits for.
    scrinium_store::come_after_others();
    progress.step("plan");
    let digests = repository.writer.digests;
    let mut planned = plan((&point, digests), &source.data_dir.join("store"), &source.data_dir, &leave_out)?;
    for ((name, store), (_, point)) in stores.volumes.iter().zip(&volumes) {
        planned.extend(plan_store((point, digests), store.dir(), &format!("volumes/{name}"))?);
    }
    let listed = source.objects.as_ref().map(|lister| list(lister, &point, &volumes)).transpose()?.flatten();
    planned.extend(listed.as_ref().map(|listed| listed.plan(digests)).transpose()?);
    let configuration = source.configuration.as_ref();
    let configuration =
        configuration.map(|file| plan_file(file.clone(), "scrinium.toml".to_owned(), digests)).transpose()?;
    planned.extend(configuration);
    progress.step("copy");
    let pace = Pace::new(progress, bytes_per_second).within(stores.limits.clone());
    let (mut files, new_bytes, new_files) = copy(repository, &planned, pace)?;
    let configuration = if source.configuration.is_some() { files.pop() } else { None };
    let objects = listed.as_ref().and_then(|listed| {
        Some(ObjectsEntry { objects: listed.objects, bytes: listed.bytes, list: files.pop()? })
    });
    let bytes = planned.iter().map(|file| file.bytes).sum();
    let id = new_id(repository, started)?;
    // Whatever any of the stores holds was written before this.
    let taken = volumes.last().map_or_else(|| point.taken(), |(_, last)| last.taken());
    let mut manifest = describe(
        source,
        (&point, taken),
        (id, started, stores.first.clock().timestamp()),
        (bytes, new_bytes),
        configuration,
        files,
    );
    manifest.volumes = volumes.iter().map(|(name, point)| entry_of(name, point)).collect();
    manifest.missing_volumes.clone_from(&stores.missing);
    manifest.objects = objects;
    progress.step("finish");
    repository.add(&manifest)?;
    Ok(Created { manifest, new_files })
}

/// The moments of the stores. That of the first one is the earliest: a memo that a volume has and a mailbox has no more
/// is therefore always in at least one of them.
struct Points {
    first: BackupPoint,
    volumes: Vec<(String, BackupPoint)>,
}

impl Points {
    fn take(stores: &Stores<'_>) -> Result<Self, BackupError> {
        let mut taken = Err(BackupError::Cancelled);
        (stores.while_still)(&mut || taken = Self::take_now(stores));
        taken
    }

    fn take_now(stores: &Stores<'_>) -> Result<Self, BackupError> {
        let first = stores.first.admin().backup_point()?;
        let volumes =
            stores.volumes.iter().map(|(name, store)| Ok((name.clone(), store.admin().backup_point()?)));
        Ok(Self { first, volumes: volumes.collect::<Result<_, BackupError>>()? })
    }
}

fn entry_of(name: &str, point: &BackupPoint) -> VolumeEntry {
    VolumeEntry {
        name: name.to_owned(),
        store: point.identity().to_owned(),
        log_key: format!("{:016x}", point.log_key()),
        sequence: point.sequence(),
    }
}

/// Copies what no other backup has. Returns all files, and how many bytes and files were copied.
fn copy(
    repository: &Repository,
    planned: &[Planned],
    mut pace: Pace<'_>,
) -> Result<(Vec<FileEntry>, u64, usize), BackupError> {
    let known = repository.known_files()?;
    let mut taken = HashSet::new();
    let wanted = planned.iter().filter(|file| !known.contains_key(&file.print));
    // Two files of the same content are copied once.
    let wanted: Vec<&Planned> = wanted.filter(|file| taken.insert(file.print.as_str())).collect();
    let new_bytes = wanted.iter().map(|file| file.bytes).sum();
    let needed_bytes = match repository.writer.recipient {
        Some(_) => wanted.iter().map(|file| sealed_bytes(file.bytes)).sum(),
        None => new_bytes,
    };
    BackupError::check_space(repository.name(), needed_bytes, repository.place.free_bytes())?;
    pace.total(new_bytes);
    let mut copied = HashMap::new();
    let stored = Stored::default();
    let digests = repository.writer.digests;
    let number = |number: usize| wanted.get(number).copied().ok_or(BackupError::Cancelled);
    pass(
        (wanted.len(), digests),
        &|file| Ok(Box::new(FileReader::open(&number(file)?.from)?) as Box<dyn Pieces>),
        |file| repository.create_file(&number(file)?.print, &stored).map(Some),
        |file, passed| {
            let file = number(file)?;
            check_unchanged(file, passed.bytes, digests)?;
            copied.insert(file.print.clone(), (passed.blake3, stored.borrow_mut().take()));
            Ok(())
        },
        &mut pace,
    )?;
    let entry = |file: &Planned| {
        let known = known.get(&file.print).map(|known| (known.blake3.clone(), known.stored.clone()));
        let (blake3, stored) = known.or_else(|| copied.get(&file.print).cloned()).unwrap_or_default();
        let Planned { path, bytes, mode, print, .. } = file.clone();
        FileEntry { path, bytes, mode, print, blake3, stored }
    };
    Ok((planned.iter().map(entry).collect(), new_bytes, wanted.len()))
}

/// What was copied must be what the print was taken of.
fn check_unchanged(file: &Planned, copied: u64, digests: Digests) -> Result<(), BackupError> {
    let changed = |problem: String| BackupError::Changed { path: file.from.clone(), problem };
    if copied != file.bytes {
        return Err(changed(format!("it had {} bytes, then {copied}", file.bytes)));
    }
    if !file.fixed && plan_file(file.from.clone(), file.path.clone(), digests)?.print != file.print {
        return Err(changed("its content is another".to_owned()));
    }
    Ok(())
}

/// The time, or later where a clock that was set back would put the backup before one that is there.
fn new_id(repository: &Repository, started: Timestamp) -> Result<String, BackupError> {
    let digits = |id: &str| id.get(..18).and_then(|id| id.replace('T', "").parse::<u64>().ok());
    let now = digits(&started.strftime("%Y%m%dT%H%M%S%3f").to_string()).unwrap_or_default();
    let newest = repository.backups()?.last().and_then(|(id, _)| digits(id));
    let text = newest.map_or(now, |newest| now.max(newest + 1)).to_string();
    let (day, time) = text.split_at_checked(8).unwrap_or((&text, ""));
    Ok(format!("{day}T{time}Z-{:04x}", rand::random::<u16>()))
}

fn describe(
    source: &Source,
    (point, latest): (&BackupPoint, SystemTime),
    (id, started, finished): (String, Timestamp, Timestamp),
    (bytes, new_bytes): (u64, u64),
    configuration: Option<FileEntry>,
    files: Vec<FileEntry>,
) -> Manifest {
    let taken = Timestamp::try_from(latest).unwrap_or(started);
    Manifest {
        id,
        server: source.server.clone(),
        version: source.version.clone(),
        started: started.to_string(),
        taken: taken.to_string(),
        taken_ms: scrinium_clock::unix_ms(latest),
        finished: finished.to_string(),
        store: point.identity().to_owned(),
        log_key: format!("{:016x}", point.log_key()),
        sequence: point.sequence(),
        volumes: Vec::new(),
        missing_volumes: Vec::new(),
        archive_dir: source.archive_dir.as_ref().map(|dir| dir.display().to_string()),
        bytes,
        new_bytes,
        configuration,
        objects: None,
        files,
        sealed: None,
    }
}

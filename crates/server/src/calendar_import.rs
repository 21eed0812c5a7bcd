//! `scrinium import ics` and `import vcf`: calendars and contacts of other programs, from their files.
//!
//! What is imported is stored as it is: nobody is invited, and nobody hears of it. Ids are made of UIDs, so what is repeated finds what is
//! there. If no server runs on the data folder, the database is written directly; else through the server's port, as its administrator.

mod pieces;
mod targets;

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use scrinium_database::FolderKind;
use scrinium_dav_server::{ImportFolder, ImportedResource, import_calendar, import_card};
use scrinium_directory::Person;
use scrinium_mail::open_mail_file;
use serde_json::json;

use crate::cli::{
    ConnectionArguments, Failure, ImportCalendarArguments, ImportContactsArguments, Terminal, connect,
};
use crate::config::{Configuration, Settings};
use crate::mail_import::RemoteMail;
use crate::registry::{self, DirectRegistry, RemoteRegistry};
use crate::storage::StorageError;
use pieces::Pieces;
use targets::{CalendarTarget, OpenTarget, Stored};

/// Files below a folder, and folders in folders.
const FILES_MAX: usize = 100_000;
const DEPTH_MAX: usize = 16;

/// What a file in an archive may come to. Such files are held in memory.
const UNPACKED_BYTES_MAX: u64 = 512 << 20;

/// Stored together: at most this number of entries, and not many more bytes.
const ENTRIES_AT_ONCE: usize = 200;
const BYTES_AT_ONCE: usize = 2 << 20;

/// Reasons that are said one by one.
const REASONS_MAX: usize = 20;

/// What is imported, and where it goes.
struct Job<'a> {
    paths: &'a [PathBuf],
    person: &'a str,
    connection: &'a ConnectionArguments,
    /// What files are called.
    extension: &'static str,
    folder: ImportFolder,
    /// To-dos lie apart.
    tasks: Option<ImportFolder>,
    now_s: u64,
}

/// What came of it.
#[derive(Default)]
struct Report {
    files: usize,
    added: usize,
    present: usize,
    left_out: usize,
    reasons: Vec<String>,
}

impl Report {
    fn leave_out(&mut self, place: &str, reason: &str) {
        self.left_out += 1;
        if self.reasons.len() < REASONS_MAX {
            self.reasons.push(format!("{place}: {reason}"));
        }
    }
}

/// Carries out `import ics`.
pub(crate) fn run_calendars(
    configuration: &Configuration,
    arguments: &ImportCalendarArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let folder = folder(&arguments.calendar, FolderKind::Calendar)?;
    let tasks = Some(folder_of_tasks(&arguments.tasks)?);
    let job = Job {
        paths: &arguments.paths,
        person: &arguments.person,
        connection: &arguments.connection,
        extension: "ics",
        folder,
        tasks,
        now_s: scrinium_clock::Clock::system().now_s(),
    };
    run(configuration, &job, terminal)
}

/// Carries out `import vcf`.
pub(crate) fn run_contacts(
    configuration: &Configuration,
    arguments: &ImportContactsArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let job = Job {
        paths: &arguments.paths,
        person: &arguments.person,
        connection: &arguments.connection,
        extension: "vcf",
        folder: folder(&arguments.address_book, FolderKind::Contacts)?,
        tasks: None,
        now_s: scrinium_clock::Clock::system().now_s(),
    };
    run(configuration, &job, terminal)
}

fn folder(name: &str, kind: FolderKind) -> Result<ImportFolder, Failure> {
    let folder = ImportFolder::new(name, kind);
    folder.ok_or_else(|| Failure::Use(format!("{name:?} is no name of a calendar or an address book")))
}

fn folder_of_tasks(name: &str) -> Result<ImportFolder, Failure> {
    folder(name, FolderKind::Tasks)
}

fn run(configuration: &Configuration, job: &Job<'_>, terminal: &Terminal) -> Result<(), Failure> {
    let settings = configuration.settings();
    let report = if job.connection.url.is_some() {
        by_port(&settings, job, terminal)?
    } else {
        match DirectRegistry::open(&settings) {
            Ok(registry) => directly(&registry?, job)?,
            Err(StorageError::InUse(_)) => {
                terminal.say("A server runs on this data folder: importing through its port.");
                by_port(&settings, job, terminal)?
            }
            Err(unusable @ StorageError::Unusable(_)) => return Err(unusable.into()),
        }
    };
    tell(&report, job, terminal)
}

fn by_port(settings: &Settings, job: &Job<'_>, terminal: &Terminal) -> Result<Report, Failure> {
    let client = connect(settings, job.connection, &registry::environment(), terminal)?;
    let names = registry::names(&RemoteRegistry::new(client.clone())?)?;
    let person = registry::person_called(&names, job.person)?;
    let target = RemoteMail::of_client(client, job.person, Path::new("calendars"))?;
    import(&target, job, &person)
}

fn directly(registry: &DirectRegistry, job: &Job<'_>) -> Result<Report, Failure> {
    let person = registry::person_called(&registry::names(registry)?, job.person)?;
    let Some((storage, _)) = registry.parts() else { return Ok(Report::default()) };
    let opened = open_mail_file(&storage.databases, &person).map_err(Failure::work)?;
    import(&OpenTarget(std::sync::Arc::clone(opened.database())), job, &person)
}

fn import(target: &impl CalendarTarget, job: &Job<'_>, person: &Person) -> Result<Report, Failure> {
    let mut report = Report::default();
    for folder in std::iter::once(&job.folder).chain(&job.tasks) {
        target.make_folder(folder).map_err(Failure::Work)?;
    }
    let files = files(job)?;
    if files.is_empty() {
        return Err(Failure::Use(format!("there is no file *.{} among what is named", job.extension)));
    }
    for path in files {
        let is_archive = extension_of(&path).as_deref() == Some("zip");
        let file = File::open(&path).map_err(|error| unreadable(&path, &error))?;
        let read = if is_archive {
            import_archive(target, (job, person), (file, &path), &mut report)
        } else {
            import_file(target, (job, person), (file, &path.display().to_string()), &mut report)
        };
        read?;
    }
    Ok(report)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::Work(format!("cannot read {}: {error}", path.display()))
}

fn extension_of(path: &Path) -> Option<String> {
    path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase())
}

/// The files that are named, and those in folders that are named.
fn files(job: &Job<'_>) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let mut waiting: Vec<(PathBuf, usize)> = Vec::new();
    for path in job.paths {
        if path.is_dir() { waiting.push((path.clone(), 0)) } else { files.push(path.clone()) }
    }
    while let Some((folder, depth)) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|error| unreadable(&folder, &error))? {
            let path = entry.map_err(|error| unreadable(&folder, &error))?.path();
            let is_link = path.is_symlink();
            if path.is_dir() && !is_link && depth < DEPTH_MAX {
                waiting.push((path, depth + 1));
            } else if extension_of(&path).as_deref() == Some(job.extension) && path.is_file() {
                files.push(path);
            }
            if files.len() > FILES_MAX {
                return Err(Failure::Work(format!("there are more than {FILES_MAX} files")));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The files of an archive, as Google's Takeout gives one.
fn import_archive(
    target: &impl CalendarTarget,
    of: (&Job<'_>, &Person),
    (file, path): (File, &Path),
    report: &mut Report,
) -> Result<(), Failure> {
    let broken = |error: zip::result::ZipError| unreadable(path, &io::Error::other(error));
    let mut archive = zip::ZipArchive::new(file).map_err(broken)?;
    for number in 0..archive.len().min(FILES_MAX) {
        let entry = archive.by_index(number).map_err(broken)?;
        let name = entry.name().to_owned();
        if extension_of(Path::new(&name)).as_deref() != Some(of.0.extension) || entry.is_dir() {
            continue;
        }
        let place = format!("{}: {name}", path.display());
        let mut bytes = Vec::new();
        entry
            .take(UNPACKED_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(path, &error))?;
        if bytes.len() as u64 > UNPACKED_BYTES_MAX {
            report.leave_out(
                &place,
                &format!("it has more than {UNPACKED_BYTES_MAX} bytes; unpack the archive first"),
            );
            continue;
        }
        import_file(target, of, (Cursor::new(bytes), &place), report)?;
    }
    Ok(())
}

fn import_file(
    target: &impl CalendarTarget,
    (job, person): (&Job<'_>, &Person),
    (file, place): (impl Read + Seek, &str),
    report: &mut Report,
) -> Result<(), Failure> {
    let broken = |error: io::Error| unreadable(Path::new(place), &error);
    let is_calendar = job.tasks.is_some();
    let mut pieces = Pieces::of(file, is_calendar).map_err(broken)?;
    report.files += 1;
    for reason in std::mem::take(&mut pieces.left_out) {
        report.leave_out(place, &reason);
    }
    let mut waiting: [Vec<ImportedResource>; 2] = Default::default();
    for number in 0..pieces.len() {
        let read = pieces.object(number).map_err(broken)?.and_then(|bytes| {
            if is_calendar { import_calendar(&bytes, person, job.now_s) } else { import_card(&bytes) }
        });
        let entry = match read {
            Ok(entry) => entry,
            Err(reason) => {
                report.leave_out(&format!("{place}, entry {}", number + 1), &reason);
                continue;
            }
        };
        let [others, todos] = &mut waiting;
        let (list, folder) = match (&job.tasks, entry.is_todo) {
            (Some(tasks), true) => (todos, &tasks.name),
            _ => (others, &job.folder.name),
        };
        list.push(entry);
        let bytes: usize = list.iter().map(|entry| entry.source.len()).sum();
        if list.len() >= ENTRIES_AT_ONCE || bytes >= BYTES_AT_ONCE {
            store(target, (folder, std::mem::take(list)), place, report)?;
        }
    }
    let [others, todos] = waiting;
    store(target, (&job.folder.name, others), place, report)?;
    job.tasks.as_ref().map_or(Ok(()), |tasks| store(target, (&tasks.name, todos), place, report))
}

fn store(
    target: &impl CalendarTarget,
    (folder, entries): (&str, Vec<ImportedResource>),
    place: &str,
    report: &mut Report,
) -> Result<(), Failure> {
    if entries.is_empty() {
        return Ok(());
    }
    for stored in target.store(folder, entries).map_err(Failure::Work)? {
        match stored {
            Stored::New => report.added += 1,
            Stored::Present => report.present += 1,
            Stored::LeftOut(reason) => report.leave_out(place, &reason),
        }
    }
    Ok(())
}

/// Says what was done. What was left out makes the command fail.
fn tell(report: &Report, job: &Job<'_>, terminal: &Terminal) -> Result<(), Failure> {
    for reason in &report.reasons {
        terminal.say(&format!("left out: {reason}"));
    }
    if report.left_out > report.reasons.len() {
        terminal.say(&format!("left out: {} more", report.left_out - report.reasons.len()));
    }
    let Report { files, added, present, left_out, reasons } = report;
    let text = format!(
        "{files} files read for {}: {added} entries new, {present} there already, {left_out} left out\n",
        job.person
    );
    terminal.data(
        &text,
        &json!({
            "person": job.person, "folder": job.folder.name, "files": files, "added": added, "present": present,
            "left_out": left_out, "reasons": reasons,
        }),
    )?;
    if *left_out > 0 { Err(Failure::Found) } else { Ok(()) }
}

//! `scrinium import mail`: files of messages into a person's mail database.
//!
//! If no server runs on the data folder, the database is written directly; else through the server's
//! port, as its administrator.

mod remote;

use std::path::Path;

use indicatif::ProgressBar;
use scrinium_clock::Clock;
use scrinium_directory::{Directory, Found, NameLookup};
use scrinium_mail::import::{ImportOptions, ImportReport, ImportTarget, Importer, MailDatabase, Progress};
use scrinium_mail::open_mail_file;
use scrinium_statistics::Registry;
use serde_json::json;

use crate::cli::{Failure, ImportMailArguments, Terminal};
use crate::config::Configuration;
use crate::storage::{Storage, StorageError};

pub(crate) use remote::RemoteMail;

/// Carries out the command.
pub(crate) fn run(
    configuration: &Configuration,
    arguments: &ImportMailArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let settings = configuration.settings();
    let report = match Storage::open(&settings, &Registry::new(), &Clock::system()) {
        Ok(storage) => {
            let report = import_directly(&storage, arguments, terminal);
            storage.close();
            report?
        }
        Err(StorageError::InUse(_)) => {
            terminal.say("A server runs on this data folder: importing through its port.");
            let remote = RemoteMail::find(&settings, &arguments.person, &arguments.path)?;
            import(&remote, &remote.person_id, &arguments.path, terminal)?
        }
        Err(unusable @ StorageError::Unusable(_)) => return Err(unusable.into()),
    };
    tell(&report, &arguments.person, terminal)
}

fn import_directly(
    storage: &Storage,
    arguments: &ImportMailArguments,
    terminal: &Terminal,
) -> Result<ImportReport, Failure> {
    let directory = Directory::open(&storage.databases).map_err(Failure::work)?;
    let person = match directory.find(&arguments.person) {
        Found::Person(person) => person,
        Found::Several => return Err(several(&arguments.person)),
        Found::Nobody | Found::Group(_) => return Err(nobody(&arguments.person)),
    };
    let database = open_mail_file(&storage.databases, &person).map_err(Failure::work)?;
    let target = MailDatabase::new(database, &person.short_name, &arguments.path);
    import(&target, &person.id, &arguments.path, terminal)
}

pub(crate) fn nobody(name: &str) -> Failure {
    Failure::Work(format!("nobody in the directory is called {name:?}; write the person's document first"))
}

fn several(name: &str) -> Failure {
    Failure::Work(format!("several in the directory are called {name:?}; give a short name"))
}

/// Imports with a progress bar.
pub(crate) fn import<T: ImportTarget>(
    target: &T,
    person: &str,
    path: &Path,
    terminal: &Terminal,
) -> Result<ImportReport, Failure> {
    let bar = bar(terminal);
    let importer = Importer::new(target, ImportOptions::for_person(person));
    let report = importer.run(path, |progress| show(&bar, progress));
    bar.finish_and_clear();
    report.map_err(Failure::work)
}

fn bar(terminal: &Terminal) -> ProgressBar {
    terminal.bar(0, "{bar:30} {bytes}/{total_bytes}  {msg}  {eta} left")
}

fn show(bar: &ProgressBar, progress: &Progress) {
    bar.set_length(progress.total.bytes);
    bar.set_position(progress.done_bytes);
    bar.set_message(format!("{} messages, {:.0}/s", progress.messages, progress.rate()));
}

fn tell(report: &ImportReport, person: &str, terminal: &Terminal) -> Result<(), Failure> {
    for reason in &report.reasons {
        terminal.say(&format!("left out: {reason}"));
    }
    let text = format!(
        "{} messages read for {person}: {} new, {} there already; {} damaged (kept whole), {} left out\n",
        report.messages, report.added, report.present, report.damaged, report.left_out
    );
    terminal.data(
        &text,
        &json!({
            "person": person, "messages": report.messages, "added": report.added, "present": report.present,
            "damaged": report.damaged, "left_out": report.left_out, "reasons": report.reasons,
        }),
    )
}

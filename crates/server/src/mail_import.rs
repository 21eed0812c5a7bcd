//! `scrinium import mail`: files of messages into a person's mail database.
//!
//! If no server runs on the data folder, the database is written directly; else through the server's
//! port, as its administrator.

mod letters;
mod remote;

use std::path::Path;

use indicatif::ProgressBar;
use scrinium_mail::import::{
    ImportOptions, ImportReport, ImportTarget, Importer, MailDatabase, Progress, TRASH,
};
use scrinium_mail::open_mail_file;
use serde_json::{Value, json};

use crate::cli::{Failure, ImportMailArguments, Terminal, connect};
use crate::config::{Configuration, Settings};
use crate::registry::{self, DirectRegistry};
use crate::storage::StorageError;

pub(crate) use remote::RemoteMail;

/// Carries out the command.
pub(crate) fn run(
    configuration: &Configuration,
    arguments: &ImportMailArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let settings = configuration.settings();
    let report = if arguments.connection.url.is_some() {
        import_by_port(&settings, arguments, terminal)?
    } else {
        match DirectRegistry::open(&settings) {
            Ok(registry) => import_directly(&registry?, arguments, terminal)?,
            Err(StorageError::InUse(_)) => {
                terminal.say("A server runs on this data folder: importing through its port.");
                import_by_port(&settings, arguments, terminal)?
            }
            Err(unusable @ StorageError::Unusable(_)) => return Err(unusable.into()),
        }
    };
    tell(&report, arguments, terminal)
}

fn import_by_port(
    settings: &Settings,
    arguments: &ImportMailArguments,
    terminal: &Terminal,
) -> Result<ImportReport, Failure> {
    let client = connect(settings, &arguments.connection, &registry::environment(), terminal)?;
    let remote = RemoteMail::of_client(client, &arguments.person, &arguments.path)?;
    import(&remote, &options(&remote.person_id, arguments), &arguments.path, terminal)
}

fn import_directly(
    registry: &DirectRegistry,
    arguments: &ImportMailArguments,
    terminal: &Terminal,
) -> Result<ImportReport, Failure> {
    let person = registry::person_called(&registry::names(registry)?, &arguments.person)?;
    let Some((storage, _)) = registry.parts() else { return Ok(ImportReport::default()) };
    let database = open_mail_file(&storage.databases, &person).map_err(Failure::work)?;
    let target = MailDatabase::new(database, &person.short_name, &arguments.path);
    import(&target, &options(&person.id, arguments), &arguments.path, terminal)
}

fn options(person: &str, arguments: &ImportMailArguments) -> ImportOptions {
    ImportOptions { with_deleted: arguments.with_deleted, ..ImportOptions::for_person(person) }
}

/// Imports with a progress bar.
pub(crate) fn import<T: ImportTarget>(
    target: &T,
    options: &ImportOptions,
    path: &Path,
    terminal: &Terminal,
) -> Result<ImportReport, Failure> {
    let bar = bar(terminal);
    let importer = Importer::new(target, options.clone());
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

/// Says what was done. What was left out makes the command fail; what was passed over does not.
fn tell(report: &ImportReport, arguments: &ImportMailArguments, terminal: &Terminal) -> Result<(), Failure> {
    for reason in &report.reasons {
        terminal.say(&format!("left out: {reason}"));
    }
    let more = report.left_out.saturating_sub(report.reasons.len() as u64);
    if more > 0 {
        terminal.say(&format!("left out: {more} more"));
    }
    for line in passed_over(report, arguments.with_deleted) {
        terminal.say(&line);
    }
    let person = &arguments.person;
    let text = format!(
        "{} messages read for {person}: {} new, {} there already; {} damaged (kept whole), {} without a header field that \
         they should have, {} skipped, {} left out\n",
        report.messages,
        report.added,
        report.present,
        report.damaged,
        report.incomplete,
        report.passed_over.count(),
        report.left_out
    );
    let kinds = report.passed_over.kinds();
    let passed: Vec<Value> = kinds
        .map(|(reason, kind)| json!({"reason": reason, "count": kind.count, "first": names(&kind.first)}))
        .collect();
    terminal.data(
        &text,
        &json!({
            "person": person, "messages": report.messages, "added": report.added, "present": report.present,
            "damaged": report.damaged, "incomplete": report.incomplete, "left_out": report.left_out,
            "reasons": report.reasons, "passed_over": passed,
        }),
    )?;
    if report.left_out > 0 { Err(Failure::Found) } else { Ok(()) }
}

fn names(paths: &[std::path::PathBuf]) -> Vec<String> {
    let name = |path: &std::path::PathBuf| path.display().to_string();
    paths.iter().map(name).filter(|name| !name.is_empty()).collect()
}

fn passed_over(report: &ImportReport, with_deleted: bool) -> Vec<String> {
    let line = |(reason, kind): (&str, &scrinium_mail::import::PassedKind)| {
        let named = names(&kind.first).join(", ");
        let more = if kind.count > kind.first.len() as u64 { ", …" } else { "" };
        let advice = if reason.starts_with("deleted") && !with_deleted {
            format!(" (--with-deleted brings them into the folder {TRASH})")
        } else {
            String::new()
        };
        let named = if named.is_empty() { String::new() } else { format!(": {named}{more}") };
        format!("skipped: {} {reason}{advice}{named}", kind.count)
    };
    report.passed_over.kinds().map(line).collect()
}

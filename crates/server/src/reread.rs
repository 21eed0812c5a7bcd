//! Reading the messages of mail files again, on an administrator's word: by a running server, or without one.

use std::io;
use std::time::{Duration, Instant};

use scrinium_catalog::{Databases, NameRange, is_mail_file};
use scrinium_database::DatabaseError;
use scrinium_mail::{RereadReport, reread_mail_file};
use scrinium_statistics::Tasks;
use serde_json::json;

use crate::cli::{Failure, MailRereadArguments, Terminal, connect};
use crate::config::{Configuration, Settings};
use crate::registry::{self, DirectRegistry, RemoteRegistry};
use crate::storage::StorageError;

/// The task, by its kind.
const KIND: &str = "mail_reread";

/// How often progress is shown to somebody who waits.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// How often it is looked whether the work has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Begins, on a thread of its own.
///
/// # Errors
/// In words: it runs already, there is no such database, or no thread can be had.
pub(crate) fn begin(databases: Databases, tasks: &Tasks, database: &str) -> Result<(), String> {
    if tasks.running().iter().any(|task| task.kind == KIND) {
        return Err("messages are being read again; show tasks shows its progress".to_owned());
    }
    let named = Some(database).filter(|name| *name != "*");
    let names = mail_files(&databases, named).map_err(|error| format!("{database}: {error}"))?;
    let tasks = tasks.clone();
    let reread = move || {
        for name in names {
            match reread_one(&databases, &tasks, &name) {
                Ok(report) if report.stopped => return,
                Ok(report) => tracing::info!(
                    database = name,
                    examined = report.examined,
                    changed = report.changed,
                    left = report.left,
                    "messages were read again"
                ),
                Err(error) => {
                    tracing::warn!(database = name, %error, "not all messages were read again");
                }
            }
        }
    };
    let begun = std::thread::Builder::new().name("reread".to_owned()).spawn(reread);
    begun.map(drop).map_err(|error| format!("cannot start a thread for it: {error}"))
}

/// The mail file of this name, or all of them.
fn mail_files(databases: &Databases, named: Option<&str>) -> Result<Vec<String>, DatabaseError> {
    match named {
        Some(name) => {
            databases.get(name)?;
            Ok(vec![name.to_owned()])
        }
        None => {
            let names = databases.names(&NameRange::default())?;
            Ok(names.into_iter().filter(|name| is_mail_file(name)).collect())
        }
    }
}

/// Reads one again, as a task.
fn reread_one(databases: &Databases, tasks: &Tasks, name: &str) -> Result<RereadReport, DatabaseError> {
    let database = match databases.get(name) {
        Ok(database) => database,
        // It was deleted in the meantime.
        Err(DatabaseError::NotFound { .. }) => return Ok(RereadReport::default()),
        Err(error) => return Err(error),
    };
    let task = tasks.start(KIND, Some(name), Some(database.info()?.document_count));
    let report = reread_mail_file(&database, &task);
    match &report {
        // Dropped, it counts as cancelled.
        Ok(report) if report.stopped => drop(task),
        Ok(report) => {
            task.detail("changed", report.changed);
            task.finish();
        }
        Err(error) => task.fail(error.to_string()),
    }
    report
}

/// Carries out `scrinium mail reread`.
pub(crate) fn run(
    configuration: &Configuration,
    arguments: &MailRereadArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let settings = configuration.settings();
    if arguments.connection.url.is_some() {
        return ask_server(&settings, arguments, terminal);
    }
    match DirectRegistry::open(&settings) {
        Ok(registry) => reread_directly(&registry?, arguments, terminal),
        Err(StorageError::InUse(_)) => ask_server(&settings, arguments, terminal),
        Err(unusable @ StorageError::Unusable(_)) => Err(unusable.into()),
    }
}

/// A server does it as a task.
fn ask_server(
    settings: &Settings,
    arguments: &MailRereadArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let client = connect(settings, &arguments.connection, &registry::environment(), terminal)?;
    let database = match &arguments.person {
        Some(name) => {
            let names = registry::names(&RemoteRegistry::new(client.clone())?)?;
            registry::person_called(&names, name)?.mail_file.clone()
        }
        None => "*".to_owned(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::work)?;
    let reply = runtime.block_on(client.send(&format!("load reread {database}"))).map_err(Failure::work)?;
    terminal.data(&reply.text, &reply.data)
}

fn reread_directly(
    registry: &DirectRegistry,
    arguments: &MailRereadArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let named = match &arguments.person {
        Some(name) => Some(registry::person_called(&registry::names(registry)?, name)?.mail_file.clone()),
        None => None,
    };
    let Some((storage, _)) = registry.parts() else { return Ok(()) };
    let names = mail_files(&storage.databases, named.as_deref()).map_err(Failure::work)?;
    let tasks = Tasks::new();
    let (mut all, mut text, mut reports) = (RereadReport::default(), String::new(), Vec::new());
    for name in &names {
        let report = told(&tasks, terminal, "documents", || reread_one(&storage.databases, &tasks, name));
        let report = report.map_err(Failure::work)?;
        let report = report.map_err(|error| Failure::Work(format!("{name}: {error}")))?;
        let RereadReport { examined, changed, left, .. } = report;
        text.push_str(&format!(
            "{name}: {examined} documents examined, {changed} changed, {left} left as they are\n"
        ));
        reports.push(json!({"database": name, "examined": examined, "changed": changed, "left": left}));
        all.left += left;
    }
    if names.is_empty() {
        text.push_str("There are no mail files.\n");
    }
    terminal.data(&text, &json!({"mail_files": reports}))?;
    if all.left > 0 { Err(Failure::Found) } else { Ok(()) }
}

/// Does the work on another thread, and says how far it is.
pub(crate) fn told<T: Send>(
    tasks: &Tasks,
    terminal: &Terminal,
    what: &str,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    let mut told_at = Instant::now();
    std::thread::scope(|scope| {
        let work = std::thread::Builder::new().name("work".to_owned()).spawn_scoped(scope, work)?;
        while !work.is_finished() {
            std::thread::sleep(LOOK_EVERY);
            if told_at.elapsed() >= TOLD_EVERY {
                told_at = Instant::now();
                for task in tasks.running() {
                    let of = task.total.map_or_else(String::new, |total| format!(" of {total}"));
                    let name = task.database.unwrap_or_default();
                    let name = if name.is_empty() { name } else { format!("{name}: ") };
                    terminal.say(&format!("{name}{}{of} {what}", task.done));
                }
            }
        }
        work.join().map_err(|_| io::Error::other("reading again ended by a fault of the program"))
    })
}

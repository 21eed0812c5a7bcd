//! `scrinium export maildir|mbox|eml`: a person's mail as files that other programs read, into a folder of its own below the data folder.
//! A running server does it as a task; without one it is done when the command returns.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use scrinium_database::Database;
use scrinium_directory::{Directory, NameLookup, Person};
use scrinium_mail::export::{ExportFormat, ExportReport, MailExport, MailExportError};
use scrinium_mail::{MessageComposer, Resolver};
use scrinium_statistics::Tasks;
use serde_json::{Value, json};

use crate::cli::{ExportCommand, Failure, PersonNameArguments, Terminal, connect};
use crate::config::{Configuration, Settings};
use crate::ground::server_name;
use crate::person_export::export_folder;
use crate::registry::{self, DirectRegistry, RemoteRegistry};
use crate::reread::told;
use crate::storage::StorageError;

/// The task, by its kind.
const KIND: &str = "mail_export";

/// Whose mail is written, where, and how.
pub(crate) struct Export {
    database: Arc<Database>,
    person: Arc<Person>,
    composer: MessageComposer,
    folder: PathBuf,
    format: ExportFormat,
}

impl Export {
    /// An export into a folder of its own below the data folder.
    ///
    /// # Errors
    /// In words: the person has no mail database.
    pub(crate) fn new(
        directory: &Arc<Directory>,
        person: Arc<Person>,
        (settings, format): (&Settings, ExportFormat),
    ) -> Result<Self, String> {
        let databases = directory.databases();
        let found = databases.get(&person.mail_file);
        let database = found.map_err(|error| format!("{}: {error}", person.mail_file))?;
        let lookup: Arc<dyn NameLookup> = Arc::clone(directory) as _;
        let resolver = Resolver::new(lookup, &settings.mail.domains);
        let host = settings.smtp.host_name.clone();
        let host = if host.is_empty() { server_name(settings) } else { host };
        let name = format!("{}-{}-{}", person.short_name, format.text(), databases.clock().now_ms());
        let composer = MessageComposer { host, resolver };
        let folder = export_folder(settings, &name);
        Ok(Self { database: Arc::clone(database.database()), person, composer, folder, format })
    }

    fn run(&self, tasks: &Tasks) -> Result<ExportReport, MailExportError> {
        let task = tasks.start(KIND, Some(&self.person.mail_file), None);
        let export = MailExport {
            database: &self.database,
            person: &self.person.short_name,
            composer: &self.composer,
            root: &self.folder,
            format: self.format,
        };
        let written = export.run(&task);
        match &written {
            Ok(_) => task.finish(),
            Err(MailExportError::Stopped(_)) => drop(task),
            Err(error) => task.fail(error.to_string()),
        }
        written
    }
}

/// Begins an export in a running server, on a thread of its own; gives where it is written.
///
/// # Errors
/// In words: one is under way, or no thread can be had.
pub(crate) fn begin(export: Export, tasks: &Tasks) -> Result<PathBuf, String> {
    if tasks.running().iter().any(|task| task.kind == KIND) {
        return Err("somebody's mail is being exported; show tasks shows its progress".to_owned());
    }
    let (folder, tasks) = (export.folder.clone(), tasks.clone());
    let work = move || match export.run(&tasks) {
        Ok(report) => tracing::info!(
            folder = %export.folder.display(),
            messages = report.messages,
            left_out = report.left_out,
            "mail was exported"
        ),
        Err(error) => tracing::warn!(%error, "mail was not exported"),
    };
    let begun = std::thread::Builder::new().name("export".to_owned()).spawn(work);
    begun.map_err(|error| format!("cannot start a thread for it: {error}"))?;
    Ok(folder)
}

/// Carries out the command.
pub(crate) fn run(
    configuration: &Configuration,
    command: &ExportCommand,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let settings = configuration.settings();
    let (format, asked) = match command {
        ExportCommand::Maildir(asked) => (ExportFormat::Maildir, asked),
        ExportCommand::Mbox(asked) => (ExportFormat::Mbox, asked),
        ExportCommand::Eml(asked) => (ExportFormat::Eml, asked),
    };
    if asked.connection.url.is_some() {
        return ask_server(&settings, (asked, format), terminal);
    }
    match DirectRegistry::open(&settings) {
        Ok(registry) => export_directly(&registry?, &settings, (asked, format), terminal),
        Err(StorageError::InUse(_)) => ask_server(&settings, (asked, format), terminal),
        Err(unusable @ StorageError::Unusable(_)) => Err(unusable.into()),
    }
}

type Asked<'a> = (&'a PersonNameArguments, ExportFormat);

fn ask_server(settings: &Settings, (asked, format): Asked<'_>, terminal: &Terminal) -> Result<(), Failure> {
    let client = connect(settings, &asked.connection, &registry::environment(), terminal)?;
    let names = registry::names(&RemoteRegistry::new(client.clone())?)?;
    let person = registry::person_called(&names, &asked.name)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let line = format!("export mail {} {}", format.text(), person.short_name);
    let reply = runtime.map_err(Failure::work)?.block_on(client.send(&line)).map_err(Failure::work)?;
    terminal.data(&reply.text, &reply.data)
}

fn export_directly(
    registry: &DirectRegistry,
    settings: &Settings,
    (asked, format): Asked<'_>,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let person = registry::person_called(&registry::names(registry)?, &asked.name)?;
    let export = Export::new(registry.directory(), person, (settings, format)).map_err(Failure::Work)?;
    let tasks = Tasks::new();
    let report = told(&tasks, terminal, "messages", || export.run(&tasks)).map_err(Failure::work)?;
    let report = report.map_err(Failure::work)?;
    terminal.data(&text_of(&report, &export.folder), &data_of(&report, &export.folder))?;
    if report.left_out > 0 { Err(Failure::Found) } else { Ok(()) }
}

fn text_of(report: &ExportReport, folder: &Path) -> String {
    let ExportReport { folders, messages, bytes, left_out, lost_keywords } = report;
    let lost = if *lost_keywords == 0 {
        String::new()
    } else {
        format!(", {lost_keywords} keywords without a letter left for them")
    };
    format!(
        "{messages} messages of {folders} folders, {bytes} bytes, are in {}; {left_out} left out{lost}\n",
        folder.display()
    )
}

fn data_of(report: &ExportReport, folder: &Path) -> Value {
    let mut data = report.to_json();
    if let Some(data) = data.as_object_mut() {
        data.insert("folder".to_owned(), json!(folder));
    }
    data
}

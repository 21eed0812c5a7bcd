//! Everything that is a person's, into a folder: for the person, or for the law's sake.

mod files;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scrinium_catalog::{NameRange, is_mailbox};
use scrinium_database::{Access, Database, DatabaseError, NamedSearch, ReadOptions, RowQuery};
use scrinium_directory::{DIRECTORY_DATABASE, Directory, NameLookup, Person, fold_name, hide_secrets};
use scrinium_statistics::{Task, Tasks};
use serde_json::{Value, json};

use crate::cli::{Failure, PersonNameArguments, Terminal, connect};
use crate::config::Settings;
use crate::registry::{self, DirectRegistry, RemoteRegistry};
use crate::reread::told;
use crate::storage::StorageError;
use files::{Counts, Documents, ExportFolder};

/// The task, by its kind.
const KIND: &str = "person_export";

/// The folder in the data folder into which people are exported.
const EXPORTS: &str = "exports";

/// Documents that are looked at on one snapshot, and found at a time.
const PAGE: usize = 200;
const EXAMINED_MAX: usize = 4_000;

/// Fields of documents that say whose a document is.
const OWN_FIELDS: [&str; 4] = ["Authors", "Readers", "From", "Owner"];

/// Fields of the log database that say who did it.
const LOG_FIELDS: [&str; 4] = ["Person", "From", "Sender", "Target"];

static EXPORT: Access = Access::of_the_server("exporting what is a person's");

/// The folder of an export that is called so.
pub(crate) fn export_folder(settings: &Settings, name: &str) -> PathBuf {
    settings.in_data_dir(Path::new(EXPORTS)).join(files::file_name(name))
}

/// What an export could not go on for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    #[error("cannot write {}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("it was told to stop; what is in {} is not whole", .0.display())]
    Stopped(PathBuf),
}

/// Where and of whom.
pub(crate) struct Export {
    directory: Arc<Directory>,
    person: Arc<Person>,
    folder: PathBuf,
    log_database: String,
}

impl Export {
    /// An export into a folder of its own below the data folder.
    pub(crate) fn new(directory: &Arc<Directory>, person: Arc<Person>, settings: &Settings) -> Self {
        let now_ms = directory.databases().clock().now_ms();
        let folder = export_folder(settings, &format!("{}-{now_ms}", person.short_name));
        Self {
            directory: Arc::clone(directory),
            person,
            folder,
            log_database: settings.log_database.name.clone(),
        }
    }

    /// Where everything is written.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes everything, and last the list of what was written: a folder without it is not whole.
    pub(crate) fn run(&self, tasks: &Tasks) -> Result<Value, ExportError> {
        let task = tasks.start(KIND, None, None);
        task.detail("person", self.person.short_name.as_str());
        let written = self.write(&task);
        match &written {
            Ok(_) => task.finish(),
            Err(ExportError::Stopped(_)) => drop(task),
            Err(error) => task.fail(error.to_string()),
        }
        written
    }

    fn write(&self, task: &Task) -> Result<Value, ExportError> {
        let folder = ExportFolder::make(&self.folder)?;
        self.write_person(&folder)?;
        let mut names = self.directory.databases().names(&NameRange::default())?;
        names.retain(|name| *name != DIRECTORY_DATABASE);
        task.set_total(names.len() as u64);
        let mut databases = serde_json::Map::new();
        for name in names {
            if task.is_cancelled() {
                return Err(ExportError::Stopped(self.folder.clone()));
            }
            match self.directory.databases().get(&name) {
                Ok(database) => {
                    let counts = self.write_database(&folder, &database, task)?;
                    if counts != Counts::default() {
                        databases.insert(name, counts.to_json());
                    }
                }
                Err(DatabaseError::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            task.advance(1);
        }
        let manifest = json!({
            "person": self.person.id,
            "short_name": self.person.short_name,
            "folder": self.folder,
            "databases": databases,
            "not_in_it": "passwords and other credentials, which nobody can read; what backups have",
        });
        folder.write_json("manifest.json", &manifest)?;
        Ok(manifest)
    }

    fn write_person(&self, folder: &ExportFolder) -> Result<(), ExportError> {
        let directory = self.directory.databases().get(DIRECTORY_DATABASE)?;
        let found = directory.read(&self.person.id, &ReadOptions::default(), &EXPORT)?;
        let mut document = found.json.to_object().unwrap_or_default();
        hide_secrets(&mut document);
        folder.write_json("person.json", &Value::Object(document))?;
        let groups: Vec<String> = self.directory.groups_of(&self.person).to_vec();
        folder.write_json("groups.json", &json!(groups))
    }

    fn write_database(
        &self,
        folder: &ExportFolder,
        database: &Arc<Database>,
        task: &Task,
    ) -> Result<Counts, ExportError> {
        let is_mail_file = database.name() == self.person.mail_file;
        let mut documents = Documents::new(folder, database, is_mail_file);
        if is_mail_file {
            self.each_document(database, task, &mut documents)?;
        } else {
            self.named_documents(database, task, &mut documents)?;
        }
        let marks = self.marks(database)?;
        documents.finish(&marks)
    }

    /// All documents of the mail file.
    fn each_document(
        &self,
        database: &Arc<Database>,
        task: &Task,
        documents: &mut Documents<'_>,
    ) -> Result<(), ExportError> {
        let mut behind: Option<String> = None;
        loop {
            let query = RowQuery {
                // The first id that can come next.
                start_key: behind.map(|id| Value::from(format!("{id}\0"))),
                limit: Some(PAGE as u64),
                ..RowQuery::default()
            };
            let rows = database.all_documents(query, &EXPORT)?.next_rows(PAGE)?;
            let ids: Vec<String> = rows.into_iter().filter_map(|row| row.id).collect();
            behind = ids.last().cloned();
            if behind.is_none() {
                return Ok(());
            }
            for id in ids {
                self.write_one(database, &id, documents)?;
            }
            if task.is_cancelled() {
                return Err(ExportError::Stopped(self.folder.clone()));
            }
        }
    }

    /// Documents of other databases that are the person's, or that the person may read by name.
    fn named_documents(
        &self,
        database: &Arc<Database>,
        task: &Task,
        documents: &mut Documents<'_>,
    ) -> Result<(), ExportError> {
        let is_log = database.name() == self.log_database;
        let mut fields: Vec<&str> = if is_log { LOG_FIELDS.to_vec() } else { OWN_FIELDS.to_vec() };
        if is_mailbox(database.name()) {
            fields.extend(["SendTo", "CopyTo", "BlindCopyTo"]);
        }
        let names = self.names();
        let is_meant = |text: &str| names_one(text, &names);
        let search =
            NamedSearch { fields: &fields, is_meant: &is_meant, found_max: PAGE, examined_max: EXAMINED_MAX };
        let mut place = None;
        loop {
            let found = database.named_leaves(&search, place.as_deref())?;
            for leaf in found.leaves.iter().filter(|leaf| leaf.is_winner) {
                self.write_one(database, &leaf.id, documents)?;
            }
            if found.next.is_none() {
                return Ok(());
            }
            place = found.next;
            if task.is_cancelled() {
                return Err(ExportError::Stopped(self.folder.clone()));
            }
        }
    }

    fn write_one(
        &self,
        database: &Arc<Database>,
        id: &str,
        documents: &mut Documents<'_>,
    ) -> Result<(), ExportError> {
        match database.read(id, &ReadOptions::default(), &EXPORT) {
            Ok(found) => documents.write(id, &found.revision, &found.json, &EXPORT),
            Err(DatabaseError::NotFound { .. }) => Ok(()),
            // One that is damaged keeps nobody from the others.
            Err(error @ DatabaseError::Damaged { .. }) => {
                tracing::warn!(database = database.name(), id, %error, "a document is not in an export");
                documents.miss();
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The ids of what the person has read.
    fn marks(&self, database: &Arc<Database>) -> Result<Vec<String>, ExportError> {
        let (mut ids, mut since) = (Vec::new(), 0);
        loop {
            let some = database.mark_changes(&self.person.short_name, since, usize::MAX, &EXPORT)?;
            ids.extend(some.changes.into_iter().filter(|change| change.read).map(|change| change.id));
            since = some.last;
            if !some.more {
                return Ok(ids);
            }
        }
    }

    /// Everything that the person is called, as it is compared.
    fn names(&self) -> Vec<String> {
        let person = &self.person;
        let names = std::iter::once(&person.short_name).chain(&person.full_names).chain(&person.other_names);
        names.chain(&person.internet_address).map(|name| fold_name(name)).collect()
    }
}

/// Whether a text is one of the names, or `Name <address>` with one of them.
fn names_one(text: &str, names: &[String]) -> bool {
    let is_one = |text: &str| names.contains(&fold_name(text));
    let address = text.rsplit_once('<').and_then(|(_, rest)| rest.trim_end().strip_suffix('>'));
    is_one(text) || address.is_some_and(is_one)
}

/// Begins an export in a running server, on a thread of its own; gives where it is written.
///
/// # Errors
/// In words: one is under way, or no thread can be had.
pub(crate) fn begin(export: Export, tasks: &Tasks) -> Result<PathBuf, String> {
    if tasks.running().iter().any(|task| task.kind == KIND) {
        return Err("somebody is being exported; show tasks shows its progress".to_owned());
    }
    let (folder, tasks) = (export.folder().to_owned(), tasks.clone());
    let work = move || match export.run(&tasks) {
        Ok(_) => tracing::info!(folder = %export.folder().display(), "a person was exported"),
        Err(error) => tracing::warn!(%error, "a person was not exported"),
    };
    let begun = std::thread::Builder::new().name("export".to_owned()).spawn(work);
    begun.map_err(|error| format!("cannot start a thread for it: {error}"))?;
    Ok(folder)
}

/// Carries out `scrinium person export`.
pub(crate) fn run(
    settings: &Settings,
    asked: &PersonNameArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    if asked.connection.url.is_some() {
        return ask_server(settings, asked, terminal);
    }
    match DirectRegistry::open(settings) {
        Ok(registry) => export_directly(&registry?, settings, asked, terminal),
        Err(StorageError::InUse(_)) => ask_server(settings, asked, terminal),
        Err(unusable @ StorageError::Unusable(_)) => Err(unusable.into()),
    }
}

fn ask_server(settings: &Settings, asked: &PersonNameArguments, terminal: &Terminal) -> Result<(), Failure> {
    let client = connect(settings, &asked.connection, &registry::environment(), terminal)?;
    let names = registry::names(&RemoteRegistry::new(client.clone())?)?;
    let person = registry::person_called(&names, &asked.name)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let line = format!("export person {}", person.short_name);
    let reply = runtime.map_err(Failure::work)?.block_on(client.send(&line)).map_err(Failure::work)?;
    terminal.data(&reply.text, &reply.data)
}

fn export_directly(
    registry: &DirectRegistry,
    settings: &Settings,
    asked: &PersonNameArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let person = registry::person_called(&registry::names(registry)?, &asked.name)?;
    let export = Export::new(registry.directory(), person, settings);
    let tasks = Tasks::new();
    let manifest = told(&tasks, terminal, "databases", || export.run(&tasks)).map_err(Failure::work)?;
    let manifest = manifest.map_err(|error| Failure::Work(error.to_string()))?;
    terminal.data(&format!("Everything is in {}\n", export.folder().display()), &manifest)
}

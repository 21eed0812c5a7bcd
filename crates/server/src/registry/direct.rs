//! The directory of a data folder that no server uses.

use std::sync::Arc;

use scrinium_administration::{NewRequest, RequestState, Requests};
use scrinium_clock::Clock;
use scrinium_credentials::{GateOptions, NewAppPassword, ProviderLink, StoredCredentials};
use scrinium_database::{Access, ChangesQuery, DatabaseError, Edit, EditMode};
use scrinium_directory::{
    CredentialError, CredentialRecords, DIRECTORY_DATABASE, Directory, Found, NameLookup, Person,
};
use scrinium_statistics::{Registry as Statistics, Tasks};
use scrinium_views::OpenDatabase;
use serde_json::Value;

use super::{Entry, Registry};
use crate::cli::{Failure, Terminal};
use crate::config::Settings;
use crate::console::Reply;
use crate::console::requests::data_of;
use crate::guard::OwnDatabases;
use crate::people::{credentials_shown, scope_of};
use crate::reread::told;
use crate::storage::{Storage, StorageError};

/// Who reads and writes people and groups while no server runs.
static COMMAND: Access = Access::of_the_server("keeping the directory by commands");

/// Changes read at a time.
const AT_ONCE: usize = 500;

/// The databases of a folder, opened for one command.
pub(crate) struct DirectRegistry {
    storage: Option<Storage>,
    directory: Arc<Directory>,
    /// The provider that is configured, if one is.
    issuer: String,
}

impl DirectRegistry {
    /// Opens a data folder; as a server does, it gives it a directory where there is none.
    pub(crate) fn open(settings: &Settings) -> Result<Result<Self, Failure>, StorageError> {
        let storage = Storage::open(settings, &Statistics::new(), &Clock::system())?;
        let directory = match Directory::open(&storage.databases) {
            Ok(directory) => Arc::new(directory),
            Err(error) => {
                storage.close();
                return Ok(Err(Failure::work(error)));
            }
        };
        storage.databases.set_guard(Arc::new(OwnDatabases::of_settings(&directory, settings)));
        Ok(Ok(Self { storage: Some(storage), directory, issuer: settings.oidc.issuer.clone() }))
    }

    /// The directory of the server that this process is.
    pub(crate) const fn of_server(directory: Arc<Directory>) -> Self {
        Self { storage: None, directory, issuer: String::new() }
    }

    /// The databases of the folder, and its directory.
    pub(crate) fn parts(&self) -> Option<(&Storage, &Directory)> {
        self.storage.as_ref().map(|storage| (storage, self.directory.as_ref()))
    }

    /// The folder's people and groups.
    pub(crate) const fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    fn database(&self) -> Result<OpenDatabase, DatabaseError> {
        self.directory.databases().get(DIRECTORY_DATABASE)
    }

    fn person(&self, name: &str) -> Result<Arc<Person>, Failure> {
        match self.directory.find(name) {
            Found::Person(person) => Ok(person),
            _ => Err(Failure::Work(format!("{name:?} is nobody in the directory any more"))),
        }
    }

    fn read(&self, prefix: &str) -> Result<Vec<Entry>, DatabaseError> {
        let query = ChangesQuery { include_documents: true, ..ChangesQuery::default() };
        let mut changes = self.database()?.changes(query, &COMMAND)?;
        let mut entries = Vec::new();
        while !changes.is_at_end() {
            for change in changes.next_changes(AT_ONCE)? {
                if change.deleted || !change.id.starts_with(prefix) {
                    continue;
                }
                let document = change.document.as_deref().and_then(|json| serde_json::from_str(json).ok());
                if let Some(Value::Object(entry)) = document {
                    entries.push(entry);
                }
            }
        }
        entries.sort_by(|one: &Entry, other: &Entry| id_of(one).cmp(id_of(other)));
        Ok(entries)
    }
}

fn id_of(entry: &Entry) -> &str {
    entry.get("_id").and_then(Value::as_str).unwrap_or_default()
}

impl Registry for DirectRegistry {
    fn entries(&self, prefix: &str) -> Result<Vec<Entry>, Failure> {
        self.read(prefix).map_err(Failure::work)
    }

    fn write(&self, entry: &Entry) -> Result<(), Failure> {
        let edit = Edit { json: Value::Object(entry.clone()).to_string().into(), ..Edit::default() };
        let written =
            self.database().and_then(|database| database.update_one(edit, EditMode::Interactive, &COMMAND));
        written.map(drop).map_err(Failure::work)
    }

    fn write_all(&self, entries: &[Entry]) -> Result<Vec<Result<(), Failure>>, Failure> {
        let edit =
            |entry: &Entry| Edit { json: Value::Object(entry.clone()).to_string().into(), ..Edit::default() };
        let edits = entries.iter().map(edit).collect();
        let database = self.database().map_err(Failure::work)?;
        let update =
            database.update_in_parts(edits, EditMode::Interactive, &COMMAND).map_err(Failure::work)?;
        let results = update.wait().map_err(Failure::work)?;
        Ok(results.into_iter().map(|result| result.map(drop).map_err(Failure::work)).collect())
    }

    fn credentials(&self, name: &str) -> Result<Value, Failure> {
        let person = self.person(name)?;
        Ok(credentials_shown(&person, self.directory.databases().clock().now_ms()))
    }

    fn change_name(&self, new: &NewRequest, terminal: &Terminal) -> Result<Reply, Failure> {
        let tasks = Tasks::new();
        let requests = Requests::new(&self.directory, &tasks);
        let new = NewRequest { requested_by: "a command".to_owned(), ..new.clone() };
        let request = requests.order(&new).map_err(|error| Failure::Work(error.to_string()))?;
        told(&tasks, terminal, "databases", || requests.carry_out_all())
            .map_err(Failure::work)?
            .map_err(|error| Failure::Work(error.to_string()))?;
        let done = requests.list().map_err(|error| Failure::Work(error.to_string()))?;
        let done = done.into_iter().find(|done| done.id == request.id).unwrap_or(request);
        if let Some(reason) = done.reason.as_ref().filter(|_| done.state == RequestState::Failed) {
            return Err(Failure::Work(reason.clone()));
        }
        let documents = done.progress.changed.get("documents").copied().unwrap_or_default();
        let is = if done.kind.removes() { "removed" } else { "renamed" };
        let text = format!(
            "{} is {is}: {} databases looked through, {documents} documents changed, {} left as they are\n",
            done.name, done.progress.databases_done, done.progress.left
        );
        Ok(Reply { text, data: data_of(&done) })
    }

    fn add_app_password(&self, name: &str, label: &str, protocols: &[String]) -> Result<Value, Failure> {
        let person = self.person(name)?;
        let now_ms = self.directory.databases().clock().now_ms();
        let scope = scope_of(protocols).map_err(|error| Failure::Use(error.to_string()))?;
        let new = NewAppPassword { name: label, scope, expires_ms: None };
        let iterations = GateOptions::default().scram_iterations;
        let made = person.credentials.prepare_app_password(new, iterations, now_ms);
        let (made, text) = made.map_err(|error| Failure::Use(error.to_string()))?;
        let put = move |stored: &mut StoredCredentials| Ok(stored.put_app_password(made.clone(), now_ms)?);
        self.directory.change_credentials(&person.id, put).map_err(Failure::work)?;
        Ok(serde_json::json!({"ok": true, "id": text.id(), "password": text.show()}))
    }

    fn remove_app_password(&self, name: &str, id: &str) -> Result<(), Failure> {
        let person = self.person(name)?;
        let (id, now_ms) = (id.to_owned(), self.directory.databases().clock().now_ms());
        let revoke = move |stored: &mut StoredCredentials| Ok(stored.revoke_app_password(&id, now_ms)?);
        self.directory.change_credentials(&person.id, revoke).map_err(Failure::work)
    }

    fn remove_totp(&self, name: &str) -> Result<(), Failure> {
        let person = self.person(name)?;
        let remove = |stored: &mut StoredCredentials| {
            stored.remove_totp();
            Ok(())
        };
        self.directory.change_credentials(&person.id, remove).map_err(Failure::work)
    }

    fn link(&self, name: &str, subject: &str, is_link: bool) -> Result<(), Failure> {
        let person = self.person(name)?;
        if self.issuer.is_empty() {
            return Err(Failure::Use("no provider is known: set oidc.issuer".to_owned()));
        }
        let link = ProviderLink { issuer: self.issuer.clone(), subject: subject.to_owned() };
        let other = self.directory.linked_person(&link.issuer, subject).filter(|other| other.id != person.id);
        if let Some(other) = other.filter(|_| is_link) {
            return Err(Failure::Work(format!("the account {subject:?} is {}'s already", other.short_name)));
        }
        let change = move |stored: &mut StoredCredentials| {
            if !is_link {
                stored.unlink(&link);
                return Ok(());
            }
            let is_linked = stored.links().contains(&link) || stored.link(link.clone());
            if is_linked { Ok(()) } else { Err(CredentialError::TooManyLinks) }
        };
        self.directory.change_credentials(&person.id, change).map_err(Failure::work)
    }
}

impl Drop for DirectRegistry {
    fn drop(&mut self) {
        if let Some(storage) = self.storage.take() {
            storage.close();
        }
    }
}

//! People and groups for commands: by the port of the server that runs on a data folder, or directly where none does.

mod direct;
mod remote;

use scrinium_administration::NewRequest;
use scrinium_directory::{Found, GROUP_PREFIX, MAIL_IN_PREFIX, NameIndex, NameLookup, PERSON_PREFIX, Person};
use serde_json::{Map, Value};

use crate::cli::{ConnectionArguments, Failure, Terminal, connect};
use crate::config::Settings;
use crate::console::Reply;
use crate::storage::StorageError;

pub(crate) use direct::DirectRegistry;
pub(crate) use remote::{RemoteRegistry, refusal};

/// A document of the directory.
pub(crate) type Entry = Map<String, Value>;

/// The directory's documents.
pub(crate) trait Registry {
    /// All whose ids begin so.
    fn entries(&self, prefix: &str) -> Result<Vec<Entry>, Failure>;

    /// Writes one, as an administrator; a new one has no `_rev`.
    fn write(&self, entry: &Entry) -> Result<(), Failure>;

    /// Writes several, each with its own result.
    fn write_all(&self, entries: &[Entry]) -> Result<Vec<Result<(), Failure>>, Failure> {
        Ok(entries.iter().map(|entry| self.write(entry)).collect())
    }

    /// What a person has to come in by, as `GET /_credentials` shows it.
    fn credentials(&self, name: &str) -> Result<Value, Failure>;

    /// Makes an app password; gives its id and its text, which is shown this once.
    fn add_app_password(&self, name: &str, label: &str, protocols: &[String]) -> Result<Value, Failure>;

    /// Revokes an app password.
    fn remove_app_password(&self, name: &str, id: &str) -> Result<(), Failure>;

    /// Takes the authenticator away.
    fn remove_totp(&self, name: &str) -> Result<(), Failure>;

    /// Asks for a name to be changed in all databases. A server does it by and by; without one it is done when this returns.
    fn change_name(&self, new: &NewRequest, terminal: &Terminal) -> Result<Reply, Failure>;

    /// Links an account at the provider, or, without `is_link`, takes the link away.
    fn link(&self, name: &str, subject: &str, is_link: bool) -> Result<(), Failure>;
}

/// The registry of the server that is meant: the one at the address that was named, else the one that runs on the data
/// folder, else the folder itself.
pub(crate) fn open(
    settings: &Settings,
    connection: &ConnectionArguments,
    terminal: &Terminal,
) -> Result<Box<dyn Registry>, Failure> {
    if connection.url.is_none() {
        match DirectRegistry::open(settings) {
            Ok(direct) => return Ok(Box::new(direct?)),
            Err(StorageError::InUse(_)) => {}
            Err(unusable @ StorageError::Unusable(_)) => return Err(unusable.into()),
        }
    }
    let client = connect(settings, connection, &environment(), terminal)?;
    Ok(Box::new(RemoteRegistry::new(client)?))
}

/// The variables of this process; those that are not text are nobody's here.
pub(crate) fn environment() -> Vec<(String, String)> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Everybody, by every name.
pub(crate) fn names(registry: &(impl Registry + ?Sized)) -> Result<NameIndex, Failure> {
    let index = NameIndex::new();
    for prefix in [PERSON_PREFIX, GROUP_PREFIX, MAIL_IN_PREFIX] {
        for entry in registry.entries(prefix)? {
            let id = entry.get("_id").and_then(Value::as_str).unwrap_or_default();
            index.apply(id, Some(&entry));
        }
    }
    Ok(index)
}

/// The document of this id.
///
/// # Errors
/// [`Failure::Work`]: there is none.
pub(crate) fn entry_of(registry: &dyn Registry, id: &str) -> Result<Entry, Failure> {
    let is_it = |entry: &Entry| entry.get("_id").and_then(Value::as_str) == Some(id);
    let found = registry.entries(id)?.into_iter().find(is_it);
    found.ok_or_else(|| Failure::Work(format!("{id} is not in the directory")))
}

/// The person who is called so.
///
/// # Errors
/// [`Failure::Work`]: nobody is, or several are, who are named.
pub(crate) fn person_called(index: &NameIndex, name: &str) -> Result<std::sync::Arc<Person>, Failure> {
    match index.find(name) {
        Found::Person(person) => Ok(person),
        Found::Several => Err(several(name, &index.all_called(name))),
        Found::Group(group) => {
            Err(Failure::Work(format!("{name:?} is a group ({}), not a person", group.id)))
        }
        Found::MailIn(mail_in) => {
            Err(Failure::Work(format!("{name:?} is a mail-in database ({}), not a person", mail_in.id)))
        }
        Found::Nobody => Err(Failure::Work(format!(
            "nobody in the directory is called {name:?}; add the person first: scrinium person add SHORTNAME --name \
             {name:?}"
        ))),
    }
}

fn several(name: &str, found: &[Found]) -> Failure {
    const SHOWN: usize = 10;
    let shown = found.iter().take(SHOWN).map(|found| match found {
        Found::Person(person) => format!("\n  {}  ({})", person.short_name, person.full_names.join(", ")),
        Found::Group(group) => format!("\n  {}  (a group)", group.list_name),
        Found::MailIn(mail_in) => format!("\n  {}  (a mail-in database)", mail_in.name),
        Found::Nobody | Found::Several => String::new(),
    });
    let shown: String = shown.collect();
    let count = found.len();
    Failure::Work(format!("{count} in the directory are called {name:?}; give the short name of one:{shown}"))
}

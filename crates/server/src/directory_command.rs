//! `scrinium person set`, `group set` and `mail-in`: fields of the directory's documents, without writing JSON by hand.

use std::sync::Arc;

use scrinium_directory::{Found, MAIL_IN_FORM, MAIL_IN_PREFIX, MailIn, NameLookup};
use serde_json::{Value, json};

use crate::cli::{Failure, MailInCommand, SetArguments, Terminal};
use crate::config::Settings;
use crate::registry::{self, Entry, Registry, entry_of};

/// What a field holds.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Text,
    /// Texts, separated by commas.
    List,
    /// `true` or `false`.
    Flag,
}

const PERSON_FIELDS: [(&str, Kind); 20] = [
    ("FullName", Kind::List),
    ("InternetAddress", Kind::Text),
    ("Addresses", Kind::List),
    ("Roles", Kind::List),
    ("Expires", Kind::Text),
    ("Protocols", Kind::List),
    ("SecondFactor", Kind::Text),
    ("ForwardTo", Kind::List),
    ("ForwardOnly", Kind::Flag),
    ("SendAs", Kind::List),
    ("SendOnBehalf", Kind::List),
    ("MailReaders", Kind::List),
    ("MailEditors", Kind::List),
    ("Language", Kind::Text),
    ("TimeZone", Kind::Text),
    ("OutOfOffice", Kind::Flag),
    ("OutOfOfficeFrom", Kind::Text),
    ("OutOfOfficeUntil", Kind::Text),
    ("OutOfOfficeSubject", Kind::Text),
    ("OutOfOfficeText", Kind::Text),
];

const GROUP_FIELDS: [(&str, Kind); 8] = [
    ("InternetAddress", Kind::Text),
    ("Addresses", Kind::List),
    ("Members", Kind::List),
    ("Owners", Kind::List),
    ("MayWrite", Kind::Text),
    ("Writers", Kind::List),
    ("SendAs", Kind::List),
    ("SendOnBehalf", Kind::List),
];

const MAIL_IN_FIELDS: [(&str, Kind); 3] =
    [("Database", Kind::Text), ("InternetAddress", Kind::Text), ("Addresses", Kind::List)];

/// Carries out `scrinium person set`.
pub(crate) fn set_person(
    settings: &Settings,
    asked: &SetArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let registry = registry::open(settings, &asked.connection, terminal)?;
    let person = registry::person_called(&registry::names(registry.as_ref())?, &asked.name)?;
    let mut entry = entry_of(registry.as_ref(), &person.id)?;
    set(&mut entry, &asked.values, &PERSON_FIELDS)?;
    registry.write(&entry)?;
    told(&person.short_name, &entry, &PERSON_FIELDS, terminal)
}

/// Carries out `scrinium group set`.
pub(crate) fn set_group(
    settings: &Settings,
    asked: &SetArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let registry = registry::open(settings, &asked.connection, terminal)?;
    let Found::Group(group) = registry::names(registry.as_ref())?.find(&asked.name) else {
        return Err(Failure::Work(format!(
            "no group of the directory is called {:?}; scrinium group list shows all",
            asked.name
        )));
    };
    let mut entry = entry_of(registry.as_ref(), &group.id)?;
    set(&mut entry, &asked.values, &GROUP_FIELDS)?;
    registry.write(&entry)?;
    told(&group.list_name, &entry, &GROUP_FIELDS, terminal)
}

/// Removes the document of this id.
pub(crate) fn remove(registry: &dyn Registry, id: &str) -> Result<(), Failure> {
    let mut entry = entry_of(registry, id)?;
    entry.insert("_deleted".to_owned(), json!(true));
    registry.write(&entry)
}

/// Carries out `scrinium mail-in`.
pub(crate) fn mail_in(
    settings: &Settings,
    command: &MailInCommand,
    terminal: &Terminal,
) -> Result<(), Failure> {
    match command {
        MailInCommand::Set(asked) => set_mail_in(settings, asked, terminal),
        MailInCommand::Remove { name, connection } => {
            let registry = registry::open(settings, connection, terminal)?;
            let mail_in = mail_in_called(registry.as_ref(), name)?;
            let mail_in = mail_in.ok_or_else(|| {
                Failure::Work(format!(
                    "no mail-in database is called {name:?}; scrinium mail-in list shows all"
                ))
            })?;
            remove(registry.as_ref(), &mail_in.id)?;
            let text = format!("{}: {} gets no more mail\n", mail_in.name, mail_in.database);
            terminal.data(&text, &json!({"mail_in": mail_in.name, "removed": true}))
        }
        MailInCommand::List { connection } => {
            list_mail_in(registry::open(settings, connection, terminal)?.as_ref(), terminal)
        }
    }
}

/// The mail-in database of a name or address, if there is one.
fn mail_in_called(registry: &dyn Registry, name: &str) -> Result<Option<Arc<MailIn>>, Failure> {
    match registry::names(registry)?.find(name) {
        Found::MailIn(mail_in) => Ok(Some(mail_in)),
        Found::Nobody => Ok(None),
        Found::Person(_) | Found::Group(_) | Found::Several => Err(Failure::Work(format!(
            "{name:?} is the name of a person or group, and of no mail-in database alone"
        ))),
    }
}

fn set_mail_in(settings: &Settings, asked: &SetArguments, terminal: &Terminal) -> Result<(), Failure> {
    let registry = registry::open(settings, &asked.connection, terminal)?;
    let mut entry = match mail_in_called(registry.as_ref(), &asked.name)? {
        Some(mail_in) => entry_of(registry.as_ref(), &mail_in.id)?,
        None => Entry::from_iter([
            (
                "_id".to_owned(),
                json!(format!("{MAIL_IN_PREFIX}{}", asked.name.trim().to_lowercase().replace(' ', "-"))),
            ),
            ("Form".to_owned(), json!(MAIL_IN_FORM)),
            ("Name".to_owned(), json!(asked.name.trim())),
        ]),
    };
    set(&mut entry, &asked.values, &MAIL_IN_FIELDS)?;
    let mail_in = MailIn::read(&entry).map_err(|error| Failure::Work(error.to_string()))?;
    registry.write(&entry)?;
    told(&mail_in.name, &entry, &MAIL_IN_FIELDS, terminal)
}

fn list_mail_in(registry: &dyn Registry, terminal: &Terminal) -> Result<(), Failure> {
    let entries = registry.entries(MAIL_IN_PREFIX)?;
    let (mut text, mut values) = (String::new(), Vec::new());
    for mail_in in entries.iter().filter_map(|entry| MailIn::read(entry).ok()) {
        let addresses: Vec<&str> =
            mail_in.internet_address.iter().chain(&mail_in.addresses).map(String::as_str).collect();
        text.push_str(&format!("{}  ({}) into {}\n", mail_in.name, addresses.join(", "), mail_in.database));
        values.push(json!({"mail_in": mail_in.name, "database": mail_in.database, "addresses": addresses}));
    }
    terminal.data(&text, &Value::from(values))
}

/// Sets `FIELD=VALUE` each; without a value the field goes.
pub(crate) fn set(entry: &mut Entry, values: &[String], known: &[(&str, Kind)]) -> Result<(), Failure> {
    for value in values {
        let (field, text) = value
            .split_once('=')
            .ok_or_else(|| Failure::Use(format!("{value:?} is not of the form FIELD=VALUE")))?;
        let (field, kind) =
            known.iter().find(|(name, _)| name.eq_ignore_ascii_case(field)).ok_or_else(|| {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                Failure::Use(format!("{field:?} is no field that can be set; there are {}", names.join(", ")))
            })?;
        let text = text.trim();
        let parts = || text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<&str>>();
        let value = match kind {
            // A list stays where it is empty: a person without roles, a group without members.
            Kind::List => json!(parts()),
            _ if text.is_empty() => Value::Null,
            Kind::Text => json!(text),
            Kind::Flag => json!(
                text.parse::<bool>()
                    .map_err(|_| { Failure::Use(format!("{field} is true or false, not {text:?}")) })?
            ),
        };
        match value {
            Value::Null => drop(entry.shift_remove(*field)),
            value => drop(entry.insert((*field).to_owned(), value)),
        }
    }
    Ok(())
}

/// Shows what stands in the fields now.
pub(crate) fn told(
    name: &str,
    entry: &Entry,
    known: &[(&str, Kind)],
    terminal: &Terminal,
) -> Result<(), Failure> {
    let (mut text, mut data) = (format!("{name}\n"), Entry::new());
    data.insert("name".to_owned(), json!(name));
    for (field, _) in known {
        let Some(value) = entry.get(*field) else { continue };
        let shown = match value {
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect::<Vec<&str>>().join(", "),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if !shown.is_empty() {
            text.push_str(&format!("  {field}: {shown}\n"));
        }
        data.insert((*field).to_owned(), value.clone());
    }
    terminal.data(&text, &Value::Object(data))
}

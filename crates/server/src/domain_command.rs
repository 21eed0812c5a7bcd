//! `scrinium domain`: the domains of the directory.

use std::collections::BTreeMap;

use scrinium_directory::{
    DOMAIN_FORM, DOMAIN_PREFIX, DirectoryDomain, Found, GROUP_PREFIX, Group, MAIL_IN_PREFIX, MailIn,
    NameIndex, NameLookup, PERSON_PREFIX, Person,
};
use serde_json::{Value, json};

use crate::cli::{DomainCommand, Failure, SetArguments, Terminal};
use crate::config::Settings;
use crate::directory_command::{Kind, remove, set, told};
use crate::domain_check;
use crate::registry::{self, Entry, Registry};

const FIELDS: [(&str, Kind); 3] =
    [("CatchAll", Kind::Text), ("Administrators", Kind::List), ("OutsidersSee", Kind::Text)];

/// Carries out `scrinium domain`.
pub(crate) fn domain(
    settings: &Settings,
    command: &DomainCommand,
    terminal: &Terminal,
) -> Result<(), Failure> {
    match command {
        DomainCommand::Add(asked) => write(settings, asked, true, terminal),
        DomainCommand::Set(asked) => write(settings, asked, false, terminal),
        DomainCommand::Check { name } => domain_check::check(settings, name, terminal),
        DomainCommand::Remove { name, connection } => {
            remove(registry::open(settings, connection, terminal)?.as_ref(), &id_of(name))?;
            terminal.data(
                &format!("the directory says nothing of {name} any more\n"),
                &json!({"domain": name, "removed": true}),
            )
        }
        DomainCommand::Show { name, connection } => {
            show(registry::open(settings, connection, terminal)?.as_ref(), name, terminal)
        }
        DomainCommand::List { connection } => {
            list(registry::open(settings, connection, terminal)?.as_ref(), terminal)
        }
    }
}

fn id_of(name: &str) -> String {
    format!("{DOMAIN_PREFIX}{}", name.to_lowercase())
}

/// The document of a domain, if the directory has it.
fn present(registry: &dyn Registry, name: &str) -> Result<Option<Entry>, Failure> {
    let id = id_of(name);
    let is_it = |entry: &Entry| entry.get("_id").and_then(Value::as_str) == Some(id.as_str());
    Ok(registry.entries(&id)?.into_iter().find(is_it))
}

/// Adds a domain, or sets fields of one; `is_new`: it must not be there.
fn write(
    settings: &Settings,
    asked: &SetArguments,
    is_new: bool,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let registry = registry::open(settings, &asked.connection, terminal)?;
    let present = present(registry.as_ref(), &asked.name)?;
    if is_new && present.is_some() {
        return Err(Failure::Work(format!(
            "{} is in the directory already; scrinium domain set changes its fields, scrinium domain show shows it",
            asked.name
        )));
    }
    let mut entry = present.unwrap_or_else(|| {
        Entry::from_iter([
            ("_id".to_owned(), json!(id_of(&asked.name))),
            ("Form".to_owned(), json!(DOMAIN_FORM)),
        ])
    });
    set(&mut entry, &asked.values, &FIELDS)?;
    registry.write(&entry)?;
    told(&asked.name.to_lowercase(), &entry, &FIELDS, terminal)
}

fn list(registry: &dyn Registry, terminal: &Terminal) -> Result<(), Failure> {
    let entries = registry.entries(DOMAIN_PREFIX)?;
    let domains = entries.iter().filter_map(|entry| {
        let id = entry.get("_id").and_then(Value::as_str)?;
        DirectoryDomain::read(id, entry).ok()
    });
    let (mut text, mut values) = (String::new(), Vec::new());
    for domain in domains {
        let catch_all = domain.catch_all.as_deref().unwrap_or("nobody");
        let administrators = match domain.administrators.as_slice() {
            [] => "of the server".to_owned(),
            names => names.join(", "),
        };
        text.push_str(&format!(
            "{}  (mail for unknown addresses: {catch_all}; administrators: {administrators})\n",
            domain.name
        ));
        values.push(json!({
            "domain": domain.name, "catch_all": domain.catch_all, "administrators": domain.administrators
        }));
    }
    terminal.data(&text, &Value::from(values))
}

/// What the directory has of a domain.
#[derive(Default)]
struct Numbers {
    people: usize,
    disabled: usize,
    groups: usize,
    mail_in: usize,
}

impl Numbers {
    fn count(registry: &dyn Registry, domain: &str) -> Result<Self, Failure> {
        let is_there = |address: Option<&str>| {
            let found = address.and_then(|address| address.rsplit_once('@'));
            found.is_some_and(|(_, found)| found.to_lowercase() == domain)
        };
        let mut numbers = Self::default();
        for person in registry.entries(PERSON_PREFIX)?.iter().filter_map(|entry| Person::read(entry).ok()) {
            if is_there(person.internet_address.as_deref()) {
                numbers.people += 1;
                numbers.disabled += usize::from(person.account.is_disabled);
            }
        }
        let groups = registry.entries(GROUP_PREFIX)?;
        let groups = groups.iter().filter_map(|entry| Group::read(entry).ok());
        numbers.groups = groups.filter(|group| is_there(group.internet_address.as_deref())).count();
        let mail_in = registry.entries(MAIL_IN_PREFIX)?;
        let mail_in = mail_in.iter().filter_map(|entry| MailIn::read(entry).ok());
        numbers.mail_in = mail_in.filter(|one| is_there(one.internet_address.as_deref())).count();
        Ok(numbers)
    }
}

fn show(registry: &dyn Registry, name: &str, terminal: &Terminal) -> Result<(), Failure> {
    let entry = present(registry, name)?.ok_or_else(|| {
        Failure::Work(format!("{name} is not in the directory; scrinium domain list shows all, add adds it"))
    })?;
    let domain =
        DirectoryDomain::read(&id_of(name), &entry).map_err(|error| Failure::Work(error.to_string()))?;
    let (names, numbers) = (registry::names(registry)?, Numbers::count(registry, &domain.name)?);
    let administrators: BTreeMap<&str, Option<String>> =
        domain.administrators.iter().map(|name| (name.as_str(), administrator(&names, name))).collect();
    let shown: Vec<String> = administrators
        .iter()
        .map(|(name, person)| match person {
            Some(short_name) if short_name == name => (*name).to_owned(),
            Some(short_name) => format!("{name} ({short_name})"),
            None => format!("{name} (nobody alone is called so)"),
        })
        .collect();
    let administrators_text = if shown.is_empty() { "of the server".to_owned() } else { shown.join(", ") };
    let text = format!(
        "{}\n  mail for unknown addresses: {}\n  administrators: {administrators_text}\n  others see: {}\n  people: {}, of whom {} are disabled\n  \
         groups: {}\n  mail-in databases: {}\n",
        domain.name,
        domain.catch_all.as_deref().unwrap_or("nobody"),
        domain.outsiders_see().text(),
        numbers.people,
        numbers.disabled,
        numbers.groups,
        numbers.mail_in,
    );
    let administrators: Vec<Value> =
        administrators.iter().map(|(name, person)| json!({"name": name, "person": person})).collect();
    terminal.data(
        &text,
        &json!({
            "domain": domain.name, "catch_all": domain.catch_all, "administrators": administrators,
            "people": numbers.people, "disabled": numbers.disabled, "groups": numbers.groups,
            "mail_in": numbers.mail_in, "outsiders_see": domain.outsiders_see().text(),
        }),
    )
}

/// The short name of the person who is called so.
fn administrator(names: &NameIndex, name: &str) -> Option<String> {
    match names.find(name) {
        Found::Person(person) => Some(person.short_name.clone()),
        Found::Group(_) | Found::MailIn(_) | Found::Nobody | Found::Several => None,
    }
}

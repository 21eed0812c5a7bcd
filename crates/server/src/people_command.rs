//! `scrinium person` and `scrinium group`: people and groups of the directory, without writing JSON by hand.

use std::io::{self, BufRead, BufReader, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use scrinium_administration::{NewRequest, RequestKind};
use scrinium_directory::{
    Found, GROUP_FORM, GROUP_PREFIX, Group, NameLookup, PERSON_FORM, PERSON_PREFIX, Person, check_password,
};
use serde_json::{Value, json};

use crate::cli::{
    AppPasswordCommand, ConnectionArguments, EntryRemoveArguments, Failure, GroupAddArguments, GroupCommand,
    PersonAddArguments, PersonCommand, PersonLinkArguments, PersonNameArguments, PersonPasswordArguments,
    Terminal, TotpCommand,
};
use crate::config::Settings;
use crate::credentials::ask_password;
use crate::registry::{self, Entry, Registry, entry_of};
use crate::{directory_command, people_source, person_export};

/// No password has this many bytes; what is longer is another file.
const LONGEST_LINE_BYTES: u64 = 4_096;

/// Carries out `scrinium person`.
pub(crate) fn person(
    settings: &Settings,
    command: &PersonCommand,
    terminal: &Terminal,
) -> Result<(), Failure> {
    match command {
        PersonCommand::Add(asked) => add_person(settings, asked, terminal),
        PersonCommand::Set(asked) => directory_command::set_person(settings, asked, terminal),
        PersonCommand::Password(asked) => set_password(settings, asked, terminal),
        PersonCommand::AppPassword { command } => app_password(settings, command, terminal),
        PersonCommand::Totp { command } => totp(settings, command, terminal),
        PersonCommand::Link(asked) => link(settings, asked, true, terminal),
        PersonCommand::Unlink(asked) => link(settings, asked, false, terminal),
        PersonCommand::Disable(asked) => {
            set_field(settings, asked, ("Disabled", json!(true)), "is disabled", terminal)
        }
        PersonCommand::Enable(asked) => {
            set_field(settings, asked, ("Disabled", json!(false)), "is enabled", terminal)
        }
        PersonCommand::Export(asked) => person_export::run(settings, asked, terminal),
        PersonCommand::Erase(asked) => remove(settings, RequestKind::ErasePerson, asked, terminal),
        PersonCommand::Import(asked) => people_source::import(settings, asked, terminal),
        PersonCommand::Rename(asked) => {
            let mut new = NewRequest::new(RequestKind::RenamePerson, &asked.name, "");
            new.new_name = Some(asked.new_name.clone());
            new.new_full_names.clone_from(&asked.full_names);
            new.new_address.clone_from(&asked.address);
            new.fields.clone_from(&asked.fields);
            change_name(settings, &asked.connection, &new, terminal)
        }
        PersonCommand::Remove(asked) => remove(settings, RequestKind::RemovePerson, asked, terminal),
        PersonCommand::List { connection } => {
            list_people(registry::open(settings, connection, terminal)?.as_ref(), terminal)
        }
    }
}

/// Carries out `scrinium group`.
pub(crate) fn group(settings: &Settings, command: &GroupCommand, terminal: &Terminal) -> Result<(), Failure> {
    match command {
        GroupCommand::Add(asked) => add_group(settings, asked, terminal),
        GroupCommand::Set(asked) => directory_command::set_group(settings, asked, terminal),
        GroupCommand::Rename(asked) => {
            let mut new = NewRequest::new(RequestKind::RenameGroup, &asked.name, "");
            new.new_name = Some(asked.new_name.clone());
            new.new_address.clone_from(&asked.address);
            new.fields.clone_from(&asked.fields);
            change_name(settings, &asked.connection, &new, terminal)
        }
        GroupCommand::Remove(asked) => remove(settings, RequestKind::RemoveGroup, asked, terminal),
        GroupCommand::List { connection } => {
            list_groups(registry::open(settings, connection, terminal)?.as_ref(), terminal)
        }
    }
}

/// Asks for a name to be taken out of all databases.
fn remove(
    settings: &Settings,
    kind: RequestKind,
    asked: &EntryRemoveArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let mut new = NewRequest::new(kind, &asked.name, "");
    new.fields.clone_from(&asked.fields);
    change_name(settings, &asked.connection, &new, terminal)
}

/// Asks for a name to be changed in all databases.
fn change_name(
    settings: &Settings,
    connection: &ConnectionArguments,
    new: &NewRequest,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let texts = std::iter::once(&new.name).chain(&new.new_name).chain(&new.new_full_names);
    let is_unclear = |text: &String| text.contains('"') || text.chars().any(char::is_control);
    if let Some(text) = texts.chain(&new.new_address).chain(&new.fields).find(|text| is_unclear(text)) {
        return Err(Failure::Use(format!(
            "{text:?} has quotation marks or control characters, which no name has"
        )));
    }
    let reply = registry::open(settings, connection, terminal)?.change_name(new, terminal)?;
    terminal.data(&reply.text, &reply.data)
}

fn add_person(settings: &Settings, asked: &PersonAddArguments, terminal: &Terminal) -> Result<(), Failure> {
    let name = &asked.short_name;
    let full_names = if asked.full_names.is_empty() { vec![name.clone()] } else { asked.full_names.clone() };
    let mut entry = Entry::new();
    for (field, value) in [
        ("_id", json!(format!("{PERSON_PREFIX}{name}"))),
        ("Form", json!(PERSON_FORM)),
        ("ShortName", json!(name)),
        ("FullName", json!(full_names)),
        ("Roles", json!(asked.roles)),
    ] {
        entry.insert(field.to_owned(), value);
    }
    if let Some(address) = &asked.address {
        entry.insert("InternetAddress".to_owned(), json!(address));
    }
    // What is wrong is said before a password is asked for.
    let person = Person::read(&entry).map_err(|error| Failure::Use(error.to_string()))?;
    let registry = registry::open(settings, &asked.connection, terminal)?;
    if registry::names(registry.as_ref())?.person(&person.id).is_some() {
        return Err(Failure::Work(format!(
            "{name} is in the directory already; for another password: scrinium person password {name}"
        )));
    }
    let password = if asked.no_password {
        None
    } else {
        read_password(settings, name, asked.password_file.as_deref(), terminal)?
    };
    let can_log_in = password.is_some();
    if let Some(password) = password {
        entry.insert("password".to_owned(), Value::from(password));
    }
    registry.write(&entry)?;
    let note = if can_log_in { "" } else { "; there is no password: scrinium person password sets one" };
    let text = format!("{name} is in the directory, with the mail database {}{note}\n", person.mail_file);
    terminal.data(
        &text,
        &json!({"person": name, "id": person.id, "mail_file": person.mail_file, "password": can_log_in}),
    )
}

fn set_password(
    settings: &Settings,
    asked: &PersonPasswordArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let registry = registry::open(settings, &asked.connection, terminal)?;
    let person = registry::person_called(&registry::names(registry.as_ref())?, &asked.name)?;
    let password = read_password(settings, &person.short_name, asked.password_file.as_deref(), terminal)?;
    let password = password.ok_or_else(|| {
        Failure::Use("no password: give it on a terminal, on standard input or by --password-file".to_owned())
    })?;
    let mut entry = entry_of(registry.as_ref(), &person.id)?;
    entry.insert("password".to_owned(), Value::from(password));
    registry.write(&entry)?;
    let name = &person.short_name;
    terminal.data(&format!("{name} has another password\n"), &json!({"person": name, "password": true}))
}

/// Sets one field of a person's document.
fn set_field(
    settings: &Settings,
    asked: &PersonNameArguments,
    (field, value): (&str, Value),
    done: &str,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let registry = registry::open(settings, &asked.connection, terminal)?;
    let person = registry::person_called(&registry::names(registry.as_ref())?, &asked.name)?;
    let mut entry = entry_of(registry.as_ref(), &person.id)?;
    entry.insert(field.to_owned(), value.clone());
    registry.write(&entry)?;
    let name = &person.short_name;
    terminal.data(&format!("{name} {done}\n"), &json!({"person": name, field: value}))
}

fn app_password(
    settings: &Settings,
    command: &AppPasswordCommand,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let (name, connection) = match command {
        AppPasswordCommand::Add { name, connection, .. }
        | AppPasswordCommand::Remove { name, connection, .. } => (name, connection),
        AppPasswordCommand::List(asked) => (&asked.name, &asked.connection),
    };
    let registry = registry::open(settings, connection, terminal)?;
    let person = registry::person_called(&registry::names(registry.as_ref())?, name)?;
    let name = &person.short_name;
    match command {
        AppPasswordCommand::Add { label, protocols, .. } => {
            let mail = ["mail".to_owned()];
            let protocols = if protocols.is_empty() { &mail[..] } else { protocols };
            let made = registry.add_app_password(name, label, protocols)?;
            let text = made.get("password").and_then(Value::as_str).unwrap_or_default();
            terminal.say("this app password is shown only now; it can be revoked, and not shown again");
            terminal.data(&format!("{text}\n"), &made)
        }
        AppPasswordCommand::Remove { id, .. } => {
            registry.remove_app_password(name, id)?;
            terminal.data(
                &format!("the app password {id} of {name} is revoked\n"),
                &json!({"person": name, "id": id, "revoked": true}),
            )
        }
        AppPasswordCommand::List(_) => {
            let shown = registry.credentials(name)?;
            list_app_passwords(&shown, terminal)
        }
    }
}

fn list_app_passwords(shown: &Value, terminal: &Terminal) -> Result<(), Failure> {
    let all = shown.get("app_passwords").and_then(Value::as_array).cloned().unwrap_or_default();
    let time = |app: &Value, member: &str| {
        let time =
            app.get(member).and_then(Value::as_i64).and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        time.map_or_else(|| "never".to_owned(), |time| format!("{time:.0}"))
    };
    let row = |app: &Value| {
        let text = |member: &str| app.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
        let protocols = app.get("protocols").and_then(Value::as_array).cloned().unwrap_or_default();
        let protocols: Vec<&str> = protocols.iter().filter_map(Value::as_str).collect();
        let is_valid = app.get("valid").and_then(Value::as_bool) == Some(true);
        let state = if is_valid { "valid" } else { "revoked or expired" };
        vec![text("id"), text("name"), protocols.join(", "), time(app, "used_ms"), state.to_owned()]
    };
    let titles = ["Id", "Name", "Protocols", "Last use", "State"];
    let text = table(&titles, &all.iter().map(row).collect::<Vec<_>>());
    terminal.data(&text, &Value::from(all))
}

fn totp(settings: &Settings, command: &TotpCommand, terminal: &Terminal) -> Result<(), Failure> {
    let asked = match command {
        TotpCommand::Show(asked) | TotpCommand::Remove(asked) | TotpCommand::Require(asked) => asked,
    };
    if matches!(command, TotpCommand::Require(_)) {
        let required = ("SecondFactor", json!("required"));
        return set_field(settings, asked, required, "needs a second step to sign in", terminal);
    }
    let registry = registry::open(settings, &asked.connection, terminal)?;
    let person = registry::person_called(&registry::names(registry.as_ref())?, &asked.name)?;
    let name = &person.short_name;
    if matches!(command, TotpCommand::Remove(_)) {
        registry.remove_totp(name)?;
        let text = format!("{name} has no authenticator any more\n");
        return terminal.data(&text, &json!({"person": name, "totp": false}));
    }
    let shown = registry.credentials(name)?;
    let is_on = shown.get("totp").and_then(Value::as_bool) == Some(true);
    let left = shown.get("recovery_codes_left").and_then(Value::as_u64).unwrap_or_default();
    let text = if is_on {
        format!("{name} signs in with an authenticator; {left} recovery codes are left\n")
    } else {
        format!("{name} has no authenticator\n")
    };
    terminal.data(&text, &json!({"person": name, "totp": is_on, "recovery_codes_left": left}))
}

/// Links an account at the provider with a person, or takes the link away.
fn link(
    settings: &Settings,
    asked: &PersonLinkArguments,
    is_link: bool,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let registry = registry::open(settings, &asked.connection, terminal)?;
    let person = registry::person_called(&registry::names(registry.as_ref())?, &asked.name)?;
    let (name, subject) = (&person.short_name, &asked.subject);
    registry.link(name, subject, is_link)?;
    let done = if is_link { "signs in with" } else { "does not sign in any more with" };
    let text = format!("{name} {done} the provider's account {subject}\n");
    terminal.data(&text, &json!({"person": name, "subject": subject, "linked": is_link}))
}

/// A password from where it was to be taken from: twice from a terminal, else the first line. `None` where that is empty.
fn read_password(
    settings: &Settings,
    name: &str,
    file: Option<&Path>,
    terminal: &Terminal,
) -> Result<Option<String>, Failure> {
    let password = match file {
        Some(path) if path != Path::new("-") => {
            let cannot =
                |error| Failure::Work(format!("cannot read the password in {}: {error}", path.display()));
            let file = std::fs::File::open(path).map_err(cannot)?;
            let metadata = file.metadata().map_err(cannot)?;
            if metadata.is_file() && metadata.mode() & 0o077 != 0 {
                terminal.say(&format!("warning: others can read {0}; run: chmod 600 {0}", path.display()));
            }
            first_line(BufReader::new(file)).map_err(cannot)?
        }
        None if io::stdin().is_terminal() => ask_twice(name)?,
        _ => first_line(io::stdin().lock()).map_err(Failure::work)?,
    };
    if password.is_empty() {
        return Ok(None);
    }
    check_password(&password, settings.login.password_bytes)
        .map_err(|error| Failure::Use(error.to_string()))?;
    Ok(Some(password))
}

fn ask_twice(name: &str) -> Result<String, Failure> {
    let ask = |prompt: &str| ask_password(prompt).map_err(Failure::work);
    let password = ask(&format!("Password for {name}: "))?;
    if password == ask("The same again: ")? {
        return Ok(password);
    }
    Err(Failure::Use("the passwords are not the same; nothing was changed".to_owned()))
}

fn first_line(input: impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    input.take(LONGEST_LINE_BYTES).read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn add_group(settings: &Settings, asked: &GroupAddArguments, terminal: &Terminal) -> Result<(), Failure> {
    let registry = registry::open(settings, &asked.connection, terminal)?;
    let index = registry::names(registry.as_ref())?;
    let mut entry = match index.find(&asked.name) {
        Found::Group(group) => entry_of(registry.as_ref(), &group.id)?,
        Found::Person(person) => {
            return Err(Failure::Work(format!("{:?} is a person ({}), not a group", asked.name, person.id)));
        }
        Found::MailIn(_) => {
            return Err(Failure::Work(format!("{:?} is a mail-in database, not a group", asked.name)));
        }
        Found::Several | Found::Nobody => Entry::from_iter([
            (
                "_id".to_owned(),
                json!(format!("{GROUP_PREFIX}{}", asked.name.trim().to_lowercase().replace(' ', "-"))),
            ),
            ("Form".to_owned(), json!(GROUP_FORM)),
            ("ListName".to_owned(), json!(asked.name)),
        ]),
    };
    let mut members = Group::read(&entry).map_err(|error| Failure::Use(error.to_string()))?.members;
    for member in &asked.members {
        if !members.contains(member) {
            members.push(member.clone());
        }
    }
    entry.insert("Members".to_owned(), json!(members));
    if let Some(address) = &asked.address {
        entry.insert("InternetAddress".to_owned(), json!(address));
    }
    let group = Group::read(&entry).map_err(|error| Failure::Use(error.to_string()))?;
    registry.write(&entry)?;
    for member in asked.members.iter().filter(|member| !member.contains('@')) {
        if matches!(index.find(member), Found::Nobody) {
            terminal.say(&format!("warning: nobody in the directory is called {member:?} yet"));
        }
    }
    let text = format!("{} has {} members\n", group.list_name, group.members.len());
    terminal.data(&text, &json!({"group": group.list_name, "id": group.id, "members": group.members}))
}

fn list_people(registry: &dyn Registry, terminal: &Terminal) -> Result<(), Failure> {
    let people: Vec<Person> =
        registry.entries(PERSON_PREFIX)?.iter().filter_map(|entry| Person::read(entry).ok()).collect();
    let row = |person: &Person| {
        vec![
            person.short_name.clone(),
            person.full_names.join(", "),
            person.internet_address.clone().unwrap_or_default(),
            person.mail_file.clone(),
            person.roles.join(", "),
        ]
    };
    let value = |person: &Person| {
        json!({
            "id": person.id, "short_name": person.short_name, "full_names": person.full_names,
            "address": person.internet_address, "mail_file": person.mail_file, "roles": person.roles,
        })
    };
    let titles = ["Short name", "Full name", "Address", "Mail database", "Roles"];
    let values: Vec<Value> = people.iter().map(value).collect();
    terminal.data(&table(&titles, &people.iter().map(row).collect::<Vec<_>>()), &Value::from(values))
}

fn list_groups(registry: &dyn Registry, terminal: &Terminal) -> Result<(), Failure> {
    let groups: Vec<Group> =
        registry.entries(GROUP_PREFIX)?.iter().filter_map(|entry| Group::read(entry).ok()).collect();
    let row = |group: &Group| {
        vec![
            group.list_name.clone(),
            group.internet_address.clone().unwrap_or_default(),
            group.members.join(", "),
        ]
    };
    let value = |group: &Group| json!({"id": group.id, "name": group.list_name, "address": group.internet_address, "members": group.members});
    let values: Vec<Value> = groups.iter().map(value).collect();
    let titles = ["Group", "Address", "Members"];
    terminal.data(&table(&titles, &groups.iter().map(row).collect::<Vec<_>>()), &Value::from(values))
}

/// Columns as wide as what is in them.
fn table(titles: &[&str], rows: &[Vec<String>]) -> String {
    let mut all: Vec<Vec<String>> = vec![titles.iter().map(|title| (*title).to_owned()).collect()];
    all.extend(rows.iter().cloned());
    let width = |column: usize| {
        all.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    all.iter().map(line).collect()
}

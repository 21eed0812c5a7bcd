//! `show person`: what the directory knows of somebody, whom a name or address means.

use std::sync::Arc;

use jiff::Timestamp;
use scrinium_administration::Requests;
use scrinium_credentials::{Protocol, ProtocolSet};
use scrinium_directory::{Found, NameLookup, Person};
use serde_json::{Value, json};

use super::{ConsoleError, Reply};

pub(super) const ARGUMENTS: &str = "NAME or ADDRESS";
pub(super) const HELP: &str =
    "Names, addresses, mail database, groups, forwarding, delegates, and by what somebody comes in";

/// What is known of the person who is called so.
pub(super) fn show(requests: Option<&Requests>, name: &str) -> Result<Reply, ConsoleError> {
    let nothing = |reason: String| ConsoleError::NotFound(reason);
    let requests = requests.ok_or_else(|| nothing("the server is about to stop".to_owned()))?;
    let (directory, name) = (requests.directory(), name.trim_matches('"'));
    let person = match directory.find(name) {
        Found::Person(person) => person,
        Found::Several => return Err(nothing(format!("several in the directory are called {name:?}"))),
        Found::Group(_) | Found::MailIn(_) | Found::Nobody => {
            let hint = "scrinium person list shows all, and group list groups";
            return Err(nothing(format!("no person of the directory is called {name:?}; {hint}")));
        }
    };
    let groups = directory.groups_of(&person);
    let data = data(&person, &groups);
    Ok(Reply { text: text(&data), data })
}

fn data(person: &Arc<Person>, groups: &[String]) -> Value {
    let (account, credentials, delegates) = (&person.account, &person.credentials, &person.delegates);
    let is_every_protocol = account.protocols == ProtocolSet::all();
    let protocols: Vec<&str> = account.protocols.iter().map(Protocol::word).collect();
    let app_passwords: Vec<Value> = credentials
        .app_passwords()
        .filter(|one| one.revoked_ms.is_none())
        .map(|one| json!({"id": one.id, "name": one.name, "used": one.used_ms.and_then(time)}))
        .collect();
    json!({
        "person": person.short_name,
        "names": person.full_names,
        "other_names": person.other_names,
        "address": person.internet_address,
        "addresses": person.addresses,
        "mail_database": person.mail_file,
        "groups": groups,
        "roles": person.roles,
        "forward_to": person.forwarding.to,
        "forward_only": person.forwarding.keeps_none,
        "is_out_of_office": person.absence.is_some(),
        "send_as": delegates.send_as,
        "send_on_behalf": delegates.send_on_behalf,
        "mail_readers": delegates.mail_readers,
        "mail_editors": delegates.mail_editors,
        "is_disabled": account.is_disabled,
        "expires": account.expires_ms.and_then(time),
        "protocols": if is_every_protocol { Value::from("all") } else { Value::from(protocols) },
        "has_password": credentials.password().is_some(),
        "has_second_factor": credentials.has_second_factor(),
        "passkeys": credentials.passkeys().len(),
        "providers": credentials.links().len(),
        "app_passwords": app_passwords,
        "source": person.source_entry,
    })
}

fn time(milliseconds: u64) -> Option<String> {
    let time = i64::try_from(milliseconds).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok())?;
    Some(format!("{time:.0}"))
}

/// Lines for people, of what there is.
fn text(data: &Value) -> String {
    let mut text = String::new();
    for (member, label) in [
        ("person", "Short name"),
        ("names", "Names"),
        ("other_names", "Further names"),
        ("address", "Address"),
        ("addresses", "Further addresses"),
        ("mail_database", "Mail database"),
        ("groups", "Groups"),
        ("roles", "Roles"),
        ("forward_to", "Mail goes on to"),
        ("forward_only", "No copy stays"),
        ("is_out_of_office", "Out of office"),
        ("send_as", "Send as this person"),
        ("send_on_behalf", "Send on behalf"),
        ("mail_readers", "Read the mail"),
        ("mail_editors", "Edit the mail"),
        ("is_disabled", "Disabled"),
        ("expires", "Account ends"),
        ("protocols", "Protocols"),
        ("has_password", "Password"),
        ("has_second_factor", "Second factor"),
        ("passkeys", "Passkeys"),
        ("providers", "Sign-in elsewhere"),
        ("app_passwords", "App passwords"),
        ("source", "Kept in step with"),
    ] {
        let value = data.get(member).map(in_words).unwrap_or_default();
        if !value.is_empty() {
            text.push_str(&format!("{label:<21}{value}\n"));
        }
    }
    text
}

/// A value in words; nothing for what is not there.
fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Number(number) if number.as_u64() != Some(0) => number.to_string(),
        Value::Array(all) => {
            let words: Vec<String> = all.iter().map(in_words).filter(|words| !words.is_empty()).collect();
            words.join(", ")
        }
        Value::Object(one) => {
            let part = |member: &str| one.get(member).and_then(Value::as_str);
            let used =
                part("used").map_or_else(|| "never used".to_owned(), |time| format!("last used {time}"));
            format!("{} ({used})", part("name").unwrap_or_default())
        }
        Value::Null | Value::Bool(false) | Value::Number(_) => String::new(),
    }
}

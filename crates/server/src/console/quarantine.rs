//! Mail that is kept back on the console: what it is and why, and what is to become of it.

use scrinium_catalog::Databases;
use scrinium_database::DatabaseError;
use scrinium_mail::{HeldMail, Quarantine};
use serde_json::{Value, json};

use super::table::{Align, grouped, table};
use super::{ConsoleError, Reply};

pub(super) const SHOW_HELP: &str = "Mail that rules or filters keep back, with why";
pub(super) const TELL_ARGUMENTS: &str = "release|delete ID";
pub(super) const TELL_HELP: &str =
    "Lets a message go that is kept back, or deletes it; ID as in show quarantine";

/// Messages of each mail.box that one answer names.
const SHOWN: usize = 200;

/// What is to become of a message that is kept back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineOrder {
    /// The message.
    pub id: String,
    /// It goes on its way; otherwise it is deleted.
    pub is_released: bool,
}

/// Reads `tell quarantine …`.
pub(super) fn parse_order(rest: &str) -> Option<QuarantineOrder> {
    let (verb, id) = rest.split_once(char::is_whitespace)?;
    let id = id.trim();
    let is_one = !id.is_empty() && !id.contains(char::is_whitespace);
    let is_released = match verb.to_ascii_lowercase().as_str() {
        "release" => true,
        "delete" => false,
        _ => return None,
    };
    is_one.then(|| QuarantineOrder { id: id.to_owned(), is_released })
}

/// `show quarantine`
pub(super) fn show(databases: &Databases) -> Result<Reply, ConsoleError> {
    let (held, is_more) = Quarantine::new(databases).list(SHOWN).map_err(|error| failed(&error))?;
    let rows: Vec<Vec<String>> = held.iter().map(row).collect();
    let titles = [
        ("Since", Align::Left),
        ("Id", Align::Left),
        ("Bytes", Align::Right),
        ("From", Align::Left),
        ("To", Align::Left),
        ("Subject", Align::Left),
        ("Why", Align::Left),
    ];
    let mut text = if rows.is_empty() { "Nothing is kept back.\n".to_owned() } else { table(&titles, &rows) };
    if is_more {
        text.push_str("and more\n");
    }
    let data: Vec<Value> = held.iter().map(data).collect();
    Ok(Reply { text, data: json!({"messages": data, "more": is_more}) })
}

/// `tell quarantine`
pub(super) fn tell(databases: &Databases, order: &QuarantineOrder) -> Result<Reply, ConsoleError> {
    let quarantine = Quarantine::new(databases);
    let done = match order.is_released {
        true => quarantine.release(&order.id),
        false => quarantine.delete(&order.id),
    };
    if !done.map_err(|error| failed(&error))? {
        let id = &order.id;
        return Err(ConsoleError::NotFound(format!("no message {id} is kept back; see show quarantine")));
    }
    let word = if order.is_released { "released" } else { "deleted" };
    let text = format!("The message {} is {word}.\n", order.id);
    Ok(Reply { text, data: json!({"id": order.id, "done": word}) })
}

fn failed(error: &DatabaseError) -> ConsoleError {
    ConsoleError::NotFound(format!("mail that is kept back cannot be read or changed: {error}"))
}

fn to(held: &HeldMail) -> String {
    match held.recipients.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first, others @ ..] => format!("{first} and {} more", others.len()),
    }
}

fn since(held: &HeldMail) -> String {
    let time =
        i64::try_from(held.since_ms).ok().and_then(|time| jiff::Timestamp::from_millisecond(time).ok());
    time.map_or_else(String::new, |time| time.strftime("%Y-%m-%d %H:%M").to_string())
}

fn row(held: &HeldMail) -> Vec<String> {
    vec![
        since(held),
        held.id.clone(),
        grouped(held.bytes),
        held.from.clone(),
        to(held),
        held.subject.clone(),
        held.reason.clone(),
    ]
}

fn data(held: &HeldMail) -> Value {
    json!({
        "id": held.id, "since": since(held), "bytes": held.bytes, "from": held.from,
        "to": held.recipients, "subject": held.subject, "why": held.reason,
    })
}

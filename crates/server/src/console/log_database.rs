//! `show log`: the newest documents of the log database.

use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseError, RowQuery};
use serde_json::{Map, Value, json};

use super::table::{Align, grouped, table};
use super::{ConsoleError, Reply};
use crate::config::parse_duration;
use crate::log_database::{Class, time_text};

pub(super) const ARGUMENTS: &str =
    "[events|mail|outgoing|tasks|slow|usage|logins|audit] [SINCE] [-l LEVEL] [-n COUNT]";

pub(super) const HELP: &str = "What happened lately, from the log database: of the last hour (1h) or since a time \
     (2026-11-22T10:00), events from a level up (-l warn)";

/// Shown where no number is given.
const SHOWN: usize = 40;
const SHOWN_MAX: usize = 1000;

/// Documents looked at for one answer.
const EXAMINED_MAX: usize = 100_000;
const READ_AT_ONCE: usize = 200;

const LEVELS: [&str; 3] = ["error", "warn", "info"];

/// What is asked of the log database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogQuery {
    class: Class,
    since: Option<Since>,
    /// The place in [`LEVELS`] of the lowest level that is shown.
    level: usize,
    count: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Since {
    Ago(std::time::Duration),
    /// The beginning of a time as documents write it, UTC.
    Time(String),
}

impl LogQuery {
    /// Reads what follows the words.
    pub(super) fn parse(rest: &str) -> Option<Self> {
        let mut query = Self { class: Class::Event, since: None, level: LEVELS.len() - 1, count: SHOWN };
        let mut words = rest.split_whitespace().peekable();
        if let Some(class) = words.peek().and_then(|word| class_of(word)) {
            query.class = class;
            words.next();
        }
        while let Some(word) = words.next() {
            match word {
                "-l" | "-L" => {
                    let level = words.next()?.to_ascii_lowercase();
                    query.level = LEVELS.iter().position(|known| known.starts_with(&level))?;
                }
                "-n" | "-N" => {
                    query.count =
                        words.next()?.parse().ok().filter(|count| (1..=SHOWN_MAX).contains(count))?;
                }
                since if query.since.is_none() => query.since = Some(parse_since(since)?),
                _ => return None,
            }
        }
        Some(query)
    }
}

fn class_of(word: &str) -> Option<Class> {
    let classes = [
        ("events", Class::Event),
        ("mail", Class::Mail),
        ("outgoing", Class::Outgoing),
        ("tasks", Class::Task),
        ("slow", Class::Slow),
        ("usage", Class::Usage),
        ("logins", Class::Login),
        ("audit", Class::Audit),
    ];
    let word = word.to_ascii_lowercase();
    classes.into_iter().find(|(name, _)| name.starts_with(&word)).map(|(_, class)| class)
}

fn parse_since(word: &str) -> Option<Since> {
    if let Ok(ago) = parse_duration(word) {
        return Some(Since::Ago(ago));
    }
    let is_time = word.starts_with("20")
        && word.len() >= 10
        && word.chars().all(|letter| letter.is_ascii_digit() || "-:.TZ".contains(letter));
    is_time.then(|| Since::Time(word.trim_end_matches('Z').to_owned()))
}

/// The newest documents, the oldest of them first.
pub(super) fn show_log(databases: &Databases, name: &str, query: &LogQuery) -> Result<Reply, ConsoleError> {
    if name.is_empty() {
        return Err(ConsoleError::NotFound(
            "no log database is kept: log_database.name is empty; set config log_database.name=log keeps one from the \
             next start on"
                .to_owned(),
        ));
    }
    let failed = |error: DatabaseError| ConsoleError::NotFound(format!("{name}: {error}"));
    let (documents, more) = read(databases, name, query).map_err(failed)?;
    let columns = columns(query.class);
    let rows: Vec<Vec<String>> = documents
        .iter()
        .map(|document| columns.iter().map(|column| cell(document, column)).collect())
        .collect();
    let titles: Vec<(&str, Align)> = columns.iter().map(|column| (column.title, column.align)).collect();
    let mut text = if rows.is_empty() {
        "Nothing of this kind is in the log database. It is written once a second.\n".to_owned()
    } else {
        table(&titles, &rows)
    };
    if more {
        text.push_str(&format!("There is more: -n shows up to {SHOWN_MAX}, and the views of {name} all.\n"));
    }
    Ok(Reply { text, data: json!({"documents": documents, "more": more}) })
}

/// The documents, and whether there are more.
fn read(
    databases: &Databases,
    name: &str,
    query: &LogQuery,
) -> Result<(Vec<Map<String, Value>>, bool), DatabaseError> {
    let prefix = query.class.prefix();
    let since = match &query.since {
        None => String::new(),
        Some(Since::Time(time)) => time.clone(),
        Some(Since::Ago(ago)) => {
            databases.clock().timestamp().checked_sub(*ago).map(time_text).unwrap_or_default()
        }
    };
    let rows = RowQuery {
        start_key: Some(Value::from(format!("{prefix}\u{10ffff}"))),
        end_key: Some(Value::from(format!("{prefix}{since}"))),
        descending: true,
        include_documents: true,
        ..RowQuery::default()
    };
    let mut rows =
        databases.get(name)?.all_documents(rows, &Access::of_the_server("showing the log on the console"))?;
    let (mut documents, mut examined) = (Vec::new(), 0);
    loop {
        let some = rows.next_rows(READ_AT_ONCE.min(query.count + 1))?;
        if some.is_empty() || examined >= EXAMINED_MAX {
            documents.reverse();
            return Ok((documents, !some.is_empty()));
        }
        examined += some.len();
        for document in some.into_iter().filter_map(|row| row.document) {
            let Ok(document) = serde_json::from_str::<Map<String, Value>>(&document) else { continue };
            if !is_shown(&document, query) {
                continue;
            }
            if documents.len() == query.count {
                documents.reverse();
                return Ok((documents, true));
            }
            documents.push(document);
        }
    }
}

fn is_shown(document: &Map<String, Value>, query: &LogQuery) -> bool {
    let level = document.get("Level").and_then(Value::as_str);
    query.class != Class::Event || LEVELS.iter().take(query.level + 1).any(|shown| level == Some(*shown))
}

struct Column {
    title: &'static str,
    field: &'static str,
    align: Align,
}

fn columns(class: Class) -> Vec<Column> {
    let left = |title, field| Column { title, field, align: Align::Left };
    let right = |title, field| Column { title, field, align: Align::Right };
    let mut columns = vec![left("Time", "Time")];
    columns.extend(match class {
        Class::Mail => vec![
            left("State", "State"),
            left("From", "From"),
            right("Delivered", "Delivered"),
            right("Failed", "Failed"),
            right("ms", "Milliseconds"),
            left("Reason", "Reason"),
        ],
        Class::Outgoing => vec![
            left("Change", "Change"),
            left("From", "From"),
            left("Destination", "Destination"),
            left("What", "Words"),
        ],
        Class::Task => vec![
            left("Task", "Task"),
            left("Database", "Database"),
            left("Outcome", "Outcome"),
            right("Done", "Done"),
            right("ms", "Milliseconds"),
            left("Reason", "Reason"),
        ],
        Class::Slow => vec![
            left("Operation", "Operation"),
            left("Database", "Database"),
            left("Person", "Person"),
            right("ms", "Milliseconds"),
            right("Waited", "WaitMilliseconds"),
        ],
        Class::Usage => vec![
            left("Database", "Database"),
            left("Person", "Person"),
            right("Reads", "Reads"),
            right("Writes", "Writes"),
            right("Received bytes", "ReceivedBytes"),
            right("Sent bytes", "SentBytes"),
        ],
        Class::Login => vec![
            left("Outcome", "Outcome"),
            left("Person", "Person"),
            left("Address", "Address"),
            right("Count", "Count"),
        ],
        Class::Audit => vec![
            left("Action", "Action"),
            left("Target", "Target"),
            left("Person", "Person"),
            left("Address", "Address"),
            left("Details", "Details"),
        ],
        Class::Event | Class::Statistics | Class::Hourly => {
            vec![left("Level", "Level"), left("Source", "Source"), left("Text", "Text")]
        }
    });
    columns
}

fn cell(document: &Map<String, Value>, column: &Column) -> String {
    let value = document.get(column.field).unwrap_or(&Value::Null);
    let mut text = match (column.field, value) {
        ("Time", Value::String(time)) => time.get(..19).unwrap_or(time).replace('T', " "),
        (_, Value::String(text)) => text.clone(),
        (_, Value::Number(number)) => number.as_u64().map_or_else(|| number.to_string(), grouped),
        (_, Value::Null) => String::new(),
        (_, other) => other.to_string(),
    };
    let fields = document.get("Fields").and_then(Value::as_object).filter(|_| column.field == "Text");
    for (name, value) in fields.into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.push_str(&format!(" {name}={value}"));
    }
    text
}

//! The queue of outgoing mail on the console: what waits and why, and what is to become of it.

use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseError, RowQuery};
use scrinium_mail_queue::show::{DestinationSummary, QueueCommand, Selection};
use scrinium_mail_queue::{Queue, QueueEntry};
use scrinium_outbound::{Ordered, OutboundControls, QueueOrder};
use serde_json::{Value, json};

use super::table::{Align, grouped, table};
use super::{ConsoleError, Reply};
use crate::log_database::{MESSAGES_DESIGN, MESSAGES_VIEW};

pub(super) const SHOW_ARGUMENTS: &str = "[WHAT]";

pub(super) const SHOW_HELP: &str = "Outgoing mail that waits, by destination, with why and the next attempt; of WHAT (a destination, a \
     Message-ID, from=ADDRESS, to=ADDRESS) each message";

pub(super) const TELL_ARGUMENTS: &str = "hold|release|retry|delete|discard WHAT [REASON]";

pub(super) const TELL_HELP: &str = "Keeps outgoing mail back, releases it, tries it at once, or deletes it with a notice to its senders (delete) \
     or without (discard); WHAT as in show queue, or *";

pub(super) const TRACE_HELP: &str = "Where a message is: what became of it, from the log database";

/// Entries that one answer names.
const SHOWN: usize = 200;

/// Lines of one trace.
const TRACED: usize = 10_000;

const QUEUES: [Queue; 5] = [Queue::Incoming, Queue::Active, Queue::Deferred, Queue::Hold, Queue::Dead];

/// What is meant by a word.
pub(super) fn selection(word: &str) -> Selection {
    let is_id = |text: &str| text.len() >= 32 && text.bytes().take(32).all(|byte| byte.is_ascii_hexdigit());
    if word == "*" {
        Selection::All
    } else if let Some(address) = word.strip_prefix("from=") {
        Selection::Sender(address.to_owned())
    } else if let Some(address) = word.strip_prefix("to=") {
        Selection::Recipient(address.to_owned())
    } else if (word.starts_with('<') && word.contains('@')) || is_id(word) {
        Selection::Message(word.to_owned())
    } else {
        Selection::Destination(word.to_owned())
    }
}

/// Reads `tell router …`.
pub(super) fn parse_order(rest: &str) -> Option<QueueOrder> {
    let (verb, rest) = rest.split_once(char::is_whitespace)?;
    let (what, reason) = rest.trim().split_once(char::is_whitespace).unwrap_or_else(|| (rest.trim(), ""));
    let command = match verb.to_ascii_lowercase().as_str() {
        "hold" => QueueCommand::Hold(reason.trim().to_owned()),
        "release" if reason.is_empty() => QueueCommand::Release,
        "retry" if reason.is_empty() => QueueCommand::Retry,
        "delete" if reason.is_empty() => QueueCommand::Delete { notifies: true },
        "discard" if reason.is_empty() => QueueCommand::Delete { notifies: false },
        _ => return None,
    };
    let selection = selection(what);
    (!what.is_empty()).then(|| QueueOrder { selection, command, by: "an administrator".to_owned() })
}

fn controls(controls: Option<OutboundControls>) -> Result<OutboundControls, ConsoleError> {
    controls.ok_or_else(|| {
        ConsoleError::NotFound(
            "this server sends no mail to others: outbound.route is off (docs/operate/mail-out.md)"
                .to_owned(),
        )
    })
}

/// `show queue`
pub(super) fn show_queue(parts: Option<OutboundControls>, what: Option<&str>) -> Result<Reply, ConsoleError> {
    let selection = what.map(selection);
    let report = controls(parts)?
        .report(selection.as_ref(), SHOWN)
        .map_err(|error| ConsoleError::NotFound(error.to_string()))?;
    let mut rows = Vec::new();
    let mut data = Vec::new();
    for (destination, summary) in &report.destinations {
        rows.push(destination_row(&destination.to_string(), summary));
        data.push(destination_data(&destination.to_string(), summary));
    }
    let mut titles = vec![("Destination", Align::Left)];
    titles.extend(
        ["Incoming", "Active", "Deferred", "Hold", "Dead", "Recipients"].map(|title| (title, Align::Right)),
    );
    titles.extend([("Oldest", Align::Left), ("Next attempt", Align::Left), ("Why", Align::Left)]);
    let mut text = if rows.is_empty() { "Nothing waits.\n".to_owned() } else { table(&titles, &rows) };
    let entries: Vec<Value> = report.entries.iter().map(|(entry, why)| entry_data(entry, why)).collect();
    if !report.entries.is_empty() {
        let titles = ["Entry", "Queue", "From", "To", "Attempts", "Next attempt", "Why"];
        let rows: Vec<Vec<String>> = entries.iter().map(entry_row).collect();
        text.push('\n');
        text.push_str(&table(&titles.map(|title| (title, Align::Left)), &rows));
        if report.more > 0 {
            text.push_str(&format!("and {} more\n", report.more));
        }
    }
    Ok(Reply { text, data: json!({"destinations": data, "entries": entries, "more": report.more}) })
}

fn entry_data(entry: &QueueEntry, why: &str) -> Value {
    let first = entry.waiting().first().copied().unwrap_or(0);
    let first = entry.recipient(first).map(|recipient| recipient.address.to_string()).unwrap_or_default();
    let count = entry.recipients.len();
    let is_due = matches!(entry.queue(), Queue::Incoming | Queue::Deferred);
    json!({
        "id": entry.id,
        "queue": entry.queue().word(),
        "from": entry.envelope.sender.as_ref().map_or_else(|| "<>".to_owned(), ToString::to_string),
        "to": if count > 1 { format!("{first} and {} more", count - 1) } else { first },
        "attempts": entry.attempts,
        "next": time(Some(entry.due_ms).filter(|_| is_due)),
        "why": why,
        "message_id": entry.envelope.message_id,
        "bytes": entry.size_bytes,
    })
}

/// An entry's data as a row of the table.
fn entry_row(data: &Value) -> Vec<String> {
    let cell = |name: &str| match data.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    ["id", "queue", "from", "to", "attempts", "next", "why"].map(cell).into()
}

fn destination_row(name: &str, summary: &DestinationSummary) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    let counts = QUEUES.map(|queue| summary.counts.get(&queue).copied().unwrap_or(0));
    row.extend(counts.map(grouped));
    row.push(grouped(summary.recipients));
    row.push(time(summary.oldest_ms));
    row.push(time(summary.next_ms));
    row.push(summary.reason.clone().unwrap_or_default());
    row
}

fn destination_data(name: &str, summary: &DestinationSummary) -> Value {
    let mut data = json!({
        "destination": name, "recipients": summary.recipients, "bytes": summary.size_bytes,
        "oldest": time(summary.oldest_ms), "next": time(summary.next_ms), "why": summary.reason,
    });
    if let Some(fields) = data.as_object_mut() {
        for queue in QUEUES {
            let count = summary.counts.get(&queue).copied().unwrap_or(0);
            fields.insert(queue.word().to_owned(), Value::from(count));
        }
    }
    data
}

pub(super) fn time(time_ms: Option<u64>) -> String {
    let time = time_ms.and_then(|time_ms| i64::try_from(time_ms).ok());
    let time = time.and_then(|time_ms| jiff::Timestamp::from_millisecond(time_ms).ok());
    time.map(|time| format!("{time:.0}")).unwrap_or_default()
}

/// `tell router …`
pub(super) fn tell(parts: Option<OutboundControls>, order: &QueueOrder) -> Result<Reply, ConsoleError> {
    let Ordered { done, refused, reasons } = controls(parts)?.order(order).map_err(ConsoleError::NotFound)?;
    let word = match order.command {
        QueueCommand::Hold(_) => "kept back",
        QueueCommand::Release => "released",
        QueueCommand::Retry => "to be tried at once",
        QueueCommand::Delete { .. } => "deleted",
    };
    if done == 0 && refused == 0 {
        return Err(ConsoleError::NotFound(
            "nothing in the queue is meant by this; show queue shows it".to_owned(),
        ));
    }
    let mut text = format!("{} {word}.\n", grouped(done));
    for reason in &reasons {
        text.push_str(&format!("{reason}\n"));
    }
    Ok(Reply { text, data: json!({"done": done, "refused": refused, "reasons": reasons}) })
}

/// `show message`: the lines of the log database about a message, the oldest first.
pub(super) fn show_message(databases: &Databases, name: &str, id: &str) -> Result<Reply, ConsoleError> {
    let failed = |error: DatabaseError| ConsoleError::NotFound(format!("{name}: {error}"));
    if name.is_empty() {
        return Err(ConsoleError::NotFound("no log database is kept: log_database.name is empty".to_owned()));
    }
    let id = if id.starts_with('<') { id.to_owned() } else { format!("<{id}>") };
    let query =
        RowQuery { start_key: Some(json!([id])), end_key: Some(json!([id, {}])), ..RowQuery::default() };
    let access = Access::of_the_server("tracing a message on the console");
    let database = databases.get(name).map_err(failed)?;
    let mut rows = database.view(MESSAGES_DESIGN, MESSAGES_VIEW, query, &access).map_err(failed)?;
    let (mut text, mut lines) = (String::new(), Vec::new());
    while lines.len() < TRACED {
        let some = rows.next_rows(200).map_err(failed)?;
        if some.is_empty() {
            break;
        }
        for row in some {
            let value: Value =
                row.value.as_deref().and_then(|value| serde_json::from_str(value).ok()).unwrap_or_default();
            let field = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (time, words) = (field("Time"), field("Words"));
            let shown = time.get(..19).unwrap_or(&time).replace('T', " ");
            text.push_str(&format!("{shown}  {}  {words}\n", field("Memo")));
            lines.push(json!({"time": time, "memo": field("Memo"), "words": words}));
        }
    }
    if lines.is_empty() {
        text = format!("Nothing is known of {id}. The log database is written once a second.\n");
    }
    Ok(Reply { text, data: json!({"message_id": id, "lines": lines}) })
}

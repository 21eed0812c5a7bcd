//! Deleted messages on the console: which can be had back, and having them back.

use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseError, DeletedKey, DeletedMessage};
use scrinium_directory::{Found, NameLookup};
use scrinium_mail::field;
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use super::queue::time;
use super::table::{Align, grouped, table};
use super::words::{Moment, Words};
use super::{Command, ConsoleError, Reply};

pub(super) const SHOW_ARGUMENTS: &str =
    "PERSON or database=NAME [folder=NAME] [since=TIME] [until=TIME] [message=ID] [from=ID] [count=NUMBER]";

pub(super) const SHOW_HELP: &str = "Deleted messages that can be had back, the oldest first; of a folder, deleted since a time (2026-11-22) or in the \
     last days (3d), or of a Message-ID";

pub(super) const RESTORE_ARGUMENTS: &str =
    "PERSON or database=NAME ID or all [folder=NAME] [since=TIME] [until=TIME] [message=ID] [to=FOLDER]";

pub(super) const RESTORE_HELP: &str = "Restores deleted messages into the folders that they were in, or into another one; ID as in show deleted";

/// Messages that one answer shows where nothing is said, and at most.
const SHOWN: usize = 100;
const SHOWN_MAX: usize = 1_000;

/// Messages that one command restores at most.
const RESTORED_MAX: usize = 1_000;

/// Messages looked at on one snapshot, and for one command.
const PAGE: usize = 500;
const EXAMINED_MAX: usize = 200_000;

/// What is shown of a message.
const FIELDS: [&str; 4] = [field::MESSAGE_ID, field::FROM, field::SUBJECT, field::POSTED_DATE];

static KEEPER: Access = Access::of_the_server("restoring deleted messages");

/// Which deleted messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct DeletedFilter {
    folder: Option<String>,
    since: Option<Moment>,
    until: Option<Moment>,
    message_id: Option<String>,
}

/// `show deleted`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedQuery {
    /// A person, as the directory knows them, or `database=` and a name.
    pub whose: String,
    filter: DeletedFilter,
    from: Option<DeletedKey>,
    count: usize,
}

/// `undelete`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndeleteOrder {
    /// A person, as the directory knows them, or `database=` and a name.
    pub whose: String,
    /// One message; none: all that the filter means.
    which: Option<DeletedKey>,
    filter: DeletedFilter,
    to: Option<String>,
}

impl DeletedFilter {
    fn take(words: &mut Words) -> Result<Self, ()> {
        Ok(Self {
            folder: words.take("folder"),
            since: words.take_moment("since")?,
            until: words.take_moment("until")?,
            message_id: words.take("message"),
        })
    }

    fn takes(&self, message: &DeletedMessage, now_ms: u64) -> bool {
        let deleted_ms = message.key.deleted_ms;
        let is_in =
            |name: &String| message.folders.iter().any(|folder| folder.to_lowercase() == name.to_lowercase());
        let bare = |id: &str| id.trim().trim_start_matches('<').trim_end_matches('>').to_owned();
        let own_id = message.fields.first().and_then(Value::as_str).map(bare);
        self.folder.as_ref().is_none_or(is_in)
            && self.since.is_none_or(|since| deleted_ms >= since.ms(now_ms))
            && self.until.is_none_or(|until| deleted_ms <= until.ms(now_ms))
            && self.message_id.as_ref().is_none_or(|id| own_id == Some(bare(id)))
    }
}

/// Reads what follows `show deleted`.
pub(super) fn parse_show(rest: &str) -> Option<Command> {
    let names = ["folder", "since", "until", "message", "from", "count"];
    let mut words = Words::read(rest, &names)?;
    let filter = DeletedFilter::take(&mut words).ok()?;
    let from = words.take("from").map(|from| key_of(&from).ok_or(())).transpose().ok()?;
    let count = match words.take("count") {
        Some(count) => count.parse().ok().filter(|count| (1..=SHOWN_MAX).contains(count))?,
        None => SHOWN,
    };
    let [whose] = <[String; 1]>::try_from(words.words).ok()?;
    Some(Command::ShowDeleted(DeletedQuery { whose, filter, from, count }))
}

/// Reads what follows `undelete`.
pub(super) fn parse_restore(rest: &str) -> Option<Command> {
    let mut words = Words::read(rest, &["folder", "since", "until", "message", "to"])?;
    let filter = DeletedFilter::take(&mut words).ok()?;
    let to = words.take("to");
    let [whose, which] = <[String; 2]>::try_from(words.words).ok()?;
    let which = if which.eq_ignore_ascii_case("all") { None } else { Some(key_of(&which)?) };
    Some(Command::Undelete(UndeleteOrder { whose, which, filter, to }))
}

/// A message as people type it: `TIME:REVISION:DOCUMENT`.
fn text_of(key: &DeletedKey) -> String {
    format!("{}:{}:{}", key.deleted_ms, key.revision, key.id)
}

fn key_of(text: &str) -> Option<DeletedKey> {
    let mut parts = text.splitn(3, ':');
    let (deleted_ms, revision, id) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    Some(DeletedKey { deleted_ms, id: id.to_owned(), revision: revision.to_owned() })
}

/// The mail file, or other database, that is meant.
pub(super) fn database_of(
    (databases, people): (&Databases, &dyn NameLookup),
    whose: &str,
) -> Result<OpenDatabase, ConsoleError> {
    let name = match whose.strip_prefix("database=") {
        Some(name) => name.to_owned(),
        None => match people.find(whose) {
            Found::Person(person) => person.mail_file.clone(),
            _ => return Err(ConsoleError::NotFound(format!("{whose} is no person of the directory"))),
        },
    };
    databases.get(&name).map_err(|error| ConsoleError::NotFound(format!("{name}: {error}")))
}

fn wrong(database: &OpenDatabase, error: &DatabaseError) -> ConsoleError {
    ConsoleError::NotFound(format!("{}: {error}", database.name()))
}

/// Messages that a filter means, from `from` on, and where to go on.
fn found(
    database: &OpenDatabase,
    filter: &DeletedFilter,
    (mut from, count): (Option<DeletedKey>, usize),
) -> Result<(Vec<DeletedMessage>, Option<DeletedKey>), ConsoleError> {
    let now_ms = database.now_ms();
    let mut found = Vec::new();
    for _ in 0..EXAMINED_MAX / PAGE {
        let page = database.deleted_messages(from.as_ref(), (&FIELDS, PAGE), &KEEPER);
        let page = page.map_err(|error| wrong(database, &error))?;
        for message in page.messages {
            if !filter.takes(&message, now_ms) {
                continue;
            }
            if found.len() == count {
                return Ok((found, Some(message.key)));
            }
            found.push(message);
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    Ok((found, from))
}

/// Carries out `show deleted`.
///
/// # Errors
/// In words: there is no such person or database, or it cannot be read.
pub fn show_deleted(
    databases: &Databases,
    people: &dyn NameLookup,
    query: &DeletedQuery,
) -> Result<Reply, ConsoleError> {
    let database = database_of((databases, people), &query.whose)?;
    let (messages, next) = found(&database, &query.filter, (query.from.clone(), query.count))?;
    let sums = database.deleted_sums().map_err(|error| wrong(&database, &error))?;
    let limits = database.undelete_limits();
    let rows: Vec<Vec<String>> = messages.iter().map(row).collect();
    let titles = [
        ("Deleted", Align::Left),
        ("Bytes", Align::Right),
        ("Folder", Align::Left),
        ("From", Align::Left),
        ("Subject", Align::Left),
        ("Id", Align::Left),
    ];
    let mut text =
        if rows.is_empty() { "No such message can be had back.\n".to_owned() } else { table(&titles, &rows) };
    if let Some(next) = &next {
        text.push_str(&format!("and more, with from={}\n", text_of(next)));
    }
    text.push_str(&format!(
        "{} keeps {} deleted messages of {} bytes, for {} days and up to {} bytes.\n",
        database.name(),
        sums.count,
        grouped(sums.bytes),
        limits.days,
        grouped(limits.bytes)
    ));
    let data: Vec<Value> = messages.iter().map(data).collect();
    let data = json!({
        "database": database.name(), "messages": data, "next": next.as_ref().map(text_of),
        "kept": {"messages": sums.count, "bytes": sums.bytes},
        "limits": {"days": limits.days, "bytes": limits.bytes},
    });
    Ok(Reply { text, data })
}

/// Carries out `undelete`.
///
/// # Errors
/// In words: there is no such person, database or message, or it cannot be stored.
pub fn undelete(
    databases: &Databases,
    people: &dyn NameLookup,
    order: &UndeleteOrder,
) -> Result<Reply, ConsoleError> {
    let database = database_of((databases, people), &order.whose)?;
    let (keys, next) = match &order.which {
        Some(which) => (vec![which.clone()], None),
        None => {
            let (messages, next) = found(&database, &order.filter, (None, RESTORED_MAX))?;
            (messages.into_iter().map(|message| message.key).collect(), next)
        }
    };
    let (mut restored, mut left) = (Vec::new(), Vec::new());
    for key in &keys {
        match database.undelete(key, order.to.as_deref(), &KEEPER) {
            Ok(done) => restored.push(json!({"id": done.id, "rev": done.revision, "folders": done.folders})),
            // Somebody else was quicker, or it ended in this moment.
            Err(DatabaseError::NotFound { .. }) if order.which.is_none() => {}
            Err(error @ DatabaseError::Exists { .. }) if order.which.is_none() => {
                left.push((key.id.clone(), error.to_string()));
            }
            Err(error) => return Err(wrong(&database, &error)),
        }
    }
    let mut text = format!("{} messages of {} are restored.\n", restored.len(), database.name());
    for (id, why) in &left {
        text.push_str(&format!("{id}: {why}\n"));
    }
    if next.is_some() {
        text.push_str("There are more; give the command again.\n");
    }
    let left: Vec<Value> = left.iter().map(|(id, why)| json!({"id": id, "why": why})).collect();
    let data = json!({
        "database": database.name(), "restored": restored, "left": left, "more": next.is_some(),
    });
    Ok(Reply { text, data })
}

/// A console that knows nobody shows nobody's mail.
pub(super) fn of_nobody() -> ConsoleError {
    ConsoleError::NotFound("other people's mail is for somebody who has logged in".to_owned())
}

fn shown(message: &DeletedMessage, place: usize) -> String {
    match message.fields.get(place) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    }
}

fn row(message: &DeletedMessage) -> Vec<String> {
    vec![
        time(Some(message.key.deleted_ms)),
        grouped(message.bytes),
        message.folders.join(", "),
        shown(message, 1),
        shown(message, 2),
        text_of(&message.key),
    ]
}

fn data(message: &DeletedMessage) -> Value {
    json!({
        "id": text_of(&message.key), "deleted": time(Some(message.key.deleted_ms)), "bytes": message.bytes,
        "folders": message.folders, "message_id": message.fields.first(), "from": message.fields.get(1),
        "subject": message.fields.get(2), "posted": message.fields.get(3),
    })
}

//! Messages looked for in all mail files, for administrators: such as one that is out to steal passwords and has reached many. What is
//! found can be moved into a folder or deleted.
//!
//! Each mail file is walked once, piece by piece, with no snapshot held between the pieces. A search that is done twice finds the same; what was moved or
//! deleted is left alone by the second.

use scrinium_catalog::{Databases, NameRange, is_mail_file};
use scrinium_database::{Access, DatabaseError, EditMode, FolderChange, NamedSearch, ReadOptions, Result};
use scrinium_statistics::Task;
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value};

use crate::inbox::mail_columns;
use crate::memo::field;
use crate::retention::deletion;

static SEARCHER: Access = Access::of_the_server("looking through all mail for an administrator");

/// Documents that are looked at, and found, on one snapshot.
const EXAMINED_AT_ONCE: usize = 2_000;
const FOUND_AT_ONCE: usize = 100;

/// Messages that a report names.
const NAMED_MAX: usize = 200;

/// Which messages are looked for: those that are all of what is given. Texts are looked for whatever their case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailCriteria {
    /// The Message-ID, with or without its angle brackets.
    pub message_id: Option<String>,
    /// A part of who it says that it is from.
    pub from: Option<String>,
    /// A part of the subject.
    pub subject: Option<String>,
    /// A part of the name of a file in it.
    pub attachment: Option<String>,
    /// It came at this time or later, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// It came at this time or earlier.
    pub until_ms: Option<u64>,
}

/// What becomes of what is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailAction {
    /// It is counted and named.
    Report,
    /// It goes into this folder, which is made if it is missing, out of all others.
    Move(String),
    /// It is deleted.
    Delete,
}

/// A message that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMail {
    /// The mail file.
    pub database: String,
    /// The document.
    pub id: String,
    /// Who it says that it is from.
    pub from: String,
    /// What it is about.
    pub subject: String,
    /// When it came, RFC 3339.
    pub date: String,
}

/// What a search has found and done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailSearchReport {
    /// Mail files that were looked through.
    pub mail_files: u64,
    /// Mail files in which there is something.
    pub mail_files_with: u64,
    /// Documents that were looked at.
    pub examined: u64,
    /// Messages that were found.
    pub found: u64,
    /// Those of them that were moved or deleted.
    pub changed: u64,
    /// Some of those that were found.
    pub messages: Vec<FoundMail>,
    /// Mail files that could not be looked through to their end, with why.
    pub failed: Vec<String>,
    /// Whether somebody has ended it early.
    pub stopped: bool,
}

impl MailCriteria {
    /// Whether nothing is given that tells a message from others.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.message_id.is_none()
            && self.from.is_none()
            && self.subject.is_none()
            && self.attachment.is_none()
            && self.since_ms.is_none()
            && self.until_ms.is_none()
    }

    /// The field that is looked at first, and what stands in it.
    fn first(&self) -> (&'static str, Option<String>) {
        if let Some(id) = &self.message_id {
            return (field::MESSAGE_ID, Some(bare(id)));
        }
        let parts = [
            (field::FROM, &self.from),
            (field::SUBJECT, &self.subject),
            (field::FILE_NAMES, &self.attachment),
        ];
        let given = parts.into_iter().find_map(|(field, part)| Some((field, part.as_ref()?.to_lowercase())));
        given.map_or((field::FORM, None), |(field, part)| (field, Some(part)))
    }

    fn takes(&self, memo: &Map<String, Value>) -> bool {
        let texts = |name: &str| -> Vec<&str> {
            match memo.get(name) {
                Some(Value::String(text)) => vec![text.as_str()],
                Some(Value::Array(texts)) => texts.iter().filter_map(Value::as_str).collect(),
                _ => Vec::new(),
            }
        };
        let has = |name: &str, part: &Option<String>| {
            part.as_ref().is_none_or(|part| {
                let part = part.to_lowercase();
                texts(name).iter().any(|text| text.to_lowercase().contains(&part))
            })
        };
        let id = texts(field::MESSAGE_ID).first().map(|id| bare(id));
        let came_ms = came_ms(memo);
        self.message_id.as_ref().is_none_or(|wanted| id == Some(bare(wanted)))
            && has(field::FROM, &self.from)
            && has(field::SUBJECT, &self.subject)
            && has(field::FILE_NAMES, &self.attachment)
            && self.since_ms.is_none_or(|since| came_ms.is_some_and(|came| came >= since))
            && self.until_ms.is_none_or(|until| came_ms.is_some_and(|came| came <= until))
    }
}

fn bare(id: &str) -> String {
    id.trim().trim_start_matches('<').trim_end_matches('>').to_owned()
}

/// When a message came, or was sent.
fn came_ms(memo: &Map<String, Value>) -> Option<u64> {
    let text =
        [field::DELIVERED_DATE, field::POSTED_DATE].into_iter().find_map(|name| memo.get(name)?.as_str())?;
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

/// Looks through all mail files, one after the other, and does what is to be done with what is found. Shows its progress in `task`,
/// and ends when that is cancelled or `stop` says so. Blocks.
///
/// # Errors
/// The names of the databases cannot be read; what is wrong with one mail file stands in the report.
pub fn search_mail(
    databases: &Databases,
    criteria: &MailCriteria,
    action: &MailAction,
    (task, stop): (&Task, &dyn Fn() -> bool),
) -> Result<MailSearchReport> {
    let names = databases.names(&NameRange::default())?;
    let names: Vec<String> = names.into_iter().filter(|name| is_mail_file(name)).collect();
    task.set_total(names.len() as u64);
    let mut report = MailSearchReport::default();
    for name in names {
        let found = report.found;
        let goes_on = || !stop() && !task.is_cancelled();
        let searched = databases
            .get(&name)
            .and_then(|database| search_one(&database, (criteria, action), &mut report, &goes_on));
        match searched {
            Ok(()) => {}
            // It was deleted in this moment.
            Err(DatabaseError::NotFound { .. }) => continue,
            Err(error) if report.failed.len() < NAMED_MAX => report.failed.push(format!("{name}: {error}")),
            Err(error) => tracing::warn!(database = name, %error, "a mail file was not looked through"),
        }
        if !goes_on() {
            report.stopped = true;
            break;
        }
        report.mail_files += 1;
        report.mail_files_with += u64::from(report.found > found);
        task.advance(1);
        task.detail("examined", report.examined);
        task.detail("found", report.found);
    }
    Ok(report)
}

fn search_one(
    database: &OpenDatabase,
    (criteria, action): (&MailCriteria, &MailAction),
    report: &mut MailSearchReport,
    goes_on: &dyn Fn() -> bool,
) -> Result<()> {
    let (field, part) = criteria.first();
    let is_meant = |text: &str| match &part {
        None => true,
        Some(id) if field == field::MESSAGE_ID => bare(text) == *id,
        Some(part) => text.to_lowercase().contains(part.as_str()),
    };
    let search = NamedSearch {
        fields: &[field],
        is_meant: &is_meant,
        found_max: FOUND_AT_ONCE,
        examined_max: EXAMINED_AT_ONCE,
    };
    let mut place = None;
    loop {
        let piece = database.named_leaves(&search, place.as_deref())?;
        report.examined += piece.examined as u64;
        for leaf in piece.leaves.iter().filter(|leaf| leaf.is_winner) {
            let found = match database.read(&leaf.id, &ReadOptions::default(), &SEARCHER) {
                Ok(found) => found,
                Err(DatabaseError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            let memo = found.json.to_object().unwrap_or_default();
            if !criteria.takes(&memo) {
                continue;
            }
            report.note(database.name(), &leaf.id, &memo);
            let changed = match action {
                MailAction::Report => false,
                MailAction::Move(folder) => move_to(database, &leaf.id, folder)?,
                MailAction::Delete => delete(database, leaf.id.clone(), found.revision)?,
            };
            report.changed += u64::from(changed);
        }
        place = piece.next;
        if place.is_none() || !goes_on() {
            return Ok(());
        }
    }
}

impl MailSearchReport {
    fn note(&mut self, database: &str, id: &str, memo: &Map<String, Value>) {
        self.found += 1;
        if self.messages.len() >= NAMED_MAX {
            return;
        }
        let text = |name: &str| memo.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let date =
            [field::DELIVERED_DATE, field::POSTED_DATE].into_iter().map(text).find(|date| !date.is_empty());
        self.messages.push(FoundMail {
            database: database.to_owned(),
            id: id.to_owned(),
            from: text(field::FROM),
            subject: text(field::SUBJECT),
            date: date.unwrap_or_default(),
        });
    }
}

/// Whether it was elsewhere.
fn move_to(database: &OpenDatabase, id: &str, folder: &str) -> Result<bool> {
    let snapshot = database.store().snapshot();
    let (mut changes, mut is_there) = (Vec::new(), false);
    for info in database.folders(None)? {
        if database.uid_at(&snapshot, info.number, id)?.is_none() {
            continue;
        }
        if info.name.to_lowercase() == folder.to_lowercase() {
            is_there = true;
        } else {
            changes.push((id.to_owned(), FolderChange::Remove { folder: info.name }));
        }
    }
    if is_there && changes.is_empty() {
        return Ok(false);
    }
    let make =
        FolderChange::Make { folder: folder.to_owned(), columns: Some(mail_columns()), special_use: None };
    let first = [(id.to_owned(), make), (id.to_owned(), FolderChange::Add { folder: folder.to_owned() })];
    let changes = first.into_iter().chain(changes).collect();
    let moved = database.change_folders(changes, &SEARCHER)?.wait()?;
    moved.into_iter().try_for_each(|moved| match moved {
        // Its person was quicker.
        Ok(_) | Err(DatabaseError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    })?;
    Ok(true)
}

/// Whether it was there still. One that was changed in this moment is found by the next search.
fn delete(database: &OpenDatabase, id: String, revision: String) -> Result<bool> {
    match database.update_one(deletion(id, revision), EditMode::Interactive, &SEARCHER) {
        Ok(_) => Ok(true),
        Err(DatabaseError::NotFound { .. } | DatabaseError::Conflict) => Ok(false),
        Err(error) => Err(error),
    }
}

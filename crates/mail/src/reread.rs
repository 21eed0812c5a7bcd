//! Reading stored messages again: the fields that an earlier release read in them become what this one reads.
//!
//! Only fields that a message gives are looked at. What people and the router have added stays, and so do folders and unread
//! marks. A memo of which nothing differs is left alone.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use scrinium_assertion::never;
use scrinium_database::{
    Access, AttachmentReader, Database, DatabaseError, Edit, EditMode, ReadOptions, RowQuery, Update,
    flag_name,
};
use scrinium_statistics::Task;
use serde_json::{Map, Value, json};

use crate::memo::{MEMO_FORM, field};
use crate::message::{MessageOptions, SOURCE_ATTACHMENT, SOURCE_CONTENT_TYPE, memo_of_reader};

/// Who reads messages again.
static REREAD: Access = Access::of_the_server("reading messages again");

/// Documents that are looked at on one snapshot.
const PAGE_DOCUMENTS: u64 = 200;

/// Documents that are held at once, and their bytes.
const ROWS_AT_ONCE: usize = 50;
const ROWS_BYTES: usize = 4 << 20;

/// A message is read in pieces of this size.
const PIECE_BYTES: usize = 256 * 1024;

/// A memo that somebody else changes each time is left as it is after this number of attempts.
const ATTEMPTS: usize = 3;

/// How often somebody who paused the work is asked whether it goes on.
const PAUSE: Duration = Duration::from_millis(200);

/// Remembers in a mail file how far it was read again.
const CHECKPOINT: &str = "_local/mail-reread";

/// What a message gives. `Categories` and `$Flags` are what mail programs and people made of it.
const READ_FIELDS: [&str; 21] = [
    field::FROM,
    field::SENDER,
    field::SEND_TO,
    field::COPY_TO,
    field::BLIND_COPY_TO,
    field::REPLY_TO,
    field::SUBJECT,
    field::POSTED_DATE,
    field::DELIVERED_DATE,
    field::MESSAGE_ID,
    field::IN_REPLY_TO,
    field::REFERENCES,
    field::IMPORTANCE,
    field::BODY,
    field::BODY_TRUNCATED,
    field::SIZE,
    field::SOURCE_START,
    field::PARSE_NOTES,
    field::FILE_NAMES,
    field::FILE_TYPES,
    field::FILE_SIZES,
];

/// What reading again did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RereadReport {
    /// Documents that were looked at.
    pub examined: u64,
    /// Memos of which a field differed, and that were changed.
    pub changed: u64,
    /// Memos that stay as they are, because their message cannot be read or somebody else kept changing them.
    pub left: u64,
    /// Whether it was told to stop before the end; the next one resumes there.
    pub stopped: bool,
}

/// Reads the messages of a mail file again, from where an earlier one stopped. `task` tells how far it is, and stops it.
///
/// # Errors
/// What the database reports. A message that cannot be read is only counted.
pub fn reread_mail_file(database: &Arc<Database>, task: &Task) -> Result<RereadReport, DatabaseError> {
    let mut report = RereadReport::default();
    task.allow_pause();
    let mut behind = read_checkpoint(database)?;
    while let Some(last) = reread_page(database, behind.as_deref(), task, &mut report)? {
        write_checkpoint(database, &last)?;
        if report.stopped {
            return Ok(report);
        }
        behind = Some(last);
    }
    forget_checkpoint(database)?;
    Ok(report)
}

/// The last document that was looked at; `None` where there was none left.
fn reread_page(
    database: &Arc<Database>,
    behind: Option<&str>,
    task: &Task,
    report: &mut RereadReport,
) -> Result<Option<String>, DatabaseError> {
    let query = RowQuery {
        // The first id that can come next.
        start_key: behind.map(|id| Value::from(format!("{id}\0"))),
        limit: Some(PAGE_DOCUMENTS),
        include_documents: true,
        piece_bytes: Some(ROWS_BYTES),
        ..RowQuery::default()
    };
    let mut rows = database.all_documents(query, &REREAD)?;
    let mut last = None;
    loop {
        let some = rows.next_rows(ROWS_AT_ONCE)?;
        let Some(id) = some.last().and_then(|row| row.id.clone()) else { return Ok(last) };
        // A document that is damaged comes without its fields; a fixup tells of it.
        let documents: Vec<Map<String, Value>> =
            some.iter().filter_map(|row| serde_json::from_str(row.document.as_deref()?).ok()).collect();
        reread_documents(database, documents, report)?;
        report.examined += some.len() as u64;
        task.advance(some.len() as u64);
        last = Some(id);
        while task.is_paused() && !task.is_cancelled() {
            std::thread::sleep(PAUSE);
        }
        if task.is_cancelled() {
            report.stopped = true;
            return Ok(last);
        }
    }
}

/// Reads the messages of these documents again, and writes what differs in one batch.
fn reread_documents(
    database: &Arc<Database>,
    mut documents: Vec<Map<String, Value>>,
    report: &mut RereadReport,
) -> Result<(), DatabaseError> {
    for _ in 0..ATTEMPTS {
        let (mut edits, mut ids) = (Vec::new(), Vec::new());
        for document in &documents {
            match read_again(database, document) {
                Ok(Some(changed)) => {
                    ids.extend(id_of(document).map(str::to_owned));
                    edits.push(edit_of(changed));
                }
                Ok(None) => {}
                Err(error) if is_of_one_memo(&error) => leave(document, &error, report),
                Err(error) => return Err(error),
            }
        }
        if edits.is_empty() {
            return Ok(());
        }
        documents.clear();
        let results = database.update_in_parts(edits, EditMode::Interactive, &REREAD)?.wait()?;
        for (result, id) in results.into_iter().zip(ids) {
            match result {
                Ok(_) => report.changed += 1,
                // Somebody has changed it in this moment, or deleted it.
                Err(DatabaseError::Conflict) => documents.extend(read_document(database, &id)?),
                Err(error) if is_of_one_memo(&error) => {
                    leave(&Map::from_iter([("_id".to_owned(), Value::from(id))]), &error, report);
                }
                Err(error) => return Err(error),
            }
        }
    }
    report.left += documents.len() as u64;
    Ok(())
}

fn edit_of(document: Map<String, Value>) -> Edit {
    Edit { json: Value::Object(document).to_string().into(), keeps_marks: true, ..Edit::default() }
}

fn leave(document: &Map<String, Value>, error: &DatabaseError, report: &mut RereadReport) {
    report.left += 1;
    tracing::warn!(memo = id_of(document), %error, "a message cannot be read again; its memo stays as it is");
}

fn id_of(document: &Map<String, Value>) -> Option<&str> {
    document.get("_id").and_then(Value::as_str)
}

/// Whether the next memo may fare better.
fn is_of_one_memo(error: &DatabaseError) -> bool {
    matches!(
        error,
        DatabaseError::NotFound { .. }
            | DatabaseError::Invalid { .. }
            | DatabaseError::TooLarge { .. }
            | DatabaseError::Forbidden { .. }
            | DatabaseError::Damaged { .. }
    )
}

fn read_document(database: &Arc<Database>, id: &str) -> Result<Option<Map<String, Value>>, DatabaseError> {
    match database.read(id, &ReadOptions::default(), &REREAD) {
        Ok(found) => match found.json.to_object() {
            Some(document) => Ok(Some(document)),
            None => Err(never!("a document that is stored is an object", "{id}").into()),
        },
        Err(DatabaseError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The document as this release reads its message; `None` where nothing differs, or it is no memo of a message.
fn read_again(
    database: &Arc<Database>,
    stored: &Map<String, Value>,
) -> Result<Option<Map<String, Value>>, DatabaseError> {
    let mut changed = stored.clone();
    let renamed = name_flags(&mut changed);
    if !is_of_message(&changed) {
        return Ok(renamed.then_some(changed));
    }
    let revision = stored.get("_rev").and_then(Value::as_str);
    let source =
        database.open_attachment(id_of(stored).unwrap_or_default(), SOURCE_ATTACHMENT, revision, &REREAD)?;
    let read = |delivered_s| {
        let options = MessageOptions { delivered_s };
        memo_of_reader(|| Ok(SourceReader::of(&source)), source.length, &options).map_err(database_error)
    };
    let mut fresh = read(None)?;
    if let Some(delivered_s) = kept_delivery(stored, &fresh) {
        fresh = read(Some(delivered_s))?;
    }
    if READ_FIELDS.iter().all(|name| is_same(name, stored.get(*name), fresh.get(*name))) {
        return Ok(renamed.then_some(changed));
    }
    for name in READ_FIELDS {
        match fresh.remove(name) {
            Some(value) => changed.insert(name.to_owned(), value),
            None => changed.remove(name),
        };
    }
    Ok(Some(changed))
}

/// Gives flags that an earlier release wrote in words of its own the names that mail programs know; whether there were any.
fn name_flags(document: &mut Map<String, Value>) -> bool {
    let Some(Value::Array(flags)) = document.get_mut(field::FLAGS) else { return false };
    let mut renamed = false;
    for flag in flags {
        let name = flag.as_str().map(flag_name).filter(|name| flag != name).map(str::to_owned);
        if let Some(name) = name {
            (*flag, renamed) = (Value::from(name), true);
        }
    }
    renamed
}

/// Whether a document is a memo whose fields come from the message that it has. A draft is its author's.
fn is_of_message(stored: &Map<String, Value>) -> bool {
    let source = stored.get("_attachments").and_then(|attachments| attachments.get(SOURCE_ATTACHMENT));
    let says = |name: &str| source.and_then(|source| source.get(name));
    let flags = stored.get(field::FLAGS).and_then(Value::as_array);
    stored.get(field::FORM).and_then(Value::as_str) == Some(MEMO_FORM)
        && says("content_type").and_then(Value::as_str) == Some(SOURCE_CONTENT_TYPE)
        && says("length").is_some_and(|length| stored.get(field::SIZE) == Some(length))
        && !flags.is_some_and(|flags| flags.iter().any(|flag| flag == "\\Draft"))
}

/// When a memo was delivered, where only the mbox that it lay in said so and the message does not.
fn kept_delivery(stored: &Map<String, Value>, fresh: &Map<String, Value>) -> Option<i64> {
    let kept = stored.get(field::DELIVERED_DATE)?;
    if fresh.get(field::DELIVERED_DATE) == Some(kept) {
        return None;
    }
    // Where both are the same, it was Date that said it.
    let is_of_date = stored.get(field::POSTED_DATE) == Some(kept) && fresh.contains_key(field::POSTED_DATE);
    if is_of_date {
        return None;
    }
    kept.as_str()?.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}

/// Notes are the same in any order.
fn is_same(name: &str, one: Option<&Value>, other: Option<&Value>) -> bool {
    let (Some(Value::Array(notes)), Some(Value::Array(others))) = (one, other) else { return one == other };
    if name != field::PARSE_NOTES {
        return notes == others;
    }
    notes.len() == others.len() && notes.iter().all(|note| others.contains(note))
}

/// A message that is attached to its memo.
struct SourceReader<'a> {
    source: &'a AttachmentReader,
    /// Where `piece` ends in it.
    position: u64,
    piece: io::Cursor<bytes::Bytes>,
}

impl<'a> SourceReader<'a> {
    fn of(source: &'a AttachmentReader) -> Self {
        Self { source, position: 0, piece: io::Cursor::default() }
    }
}

impl Read for SourceReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.piece.read(into)?;
        if read > 0 || into.is_empty() {
            return Ok(read);
        }
        let piece = self.source.read(self.position, PIECE_BYTES).map_err(io::Error::other)?;
        self.position += piece.len() as u64;
        self.piece = io::Cursor::new(piece);
        self.piece.read(into)
    }
}

/// What the database has said of a message that was being read.
fn database_error(error: io::Error) -> DatabaseError {
    let reason = error.to_string();
    let inner = error.into_inner().and_then(|inner| inner.downcast::<DatabaseError>().ok());
    inner.map_or(DatabaseError::Internal { reason }, |inner| *inner)
}

fn read_checkpoint(database: &Arc<Database>) -> Result<Option<String>, DatabaseError> {
    match database.read_local(CHECKPOINT, &REREAD) {
        Ok(found) => {
            let checkpoint: Option<Value> = serde_json::from_str(&found.json).ok();
            Ok(checkpoint.and_then(|checkpoint| Some(checkpoint.get("behind")?.as_str()?.to_owned())))
        }
        Err(DatabaseError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn write_checkpoint(database: &Arc<Database>, behind: &str) -> Result<(), DatabaseError> {
    let checkpoint = json!({ "behind": behind }).to_string();
    let written = database.write_local(CHECKPOINT, checkpoint.as_bytes(), false, None, &REREAD);
    written.and_then(Update::wait).map(drop)
}

fn forget_checkpoint(database: &Arc<Database>) -> Result<(), DatabaseError> {
    match database.write_local(CHECKPOINT, b"{}", true, None, &REREAD).and_then(Update::wait) {
        Ok(_) | Err(DatabaseError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

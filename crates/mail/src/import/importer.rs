//! Writes the messages of files into a person's mail database, many in one batch.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use scrinium_database::INTERNAL_DATE;
use serde_json::{Map, Value, json};

use super::{ImportError, MailFiles, Measured, MessageSource, PassedOver, Position, RawMessage};
use crate::memo::field;
use crate::message::{ImportedId, MessageOptions, memo_of_reader};
use crate::notes::only_missing;
use crate::source::PIECE_BYTES;

/// A message on its way into a mail database: a document and the source to be attached to it as
/// [`crate::SOURCE_ATTACHMENT`].
#[derive(Debug, Clone)]
pub struct ImportedMemo {
    /// The document's id, the same for the same message and person.
    pub id: String,
    /// The document's fields.
    pub fields: Map<String, Value>,
    /// The message.
    pub source: MessageSource,
    /// The folders that it comes into.
    pub folders: Vec<String>,
    /// Whether its person has read it.
    pub read: bool,
    /// Where the message lay, for people.
    pub place: String,
}

/// What became of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredBatch {
    /// Documents that are new.
    pub added: u64,
    /// Documents that were there already.
    pub present: u64,
    /// Messages that the target does not take, whatever else it takes.
    pub refused: Vec<RefusedMessage>,
}

/// A message that a target does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedMessage {
    /// Where it lay.
    pub place: String,
    /// Why.
    pub reason: String,
}

/// Where imported mail goes.
pub trait ImportTarget {
    /// A batch that was handed over and may not be durable yet.
    type Pending;

    /// Where an earlier import of the same files stopped, if one did.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn position(&self) -> Result<Option<Position>, String>;

    /// Hands over a batch; documents whose id is there already are left alone.
    ///
    /// # Errors
    /// Why nothing of it was taken.
    fn submit(&self, batch: Vec<ImportedMemo>) -> Result<Self::Pending, String>;

    /// Waits until a batch is durable, then remembers `position` for the next import.
    ///
    /// # Errors
    /// Why it is not durable.
    fn finish(&self, pending: Self::Pending, position: &Position) -> Result<StoredBatch, String>;

    /// Forgets the position: the import is complete.
    ///
    /// # Errors
    /// Why it cannot be forgotten.
    fn complete(&self) -> Result<(), String>;
}

/// How to import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// Whose mail it becomes; part of the documents' ids.
    pub person: String,
    /// Documents in one batch.
    pub batch_documents: usize,
    /// A batch ends at this many bytes of sources too.
    pub batch_bytes: u64,
    /// A message of more bytes is left out. Not above what the server allows for an attachment.
    pub message_limit: u64,
    /// Whether messages that were deleted where they lay are imported, too.
    pub with_deleted: bool,
}

impl ImportOptions {
    /// Batches of 200 documents or 8 MB, messages up to 256 MB.
    #[must_use]
    pub fn for_person(person: &str) -> Self {
        Self {
            person: person.to_owned(),
            batch_documents: 200,
            batch_bytes: 8 << 20,
            message_limit: 256 << 20,
            with_deleted: false,
        }
    }
}

/// How far an import is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// What there is to import.
    pub total: Measured,
    /// Bytes of files that are done, those of an earlier import not included.
    pub done_bytes: u64,
    /// Messages that are done.
    pub messages: u64,
    /// Time since the import began.
    pub elapsed: Duration,
}

impl Progress {
    /// Messages a second so far.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a rate needs few digits")]
    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.messages as f64 / seconds } else { 0.0 }
    }
}

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Messages read.
    pub messages: u64,
    /// Documents that are new.
    pub added: u64,
    /// Messages that were there already.
    pub present: u64,
    /// Messages that were damaged, and kept whole.
    pub damaged: u64,
    /// Messages that lack nothing but a header field that they should have, such as `Date`.
    pub incomplete: u64,
    /// Files and messages that had to be left out.
    pub left_out: u64,
    /// The first reasons for that.
    pub reasons: Vec<String>,
    /// What is no mail, or was deleted where it lay.
    pub passed_over: PassedOver,
}

/// As [`crate::imported_id`], of a message of any length.
fn id_of(source: &MessageSource, person: &str) -> io::Result<String> {
    let mut id = ImportedId::of_person(person);
    let mut position = 0;
    loop {
        let piece = source.piece(position, PIECE_BYTES)?;
        if piece.is_empty() {
            return Ok(id.finish());
        }
        id.update(&piece);
        position += piece.len() as u64;
    }
}

/// Of more reasons than these nobody reads.
const MOST_REASONS: usize = 20;

/// Batches that may be on their way to the disk while the next one is read.
const MOST_PENDING: usize = 3;

/// Imports mail from files into a target.
pub struct Importer<'t, T: ImportTarget> {
    target: &'t T,
    options: ImportOptions,
}

impl<'t, T: ImportTarget> Importer<'t, T> {
    /// Imports into `target`.
    pub fn new(target: &'t T, options: ImportOptions) -> Self {
        Self { target, options }
    }

    /// Imports everything at `root`, going on where an earlier import stopped; `report` is called after every
    /// batch.
    ///
    /// # Errors
    /// [`ImportError::Start`] and [`ImportError::NotMail`] where there is nothing to read, [`ImportError::Spool`] where there
    /// is no room for a temporary file, [`ImportError::Target`] where the database does not take it. Files that cannot be read, and messages that it refuses, are only counted.
    pub fn run(&self, root: &Path, mut report: impl FnMut(&Progress)) -> Result<ImportReport, ImportError> {
        let resume = self.target.position().map_err(ImportError::Target)?.unwrap_or_default();
        let started = Instant::now();
        let mut progress = Progress { total: MailFiles::measure(root)?, ..Progress::default() };
        let files = MailFiles::open(root, resume, self.options.message_limit)?;
        let mut files = files.with_deleted(self.options.with_deleted);
        let mut run = Run { importer: self, report: ImportReport::default(), pending: VecDeque::new() };
        let mut batch = Batch::default();
        loop {
            let next = files.next_message();
            let is_end = next.is_none();
            match next {
                Some(Ok(message)) => {
                    progress.done_bytes += message.source.len();
                    run.report.messages += 1;
                    batch.position = message.position.clone();
                    batch.bytes = batch.bytes.saturating_add(message.source.len());
                    batch.memos.push(run.memo_of(message).map_err(ImportError::Spool)?);
                }
                Some(Err(
                    error @ (ImportError::Start { .. } | ImportError::NotMail { .. } | ImportError::Spool(_)),
                )) => {
                    return Err(error);
                }
                Some(Err(error)) => run.leave_out(error.to_string()),
                None => {}
            }
            let is_full =
                batch.memos.len() >= self.options.batch_documents || batch.bytes >= self.options.batch_bytes;
            if is_full || (is_end && !batch.memos.is_empty()) {
                run.submit(std::mem::take(&mut batch))?;
                progress.messages = run.report.messages;
                progress.elapsed = started.elapsed();
                report(&progress);
            }
            if is_end {
                break;
            }
        }
        while run.finish_oldest()? {}
        self.target.complete().map_err(ImportError::Target)?;
        run.report.passed_over = files.passed_over().clone();
        Ok(run.report)
    }
}

/// Mail programs show when a message came, not when it was imported.
fn note_internal_date(fields: &mut Map<String, Value>) {
    let delivered = fields.get(field::DELIVERED_DATE).and_then(Value::as_str);
    let delivered = delivered.and_then(|date| date.parse::<jiff::Timestamp>().ok());
    if let Some(delivered) = delivered {
        fields.insert(INTERNAL_DATE.to_owned(), json!([delivered.as_millisecond(), 0]));
    }
}

#[derive(Default)]
struct Batch {
    memos: Vec<ImportedMemo>,
    bytes: u64,
    position: Position,
}

struct Run<'i, 't, T: ImportTarget> {
    importer: &'i Importer<'t, T>,
    report: ImportReport,
    pending: VecDeque<(T::Pending, Position)>,
}

impl<T: ImportTarget> Run<'_, '_, T> {
    /// # Errors
    /// The message's temporary file cannot be read.
    fn memo_of(&mut self, message: RawMessage) -> io::Result<ImportedMemo> {
        let RawMessage { source, delivered_s, folder, state, place, .. } = message;
        let options = MessageOptions { delivered_s };
        let mut fields = memo_of_reader(|| Ok(source.reader()), source.len(), &options)?;
        match fields.get(field::PARSE_NOTES) {
            Some(notes) if only_missing(notes) => self.report.incomplete += 1,
            Some(_) => self.report.damaged += 1,
            None => {}
        }
        note_internal_date(&mut fields);
        let flags = state.flags();
        if !flags.is_empty() {
            fields.insert(field::FLAGS.to_owned(), Value::from(flags));
        }
        if !state.labels.is_empty() {
            fields.insert(field::CATEGORIES.to_owned(), Value::from(state.labels));
        }
        let folders = if state.folders.is_empty() { vec![folder] } else { state.folders };
        let id = id_of(&source, &self.importer.options.person)?;
        Ok(ImportedMemo { id, fields, source, folders, read: state.read, place })
    }

    fn leave_out(&mut self, reason: String) {
        self.report.left_out += 1;
        if self.report.reasons.len() < MOST_REASONS {
            self.report.reasons.push(reason);
        }
    }

    fn submit(&mut self, batch: Batch) -> Result<(), ImportError> {
        let pending = self.importer.target.submit(batch.memos).map_err(ImportError::Target)?;
        self.pending.push_back((pending, batch.position));
        if self.pending.len() > MOST_PENDING {
            self.finish_oldest()?;
        }
        Ok(())
    }

    fn finish_oldest(&mut self) -> Result<bool, ImportError> {
        let Some((pending, position)) = self.pending.pop_front() else { return Ok(false) };
        let stored = self.importer.target.finish(pending, &position).map_err(ImportError::Target)?;
        self.report.added += stored.added;
        self.report.present += stored.present;
        for RefusedMessage { place, reason } in stored.refused {
            self.leave_out(format!("{place}: {reason}"));
        }
        Ok(true)
    }
}

//! Messages that clients bring.

use std::io;

use scrinium_database::{DatabaseError, Edit, EditMode, FolderChange, INTERNAL_DATE, Result, new_id};
use scrinium_imap::{Answer, NewMessage, Refusal, SystemFlags};
use scrinium_imap_wire::{DateTime, Flag};
use scrinium_mail::{
    MEMORY_BYTES, MessageOptions, MessageSource, SourceWriter, limit_outlines, memo_of_reader, outline_of,
    stored_source,
};
use scrinium_mailbox::NumberSet;
use serde_json::{Map, Value, json};

use crate::mail_file::{MailFile, Place, refusal_of};
use crate::time::milliseconds;
use crate::tracker::number_of;

/// Messages of one command that are on their way. They are stored together or not at all.
#[derive(Default)]
pub(crate) struct Appending {
    whole: Vec<(NewMessage, MessageSource)>,
    open: Option<(NewMessage, SourceWriter)>,
}

impl Appending {
    /// In which database the messages go.
    pub(crate) fn place(&self) -> Place {
        let first = self.whole.first().map(|(message, _)| message);
        let first = first.or_else(|| self.open.as_ref().map(|(message, _)| message));
        first.map_or(Place::Own, |message| Place::of(message.mailbox.as_str()).0)
    }

    /// The next message of the command begins.
    ///
    /// # Errors
    /// The one before it could not be kept.
    pub(crate) fn begin(&mut self, message: NewMessage) -> io::Result<()> {
        self.close()?;
        let writer = SourceWriter::new(message.bytes);
        self.open = Some((message, writer));
        Ok(())
    }

    /// Whether this piece stays in memory, so that nobody waits for the disk.
    pub(crate) fn stays_in_memory(&self, piece: &[u8]) -> bool {
        let writer = self.open.as_ref().map(|(_, writer)| writer);
        writer.is_none_or(|writer| {
            !writer.is_in_file() && writer.len().saturating_add(piece.len() as u64) <= MEMORY_BYTES as u64
        })
    }

    /// More of the message. Blocks where it does not stay in memory.
    ///
    /// # Errors
    /// It could not be kept.
    pub(crate) fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        match &mut self.open {
            Some((_, writer)) => writer.push(piece),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        if let Some((message, writer)) = self.open.take() {
            self.whole.push((message, writer.finish(0)?));
        }
        Ok(())
    }

    /// Stores all of them in one batch, and with them, as the same batch, what `besides` does. Blocks.
    ///
    /// # Errors
    /// What the store reports; then none of them is stored.
    pub(crate) fn store(
        mut self,
        file: &MailFile,
        now_ms: u64,
        besides: Vec<Edit>,
    ) -> Result<(u32, Vec<u32>)> {
        let unkept = |error: io::Error| DatabaseError::Internal { reason: error.to_string() };
        self.close().map_err(unkept)?;
        let Some((first, _)) = self.whole.first() else { return Err(DatabaseError::missing()) };
        let (place, name) = Place::of(first.mailbox.as_str());
        if place != file.place {
            return Err(DatabaseError::missing());
        }
        let folder = file.folder(name)?;
        file.check_author()?;
        let (mut edits, mut ids) = (Vec::new(), Vec::new());
        for (message, source) in &self.whole {
            let (flags, keywords, date) = (message.flags, &message.keywords, message.date.as_ref());
            let brought = Brought { flags, keywords, date };
            let edit = edit_of((file, &folder.name), (&brought, source), now_ms)?;
            ids.push(edit.id.clone().unwrap_or_default());
            edits.push(edit);
        }
        limit_outlines(&mut edits);
        edits.extend(besides);
        let stored = file.database.update(edits, EditMode::Interactive, &file.access)?.wait()?;
        stored.into_iter().collect::<Result<Vec<_>>>()?;
        let snapshot = file.database.store().snapshot();
        let mut uids = Vec::with_capacity(ids.len());
        for id in ids {
            let uid = file.database.uid_at(&snapshot, folder.number, &id)?;
            uids.extend(uid.map(|uid| number_of(uid, &file.database)).transpose()?);
        }
        Ok((folder.uid_validity, uids))
    }
}

/// What is known of a message besides its source.
pub(crate) struct Brought<'b> {
    pub(crate) flags: SystemFlags,
    pub(crate) keywords: &'b [Flag],
    pub(crate) date: Option<&'b DateTime>,
}

/// Makes a message the document of those who may change nothing but what is theirs.
pub(crate) fn own(file: &MailFile, memo: &mut Map<String, Value>) {
    if let Some(author) = file.author() {
        memo.insert("Authors".to_owned(), json!([author]));
    }
}

/// The document that a message becomes.
///
/// # Errors
/// What the store reports, or that the source cannot be read.
pub(crate) fn edit_of(
    (file, folder): (&MailFile, &str),
    (message, source): (&Brought<'_>, &MessageSource),
    now_ms: u64,
) -> Result<Edit> {
    let unreadable = |error: io::Error| DatabaseError::Internal { reason: error.to_string() };
    let date_ms = message.date.map(milliseconds);
    let now = i64::try_from(now_ms).unwrap_or(i64::MAX);
    let options = MessageOptions { delivered_s: Some(date_ms.unwrap_or(now) / 1000) };
    let mut memo = memo_of_reader(|| Ok(source.reader()), source.len(), &options).map_err(unreadable)?;
    source.note_wire_size(&mut memo).map_err(unreadable)?;
    own(file, &mut memo);
    let zone = message.date.map_or(0, |date| date.zone_minutes());
    if let Some(date_ms) = date_ms {
        memo.insert(INTERNAL_DATE.to_owned(), json!([date_ms, zone]));
    }
    let flags = message.flags;
    let named = [(flags.answered, "\\Answered"), (flags.flagged, "\\Flagged"), (flags.draft, "\\Draft")];
    let names: Vec<&str> = named
        .into_iter()
        .filter_map(|(is_set, name)| is_set.then_some(name))
        .chain(message.keywords.iter().map(|keyword| keyword.as_str()))
        .collect();
    if !names.is_empty() {
        memo.insert(scrinium_database::FLAGS.to_owned(), json!(names));
    }
    let mut folders = vec![FolderChange::Add { folder: folder.to_owned() }];
    if flags.deleted {
        folders.push(FolderChange::SetDeleted { folder: folder.to_owned(), deleted: true });
    }
    Ok(Edit {
        id: Some(new_id(now_ms)),
        outline: outline_of(source, &memo).map_err(unreadable)?,
        json: Value::Object(memo).to_string().into(),
        attachments: vec![stored_source(&file.database, source)?],
        folders,
        read_by: flags.seen.then(|| file.person.clone()),
        ..Edit::default()
    })
}

/// What the client hears of messages that were stored, or were not.
pub(crate) fn answer_of(stored: Result<(u32, Vec<u32>)>) -> Answer {
    match stored {
        Ok((uid_validity, uids)) => {
            let uids = NumberSet::of_ranges(uids.into_iter().map(|uid| (uid, uid)));
            Answer::Appended { uid_validity, uids }
        }
        // RFC 9051, section 6.3.12.
        Err(DatabaseError::NotFound { .. }) => Answer::Refused(no_target()),
        Err(error) => Answer::Refused(refusal_of(&error)),
    }
}

/// The mailbox is not there, and the client may make it.
pub(crate) fn no_target() -> Refusal {
    Refusal::new("TRYCREATE", "There is no such mailbox")
}

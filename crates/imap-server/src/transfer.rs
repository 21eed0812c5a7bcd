//! Messages are copied, moved and taken away.

use scrinium_database::{
    DatabaseError, Edit, EditMode, FolderChange, FolderInfo, INTERNAL_DATE, ReadOptions, Result, new_id,
};
use scrinium_document::json::stored_value;
use scrinium_imap::{FolderOutcome, SystemFlags};
use scrinium_mail::{SourceWriter, limit_outlines};
use scrinium_mailbox::Span;
use serde_json::{Map, Value, json};

use crate::append::{Brought, edit_of, own};
use crate::folder::{FolderDesk, Found, Step};
use crate::mail_file::{MailFile, Place};
use crate::message::Messages;
use crate::tracker::number_of;

/// Bytes of a message that is copied into another database, at a time.
const COPIED_AT_ONCE: u64 = 256 << 10;

/// Copies or moves what a step has picked into another mailbox, as one batch. What goes into another database is there, durably,
/// before it leaves here.
///
/// # Errors
/// What the store reports; then nothing was moved.
pub(crate) fn transfer(
    desk: &FolderDesk<'_>,
    step: &Step,
    target: &str,
    moves: bool,
) -> Result<FolderOutcome> {
    let file = desk.file;
    if moves {
        file.check_editor()?;
    }
    let Some((elsewhere, there)) = target_of(desk, target)? else { return Ok(FolderOutcome::NoMailbox) };
    let found = desk.found(&step.picked)?;
    let rest = step.rest.clone();
    let pairs = match &elsewhere {
        Some(to) => {
            let pairs = copy_into(desk, &found, (to, &there))?;
            if moves {
                let was_copied = |found: &&Found| pairs.iter().any(|(uid, _)| *uid == found.picked.uid);
                let ids = found.iter().filter(was_copied).map(|found| found.member.id.clone()).collect();
                remove(file, &desk.info.name, ids)?;
            }
            pairs
        }
        None if moves && there.number != desk.info.number => move_to(desk, &found, &there.name)?,
        None => copy_to(desk, &found, (&there.name, there.number), moves)?,
    };
    Ok(FolderOutcome::Transferred { uid_validity: there.uid_validity, pairs, rest })
}

/// The folder that a mailbox is, with its database where that is another one. `None` if there is none that the person sees.
fn target_of(desk: &FolderDesk<'_>, target: &str) -> Result<Option<(Option<MailFile>, FolderInfo)>> {
    let (place, name) = Place::of(target);
    let elsewhere = if place == desk.file.place {
        None
    } else {
        match MailFile::open(desk.ground.shared, desk.ground.person, &place) {
            Err(DatabaseError::NotFound { .. }) => return Ok(None),
            opened => Some(opened?),
        }
    };
    let to = elsewhere.as_ref().unwrap_or(desk.file);
    match to.folder(name) {
        Ok(there) => {
            to.check_author()?;
            Ok(Some((elsewhere, there)))
        }
        Err(DatabaseError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Copies messages into another database, as the messages that clients see.
fn copy_into(
    desk: &FolderDesk<'_>,
    found: &[Found],
    (to, there): (&MailFile, &FolderInfo),
) -> Result<Vec<(u32, u32)>> {
    let unkept = |error: std::io::Error| DatabaseError::Internal { reason: error.to_string() };
    let tracked = desk.tracker.up_to_date()?;
    let (mut edits, mut copied) = (Vec::new(), Vec::new());
    for found in found {
        let entry = desk.entry(found, &tracked)?;
        let message = match desk.messages.open(&desk.file.database, &entry.content, &desk.file.access) {
            Err(DatabaseError::NotFound { .. }) => continue,
            opened => opened?,
        };
        let mut writer = SourceWriter::new(message.bytes());
        let mut span = Span { start: 0, end: 0 };
        while span.start < message.bytes() {
            span.end = span.start.saturating_add(COPIED_AT_ONCE).min(message.bytes());
            let piece = message.read(span)?;
            if piece.is_empty() {
                break;
            }
            writer.push(&piece).map_err(unkept)?;
            span.start = span.end;
        }
        let source = writer.finish(0).map_err(unkept)?;
        let brought = Brought {
            flags: SystemFlags { deleted: false, ..entry.flags },
            keywords: &entry.keywords,
            date: Some(&entry.internal_date),
        };
        let edit = edit_of((to, &there.name), (&brought, &source), desk.now_ms)?;
        copied.push((found.picked.uid, edit.id.clone().unwrap_or_default()));
        edits.push(edit);
    }
    if edits.is_empty() {
        return Ok(Vec::new());
    }
    limit_outlines(&mut edits);
    let stored = to.database.update(edits, EditMode::Interactive, &to.access)?.wait()?;
    stored.into_iter().collect::<Result<Vec<_>>>()?;
    let snapshot = to.database.store().snapshot();
    let mut pairs = Vec::with_capacity(copied.len());
    for (uid, id) in copied {
        if let Some(there) = to.database.uid_at(&snapshot, there.number, &id)? {
            pairs.push((uid, number_of(there, &to.database)?));
        }
    }
    Ok(pairs)
}

/// The same documents are in the other folder from now on.
fn move_to(desk: &FolderDesk<'_>, found: &[Found], to: &str) -> Result<Vec<(u32, u32)>> {
    let file = desk.file;
    let change = |found: &Found| {
        let change = FolderChange::Move { from: desk.info.name.clone(), to: to.to_owned() };
        (found.member.id.clone(), change)
    };
    let changes = found.iter().map(change).collect();
    let placed = file.database.change_folders(changes, &file.access)?.wait()?;
    let mut pairs = Vec::with_capacity(found.len());
    for (found, placed) in found.iter().zip(placed) {
        match placed {
            Ok(placed) => {
                let uid = placed.uid.ok_or_else(|| DatabaseError::damaged("membership", &placed.id))?;
                pairs.push((found.picked.uid, number_of(uid, &file.database)?));
            }
            // It left in this moment.
            Err(DatabaseError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(pairs)
}

/// Copies are messages of their own: what is flagged of one is not of the other. Their contents are stored once.
fn copy_to(
    desk: &FolderDesk<'_>,
    found: &[Found],
    (to, folder): (&str, u32),
    moves: bool,
) -> Result<Vec<(u32, u32)>> {
    let file = desk.file;
    let (mut edits, mut copied) = (Vec::new(), Vec::new());
    for found in found {
        match copy_of(desk, found, to) {
            Ok(edit) => {
                copied.push((found, edit.id.clone().unwrap_or_default()));
                edits.push(edit);
            }
            Err(DatabaseError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if edits.is_empty() {
        return Ok(Vec::new());
    }
    limit_outlines(&mut edits);
    let stored = file.database.update(edits, EditMode::Interactive, &file.access)?.wait()?;
    stored.into_iter().collect::<Result<Vec<_>>>()?;
    if moves {
        // Moved to where it is: it is a new message there, and the old one is gone.
        let ids = copied.iter().map(|(found, _)| found.member.id.clone()).collect();
        remove(file, to, ids)?;
    }
    let snapshot = file.database.store().snapshot();
    let mut pairs = Vec::with_capacity(copied.len());
    for (found, id) in copied {
        if !moves {
            file.database.tell_moved(id.clone(), &desk.info.name, to, &file.access);
        }
        if let Some(uid) = file.database.uid_at(&snapshot, folder, &id)? {
            pairs.push((found.picked.uid, number_of(uid, &file.database)?));
        }
    }
    Ok(pairs)
}

fn copy_of(desk: &FolderDesk<'_>, found: &Found, to: &str) -> Result<Edit> {
    let file = desk.file;
    let id = &found.member.id;
    let document = file.database.read(id, &ReadOptions::default(), &file.access)?;
    let Some(Value::Object(mut memo)) = stored_value(&document.json) else {
        return Err(DatabaseError::damaged("document", id));
    };
    let attached = memo.get("_attachments").and_then(Value::as_object);
    let attached: Vec<String> =
        attached.map(|attached| attached.keys().cloned().collect()).unwrap_or_default();
    memo.retain(|name, _| !name.starts_with('_'));
    keep_date(found, &mut memo);
    own(file, &mut memo);
    let mut attachments = Vec::new();
    for name in attached {
        attachments.push(file.database.share_attachment(id, &name, None, &file.access)?);
    }
    let seen = file.database.is_read(&file.person, id)?;
    Ok(Edit {
        id: Some(new_id(desk.now_ms)),
        json: Value::Object(memo).to_string().into(),
        attachments,
        outline: Messages::stored(&file.database, (id, found.member.facts.content.as_ref()), &file.access)?,
        folders: vec![FolderChange::Add { folder: to.to_owned() }],
        read_by: seen.then(|| file.person.clone()),
        ..Edit::default()
    })
}

/// RFC 9051, section 6.4.7: a copy has the internal date of the message.
fn keep_date(found: &Found, memo: &mut Map<String, Value>) {
    if found.member.facts.internal_ms == 0 {
        memo.insert(INTERNAL_DATE.to_owned(), json!([found.member.added_ms, 0]));
    }
}

/// Takes documents out of a folder; those that are in no other one are deleted.
///
/// # Errors
/// What the store reports; some may be gone then.
pub(crate) fn remove(file: &MailFile, folder: &str, ids: Vec<String>) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    file.check_author()?;
    let database = &file.database;
    let snapshot = database.store().snapshot();
    let (mut leaving, mut deleted) = (Vec::new(), Vec::new());
    for id in ids {
        if database.count_folders_at(&snapshot, &id)? > 1 {
            leaving.push((id, FolderChange::Remove { folder: folder.to_owned() }));
        } else {
            deleted.push(id);
        }
    }
    drop(snapshot);
    let mut results: Vec<Result<()>> = Vec::new();
    if !leaving.is_empty() {
        file.check_editor()?;
        let placed = database.change_folders(leaving, &file.access)?.wait()?;
        results.extend(placed.into_iter().map(|placed| placed.map(drop)));
    }
    let mut edits = Vec::with_capacity(deleted.len());
    for id in deleted {
        match database.read(&id, &ReadOptions::default(), &file.access) {
            Ok(document) => edits.push(deletion(id, document.revision)),
            Err(DatabaseError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if !edits.is_empty() {
        let updated = database.update(edits, EditMode::Interactive, &file.access)?.wait()?;
        results.extend(updated.into_iter().map(|updated| updated.map(drop)));
    }
    for result in results {
        match result {
            // Somebody else has deleted it in this moment, or changed it: then it stays until it is expunged again.
            Ok(()) | Err(DatabaseError::NotFound { .. } | DatabaseError::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What deletes a document of this revision.
pub(crate) fn deletion(id: String, revision: String) -> Edit {
    let json = json!({"_deleted": true}).to_string().into();
    Edit { id: Some(id), revision: Some(revision), json, ..Edit::default() }
}

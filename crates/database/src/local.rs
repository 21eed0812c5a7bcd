//! `_local` documents: kept on this server, without history, never replicated, in no view.
//!
//! Those who may edit all documents share theirs. Who may only read, or edit only what is their own, has a space apart, so
//! that the checkpoints of their replications are kept and nobody else's are touched: at most [`OWN_DOCUMENTS_MAX`]
//! documents of `OWN_BYTES_MAX` each, that go [`EXPIRES_MS`] after they were last written.

#![allow(missing_docs, reason = "the names say it")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use scrinium_contents::wire::{Input, put_number};
use scrinium_document::json::JsonWriter;
use scrinium_document::{Fields, FieldsBuf, Limits, is_local, parse_document, validate_id};
use scrinium_store::{Batch, Direction, Family, KeyRange};

use crate::access::{Access, Level};
use crate::database::Database;
use crate::edit::{NO_LOCAL_ATTACHMENTS, Prepared};
use crate::error::{DatabaseError, Oversized, Result};
use crate::keys;
use crate::read::Document;
use crate::update::{Update, Updated};

const VERSION: u8 = 1;

/// A document of one person, which says when it was written.
const OWN_VERSION: u8 = 2;

/// A person has at most this many `_local` documents in a database.
pub const OWN_DOCUMENTS_MAX: usize = 100;

/// The JSON of one may have this many bytes.
const OWN_BYTES_MAX: usize = 64 << 10;

/// A checkpoint that was not written for 90 days counts no more, and one of a person's own goes. A replica that comes back
/// later may have to read everything again.
pub const EXPIRES_MS: u64 = 90 * 24 * 60 * 60 * 1000;

/// Whose `_local` documents somebody finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalSpace {
    /// Those of all who may edit.
    Shared,
    /// Those of one person.
    Own(String),
    /// None: who does not say who they are has no place of their own.
    Nobody,
}

impl LocalSpace {
    pub fn of(access: &Access) -> Self {
        let identity = access.identity().filter(|_| !access.is_everything());
        match identity.map(crate::Identity::name) {
            None => Self::Shared,
            Some(_) if access.level() >= Level::Editor => Self::Shared,
            Some(Some(person)) if access.level() >= Level::Reader => Self::Own(person.to_owned()),
            Some(_) => Self::Nobody,
        }
    }

    pub fn key(&self, database: &Database, id: &str) -> Vec<u8> {
        match self {
            Self::Own(person) => {
                [keys::own_locals(database.number(), person), id.as_bytes().to_vec()].concat()
            }
            Self::Shared | Self::Nobody => keys::local(database.number(), id),
        }
    }

    /// All of them, in the order of their ids; nothing where there are none.
    pub fn range(&self, database: &Database) -> (Vec<u8>, Vec<u8>) {
        match self {
            Self::Shared => keys::local_range(database.number()),
            Self::Own(person) => {
                let from = keys::own_locals(database.number(), person);
                let to = keys::successor(&from);
                (from, to)
            }
            Self::Nobody => (Vec::new(), Vec::new()),
        }
    }

    /// The id in a key of [`key`](Self::key).
    pub fn id_of<'k>(&self, database: &Database, key: &'k [u8]) -> Option<&'k str> {
        match self {
            Self::Own(person) => {
                let id = key.strip_prefix(keys::own_locals(database.number(), person).as_slice())?;
                std::str::from_utf8(id).ok()
            }
            Self::Shared | Self::Nobody => keys::id_of(key),
        }
    }

    fn check_bytes(&self, id: &str, bytes: usize) -> Result<()> {
        if matches!(self, Self::Own(_)) && bytes > OWN_BYTES_MAX {
            return Err(DatabaseError::TooLarge {
                what: Oversized::Document,
                reason: format!("{id}: a local document of your own may have {OWN_BYTES_MAX} bytes."),
            });
        }
        if *self == Self::Nobody {
            return Err(DatabaseError::Forbidden { reason: "Log in to store local documents.".to_owned() });
        }
        Ok(())
    }

    fn encode(&self, generation: u64, fields: &FieldsBuf, now_ms: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(fields.as_bytes().len() + 16);
        if matches!(self, Self::Own(_)) {
            out.push(OWN_VERSION);
            put_number(&mut out, now_ms);
        } else {
            out.push(VERSION);
        }
        put_number(&mut out, generation);
        out.extend_from_slice(fields.as_bytes());
        out
    }
}

/// A stored local document: its generation, its fields, and of one person's own when it was written.
pub fn decode(stored: &[u8]) -> Option<(u64, &[u8], Option<u64>)> {
    let mut input = Input::new(stored);
    let written_ms = match input.byte()? {
        VERSION => None,
        OWN_VERSION => Some(input.number()?),
        _ => return None,
    };
    Some((input.number()?, input.rest(), written_ms))
}

/// A stored local document as JSON.
pub fn render(database: &Database, id: &str, stored: &[u8]) -> Result<Document> {
    let damaged = || DatabaseError::damaged("local document", id);
    let (generation, fields, _) = decode(stored).ok_or_else(damaged)?;
    let fields = Fields::decode(fields).map_err(|_| damaged())?;
    let revision = format!("0-{generation}");
    let mut json = JsonWriter::with_capacity(stored.len() + 64);
    json.literal("{\"_id\":").string(id).literal(",\"_rev\":").string(&revision);
    crate::read::write_fields(&mut json, &fields, database, id)?;
    json.literal("}");
    let json = json.into_text();
    Ok(Document { id: id.to_owned(), revision, deleted: false, json })
}

/// Whether what was written then counts no more.
pub const fn is_expired(written_ms: u64, now_ms: u64) -> bool {
    written_ms.saturating_add(EXPIRES_MS) < now_ms
}

impl Database {
    /// A `_local` document as somebody finds it; `id` has its prefix.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn read_local(&self, id: &str, access: &Access) -> Result<Document> {
        self.check_there()?;
        access.check_reader()?;
        let space = LocalSpace::of(access);
        if space == LocalSpace::Nobody {
            return Err(DatabaseError::missing());
        }
        let stored = self.store().get(Family::Point, &space.key(self, id))?;
        render(self, id, &stored.ok_or_else(DatabaseError::missing)?)
    }

    /// Writes a `_local` document, or removes it: by `delete` one that is there, by `"_deleted":true` in the JSON one that
    /// may be. As in CouchDB its revision is one more than the one that is named, whatever is there: it is no means
    /// against two who write at once.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], [`DatabaseError::TooLarge`] for one that is too large for a person's own or would be
    /// one too many, what is wrong with the JSON, and what the store reports.
    pub fn write_local(
        self: &Arc<Self>,
        id: &str,
        json: &[u8],
        delete: bool,
        revision: Option<&str>,
        access: &Access,
    ) -> Result<Update> {
        if !is_local(id) {
            return Err(DatabaseError::bad_request("The id of a local document begins with `_local/`."));
        }
        validate_id(id)?;
        let (named, fields) = if delete { (None, None) } else { self.parse_local(json)? };
        let named = revision.map(str::to_owned).or(named);
        let access = access.clone();
        let edit = LocalEdit { id: id.to_owned(), named, fields, must_be_there: delete, access };
        let results = self.write_locals(vec![edit])?;
        match results.into_iter().next() {
            Some(Err(error)) => Err(error),
            updated => Ok(Update::new(updated.into_iter().collect(), None)),
        }
    }

    /// Stores edits of local documents as one batch, which is durable when this returns.
    ///
    /// # Errors
    /// What the store reports; then none of them is stored.
    pub fn write_locals(self: &Arc<Self>, edits: Vec<LocalEdit>) -> Result<Vec<Result<Updated>>> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.write_locals(edits),
        };
        let writer = self.lock_writer(self.ahead.load(Ordering::Acquire))?;
        let mut batch = Batch::new();
        let mut written = HashMap::new();
        let results: Vec<Result<Updated>> =
            edits.into_iter().map(|edit| self.add_local(&mut batch, &mut written, edit)).collect();
        if !batch.is_empty() {
            // The next one to write these documents must find them: local documents have no list of what
            // is on its way, so the lock is held until they are stored.
            self.submit(&writer, batch, (), |_| {})?.wait()?;
        }
        drop(writer);
        Ok(results)
    }

    /// Adds an edit to a batch; `written` says which documents are there after what the batch has already, by their keys.
    fn add_local(
        &self,
        batch: &mut Batch,
        written: &mut HashMap<Vec<u8>, bool>,
        LocalEdit { id, named, fields, must_be_there, access }: LocalEdit,
    ) -> Result<Updated> {
        access.check_reader()?;
        let named = named.map_or(Ok(0), |named| generation_of(&named))?;
        let space = LocalSpace::of(&access);
        space.check_bytes(&id, fields.as_ref().map_or(0, |fields| fields.as_bytes().len()))?;
        let key = space.key(self, &id);
        let is_there = match written.get(&key) {
            Some(is_there) => *is_there,
            None => self.store().contains(Family::Point, &key)?,
        };
        let now_ms = self.now_ms();
        let written_ms = keys::local_written(self.number(), &id);
        let generation = match &fields {
            None => {
                if must_be_there && !is_there {
                    return Err(DatabaseError::missing());
                }
                batch.delete(Family::Point, &key);
                if space == LocalSpace::Shared {
                    batch.delete(Family::Point, &written_ms);
                }
                written.insert(key, false);
                0
            }
            Some(fields) => {
                if !is_there {
                    self.make_room(&space, batch, written)?;
                }
                let generation = named.saturating_add(1);
                batch.put(Family::Point, &key, &space.encode(generation, fields, now_ms));
                if space == LocalSpace::Shared {
                    batch.put(Family::Point, &written_ms, &now_ms.to_be_bytes());
                }
                written.insert(key, true);
                generation
            }
        };
        Ok(Updated { id, revision: format!("0-{generation}") })
    }

    /// Removes what has expired of a person's own, so that there is room for one more.
    fn make_room(
        &self,
        space: &LocalSpace,
        batch: &mut Batch,
        written: &HashMap<Vec<u8>, bool>,
    ) -> Result<()> {
        if !matches!(space, LocalSpace::Own(_)) {
            return Ok(());
        }
        let now_ms = self.now_ms();
        let (from, to) = space.range(self);
        let snapshot = self.store().snapshot();
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Point, range, Direction::Forward);
        let there = written.iter().filter(|(key, is_there)| **is_there && key.starts_with(&from));
        let mut kept = there.count();
        while let Some((key, stored)) = cursor.next()? {
            if written.contains_key(key) {
                continue;
            }
            match decode(stored).and_then(|(_, _, written_ms)| written_ms) {
                Some(written_ms) if !is_expired(written_ms, now_ms) => kept += 1,
                _ => batch.delete(Family::Point, key),
            }
        }
        if kept < OWN_DOCUMENTS_MAX {
            return Ok(());
        }
        Err(DatabaseError::TooLarge {
            what: Oversized::LocalDocuments,
            reason: format!(
                "You have {OWN_DOCUMENTS_MAX} local documents in this database, and may not have more; delete some."
            ),
        })
    }

    /// The revision that a local document names, and its fields; none where it is deleted.
    fn parse_local(&self, json: &[u8]) -> Result<(Option<String>, Option<FieldsBuf>)> {
        let limits =
            Limits { document_bytes: self.context.options().document_max_bytes as u64, ..Limits::default() };
        let parsed = parse_document(json, &limits)?;
        if !parsed.attachments.is_empty() {
            return Err(DatabaseError::bad_request(NO_LOCAL_ATTACHMENTS));
        }
        let fields = (!parsed.deleted).then_some(parsed.fields);
        Ok((parsed.revision.map(|revision| revision.to_string()), fields))
    }
}

/// An edit of a local document.
pub struct LocalEdit {
    id: String,
    /// The revision that it names, such as `0-1`.
    named: Option<String>,
    /// `None`: it is removed.
    fields: Option<FieldsBuf>,
    /// It is an error to remove one that is not there.
    must_be_there: bool,
    access: Access,
}

/// The number in a local document's revision, such as `0-1`.
fn generation_of(revision: &str) -> Result<u64> {
    let number = revision.strip_prefix("0-").and_then(|number| number.parse().ok());
    number.ok_or_else(|| DatabaseError::bad_request("Invalid rev format"))
}

impl LocalEdit {
    /// One that came among edits of other documents.
    pub(crate) fn of(edit: Prepared) -> Self {
        let named = edit.revision.map(|revision| revision.to_string());
        let fields = edit.fields.filter(|_| !edit.deleted);
        Self { id: edit.id, named, fields, must_be_there: false, access: edit.access }
    }
}

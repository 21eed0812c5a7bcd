//! `_local` documents: kept on this server, without history, never replicated, in no view.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use scrinium_document::json::JsonWriter;
use scrinium_document::{Fields, FieldsBuf, Limits, is_local, parse_document, validate_id};
use scrinium_store::{Batch, Family};

use crate::access::Access;
use crate::database::Database;
use crate::edit::Prepared;
use crate::error::{DatabaseError, Result};
use crate::keys;
use crate::read::Document;
use crate::update::{Update, Updated};
use crate::wire::{Input, put_number};

const VERSION: u8 = 1;

fn encode(generation: u64, fields: &FieldsBuf) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_number(&mut out, generation);
    out.extend_from_slice(fields.as_bytes());
    out
}

pub(crate) fn decode(stored: &[u8]) -> Option<(u64, &[u8])> {
    let mut input = Input::new(stored);
    if input.byte()? != VERSION {
        return None;
    }
    Some((input.number()?, input.rest()))
}

/// A stored local document as JSON.
pub(crate) fn render(database: &Database, id: &str, stored: &[u8]) -> Result<Document> {
    let damaged = || DatabaseError::damaged("local document", id);
    let (generation, fields) = decode(stored).ok_or_else(damaged)?;
    let fields = Fields::decode(fields).map_err(|_| damaged())?;
    let revision = format!("0-{generation}");
    let mut json = JsonWriter::with_capacity(stored.len() + 64);
    json.literal("{\"_id\":").string(id).literal(",\"_rev\":").string(&revision);
    crate::read::write_fields(&mut json, &fields, database, id)?;
    json.literal("}");
    let json = json.into_text();
    Ok(Document { id: id.to_owned(), revision, deleted: false, json })
}

impl Database {
    /// A `_local` document; `id` has its prefix.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and what the store reports.
    pub fn read_local(&self, id: &str) -> Result<Document> {
        self.check_there()?;
        let stored = self.store().get(Family::Point, &keys::local(self.number(), id))?;
        render(self, id, &stored.ok_or_else(DatabaseError::missing)?)
    }

    /// Writes a `_local` document, or removes it. Unlike other documents it may be written without
    /// naming its revision; one that is named must be the present one.
    ///
    /// # Errors
    /// [`DatabaseError::Conflict`], what is wrong with the JSON, and what the store reports.
    pub fn write_local(
        self: &Arc<Self>,
        id: &str,
        json: &[u8],
        delete: bool,
        revision: Option<&str>,
    ) -> Result<Update> {
        if !is_local(id) {
            return Err(DatabaseError::bad_request("The id of a local document begins with `_local/`."));
        }
        validate_id(id)?;
        let (named, fields) = if delete { (None, FieldsBuf::default()) } else { self.parse_local(json)? };
        let named = revision.map(str::to_owned).or(named);
        let access = Access::everything();
        let edit = LocalEdit { id: id.to_owned(), named, fields: (!delete).then_some(fields), access };
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
    pub(crate) fn write_locals(self: &Arc<Self>, edits: Vec<LocalEdit>) -> Result<Vec<Result<Updated>>> {
        let _stays = match self.stay() {
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

    /// Adds an edit to a batch; `written` has the generations of documents that the batch has already.
    fn add_local(
        &self,
        batch: &mut Batch,
        written: &mut HashMap<String, Option<u64>>,
        LocalEdit { id, named, fields, access }: LocalEdit,
    ) -> Result<Updated> {
        access.check_local()?;
        let key = keys::local(self.number(), &id);
        let present = match written.get(&id) {
            Some(present) => *present,
            // One that cannot be read can be replaced and removed.
            None => {
                let stored = self.store().get(Family::Point, &key)?;
                stored.map(|stored| decode(&stored).map_or(0, |(generation, _)| generation))
            }
        };
        if named.is_some_and(|named| present.is_none_or(|present| named != format!("0-{present}"))) {
            return Err(DatabaseError::Conflict);
        }
        let generation = match &fields {
            None => {
                present.ok_or_else(DatabaseError::missing)?;
                batch.delete(Family::Point, &key);
                written.insert(id.clone(), None);
                0
            }
            Some(fields) => {
                let generation = present.unwrap_or(0).saturating_add(1);
                batch.put(Family::Point, &key, &encode(generation, fields));
                written.insert(id.clone(), Some(generation));
                generation
            }
        };
        Ok(Updated { id, revision: format!("0-{generation}") })
    }

    fn parse_local(&self, json: &[u8]) -> Result<(Option<String>, FieldsBuf)> {
        let limits =
            Limits { document_bytes: self.common.options().document_max_bytes as u64, ..Limits::default() };
        let parsed = parse_document(json, &limits)?;
        Ok((parsed.revision.map(|revision| revision.to_string()), parsed.fields))
    }
}

/// An edit of a local document.
pub(crate) struct LocalEdit {
    id: String,
    /// The revision that it names, such as `0-1`.
    named: Option<String>,
    /// `None`: it is removed.
    fields: Option<FieldsBuf>,
    access: Access,
}

impl LocalEdit {
    /// One that came among edits of other documents.
    pub(crate) fn of(edit: Prepared) -> Self {
        let named = edit.revision.map(|revision| revision.to_string());
        Self { id: edit.id, named, fields: edit.fields.filter(|_| !edit.deleted), access: edit.access }
    }
}

//! `_local` documents: kept on this server, without history, never replicated, in no view.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use scrinium_document::{Fields, FieldsBuf, Limits, is_local, parse_document};
use scrinium_store::{Batch, Family};

use crate::database::Database;
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
    let mut json = format!("{{\"_id\":{},\"_rev\":\"{revision}\"", serde_json::Value::from(id)).into_bytes();
    crate::read::write_fields(&mut json, &fields, database, id)?;
    json.push(b'}');
    let json = String::from_utf8(json).map_err(|_| damaged())?;
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
        let _stays = match self.stay() {
            Ok(stays) => stays,
            Err(there) => return there.write_local(id, json, delete, revision),
        };
        // A local revision ("0-1") is of no generation that documents have, so it is taken out first.
        let (named, fields) = if delete { (None, FieldsBuf::default()) } else { self.parse_local(json)? };
        let named = revision.map(str::to_owned).or(named);
        let writer = self.lock_writer(self.ahead.load(Ordering::Acquire))?;
        let key = keys::local(self.number(), id);
        let stored = self.store().get(Family::Point, &key)?;
        let present = match &stored {
            None => None,
            Some(stored) => {
                let (generation, _) =
                    decode(stored).ok_or_else(|| DatabaseError::damaged("local document", id))?;
                Some(generation)
            }
        };
        if named.is_some_and(|named| present.is_none_or(|present| named != format!("0-{present}"))) {
            return Err(DatabaseError::Conflict);
        }
        let mut batch = Batch::new();
        let generation = if delete {
            present.ok_or_else(DatabaseError::missing)?;
            batch.delete(Family::Point, &key);
            0
        } else {
            let generation = present.unwrap_or(0) + 1;
            batch.put(Family::Point, &key, &encode(generation, &fields));
            generation
        };
        // The next one to write this document must find this one: local documents have no list of what
        // is on its way, so the lock is held until it is stored.
        let commit = self.submit(&writer, batch, (), |_| {})?;
        commit.wait()?;
        drop(writer);
        let updated = Updated { id: id.to_owned(), revision: format!("0-{generation}") };
        Ok(Update::new(vec![Ok(updated)], None))
    }

    fn parse_local(&self, json: &[u8]) -> Result<(Option<String>, FieldsBuf)> {
        let invalid = || DatabaseError::bad_request("invalid UTF-8 JSON");
        let mut members: serde_json::Map<String, serde_json::Value> =
            match serde_json::from_slice(json).map_err(|_| invalid())? {
                serde_json::Value::Object(members) => members,
                _ => return Err(DatabaseError::bad_request("Document must be a JSON object")),
            };
        let named = match members.remove("_rev") {
            Some(serde_json::Value::String(revision)) => Some(revision),
            _ => None,
        };
        for ignored in ["_id", "_revisions", "_deleted"] {
            members.remove(ignored);
        }
        let limits =
            Limits { document_bytes: self.common.options().document_max_bytes as u64, ..Limits::default() };
        let text = serde_json::Value::Object(members).to_string();
        Ok((named, parse_document(text.as_bytes(), &limits)?.fields))
    }
}

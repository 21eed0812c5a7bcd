//! An entry of the queue as a document: the fields of its snapshot, and the message's source as an attachment.

use scrinium_mail_queue::{Change, QueueEntry, Record, RecordError};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::memo::field;
use crate::message::SOURCE_ATTACHMENT;

/// The field `Form` of an entry of the queue.
pub const QUEUED_FORM: &str = "Queued Message";

/// An entry as it stands in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedDocument {
    /// The entry.
    pub entry: QueueEntry,
    /// The document's revision.
    pub revision: String,
    /// Where in the source the message begins.
    pub start_bytes: u64,
}

/// Why a document is no entry.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueuedDocumentError {
    /// Its fields.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Somebody has put another document there.
    #[error("a document of the mail queue is no entry of it")]
    OtherForm,
}

impl QueuedDocument {
    /// The document's fields, without id and revision.
    #[must_use]
    pub fn fields_of(entry: &QueueEntry, start_bytes: u64, now_ms: u64) -> Value {
        let mut fields = Map::new();
        fields.insert(field::FORM.to_owned(), Value::from(QUEUED_FORM));
        if start_bytes > 0 {
            fields.insert(field::SOURCE_START.to_owned(), Value::from(start_bytes));
        }
        fields.extend(entry.snapshot(now_ms).to_fields());
        Value::Object(fields)
    }

    /// The document in a new state, with the source that it has.
    #[must_use]
    pub fn edited(&self, now_ms: u64) -> Value {
        let mut fields = Self::fields_of(&self.entry, self.start_bytes, now_ms);
        if let Some(fields) = fields.as_object_mut() {
            fields.insert("_id".to_owned(), Value::from(self.entry.id.as_str()));
            fields.insert("_rev".to_owned(), Value::from(self.revision.as_str()));
            fields.insert("_attachments".to_owned(), json!({SOURCE_ATTACHMENT: {"stub": true}}));
        }
        fields
    }

    /// Reads a document.
    ///
    /// # Errors
    /// [`QueuedDocumentError`]
    pub fn read(mut fields: Map<String, Value>) -> Result<Self, QueuedDocumentError> {
        if fields.get(field::FORM).and_then(Value::as_str) != Some(QUEUED_FORM) {
            return Err(QueuedDocumentError::OtherForm);
        }
        let revision = fields.get("_rev").and_then(Value::as_str).unwrap_or_default().to_owned();
        let start_bytes = fields.get(field::SOURCE_START).and_then(Value::as_u64).unwrap_or(0);
        for name in ["_id", "_rev", "_attachments", field::FORM, field::SOURCE_START] {
            fields.shift_remove(name);
        }
        match Record::from_fields(Value::Object(fields))?.change {
            Change::Queued(entry) => Ok(Self { entry: *entry, revision, start_bytes }),
            _ => Err(QueuedDocumentError::OtherForm),
        }
    }
}

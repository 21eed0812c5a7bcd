//! Messages about meetings: they go through the keeper of calendars before they are delivered.

use std::sync::Arc;

use bytes::Bytes;
use scrinium_database::{AttachmentReader, DatabaseError};
use scrinium_directory::Person;
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value};

use crate::address::WrittenAddress;
use crate::envelope::EnvelopeItems;
use crate::memo::field;
use crate::source::MessageSource;

/// Longer messages are delivered as they are.
const MESSAGE_MAX_BYTES: u64 = 32 << 20;

/// Read of a message at a time.
const PIECE_BYTES: usize = 128 << 10;

/// The field of a delivered memo that says what the calendar made of it.
pub(crate) const CALENDAR_NOTE: &str = "$CalendarNote";

/// Keeps calendars. What it is given may be given to it again, after a crash or for another try.
pub trait CalendarKeeper: Send + Sync + 'static {
    /// Files what a message brings, and says in words why, or why not; `None` for what is no message about a meeting. What it stores
    /// and sends is durable when it returns. Blocks.
    ///
    /// # Errors
    /// What a database reports; the message is tried again then.
    fn file(&self, arrival: &CalendarArrival<'_>) -> Result<Option<String>, DatabaseError>;
}

/// A message on its way into somebody's mail database.
pub struct CalendarArrival<'a> {
    /// For whom it is.
    pub person: &'a Arc<Person>,
    /// Their mail database.
    pub database: &'a OpenDatabase,
    /// The address of its author, as it was written.
    pub author: String,
    /// The author has logged in here under an address of theirs (the short name of the person), or the author's domain vouches for the
    /// message.
    pub proof: AuthorProof,
    /// The whole message.
    pub source: Bytes,
}

/// What is known of a message's author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorProof {
    /// Nothing.
    Nothing,
    /// The author's domain vouches for the message (DMARC).
    Domain,
    /// A person who has logged in, by short name, put it into the mail.box.
    Person(String),
}

/// Whether a memo may be about a meeting.
pub(crate) fn brings_calendar(memo: &Map<String, Value>) -> bool {
    let is_calendar =
        |kind: &Value| kind.as_str().is_some_and(|kind| matches!(kind, "text/calendar" | "application/ics"));
    let types = memo.get(field::FILE_TYPES).and_then(Value::as_array);
    // A message that is nothing but a calendar is read as text.
    let body = memo.get(field::BODY).and_then(Value::as_str);
    types.is_some_and(|types| types.iter().any(is_calendar))
        || body.is_some_and(|body| body.trim_start().starts_with("BEGIN:VCALENDAR"))
}

/// Who wrote a memo, as far as that is proven.
pub(crate) fn proof_of(memo: &Map<String, Value>) -> (String, AuthorProof) {
    let written = memo.get(field::FROM).and_then(Value::as_str).unwrap_or_default();
    let author = WrittenAddress::read(written).address;
    let items = EnvelopeItems::of_memo(memo);
    let proof = match (items.submitter.filter(|name| !name.is_empty()), items.sender) {
        (Some(name), _) => AuthorProof::Person(name),
        (None, Some(sender)) if sender.is_author_vouched_for => AuthorProof::Domain,
        (None, _) => AuthorProof::Nothing,
    };
    (author, proof)
}

/// All of a message; nothing where it is too long.
pub(crate) fn whole(reader: &AttachmentReader) -> Result<Option<Bytes>, DatabaseError> {
    if reader.length > MESSAGE_MAX_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(reader.length).unwrap_or(0));
    loop {
        let piece = reader.read(bytes.len() as u64, PIECE_BYTES)?;
        if piece.is_empty() {
            return Ok(Some(bytes.into()));
        }
        bytes.extend_from_slice(&piece);
    }
}

/// The same of one that was made of a memo.
pub(crate) fn whole_made(source: &MessageSource) -> Result<Option<Bytes>, DatabaseError> {
    if source.len() > MESSAGE_MAX_BYTES {
        return Ok(None);
    }
    source.bytes().map(Some).map_err(|error| DatabaseError::Internal { reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_may_be_about_a_meeting_is_seen_by_its_memo() {
        let of = |memo: Value| brings_calendar(memo.as_object().unwrap());
        assert!(of(json!({"$FileTypes": ["image/png", "text/calendar"]})));
        assert!(of(json!({"Body": "\r\nBEGIN:VCALENDAR\r\n"})));
        assert!(!of(json!({"$FileTypes": ["text/plain"], "Body": "see BEGIN:VCALENDAR"})));
    }

    #[test]
    fn an_author_is_believed_who_logged_in_or_whose_domain_vouches() {
        let of = |envelope: Value| {
            let memo = json!({"From": "Ada <ada@acme.example>", "$Envelope": envelope});
            proof_of(memo.as_object().unwrap())
        };
        assert_eq!(
            of(json!({"submitter": "ada"})),
            ("ada@acme.example".to_owned(), AuthorProof::Person("ada".to_owned()))
        );
        assert_eq!(of(json!({"submitter": ""})).1, AuthorProof::Nothing);
        assert_eq!(of(json!({"sender": {"is_vouched_for": true}})).1, AuthorProof::Nothing);
        assert_eq!(of(json!({"sender": {"is_author_vouched_for": true}})).1, AuthorProof::Domain);
        assert_eq!(of(Value::Null).1, AuthorProof::Nothing);
    }
}

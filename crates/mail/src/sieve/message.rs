//! A message as a script sees it: its head and its beginning from its source, its text from its memo.

use std::borrow::Cow;
use std::sync::OnceLock;

use bytes::Bytes;
use scrinium_database::{AttachmentReader, DatabaseError};
use scrinium_sieve::{BodyPart, HeaderField, Message, PartForm};
use serde_json::{Map, Value};

use super::head::{FieldPlaces, fields_of, read_head};
use crate::memo::field;
use crate::message::decoded_words;
use crate::source::MessageSource;

/// So much of what follows the head is looked at as it stands in the source.
const BODY_MAX_BYTES: usize = 1 << 20;

/// Where the bytes of a message are.
pub(crate) enum SourceOf<'s> {
    /// As it came.
    Coming(&'s MessageSource),
    /// In a database.
    Stored(Box<AttachmentReader>),
    /// Made of a memo.
    Made(MessageSource),
}

impl SourceOf<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Coming(source) => source.len(),
            Self::Made(source) => source.len(),
            Self::Stored(reader) => reader.length,
        }
    }

    fn piece(&self, position: u64, most_bytes: usize) -> Result<Bytes, DatabaseError> {
        let unreadable = |error: std::io::Error| DatabaseError::Internal { reason: error.to_string() };
        match self {
            Self::Coming(source) => source.piece(position, most_bytes).map_err(unreadable),
            Self::Made(source) => source.piece(position, most_bytes).map_err(unreadable),
            Self::Stored(reader) => reader.read(position, most_bytes),
        }
    }
}

/// A message that a script looks at.
pub(super) struct ScriptMessage<'m> {
    memo: &'m Map<String, Value>,
    source: SourceOf<'m>,
    head: Vec<u8>,
    fields: Vec<FieldPlaces>,
    body_start: u64,
    raw_body: OnceLock<Bytes>,
}

impl<'m> ScriptMessage<'m> {
    /// Reads the head.
    ///
    /// # Errors
    /// What reading the source gives.
    pub(super) fn read(memo: &'m Map<String, Value>, source: SourceOf<'m>) -> Result<Self, DatabaseError> {
        // A line of an mbox may stand before it.
        let start = memo.get(field::SOURCE_START).and_then(Value::as_u64).unwrap_or(0);
        let (head, body_start) = read_head(|place, bytes| source.piece(start + place, bytes))?;
        let fields = fields_of(&head);
        let body_start = start + body_start;
        Ok(Self { memo, source, head, fields, body_start, raw_body: OnceLock::new() })
    }

    /// How many servers it went through (RFC 5321 §4.4).
    pub(super) fn hops(&self) -> usize {
        let is_trace = |(name, _): &&FieldPlaces| {
            self.head.get(name.clone()).is_some_and(|name| name.eq_ignore_ascii_case(b"received"))
        };
        self.fields.iter().filter(is_trace).count()
    }
}

impl Message for ScriptMessage<'_> {
    fn size_bytes(&self) -> u64 {
        self.source.len()
    }

    fn field(&self, index: usize) -> Option<HeaderField<'_>> {
        let (name, value) = self.fields.get(index)?;
        Some(HeaderField { name: self.head.get(name.clone())?, value: self.head.get(value.clone())? })
    }

    fn decode(&self, value: &[u8]) -> String {
        decoded_words(&String::from_utf8_lossy(value))
    }

    fn raw_body(&self) -> &[u8] {
        // What cannot be read has nothing that a script could find; the message itself is delivered, or not, by others.
        self.raw_body.get_or_init(|| self.source.piece(self.body_start, BODY_MAX_BYTES).unwrap_or_default())
    }

    /// The text that the memo shows, as the only part.
    fn part(&self, index: usize, _form: PartForm) -> Option<BodyPart<'_>> {
        let text = self.memo.get(field::BODY).and_then(Value::as_str).unwrap_or_default();
        let part = BodyPart { content_type: Cow::Borrowed("text/plain"), text: Cow::Borrowed(text) };
        (index == 0).then_some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<(String, String)>, String) {
        let memo = Map::new();
        let source = MessageSource::from(Bytes::from(text.to_owned()));
        let message = ScriptMessage::read(&memo, SourceOf::Coming(&source)).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = (0..).map_while(|index| message.field(index));
        let fields = fields.map(|field| (text(field.name), text(field.value))).collect();
        (fields, text(message.raw_body()))
    }

    #[test]
    fn fields_and_body_are_where_they_stand() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let two = vec![pair("A", " b\r\n c"), pair("D", "")];
        assert_eq!(read("A: b\r\n c\r\nno field\r\nD :\r\n\r\nbody\r\n"), (two, "body\r\n".to_owned()));
        assert_eq!(read("A: b\n\nbody"), (vec![pair("A", " b")], "body".to_owned()));
        assert_eq!(read("\r\nA: b\r\n\r\n"), (vec![], "A: b\r\n\r\n".to_owned()));
        assert_eq!(read("A: b"), (vec![pair("A", " b")], String::new()));
        assert_eq!(read(""), (vec![], String::new()));
        // Longer than one piece, and the empty line lies across two.
        for filler in (32 << 10) - 12..(32 << 10) + 2 {
            let long = format!("A: {}\r\n\r\nbody", "x".repeat(filler));
            let (fields, body) = read(&long);
            assert_eq!((fields.len(), body.as_str()), (1, "body"), "{filler}");
        }
    }
}

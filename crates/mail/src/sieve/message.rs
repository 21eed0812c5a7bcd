//! A message as a script sees it: its head and its beginning from its source, its text from its memo.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use scrinium_database::{AttachmentReader, DatabaseError};
use scrinium_sieve::{BodyPart, HeaderField, Message, PartForm};
use serde_json::{Map, Value};

use crate::memo::field;
use crate::message::decoded_words;
use crate::source::MessageSource;

/// A longer head is looked at so far.
const HEAD_MAX_BYTES: usize = 1 << 20;

/// Read of a head at a time.
const PIECE_BYTES: usize = 32 << 10;

/// So much of what follows the head is looked at as it stands in the source.
const BODY_MAX_BYTES: usize = 1 << 20;

/// Fields that are looked at, from the top.
const FIELDS_MAX: usize = 2_000;

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
    fields: Vec<(Range<usize>, Range<usize>)>,
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
        let mut head: Vec<u8> = Vec::new();
        let mut end = None;
        while end.is_none() && head.len() < HEAD_MAX_BYTES {
            let looked_at = head.len().saturating_sub(3);
            let piece = source.piece(start + head.len() as u64, PIECE_BYTES)?;
            if piece.is_empty() {
                break;
            }
            head.extend_from_slice(&piece);
            end = end_of_head(&head, looked_at);
        }
        let (head_bytes, body_start) = end.unwrap_or((head.len(), head.len()));
        head.truncate(head_bytes);
        let fields = fields_of(&head);
        let body_start = start + body_start as u64;
        Ok(Self { memo, source, head, fields, body_start, raw_body: OnceLock::new() })
    }

    /// How many servers it went through (RFC 5321 §4.4).
    pub(super) fn hops(&self) -> usize {
        let is_trace = |(name, _): &&(Range<usize>, Range<usize>)| {
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

/// Where a head ends, and what follows it begins, looked for from `from` on.
fn end_of_head(head: &[u8], from: usize) -> Option<(usize, usize)> {
    if from == 0 && (head.starts_with(b"\r\n") || head.starts_with(b"\n")) {
        return Some((0, if head.starts_with(b"\n") { 1 } else { 2 }));
    }
    memchr::memchr_iter(b'\n', head.get(from..)?).find_map(|place| {
        let next = from + place + 1;
        match head.get(next..)? {
            [b'\n', ..] => Some((next, next + 1)),
            [b'\r', b'\n', ..] => Some((next, next + 2)),
            _ => None,
        }
    })
}

/// Names and values of fields, each value with its folds and without the end of its last line.
fn fields_of(head: &[u8]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut fields: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    let mut start = 0;
    while let Some(rest) = head.get(start..).filter(|rest| !rest.is_empty()) {
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |place| place + 1);
        let line = rest.get(..length).unwrap_or_default();
        let end = start + line.trim_ascii_end().len();
        let is_fold = matches!(line.first(), Some(b' ' | b'\t'));
        if is_fold {
            // RFC 5322 §2.2.3
            if let Some((_, value)) = fields.last_mut() {
                value.end = end.max(value.end);
            }
        } else if fields.len() >= FIELDS_MAX {
            break;
        } else if let Some(colon) = memchr::memchr(b':', line) {
            let name = line.get(..colon).unwrap_or_default().trim_ascii_end().len();
            let value = start + colon + 1;
            fields.push((start..start + name, value..end.max(value)));
        }
        start += length;
    }
    fields
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
        for filler in PIECE_BYTES - 12..PIECE_BYTES + 2 {
            let long = format!("A: {}\r\n\r\nbody", "x".repeat(filler));
            let (fields, body) = read(&long);
            assert_eq!((fields.len(), body.as_str()), (1, "body"), "{filler}");
        }
    }
}

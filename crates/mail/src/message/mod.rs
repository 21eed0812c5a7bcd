//! An RFC 5322 message becomes the fields of a memo.
//!
//! Nothing is ever refused: whatever the bytes are, a memo comes out, and what was damaged or missing is said
//! in its field `$ParseNotes`. The source itself is kept with the memo, byte for byte, by the one who calls.
//!
//! A message is read line by line, once, with at most a few megabytes of it in memory: a header, the beginning of each
//! text, and of what is listed as a file nothing but its length.

mod addresses;
mod body;
mod charset;
mod code_pages;
mod date;
mod decode;
mod embedded;
mod encoded_words;
mod fields;
mod flowed;
mod guess;
mod header;
mod html;
pub(crate) mod input;
mod layout;
mod leaf;
mod lines;
mod parameters;
mod part;
mod seven_bit;
mod structure;
mod written_date;
mod zones;

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Map, Value};

use crate::memo::field;
use crate::notes::Notes;
use fields::HeaderFields;
use input::Input;
use lines::PartLines;
use structure::WithLineFeeds;

pub(crate) use written_date::{is_weekday, month_named};

pub use scrinium_database::SOURCE_ATTACHMENT;

/// Its content type.
pub const SOURCE_CONTENT_TYPE: &str = "message/rfc822";

/// At most `limit` addresses of a field of a head, each as a memo shows it.
pub(crate) fn addresses_of(field: &str, limit: usize) -> Vec<String> {
    addresses::read(field.as_bytes(), charset::CharacterSet::Utf8, limit, &mut Notes::default())
}

/// What the caller knows about a message beyond its bytes.
#[derive(Debug, Clone, Default)]
pub struct MessageOptions {
    /// When it was delivered, in seconds since 1970; without it, what the message itself tells of it.
    pub delivered_s: Option<i64>,
}

/// The fields of the memo that `source` stands for: `Form`, `From`, `SendTo` and so on, see
/// [`crate::memo::field`]. Always succeeds.
#[must_use]
pub fn memo_of_message(source: &[u8], options: &MessageOptions) -> Map<String, Value> {
    let length = source.len() as u64;
    // Bytes in memory can always be read.
    memo_of_reader(|| Ok(source), length, options).unwrap_or_else(|_| unreadable(length, options))
}

/// As [`memo_of_message`], for a message of any length, of which at most a few megabytes are held at a time. `open` gives
/// its `length` bytes from the beginning, more than once.
///
/// # Errors
/// What reading them says.
pub fn memo_of_reader<R: Read>(
    open: impl Fn() -> io::Result<R>,
    length: u64,
    options: &MessageOptions,
) -> io::Result<Map<String, Value>> {
    let has_lone_returns = structure::has_lone_returns(open()?)?;
    let reader = open()?;
    // Parts of the parser are another project's; should some input still make it panic, that message is kept
    // with a note instead of ending the import or the router.
    let read = catch_unwind(AssertUnwindSafe(|| {
        if has_lone_returns {
            read(Input::of_length(WithLineFeeds(reader), length), true, options)
        } else {
            read(Input::of_length(reader, length), false, options)
        }
    }));
    let Ok(read) = read else { return Ok(unreadable(length, options)) };
    let ReadMessage { fields, start_bytes, notes } = read?;
    Ok(finish(length, start_bytes, fields, notes))
}

/// The text of a header field's value, its encoded words (RFC 2047) decoded.
pub(crate) fn decoded_words(value: &str) -> String {
    encoded_words::decode(value.trim().as_bytes(), charset::CharacterSet::Utf8, &mut Notes::default())
}

/// The id under which an imported message is kept in the mail database of `person`: the same message for the
/// same person always has the same one, so that an import done again adds nothing.
#[must_use]
pub fn imported_id(source: &[u8], person: &str) -> String {
    let mut id = ImportedId::of_person(person);
    id.update(source);
    id.finish()
}

/// The id of an imported message whose bytes come one after the other, see [`imported_id`].
pub(crate) struct ImportedId(blake3::Hasher);

impl ImportedId {
    pub(crate) fn of_person(person: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("scrinium 2026 id of an imported message");
        hasher.update(&(person.len() as u64).to_le_bytes()).update(person.as_bytes());
        Self(hasher)
    }

    /// The next bytes of the message.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(&self) -> String {
        self.0.finalize().to_hex().chars().take(32).collect()
    }
}

struct ReadMessage {
    fields: Map<String, Value>,
    /// Where the message begins in its source.
    start_bytes: u64,
    notes: Notes,
}

fn read<R: Read>(
    input: Input<R>,
    has_lone_returns: bool,
    options: &MessageOptions,
) -> io::Result<ReadMessage> {
    let mut notes = Notes::default();
    if has_lone_returns {
        notes.add("lines end with carriage returns alone");
    }
    let mut lines = PartLines::new(input);
    let beginning = structure::pass_beginning(&mut lines, &mut notes)?;
    let (header, _) = structure::read_header(&mut lines, &mut notes)?;
    let header = HeaderFields::read(&header, &mut notes);
    let mut body_notes = Notes::default();
    let body = body::read(&mut lines, &header, &mut body_notes)?;
    let header = header.with_raw_set(|header| body.declared.or_else(|| header.likely_set(&body.sample)));
    let mut fields = Map::new();
    fields.insert(field::FORM.to_owned(), Value::from(crate::memo::MEMO_FORM));
    let mbox_line = beginning.mbox_line.as_deref();
    header::insert_header_fields(mbox_line, &header, options, &mut fields, &mut notes);
    notes.append(&body_notes);
    body.insert(&mut fields);
    Ok(ReadMessage { fields, start_bytes: beginning.start_bytes, notes })
}

fn unreadable(length: u64, options: &MessageOptions) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert(field::FORM.to_owned(), Value::from(crate::memo::MEMO_FORM));
    for name in [field::FROM, field::SUBJECT, field::BODY] {
        fields.insert(name.to_owned(), Value::from(""));
    }
    if let Some(delivered) = options.delivered_s.and_then(date::text_of) {
        fields.insert(field::DELIVERED_DATE.to_owned(), Value::from(delivered));
    }
    let mut notes = Notes::default();
    notes.add("the message cannot be read; its source is kept");
    finish(length, 0, fields, notes)
}

fn finish(length: u64, start: u64, mut fields: Map<String, Value>, notes: Notes) -> Map<String, Value> {
    fields.insert(field::SIZE.to_owned(), Value::from(length));
    if start > 0 {
        fields.insert(field::SOURCE_START.to_owned(), Value::from(start));
    }
    if let Some(notes) = notes.into_value() {
        fields.insert(field::PARSE_NOTES.to_owned(), notes);
    }
    fields
}

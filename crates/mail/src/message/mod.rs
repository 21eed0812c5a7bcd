//! An RFC 5322 message becomes the fields of a memo.
//!
//! Nothing is ever refused: whatever the bytes are, a memo comes out, and what was damaged or missing is said
//! in its field `$ParseNotes`. The source itself is kept next to the memo, byte for byte, by the one who calls.

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
mod layout;
mod parameters;
mod part;
mod seven_bit;
mod structure;
mod written_date;
mod zones;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Map, Value};

use crate::memo::field;
use crate::notes::Notes;

pub(crate) use written_date::{is_weekday, month_named};

/// Name of the attachment that holds a message's source.
pub const SOURCE_ATTACHMENT: &str = "message.eml";

/// Its content type.
pub const SOURCE_CONTENT_TYPE: &str = "message/rfc822";

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
    // Parts of the parser are another project's; should some input still make it panic, that message is kept
    // with a note instead of ending the import or the router.
    catch_unwind(AssertUnwindSafe(|| read(source, options))).unwrap_or_else(|_| unreadable(source, options))
}

/// The text of a header field's value, its encoded words (RFC 2047) decoded.
pub(crate) fn decoded_words(value: &str) -> String {
    encoded_words::decode(value.trim().as_bytes(), charset::CharacterSet::Utf8, &mut Notes::default())
}

/// The id under which an imported message is kept in the mail database of `person`: the same message for the
/// same person always has the same one, so that an import done again adds nothing.
#[must_use]
pub fn imported_id(source: &[u8], person: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("scrinium 2026 id of an imported message");
    hasher.update(&(person.len() as u64).to_le_bytes()).update(person.as_bytes()).update(source);
    hasher.finalize().to_hex().chars().take(32).collect()
}

fn read(source: &[u8], options: &MessageOptions) -> Map<String, Value> {
    let mut notes = Notes::default();
    let lines = structure::with_line_feeds(source, &mut notes);
    let whole = structure::split(&lines, &mut notes);
    let mut fields = Map::new();
    fields.insert(field::FORM.to_owned(), Value::from(crate::memo::MEMO_FORM));
    let header = fields::HeaderFields::read(whole.header, &mut notes)
        .with_raw_set(|header| body::declared_set(&whole, header).or_else(|| header.likely_set(whole.body)));
    header::insert_header_fields(&whole, &header, options, &mut fields, &mut notes);
    body::insert_body_fields(&whole, &header, &mut fields, &mut notes);
    finish(source, whole.start, fields, notes)
}

fn unreadable(source: &[u8], options: &MessageOptions) -> Map<String, Value> {
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
    finish(source, 0, fields, notes)
}

fn finish(source: &[u8], start: usize, mut fields: Map<String, Value>, notes: Notes) -> Map<String, Value> {
    fields.insert(field::SIZE.to_owned(), Value::from(source.len()));
    if start > 0 {
        fields.insert(field::SOURCE_START.to_owned(), Value::from(start));
    }
    if let Some(notes) = notes.into_value() {
        fields.insert(field::PARSE_NOTES.to_owned(), notes);
    }
    fields
}

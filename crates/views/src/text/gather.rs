//! What documents say, as an index of words takes it.
//!
//! The index of a whole database has each field under its name. A word that is looked for without one is found in
//! `$text`, which has all short texts again, in `Body` and in `$attachments`: what is long is kept once.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::civil::Date;
use scrinium_database::access::readable::ReadableLeaf;
use scrinium_database::access::readers::digests_of;
use scrinium_database::leaf::{Leaf, StoredAttachment};
use scrinium_database::read::others::OtherLeaves;
use scrinium_database::read::render::Renderer;
use scrinium_database::{DatabaseError, ReadOptions, Result};
use scrinium_document::FieldValue as StoredValue;
use scrinium_document::json::{stored_value, stored_value_of_bytes};
use scrinium_fulltext::{DocumentText, Field, FieldValue, Readers, SegmentBuilder, text_of_html};
use scrinium_javascript::Emitted;
use serde_json::{Map, Value};

use super::attachment::AttachmentHead;
use super::definition::IndexFunction;
use super::reader_name;
use crate::open::OpenDatabase;

/// All short texts of a document.
const TEXT: &str = "$text";
/// The long text of a document.
const BODY: &str = "Body";
/// The words of attachments.
const ATTACHMENTS: &str = "$attachments";

/// Where words are looked for that are under no name.
pub(crate) const DEFAULT_FIELDS: [&str; 3] = [TEXT, BODY, ATTACHMENTS];

/// A longer text is a field's own alone, unless it is the body.
const SHORT_BYTES: usize = 16 << 10;
/// A shorter text without blanks is found as a whole, too: forms, categories, addresses, ids.
const WHOLE_BYTES: usize = 128;
/// Values of a document that are looked at, and how deep they may be nested.
const VALUES_MAX: usize = 20_000;
const DEPTH_MAX: usize = 8;
/// Larger attachments have no words.
const ATTACHMENT_BYTES_MAX: u64 = 32 << 20;
/// Attachments of a document that are read.
const ATTACHMENTS_MAX: usize = 100;
/// Text of the attachments of a document.
const ATTACHMENT_TEXT_BYTES: usize = 4 << 20;

/// A document as it goes into an index.
pub(super) struct GatheredText {
    id: String,
    /// `None`: everybody.
    readers: Option<Vec<String>>,
    fields: Vec<GatheredField>,
}

struct GatheredField {
    name: Cow<'static, str>,
    value: GatheredValue,
    is_sorted: bool,
}

impl GatheredField {
    fn field(&self) -> Field<'_> {
        let value = match &self.value {
            GatheredValue::Text(text) => FieldValue::Text(text),
            GatheredValue::Whole(text) => FieldValue::Exact(text),
            GatheredValue::Number(number) => FieldValue::Number(*number),
        };
        Field { name: self.name.as_ref(), value, is_sorted: self.is_sorted }
    }
}

enum GatheredValue {
    Text(String),
    Whole(String),
    Number(f64),
}

/// What is wanted of attachments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// They are read, however long it takes.
    Whole,
    /// A document with such attachments is left to somebody who has the time.
    Short,
}

impl GatheredText {
    pub(super) fn add_to(&self, builder: &mut SegmentBuilder) {
        let readers = match &self.readers {
            None => Readers::Everybody,
            Some(names) => Readers::Names(names.iter().map(String::as_str).collect()),
        };
        let fields = self.fields.iter().map(GatheredField::field).collect();
        builder.add(&DocumentText { id: &self.id, readers, language: None, fields });
    }

    /// Whether there is anything that it can be found by.
    pub(super) fn says_something(&self) -> bool {
        !self.fields.is_empty()
    }

    fn new(database: &OpenDatabase, id: &str, leaf: &Leaf<'_>) -> Result<Self> {
        let readers = digests_of(database, id, leaf)?;
        let readers = readers.map(|names| names.iter().map(reader_name).collect());
        Ok(Self { id: id.to_owned(), readers, fields: Vec::new() })
    }

    fn push(&mut self, name: Cow<'static, str>, value: GatheredValue, is_sorted: bool) {
        self.fields.push(GatheredField { name, value, is_sorted });
    }

    fn push_text(&mut self, name: &str, text: String) {
        if name != BODY && text.len() <= SHORT_BYTES {
            self.push(Cow::Borrowed(TEXT), GatheredValue::Text(text.clone()), false);
        }
        self.push(Cow::Owned(name.to_owned()), GatheredValue::Text(text), false);
    }
}

/// A document by all that it says; `None` if its attachments take longer than `patience` allows.
///
/// # Errors
/// A damaged document, and what the store reports.
pub(super) fn of_document(
    database: &OpenDatabase,
    id: &str,
    leaf: &Leaf<'_>,
    patience: Patience,
) -> Result<Option<GatheredText>> {
    let mut gathered = GatheredText::new(database, id, leaf)?;
    let fields = leaf.fields(id)?;
    let mut left = VALUES_MAX;
    let mut spoken: Vec<&str> = Vec::new();
    for (name, stored) in fields.iter() {
        let json: Cow<'_, [u8]> = match stored {
            StoredValue::Json(json) => Cow::Borrowed(json.as_bytes()),
            StoredValue::Outside(value) => {
                Cow::Owned(database.context.contents.read_all(&value.digest).map_err(DatabaseError::from)?)
            }
        };
        let value = stored_value_of_bytes(&json).ok_or_else(|| DatabaseError::damaged("field", id))?;
        let says_nothing = match &value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        if !says_nothing {
            spoken.push(name);
        }
        push_value(&mut gathered, name, &value, 0, &mut left);
    }
    let has_field = |name: &str| spoken.contains(&name);
    push_attachments(database, &mut gathered, leaf.attachments(id)?, &has_field, patience)
        .map(|is_whole| is_whole.then_some(gathered))
}

fn push_value(gathered: &mut GatheredText, name: &str, value: &Value, depth: usize, left: &mut usize) {
    if *left == 0 || depth > DEPTH_MAX {
        return;
    }
    *left -= 1;
    let own = || Cow::Owned(name.to_owned());
    match value {
        Value::Null => {}
        Value::Bool(value) => gathered.push(own(), GatheredValue::Whole(value.to_string()), false),
        Value::Number(number) => {
            if let Some(number) = number.as_f64() {
                gathered.push(own(), GatheredValue::Number(number), depth == 0);
            }
        }
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => push_string(gathered, name, text, depth == 0),
        Value::Array(values) => {
            values.iter().for_each(|value| push_value(gathered, name, value, depth + 1, left));
        }
        Value::Object(members) => {
            for (member, value) in members {
                push_value(gathered, &format!("{name}.{member}"), value, depth + 1, left);
            }
        }
    }
}

fn push_string(gathered: &mut GatheredText, name: &str, text: &str, is_alone: bool) {
    if let Some(moment_ms) = moment_ms(text) {
        gathered.push(Cow::Owned(name.to_owned()), GatheredValue::Number(moment_ms), is_alone);
    }
    if text.len() <= WHOLE_BYTES && !text.contains(char::is_whitespace) {
        gathered.push(Cow::Owned(name.to_owned()), GatheredValue::Whole(text.to_owned()), false);
    }
    let text = if is_html(text) { text_of_html(text) } else { text.to_owned() };
    gathered.push_text(name, text);
}

/// A day or a moment (RFC 3339), in milliseconds since 1970.
fn moment_ms(text: &str) -> Option<f64> {
    let may_be = (10..=40).contains(&text.len())
        && text.as_bytes().first().is_some_and(u8::is_ascii_digit)
        && text.as_bytes().get(4) == Some(&b'-');
    let timestamp = || match text.parse::<Timestamp>() {
        Ok(timestamp) => Some(timestamp),
        Err(_) if text.len() == 10 => {
            let midnight = text.parse::<Date>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
            Some(midnight.timestamp())
        }
        Err(_) => None,
    };
    #[allow(clippy::cast_precision_loss, reason = "milliseconds of ten thousand years are exact")]
    may_be.then(timestamp).flatten().map(|timestamp| timestamp.as_millisecond() as f64)
}

fn is_html(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(16).flat_map(char::to_lowercase).collect();
    start.starts_with("<html") || start.starts_with("<!doctype html")
}

/// Names and words of attachments; whether all that are wanted were looked at.
fn push_attachments(
    database: &OpenDatabase,
    gathered: &mut GatheredText,
    attachments: Vec<StoredAttachment>,
    has_field: &dyn Fn(&str) -> bool,
    patience: Patience,
) -> Result<bool> {
    let mut left = ATTACHMENT_TEXT_BYTES;
    for attachment in attachments.into_iter().take(ATTACHMENTS_MAX) {
        gathered.push_text("$FileNames", attachment.name.clone());
        let Some(extractor) = database.server.attachment_text() else { continue };
        let head = AttachmentHead {
            name: &attachment.name,
            content_type: &attachment.content_type,
            length: attachment.shown_length(),
        };
        if left == 0 || head.length > ATTACHMENT_BYTES_MAX || !extractor.takes(&head, has_field) {
            continue;
        }
        if patience == Patience::Short {
            return Ok(false);
        }
        let content = database.context.contents.opened(&attachment.content());
        let text = match content.and_then(|content| content.read_all()) {
            Ok(bytes) => extractor.text(&head, &bytes),
            // Its document is found by its other words.
            Err(error) if error.is_damage() => continue,
            Err(error) => return Err(error.into()),
        };
        match text {
            Ok(text) if text.is_empty() => {}
            Ok(mut text) => {
                cut(&mut text, left);
                left -= text.len();
                gathered.push(Cow::Borrowed(ATTACHMENTS), GatheredValue::Text(text), false);
            }
            // Without the words of attachments a document is found by its others; better than not at all.
            Err(error) => {
                tracing::warn!(database = database.name(), id = gathered.id, attachment = head.name, %error, "an attachment is left out of a text index");
            }
        }
    }
    Ok(true)
}

fn cut(text: &mut String, bytes_max: usize) {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

/// A document as functions see it.
///
/// # Errors
/// A damaged document, and what the store reports.
pub(super) fn json_of(database: &OpenDatabase, id: &str, leaf: &Leaf<'_>) -> Result<String> {
    let options = ReadOptions::default();
    let leaf = ReadableLeaf::for_index(id, *leaf);
    let json = Renderer::new(database, &options).render_for_index(&leaf, &OtherLeaves::default(), None)?;
    Ok(json.as_str().to_owned())
}

/// A document by what a function indexes of it.
///
/// # Errors
/// As [`of_document`].
pub(super) fn of_emitted(
    database: &OpenDatabase,
    (id, leaf): (&str, &Leaf<'_>),
    function: &IndexFunction,
    emitted: &[Emitted],
) -> Result<GatheredText> {
    let mut gathered = GatheredText::new(database, id, leaf)?;
    for emitted in emitted {
        let Some(Indexed { kind, name, value, .. }) = Indexed::of(emitted) else { continue };
        let text = match &value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            _ => None,
        };
        let name = Cow::Owned(name);
        match (kind.as_str(), text, value.as_f64()) {
            ("double", _, Some(number)) => gathered.push(name, GatheredValue::Number(number), true),
            ("string" | "boolean", Some(text), _) => gathered.push(name, GatheredValue::Whole(text), true),
            ("text", Some(text), _) if function.is_keyword(&name) => {
                gathered.push(name, GatheredValue::Whole(text), false);
            }
            ("text", Some(text), _) => gathered.push(name, GatheredValue::Text(text), false),
            // Stored alone, or nothing that can be found.
            _ => {}
        }
    }
    Ok(gathered)
}

/// What a function gave to be answered with a hit.
pub(super) fn stored_of(emitted: &[Emitted]) -> Map<String, Value> {
    let mut stored: Map<String, Value> = Map::new();
    for Indexed { kind, name, value, is_stored } in emitted.iter().filter_map(Indexed::of) {
        if !is_stored && kind != "stored" {
            continue;
        }
        match stored.get_mut(&name) {
            None => drop(stored.insert(name, value)),
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    stored
}

/// One call of `index` in a function.
struct Indexed {
    kind: String,
    name: String,
    is_stored: bool,
    value: Value,
}

impl Indexed {
    fn of(emitted: &Emitted) -> Option<Self> {
        let Value::Array(key) = stored_value(&emitted.key_json)? else { return None };
        let [Value::String(kind), Value::String(name), Value::Bool(is_stored)] = key.as_slice() else {
            return None;
        };
        let value = stored_value(&emitted.value_json)?;
        Some(Self { kind: kind.clone(), name: name.clone(), is_stored: *is_stored, value })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn moments_are_numbers_and_other_texts_are_not() {
        assert_eq!(moment_ms("1970-01-01T00:00:01Z"), Some(1000.0));
        assert_eq!(moment_ms("1970-01-02"), Some(86_400_000.0));
        for text in ["", "2026", "2026-13-01", "an 11th-century house", "1234-5678-9012"] {
            assert_eq!(moment_ms(text), None, "{text}");
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let mut text = "äöü".to_owned();
        cut(&mut text, 3);
        assert_eq!(text, "ä");
    }
}

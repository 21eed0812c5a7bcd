//! JSON text on its way out: anyone who makes some makes it here.
//!
//! [`JsonWriter`] takes what the program spells itself as literals, and everything else as values that it escapes.
//! [`JsonText`] is a value that is whole. There is no way from a text that somebody sent into either of them that
//! neither escapes nor checks it.

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};
use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::content::{FilledText, InlineContent, Insertion};
use super::{NESTING_MAX, check, members, part};
use crate::DocumentError;

/// JSON text in the making: a value, or the piece of one that is sent next.
#[derive(Clone, Debug, Default)]
pub struct JsonWriter {
    text: String,
    insertions: Vec<Insertion>,
}

impl JsonWriter {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing yet, with room for this many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), insertions: Vec::new() }
    }

    /// What the program itself spells.
    #[must_use]
    pub fn of_literal(text: &'static str) -> Self {
        Self { text: text.to_owned(), insertions: Vec::new() }
    }

    /// Appends what the program itself spells: brackets, names of members, commas, white space. That it stands in the
    /// program's text is what makes it safe, so it must not be made at run time.
    pub fn literal(&mut self, text: &'static str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Appends a string: quotes, and escapes where the grammar demands them.
    pub fn string(&mut self, text: &str) -> &mut Self {
        self.text.push('"');
        let bytes = text.as_bytes();
        let mut from = 0;
        let escaped = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        while let Some(plain) = bytes.get(from..).and_then(|rest| rest.iter().position(escaped)) {
            let at = from + plain;
            self.text.push_str(part(text, from, at));
            bytes.get(at).copied().into_iter().for_each(|byte| self.escape(byte));
            from = at + 1;
        }
        self.text.push_str(part(text, from, text.len()));
        self.text.push('"');
        self
    }

    fn escape(&mut self, byte: u8) {
        let short = match byte {
            b'"' | b'\\' => char::from(byte),
            0x08 => 'b',
            0x09 => 't',
            0x0a => 'n',
            0x0c => 'f',
            0x0d => 'r',
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(self.text, "\\u{byte:04x}");
                return;
            }
        };
        self.text.push('\\');
        self.text.push(short);
    }

    /// Appends an array of strings.
    pub fn strings<T: AsRef<str>>(&mut self, texts: impl IntoIterator<Item = T>) -> &mut Self {
        self.text.push('[');
        for (index, text) in texts.into_iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            self.string(text.as_ref());
        }
        self.text.push(']');
        self
    }

    /// Appends a whole number.
    pub fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{}", number.into());
        self
    }

    /// Appends a whole number, or `null`.
    pub fn number_or_null(&mut self, number: Option<u64>) -> &mut Self {
        match number {
            Some(number) => self.number(number),
            None => self.literal("null"),
        }
    }

    /// Appends `true` or `false`.
    pub fn flag(&mut self, flag: bool) -> &mut Self {
        self.literal(if flag { "true" } else { "false" })
    }

    /// Appends a whole value.
    pub fn json(&mut self, value: &JsonText) -> &mut Self {
        let before = self.text.len();
        self.insertions.extend(value.insertions.iter().map(|insertion| Insertion {
            offset: before + insertion.offset,
            content: Arc::clone(&insertion.content),
        }));
        self.text.push_str(&value.text);
        self
    }

    /// Appends a line of an event stream between values; control characters, which could begin another line, are left
    /// out.
    pub fn plain_line(&mut self, text: &str) -> &mut Self {
        self.text.extend(text.chars().filter(|character| !character.is_control()));
        self
    }

    /// Appends a value within another one.
    pub fn part(&mut self, part: JsonPart<'_>) -> &mut Self {
        self.stored(part.0)
    }

    /// Appends a value; `null` stands for one that has no JSON, such as a map with keys that are no strings.
    pub fn serialized(&mut self, value: &(impl Serialize + ?Sized)) -> &mut Self {
        match serde_json::to_string(value) {
            Ok(text) => self.text.push_str(&text),
            Err(_) => self.text.push_str("null"),
        }
        self
    }

    /// Appends a content as a string of base64, which is read when the text is sent.
    pub fn content(&mut self, content: Arc<dyn InlineContent>) -> &mut Self {
        self.text.push('"');
        self.insertions.push(Insertion { offset: self.text.len(), content });
        self.text.push('"');
        self
    }

    /// The text, to be sent with its contents.
    #[must_use]
    pub fn into_filled(self) -> FilledText {
        FilledText::new(self.text.into(), self.insertions)
    }

    /// Appends JSON text that was checked when it was stored. Only the reader of stored documents needs it.
    pub(crate) fn stored(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Appends a value of an entry of an index, whose text was written from values when the entry was made.
    pub fn entry_value(&mut self, text: &str) -> &mut Self {
        self.stored(text)
    }

    /// Appends the text of a value that is kept away from its record, as [`crate::Fields::write_members`] asks for it;
    /// it was checked when it was stored.
    ///
    /// # Errors
    /// [`DocumentError::Damaged`] if it is not UTF-8.
    pub fn outside_value(&mut self, bytes: &[u8]) -> Result<&mut Self, DocumentError> {
        let damaged = DocumentError::Damaged { what: "field", detail: "UTF-8" };
        self.text.push_str(std::str::from_utf8(bytes).map_err(|_| damaged)?);
        Ok(self)
    }

    /// The text so far.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether there is nothing yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text, to be sent.
    #[must_use]
    pub fn into_string(self) -> String {
        self.text
    }

    /// The text as a value. It must be a whole one.
    #[must_use]
    pub fn into_text(self) -> JsonText {
        JsonText { text: self.text, insertions: self.insertions }
    }
}

impl From<JsonWriter> for bytes::Bytes {
    fn from(writer: JsonWriter) -> Self {
        writer.text.into()
    }
}

/// A whole JSON value as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText {
    text: String,
    /// Where contents belong, in the order of their places; in the text stands an empty string for each.
    insertions: Vec<Insertion>,
}

impl JsonText {
    /// A string.
    #[must_use]
    pub fn of_string(text: &str) -> Self {
        let mut writer = JsonWriter::with_capacity(text.len() + 2);
        writer.string(text);
        writer.into_text()
    }

    /// Text that may be anything.
    ///
    /// # Errors
    /// As [`check`], for a nesting of [`NESTING_MAX`].
    pub fn parse(text: impl Into<String>) -> Result<Self, DocumentError> {
        let text = text.into();
        check(&text, NESTING_MAX)?;
        Ok(Self::of_own(text))
    }

    /// A value of an entry of an index, whose text was written from values when the entry was made.
    #[must_use]
    pub fn of_entry(text: &str) -> Self {
        Self::of_own(text.to_owned())
    }

    /// The value, however deep it is nested.
    #[must_use]
    pub fn to_value(&self) -> Option<Value> {
        super::stored_value(&self.text)
    }

    /// The value, if it is an object.
    #[must_use]
    pub fn to_object(&self) -> Option<Map<String, Value>> {
        match self.to_value()? {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The members of an object, of a repeated name the last one; `None` if the value is no object.
    #[must_use]
    pub fn members(&self) -> Option<Vec<(Cow<'_, str>, JsonPart<'_>)>> {
        let members = members(&self.text, usize::MAX).ok().flatten()?;
        Some(members.into_iter().map(|(name, value)| (name, JsonPart(value))).collect())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text.
    #[must_use]
    pub fn into_string(self) -> String {
        self.text
    }

    /// Whether contents are still to be filled in.
    #[must_use]
    pub fn has_contents(&self) -> bool {
        !self.insertions.is_empty()
    }

    fn of_own(text: String) -> Self {
        Self { text, insertions: Vec::new() }
    }
}

/// A value within a [`JsonText`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonPart<'a>(&'a str);

impl<'a> JsonPart<'a> {
    /// The text.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

impl Default for JsonText {
    /// `null`.
    fn default() -> Self {
        Self::of_own(String::from("null"))
    }
}

impl Deref for JsonText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for JsonText {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl Display for JsonText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl PartialEq<str> for JsonText {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<&str> for JsonText {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl PartialEq<String> for JsonText {
    fn eq(&self, other: &String) -> bool {
        self.text == *other
    }
}

impl From<&Value> for JsonText {
    fn from(value: &Value) -> Self {
        Self::of_own(value.to_string())
    }
}

impl From<JsonText> for JsonWriter {
    fn from(text: JsonText) -> Self {
        Self { text: text.text, insertions: text.insertions }
    }
}

impl From<JsonText> for String {
    fn from(text: JsonText) -> Self {
        text.text
    }
}

impl From<JsonText> for bytes::Bytes {
    fn from(text: JsonText) -> Self {
        text.text.into()
    }
}

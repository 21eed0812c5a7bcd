//! JSON text taken apart without building values, and put together from values.
//!
//! [`members`] and [`elements`] check a whole text once (RFC 8259 grammar, UTF-8 surrogate pairs, nesting,
//! numbers within the range of a double) by a loop, never by recursion, and hand out the raw text of each part.
//! [`parse_value`] builds values by the same grammar. [`JsonWriter`] is the way out.

mod content;
mod count;
mod scanner;
mod separator;
mod value;
mod writer;

use std::borrow::Cow;

pub use self::content::{ContentError, FilledText, InlineContent};
pub use self::count::JsonCounts;
use self::scanner::{Scanner, unescape};
pub use self::separator::{ContentPlace, ContentSeparator, Separated};
pub use self::value::{parse_value, stored_value, stored_value_of_bytes};
pub use self::writer::{JsonPart, JsonText, JsonWriter};
use crate::DocumentError;
use scrinium_assertion::never;

/// The deepest nesting accepted by default; the outermost array or object counts one.
pub const NESTING_MAX: usize = 512;

/// A member's name, unescaped, and the raw text of its value.
pub type Member<'a> = (Cow<'a, str>, &'a str);

/// The members of a JSON object with their raw texts, in order, a repeated name keeping only its last member
/// (as CouchDB keeps it). White space around values is not part of them.
/// `Ok(None)` if the text is JSON but not an object.
///
/// # Errors
/// [`DocumentError::InvalidJson`]; [`DocumentError::BadRequest`] if nested deeper than `nesting_max`.
pub fn members(text: &str, nesting_max: usize) -> Result<Option<Vec<Member<'_>>>, DocumentError> {
    let mut scanner = Scanner::new(text, nesting_max);
    let object = scanner.peek() == Some(b'{');
    if !object {
        check(text, nesting_max)?;
        return Ok(None);
    }
    scanner.at += 1;
    scanner.outer = 1;
    let mut members = Vec::new();
    let mut more = !scanner.take(b'}');
    while more {
        let name = scanner.string_raw()?;
        scanner.expect(b':')?;
        let value = scanner.value()?;
        members.push((unescape(name).ok_or(DocumentError::InvalidJson)?, value));
        more = scanner.take(b',');
        if !more {
            scanner.expect(b'}')?;
        }
    }
    scanner.end()?;
    Ok(Some(keep_last(members)))
}

/// The elements of a JSON array with their raw texts. `Ok(None)` if the text is JSON but not an array. Of a longer array the
/// first `most` are kept, and one more, which says that there are others; the rest is checked like them.
///
/// # Errors
/// As [`members`].
pub fn elements(text: &str, nesting_max: usize, most: usize) -> Result<Option<Vec<&str>>, DocumentError> {
    let mut scanner = Scanner::new(text, nesting_max);
    if scanner.peek() != Some(b'[') {
        check(text, nesting_max)?;
        return Ok(None);
    }
    scanner.at += 1;
    scanner.outer = 1;
    let mut elements = Vec::new();
    let mut more = !scanner.take(b']');
    while more {
        let element = scanner.value()?;
        if elements.len() <= most {
            elements.push(element);
        }
        more = scanner.take(b',');
        if !more {
            scanner.expect(b']')?;
        }
    }
    scanner.end()?;
    Ok(Some(elements))
}

/// Checks that the text is exactly one JSON value.
///
/// # Errors
/// As [`members`].
pub fn check(text: &str, nesting_max: usize) -> Result<(), DocumentError> {
    let mut scanner = Scanner::new(text, nesting_max);
    scanner.value()?;
    scanner.end()
}

/// The text of a raw JSON string; `None` if `raw` is not one.
#[must_use]
pub fn string(raw: &str) -> Option<Cow<'_, str>> {
    let mut scanner = Scanner::new(raw, NESTING_MAX);
    let text = scanner.string_raw().ok()?;
    scanner.end().ok()?;
    unescape(text)
}

/// Appends `raw`, which must be valid JSON text, without the white space between its tokens.
pub fn write_compact(out: &mut String, raw: &str) {
    let bytes = raw.as_bytes();
    let (mut from, mut at) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b' ' | b'\t' | b'\n' | b'\r' => {
                out.push_str(part(raw, from, at));
                at += 1;
                from = at;
            }
            _ => at += 1,
        }
    }
    out.push_str(part(raw, from, raw.len()));
}

/// A part of a text, which must begin and end between two characters of it.
fn part(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).unwrap_or_else(|| {
        never!("a text is cut between characters", "{from} to {to} of {}", text.len());
        ""
    })
}

/// Whether valid JSON text holds white space between its tokens.
#[must_use]
pub fn is_compact(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b' ' | b'\t' | b'\n' | b'\r' => return false,
            _ => at += 1,
        }
    }
    true
}

/// Drops all but the last of several members with one name.
fn keep_last(members: Vec<Member<'_>>) -> Vec<Member<'_>> {
    let mut sorted: Vec<(&str, usize)> =
        members.iter().enumerate().map(|(index, (name, _))| (name.as_ref(), index)).collect();
    sorted.sort_unstable();
    let mut repeated: Vec<usize> = sorted
        .windows(2)
        .filter_map(|pair| match pair {
            [(earlier, index), (later, _)] if earlier == later => Some(*index),
            _ => None,
        })
        .collect();
    if repeated.is_empty() {
        return members;
    }
    repeated.sort_unstable();
    let mut drop = repeated.into_iter().peekable();
    members
        .into_iter()
        .enumerate()
        .filter(|(index, _)| drop.next_if_eq(index).is_none())
        .map(|(_, member)| member)
        .collect()
}

/// The index behind the closing quote of the string that starts at `at`, in valid JSON.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

//! CouchDB's order of JSON values as bytes: `sort_key(a) < sort_key(b)` exactly if CouchDB puts `a` before `b`.
//!
//! null < false < true < numbers < strings (Unicode collation, root locale, as ICU's default) < arrays (element by
//! element, shorter first) < objects (member by member in their order: name, then value; shorter first).
//!
//! Every component ends itself (no key is the beginning of another), so keys can be joined: the joined keys sort by
//! the first component, then the second. Layout, version 1:
//!
//! ```text
//! null 02   false 03   true 04
//! number    05, 8 bytes: IEEE 754 double, sign bit flipped, all bits if negative; from 2^53 on 2 bytes more: how far
//!           the exact integer is from that double, plus 8000 (hexadecimal)
//! string    06, collation key of the text, 00
//! array     07, each element, 00
//! object    08, each member's name as a string and its value, 00
//! ```
//!
//! Where case or accents do not count ([`Sensitivity`]), the collation key has the levels of weights that do, and
//! texts that differ in nothing else have the same key.

use std::sync::LazyLock;

use scrinium_assertion::never;
use serde_json::{Number, Value};

use crate::ascii::AsciiWeights;
pub use crate::sensitivity::Sensitivity;

/// Changes with the layout and with the collation data (Unicode release of the `icu_collator` in use). An index that
/// was built under another version must be rebuilt.
pub const COLLATION_VERSION: u32 = 1;

/// Stands behind each text, and nowhere else in its key.
pub(crate) const END: u8 = 0;
const NULL: u8 = 2;
const FALSE: u8 = 3;
const TRUE: u8 = 4;
const NUMBER: u8 = 5;
const STRING: u8 = 6;
const ARRAY: u8 = 7;
const OBJECT: u8 = 8;

/// From here on not every integer is a double.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// What the root locale's collator says of ASCII.
static ASCII: LazyLock<Option<AsciiWeights>> = LazyLock::new(|| {
    let collator = Sensitivity::FULL.collator()?;
    AsciiWeights::learn(|text| {
        let mut key = Vec::new();
        let Ok(()) = collator.write_sort_key_to(text, &mut key);
        key
    })
});

/// The key of a value.
#[must_use]
pub fn sort_key(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_sort_key(&mut out, value);
    out
}

/// The value that has this key, where the key tells: null, false, true, numbers, and ASCII text.
///
/// Another text may have the same key (control characters have no weight), and a number may be spelled another way:
/// who relies on it compares.
#[must_use]
pub fn value_of_key(key: &[u8]) -> Option<Value> {
    match key {
        [NULL] => Some(Value::Null),
        [FALSE] => Some(Value::Bool(false)),
        [TRUE] => Some(Value::Bool(true)),
        [NUMBER, double @ ..] => {
            let flipped = u64::from_be_bytes(double.try_into().ok()?);
            let bits = if flipped >> 63 == 1 { flipped ^ 1 << 63 } else { !flipped };
            number(f64::from_bits(bits))
        }
        [STRING, ..] => {
            let mut text = Vec::with_capacity(key.len());
            let length = leading_text(&mut text, key.iter().copied())?;
            let text = String::from_utf8(text).ok().filter(|_| length == key.len())?;
            Some(Value::String(text))
        }
        _ => None,
    }
}

/// Whether [`value_of_key`] gives this text for its key, which is not cut.
#[must_use]
pub fn tells_text(text: &str) -> bool {
    ASCII.as_ref().is_some_and(|ascii| ascii.tells(text))
}

/// Appends the text whose key `key` begins with, if it is one that [`write_text_key`] gives for ASCII, and returns how
/// long its key is.
///
/// ```
/// use scrinium_document::collation::{leading_text, write_text_key};
/// let mut key = Vec::new();
/// write_text_key(&mut key, "Ada");
/// let length = key.len();
/// key.extend_from_slice(b"and more");
/// let mut text = Vec::new();
/// assert_eq!(leading_text(&mut text, key.iter().copied()), Some(length));
/// assert_eq!(text, b"Ada");
/// ```
pub fn leading_text(out: &mut Vec<u8>, key: impl ExactSizeIterator<Item = u8> + Clone) -> Option<usize> {
    let (mut rest, ascii) = (key, ASCII.as_ref()?);
    let all = rest.len();
    if rest.next()? != STRING {
        return None;
    }
    ascii.read(out, &mut rest)?;
    Some(all - rest.len())
}

/// A number as JSON, whole ones without a fraction; none for what is not finite.
#[must_use]
pub fn number(value: f64) -> Option<Value> {
    if value.fract() == 0.0 && value.abs() < EXACT_MAX {
        #[allow(clippy::cast_possible_truncation, reason = "whole, and less than 2^53")]
        return Some(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number)
}

/// What remains to be written of an array or object that is open.
enum Open<'a> {
    Array(std::slice::Iter<'a, Value>),
    Object(serde_json::map::Iter<'a>),
}

/// Appends the key of a value.
pub fn write_sort_key(out: &mut Vec<u8>, value: &Value) {
    write_sort_key_with(out, value, Sensitivity::FULL);
}

/// Appends the key of a value, in which only these differences of its texts count. A loop, so that no nesting
/// overflows the stack.
///
/// ```
/// use scrinium_document::collation::{Sensitivity, write_sort_key_with};
/// let key = |text: &str| {
///     let mut key = Vec::new();
///     write_sort_key_with(&mut key, &text.into(), Sensitivity { case: false, accent: false });
///     key
/// };
/// assert_eq!(key("Résumé"), key("resume"));
/// ```
pub fn write_sort_key_with(out: &mut Vec<u8>, value: &Value, sensitivity: Sensitivity) {
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut next = Some(value);
    loop {
        match next.take() {
            Some(Value::Null) => write_null_key(out),
            Some(Value::Bool(value)) => write_bool_key(out, *value),
            Some(Value::Number(number)) => write_json_number_key(out, number),
            Some(Value::String(text)) => write_text_key_with(out, text, sensitivity),
            Some(Value::Array(elements)) => {
                write_array_start(out);
                open.push(Open::Array(elements.iter()));
            }
            Some(Value::Object(members)) => {
                write_object_start(out);
                open.push(Open::Object(members.iter()));
            }
            None => {}
        }
        match open.last_mut() {
            None => return,
            Some(Open::Array(elements)) => next = elements.next(),
            Some(Open::Object(members)) => {
                next = members.next().map(|(name, value)| {
                    write_text_key_with(out, name, sensitivity);
                    value
                });
            }
        }
        if next.is_none() {
            write_end(out);
            open.pop();
        }
    }
}

/// Appends the key of `null`, the lowest of all.
pub fn write_null_key(out: &mut Vec<u8>) {
    out.push(NULL);
}

/// Appends the key of `false` or `true`.
pub fn write_bool_key(out: &mut Vec<u8>, value: bool) {
    out.push(if value { TRUE } else { FALSE });
}

/// Appends the key of a number. Both zeros are one number; anything that is not a number sorts behind all numbers.
pub fn write_number_key(out: &mut Vec<u8>, value: f64) {
    write_double(out, value);
    if value.abs() >= EXACT_MAX {
        write_distance(out, 0);
    }
}

/// Appends the key of an integer, exact where a double is not.
pub fn write_integer_key(out: &mut Vec<u8>, value: i128) {
    // The distance to the double is written behind it.
    let double = value as f64;
    write_double(out, double);
    if double.abs() >= EXACT_MAX {
        #[allow(clippy::cast_possible_truncation)]
        // Integers of JSON are of 64 bits, so the double is below 2^65.
        write_distance(out, value.saturating_sub(double as i128));
    }
}

pub(crate) fn write_json_number_key(out: &mut Vec<u8>, number: &Number) {
    if let Some(integer) = number.as_i64() {
        write_integer_key(out, integer.into());
    } else if let Some(integer) = number.as_u64() {
        write_integer_key(out, integer.into());
    } else {
        write_number_key(out, number.as_f64().unwrap_or(f64::NAN));
    }
}

fn write_double(out: &mut Vec<u8>, value: f64) {
    let value = if value == 0.0 {
        0.0
    } else if value.is_nan() {
        f64::NAN.abs()
    } else {
        value
    };
    let bits = value.to_bits();
    let flipped = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    out.push(NUMBER);
    out.extend_from_slice(&flipped.to_be_bytes());
}

fn write_distance(out: &mut Vec<u8>, distance: i128) {
    // Doubles below 2^64 lie at most 2,048 apart, so the distance always fits.
    let distance = i16::try_from(distance).unwrap_or_else(|_| {
        never!("a whole number is near a double", "{distance}");
        0
    });
    out.extend_from_slice(&(distance as u16 ^ 0x8000).to_be_bytes());
}

/// Appends the key of a string. Strings that ICU holds equal (they differ in ignorable characters only, or in their
/// normal form) have equal keys.
pub fn write_text_key(out: &mut Vec<u8>, text: &str) {
    write_text_key_with(out, text, Sensitivity::FULL);
}

fn write_text_key_with(out: &mut Vec<u8>, text: &str, sensitivity: Sensitivity) {
    out.push(STRING);
    let start = out.len();
    match (&*ASCII, sensitivity.collator()) {
        (Some(ascii), _) if text.is_ascii() && sensitivity.is_cut() => {
            ascii.write(out, text);
            sensitivity.cut(out, start);
        }
        (_, Some(collator)) => {
            let Ok(()) = collator.write_sort_key_to(text, out);
        }
        (_, None) => out.extend(text.bytes().map(|byte| byte.saturating_add(1))),
    }
    out.push(END);
}

/// Begins an array; its elements' keys follow, then [`write_end`].
pub fn write_array_start(out: &mut Vec<u8>) {
    out.push(ARRAY);
}

/// Begins an object; of each member the name's [text key](write_text_key) and the value's key follow, then
/// [`write_end`].
pub fn write_object_start(out: &mut Vec<u8>) {
    out.push(OBJECT);
}

/// Ends an array or object.
pub fn write_end(out: &mut Vec<u8>) {
    out.push(END);
}

/// Turns the order of whole components around, in place: what sorted first sorts last. The inverted component still
/// ends itself.
///
/// ```
/// use scrinium_document::collation;
/// let mut key = Vec::new();
/// collation::write_text_key(&mut key, "by name, then newest first");
/// let from = key.len();
/// collation::write_number_key(&mut key, 2026.0);
/// collation::descending(&mut key[from..]);
/// ```
pub fn descending(component: &mut [u8]) {
    component.iter_mut().for_each(|byte| *byte = !*byte);
}

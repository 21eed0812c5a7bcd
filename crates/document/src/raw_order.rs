//! CouchDB's raw order of JSON values as bytes, that of Erlang's terms: a view may ask for it (`"collation": "raw"`), and
//! rows of one document and key lie in this order of their values.
//!
//! numbers < false < null < true < objects < arrays < texts, byte by byte. Objects go member by member in their order,
//! name before value; arrays element by element, shorter first. Components end themselves, as those of
//! [`collation`](crate::collation), and no component begins as one of those does. Layout, version 1:
//!
//! ```text
//! number    11, its key in CouchDB's other order
//! false 12   null 13   true 14
//! object    15, of each member the name as a text and the value, 00
//! array     16, each element, 00
//! text      17, its bytes (00 is 01 01, and 01 is 01 02), 00
//! ```

use serde_json::Value;

use crate::collation::{write_end, write_json_number_key};

const NUMBER: u8 = 0x11;
const FALSE: u8 = 0x12;
const NULL: u8 = 0x13;
const TRUE: u8 = 0x14;
const OBJECT: u8 = 0x15;
const ARRAY: u8 = 0x16;
const TEXT: u8 = 0x17;

/// Before a byte that would be an end.
const ESCAPE: u8 = 1;

/// What remains to be written of an array or object that is open.
enum Open<'a> {
    Array(std::slice::Iter<'a, Value>),
    Object(serde_json::map::Iter<'a>),
}

/// Appends the key of a value. A loop, so that no nesting overflows the stack.
///
/// ```
/// use scrinium_document::raw_order::write_raw_key;
/// let key = |value: serde_json::Value| {
///     let mut key = Vec::new();
///     write_raw_key(&mut key, &value);
///     key
/// };
/// assert!(key(9.into()) < key(false.into()) && key("B".into()) < key("a".into()));
/// ```
pub fn write_raw_key(out: &mut Vec<u8>, value: &Value) {
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut next = Some(value);
    loop {
        match next.take() {
            Some(Value::Null) => out.push(NULL),
            Some(Value::Bool(value)) => out.push(if *value { TRUE } else { FALSE }),
            Some(Value::Number(number)) => {
                out.push(NUMBER);
                write_json_number_key(out, number);
            }
            Some(Value::String(text)) => write_text(out, text),
            Some(Value::Array(elements)) => {
                write_raw_array_start(out);
                open.push(Open::Array(elements.iter()));
            }
            Some(Value::Object(members)) => {
                out.push(OBJECT);
                open.push(Open::Object(members.iter()));
            }
            None => {}
        }
        match open.last_mut() {
            None => return,
            Some(Open::Array(elements)) => next = elements.next(),
            Some(Open::Object(members)) => {
                next = members.next().map(|(name, value)| {
                    write_text(out, name);
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

/// Begins an array; its elements' keys follow, then [`write_end`].
pub fn write_raw_array_start(out: &mut Vec<u8>) {
    out.push(ARRAY);
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(TEXT);
    for byte in text.bytes() {
        match byte {
            0 | ESCAPE => out.extend_from_slice(&[ESCAPE, byte + 1]),
            byte => out.push(byte),
        }
    }
    write_end(out);
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn key(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        write_raw_key(&mut out, value);
        out
    }

    /// Erlang's order of terms, as its reference manual has it.
    fn compare(one: &Value, other: &Value) -> Ordering {
        let rank = |value: &Value| match value {
            Value::Number(_) => 0,
            Value::Bool(false) => 1,
            Value::Null => 2,
            Value::Bool(true) => 3,
            Value::Object(_) => 4,
            Value::Array(_) => 5,
            Value::String(_) => 6,
        };
        let by_kind = rank(one).cmp(&rank(other));
        by_kind.then_with(|| match (one, other) {
            (Value::Number(one), Value::Number(other)) => one.as_f64().partial_cmp(&other.as_f64()).unwrap(),
            (Value::String(one), Value::String(other)) => one.as_bytes().cmp(other.as_bytes()),
            (Value::Array(one), Value::Array(other)) => {
                let differ = one.iter().zip(other).map(|(one, other)| compare(one, other));
                differ.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&other.len()))
            }
            (Value::Object(one), Value::Object(other)) => {
                let pairs = one.iter().zip(other);
                let differ = pairs.map(|((name, one), (other_name, other))| {
                    name.as_bytes().cmp(other_name.as_bytes()).then_with(|| compare(one, other))
                });
                differ.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&other.len()))
            }
            _ => Ordering::Equal,
        })
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            (-3_i64..3).prop_map(Value::from),
            (-2.0..2.0).prop_map(|number: f64| json!(number)),
            "[\\x00-\\x02aB\u{e4}]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[ab]{0,2}", inner, 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_erlangs_terms(one in value(), other in value()) {
            prop_assert_eq!(key(&one).cmp(&key(&other)), compare(&one, &other), "{} {}", one, other);
        }

        #[test]
        fn no_key_is_the_beginning_of_another(one in value(), other in value()) {
            let (one, other) = (key(&one), key(&other));
            prop_assert!(one == other || !one.starts_with(&other));
        }
    }
}

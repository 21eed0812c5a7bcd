//! Values built from JSON text with a stack of their own.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::scanner::{Scanner, unescape};
use crate::DocumentError;

/// The value of a JSON text; unlike `serde_json` alone it takes as much nesting as documents may have.
///
/// # Errors
/// As [`members`](super::members).
pub fn parse_value(text: &str, nesting_max: usize) -> Result<Value, DocumentError> {
    let mut scanner = Scanner::new(text, nesting_max);
    scanner.value()?;
    scanner.end()?;
    Builder::new(text).build().ok_or(DocumentError::InvalidJson)
}

/// As [`stored_value`], of bytes that should be UTF-8.
#[must_use]
pub fn stored_value_of_bytes(bytes: &[u8]) -> Option<Value> {
    stored_value(std::str::from_utf8(bytes).ok()?)
}

/// The value of a text that was checked when it was stored, without checking it again. `None` for an invalid one.
#[must_use]
pub fn stored_value(text: &str) -> Option<Value> {
    Builder::new(text).build()
}

/// Builds a value from checked text with its own stack.
struct Builder<'a> {
    scanner: Scanner<'a>,
    open: Vec<Open<'a>>,
}

enum Open<'a> {
    Array(Vec<Value>),
    Object(Map<String, Value>, Cow<'a, str>),
}

impl<'a> Builder<'a> {
    fn new(text: &'a str) -> Self {
        Self { scanner: Scanner::new(text, usize::MAX), open: Vec::new() }
    }

    fn build(mut self) -> Option<Value> {
        loop {
            let mut value = match self.scanner.peek()? {
                b'[' => {
                    self.scanner.at += 1;
                    if !self.scanner.take(b']') {
                        self.open.push(Open::Array(Vec::new()));
                        continue;
                    }
                    Value::Array(Vec::new())
                }
                b'{' => {
                    self.scanner.at += 1;
                    if !self.scanner.take(b'}') {
                        let name = self.name()?;
                        self.open.push(Open::Object(Map::new(), name));
                        continue;
                    }
                    Value::Object(Map::new())
                }
                _ => self.scalar()?,
            };
            loop {
                match self.open.pop() {
                    None => return Some(value),
                    Some(Open::Array(mut elements)) => {
                        elements.push(value);
                        if self.scanner.take(b',') {
                            self.open.push(Open::Array(elements));
                            break;
                        }
                        self.scanner.at += usize::from(self.scanner.peek() == Some(b']'));
                        value = Value::Array(elements);
                    }
                    Some(Open::Object(mut members, name)) => {
                        // A repeated name moves to its last place, as in a document's own members.
                        members.shift_remove(name.as_ref());
                        members.insert(name.into_owned(), value);
                        if self.scanner.take(b',') {
                            let name = self.name()?;
                            self.open.push(Open::Object(members, name));
                            break;
                        }
                        self.scanner.at += usize::from(self.scanner.peek() == Some(b'}'));
                        value = Value::Object(members);
                    }
                }
            }
        }
    }

    fn name(&mut self) -> Option<Cow<'a, str>> {
        let name = unescape(self.scanner.string_raw().ok()?)?;
        self.scanner.expect(b':').ok()?;
        Some(name)
    }

    fn scalar(&mut self) -> Option<Value> {
        let from = self.scanner.at;
        if self.scanner.byte() == Some(b'"') {
            return unescape(self.scanner.string_raw().ok()?).map(|text| Value::String(text.into_owned()));
        }
        self.scanner.scalar().ok()?;
        let text = self.scanner.text.get(from..self.scanner.at)?;
        Some(match text {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            number => Value::Number(parse_number(number)?),
        })
    }
}

fn parse_number(text: &str) -> Option<Number> {
    if let Ok(number) = text.parse::<u64>() {
        return Some(number.into());
    }
    if let Some(number) = text.parse::<i64>().ok().filter(|number| *number != 0) {
        return Some(number.into());
    }
    Number::from_f64(text.parse().ok()?)
}

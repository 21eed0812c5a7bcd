//! What commands and responses are made of (RFC 9051, section 4): atoms, strings, lists.

use thiserror::Error;

use crate::frame::Part;

/// Limits of the values of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueLimits {
    /// Lists in lists.
    pub depth: usize,
    /// Values in all.
    pub values: usize,
}

impl Default for ValueLimits {
    fn default() -> Self {
        Self { depth: 32, values: 1 << 17 }
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An atom, a number, a flag, NIL, a set, or a name with a section: `BODY[HEADER.FIELDS (SUBJECT)]<0>`.
    Atom(String),
    /// A string: quoted, or a literal.
    Text(Vec<u8>),
    /// A literal that may hold NUL.
    Binary(Vec<u8>),
    /// A literal that was handed on, or is to be sent by the caller: its length, and whether it may hold NUL.
    Streamed(u64, bool),
    /// A list in parentheses.
    List(Vec<Value>),
    /// A string that is a literal however short it is. Only to be written; it is read as text.
    Literal(Vec<u8>),
    /// Values without spaces between them. Only to be written; they are read one by one.
    Run(Vec<Value>),
}

/// Why parts are no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ValueError {
    /// Too many lists in lists.
    #[error("too many lists in lists")]
    TooDeep,
    /// Too many values.
    #[error("too many values")]
    TooMany,
    /// A list is closed that was not opened.
    #[error("a bracket is closed that was not opened")]
    Closed,
    /// A list has no end.
    #[error("a list has no end")]
    OpenList,
    /// A quoted string has no end.
    #[error("a string has no end")]
    OpenString,
    /// A section has no end.
    #[error("a section has no end")]
    OpenSection,
    /// An atom is no UTF-8, or holds control characters.
    #[error("an atom is not text")]
    NotText,
}

impl Value {
    /// An atom of this text.
    #[must_use]
    pub fn atom(text: impl Into<String>) -> Self {
        Self::Atom(text.into())
    }

    /// A string of this text.
    #[must_use]
    pub fn text_of(text: &str) -> Self {
        Self::Text(text.as_bytes().to_vec())
    }

    /// A string, or NIL.
    #[must_use]
    pub fn nstring(text: Option<&[u8]>) -> Self {
        text.map_or_else(Self::nil, |text| Self::Text(text.to_vec()))
    }

    /// NIL.
    #[must_use]
    pub fn nil() -> Self {
        Self::atom("NIL")
    }

    /// Whether it is NIL.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.is("NIL")
    }

    /// A number.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Atom(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            _ => None,
        }
    }

    /// An atom that says this, in any case.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        matches!(self, Self::Atom(text) if text.eq_ignore_ascii_case(word))
    }

    /// The text of an atom.
    #[must_use]
    pub fn as_atom(&self) -> Option<&str> {
        match self {
            Self::Atom(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes of an atom or a string.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Atom(text) => Some(text.as_bytes()),
            Self::Text(bytes) | Self::Binary(bytes) | Self::Literal(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Atoms and strings alike, as text.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// The values of a list.
    #[must_use]
    pub fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(values) => Some(values),
            _ => None,
        }
    }
}

/// The values of one frame.
///
/// # Errors
/// [`ValueError`]
pub fn parse_values(parts: &[Part], limits: ValueLimits) -> Result<Vec<Value>, ValueError> {
    let mut reader = Reader { parts, part: 0, at: 0, limits, values: 0 };
    let values = reader.values(0)?;
    if reader.peek().is_some() || reader.part < parts.len() {
        return Err(ValueError::Closed);
    }
    Ok(values)
}

struct Reader<'a> {
    parts: &'a [Part],
    part: usize,
    /// Of the part, if it is text.
    at: usize,
    limits: ValueLimits,
    values: usize,
}

impl Reader<'_> {
    /// The next byte of the text; `None` before a literal and at the end.
    fn peek(&self) -> Option<u8> {
        match self.parts.get(self.part) {
            Some(Part::Text(text)) => text.get(self.at).copied(),
            _ => None,
        }
    }

    fn values(&mut self, depth: usize) -> Result<Vec<Value>, ValueError> {
        if depth > self.limits.depth {
            return Err(ValueError::TooDeep);
        }
        let mut values = Vec::new();
        loop {
            let value = match self.peek() {
                Some(b' ') => {
                    self.at += 1;
                    continue;
                }
                Some(b')') if depth > 0 => return Ok(values),
                Some(b')') => return Err(ValueError::Closed),
                Some(b'(') => {
                    self.at += 1;
                    let list = self.values(depth + 1)?;
                    if self.peek() != Some(b')') {
                        return Err(ValueError::OpenList);
                    }
                    self.at += 1;
                    Value::List(list)
                }
                Some(b'"') => self.quoted()?,
                Some(_) => self.atom()?,
                None => match self.next_part() {
                    Some(Some(value)) => value,
                    Some(None) => continue,
                    None => return Ok(values),
                },
            };
            self.values += 1;
            if self.values > self.limits.values {
                return Err(ValueError::TooMany);
            }
            values.push(value);
        }
    }

    /// Goes to the next part; a literal is a value. `None` at the end.
    fn next_part(&mut self) -> Option<Option<Value>> {
        let value = match self.parts.get(self.part)? {
            Part::Text(_) => None,
            Part::Literal(bytes, false) => Some(Value::Text(bytes.clone())),
            Part::Literal(bytes, true) => Some(Value::Binary(bytes.clone())),
            Part::Streamed(length, binary) => Some(Value::Streamed(*length, *binary)),
        };
        self.part += 1;
        self.at = 0;
        Some(value)
    }

    fn quoted(&mut self) -> Result<Value, ValueError> {
        let mut text = Vec::new();
        self.at += 1;
        loop {
            let byte = self.peek().ok_or(ValueError::OpenString)?;
            self.at += 1;
            match byte {
                b'"' => return Ok(Value::Text(text)),
                b'\\' => {
                    text.push(self.peek().ok_or(ValueError::OpenString)?);
                    self.at += 1;
                }
                _ => text.push(byte),
            }
        }
    }

    /// Brackets hold spaces, lists and strings where they follow the name of an item of FETCH.
    fn atom(&mut self) -> Result<Value, ValueError> {
        let mut text = Vec::new();
        let (mut in_section, mut in_quotes) = (false, false);
        while let Some(byte) = self.peek() {
            match byte {
                b'"' if in_section => in_quotes = !in_quotes,
                b'\\' if in_quotes => {
                    text.push(byte);
                    self.at += 1;
                    let Some(escaped) = self.peek() else { break };
                    text.push(escaped);
                    self.at += 1;
                    continue;
                }
                _ if in_quotes => {}
                b'[' if has_sections(&text) => in_section = true,
                b']' if in_section => in_section = false,
                b' ' | b'(' | b')' | b'"' if !in_section => break,
                _ => {}
            }
            text.push(byte);
            self.at += 1;
        }
        if in_section {
            return Err(ValueError::OpenSection);
        }
        let text = String::from_utf8(text).map_err(|_| ValueError::NotText)?;
        if text.chars().any(char::is_control) {
            return Err(ValueError::NotText);
        }
        Ok(Value::Atom(text))
    }
}

fn has_sections(name: &[u8]) -> bool {
    let names: [&[u8]; 5] = [b"BODY", b"BODY.PEEK", b"BINARY", b"BINARY.PEEK", b"BINARY.SIZE"];
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

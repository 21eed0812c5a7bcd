//! What an IMAP response is made of (RFC 3501, section 4; RFC 9051): atoms, strings, lists, NIL.

use crate::driver::failure::Failure;
use crate::driver::wire::shown;

/// Lists in lists, at most.
const DEEPEST: usize = 16;

/// A piece of a response as it came: text, or a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::driver) enum Part {
    Text(Vec<u8>),
    /// Kept whole.
    Literal(Vec<u8>),
    /// Handed on while it came; only its length is known.
    Streamed(u64),
}

/// A value of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::driver) enum Value {
    Nil,
    Atom(String),
    Text(Vec<u8>),
    Streamed(u64),
    List(Vec<Value>),
}

impl Value {
    pub(in crate::driver) fn number(&self) -> Option<u64> {
        match self {
            Self::Atom(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// An atom that says this, in whatever case.
    pub(in crate::driver) fn is(&self, word: &str) -> bool {
        matches!(self, Self::Atom(text) if text.eq_ignore_ascii_case(word))
    }

    /// Atoms and strings alike.
    pub(in crate::driver) fn text(&self) -> Option<String> {
        match self {
            Self::Atom(text) => Some(text.clone()),
            Self::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }

    pub(in crate::driver) fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(values) => Some(values),
            _ => None,
        }
    }
}

/// The values of one response.
pub(in crate::driver) fn parse(parts: &[Part]) -> Result<Vec<Value>, Failure> {
    let mut reader = Reader { parts, part: 0, at: 0 };
    let values = reader.values(0)?;
    if reader.peek().is_some() || reader.part < parts.len() {
        return Err(reader.wrong("a bracket is closed that was not opened"));
    }
    Ok(values)
}

struct Reader<'a> {
    parts: &'a [Part],
    part: usize,
    /// Of the part, if it is text.
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, why: &str) -> Failure {
        let first = self.parts.first();
        let text = first.map_or_else(String::new, |part| match part {
            Part::Text(text) | Part::Literal(text) => shown(text),
            Part::Streamed(_) => String::new(),
        });
        Failure::wrong(format!("no response of IMAP, {why}: {text}"))
    }

    /// The next byte of the text; `None` before a literal and at the end.
    fn peek(&self) -> Option<u8> {
        match self.parts.get(self.part) {
            Some(Part::Text(text)) => text.get(self.at).copied(),
            _ => None,
        }
    }

    fn values(&mut self, depth: usize) -> Result<Vec<Value>, Failure> {
        if depth > DEEPEST {
            return Err(self.wrong("too many lists in lists"));
        }
        let mut values = Vec::new();
        loop {
            match self.peek() {
                Some(b' ') => self.at += 1,
                Some(b')') if depth > 0 => return Ok(values),
                Some(b')') => return Err(self.wrong("a bracket is closed that was not opened")),
                Some(b'(') => {
                    self.at += 1;
                    let list = self.values(depth + 1)?;
                    if self.peek() != Some(b')') {
                        return Err(self.wrong("a list has no end"));
                    }
                    self.at += 1;
                    values.push(Value::List(list));
                }
                Some(b'"') => values.push(self.quoted()?),
                Some(_) => values.push(self.atom()?),
                None => match self.next_part() {
                    Some(value) => values.extend(value),
                    None => return Ok(values),
                },
            }
        }
    }

    /// Goes to the next part; a literal is a value. `None` at the end.
    fn next_part(&mut self) -> Option<Option<Value>> {
        let value = match self.parts.get(self.part)? {
            Part::Text(_) => None,
            Part::Literal(bytes) => Some(Value::Text(bytes.clone())),
            Part::Streamed(length) => Some(Value::Streamed(*length)),
        };
        self.part += 1;
        self.at = 0;
        Some(value)
    }

    fn quoted(&mut self) -> Result<Value, Failure> {
        let mut text = Vec::new();
        self.at += 1;
        loop {
            let byte = self.peek().ok_or_else(|| self.wrong("a string has no end"))?;
            self.at += 1;
            match byte {
                b'"' => return Ok(Value::Text(text)),
                b'\\' => {
                    text.push(self.peek().ok_or_else(|| self.wrong("a string has no end"))?);
                    self.at += 1;
                }
                _ => text.push(byte),
            }
        }
    }

    /// An atom, a number, a flag, or a name with a section: `BODY[HEADER.FIELDS (SUBJECT)]<0>`.
    fn atom(&mut self) -> Result<Value, Failure> {
        let mut text = Vec::new();
        let mut in_section = false;
        while let Some(byte) = self.peek() {
            match byte {
                b'[' => in_section = true,
                b']' => in_section = false,
                b' ' | b'(' | b')' | b'"' if !in_section => break,
                _ => {}
            }
            text.push(byte);
            self.at += 1;
        }
        if in_section {
            return Err(self.wrong("a section has no end"));
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(if text.eq_ignore_ascii_case("NIL") { Value::Nil } else { Value::Atom(text) })
    }
}

/// The length of a literal that a line ends with: `{12}`, `{12+}` or `~{12}`.
pub(in crate::driver) fn literal_length(line: &[u8]) -> Option<u64> {
    let inner = line.strip_suffix(b"}")?;
    let open = inner.iter().rposition(|byte| *byte == b'{')?;
    let digits = inner.get(open + 1..)?;
    let digits = digits.strip_suffix(b"+").unwrap_or(digits);
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.is_empty())?;
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

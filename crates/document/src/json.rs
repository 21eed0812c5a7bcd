//! JSON text taken apart without building values.
//!
//! [`members`] and [`elements`] check a whole text once (RFC 8259 grammar, UTF-8 surrogate pairs, nesting,
//! numbers within the range of a double) by a loop, never by recursion, and hand out the raw text of each part.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use crate::DocumentError;

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

/// The elements of a JSON array with their raw texts. `Ok(None)` if the text is JSON but not an array.
///
/// # Errors
/// As [`members`].
pub fn elements(text: &str, nesting_max: usize) -> Result<Option<Vec<&str>>, DocumentError> {
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
        elements.push(scanner.value()?);
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

/// The value of a JSON text; unlike `serde_json` alone it takes as much nesting as documents may have.
///
/// # Errors
/// As [`members`].
pub fn parse_value(text: &str, nesting_max: usize) -> Result<Value, DocumentError> {
    let mut scanner = Scanner::new(text, nesting_max);
    scanner.value()?;
    scanner.end()?;
    Builder::new(text).build().ok_or(DocumentError::InvalidJson)
}

/// Appends `raw`, which must be valid JSON text, without the white space between its tokens.
pub fn write_compact(out: &mut String, raw: &str) {
    let bytes = raw.as_bytes();
    let (mut from, mut at) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b' ' | b'\t' | b'\n' | b'\r' => {
                out.push_str(raw.get(from..at).unwrap_or_default());
                at += 1;
                from = at;
            }
            _ => at += 1,
        }
    }
    out.push_str(raw.get(from..).unwrap_or_default());
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

/// Appends a JSON string: quotes, and escapes only where the grammar demands them.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut from = 0;
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            0x09 => b't',
            0x0a => b'n',
            0x0c => b'f',
            0x0d => b'r',
            0..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(bytes.get(from..at).unwrap_or_default());
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' + value - 10 };
            out.extend_from_slice(&[b'0', b'0', digit(byte >> 4), digit(byte & 0xf)]);
        }
        from = at + 1;
    }
    out.extend_from_slice(bytes.get(from..).unwrap_or_default());
    out.push(b'"');
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

/// The text between the quotes of a checked string with its escapes resolved.
fn unescape(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.as_bytes().contains(&b'\\') {
        return Some(Cow::Borrowed(raw));
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        out.push_str(plain);
        let mut chars = escaped.chars();
        out.push(match chars.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (character, digits) = unescape_unicode(chars.as_str())?;
                chars = chars.as_str().get(digits..)?.chars();
                character
            }
            other => other,
        });
        rest = chars.as_str();
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// The character that `XXXX` or `XXXX\uXXXX` stands for, and how much text that was.
fn unescape_unicode(text: &str) -> Option<(char, usize)> {
    let unit = |from: usize| u32::from_str_radix(text.get(from..from + 4)?, 16).ok();
    let high = unit(0)?;
    if !(0xd800..0xdc00).contains(&high) {
        return Some((char::from_u32(high)?, 4));
    }
    let low = unit(6).filter(|low| (0xdc00..0xe000).contains(low) && text.get(4..6) == Some("\\u"))?;
    Some((char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))?, 10))
}

/// A position in a JSON text and the rules of its grammar.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
    nesting_max: usize,
    /// How deep the text lies already when [`Scanner::value`] begins.
    outer: usize,
}

/// What is open around the position, one bit for each level: object or array.
struct Nesting {
    bits: Vec<u64>,
    depth: usize,
}

impl Nesting {
    fn open(&mut self, object: bool) {
        let (word, bit) = (self.depth / 64, self.depth % 64);
        if word == self.bits.len() {
            self.bits.push(0);
        }
        if let Some(word) = self.bits.get_mut(word) {
            *word = (*word & !(1 << bit)) | (u64::from(object) << bit);
        }
        self.depth += 1;
    }

    fn in_object(&self) -> bool {
        let Some(level) = self.depth.checked_sub(1) else { return false };
        self.bits.get(level / 64).is_some_and(|word| word >> (level % 64) & 1 == 1)
    }
}

type Scan<T> = Result<T, DocumentError>;

impl<'a> Scanner<'a> {
    fn new(text: &'a str, nesting_max: usize) -> Self {
        let mut scanner = Self { text, at: 0, nesting_max, outer: 0 };
        scanner.space();
        scanner
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.byte()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8) -> Scan<()> {
        if self.take(byte) { Ok(()) } else { Err(DocumentError::InvalidJson) }
    }

    fn end(&mut self) -> Scan<()> {
        if self.peek().is_none() { Ok(()) } else { Err(DocumentError::InvalidJson) }
    }

    /// Skips one value and returns its raw text.
    fn value(&mut self) -> Scan<&'a str> {
        self.space();
        let from = self.at;
        let mut nesting = Nesting { bits: Vec::new(), depth: 0 };
        loop {
            // Here a value must follow, or the end of an array or object that has just been opened.
            let opened = match self.peek().ok_or(DocumentError::InvalidJson)? {
                b'{' => self.open(&mut nesting, true)?,
                b'[' => self.open(&mut nesting, false)?,
                _ => {
                    self.scalar()?;
                    false
                }
            };
            let ended = if opened { self.open_is_empty(&mut nesting)? } else { true };
            if ended && !self.next_value(&mut nesting)? {
                return self.text.get(from..self.at).ok_or(DocumentError::InvalidJson);
            }
        }
    }

    fn open(&mut self, nesting: &mut Nesting, object: bool) -> Scan<bool> {
        if self.outer + nesting.depth >= self.nesting_max {
            let reason = format!("JSON nested deeper than {} levels", self.nesting_max);
            return Err(DocumentError::BadRequest(reason.into()));
        }
        nesting.open(object);
        self.at += 1;
        Ok(true)
    }

    /// Behind an opening bracket: closes it if nothing is in it, else stands before the first value.
    fn open_is_empty(&mut self, nesting: &mut Nesting) -> Scan<bool> {
        let object = nesting.in_object();
        if self.take(if object { b'}' } else { b']' }) {
            nesting.depth -= 1;
            return Ok(true);
        }
        if object {
            self.name()?;
        }
        Ok(false)
    }

    /// Behind a value: closes what ends here; `true` if another value must follow.
    fn next_value(&mut self, nesting: &mut Nesting) -> Scan<bool> {
        while nesting.depth > 0 {
            let object = nesting.in_object();
            if self.take(b',') {
                if object {
                    self.name()?;
                }
                return Ok(true);
            }
            self.expect(if object { b'}' } else { b']' })?;
            nesting.depth -= 1;
        }
        Ok(false)
    }

    fn name(&mut self) -> Scan<()> {
        self.string_raw()?;
        self.expect(b':')
    }

    fn scalar(&mut self) -> Scan<()> {
        let word = match self.byte() {
            Some(b'"') => return self.string_raw().map(|_| ()),
            Some(b'-' | b'0'..=b'9') => return self.number(),
            Some(b't') => "true",
            Some(b'f') => "false",
            Some(b'n') => "null",
            _ => return Err(DocumentError::InvalidJson),
        };
        let rest = self.text.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return Err(DocumentError::InvalidJson);
        }
        self.at += word.len();
        Ok(())
    }

    /// Skips a string and returns what stands between its quotes.
    fn string_raw(&mut self) -> Scan<&'a str> {
        self.expect(b'"')?;
        let from = self.at;
        loop {
            match self.byte().ok_or(DocumentError::InvalidJson)? {
                b'"' => break,
                b'\\' => self.escape()?,
                0..0x20 => return Err(DocumentError::InvalidJson),
                _ => self.at += 1,
            }
        }
        let raw = self.text.get(from..self.at);
        self.at += 1;
        raw.ok_or(DocumentError::InvalidJson)
    }

    fn escape(&mut self) -> Scan<()> {
        let escaped = self.text.get(self.at + 1..).ok_or(DocumentError::InvalidJson)?;
        let length = match escaped.as_bytes().first() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => {
                let digits = escaped.get(1..).unwrap_or_default();
                let hexadecimal = |byte: &u8| byte.is_ascii_hexdigit();
                if !digits.as_bytes().get(..4).is_some_and(|four| four.iter().all(hexadecimal)) {
                    return Err(DocumentError::InvalidJson);
                }
                2 + unescape_unicode(digits).ok_or(DocumentError::InvalidJson)?.1
            }
            _ => return Err(DocumentError::InvalidJson),
        };
        self.at += length;
        Ok(())
    }

    fn digits(&mut self) -> Scan<usize> {
        let from = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == from { Err(DocumentError::InvalidJson) } else { Ok(self.at - from) }
    }

    fn number(&mut self) -> Scan<()> {
        let from = self.at;
        self.at += usize::from(self.byte() == Some(b'-'));
        let zero = self.byte() == Some(b'0');
        let whole = self.digits()?;
        if zero && whole > 1 {
            return Err(DocumentError::InvalidJson);
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let exponent = matches!(self.byte(), Some(b'e' | b'E'));
        if exponent {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            self.digits()?;
        }
        // Only an exponent or more than 308 digits can leave the range of a double.
        if (exponent || whole > 308)
            && !self.text.get(from..self.at).and_then(|text| text.parse().ok()).is_some_and(f64::is_finite)
        {
            return Err(DocumentError::InvalidJson);
        }
        Ok(())
    }
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

//! The grammar: skips over values, checking them, without building anything.

use std::borrow::Cow;

use crate::DocumentError;

/// A position in a JSON text and the rules of its grammar.
pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    nesting_max: usize,
    /// How deep the text lies already when [`Scanner::value`] begins.
    pub(super) outer: usize,
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
    pub(super) fn new(text: &'a str, nesting_max: usize) -> Self {
        let mut scanner = Self { text, at: 0, nesting_max, outer: 0 };
        scanner.space();
        scanner
    }

    pub(super) fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    pub(super) fn peek(&mut self) -> Option<u8> {
        self.space();
        self.byte()
    }

    pub(super) fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    pub(super) fn expect(&mut self, byte: u8) -> Scan<()> {
        if self.take(byte) { Ok(()) } else { Err(DocumentError::InvalidJson) }
    }

    pub(super) fn end(&mut self) -> Scan<()> {
        if self.peek().is_none() { Ok(()) } else { Err(DocumentError::InvalidJson) }
    }

    /// Skips one value and returns its raw text.
    pub(super) fn value(&mut self) -> Scan<&'a str> {
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

    pub(super) fn scalar(&mut self) -> Scan<()> {
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
    pub(super) fn string_raw(&mut self) -> Scan<&'a str> {
        self.expect(b'"')?;
        let from = self.at;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let special = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            self.at += special.ok_or(DocumentError::InvalidJson)?;
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                _ => return Err(DocumentError::InvalidJson),
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

/// The text between the quotes of a checked string with its escapes resolved.
pub(super) fn unescape(raw: &str) -> Option<Cow<'_, str>> {
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

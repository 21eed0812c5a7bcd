//! Fields of a value and parameters: `text/plain; charset=utf-8` (RFC 2045 §5.1, RFC 2183), with the blanks and comments that
//! RFC 822 allows between all of it, and parameters in pieces and sets of their own (RFC 2231).

use super::charset::CharacterSet;
use super::structure::without_cut_character;
use super::{decode, encoded_words};
use crate::notes::Notes;

/// Names at which a new parameter begins even though no semicolon stands before it.
const KNOWN_NAMES: [&[u8]; 9] =
    [b"boundary", b"charset", b"delsp", b"filename", b"format", b"name", b"protocol", b"size", b"type"];

/// More of a field than this is not read.
const LONGEST_FIELD: usize = 64 * 1024;

/// A value and its parameters, as they are written.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    /// What stands before the first parameter, without comments and blanks, in lower case.
    pub(super) value: String,
    parameters: Vec<Parameter>,
    raw: Option<CharacterSet>,
}

/// One parameter or piece of one.
#[derive(Debug)]
struct Parameter {
    /// In lower case, with its asterisks.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Parameters {
    /// Reads an unfolded field, of which 8-bit characters are of the set `raw`.
    pub(super) fn read(field: &[u8], raw: CharacterSet, notes: &mut Notes) -> Self {
        let mut scanner = Scanner { rest: bounded(field), has_open_comment: false };
        let value = scanner.value();
        let mut parameters = Vec::new();
        while let Some(parameter) = scanner.parameter() {
            parameters.push(parameter);
        }
        Self { value: raw.decode(&value, false, notes).to_lowercase(), parameters, raw: Some(raw) }
    }

    /// The bytes of a parameter that is in one piece.
    pub(super) fn bytes(&self, name: &str) -> Option<&[u8]> {
        let parameter = self.parameters.iter().find(|parameter| parameter.name == name.as_bytes())?;
        Some(&parameter.value)
    }

    /// The text of a parameter: what is given with a set of its own before what is plain.
    pub(super) fn get(&self, name: &str, notes: &mut Notes) -> Option<String> {
        let raw = self.raw.unwrap_or(CharacterSet::Undeclared);
        if let Some(joined) = self.joined(name) {
            return Some(joined.decode(raw, notes));
        }
        Some(encoded_words::decode(self.bytes(name)?, raw, notes))
    }

    /// The pieces of a parameter (RFC 2231 §3, §4), in the order of their numbers; `name*` is the only piece of its
    /// parameter.
    fn joined(&self, name: &str) -> Option<Joined> {
        let mut pieces: Vec<(u32, bool, &[u8])> = Vec::new();
        for parameter in &self.parameters {
            let Some(number) = parameter.name.strip_prefix(name.as_bytes()) else { continue };
            let Some(number) = number.strip_prefix(b"*") else { continue };
            let (number, is_extended) = match number.strip_suffix(b"*") {
                Some(number) => (number, true),
                None => (number, number.is_empty()),
            };
            let number = if number.is_empty() { Some(0) } else { decode::number(number) };
            if let Some(number) = number {
                pieces.push((number, is_extended, &parameter.value));
            }
        }
        pieces.sort_by_key(|piece| piece.0);
        pieces.dedup_by_key(|piece| piece.0);
        let mut pieces = pieces.into_iter();
        let first = pieces.next()?;
        let mut joined = Joined { label: None, bytes: Vec::new() };
        joined.begin(first.1, first.2);
        for (_, is_extended, value) in pieces {
            joined.add(is_extended, value);
        }
        Some(joined)
    }
}

/// A parameter that was put together of its pieces.
struct Joined {
    /// The set that the first piece names; `None` where no piece has a set.
    label: Option<String>,
    bytes: Vec<u8>,
}

impl Joined {
    /// The first piece names set and language before its text: `utf-8'en'text`.
    fn begin(&mut self, is_extended: bool, value: &[u8]) {
        let mut parts = value.splitn(3, |&byte| byte == b'\'');
        match (is_extended, parts.next(), parts.next(), parts.next()) {
            (true, Some(label), Some(_language), Some(text)) => {
                self.label = Some(String::from_utf8_lossy(label).into_owned());
                self.add(true, text);
            }
            _ => self.add(is_extended, value),
        }
    }

    fn add(&mut self, is_extended: bool, value: &[u8]) {
        if !is_extended {
            self.bytes.extend_from_slice(value);
            return;
        }
        let mut rest = value;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match if byte == b'%' { decode::hex_byte(after) } else { None } {
                Some(escaped) => {
                    self.bytes.push(escaped);
                    rest = after.get(2..).unwrap_or_default();
                }
                None => self.bytes.push(byte),
            }
        }
    }

    fn decode(&self, raw: CharacterSet, notes: &mut Notes) -> String {
        match &self.label {
            Some(label) => CharacterSet::named(label).decode(&self.bytes, false, notes),
            // Pieces without a set may hold encoded words, which no RFC allows and many senders write.
            None => encoded_words::decode(&self.bytes, raw, notes),
        }
    }
}

/// A field of no more than its bounded length.
fn bounded(field: &[u8]) -> &[u8] {
    match field.get(..LONGEST_FIELD) {
        Some(beginning) => without_cut_character(beginning),
        None => field,
    }
}

/// Walks over a field.
struct Scanner<'a> {
    rest: &'a [u8],
    /// Whether a comment began that has no end: from there on parentheses are text.
    has_open_comment: bool,
}

impl<'a> Scanner<'a> {
    /// The value: up to the first semicolon, or the first blank after a whole type.
    fn value(&mut self) -> Vec<u8> {
        let mut value: Vec<u8> = Vec::new();
        loop {
            let blanks_before = self.skip_blanks();
            if blanks_before && value.contains(&b'/') && !value.ends_with(b"/") && is_parameter(self.rest) {
                break;
            }
            match self.rest.split_first() {
                None | Some((b';', _)) => break,
                Some((&byte, after)) => {
                    let touches = byte == b'/' || value.ends_with(b"/") || value.is_empty();
                    if blanks_before && !touches {
                        value.push(b' ');
                    }
                    if byte != b'"' {
                        value.push(byte);
                    }
                    self.rest = after;
                }
            }
        }
        value
    }

    fn parameter(&mut self) -> Option<Parameter> {
        loop {
            self.skip_blanks();
            self.rest = match self.rest.split_first()? {
                (b';', after) => after,
                _ => self.rest,
            };
            self.skip_blanks();
            let end = self.rest.iter().position(|byte| matches!(byte, b'=' | b';'))?;
            let (name, rest) = self.rest.split_at_checked(end)?;
            self.rest = rest;
            if let Some(after) = rest.strip_prefix(b"=") {
                self.rest = after;
                let name = without_blanks(name).to_ascii_lowercase();
                let is_name = [&b"name"[..], b"filename"].iter().any(|known| name.starts_with(known));
                return Some(Parameter { value: self.parameter_value(is_name), name });
            }
        }
    }

    fn parameter_value(&mut self, may_hold_quotes: bool) -> Vec<u8> {
        self.skip_blanks();
        match self.rest.strip_prefix(b"\"") {
            Some(quoted) => {
                self.rest = quoted;
                self.quoted(may_hold_quotes)
            }
            None => self.unquoted(),
        }
    }

    /// What stands before the closing quote. In names of files a quote that nothing ends at is one of the text:
    /// `name="the "best".pdf"`.
    fn quoted(&mut self, may_hold_quotes: bool) -> Vec<u8> {
        let mut value = Vec::new();
        while let Some((&byte, after)) = self.rest.split_first() {
            self.rest = after;
            match (byte, after.first()) {
                // Other backslashes are those of paths.
                (b'\\', Some(&escaped @ (b'"' | b'\\'))) => {
                    value.push(escaped);
                    self.rest = after.get(1..).unwrap_or_default();
                }
                (b'"', _) if !may_hold_quotes || self.at_end_of_value() => return value,
                _ => value.push(byte),
            }
        }
        value
    }

    /// Whether nothing but blanks or a comment stands before the end, a semicolon or another parameter.
    fn at_end_of_value(&self) -> bool {
        let ahead = self.rest.trim_ascii_start();
        matches!(ahead.first(), None | Some(b';' | b'(')) || is_parameter(ahead)
    }

    fn unquoted(&mut self) -> Vec<u8> {
        let mut end = 0;
        while let Some(&byte) = self.rest.get(end) {
            let ahead = self.rest.get(end + 1..).unwrap_or_default();
            if byte == b';' || (byte.is_ascii_whitespace() && is_parameter(ahead)) {
                break;
            }
            end += 1;
        }
        let (value, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, &[]));
        self.rest = rest;
        without_last_comment(value.trim_ascii()).to_vec()
    }

    /// Passes over blanks and comments; whether there were any.
    fn skip_blanks(&mut self) -> bool {
        let before = self.rest.len();
        loop {
            self.rest = self.rest.trim_ascii_start();
            if self.has_open_comment || self.rest.first() != Some(&b'(') {
                break;
            }
            match after_comment(self.rest) {
                Some(after) => self.rest = after,
                None => self.has_open_comment = true,
            }
        }
        self.rest.len() < before
    }
}

/// What follows the comment (RFC 5322 §3.2.2) that `bytes` begin with; `None` where there is none, or it has no end.
pub(super) fn after_comment(bytes: &[u8]) -> Option<&[u8]> {
    if bytes.first() != Some(&b'(') {
        return None;
    }
    let (mut depth, mut escaped) = (0_usize, false);
    for (position, &byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'(' => depth += 1,
            b')' if depth == 1 => return bytes.get(position + 1..),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether a parameter of a known name begins here.
fn is_parameter(bytes: &[u8]) -> bool {
    let end = bytes.iter().take(20).position(|&byte| byte == b'=');
    let Some(name) = end.and_then(|end| bytes.get(..end)) else { return false };
    let name = name.split(|&byte| byte == b'*').next().unwrap_or_default().trim_ascii();
    KNOWN_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// A token without a comment that ends it: one in parentheses of its own, after a blank. `report (1).pdf` is whole.
fn without_last_comment(token: &[u8]) -> &[u8] {
    if !token.ends_with(b")") {
        return token;
    }
    let mut depth = 0_usize;
    for (position, &byte) in token.iter().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            let before = token.get(..position).unwrap_or_default();
            let is_comment = before.last().is_some_and(u8::is_ascii_whitespace);
            return if is_comment { before.trim_ascii_end() } else { token };
        }
    }
    token
}

fn without_blanks(name: &[u8]) -> &[u8] {
    let name = name.trim_ascii();
    // A comment between the name and what it equals.
    let end = name.iter().position(|byte| *byte == b'(' || byte.is_ascii_whitespace());
    name.get(..end.unwrap_or(name.len())).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::super::charset::CharacterSet;
    use super::Parameters;
    use crate::notes::Notes;

    fn read(field: &[u8], name: &str) -> (String, Option<String>) {
        let mut notes = Notes::default();
        let parameters = Parameters::read(field, CharacterSet::Undeclared, &mut notes);
        let text = parameters.get(name, &mut notes);
        (parameters.value, text)
    }

    #[test]
    fn parameters_are_read_with_blanks_comments_and_pieces() {
        let name = |field: &[u8]| read(field, "name").1.unwrap_or_else(|| "none".to_owned());
        for (written, found) in [
            (&b"a/b; name= \"x y.pdf\""[..], "x y.pdf"),
            (b"a/b; name =\t x.pdf ; size=1", "x.pdf"),
            (b"a/b;name(why)=(because)\"x.pdf\"(so)", "x.pdf"),
            (b"a/b; name=x.pdf (a comment)", "x.pdf"),
            (b"a/b; name=report (1).pdf; size=3", "report (1).pdf"),
            (b"a/b; name=my own file.pdf", "my own file.pdf"),
            (b"a/b; name=x.pdf charset=utf-8", "x.pdf"),
            (b"a/b; charset=us-ascii name=x.pdf", "x.pdf"),
            (b"a/b; charset=\"us-ascii\" name=\"x.pdf\"", "x.pdf"),
            (b"a/b charset=us-ascii; NAME=x.pdf", "x.pdf"),
            (b"a/b; name=\"the \"best\".pdf\"; size=2", "the \"best\".pdf"),
            (b"a/b; name=\"say \\\"x\\\".pdf\"", "say \"x\".pdf"),
            (b"a/b; name=\"C:\\temp\\x.pdf\"", "C:\\temp\\x.pdf"),
            (b"a/b; name=\"not closed.pdf", "not closed.pdf"),
            (b"a/b; name=\"semi;colon.pdf\"", "semi;colon.pdf"),
            (b"a/b;;; ; name=x", "x"),
            (b"a/b; junk; name=x", "x"),
            (b"a/b; name*=utf-8''%e2%82%ac.pdf", "€.pdf"),
            (b"a/b; name=old.pdf; name*=\"utf-8'en'%E2%82%AC.pdf\"", "€.pdf"),
            (b"a/b; name*1=b.pdf; name*0=a", "ab.pdf"),
            (b"a/b; name*0*=utf-8''%e2%82; name*1*=%ac; name*2=\"%41.pdf\"", "€%41.pdf"),
            (b"a/b; name*=''%e4.pdf", "ä.pdf"),
            (b"a/b; name*=iso-8859-1'de'%e4%20b.pdf", "ä b.pdf"),
            (b"a/b; name*=plain%20text.pdf", "plain text.pdf"),
            (b"a/b; name*0*=utf-8'';name*1*=a;name*10*=c;name*2*=b", "abc"),
            (b"a/b; name=\"=?utf-8?Q?=E2=82=AC?= =?utf-8?Q?.pdf?=\"", "€.pdf"),
            (b"a/b; name==?utf-8?B?4oKs?=", "€"),
            (b"a/b; name*0=\"=?utf-8?Q?=E2=82\"; name*1=\"=AC?=.pdf\"", "€.pdf"),
            (b"a/b; name=\"caf\xe9 \xe2\x82\xac.pdf\"", "café €.pdf"),
            (b"a/b; name=", ""),
            (b"a/b", "none"),
        ] {
            assert_eq!(name(written), found, "{}", String::from_utf8_lossy(written));
        }
    }

    #[test]
    fn values_are_read_without_comments_and_blanks() {
        for (written, value) in [
            (&b" Text / Plain ; charset=x"[..], "text/plain"),
            (b"text/(a comment)plain (another (inside) one)", "text/plain"),
            (b"text plain; charset=utf-8", "text plain"),
            (b"<html>", "<html>"),
            (b"\"attachment\"; filename=x", "attachment"),
            (b"text/plain charset=utf-8", "text/plain"),
            (b"base64 (as it were)", "base64"),
            (b"a/b; charset=\"x\" and more words", "a/b"),
            (b"(only a comment", "(only a comment"),
            (b"", ""),
        ] {
            assert_eq!(read(written, "charset").0, value, "{}", String::from_utf8_lossy(written));
        }
    }
}

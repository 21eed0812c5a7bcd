//! Tokens (RFC 5228, section 8.1).

use crate::error::{Position, ScriptError, ScriptFault};
use crate::limits::Limits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Identifier(String),
    /// Without its colon, in lower case.
    Tag(String),
    Number(u64),
    Text(String),
    /// One of `;,()[]{}`.
    Symbol(char),
    End,
}

impl TokenKind {
    /// How an error names it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Identifier(name) => format!("\"{}\"", shortened(name)),
            Self::Tag(name) => format!("\":{}\"", shortened(name)),
            Self::Number(number) => format!("the number {number}"),
            Self::Text(text) => format!("the string \"{}\"", shortened(text)),
            Self::Symbol(symbol) => format!("\"{symbol}\""),
            Self::End => "the end of the script".to_owned(),
        }
    }
}

/// At most so much of a text is shown in an error.
const SHOWN_CHARACTERS: usize = 60;

pub(crate) fn shortened(text: &str) -> String {
    let mut shown: String =
        text.chars().take(SHOWN_CHARACTERS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) position: Position,
}

pub(crate) struct Lexer<'a> {
    rest: &'a str,
    position: Position,
    limits: &'a Limits,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a str, limits: &'a Limits) -> Self {
        Self { rest: source, position: Position { line: 1, column: 1 }, limits }
    }

    pub(crate) fn next(&mut self) -> Result<Token, ScriptError> {
        self.skip()?;
        let position = self.position;
        let kind = match self.rest.chars().next() {
            None => TokenKind::End,
            Some(symbol @ (';' | ',' | '(' | ')' | '[' | ']' | '{' | '}')) => {
                self.advance(1);
                TokenKind::Symbol(symbol)
            }
            Some('"') => TokenKind::Text(self.quoted(position)?),
            Some(':') => {
                self.advance(1);
                match self.identifier() {
                    Some(name) => TokenKind::Tag(name.to_ascii_lowercase()),
                    None => return Err(ScriptFault::Character(':').at(position)),
                }
            }
            Some(first) if first.is_ascii_digit() => TokenKind::Number(self.number(position)?),
            Some(first) => match self.identifier() {
                Some(name) if name.eq_ignore_ascii_case("text") && self.rest.starts_with(':') => {
                    self.advance(1);
                    TokenKind::Text(self.lines(position)?)
                }
                Some(name) => TokenKind::Identifier(name.to_owned()),
                None => return Err(ScriptFault::Character(first).at(position)),
            },
        };
        Ok(Token { kind, position })
    }

    /// Moves over characters; each is looked at once.
    fn advance(&mut self, bytes: usize) -> &'a str {
        let (passed, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        for character in passed.chars() {
            if character == '\n' {
                self.position.line = self.position.line.saturating_add(1);
                self.position.column = 1;
            } else {
                self.position.column = self.position.column.saturating_add(1);
            }
        }
        self.rest = rest;
        passed
    }

    /// White space and comments (RFC 5228, section 2.3).
    fn skip(&mut self) -> Result<(), ScriptError> {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            self.advance(blanks);
            if self.rest.starts_with('#') {
                let end = self.rest.find('\n').map_or(self.rest.len(), |end| end + 1);
                self.advance(end);
            } else if self.rest.starts_with("/*") {
                let position = self.position;
                let end = self.rest.get(2..).and_then(|rest| rest.find("*/"));
                let end = end.ok_or_else(|| ScriptFault::OpenComment.at(position))?;
                self.advance(end + 4);
            } else {
                return Ok(());
            }
        }
    }

    fn identifier(&mut self) -> Option<&'a str> {
        let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
        if !self.rest.starts_with(starts) {
            return None;
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        Some(self.advance(end))
    }

    /// A number with its quantifier (RFC 5228, section 2.4.1).
    fn number(&mut self, position: Position) -> Result<u64, ScriptError> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let digits = self.advance(end);
        let shift = match self.rest.chars().next().map(|c| c.to_ascii_uppercase()) {
            Some('K') => 10,
            Some('M') => 20,
            Some('G') => 30,
            _ => 0,
        };
        if shift > 0 {
            self.advance(1);
        }
        if let Some(next) = self.rest.chars().next().filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
            return Err(ScriptFault::Character(next).at(self.position));
        }
        let number: Option<u64> = digits.parse().ok();
        number
            .and_then(|number| number.checked_mul(1 << shift))
            .ok_or_else(|| ScriptFault::Number.at(position))
    }

    fn limited(&self, text: String, position: Position) -> Result<String, ScriptError> {
        if text.len() > self.limits.string_bytes {
            return Err(ScriptFault::StringTooLong(self.limits.string_bytes).at(position));
        }
        Ok(text)
    }

    /// A quoted string; a backslash before any other character than `"` and `\` counts for nothing (RFC 5228, section
    /// 2.4.2).
    fn quoted(&mut self, position: Position) -> Result<String, ScriptError> {
        let inner = self.rest.get(1..).unwrap_or_default();
        let mut text = String::new();
        let mut escaped = false;
        for (place, character) in inner.char_indices() {
            match character {
                '\\' if !escaped => escaped = true,
                '"' if !escaped => {
                    self.advance(place + 2);
                    return self.limited(text, position);
                }
                '\n' if !text.ends_with('\r') => {
                    escaped = false;
                    text.push_str("\r\n");
                }
                _ => {
                    escaped = false;
                    text.push(character);
                }
            }
        }
        Err(ScriptFault::OpenString.at(position))
    }

    /// A text of lines, behind `text:` (RFC 5228, section 2.4.2).
    fn lines(&mut self, position: Position) -> Result<String, ScriptError> {
        let end = self.rest.find('\n').ok_or_else(|| ScriptFault::OpenText.at(position))?;
        let head = self.rest.get(..end).unwrap_or_default().trim_matches([' ', '\t', '\r']);
        if !head.is_empty() && !head.starts_with('#') {
            let expected = "the end of the line".to_owned();
            let fault = ScriptFault::Expected { expected, found: format!("\"{}\"", shortened(head)) };
            return Err(fault.at(self.position));
        }
        let mut text = String::new();
        let mut passed = end + 1;
        let body = self.rest.get(passed..).unwrap_or_default();
        for line in body.split_inclusive('\n') {
            passed += line.len();
            let content = line.trim_end_matches('\n');
            let content = content.strip_suffix('\r').unwrap_or(content);
            if content == "." {
                self.advance(passed);
                return self.limited(text, position);
            }
            // Dots at the beginning of a line were doubled.
            text.push_str(content.strip_prefix('.').filter(|rest| rest.starts_with('.')).unwrap_or(content));
            text.push_str("\r\n");
        }
        Err(ScriptFault::OpenText.at(position))
    }
}

//! What a server answers (RFC 5804, sections 1.2, 1.3 and 2.7).

use thiserror::Error;

use crate::command::ScriptName;
use crate::frame::Frame;
use crate::token::{Token, write_string};

/// How a command went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusKind {
    /// Well.
    Ok,
    /// It was not done.
    No,
    /// The server ends the connection.
    Bye,
}

/// Why, for programs (RFC 5804, section 1.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseCode {
    /// The mechanism is too weak for this person.
    AuthTooWeak,
    /// The mechanism needs TLS.
    EncryptNeeded,
    /// No room.
    Quota,
    /// Too many scripts.
    QuotaMaxScripts,
    /// The script is too large.
    QuotaMaxSize,
    /// Another server, as a URL.
    Referral(String),
    /// The last message of an exchange of SASL.
    Sasl(Vec<u8>),
    /// The password must be given by PLAIN once.
    TransitionNeeded,
    /// Later, perhaps.
    TryLater,
    /// The script is the active one.
    Active,
    /// There is no such script.
    NonExistent,
    /// There is a script of this name.
    AlreadyExists,
    /// The script is right, and yet there is something to say.
    Warnings,
    /// The text of NOOP.
    Tag(String),
    /// Another one, in capitals, with what stands behind it.
    Other(String, Option<String>),
}

/// Codes of one word.
const CODES: [(&str, ResponseCode); 11] = [
    ("AUTH-TOO-WEAK", ResponseCode::AuthTooWeak),
    ("ENCRYPT-NEEDED", ResponseCode::EncryptNeeded),
    ("QUOTA", ResponseCode::Quota),
    ("QUOTA/MAXSCRIPTS", ResponseCode::QuotaMaxScripts),
    ("QUOTA/MAXSIZE", ResponseCode::QuotaMaxSize),
    ("TRANSITION-NEEDED", ResponseCode::TransitionNeeded),
    ("TRYLATER", ResponseCode::TryLater),
    ("ACTIVE", ResponseCode::Active),
    ("NONEXISTENT", ResponseCode::NonExistent),
    ("ALREADYEXISTS", ResponseCode::AlreadyExists),
    ("WARNINGS", ResponseCode::Warnings),
];

/// The line that ends an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// How it went.
    pub kind: StatusKind,
    /// Why, for programs.
    pub code: Option<ResponseCode>,
    /// Why, for people; it may have several lines.
    pub text: Option<String>,
}

/// Why a frame is nothing that a server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the server's answer is not readable")]
pub struct TokenFault;

impl Status {
    /// `OK`
    #[must_use]
    pub fn ok(text: &str) -> Self {
        Self { kind: StatusKind::Ok, code: None, text: Some(text.to_owned()) }
    }

    /// `NO`
    #[must_use]
    pub fn no(code: Option<ResponseCode>, text: &str) -> Self {
        Self { kind: StatusKind::No, code, text: Some(text.to_owned()) }
    }

    /// `BYE`
    #[must_use]
    pub fn bye(code: Option<ResponseCode>, text: &str) -> Self {
        Self { kind: StatusKind::Bye, code, text: Some(text.to_owned()) }
    }

    /// Appends the line.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.kind {
            StatusKind::Ok => b"OK",
            StatusKind::No => b"NO",
            StatusKind::Bye => b"BYE",
        });
        if let Some(code) = &self.code {
            out.extend_from_slice(b" (");
            code.write(out);
            out.push(b')');
        }
        if let Some(text) = &self.text {
            out.push(b' ');
            write_string(text.as_bytes(), false, out);
        }
        out.extend_from_slice(b"\r\n");
    }

    fn of(kind: StatusKind, tokens: &[Token]) -> Option<Self> {
        let (code, rest) = match tokens.split_first() {
            Some((Token::Open, rest)) => {
                let end = rest.iter().position(|token| *token == Token::Close)?;
                let (inner, after) = rest.split_at_checked(end)?;
                (Some(ResponseCode::of(inner)?), after.get(1..)?)
            }
            _ => (None, tokens),
        };
        let text = match rest {
            [] => None,
            [Token::Text(text)] => Some(String::from_utf8_lossy(text).into_owned()),
            _ => return None,
        };
        Some(Self { kind, code, text })
    }
}

impl ResponseCode {
    fn of(tokens: &[Token]) -> Option<Self> {
        let (word, rest) = tokens.split_first()?;
        let Token::Word(word) = word else { return None };
        let text = match rest {
            [] => None,
            [Token::Text(text)] => Some(text),
            [Token::Word(text)] => return Some(Self::Other(word.clone(), Some(text.clone()))),
            _ => return None,
        };
        let owned = |text: &Vec<u8>| String::from_utf8_lossy(text).into_owned();
        Some(match (word.as_str(), text) {
            ("REFERRAL", Some(url)) => Self::Referral(owned(url)),
            ("TAG", Some(text)) => Self::Tag(owned(text)),
            ("SASL", Some(text)) => Self::Sasl(scrinium_line_wire::server_challenge(text).ok()?),
            (word, None) => {
                let known = CODES.iter().find(|(name, _)| *name == word).map(|(_, code)| code.clone());
                known.unwrap_or_else(|| Self::Other(word.to_owned(), None))
            }
            (word, text) => Self::Other(word.to_owned(), text.map(owned)),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut with = |word: &str, text: Option<&str>| {
            out.extend_from_slice(word.as_bytes());
            if let Some(text) = text {
                out.push(b' ');
                write_string(text.as_bytes(), false, out);
            }
        };
        match self {
            Self::Referral(url) => with("REFERRAL", Some(url)),
            Self::Tag(text) => with("TAG", Some(text)),
            Self::Sasl(text) => {
                let encoded = scrinium_line_wire::ClientLine::Response(text.clone()).encode();
                with("SASL", Some(&encoded));
            }
            Self::Other(word, text) => {
                // Nothing but what a word may be.
                let word: String =
                    word.chars().filter(|c| c.is_ascii_alphanumeric() || "-_/".contains(*c)).collect();
                with(if word.is_empty() { "X" } else { &word }, text.as_deref());
            }
            known => {
                let name = CODES.iter().find(|(_, code)| code == known).map_or("X", |(name, _)| name);
                with(name, None);
            }
        }
    }
}

/// A script of LISTSCRIPTS (RFC 5804, section 2.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedScript {
    /// Its name.
    pub name: ScriptName,
    /// It is the active one.
    pub is_active: bool,
}

impl ListedScript {
    /// Appends the line.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_string(self.name.as_str().as_bytes(), false, out);
        out.extend_from_slice(if self.is_active { b" ACTIVE\r\n" } else { b"\r\n" });
    }

    /// Reads the tokens of a line.
    #[must_use]
    pub fn of(tokens: &[Token]) -> Option<Self> {
        let (name, is_active) = match tokens {
            [Token::Text(name)] => (name, false),
            [Token::Text(name), Token::Word(word)] if word == "ACTIVE" => (name, true),
            _ => return None,
        };
        let name = std::str::from_utf8(name).ok().and_then(ScriptName::new)?;
        Some(Self { name, is_active })
    }
}

/// What a server sends, for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerLine {
    /// The answer is over.
    Status(Status),
    /// Something of an answer: a capability, a script, a text or a challenge, which depends on what was asked.
    Data(Vec<Token>),
}

impl ServerLine {
    /// Reads what a server sends.
    ///
    /// # Errors
    /// [`TokenFault`]
    pub fn parse(frame: &Frame) -> Result<Self, TokenFault> {
        let tokens = frame.tokens().ok_or(TokenFault)?;
        let kind = match tokens.first() {
            Some(Token::Word(word)) => match word.as_str() {
                "OK" => StatusKind::Ok,
                "NO" => StatusKind::No,
                "BYE" => StatusKind::Bye,
                _ => return Err(TokenFault),
            },
            Some(Token::Text(_)) => return Ok(Self::Data(tokens)),
            _ => return Err(TokenFault),
        };
        Status::of(kind, tokens.get(1..).unwrap_or_default()).map(Self::Status).ok_or(TokenFault)
    }
}

//! Responses: `+OK` and `-ERR`, with response codes (RFC 2449, section 8).

use std::fmt;

use thiserror::Error;

/// The first line of a response that is written is no longer than this, with its end (RFC 2449, section 4).
pub const RESPONSE_MAX_BYTES: usize = 512;

/// Why a command failed, for the client's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseCode {
    /// IN-USE: another session has the mailbox.
    InUse,
    /// LOGIN-DELAY: the last log-in was too short a time ago.
    LoginDelay,
    /// SYS/TEMP: the server cannot now (RFC 3206).
    SystemTemporary,
    /// SYS/PERM: the server cannot until somebody mends something (RFC 3206).
    SystemPermanent,
    /// AUTH: the name or the password is wrong (RFC 3206).
    Auth,
    /// UTF8: the message or the name goes beyond ASCII, and the client did not say UTF8 (RFC 6856).
    Utf8,
    /// Any other, as it came.
    Other(String),
}

impl ResponseCode {
    fn parse(text: &str) -> Option<Self> {
        let valid =
            !text.is_empty() && text.bytes().all(|byte| (b'!'..=b'~').contains(&byte) && byte != b'[');
        if !valid {
            return None;
        }
        Some(match text.to_ascii_uppercase().as_str() {
            "IN-USE" => Self::InUse,
            "LOGIN-DELAY" => Self::LoginDelay,
            "SYS/TEMP" => Self::SystemTemporary,
            "SYS/PERM" => Self::SystemPermanent,
            "AUTH" => Self::Auth,
            "UTF8" => Self::Utf8,
            _ => Self::Other(text.to_owned()),
        })
    }
}

impl fmt::Display for ResponseCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::InUse => "IN-USE",
            Self::LoginDelay => "LOGIN-DELAY",
            Self::SystemTemporary => "SYS/TEMP",
            Self::SystemPermanent => "SYS/PERM",
            Self::Auth => "AUTH",
            Self::Utf8 => "UTF8",
            Self::Other(text) => text,
        })
    }
}

/// The first line of a response, which is all of it for most commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// `+OK` and its text.
    Ok(String),
    /// `-ERR`, a code where the server sends one, and its text.
    Err(Option<ResponseCode>, String),
    /// `+ ` and a challenge in base64: an exchange of SASL continues (RFC 5034).
    Challenge(String),
}

/// A line is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no answer of POP3")]
pub struct ResponseError;

impl Response {
    /// `+OK` with a text, in which control characters become spaces.
    #[must_use]
    pub fn ok(text: &str) -> Self {
        Self::Ok(line_text(text))
    }

    /// `-ERR` with a text, in which control characters become spaces.
    #[must_use]
    pub fn err(code: Option<ResponseCode>, text: &str) -> Self {
        Self::Err(code, line_text(text))
    }

    /// Reads a line, without its end.
    ///
    /// # Errors
    /// [`ResponseError`]
    pub fn parse(line: &[u8]) -> Result<Self, ResponseError> {
        let line = String::from_utf8_lossy(line);
        let (status, text) = line.split_once(' ').unwrap_or((&line, ""));
        match status {
            "+OK" => Ok(Self::Ok(text.to_owned())),
            "-ERR" => Ok(coded(text)),
            "+" => Ok(Self::Challenge(text.to_owned())),
            _ => Err(ResponseError),
        }
    }

    /// Appends the line.
    pub fn write(&self, out: &mut Vec<u8>) {
        let line = match self {
            Self::Ok(text) if text.is_empty() => "+OK".to_owned(),
            Self::Ok(text) => format!("+OK {text}"),
            Self::Err(None, text) if text.is_empty() => "-ERR".to_owned(),
            Self::Err(None, text) => format!("-ERR {text}"),
            Self::Err(Some(code), text) => format!("-ERR [{code}] {text}"),
            Self::Challenge(text) => format!("+ {text}"),
        };
        let line = line.replace(|character: char| character.is_control(), " ");
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(b"\r\n");
    }

    /// Whether the command succeeded.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok(_))
    }
}

fn coded(text: &str) -> Response {
    let split = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match split.and_then(|(code, rest)| Some((ResponseCode::parse(code)?, rest))) {
        Some((code, rest)) => Response::Err(Some(code), rest.strip_prefix(' ').unwrap_or(rest).to_owned()),
        None => Response::Err(None, text.to_owned()),
    }
}

/// Room for the status and a code.
const TEXT_MAX_BYTES: usize = RESPONSE_MAX_BYTES - 48;

fn line_text(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(TEXT_MAX_BYTES));
    for character in text.trim().chars() {
        if line.len() + character.len_utf8() > TEXT_MAX_BYTES {
            break;
        }
        line.push(if character.is_control() { ' ' } else { character });
    }
    line
}

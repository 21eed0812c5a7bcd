//! Commands (RFC 1939, sections 5 to 7, and those of extensions).

use std::fmt;
use std::num::NonZeroU32;

use scrinium_line_wire::{InitialResponse, Mechanism, SaslError};
use thiserror::Error;

use crate::response::Response;

/// A command may be so long. RFC 2449, section 4 says 255 bytes; tokens of log-ins are longer.
pub const COMMAND_MAX_BYTES: usize = 8192;

/// The number of a message in this session, from 1.
pub type MessageNumber = NonZeroU32;

/// Text of a command that no log may show, or that may hold spaces: not empty, and without control characters.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(String);

impl Credential {
    /// `None` if it cannot stand in a command.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let valid = !text.is_empty() && text.len() < COMMAND_MAX_BYTES && !text.chars().any(char::is_control);
        valid.then(|| Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "({} bytes)", self.0.len())
    }
}

/// A word of a command: not empty, and without spaces and control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word(String);

impl Word {
    /// `None` if it cannot stand in a command.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let valid = !text.is_empty()
            && text.len() < COMMAND_MAX_BYTES
            && !text.chars().any(|character| character.is_control() || character == ' ');
        valid.then(|| Self(text.to_owned()))
    }

    /// The word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Who logs in.
    User(Credential),
    /// The password, which may hold spaces.
    Pass(Credential),
    /// A name, and the digest of the greeting's time stamp with a secret (RFC 1939, section 7).
    Apop(Word, Word),
    /// Log in by SASL, with the initial response where the client sends one, decoded (RFC 5034).
    Auth(Mechanism, Option<InitialResponse>),
    /// Which mechanisms are there (before RFC 2449)?
    AuthMechanisms,
    /// What can you do?
    Capabilities,
    /// Go on encrypted.
    StartTls,
    /// Addresses and messages may go beyond ASCII (RFC 6856).
    Utf8,
    /// Texts of responses in this language, or which there are (RFC 6856).
    Language(Option<Word>),
    /// How many messages, and how many bytes?
    Stat,
    /// The size of one message or of all.
    List(Option<MessageNumber>),
    /// The lasting id of one message or of all.
    UniqueIds(Option<MessageNumber>),
    /// A message.
    Retrieve(MessageNumber),
    /// The header of a message, and this many lines of its body.
    Top(MessageNumber, u32),
    /// It goes when the session ends.
    Delete(MessageNumber),
    /// Nothing.
    Noop,
    /// Nothing goes.
    Reset,
    /// Good bye; what is marked goes now.
    Quit,
}

/// Why a line is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// There is no such command.
    #[error("the command is not known")]
    Unknown,
    /// Arguments are missing, or there are too many.
    #[error("the command has the wrong number of arguments")]
    Count,
    /// The number of a message is from 1 to 4294967295.
    #[error("the argument is no number of a message")]
    Number,
    /// The argument holds what it must not.
    #[error("the command's argument is not valid")]
    Argument,
    /// A log-in is wrong.
    #[error("{0}")]
    Sasl(#[from] SaslError),
}

impl CommandError {
    /// What a server answers.
    #[must_use]
    pub fn response(&self) -> Response {
        Response::err(None, &self.to_string())
    }
}

impl Command {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// [`CommandError`]
    pub fn parse(line: &[u8]) -> Result<Self, CommandError> {
        let line = std::str::from_utf8(line).map_err(|_| CommandError::Argument)?;
        if line.chars().any(char::is_control) {
            return Err(CommandError::Argument);
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let word = word.to_ascii_uppercase();
        if word == "PASS" {
            // A password may begin and end with spaces.
            return Credential::new(rest).map(Self::Pass).ok_or(CommandError::Count);
        }
        let arguments: Vec<&str> = rest.split(' ').filter(|word| !word.is_empty()).take(4).collect();
        match (word.as_str(), arguments.as_slice()) {
            ("USER", [_, ..]) => Credential::new(rest.trim()).map(Self::User).ok_or(CommandError::Argument),
            ("APOP", [name, digest]) => Ok(Self::Apop(word_of(name)?, word_of(digest)?)),
            ("AUTH", []) => Ok(Self::AuthMechanisms),
            ("AUTH", [mechanism]) => Ok(Self::Auth(Mechanism::parse(mechanism.as_bytes())?, None)),
            ("AUTH", [mechanism, response]) => {
                let response = InitialResponse::decode(response.as_bytes())?;
                Ok(Self::Auth(Mechanism::parse(mechanism.as_bytes())?, Some(response)))
            }
            ("CAPA", []) => Ok(Self::Capabilities),
            ("STLS", []) => Ok(Self::StartTls),
            ("UTF8", []) => Ok(Self::Utf8),
            ("LANG", []) => Ok(Self::Language(None)),
            ("LANG", [language]) => Ok(Self::Language(Some(word_of(language)?))),
            ("STAT", []) => Ok(Self::Stat),
            ("LIST", []) => Ok(Self::List(None)),
            ("LIST", [message]) => Ok(Self::List(Some(number(message)?))),
            ("UIDL", []) => Ok(Self::UniqueIds(None)),
            ("UIDL", [message]) => Ok(Self::UniqueIds(Some(number(message)?))),
            ("RETR", [message]) => Ok(Self::Retrieve(number(message)?)),
            ("TOP", [message, lines]) => Ok(Self::Top(number(message)?, count(lines)?)),
            ("DELE", [message]) => Ok(Self::Delete(number(message)?)),
            ("NOOP", []) => Ok(Self::Noop),
            ("RSET", []) => Ok(Self::Reset),
            ("QUIT", []) => Ok(Self::Quit),
            (
                "USER" | "APOP" | "AUTH" | "CAPA" | "STLS" | "UTF8" | "LANG" | "STAT" | "LIST" | "UIDL"
                | "RETR" | "TOP" | "DELE" | "NOOP" | "RSET" | "QUIT",
                _,
            ) => Err(CommandError::Count),
            _ => Err(CommandError::Unknown),
        }
    }

    /// Appends the command and the end of its line.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.line().as_bytes());
        out.extend_from_slice(b"\r\n");
    }

    /// Whether the response, where it is `+OK`, has lines behind it that end with a dot.
    #[must_use]
    pub fn has_lines(&self) -> bool {
        matches!(
            self,
            Self::AuthMechanisms
                | Self::Capabilities
                | Self::Language(None)
                | Self::List(None)
                | Self::UniqueIds(None)
                | Self::Retrieve(_)
                | Self::Top(..)
        )
    }

    /// The line, which may hold a password.
    fn line(&self) -> String {
        match self {
            Self::User(name) => format!("USER {}", name.0),
            Self::Pass(password) => format!("PASS {}", password.0),
            Self::Apop(name, digest) => format!("APOP {} {}", name.0, digest.0),
            Self::Auth(mechanism, None) => format!("AUTH {mechanism}"),
            Self::Auth(mechanism, Some(response)) => {
                format!("AUTH {mechanism} {}", response.encode())
            }
            Self::AuthMechanisms => "AUTH".to_owned(),
            Self::Capabilities => "CAPA".to_owned(),
            Self::StartTls => "STLS".to_owned(),
            Self::Utf8 => "UTF8".to_owned(),
            Self::Language(None) => "LANG".to_owned(),
            Self::Language(Some(language)) => format!("LANG {}", language.0),
            Self::Stat => "STAT".to_owned(),
            Self::List(None) => "LIST".to_owned(),
            Self::List(Some(message)) => format!("LIST {message}"),
            Self::UniqueIds(None) => "UIDL".to_owned(),
            Self::UniqueIds(Some(message)) => format!("UIDL {message}"),
            Self::Retrieve(message) => format!("RETR {message}"),
            Self::Top(message, lines) => format!("TOP {message} {lines}"),
            Self::Delete(message) => format!("DELE {message}"),
            Self::Noop => "NOOP".to_owned(),
            Self::Reset => "RSET".to_owned(),
            Self::Quit => "QUIT".to_owned(),
        }
    }
}

fn word_of(text: &str) -> Result<Word, CommandError> {
    Word::new(text).ok_or(CommandError::Argument)
}

fn number(text: &str) -> Result<MessageNumber, CommandError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().map_err(|_| CommandError::Number) } else { Err(CommandError::Number) }
}

fn count(text: &str) -> Result<u32, CommandError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().map_err(|_| CommandError::Number) } else { Err(CommandError::Number) }
}

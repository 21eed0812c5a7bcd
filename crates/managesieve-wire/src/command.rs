//! Commands of clients (RFC 5804, section 2).

use std::fmt;

use scrinium_line_wire::{InitialResponse, Mechanism, SaslError};
use thiserror::Error;

use crate::frame::Frame;
use crate::status::Status;
use crate::token::{Token, write_literal, write_string};

/// The name of a script (RFC 5804, section 1.6).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScriptName(String);

impl ScriptName {
    /// RFC 5804 asks for 512 bytes.
    const MAX_BYTES: usize = 512;

    /// A name; `None` if it is empty, too long, or has a character of control or an end of a line.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let is_fine = |c: char| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}');
        let fits = (1..=Self::MAX_BYTES).contains(&name.len());
        (fits && name.chars().all(is_fine)).then(|| Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScriptName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// An exchange of SASL begins.
    Authenticate(Mechanism, Option<InitialResponse>),
    /// TLS begins.
    StartTls,
    /// The connection ends.
    Logout,
    /// What does the server offer?
    Capability,
    /// Would a script of this size fit?
    HaveSpace(ScriptName, u32),
    /// A script is put; it replaces one of the same name.
    PutScript(ScriptName, Vec<u8>),
    /// Which scripts are there?
    ListScripts,
    /// This script becomes the active one, or none.
    SetActive(Option<ScriptName>),
    /// A script is read.
    GetScript(ScriptName),
    /// A script is deleted.
    DeleteScript(ScriptName),
    /// A script gets another name.
    RenameScript(ScriptName, ScriptName),
    /// Is this script right? It is not kept.
    CheckScript(Vec<u8>),
    /// Nothing, and the text comes back.
    Noop(Option<String>),
    /// Back to before log-in.
    Unauthenticate,
}

/// Why a frame is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// Words, strings or numbers are not as they must be.
    #[error("the command is not readable")]
    Grammar,
    /// No such command.
    #[error("there is no such command")]
    Unknown,
    /// Too few or too many arguments, or arguments of the wrong kind.
    #[error("the arguments are not those of the command")]
    Arguments,
    /// A name that no script can have.
    #[error("the name is not one that a script can have")]
    Name,
    /// The mechanism's name or its initial response.
    #[error("{0}")]
    Sasl(#[from] SaslError),
}

impl CommandError {
    /// What a server answers.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::no(None, &format!("{}.", capitalised(&self.to_string())))
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}

impl Command {
    /// Reads a command.
    ///
    /// # Errors
    /// [`CommandError`]
    pub fn parse(frame: &Frame) -> Result<Self, CommandError> {
        let tokens = frame.tokens().ok_or(CommandError::Grammar)?;
        let Some((Token::Word(word), arguments)) = tokens.split_first() else {
            return Err(CommandError::Grammar);
        };
        let command = match (word.as_str(), arguments) {
            ("AUTHENTICATE", [Token::Text(mechanism)]) => {
                Self::Authenticate(Mechanism::parse(mechanism)?, None)
            }
            ("AUTHENTICATE", [Token::Text(mechanism), Token::Text(response)]) => {
                let response = initial_response(response)?;
                Self::Authenticate(Mechanism::parse(mechanism)?, Some(response))
            }
            ("STARTTLS", []) => Self::StartTls,
            ("LOGOUT", []) => Self::Logout,
            ("CAPABILITY", []) => Self::Capability,
            ("HAVESPACE", [Token::Text(name), Token::Number(bytes)]) => {
                Self::HaveSpace(script_name(name)?, *bytes)
            }
            ("PUTSCRIPT", [Token::Text(name), Token::Text(script)]) => {
                Self::PutScript(script_name(name)?, script.clone())
            }
            ("LISTSCRIPTS", []) => Self::ListScripts,
            ("SETACTIVE", [Token::Text(name)]) if name.is_empty() => Self::SetActive(None),
            ("SETACTIVE", [Token::Text(name)]) => Self::SetActive(Some(script_name(name)?)),
            ("GETSCRIPT", [Token::Text(name)]) => Self::GetScript(script_name(name)?),
            ("DELETESCRIPT", [Token::Text(name)]) => Self::DeleteScript(script_name(name)?),
            ("RENAMESCRIPT", [Token::Text(from), Token::Text(to)]) => {
                Self::RenameScript(script_name(from)?, script_name(to)?)
            }
            ("CHECKSCRIPT", [Token::Text(script)]) => Self::CheckScript(script.clone()),
            ("NOOP", []) => Self::Noop(None),
            ("NOOP", [Token::Text(text)]) => {
                let text = String::from_utf8(text.clone()).map_err(|_| CommandError::Arguments)?;
                Self::Noop(Some(text))
            }
            ("UNAUTHENTICATE", []) => Self::Unauthenticate,
            (word, _) if NAMES.contains(&word) => return Err(CommandError::Arguments),
            _ => return Err(CommandError::Unknown),
        };
        Ok(command)
    }

    /// Appends the command as a client sends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let name = self.name();
        out.extend_from_slice(name.as_bytes());
        let mut string = |text: &[u8]| {
            out.push(b' ');
            write_string(text, true, out);
        };
        match self {
            Self::Authenticate(mechanism, response) => {
                string(mechanism.as_str().as_bytes());
                if let Some(response) = response {
                    // In a string, what is empty needs no sign of its own.
                    string(if response.0.is_empty() { String::new() } else { response.encode() }.as_bytes());
                }
            }
            Self::HaveSpace(script, bytes) => {
                string(script.0.as_bytes());
                out.extend_from_slice(format!(" {bytes}").as_bytes());
            }
            Self::PutScript(script, text) => {
                string(script.0.as_bytes());
                out.push(b' ');
                write_literal(text, true, out);
            }
            Self::CheckScript(text) => {
                out.push(b' ');
                write_literal(text, true, out);
            }
            Self::SetActive(script) => string(script.as_ref().map_or(b"", |script| script.0.as_bytes())),
            Self::GetScript(script) | Self::DeleteScript(script) => string(script.0.as_bytes()),
            Self::RenameScript(from, to) => {
                string(from.0.as_bytes());
                string(to.0.as_bytes());
            }
            Self::Noop(Some(text)) => string(text.as_bytes()),
            Self::Noop(None)
            | Self::StartTls
            | Self::Logout
            | Self::Capability
            | Self::ListScripts
            | Self::Unauthenticate => {}
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The word that begins it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Authenticate(..) => "AUTHENTICATE",
            Self::StartTls => "STARTTLS",
            Self::Logout => "LOGOUT",
            Self::Capability => "CAPABILITY",
            Self::HaveSpace(..) => "HAVESPACE",
            Self::PutScript(..) => "PUTSCRIPT",
            Self::ListScripts => "LISTSCRIPTS",
            Self::SetActive(_) => "SETACTIVE",
            Self::GetScript(_) => "GETSCRIPT",
            Self::DeleteScript(_) => "DELETESCRIPT",
            Self::RenameScript(..) => "RENAMESCRIPT",
            Self::CheckScript(_) => "CHECKSCRIPT",
            Self::Noop(_) => "NOOP",
            Self::Unauthenticate => "UNAUTHENTICATE",
        }
    }
}

const NAMES: [&str; 14] = [
    "AUTHENTICATE",
    "STARTTLS",
    "LOGOUT",
    "CAPABILITY",
    "HAVESPACE",
    "PUTSCRIPT",
    "LISTSCRIPTS",
    "SETACTIVE",
    "GETSCRIPT",
    "DELETESCRIPT",
    "RENAMESCRIPT",
    "CHECKSCRIPT",
    "NOOP",
    "UNAUTHENTICATE",
];

/// An empty string is an empty response, and `=` as other protocols write it, too.
fn initial_response(text: &[u8]) -> Result<InitialResponse, SaslError> {
    if text.is_empty() { Ok(InitialResponse(Vec::new())) } else { InitialResponse::decode(text) }
}

fn script_name(name: &[u8]) -> Result<ScriptName, CommandError> {
    std::str::from_utf8(name).ok().and_then(ScriptName::new).ok_or(CommandError::Name)
}

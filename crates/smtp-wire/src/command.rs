//! Commands (RFC 5321, section 4.1.1, and those of extensions).

use std::fmt;

use scrinium_line_wire::{Cursor, InitialResponse, Mechanism, SaslError};
use thiserror::Error;

use crate::COMMAND_MAX_BYTES;
use crate::address::{AddressError, Domain, ForwardPath, ReversePath};
use crate::parameter::{MailParameters, RecipientParameters};
use crate::parse::{is_printable, number, skip_blanks};
use crate::reply::{EnhancedCode, Reply};

/// How a client greets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// HELO: no extensions.
    Helo,
    /// EHLO.
    Ehlo,
    /// LHLO: LMTP (RFC 2033).
    Lhlo,
}

impl Greeting {
    fn word(self) -> &'static str {
        match self {
            Self::Helo => "HELO",
            Self::Ehlo => "EHLO",
            Self::Lhlo => "LHLO",
        }
    }
}

/// What a client calls itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientName {
    /// A name or an address.
    Domain(Domain),
    /// Anything else, as it came. Programs of mail send names of computers with all kinds of characters.
    Odd(Argument),
}

impl fmt::Display for ClientName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(domain) => domain.fmt(formatter),
            Self::Odd(text) => formatter.write_str(text.as_str()),
        }
    }
}

/// Text of a command that can stand in a line: without control characters, not empty, and without spaces around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument(String);

impl Argument {
    /// `None` if it cannot stand in a command.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let valid = !text.is_empty() && text.len() < COMMAND_MAX_BYTES && is_printable(text);
        valid.then(|| Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Who the client is.
    Hello(Greeting, ClientName),
    /// A message begins.
    Mail(ReversePath, MailParameters),
    /// A recipient of it.
    Recipient(ForwardPath, RecipientParameters),
    /// Its text follows, if the server says 354.
    Data,
    /// A piece of its text follows at once: this many bytes, and whether they are the last ones (RFC 3030).
    Chunk(u64, bool),
    /// Forget the message.
    Reset,
    /// Nothing; the text is ignored.
    Noop(Option<Argument>),
    /// Is this a recipient?
    Verify(Argument),
    /// Who is on this list?
    Expand(Argument),
    /// What can you do?
    Help(Option<Argument>),
    /// Go on encrypted (RFC 3207).
    StartTls,
    /// Log in (RFC 4954), with the initial response where the client sends one, decoded.
    Authenticate(Mechanism, Option<InitialResponse>),
    /// Send what waits for this domain (RFC 1985).
    TurnAround(Argument),
    /// Good bye.
    Quit,
}

/// Why a line is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// There is no such command.
    #[error("the command is not known")]
    Unknown,
    /// The command is known, and what follows it is wrong.
    #[error("the command's arguments are not valid")]
    Arguments,
    /// The command has arguments, and takes none; or has none.
    #[error("the command has the wrong number of arguments")]
    Count,
    /// An address is wrong.
    #[error("{0}")]
    Address(#[from] AddressError),
    /// A parameter is wrong, comes twice, or has a value where it takes none.
    #[error("a parameter is not valid")]
    Parameter,
    /// A log-in is wrong.
    #[error("{0}")]
    Sasl(#[from] SaslError),
    /// The line holds a NUL or is no UTF-8.
    #[error("the command is not text")]
    NotText,
}

impl CommandError {
    /// What a server answers.
    #[must_use]
    pub fn reply(&self) -> Reply {
        let (code, detail) = match self {
            Self::Unknown => (500, (5, 2)),
            Self::Arguments | Self::Count | Self::Parameter | Self::Sasl(_) => (501, (5, 4)),
            Self::Address(_) => (501, (1, 3)),
            Self::NotText => (500, (5, 2)),
        };
        Reply::with_enhanced(code, EnhancedCode::new(5, detail.0, detail.1), &self.to_string())
    }
}

impl Command {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// [`CommandError`]; nothing of the line counts then.
    pub fn parse(line: &[u8]) -> Result<Self, CommandError> {
        if line.contains(&0) || std::str::from_utf8(line).is_err() {
            return Err(CommandError::NotText);
        }
        let mut cursor = Cursor::new(line.trim_ascii_end());
        let word = cursor.take_while(|byte| byte.is_ascii_alphabetic()).to_ascii_uppercase();
        let ends = cursor.is_empty() || cursor.peek().is_some_and(|byte| byte == b' ' || byte == b'\t');
        if !ends {
            return Err(CommandError::Unknown);
        }
        match word.as_slice() {
            b"HELO" => client_name(cursor).map(|name| Self::Hello(Greeting::Helo, name)),
            b"EHLO" => client_name(cursor).map(|name| Self::Hello(Greeting::Ehlo, name)),
            b"LHLO" => client_name(cursor).map(|name| Self::Hello(Greeting::Lhlo, name)),
            b"MAIL" => mail(cursor),
            b"RCPT" => recipient(cursor),
            b"DATA" => alone(cursor, Self::Data),
            b"BDAT" => chunk(cursor),
            b"RSET" => alone(cursor, Self::Reset),
            b"NOOP" => optional(cursor).map(Self::Noop),
            b"VRFY" => text(cursor).map(Self::Verify),
            b"EXPN" => text(cursor).map(Self::Expand),
            b"HELP" => optional(cursor).map(Self::Help),
            b"STARTTLS" => alone(cursor, Self::StartTls),
            b"AUTH" => authenticate(cursor),
            b"ETRN" => text(cursor).map(Self::TurnAround),
            b"QUIT" => alone(cursor, Self::Quit),
            _ => Err(CommandError::Unknown),
        }
    }

    /// Appends the command and the end of its line.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_string().as_bytes());
        out.extend_from_slice(b"\r\n");
    }

    /// Whether a client waits for the reply before it sends anything else (RFC 2920, section 3.1; RFC 3207). A server
    /// that has bytes behind such a command answers none of them.
    #[must_use]
    pub fn ends_group(&self) -> bool {
        !matches!(self, Self::Mail(..) | Self::Recipient(..) | Self::Chunk(..) | Self::Reset)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hello(greeting, name) => write!(out, "{} {name}", greeting.word()),
            Self::Mail(from, parameters) => write!(out, "MAIL FROM:{from}{parameters}"),
            Self::Recipient(to, parameters) => write!(out, "RCPT TO:{to}{parameters}"),
            Self::Data => out.write_str("DATA"),
            Self::Chunk(bytes, false) => write!(out, "BDAT {bytes}"),
            Self::Chunk(bytes, true) => write!(out, "BDAT {bytes} LAST"),
            Self::Reset => out.write_str("RSET"),
            Self::Noop(None) => out.write_str("NOOP"),
            Self::Noop(Some(text)) => write!(out, "NOOP {}", text.as_str()),
            Self::Verify(text) => write!(out, "VRFY {}", text.as_str()),
            Self::Expand(text) => write!(out, "EXPN {}", text.as_str()),
            Self::Help(None) => out.write_str("HELP"),
            Self::Help(Some(text)) => write!(out, "HELP {}", text.as_str()),
            Self::StartTls => out.write_str("STARTTLS"),
            Self::Authenticate(mechanism, None) => write!(out, "AUTH {mechanism}"),
            Self::Authenticate(mechanism, Some(response)) => {
                write!(out, "AUTH {mechanism} {}", response.encode())
            }
            Self::TurnAround(text) => write!(out, "ETRN {}", text.as_str()),
            Self::Quit => out.write_str("QUIT"),
        }
    }
}

fn alone(cursor: Cursor<'_>, command: Command) -> Result<Command, CommandError> {
    if cursor.is_empty() { Ok(command) } else { Err(CommandError::Count) }
}

fn optional(cursor: Cursor<'_>) -> Result<Option<Argument>, CommandError> {
    let text = std::str::from_utf8(cursor.rest()).map_err(|_| CommandError::NotText)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    Argument::new(text).map(Some).ok_or(CommandError::Arguments)
}

fn text(cursor: Cursor<'_>) -> Result<Argument, CommandError> {
    optional(cursor)?.ok_or(CommandError::Count)
}

fn client_name(cursor: Cursor<'_>) -> Result<ClientName, CommandError> {
    let name = text(cursor)?;
    Ok(Domain::parse(name.as_str().as_bytes()).map_or(ClientName::Odd(name), ClientName::Domain))
}

fn mail(mut cursor: Cursor<'_>) -> Result<Command, CommandError> {
    skip_blanks(&mut cursor);
    if !cursor.take_ignore_case("FROM:") {
        return Err(CommandError::Arguments);
    }
    // Some programs of mail put a space here.
    skip_blanks(&mut cursor);
    let from = ReversePath::read(&mut cursor)?;
    Ok(Command::Mail(from, MailParameters::read(&mut cursor)?))
}

fn recipient(mut cursor: Cursor<'_>) -> Result<Command, CommandError> {
    skip_blanks(&mut cursor);
    if !cursor.take_ignore_case("TO:") {
        return Err(CommandError::Arguments);
    }
    skip_blanks(&mut cursor);
    let to = ForwardPath::read(&mut cursor)?;
    Ok(Command::Recipient(to, RecipientParameters::read(&mut cursor)?))
}

fn chunk(mut cursor: Cursor<'_>) -> Result<Command, CommandError> {
    skip_blanks(&mut cursor);
    let bytes = number(cursor.take_while(|byte| byte.is_ascii_digit())).ok_or(CommandError::Arguments)?;
    let spaces = skip_blanks(&mut cursor);
    let last = spaces > 0 && cursor.take_ignore_case("LAST");
    if cursor.is_empty() { Ok(Command::Chunk(bytes, last)) } else { Err(CommandError::Arguments) }
}

fn authenticate(mut cursor: Cursor<'_>) -> Result<Command, CommandError> {
    skip_blanks(&mut cursor);
    let mechanism = cursor.take_while(|byte| byte != b' ');
    if mechanism.is_empty() {
        return Err(CommandError::Count);
    }
    let mechanism = Mechanism::parse(mechanism)?;
    skip_blanks(&mut cursor);
    let response = cursor.take_while(|byte| byte != b' ');
    if !cursor.is_empty() {
        return Err(CommandError::Count);
    }
    let response = if response.is_empty() { None } else { Some(InitialResponse::decode(response)?) };
    Ok(Command::Authenticate(mechanism, response))
}

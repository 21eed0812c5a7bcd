//! The parameters of MAIL and RCPT (RFC 5321, section 4.1.1.11), of all extensions that are known here.

use std::fmt::{self, Write};

use scrinium_line_wire::Cursor;

use crate::address::{Mailbox, ReversePath};
use crate::command::CommandError;
use crate::delivery::{Notify, OriginalRecipient, Return};
use crate::parse::{number, skip_blanks};
use crate::xtext::{decode_xtext, encode_xtext};

/// More parameters than this are refused.
const PARAMETERS_MAX: usize = 32;

/// An identifier of an envelope is no longer than this (RFC 3461, section 4.4).
const ENVELOPE_ID_MAX_BYTES: usize = 100;

/// A parameter that is not known here: a server answers 555 (RFC 5321, section 4.1.1.11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    keyword: String,
    value: Option<String>,
}

impl Parameter {
    /// `None` if it cannot stand in a command.
    #[must_use]
    pub fn new(keyword: &str, value: Option<&str>) -> Option<Self> {
        let starts = keyword.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let valid = starts && keyword.bytes().all(is_keyword_byte) && value.is_none_or(is_value);
        valid.then(|| Self { keyword: keyword.to_ascii_uppercase(), value: value.map(str::to_owned) })
    }

    /// In capitals.
    #[must_use]
    pub fn keyword(&self) -> &str {
        &self.keyword
    }

    /// What stands behind the `=`, if there is one.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }
}

fn is_keyword_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn is_value(value: &str) -> bool {
    !value.is_empty()
        && value.bytes().all(|byte| byte > b' ' && byte != b'=' && byte != 127)
        && printable(value)
}

fn printable(value: &str) -> bool {
    !value.chars().any(char::is_control)
}

/// How the text of a message is made (RFC 6152, RFC 3030).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Body {
    SevenBit,
    EightBitMime,
    /// Only with BDAT.
    BinaryMime,
}

/// How long a message waits before it continues (RFC 4865).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// This many seconds.
    ForSeconds(u64),
    /// Until a time, as it came: a date-time of RFC 3339 (erratum 2040).
    Until(String),
}

/// Parameters of MAIL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailParameters {
    /// SIZE: what the client thinks that the message has, in bytes (RFC 1870).
    pub size_bytes: Option<u64>,
    /// BODY.
    pub body: Option<Body>,
    /// SMTPUTF8: addresses and headers may go beyond ASCII (RFC 6531).
    pub utf8: bool,
    /// RET (RFC 3461, section 4.3).
    pub return_content: Option<Return>,
    /// ENVID, decoded (RFC 3461, section 4.4).
    pub envelope_id: Option<String>,
    /// AUTH: who handed the message in first, as a trusted client says (RFC 4954, section 5); `<>` if that is unknown.
    pub submitter: Option<ReversePath>,
    /// REQUIRETLS (RFC 8689).
    pub require_tls: bool,
    /// HOLDFOR or HOLDUNTIL.
    pub hold: Option<Hold>,
    /// MT-PRIORITY, from -9 to 9 (RFC 6710).
    pub priority: Option<i8>,
    /// All that is not known here.
    pub other: Vec<Parameter>,
}

/// Parameters of RCPT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecipientParameters {
    /// NOTIFY (RFC 3461, section 4.1).
    pub notify: Option<Notify>,
    /// ORCPT (RFC 3461, section 4.2).
    pub original: Option<OriginalRecipient>,
    /// All that is not known here.
    pub other: Vec<Parameter>,
}

impl MailParameters {
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, CommandError> {
        let mut parameters = Self::default();
        for (keyword, value) in all(cursor)? {
            parameters.set(&keyword, value)?;
        }
        Ok(parameters)
    }

    fn set(&mut self, keyword: &str, value: Option<&[u8]>) -> Result<(), CommandError> {
        match (keyword, value) {
            ("SIZE", Some(value)) => once(&mut self.size_bytes, number(value)),
            ("BODY", Some(value)) => once(&mut self.body, Body::parse(value)),
            ("SMTPUTF8", None) => flag(&mut self.utf8),
            ("RET", Some(value)) => once(&mut self.return_content, return_content(value)),
            ("ENVID", Some(value)) => once(&mut self.envelope_id, envelope_id(value)),
            ("AUTH", Some(value)) => once(&mut self.submitter, submitter(value)),
            ("REQUIRETLS", None) => flag(&mut self.require_tls),
            ("HOLDFOR", Some(value)) => once(&mut self.hold, number(value).map(Hold::ForSeconds)),
            ("HOLDUNTIL", Some(value)) => once(&mut self.hold, until(value)),
            ("MT-PRIORITY", Some(value)) => once(&mut self.priority, priority(value)),
            (
                "SIZE" | "BODY" | "SMTPUTF8" | "RET" | "ENVID" | "AUTH" | "REQUIRETLS" | "HOLDFOR"
                | "HOLDUNTIL" | "MT-PRIORITY",
                _,
            ) => Err(CommandError::Parameter),
            _ => other(&mut self.other, keyword, value),
        }
    }
}

impl fmt::Display for MailParameters {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(size_bytes) = self.size_bytes {
            write!(out, " SIZE={size_bytes}")?;
        }
        match self.body {
            None => {}
            Some(Body::SevenBit) => out.write_str(" BODY=7BIT")?,
            Some(Body::EightBitMime) => out.write_str(" BODY=8BITMIME")?,
            Some(Body::BinaryMime) => out.write_str(" BODY=BINARYMIME")?,
        }
        if self.utf8 {
            out.write_str(" SMTPUTF8")?;
        }
        match self.return_content {
            None => {}
            Some(Return::Full) => out.write_str(" RET=FULL")?,
            Some(Return::Headers) => out.write_str(" RET=HDRS")?,
        }
        if let Some(id) = &self.envelope_id {
            write!(out, " ENVID={}", encode_xtext(id.as_bytes()))?;
        }
        match &self.submitter {
            None => {}
            Some(ReversePath::Null) => out.write_str(" AUTH=<>")?,
            Some(ReversePath::Path(path)) => {
                write!(out, " AUTH={}", encode_xtext(path.mailbox.to_string().as_bytes()))?;
            }
        }
        if self.require_tls {
            out.write_str(" REQUIRETLS")?;
        }
        match &self.hold {
            None => {}
            Some(Hold::ForSeconds(seconds)) => write!(out, " HOLDFOR={seconds}")?,
            Some(Hold::Until(time)) => {
                write!(out, " HOLDUNTIL={}", time.replace(|c: char| !is_time_character(c), ""))?;
            }
        }
        if let Some(priority) = self.priority {
            write!(out, " MT-PRIORITY={priority}")?;
        }
        write_other(out, &self.other)
    }
}

impl RecipientParameters {
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, CommandError> {
        let mut parameters = Self::default();
        for (keyword, value) in all(cursor)? {
            match (keyword.as_str(), value) {
                ("NOTIFY", Some(value)) => once(&mut parameters.notify, Notify::parse(value))?,
                ("ORCPT", Some(value)) => once(&mut parameters.original, OriginalRecipient::parse(value))?,
                ("NOTIFY" | "ORCPT", None) => return Err(CommandError::Parameter),
                (keyword, value) => other(&mut parameters.other, keyword, value)?,
            }
        }
        Ok(parameters)
    }
}

impl fmt::Display for RecipientParameters {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(notify) = &self.notify {
            write!(out, " NOTIFY={notify}")?;
        }
        if let Some(original) = &self.original {
            write!(out, " ORCPT={original}")?;
        }
        write_other(out, &self.other)
    }
}

fn write_other(out: &mut impl Write, parameters: &[Parameter]) -> fmt::Result {
    for Parameter { keyword, value } in parameters {
        write!(out, " {keyword}")?;
        if let Some(value) = value {
            write!(out, "={value}")?;
        }
    }
    Ok(())
}

/// A keyword in capitals, and the bytes of its value.
type RawParameter<'a> = (String, Option<&'a [u8]>);

/// All parameters to the end of the line, with their keywords in capitals.
fn all<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<RawParameter<'a>>, CommandError> {
    let mut parameters = Vec::new();
    loop {
        let spaces = skip_blanks(cursor);
        if cursor.is_empty() {
            return Ok(parameters);
        }
        let keyword = cursor.take_while(is_keyword_byte);
        if spaces == 0 || keyword.is_empty() || parameters.len() >= PARAMETERS_MAX {
            return Err(CommandError::Parameter);
        }
        let keyword = String::from_utf8_lossy(keyword).to_ascii_uppercase();
        // A submitter's `<>` and values of clients that forget to encode `=` are taken as well.
        let value = cursor.take(b'=').then(|| cursor.take_while(|byte| byte > b' ' && byte != 127));
        if value.is_some_and(<[u8]>::is_empty) {
            return Err(CommandError::Parameter);
        }
        parameters.push((keyword, value));
    }
}

/// Sets what may be said once only.
fn once<T>(place: &mut Option<T>, value: Option<T>) -> Result<(), CommandError> {
    match (place.is_some(), value) {
        (false, Some(value)) => {
            *place = Some(value);
            Ok(())
        }
        _ => Err(CommandError::Parameter),
    }
}

fn flag(place: &mut bool) -> Result<(), CommandError> {
    if std::mem::replace(place, true) { Err(CommandError::Parameter) } else { Ok(()) }
}

fn other(parameters: &mut Vec<Parameter>, keyword: &str, value: Option<&[u8]>) -> Result<(), CommandError> {
    let value = match value.map(std::str::from_utf8) {
        None => None,
        Some(Ok(value)) => Some(value),
        Some(Err(_)) => return Err(CommandError::Parameter),
    };
    parameters.push(Parameter::new(keyword, value).ok_or(CommandError::Parameter)?);
    Ok(())
}

impl Body {
    fn parse(value: &[u8]) -> Option<Self> {
        match value.to_ascii_uppercase().as_slice() {
            b"7BIT" => Some(Self::SevenBit),
            b"8BITMIME" => Some(Self::EightBitMime),
            b"BINARYMIME" => Some(Self::BinaryMime),
            _ => None,
        }
    }
}

fn return_content(value: &[u8]) -> Option<Return> {
    match value.to_ascii_uppercase().as_slice() {
        b"FULL" => Some(Return::Full),
        b"HDRS" => Some(Return::Headers),
        _ => None,
    }
}

fn envelope_id(value: &[u8]) -> Option<String> {
    let id = String::from_utf8(decode_xtext(value).ok()?).ok()?;
    let fits = encode_xtext(id.as_bytes()).len() <= ENVELOPE_ID_MAX_BYTES;
    (fits && !id.is_empty() && printable(&id)).then_some(id)
}

fn submitter(value: &[u8]) -> Option<ReversePath> {
    if value == b"<>" {
        return Some(ReversePath::Null);
    }
    let mailbox = Mailbox::parse(&decode_xtext(value).ok()?).ok()?;
    Some(ReversePath::Path(mailbox.into()))
}

fn is_time_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | ':' | '.' | '+')
}

fn until(value: &[u8]) -> Option<Hold> {
    let time = std::str::from_utf8(value).ok()?;
    (time.len() <= 40 && time.chars().all(is_time_character)).then(|| Hold::Until(time.to_owned()))
}

fn priority(value: &[u8]) -> Option<i8> {
    std::str::from_utf8(value).ok()?.parse().ok().filter(|priority| (-9..=9).contains(priority))
}

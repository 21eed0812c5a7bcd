//! Addresses of the envelope (RFC 5321, section 4.1.2; RFC 6531, section 3.3).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use scrinium_line_wire::Cursor;
use thiserror::Error;

/// A longer local part is refused. RFC 5321, section 4.5.3.1.1 asks for 64 bytes; senders of lists use more.
pub const LOCAL_PART_MAX_BYTES: usize = 256;

/// RFC 5321, section 4.5.3.1.2.
const DOMAIN_MAX_BYTES: usize = 255;

/// Hosts in a source route, which nobody uses any more.
const ROUTE_MAX_HOSTS: usize = 16;

/// What is wrong with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    /// It does not begin with `<`, or does not end with `>`.
    #[error("an address stands in angle brackets")]
    Brackets,
    /// The part before the `@`.
    #[error("the local part of the address is not valid")]
    LocalPart,
    /// The part behind the `@`.
    #[error("the domain of the address is not valid")]
    Domain,
    /// An address in square brackets.
    #[error("the address literal is not valid")]
    Literal,
    /// Hosts before the address itself.
    #[error("the source route is not valid")]
    Route,
}

/// An address of a host in square brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AddressLiteral {
    /// `[192.0.2.1]`
    V4(Ipv4Addr),
    /// `[IPv6:2001:db8::1]`
    V6(Ipv6Addr),
    /// `[tag:content]`, of a kind that is not known here; the whole between the brackets.
    General(String),
}

/// The part behind the `@`, or what a client calls itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// A name as it came: with capitals, or with characters beyond ASCII (RFC 6531).
    Name(String),
    /// An address of a host.
    Literal(AddressLiteral),
}

impl Domain {
    /// Reads a whole domain.
    ///
    /// # Errors
    /// [`AddressError::Domain`] and [`AddressError::Literal`]
    pub fn parse(text: &[u8]) -> Result<Self, AddressError> {
        let mut cursor = Cursor::new(text);
        let domain = Self::read(&mut cursor)?;
        if cursor.is_empty() { Ok(domain) } else { Err(AddressError::Domain) }
    }

    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, AddressError> {
        if cursor.take(b'[') {
            let inside =
                cursor.take_while(|byte| !matches!(byte, b'[' | b']' | b'\\') && byte > b' ' && byte < 127);
            if !cursor.take(b']') || inside.len() > DOMAIN_MAX_BYTES {
                return Err(AddressError::Literal);
            }
            return std::str::from_utf8(inside)
                .ok()
                .and_then(literal)
                .map(Self::Literal)
                .ok_or(AddressError::Literal);
        }
        let name = cursor
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | 128..));
        let name = std::str::from_utf8(name).ok().filter(|name| is_name(name)).ok_or(AddressError::Domain)?;
        Ok(Self::Name(name.to_owned()))
    }

    /// Whether it needs SMTPUTF8.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        !matches!(self, Self::Name(name) if !name.is_ascii())
    }
}

/// Underscores are not allowed, and occur.
fn is_name(name: &str) -> bool {
    let label = |label: &str| !label.is_empty() && label.len() <= 63 && !label.chars().any(char::is_control);
    name.len() <= DOMAIN_MAX_BYTES && name.split('.').all(label)
}

fn literal(inside: &str) -> Option<AddressLiteral> {
    if let Ok(address) = inside.parse() {
        return Some(AddressLiteral::V4(address));
    }
    let (tag, content) = inside.split_once(':')?;
    if tag.eq_ignore_ascii_case("IPv6") {
        return content.parse().ok().map(AddressLiteral::V6);
    }
    let valid = !tag.is_empty()
        && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !tag.ends_with('-')
        && !content.is_empty();
    valid.then(|| AddressLiteral::General(inside.to_owned()))
}

impl fmt::Display for Domain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Literal(AddressLiteral::V4(address)) => write!(formatter, "[{address}]"),
            Self::Literal(AddressLiteral::V6(address)) => write!(formatter, "[IPv6:{address}]"),
            Self::Literal(AddressLiteral::General(inside)) => write!(formatter, "[{inside}]"),
        }
    }
}

/// An address: a local part, kept as it was given but without quotes, and a domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mailbox {
    local: String,
    domain: Domain,
}

impl Mailbox {
    /// An address of these parts. The local part is without quotes; they are written where it needs them.
    ///
    /// # Errors
    /// [`AddressError::LocalPart`] if it is empty, too long, or holds control characters.
    pub fn new(local: &str, domain: Domain) -> Result<Self, AddressError> {
        let valid = (1..=LOCAL_PART_MAX_BYTES).contains(&local.len()) && !local.chars().any(char::is_control);
        if valid { Ok(Self { local: local.to_owned(), domain }) } else { Err(AddressError::LocalPart) }
    }

    /// Reads `local@domain`, without brackets.
    ///
    /// # Errors
    /// [`AddressError`]
    pub fn parse(text: &[u8]) -> Result<Self, AddressError> {
        let mut cursor = Cursor::new(text);
        let mailbox = Self::read(&mut cursor)?;
        if cursor.is_empty() { Ok(mailbox) } else { Err(AddressError::Domain) }
    }

    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, AddressError> {
        let local = if cursor.peek() == Some(b'"') { quoted(cursor)? } else { dotted(cursor)? };
        if !cursor.take(b'@') {
            return Err(AddressError::LocalPart);
        }
        Self::new(&local, Domain::read(cursor)?)
    }

    /// The local part, without quotes. Anyone who compares it does so without case where he is its owner.
    #[must_use]
    pub fn local(&self) -> &str {
        &self.local
    }

    /// What stands behind the `@`.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Whether it can be sent without SMTPUTF8.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.local.is_ascii() && self.domain.is_ascii()
    }
}

impl fmt::Display for Mailbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_dotted(&self.local) {
            return write!(formatter, "{}@{}", self.local, self.domain);
        }
        let escaped = self.local.replace('\\', "\\\\").replace('"', "\\\"");
        write!(formatter, "\"{escaped}\"@{}", self.domain)
    }
}

/// What an atom of an address is made of (RFC 5322, section 3.2.3), and what is beyond ASCII.
fn is_atom_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 128 || b"!#$%&'*+-/=?^_`{|}~".contains(&byte)
}

fn is_dotted(local: &str) -> bool {
    local.split('.').all(|atom| !atom.is_empty() && atom.bytes().all(is_atom_byte))
}

/// A local part without quotes. Dots at the wrong places are not allowed, and occur in addresses of telephones.
fn dotted(cursor: &mut Cursor<'_>) -> Result<String, AddressError> {
    let text = cursor.take_while(|byte| is_atom_byte(byte) || byte == b'.');
    if text.len() > LOCAL_PART_MAX_BYTES {
        return Err(AddressError::LocalPart);
    }
    std::str::from_utf8(text).map(str::to_owned).map_err(|_| AddressError::LocalPart)
}

fn quoted(cursor: &mut Cursor<'_>) -> Result<String, AddressError> {
    cursor.next();
    let mut text = Vec::new();
    loop {
        match cursor.next().ok_or(AddressError::LocalPart)? {
            b'"' => break,
            b'\\' => text.push(cursor.next().ok_or(AddressError::LocalPart)?),
            byte => text.push(byte),
        }
        if text.len() > LOCAL_PART_MAX_BYTES {
            return Err(AddressError::LocalPart);
        }
    }
    String::from_utf8(text).map_err(|_| AddressError::LocalPart)
}

/// An address in angle brackets, with the hosts of a source route before it, which a server ignores (RFC 5321,
/// appendix C).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// Hosts that the message was once to go through.
    pub route: Vec<Domain>,
    /// The address.
    pub mailbox: Mailbox,
}

impl From<Mailbox> for Path {
    fn from(mailbox: Mailbox) -> Self {
        Self { route: Vec::new(), mailbox }
    }
}

impl Path {
    /// Reads a path behind its `<`, with its `>`.
    fn read_inside(cursor: &mut Cursor<'_>) -> Result<Self, AddressError> {
        let mut route = Vec::new();
        if cursor.peek() == Some(b'@') {
            loop {
                if !cursor.take(b'@') || route.len() >= ROUTE_MAX_HOSTS {
                    return Err(AddressError::Route);
                }
                route.push(Domain::read(cursor).map_err(|_| AddressError::Route)?);
                if cursor.take(b':') {
                    break;
                }
                if !cursor.take(b',') {
                    return Err(AddressError::Route);
                }
            }
        }
        let mailbox = Mailbox::read(cursor)?;
        if cursor.take(b'>') { Ok(Self { route, mailbox }) } else { Err(AddressError::Brackets) }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("<")?;
        for (index, host) in self.route.iter().enumerate() {
            write!(formatter, "{}@{host}", if index == 0 { "" } else { "," })?;
        }
        write!(formatter, "{}{}>", if self.route.is_empty() { "" } else { ":" }, self.mailbox)
    }
}

/// Whom the message is from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReversePath {
    /// `<>`: a notice, of which no further notice is sent.
    Null,
    /// An address.
    Path(Path),
}

impl ReversePath {
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, AddressError> {
        if !cursor.take(b'<') {
            return Err(AddressError::Brackets);
        }
        if cursor.take(b'>') {
            return Ok(Self::Null);
        }
        Path::read_inside(cursor).map(Self::Path)
    }

    /// The address, if it is one.
    #[must_use]
    pub fn mailbox(&self) -> Option<&Mailbox> {
        match self {
            Self::Null => None,
            Self::Path(path) => Some(&path.mailbox),
        }
    }
}

impl fmt::Display for ReversePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => formatter.write_str("<>"),
            Self::Path(path) => path.fmt(formatter),
        }
    }
}

/// Whom the message is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ForwardPath {
    /// `<Postmaster>` without a domain, which every server takes (RFC 5321, section 4.5.1).
    Postmaster,
    /// An address.
    Path(Path),
}

impl ForwardPath {
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, AddressError> {
        if cursor.take_ignore_case("<postmaster>") {
            return Ok(Self::Postmaster);
        }
        if !cursor.take(b'<') {
            return Err(AddressError::Brackets);
        }
        Path::read_inside(cursor).map(Self::Path)
    }
}

impl fmt::Display for ForwardPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postmaster => formatter.write_str("<Postmaster>"),
            Self::Path(path) => path.fmt(formatter),
        }
    }
}

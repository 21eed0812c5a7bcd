//! URLs of servers, entries and searches (RFC 4516).

use std::fmt;

use scrinium_line_wire::Cursor;
use thiserror::Error;

use crate::filter::{Filter, Identifier};
use crate::filter_text::FilterError;
use crate::limits::MessageLimits;
use crate::name::{DistinguishedName, NameError};
use crate::operation::Scope;
use crate::text::{hex_byte, write_escaped};

/// The longest URL that is read, in bytes.
pub const URL_MAX_BYTES: usize = 16_384;

/// Why a text is no URL of LDAP.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UrlError {
    /// More than [`URL_MAX_BYTES`].
    #[error("a URL has at most 16384 bytes")]
    TooLong,
    /// Another scheme.
    #[error("a URL of LDAP begins with ldap:// or ldaps://")]
    Scheme,
    /// The host or its port.
    #[error(
        "the host is a name, an address, or an IPv6 address in [], and its port a number from 1 to 65535"
    )]
    Host,
    /// A `%` without two hexadecimal digits, or bytes that are no UTF-8.
    #[error("a % in a URL has two hexadecimal digits behind it, and all is UTF-8")]
    Escape,
    /// The name of the entry.
    #[error("the name in the URL is wrong {0}")]
    Name(#[from] NameError),
    /// An attribute.
    #[error("an attribute in the URL has letters, digits, \"-\", \".\" and \";\"")]
    Attribute,
    /// The scope.
    #[error("the scope in a URL is base, one or sub")]
    Scope,
    /// The filter.
    #[error("the filter in the URL is wrong {0}")]
    Filter(#[from] FilterError),
    /// More than the five parts.
    #[error("a URL of LDAP has at most five parts with ? between")]
    Parts,
    /// An extension that has to be understood.
    #[error("the URL asks for the extension {0:?}, which is not known")]
    Extension(String),
}

/// A URL of LDAP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LdapUrl {
    /// `ldaps`: TLS from the first byte (not in the standard, and everywhere in use).
    pub is_tls: bool,
    /// The host's name or address, without `[]`; none means whatever server the reader knows.
    pub host: Option<String>,
    /// Its port, if it is not the usual one.
    pub port: Option<u16>,
    /// The entry where a search begins.
    pub base: DistinguishedName,
    /// The attributes that are asked for; none means all.
    pub attributes: Vec<Identifier>,
    /// How far the search goes: the base alone if nothing is said.
    pub scope: Scope,
    /// What entries, if not all.
    pub filter: Option<Filter>,
}

impl LdapUrl {
    /// The port to connect to.
    #[must_use]
    pub fn port_or_default(&self) -> u16 {
        self.port.unwrap_or(if self.is_tls { 636 } else { 389 })
    }

    /// Reads a URL.
    ///
    /// # Errors
    /// [`UrlError`]
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > URL_MAX_BYTES {
            return Err(UrlError::TooLong);
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let is_tls = match scheme {
            _ if scheme.eq_ignore_ascii_case("ldap") => false,
            _ if scheme.eq_ignore_ascii_case("ldaps") => true,
            _ => return Err(UrlError::Scheme),
        };
        // A path without "/" before "?" is not in the standard; some write it.
        let host_end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, rest) = rest.split_at_checked(host_end).ok_or(UrlError::Host)?;
        let (host, port) = read_host(host)?;
        let mut parts = rest.strip_prefix('/').unwrap_or(rest).split('?');
        let base = decode(parts.next().unwrap_or_default())?;
        let attributes = read_attributes(parts.next().unwrap_or_default())?;
        let scope = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "" | "base" => Scope::Base,
            "one" => Scope::OneLevel,
            "sub" => Scope::Subtree,
            _ => return Err(UrlError::Scope),
        };
        let filter = match decode(parts.next().unwrap_or_default())? {
            text if text.is_empty() => None,
            text => Some(Filter::parse(&text, MessageLimits::SERVER)?),
        };
        // Section 2: an extension with "!" has to be understood, and any other is left out.
        for extension in parts.next().unwrap_or_default().split(',') {
            if let Some(critical) = extension.strip_prefix('!') {
                return Err(UrlError::Extension(critical.chars().take(60).collect()));
            }
        }
        if parts.next().is_some() {
            return Err(UrlError::Parts);
        }
        let base = DistinguishedName::parse(&base)?;
        Ok(Self { is_tls, host, port, base, attributes, scope, filter })
    }
}

fn read_host(text: &str) -> Result<(Option<String>, Option<u16>), UrlError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(UrlError::Host)?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| UrlError::Host)?;
            (host.to_owned(), port.strip_prefix(':').or(if port.is_empty() { Some("") } else { None }))
        }
        None => {
            let (host, port) = text.split_once(':').unwrap_or((text, ""));
            (decode(host)?, Some(port))
        }
    };
    let port = match port.ok_or(UrlError::Host)? {
        "" => None,
        // "+389" would be a number, too.
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok().filter(|port| *port != 0).ok_or(UrlError::Host)?)
        }
        _ => return Err(UrlError::Host),
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte) || byte >= 0x80;
    if !host.bytes().all(is_host) || (host.is_empty() && port.is_some()) {
        return Err(UrlError::Host);
    }
    Ok(((!host.is_empty()).then_some(host), port))
}

fn read_attributes(text: &str) -> Result<Vec<Identifier>, UrlError> {
    let names = text.split(',').filter(|name| !name.is_empty() && *name != "*");
    names.map(|name| Identifier::parse(&decode(name)?).ok_or(UrlError::Attribute)).collect()
}

/// Percent signs with two digits become bytes.
fn decode(text: &str) -> Result<String, UrlError> {
    let mut cursor = Cursor::new(text.as_bytes());
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = cursor.next() {
        decoded.push(if byte == b'%' { hex_byte(&mut cursor).ok_or(UrlError::Escape)? } else { byte });
    }
    String::from_utf8(decoded).map_err(|_| UrlError::Escape)
}

/// Section 2.1: what is neither reserved nor unreserved in a URL (RFC 3986), and `?`, which parts the URL.
fn is_escaped(character: char) -> bool {
    !character.is_ascii_alphanumeric() && !"-._~:/@!$&'()*+,;=".contains(character)
}

impl fmt::Display for LdapUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_tls { "ldaps://" } else { "ldap://" })?;
        match &self.host {
            Some(host) if host.contains(':') => write!(formatter, "[{host}]")?,
            Some(host) => write_escaped(formatter, host.as_bytes(), '%', is_escaped)?,
            None => {}
        }
        if let Some(port) = self.port {
            write!(formatter, ":{port}")?;
        }
        formatter.write_str("/")?;
        write_escaped(formatter, self.base.to_string().as_bytes(), '%', is_escaped)?;
        let attributes: Vec<&str> = self.attributes.iter().map(Identifier::as_str).collect();
        let scope = match self.scope {
            Scope::Base => "",
            Scope::OneLevel => "one",
            Scope::Subtree | Scope::Subordinates => "sub",
        };
        let filter = self.filter.as_ref().map(Filter::to_string).unwrap_or_default();
        let mut parts = [attributes.join(","), scope.to_owned(), filter].to_vec();
        while parts.last().is_some_and(String::is_empty) {
            parts.pop();
        }
        for part in parts {
            formatter.write_str("?")?;
            write_escaped(formatter, part.as_bytes(), '%', is_escaped)?;
        }
        Ok(())
    }
}

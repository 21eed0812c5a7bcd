//! How SMTP (RFC 4954), IMAP (RFC 9051, section 6.2.2) and POP3 (RFC 5034) carry an exchange of SASL: in base64, a
//! line for each message, `=` for an empty initial response and `*` where the client gives up.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

/// What is wrong with a part of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SaslError {
    /// It is no base64 with its padding (RFC 4648, section 4).
    #[error("the response is not base64")]
    NotBase64,
    /// The name of a mechanism has 1 to 20 capitals, digits, `-` and `_` (RFC 4422, section 3.1).
    #[error("the mechanism's name is not valid")]
    Mechanism,
}

/// The name of a mechanism, in capitals.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mechanism(String);

impl Mechanism {
    /// Reads a name, in any case.
    ///
    /// # Errors
    /// [`SaslError::Mechanism`]
    pub fn parse(name: &[u8]) -> Result<Self, SaslError> {
        let valid = (1..=20).contains(&name.len())
            && name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        let name = if valid { std::str::from_utf8(name).ok() } else { None };
        name.map(|name| Self(name.to_ascii_uppercase())).ok_or(SaslError::Mechanism)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What a client sends along with the command that begins an exchange, decoded.
#[derive(Clone, PartialEq, Eq)]
pub struct InitialResponse(pub Vec<u8>);

/// It may be a password, which no log may show.
impl fmt::Debug for InitialResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "InitialResponse({} bytes)", self.0.len())
    }
}

impl InitialResponse {
    /// Reads the word of a command: base64, or `=` for an empty response.
    ///
    /// # Errors
    /// [`SaslError::NotBase64`]
    pub fn decode(word: &[u8]) -> Result<Self, SaslError> {
        if word == b"=" {
            return Ok(Self(Vec::new()));
        }
        STANDARD.decode(word).map(Self).map_err(|_| SaslError::NotBase64)
    }

    /// The word of a command.
    #[must_use]
    pub fn encode(&self) -> String {
        if self.0.is_empty() { "=".to_owned() } else { STANDARD.encode(&self.0) }
    }
}

/// A line of a client in an exchange.
#[derive(Clone, PartialEq, Eq)]
pub enum ClientLine {
    /// A response, decoded.
    Response(Vec<u8>),
    /// The client gives up.
    Cancel,
}

/// Responses hold passwords, which no log may show.
impl fmt::Debug for ClientLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response(response) => write!(formatter, "Response({} bytes)", response.len()),
            Self::Cancel => formatter.write_str("Cancel"),
        }
    }
}

impl ClientLine {
    /// The line without its end.
    #[must_use]
    pub fn encode(&self) -> String {
        match self {
            Self::Response(response) => STANDARD.encode(response),
            Self::Cancel => "*".to_owned(),
        }
    }
}

/// Reads a line of a client, without its end.
///
/// # Errors
/// [`SaslError::NotBase64`]
pub fn client_line(line: &[u8]) -> Result<ClientLine, SaslError> {
    if line == b"*" {
        return Ok(ClientLine::Cancel);
    }
    STANDARD.decode(line).map(ClientLine::Response).map_err(|_| SaslError::NotBase64)
}

/// What a server's challenge says, in base64.
///
/// # Errors
/// [`SaslError::NotBase64`]
pub fn server_challenge(text: &[u8]) -> Result<Vec<u8>, SaslError> {
    STANDARD.decode(text).map_err(|_| SaslError::NotBase64)
}

//! What a server offers (RFC 5804, section 1.7). It says it after the greeting, after STARTTLS, and after a log-in with a
//! security layer, without being asked.

use scrinium_line_wire::Mechanism;

use crate::token::{Token, write_string};

/// A capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capability {
    /// The program's name.
    Implementation(String),
    /// Mechanisms of log-in, for now.
    Sasl(Vec<Mechanism>),
    /// Extensions of Sieve.
    Sieve(Vec<String>),
    /// STARTTLS may be given.
    StartTls,
    /// How often a script may redirect a message.
    MaxRedirects(u32),
    /// Methods of `notify`.
    Notify(Vec<String>),
    /// The language of texts (RFC 5646).
    Language(String),
    /// The person whose scripts these are.
    Owner(String),
    /// UNAUTHENTICATE may be given.
    Unauthenticate,
    /// The protocol's version: `1.0`.
    Version(String),
    /// Another one.
    Other(String, Option<String>),
}

impl Capability {
    /// Appends the line.
    pub fn write(&self, out: &mut Vec<u8>) {
        let joined = |words: &[String]| Some(words.join(" "));
        let (name, value) = match self {
            Self::Implementation(text) => ("IMPLEMENTATION", Some(text.clone())),
            Self::Sasl(mechanisms) => {
                let names: Vec<&str> = mechanisms.iter().map(Mechanism::as_str).collect();
                ("SASL", Some(names.join(" ")))
            }
            Self::Sieve(extensions) => ("SIEVE", joined(extensions)),
            Self::StartTls => ("STARTTLS", None),
            Self::MaxRedirects(number) => ("MAXREDIRECTS", Some(number.to_string())),
            Self::Notify(methods) => ("NOTIFY", joined(methods)),
            Self::Language(text) => ("LANGUAGE", Some(text.clone())),
            Self::Owner(text) => ("OWNER", Some(text.clone())),
            Self::Unauthenticate => ("UNAUTHENTICATE", None),
            Self::Version(text) => ("VERSION", Some(text.clone())),
            Self::Other(name, value) => (name.as_str(), value.clone()),
        };
        write_string(name.as_bytes(), false, out);
        if let Some(value) = value {
            out.push(b' ');
            write_string(value.as_bytes(), false, out);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Reads the tokens of a line.
    #[must_use]
    pub fn of(tokens: &[Token]) -> Option<Self> {
        let owned = |text: &Vec<u8>| String::from_utf8(text.clone()).ok();
        let (name, value) = match tokens {
            [Token::Text(name)] => (owned(name)?, None),
            [Token::Text(name), Token::Text(value)] => (owned(name)?, Some(owned(value)?)),
            _ => return None,
        };
        let words = |value: &str| value.split_ascii_whitespace().map(str::to_owned).collect();
        Some(match (name.to_ascii_uppercase().as_str(), value) {
            ("IMPLEMENTATION", Some(value)) => Self::Implementation(value),
            ("SASL", Some(value)) => {
                let names = value.split_ascii_whitespace();
                Self::Sasl(names.filter_map(|name| Mechanism::parse(name.as_bytes()).ok()).collect())
            }
            ("SIEVE", Some(value)) => Self::Sieve(words(&value)),
            ("STARTTLS", None) => Self::StartTls,
            ("MAXREDIRECTS", Some(value)) => Self::MaxRedirects(value.parse().ok()?),
            ("NOTIFY", Some(value)) => Self::Notify(words(&value)),
            ("LANGUAGE", Some(value)) => Self::Language(value),
            ("OWNER", Some(value)) => Self::Owner(value),
            ("UNAUTHENTICATE", None) => Self::Unauthenticate,
            ("VERSION", Some(value)) => Self::Version(value),
            (_, value) => Self::Other(name, value),
        })
    }
}

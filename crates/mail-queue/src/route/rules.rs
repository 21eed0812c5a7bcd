//! Transport rules: which way the mail of an address or domain takes.

use std::collections::HashMap;

use scrinium_smtp_wire::{EnhancedCode, Mailbox};
use thiserror::Error;

use super::protection::{Login, TlsRule};
use super::{is_rule_text, matched};
use crate::message::{Destination, domain_name};
use crate::outcome::{Cause, Ending, Outcome, clean_text};

/// More rules are refused.
pub const RULES_MAX: usize = 100_000;

/// More rules with a star in them are refused: each is looked at for each recipient.
const PATTERNS_MAX: usize = 1_000;

/// Where relay hosts take mail that somebody has logged in for (RFC 6409).
pub const RELAY_PORT: u16 = 587;

/// A server that mail is handed to, whatever its domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayHost {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its MX records are asked for.
    pub by_mx: bool,
    /// TLS from the first byte, as on port 465 (RFC 8314).
    pub implicit_tls: bool,
    /// How one logs in.
    pub login: Option<Login>,
    /// The password may go out without TLS.
    pub allow_plain_login: bool,
}

/// A refusal by rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its status code.
    pub status: EnhancedCode,
    /// What the sender reads.
    pub reason: String,
}

impl Refusal {
    /// What it means for a recipient.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let mut outcome = Outcome::new(Ending::Failed, Cause::RuleRefused);
        if self.status.class() == 5 {
            outcome.status = self.status;
        }
        outcome.reply = Some(clean_text(&self.reason));
        outcome
    }
}

/// A way for mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// To the hosts that DNS names.
    Exchangers {
        /// What connections must have.
        tls: TlsRule,
    },
    /// To a relay host.
    Relay {
        /// Which.
        relay: RelayHost,
        /// What connections must have.
        tls: TlsRule,
    },
    /// By LMTP, to a host and port or a socket.
    Lmtp {
        /// Where.
        endpoint: String,
    },
    /// Into mail files of this server.
    Local,
    /// Kept back until somebody releases it, with the reason.
    Hold(String),
    /// Refused.
    Refuse(Refusal),
}

/// Why rules are not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TransportError {
    /// [`RULES_MAX`].
    #[error(
        "there are more than {RULES_MAX} transport rules, or more than {PATTERNS_MAX} with a star in them"
    )]
    TooMany,
    /// What a rule is for.
    #[error(
        "a transport rule is for an address, a domain, `.domain` for all below it, or one of these with one star: {0}"
    )]
    Pattern(String),
    /// Twice.
    #[error("there are two transport rules for {0}")]
    Twice(String),
}

/// Transport rules, and what holds where none does. Addresses win over domains, these over domains above them, the nearest
/// first, and these over patterns, in their order.
#[derive(Clone, Debug)]
pub struct TransportTable {
    exact: HashMap<String, Transport>,
    patterns: Vec<(String, Transport)>,
    otherwise: Transport,
}

impl TransportTable {
    /// A table without rules.
    #[must_use]
    pub fn new(otherwise: Transport) -> Self {
        Self { exact: HashMap::new(), patterns: Vec::new(), otherwise }
    }

    /// Adds a rule for `ada@example.org`, `example.org`, `.example.org` (all domains below it), or `*@*.example.org`, for one:
    /// one star stands for anything.
    ///
    /// # Errors
    /// [`TransportError`]
    pub fn add(&mut self, pattern: &str, transport: Transport) -> Result<(), TransportError> {
        let pattern = pattern.to_lowercase();
        let stars = pattern.matches('*').count();
        if !is_rule_text(&pattern) || stars > 1 {
            return Err(TransportError::Pattern(clean_text(&pattern)));
        }
        let count = self.exact.len() + self.patterns.len();
        if count >= RULES_MAX || (stars == 1 && self.patterns.len() >= PATTERNS_MAX) {
            return Err(TransportError::TooMany);
        }
        let is_twice = match stars {
            1 => self.patterns.iter().any(|(other, _)| *other == pattern),
            _ => self.exact.contains_key(&pattern),
        };
        if is_twice {
            return Err(TransportError::Twice(pattern));
        }
        if stars == 1 {
            self.patterns.push((pattern, transport));
        } else {
            self.exact.insert(pattern, transport);
        }
        Ok(())
    }

    /// The way for a recipient.
    #[must_use]
    pub fn find(&self, recipient: &Mailbox) -> &Transport {
        let domain = domain_name(recipient.domain());
        let address = format!("{}@{domain}", recipient.local().to_lowercase());
        if let Some(transport) = self.exact.get(&address).or_else(|| self.exact.get(&domain)) {
            return transport;
        }
        let mut below = domain.as_str();
        while let Some(dot) = below.find('.') {
            let (_, parent) = below.split_at(dot);
            if let Some(transport) = self.exact.get(parent) {
                return transport;
            }
            below = parent.get(1..).unwrap_or_default();
        }
        let is_meant = |pattern: &str| {
            let text = if pattern.contains('@') { &address } else { &domain };
            matched(pattern, text).is_some()
        };
        let pattern = self.patterns.iter().find(|(pattern, _)| is_meant(pattern));
        pattern.map_or(&self.otherwise, |(_, transport)| transport)
    }

    /// The destination of a recipient: what he shares connections with.
    #[must_use]
    pub fn destination(&self, recipient: &Mailbox) -> Destination {
        let domain = domain_name(recipient.domain());
        let (transport, host) = match self.find(recipient) {
            Transport::Exchangers { .. } => ("smtp", domain),
            Transport::Relay { relay, .. } => {
                ("relay", format!("{}:{}", relay.host.to_lowercase(), relay.port))
            }
            Transport::Lmtp { endpoint } => ("lmtp", endpoint.clone()),
            Transport::Local => ("local", domain),
            Transport::Hold(_) => ("hold", domain),
            Transport::Refuse(_) => ("refuse", domain),
        };
        Destination { transport: transport.to_owned(), host, require_tls: false }
    }
}

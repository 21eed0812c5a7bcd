//! The ports of a mail domain.

use scrinium_sender_authentication::DomainName;

/// What is spoken at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MailProtocol {
    /// IMAP
    Imap,
    /// POP3
    Pop3,
    /// Submission (RFC 6409)
    Submission,
}

/// How a port is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Security {
    /// From the first byte (RFC 8314 §3).
    Tls,
    /// By STARTTLS or STLS.
    StartTls,
}

/// A port that people's programs use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// What is spoken there.
    pub protocol: MailProtocol,
    /// Its host.
    pub host: DomainName,
    /// Its number.
    pub port: u16,
    /// How it is encrypted.
    pub security: Security,
}

/// All of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailService {
    /// The domain of the addresses.
    pub domain: DomainName,
    /// What people call it.
    pub display_name: String,
    /// Its ports, the preferred ones first.
    pub endpoints: Vec<Endpoint>,
    /// The host of its web server, for what is fetched by HTTPS.
    pub web_host: DomainName,
}

impl MailService {
    /// Ports of a protocol, those that are encrypted from the first byte before others (RFC 8314 §3).
    pub fn of(&self, protocol: MailProtocol) -> Vec<&Endpoint> {
        let mut found: Vec<&Endpoint> =
            self.endpoints.iter().filter(|endpoint| endpoint.protocol == protocol).collect();
        found.sort_by_key(|endpoint| endpoint.security);
        found
    }

    /// The address in what a client sends, if it is one of this domain.
    #[must_use]
    pub fn own_address<'a>(&self, address: &'a str) -> Option<&'a str> {
        let address = address.trim();
        let (local, domain) = address.rsplit_once('@')?;
        let is_plain = !local.is_empty() && address.len() <= 320 && !address.chars().any(char::is_control);
        (is_plain && DomainName::parse(domain).as_ref() == Some(&self.domain)).then_some(address)
    }
}

//! The protocols by which people come in.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A protocol that asks who somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// The HTTP interface: Basic, Bearer, and the cookies of sessions.
    Http,
    /// The pages that people sign in to, which can ask for a second step.
    Browser,
    /// Mail that is handed in (RFC 6409).
    Submission,
    /// IMAP (RFC 9051).
    Imap,
    /// POP3 (RFC 1939).
    Pop3,
    /// ManageSieve (RFC 5804).
    ManageSieve,
    /// Calendars (RFC 4791).
    CalDav,
    /// Address books (RFC 6352).
    CardDav,
    /// LDAP (RFC 4511).
    Ldap,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Http,
        Self::Browser,
        Self::Submission,
        Self::Imap,
        Self::Pop3,
        Self::ManageSieve,
        Self::CalDav,
        Self::CardDav,
        Self::Ldap,
    ];

    /// Its word in what is stored, shown and logged.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Browser => "browser",
            Self::Submission => "submission",
            Self::Imap => "imap",
            Self::Pop3 => "pop3",
            Self::ManageSieve => "managesieve",
            Self::CalDav => "caldav",
            Self::CardDav => "carddav",
            Self::Ldap => "ldap",
        }
    }

    /// The protocol of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.word() == word)
    }

    /// Whether somebody who has shown a password can be asked for a second proof.
    #[must_use]
    pub const fn has_second_step(self) -> bool {
        matches!(self, Self::Browser)
    }

    /// Whether proofs arrive as exchanges of SASL (RFC 4422).
    #[must_use]
    pub const fn has_sasl(self) -> bool {
        matches!(self, Self::Submission | Self::Imap | Self::Pop3 | Self::ManageSieve | Self::Ldap)
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Some of the protocols: what an app password is for, or what a person may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolSet(u16);

impl ProtocolSet {
    /// None.
    pub const NONE: Self = Self(0);

    /// All that there are.
    #[must_use]
    pub fn all() -> Self {
        Protocol::ALL.into_iter().collect()
    }

    /// What a program for mail needs.
    #[must_use]
    pub fn mail() -> Self {
        [Protocol::Submission, Protocol::Imap, Protocol::Pop3, Protocol::ManageSieve].into_iter().collect()
    }

    /// What a program for calendars and address books needs.
    #[must_use]
    pub fn calendars() -> Self {
        [Protocol::CalDav, Protocol::CardDav].into_iter().collect()
    }

    /// Whether the protocol is one of these.
    #[must_use]
    pub const fn has(self, protocol: Protocol) -> bool {
        self.0 & protocol.bit() != 0
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// These without one.
    #[must_use]
    pub const fn without(self, protocol: Protocol) -> Self {
        Self(self.0 & !protocol.bit())
    }

    /// These, in the order of [`Protocol::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Protocol> {
        Protocol::ALL.into_iter().filter(move |protocol| self.has(*protocol))
    }
}

impl FromIterator<Protocol> for ProtocolSet {
    fn from_iter<I: IntoIterator<Item = Protocol>>(protocols: I) -> Self {
        Self(protocols.into_iter().fold(0, |set, protocol| set | protocol.bit()))
    }
}

impl Serialize for ProtocolSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Protocol::word))
    }
}

impl<'de> Deserialize<'de> for ProtocolSet {
    /// A word that this version does not know is left out, which only narrows what is allowed.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Vec::<String>::deserialize(deserializer)?;
        Ok(words.iter().filter_map(|word| Protocol::parse(word)).collect())
    }
}

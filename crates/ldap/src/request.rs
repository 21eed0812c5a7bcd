//! What a session asks of its surroundings, and what they answer.

use scrinium_ldap_wire::{Assertion, DistinguishedName, Entry, LdapResult, Matcher, Scope, Secret};

/// What a session asks. It takes nothing of the client until it is answered.
#[derive(Debug)]
pub enum Request {
    /// Shake hands, then answer [`Answer::Encrypted`]. The output must be sent before.
    StartTls,
    /// Whether a name and a password let somebody in. The password is not empty.
    Bind {
        /// A DN, a log-in name or an address.
        name: String,
        /// The password.
        password: Secret,
    },
    /// An exchange of SASL begins.
    BeginSasl {
        /// The mechanism.
        mechanism: String,
        /// The client's first words, where there are any.
        initial: Option<Secret>,
    },
    /// The exchange goes on.
    ContinueSasl(Secret),
    /// Entries.
    Search(Box<Search>),
    /// Whether an entry has a value.
    Compare {
        /// The entry.
        name: DistinguishedName,
        /// The value.
        assertion: Assertion,
    },
}

/// A search.
#[derive(Debug)]
pub struct Search {
    /// Where it begins.
    pub base: DistinguishedName,
    /// How far it goes.
    pub scope: Scope,
    /// What entries.
    pub matcher: Matcher,
    /// Behind which place: what the last page ended with, as the client gives it back. It may be anything.
    pub after: Option<Vec<u8>>,
    /// Entries at most.
    pub entries_max: usize,
    /// Whether the client asks for pages, which may have fewer entries.
    pub is_paged: bool,
    /// How long it may take, in seconds; 0: the client does not say.
    pub time_limit_s: u32,
    /// A value of `uid` or `mail` that each entry has which the filter takes, where the filter says one, in ASCII.
    pub key: Option<String>,
}

/// Somebody who was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The name of their entry.
    pub name: String,
}

/// What the surroundings answer.
#[derive(Debug)]
pub enum Answer {
    /// Hands are shaken.
    Encrypted,
    /// Somebody was let in; what goes along in SASL.
    Bound(Binding, Option<Vec<u8>>),
    /// SASL goes on with this challenge.
    Challenge(Vec<u8>),
    /// Entries that match, whole; and where the next ones begin, if there may be more.
    Found {
        /// The entries.
        entries: Vec<Entry>,
        /// The place, for [`Search::after`].
        next: Option<Vec<u8>>,
    },
    /// It ended so.
    Ended(LdapResult),
}

//! How much of what one holder may have.

use std::fmt;
use std::time::Duration;

use scrinium_clock::Clock;

use crate::NetworkPrefixes;

/// What an [`crate::Account`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Requests that are not answered to the end.
    Requests,
    /// Feeds of changes that stay open; they are requests as well.
    Feeds,
    /// Bytes held in memory: of bodies that came, and of answers that were not taken yet.
    Bytes,
    /// Log-ins that wait or are checked.
    Logins,
    /// Bytes of messages that wait in temporary files until they are whole.
    FileBytes,
}

impl Resource {
    pub(crate) const COUNT: usize = 5;
}

/// Several of it, in words.
impl fmt::Display for Resource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Requests => "requests",
            Self::Feeds => "feeds",
            Self::Bytes => "bytes of requests and answers",
            Self::Logins => "log-ins",
            Self::FileBytes => "bytes in temporary files",
        })
    }
}

/// The most that one holder may have at once.
#[derive(Clone, Copy, Debug)]
pub struct HolderLimits {
    /// Connections.
    pub connections: usize,
    /// Requests that are not answered to the end.
    pub requests: usize,
    /// Feeds of changes that stay open.
    pub feeds: usize,
    /// Bytes of bodies that came, and of answers that were not taken yet.
    pub bytes: usize,
    /// Worker threads that work for it; more work waits.
    pub threads: usize,
    /// Log-ins that wait or are checked.
    pub logins: usize,
    /// Bytes of messages that wait in temporary files until they are whole.
    pub file_bytes: usize,
}

impl HolderLimits {
    /// No limit at all.
    pub const NONE: Self = Self {
        connections: usize::MAX,
        requests: usize::MAX,
        feeds: usize::MAX,
        bytes: usize::MAX,
        threads: usize::MAX,
        logins: usize::MAX,
        file_bytes: usize::MAX,
    };

    pub(crate) const fn of(&self, resource: Resource) -> usize {
        match resource {
            Resource::Requests => self.requests,
            Resource::Feeds => self.feeds,
            Resource::Bytes => self.bytes,
            Resource::Logins => self.logins,
            Resource::FileBytes => self.file_bytes,
        }
    }
}

/// When failed log-ins lock and delay.
#[derive(Clone, Copy, Debug)]
pub struct GuessOptions {
    /// Failures of one name from one network until the two are locked (CouchDB 3.5: 5).
    pub lock_after: u32,
    /// How long a failure counts, and how long the lock holds (CouchDB 3.5: 5 min).
    pub lock_for: Duration,
    /// Failures of one network, whatever the names, until its log-ins are delayed.
    pub delay_after: u32,
    /// The first delay; it doubles with each further failure (Dovecot: 2 s).
    pub delay_first: Duration,
    /// The longest delay (Dovecot: 15 s).
    pub delay_most: Duration,
    /// Names and networks that are told apart; past that the oldest are forgotten.
    pub kept: usize,
}

impl Default for GuessOptions {
    fn default() -> Self {
        Self {
            lock_after: 5,
            lock_for: Duration::from_mins(5),
            delay_after: 10,
            delay_first: Duration::from_secs(2),
            delay_most: Duration::from_secs(15),
            kept: 32_768,
        }
    }
}

/// How [`crate::Accounts`] counts.
#[derive(Clone, Debug)]
pub struct AccountOptions {
    /// Connections of all holders together.
    pub connections: usize,
    /// What of an address names a network.
    pub prefixes: NetworkPrefixes,
    /// Limits of a network.
    pub network: HolderLimits,
    /// Limits of a person.
    pub person: HolderLimits,
    /// Failed log-ins.
    pub guesses: GuessOptions,
    /// What time it is.
    pub clock: Clock,
}

impl Default for AccountOptions {
    fn default() -> Self {
        Self {
            connections: 20_000,
            prefixes: NetworkPrefixes::default(),
            network: HolderLimits {
                connections: 512,
                requests: 128,
                feeds: 16,
                bytes: 16 << 20,
                threads: 16,
                logins: 32,
                file_bytes: 256 << 20,
            },
            person: HolderLimits {
                connections: 512,
                requests: 256,
                feeds: 128,
                bytes: 128 << 20,
                threads: 64,
                logins: 32,
                file_bytes: 1 << 30,
            },
            guesses: GuessOptions::default(),
            clock: Clock::default(),
        }
    }
}

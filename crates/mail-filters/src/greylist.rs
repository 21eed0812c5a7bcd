//! Greylisting (RFC 6647): who is unknown is asked to come again, which most who send spam do not.

use std::net::IpAddr;

/// A sender as greylisting knows it: network, sender and recipient.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GreyKey {
    /// The network of the server, as large senders come from several addresses of one: the first 24 or 64 bits, and zeros.
    pub network: IpAddr,
    /// The sender in lower case, without what some lists put there for each message.
    pub sender: String,
    /// The recipient in lower case.
    pub recipient: String,
}

/// Bytes of an address that count.
const ADDRESS_BYTES_MAX: usize = 320;

impl GreyKey {
    /// The key of an attempt.
    #[must_use]
    pub fn new(address: IpAddr, sender: &str, recipient: &str) -> Self {
        let network = match address.to_canonical() {
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                IpAddr::from([a, b, c, 0])
            }
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::from([a, b, c, d, 0, 0, 0, 0])
            }
        };
        let text = |text: &str| -> String {
            text.chars().take(ADDRESS_BYTES_MAX).flat_map(char::to_lowercase).collect()
        };
        Self { network, sender: without_number(&text(sender)), recipient: text(recipient) }
    }
}

/// A sender without its digits, which lists and VERP change with each message.
fn without_number(sender: &str) -> String {
    let (local, domain) = sender.rsplit_once('@').unwrap_or((sender, ""));
    let mut out = String::with_capacity(sender.len());
    for letter in local.chars() {
        let letter = if letter.is_ascii_digit() { '#' } else { letter };
        if letter != '#' || !out.ends_with('#') {
            out.push(letter);
        }
    }
    format!("{out}@{domain}")
}

/// What is kept of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GreyRecord {
    /// When it was first seen, in seconds since 1970.
    pub first_seconds: u64,
    /// When it last passed, if it has.
    pub passed_seconds: Option<u64>,
}

/// Where records are kept. One that is lost costs its sender one more attempt.
pub trait GreyStore {
    /// The record of a key.
    fn get(&self, key: &GreyKey) -> Option<GreyRecord>;
    /// Keeps a record until a time, in seconds since 1970.
    fn keep(&self, key: &GreyKey, record: GreyRecord, until_seconds: u64);
}

/// How long who is unknown has to wait, and how long who has passed is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GreyPolicy {
    /// An attempt before this many seconds is too early.
    pub delay_seconds: u64,
    /// One after this many begins from the start.
    pub window_seconds: u64,
    /// Who has passed and does not come for this long is unknown again.
    pub known_seconds: u64,
}

impl Default for GreyPolicy {
    /// Five minutes, a day (RFC 6647 §5), and 36 days, so that what comes each month stays known.
    fn default() -> Self {
        Self { delay_seconds: 300, window_seconds: 24 * 60 * 60, known_seconds: 36 * 24 * 60 * 60 }
    }
}

/// What happens with an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GreyDecision {
    /// It may go on.
    Pass,
    /// It is to come again, not before this many seconds (4xx).
    Defer(u64),
}

/// Decides about an attempt, and keeps what the next one needs. A clock that has been set back makes nobody wait longer than once.
pub fn decide(store: &impl GreyStore, key: &GreyKey, policy: &GreyPolicy, now_seconds: u64) -> GreyDecision {
    let known = store.get(key).filter(|record| is_known(record, policy, now_seconds));
    let record = known.unwrap_or(GreyRecord { first_seconds: now_seconds, passed_seconds: None });
    let age = now_seconds.saturating_sub(record.first_seconds);
    if record.passed_seconds.is_some() || (known.is_some() && age >= policy.delay_seconds) {
        let passed = GreyRecord { passed_seconds: Some(now_seconds), ..record };
        store.keep(key, passed, now_seconds.saturating_add(policy.known_seconds));
        return GreyDecision::Pass;
    }
    if known.is_none() {
        store.keep(key, record, now_seconds.saturating_add(policy.window_seconds));
    }
    GreyDecision::Defer(policy.delay_seconds.saturating_sub(age))
}

fn is_known(record: &GreyRecord, policy: &GreyPolicy, now_seconds: u64) -> bool {
    let (since, most) = match record.passed_seconds {
        Some(passed) => (passed, policy.known_seconds),
        None => (record.first_seconds, policy.window_seconds),
    };
    now_seconds.checked_sub(since).is_some_and(|age| age <= most)
        || record.passed_seconds.is_some_and(|at| at > now_seconds)
}

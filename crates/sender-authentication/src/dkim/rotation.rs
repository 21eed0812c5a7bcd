//! Keys of a domain: made, named, used in turn, and given up.
//!
//! A key is first published, and nothing is signed with it until DNS has been seen to have it. While a new one is waiting, the old one
//! signs on. What is no longer signed with stays published for as long as messages that it signed may be on their way.

use scrinium_line_wire::date_of;

use crate::name::DomainName;

use super::key::KeyKind;

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// Where a key is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyState {
    /// To be published; DNS has not been seen to have it.
    Waiting,
    /// Messages are signed with it.
    Signing,
    /// Still published, for messages that are on their way.
    Retired,
}

/// A key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// The domain that signs.
    pub domain: DomainName,
    /// Its name below `_domainkey`.
    pub selector: String,
    /// Its kind.
    pub kind: KeyKind,
    /// Where it is in its life.
    pub state: KeyState,
    /// Since when it is there, in seconds since 1970.
    pub since_seconds: u64,
    /// The key itself, as PKCS #8 has it. It is a secret.
    pub pkcs8: Vec<u8>,
}

/// Why keys cannot be read or kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signing keys cannot be stored: {0}")]
pub struct KeyStoreError(pub String);

/// Where keys are kept.
pub trait KeyStore {
    /// The keys of a domain.
    ///
    /// # Errors
    /// [`KeyStoreError`]
    fn keys(&self, domain: &DomainName) -> Result<Vec<StoredKey>, KeyStoreError>;

    /// Keeps a key, instead of the one with its selector, durably before this answers.
    ///
    /// # Errors
    /// [`KeyStoreError`]
    fn keep(&self, key: &StoredKey) -> Result<(), KeyStoreError>;

    /// Removes a key.
    ///
    /// # Errors
    /// [`KeyStoreError`]
    fn remove(&self, domain: &DomainName, selector: &str) -> Result<(), KeyStoreError>;
}

/// When keys change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotationPolicy {
    /// For how long a key signs before another one is made; `None` is for ever.
    pub period_seconds: Option<u64>,
    /// For how long a key that no longer signs stays published: longer than messages wait in queues.
    pub retired_seconds: u64,
}

impl Default for RotationPolicy {
    /// Half a year, and two weeks.
    fn default() -> Self {
        Self { period_seconds: Some(182 * DAY_SECONDS), retired_seconds: 14 * DAY_SECONDS }
    }
}

/// What has to be done with the keys of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyStep {
    /// Make a key of this kind with this name; it is waiting.
    Make(KeyKind, String),
    /// Look whether DNS has this key.
    LookUp(String),
    /// Sign with this key from now on.
    Begin(String),
    /// Sign with this key no longer.
    Retire(String),
    /// The key's record may go, and the key with it.
    Remove(String),
}

/// What has to be done now so that a domain has a key of a kind. `is_published` says whether DNS has been seen to have a key.
#[must_use]
pub fn next_steps(
    keys: &[StoredKey],
    kind: KeyKind,
    policy: RotationPolicy,
    now_seconds: u64,
    is_published: impl Fn(&StoredKey) -> bool,
) -> Vec<KeyStep> {
    let of_state = |state: KeyState| keys.iter().filter(move |key| key.kind == kind && key.state == state);
    let age = |key: &StoredKey| now_seconds.saturating_sub(key.since_seconds);
    let mut steps = Vec::new();
    for key in of_state(KeyState::Retired).filter(|key| age(key) >= policy.retired_seconds) {
        steps.push(KeyStep::Remove(key.selector.clone()));
    }
    let newest = of_state(KeyState::Waiting).max_by_key(|key| key.since_seconds);
    if let Some(waiting) = newest {
        if is_published(waiting) {
            steps.push(KeyStep::Begin(waiting.selector.clone()));
            steps.extend(of_state(KeyState::Signing).map(|key| KeyStep::Retire(key.selector.clone())));
        } else {
            steps.push(KeyStep::LookUp(waiting.selector.clone()));
        }
        return steps;
    }
    let signing = of_state(KeyState::Signing).map(age).min();
    let is_due = match (signing, policy.period_seconds) {
        (None, _) => true,
        (Some(age), Some(period)) => age >= period,
        (Some(_), None) => false,
    };
    if let Some(name) = new_selector(keys, kind, now_seconds).filter(|_| is_due) {
        steps.push(KeyStep::Make(kind, name));
    }
    steps
}

/// A name that says what a key is and since when, such as `rsa-20261126a`; none of the others has it.
fn new_selector(keys: &[StoredKey], kind: KeyKind, now_seconds: u64) -> Option<String> {
    let (year, month, day) = date_of(i64::try_from(now_seconds / DAY_SECONDS).unwrap_or_default());
    let prefix = match kind {
        KeyKind::Rsa => "rsa",
        KeyKind::Ed25519 => "ed25519",
    };
    let mut names = ('a'..='z').map(|letter| format!("{prefix}-{year:04}{month:02}{day:02}{letter}"));
    names.find(|name| keys.iter().all(|key| key.selector != *name))
}

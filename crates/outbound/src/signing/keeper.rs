//! Keys are made, used once DNS has them, and changed in time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use scrinium_clock::Clock;
use scrinium_sender_authentication::dkim::{
    KeyKind, KeyState, KeyStep, KeyStore, KeyStoreError, RotationPolicy, Signer, SigningKey, StoredKey,
    next_steps,
};
use scrinium_sender_authentication::{Answer, DomainName, Question};

use super::key_folder::state_name;
use super::{KeyFolder, Signing};
use crate::resolve::Dns;

/// How often keys are looked after.
const ROUND: Duration = Duration::from_secs(600);

/// Steps of one round for a kind of key: to make one, to look for it, to begin with it and to give the others up.
const STEPS_MAX: usize = 8;

/// A record that DNS should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedKey {
    /// The domain that signs.
    pub domain: String,
    /// The name of the record.
    pub name: String,
    /// What it says.
    pub record: String,
    /// `waiting` until DNS has it, `signing`, or `retired`: it stays published for messages that are on their way.
    pub state: &'static str,
    /// Since when, in seconds since 1970.
    pub since_seconds: u64,
}

/// Keeps the keys of the domains of a server. Clones share them.
#[derive(Clone)]
pub struct KeyKeeper {
    shared: Arc<Shared>,
}

struct Shared {
    store: KeyFolder,
    signing: Signing,
    dns: Dns,
    clock: Clock,
    domains: Vec<DomainName>,
    policy: RotationPolicy,
    published: Mutex<Vec<PublishedKey>>,
}

impl KeyKeeper {
    /// Has no key yet: [`Self::round`] finds them. Domains that DNS cannot know are left out.
    #[must_use]
    pub fn new(
        store: KeyFolder,
        dns: Dns,
        domains: &[String],
        (policy, clock): (RotationPolicy, Clock),
    ) -> Self {
        let domains = domains.iter().filter_map(|domain| DomainName::parse(domain));
        let domains = domains.filter(|domain| domain.is_plain() && domain.labels() > 1).collect();
        let published = Mutex::default();
        let signing = Signing::default();
        Self { shared: Arc::new(Shared { store, signing, dns, clock, domains, policy, published }) }
    }

    /// Those who sign with the keys.
    #[must_use]
    pub fn signing(&self) -> Signing {
        self.shared.signing.clone()
    }

    /// What DNS should have.
    #[must_use]
    pub fn published(&self) -> Vec<PublishedKey> {
        self.shared.published.lock().clone()
    }

    /// Looks after the keys for ever.
    pub async fn run(self) {
        loop {
            self.round().await;
            tokio::time::sleep(ROUND).await;
        }
    }

    /// Does what is due. What cannot be done is logged, and tried again in the next round.
    pub async fn round(&self) {
        let mut published = Vec::new();
        for domain in &self.shared.domains {
            match self.look_after(domain).await {
                Ok(keys) => {
                    published.extend(keys.iter().filter_map(to_publish));
                    self.shared.signing.replace(domain.clone(), signers(&keys));
                }
                Err(error) => {
                    tracing::warn!(%domain, %error, "keys that sign mail could not be looked after");
                }
            }
        }
        *self.shared.published.lock() = published;
    }

    /// Does what is due for a domain. Its keys.
    async fn look_after(&self, domain: &DomainName) -> Result<Vec<StoredKey>, KeyStoreError> {
        let mut keys = self.keys(domain).await?;
        for kind in [KeyKind::Rsa, KeyKind::Ed25519] {
            // What DNS was seen to have, and what it was seen not to have yet.
            let (mut there, mut missing) = (HashSet::new(), HashSet::new());
            for _ in 0..STEPS_MAX {
                let now_seconds = self.shared.clock.now_ms() / 1000;
                let is_there = |key: &StoredKey| there.contains(&key.selector);
                let steps = next_steps(&keys, kind, self.shared.policy, now_seconds, is_there);
                let is_waiting =
                    |step: &KeyStep| matches!(step, KeyStep::LookUp(selector) if missing.contains(selector));
                if steps.iter().all(is_waiting) {
                    break;
                }
                for step in steps {
                    if let KeyStep::LookUp(selector) = step {
                        let found = self.is_published(&keys, &selector).await;
                        if found {
                            there.insert(selector)
                        } else {
                            missing.insert(selector)
                        };
                    } else {
                        self.carry_out((domain, now_seconds), step, &keys).await?;
                    }
                }
                keys = self.keys(domain).await?;
            }
        }
        Ok(keys)
    }

    async fn keys(&self, domain: &DomainName) -> Result<Vec<StoredKey>, KeyStoreError> {
        let (shared, domain) = (Arc::clone(&self.shared), domain.clone());
        blocking(move || shared.store.keys(&domain)).await
    }

    async fn carry_out(
        &self,
        (domain, now_seconds): (&DomainName, u64),
        step: KeyStep,
        keys: &[StoredKey],
    ) -> Result<(), KeyStoreError> {
        let (shared, domain) = (Arc::clone(&self.shared), domain.clone());
        let changed = |selector: &str, state: KeyState| {
            let key = keys.iter().find(|key| key.selector == selector).cloned();
            key.map(|key| StoredKey { state, since_seconds: now_seconds, ..key })
        };
        let kept = match step {
            KeyStep::LookUp(_) => None,
            KeyStep::Make(kind, selector) => {
                let made = blocking(move || {
                    SigningKey::make(kind).map_err(|error| KeyStoreError(error.to_string()))
                });
                let pkcs8 = made.await?;
                let (state, since_seconds) = (KeyState::Waiting, now_seconds);
                Some(StoredKey { domain, selector, kind, state, since_seconds, pkcs8 })
            }
            KeyStep::Begin(selector) => {
                tracing::info!(%domain, selector, "DNS has a new key, which signs mail from now on");
                changed(&selector, KeyState::Signing)
            }
            KeyStep::Retire(selector) => changed(&selector, KeyState::Retired),
            KeyStep::Remove(selector) => {
                return blocking(move || shared.store.remove(&domain, &selector)).await;
            }
        };
        match kept {
            Some(key) => blocking(move || shared.store.keep(&key)).await,
            None => Ok(()),
        }
    }

    /// Whether DNS has the record of a key.
    async fn is_published(&self, keys: &[StoredKey], selector: &str) -> bool {
        let Some(key) = keys.iter().find(|key| key.selector == selector).and_then(to_publish) else {
            return false;
        };
        let Some(name) = DomainName::parse(&key.name) else { return false };
        let plain = |text: &[u8]| {
            text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect::<Vec<u8>>()
        };
        match self.shared.dns.answer(&Question::Texts(name)).await {
            Answer::Texts(texts) => texts.iter().any(|text| plain(text) == plain(key.record.as_bytes())),
            _ => false,
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeyStoreError> + Send + 'static,
) -> Result<T, KeyStoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(KeyStoreError(error.to_string())))
}

fn to_publish(key: &StoredKey) -> Option<PublishedKey> {
    let signing = SigningKey::from_pkcs8(key.kind, &key.pkcs8).ok()?;
    Some(PublishedKey {
        domain: key.domain.to_string(),
        name: format!("{}._domainkey.{}", key.selector, key.domain),
        record: signing.record(),
        state: state_name(key.state),
        since_seconds: key.since_seconds,
    })
}

fn signers(keys: &[StoredKey]) -> Vec<Signer> {
    let signer = |key: &StoredKey| {
        let (domain, selector) = (key.domain.clone(), key.selector.clone());
        let key = SigningKey::from_pkcs8(key.kind, &key.pkcs8).ok()?;
        Some(Signer { domain, selector, key, expires_after_seconds: None })
    };
    keys.iter().filter(|key| key.state == KeyState::Signing).filter_map(signer).collect()
}

//! Checking a name and a password, quickly when both were right a moment ago.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use scrinium_clock::{Clock, milliseconds};

use crate::lookup::{Found, NameLookup};
use crate::names::fold_name;
use crate::password::{PasswordHashText, hash_password, verify_password};
use crate::{DirectoryError, LoginError, Person};

/// How credentials are kept.
#[derive(Debug, Clone)]
pub struct CredentialOptions {
    /// How many right answers are remembered, each in some 250 bytes.
    pub remembered: usize,
    /// How long one is remembered after it was last asked for.
    pub remember_for: Duration,
    /// What time it is.
    pub clock: Clock,
}

impl Default for CredentialOptions {
    fn default() -> Self {
        Self { remembered: 200_000, remember_for: Duration::from_hours(1), clock: Clock::default() }
    }
}

/// Checks names and passwords.
///
/// A right pair is remembered for a while under a keyed digest, so that a client that sends its password with
/// every request pays for one hashing. A remembered answer holds only for the very hash that it was checked
/// against: once the person's document has another, or none, the password is hashed again. So it need not end while
/// it is used: 20,000 people hashed again every ten minutes would be 33 hashings a second.
pub struct Credentials {
    lookup: Arc<dyn NameLookup>,
    remembered: Cache<[u8; 32], Arc<Remembered>>,
    remember_for: Duration,
    clock: Clock,
    began: Instant,
    /// Random, of this process alone: a digest in a core dump tells nothing.
    key: [u8; 32],
    /// Checked when the name is unknown, so that an unknown name takes as long as a wrong password.
    nobody: PasswordHashText,
}

struct Remembered {
    hash: PasswordHashText,
    /// When it was last asked for, in milliseconds since the process began to remember.
    used_ms: AtomicU64,
}

impl Credentials {
    /// Checks against the people of `lookup`.
    ///
    /// # Errors
    /// [`DirectoryError::Hash`] where the system gives no random bytes.
    pub fn new(lookup: Arc<dyn NameLookup>, options: &CredentialOptions) -> Result<Self, DirectoryError> {
        Ok(Self {
            lookup,
            remembered: Cache::new(options.remembered.max(1)),
            remember_for: options.remember_for,
            clock: options.clock.clone(),
            began: options.clock.instant(),
            key: rand::random(),
            nobody: hash_password("nobody has this password")?,
        })
    }

    /// The person of a name and password that were right a moment ago. Answers at once; `None` says only that
    /// [`Credentials::check`] must be asked.
    #[must_use]
    pub fn recall(&self, name: &str, password: &str) -> Option<Arc<Person>> {
        let Found::Person(person) = self.lookup.find(name) else { return None };
        let hash = person.password_hash.as_ref()?;
        self.remembers(&self.digest(&person.id, password), hash).then_some(person)
    }

    /// What tells people apart whichever of their names they use: the document's id, or the name itself where it is
    /// nobody's. Guesses are counted under it.
    #[must_use]
    pub fn key_of(&self, name: &str) -> String {
        match self.lookup.find(name) {
            Found::Person(person) => person.id.clone(),
            Found::Nobody | Found::Group(_) | Found::Several => fold_name(name),
        }
    }

    /// A digest of a name and a password, so that the same wrong pair is known again.
    #[must_use]
    pub fn attempt(&self, key: &str, password: &str) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.digest(key, password);
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// The person with this name (short name, full name or address) and password. Blocks for some 20 ms when
    /// the pair is not remembered, so it is for threads that hash: see [`crate::Logins`].
    ///
    /// # Errors
    /// [`LoginError::Refused`], not telling whether name or password was wrong.
    pub fn check(&self, name: &str, password: &str) -> Result<Arc<Person>, LoginError> {
        let person = match self.lookup.find(name) {
            Found::Person(person) => Some(person),
            Found::Nobody | Found::Group(_) | Found::Several => None,
        };
        let hash = person.as_ref().and_then(|person| person.password_hash.clone());
        let digest = self.digest(person.as_ref().map_or(name, |person| &person.id), password);
        if let (Some(person), Some(hash)) = (&person, &hash)
            && self.remembers(&digest, hash)
        {
            return Ok(Arc::clone(person));
        }
        let matches = verify_password(password, hash.as_ref().unwrap_or(&self.nobody));
        match (person, hash) {
            (Some(person), Some(hash)) if matches => {
                let used_ms = AtomicU64::new(self.now_ms());
                self.remembered.insert(digest, Arc::new(Remembered { hash, used_ms }));
                Ok(person)
            }
            _ => Err(LoginError::Refused),
        }
    }

    fn remembers(&self, digest: &[u8; 32], hash: &PasswordHashText) -> bool {
        let Some(remembered) = self.remembered.get(digest) else { return false };
        let now_ms = self.now_ms();
        let unused_ms = now_ms.saturating_sub(remembered.used_ms.load(Ordering::Relaxed));
        let holds = remembered.hash == *hash && Duration::from_millis(unused_ms) < self.remember_for;
        if holds {
            remembered.used_ms.fetch_max(now_ms, Ordering::Relaxed);
        } else {
            self.remembered.remove(digest);
        }
        holds
    }

    fn now_ms(&self) -> u64 {
        milliseconds(self.clock.elapsed(self.began))
    }

    fn digest(&self, id: &str, password: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(id.len() as u64).to_le_bytes()).update(id.as_bytes()).update(password.as_bytes());
        *hasher.finalize().as_bytes()
    }
}

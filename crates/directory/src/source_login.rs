//! Passwords of people who come from another directory, checked there.
//!
//! Asked is only for somebody who has no password here and whom nothing else keeps out: who is disabled, has no right by the protocol or
//! needs an app password is refused before the password leaves this server. An empty password never does, since servers take it for
//! nobody's log-in and accept it (RFC 4513 §5.1.2). A right answer holds for some minutes under a keyed digest, so that a client that
//! shows its password every minute does not ask each time. Guesses are counted, slowed and locked as those of others.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use scrinium_clock::{Clock, milliseconds};

use crate::Person;

/// A right answer is believed for so long.
const BELIEVED_FOR: Duration = Duration::from_mins(5);

/// More right answers are not remembered.
const REMEMBERED_MAX: usize = 100_000;

/// Another server that knows people's passwords.
pub trait PasswordSource: Send + Sync {
    /// Whether this is the password of an entry there; `None`: that cannot be found out now. Comes to an end within seconds, and holds
    /// no thread that others wait for.
    fn check<'s>(&'s self, entry: &'s str, password: &'s str) -> PasswordAnswer<'s>;
}

/// What a source says of a password, once it has.
pub type PasswordAnswer<'s> = Pin<Box<dyn Future<Output = Option<bool>> + Send + 's>>;

/// A source, and what it has said lately.
pub(crate) struct SourcePasswords {
    source: Arc<dyn PasswordSource>,
    /// Until when each right answer is believed, in milliseconds since `began`.
    believed: Cache<[u8; 32], u64>,
    /// Random, of this process alone.
    key: [u8; 32],
    clock: Clock,
    began: Instant,
}

impl SourcePasswords {
    pub(crate) fn new(source: Arc<dyn PasswordSource>, clock: Clock) -> Self {
        let began = clock.instant();
        Self { source, believed: Cache::new(REMEMBERED_MAX), key: rand::random(), clock, began }
    }

    /// Whether the password was right a short while ago.
    pub(crate) fn believes(&self, person: &Person, password: &str) -> bool {
        let digest = self.digest(person, password);
        let Some(until_ms) = self.believed.get(&digest) else { return false };
        let holds = self.now_ms() < until_ms;
        if !holds {
            self.believed.remove(&digest);
        }
        holds
    }

    /// Asks the source.
    pub(crate) async fn ask(&self, person: &Person, password: &str) -> Option<bool> {
        let (Some(entry), false) = (&person.source_entry, password.is_empty()) else { return Some(false) };
        let answer = self.source.check(entry, password).await;
        if answer == Some(true) {
            let until_ms = self.now_ms().saturating_add(milliseconds(BELIEVED_FOR));
            self.believed.insert(self.digest(person, password), until_ms);
        }
        answer
    }

    fn now_ms(&self) -> u64 {
        milliseconds(self.clock.elapsed(self.began))
    }

    fn digest(&self, person: &Person, password: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        for part in [&person.id, person.source_entry.as_deref().unwrap_or_default()] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        *hasher.update(password.as_bytes()).finalize().as_bytes()
    }
}

/// Whether the password of a person is the source's to check: not that of somebody who has one here, or a role in the server.
pub(crate) fn is_checked_there(person: &Person) -> bool {
    let has_role = person.roles.iter().any(|role| role.starts_with('_'));
    person.source_entry.is_some() && person.credentials.password().is_none() && !has_role
}

//! Cookie sessions, as CouchDB's `AuthSession`: the name, the time and a code that only this server can make.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;

use crate::Person;

const CODE_BYTES: usize = 32;
const LONGEST_COOKIE: usize = 1024;

/// Why a session's cookie is not accepted.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum SessionError {
    /// The text is not one that this server makes.
    #[error("Malformed AuthSession cookie. Please clear your cookies.")]
    Malformed,
    /// The code is wrong: forged, of another server, or from before the password was changed.
    #[error("the session is not valid here any more; log in again")]
    Invalid,
    /// It was not used for too long.
    #[error("the session has timed out; log in again")]
    TimedOut,
}

/// An accepted session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Id of the person's document.
    pub person_id: String,
    /// When its cookie was made, in seconds since 1970.
    pub issued_s: u64,
    /// Whether the client should get a fresh cookie with this answer, so that a session in use never ends.
    pub renew: bool,
}

/// Makes and checks the cookies of sessions. A cookie is base64url of `id:HEXTIME:code`, where the code is a
/// keyed BLAKE3 over id, time and the person's password hash: a new password ends all sessions of the old one.
pub struct SessionKeeper {
    key: [u8; 32],
    timeout: Duration,
}

impl SessionKeeper {
    /// Keeps sessions with the server's secret (the same after a restart, or everybody must log in again),
    /// each for `timeout` after its last use.
    #[must_use]
    pub fn new(secret: &[u8], timeout: Duration) -> Self {
        Self { key: blake3::derive_key("scrinium 2026 session cookies", secret), timeout }
    }

    /// How long a session lasts without use.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The cookie's value for a session of `person` that begins or goes on at `now_s` (seconds since 1970).
    #[must_use]
    pub fn issue(&self, person: &Person, now_s: u64) -> String {
        let mut cookie = format!("{}:{now_s:X}:", person.id).into_bytes();
        cookie.extend_from_slice(self.code(person, now_s).as_bytes());
        URL_SAFE_NO_PAD.encode(cookie)
    }

    /// The id of the person whom a cookie names, not yet believed: look the person up, then [`Self::check`].
    ///
    /// # Errors
    /// [`SessionError::Malformed`].
    pub fn claimed_person(cookie: &str) -> Result<String, SessionError> {
        Claim::read(cookie).map(|claim| claim.person_id)
    }

    /// Checks a cookie against the person it names, at `now_s`.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn check(&self, cookie: &str, person: &Person, now_s: u64) -> Result<Session, SessionError> {
        let claim = Claim::read(cookie)?;
        // `blake3::Hash` compares in constant time.
        if claim.person_id != person.id || self.code(person, claim.issued_s) != claim.code {
            return Err(SessionError::Invalid);
        }
        let timeout_s = self.timeout.as_secs();
        let age_s = now_s.saturating_sub(claim.issued_s);
        if age_s >= timeout_s {
            return Err(SessionError::TimedOut);
        }
        // As CouchDB does: a new cookie once a tenth of the time is gone, not with every request.
        let renew = age_s >= timeout_s / 10;
        Ok(Session { person_id: claim.person_id, issued_s: claim.issued_s, renew })
    }

    fn code(&self, person: &Person, issued_s: u64) -> blake3::Hash {
        let hash = person.password_hash.as_ref().map_or("", |hash| hash.as_str());
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&issued_s.to_le_bytes());
        hasher.update(&(person.id.len() as u64).to_le_bytes()).update(person.id.as_bytes());
        hasher.update(hash.as_bytes());
        hasher.finalize()
    }
}

struct Claim {
    person_id: String,
    issued_s: u64,
    code: blake3::Hash,
}

impl Claim {
    fn read(cookie: &str) -> Result<Self, SessionError> {
        if cookie.len() > LONGEST_COOKIE {
            return Err(SessionError::Malformed);
        }
        let bytes =
            URL_SAFE_NO_PAD.decode(cookie.trim_end_matches('=')).map_err(|_| SessionError::Malformed)?;
        let (text, code) = bytes.split_last_chunk::<CODE_BYTES>().ok_or(SessionError::Malformed)?;
        let text = std::str::from_utf8(text).ok().and_then(|text| text.strip_suffix(':'));
        // From the right, since an id holds a colon itself.
        let (person_id, time) = text.and_then(|text| text.rsplit_once(':')).ok_or(SessionError::Malformed)?;
        let issued_s = u64::from_str_radix(time, 16).map_err(|_| SessionError::Malformed)?;
        Ok(Self { person_id: person_id.to_owned(), issued_s, code: blake3::Hash::from_bytes(*code) })
    }
}

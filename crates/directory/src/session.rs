//! Cookie sessions, as CouchDB's `AuthSession`: the person, times, and a code that only this server can make.
//!
//! A cookie is base64url of `PERSON:ISSUED:BEGUN:` (times in seconds since 1970, hexadecimal), 16 random bytes that name
//! the session, and 32 bytes of code: a keyed BLAKE3 over all that and over what the person may and how they show it. After
//! `BEGUN` stands `+` where the session began with a second factor, and `@ID` where it began with an app password. So
//! a new password, or other roles, end all sessions from before; what ends one session alone is a
//! [`crate::Revocations`].
//!
//! A session ends when it is not used for a while, and at a certain age however much it is used. While it is used, its
//! token is replaced by a newer one now and then. If an older one is shown again after the newer one was used, two have
//! it, of whom one has stolen it: see [`SessionUse`].

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use quick_cache::sync::Cache;
use thiserror::Error;

use crate::{ADMINISTRATOR_ROLE, Person};

const CODE_BYTES: usize = 32;
const NAME_BYTES: usize = 16;
const LONGEST_COOKIE: usize = 1024;

/// Requests that were on their way when a token was replaced may still show the older one.
const GRACE_S: u64 = 60;

/// Sessions whose last token is remembered, each in some 60 bytes.
const USES_REMEMBERED: usize = 100_000;

/// Why a session's cookie is not accepted.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum SessionError {
    /// The text is not one that this server makes.
    #[error("Malformed AuthSession cookie. Please clear your cookies.")]
    Malformed,
    /// The code is wrong: forged, of another server, or from before password or roles were changed.
    #[error("the session is not valid here any more; log in again")]
    Invalid,
    /// It was not used for too long.
    #[error("the session has timed out; log in again")]
    TimedOut,
    /// It was begun too long ago.
    #[error("the session is too old; log in again")]
    TooOld,
}

/// How long sessions last.
#[derive(Clone, Copy, Debug)]
pub struct SessionTimes {
    /// Without use.
    pub timeout: Duration,
    /// In all.
    pub most: Duration,
    /// In all, of somebody who administers the server.
    pub most_of_administrators: Duration,
}

/// What tells sessions apart.
pub type SessionName = [u8; NAME_BYTES];

/// With what a session began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionOrigin {
    /// Whether two factors were shown.
    pub has_second_factor: bool,
    /// The id of the app password, where it was one: the session ends with it, and is for what that is for.
    pub app_password: Option<String>,
}

impl SessionOrigin {
    fn text(&self) -> String {
        let app = self.app_password.as_ref().map(|id| format!("@{id}")).unwrap_or_default();
        if self.has_second_factor { format!("+{app}") } else { app }
    }

    fn parse(text: &str) -> Option<Self> {
        let (has_second_factor, rest) = match text.strip_prefix('+') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let app_password = match rest {
            "" => None,
            rest => Some(rest.strip_prefix('@').filter(|id| !id.is_empty())?.to_owned()),
        };
        Some(Self { has_second_factor, app_password })
    }
}

/// An accepted session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Id of the person's document.
    pub person_id: String,
    /// Which session it is, whatever its token.
    pub name: SessionName,
    /// When it began, in seconds since 1970.
    pub begun_s: u64,
    /// When its cookie was made.
    pub issued_s: u64,
    /// With what it began.
    pub by: SessionOrigin,
    /// When it ends at the latest.
    pub ends_s: u64,
    /// Whether the client should get a fresh cookie with this answer, so that a session in use continues.
    pub renew: bool,
}

/// What the use of a token says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionUse {
    /// As it should be.
    Fine,
    /// An older token than one that was used before: somebody has copied it.
    Copied,
}

/// Makes and checks the cookies of sessions.
pub struct SessionKeeper {
    key: [u8; 32],
    times: SessionTimes,
    /// Of each session: the newest token that was used, and since when.
    uses: Cache<SessionName, (u64, u64)>,
}

/// What a cookie says, next to its code.
struct Claim {
    person_id: String,
    issued_s: u64,
    begun_s: u64,
    by: SessionOrigin,
    name: SessionName,
    code: blake3::Hash,
}

/// What the code of a cookie says for good.
struct Begun<'a> {
    name: &'a SessionName,
    begun_s: u64,
    by: &'a SessionOrigin,
}

impl SessionKeeper {
    /// Keeps sessions with the server's secret (the same after a restart, or everybody must log in again).
    #[must_use]
    pub fn new(secret: &[u8], times: SessionTimes) -> Self {
        let key = blake3::derive_key("scrinium 2026 session cookies with a name", secret);
        Self { key, times, uses: Cache::new(USES_REMEMBERED) }
    }

    /// The cookie's value for a session of `person` that begins at `now_s` (seconds since 1970).
    #[must_use]
    pub fn begin(&self, person: &Person, by: &SessionOrigin, now_s: u64) -> String {
        let name = rand::random();
        self.cookie(person, &Begun { name: &name, begun_s: now_s, by }, now_s)
    }

    /// The cookie's value for a session that continues at `now_s`.
    #[must_use]
    pub fn renew(&self, person: &Person, session: &Session, now_s: u64) -> String {
        let Session { name, begun_s, by, .. } = session;
        self.cookie(person, &Begun { name, begun_s: *begun_s, by }, now_s)
    }

    /// How long a browser is to keep a cookie that is made at `now_s`.
    #[must_use]
    pub fn keep_for(&self, person: &Person, begun_s: u64, now_s: u64) -> Duration {
        let left = self.end_of(person, begun_s).saturating_sub(now_s);
        self.times.timeout.min(Duration::from_secs(left))
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
        let Claim { person_id, issued_s, begun_s, by, name, code } = Claim::read(cookie)?;
        let begun = Begun { name: &name, begun_s, by: &by };
        // `blake3::Hash` compares in constant time.
        if person_id != person.id || self.code(person, &begun, issued_s) != code {
            return Err(SessionError::Invalid);
        }
        let timeout_s = self.times.timeout.as_secs();
        let age_s = now_s.saturating_sub(issued_s);
        if age_s >= timeout_s {
            return Err(SessionError::TimedOut);
        }
        let ends_s = self.end_of(person, begun_s);
        if now_s >= ends_s {
            return Err(SessionError::TooOld);
        }
        // As CouchDB does: a new cookie once a tenth of the time is gone, not with every request.
        let renew = age_s >= timeout_s / 10;
        Ok(Session { person_id, name, begun_s, issued_s, by, ends_s, renew })
    }

    /// Notes that the token of an accepted session was used, and says whether another one has it too. What was noted is
    /// lost at a restart, and the longest unused when there are very many.
    #[must_use]
    pub fn note_use(&self, session: &Session, now_s: u64) -> SessionUse {
        let (newest_s, since_s) = self.uses.get(&session.name).unwrap_or((0, now_s));
        if session.issued_s > newest_s {
            self.uses.insert(session.name, (session.issued_s, now_s));
        } else if session.issued_s < newest_s && now_s.saturating_sub(since_s) > GRACE_S {
            return SessionUse::Copied;
        }
        SessionUse::Fine
    }

    /// How long any session lasts at most.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.times.most.max(self.times.most_of_administrators)
    }

    fn end_of(&self, person: &Person, begun_s: u64) -> u64 {
        let most = if person.has_role(ADMINISTRATOR_ROLE) {
            self.times.most_of_administrators
        } else {
            self.times.most
        };
        begun_s.saturating_add(most.as_secs())
    }

    fn cookie(&self, person: &Person, begun: &Begun<'_>, issued_s: u64) -> String {
        let Begun { name, begun_s, by } = begun;
        let mut cookie = format!("{}:{issued_s:X}:{begun_s:X}{}:", person.id, by.text()).into_bytes();
        cookie.extend_from_slice(*name);
        cookie.extend_from_slice(self.code(person, begun, issued_s).as_bytes());
        URL_SAFE_NO_PAD.encode(cookie)
    }

    fn code(&self, person: &Person, begun: &Begun<'_>, issued_s: u64) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&issued_s.to_le_bytes()).update(&begun.begun_s.to_le_bytes()).update(begun.name);
        hasher.update(&(person.id.len() as u64).to_le_bytes()).update(person.id.as_bytes());
        hasher.update(&person.standing());
        hasher.update(begun.by.text().as_bytes());
        hasher.finalize()
    }
}

impl Claim {
    fn read(cookie: &str) -> Result<Self, SessionError> {
        if cookie.len() > LONGEST_COOKIE {
            return Err(SessionError::Malformed);
        }
        let bytes =
            URL_SAFE_NO_PAD.decode(cookie.trim_end_matches('=')).map_err(|_| SessionError::Malformed)?;
        Self::take_apart(&bytes).ok_or(SessionError::Malformed)
    }

    fn take_apart(bytes: &[u8]) -> Option<Self> {
        let (rest, code) = bytes.split_last_chunk::<CODE_BYTES>()?;
        let (text, name) = rest.split_last_chunk::<NAME_BYTES>()?;
        let text = std::str::from_utf8(text).ok()?.strip_suffix(':')?;
        // From the right, since an id holds a colon itself.
        let (text, begun) = text.rsplit_once(':')?;
        let (person_id, issued) = text.rsplit_once(':')?;
        let seconds = |text: &str| u64::from_str_radix(text, 16).ok();
        let (begun, by) = begun.split_at(begun.find(['+', '@']).unwrap_or(begun.len()));
        Some(Self {
            person_id: person_id.to_owned(),
            issued_s: seconds(issued)?,
            begun_s: seconds(begun)?,
            by: SessionOrigin::parse(by)?,
            name: *name,
            code: blake3::Hash::from_bytes(*code),
        })
    }
}

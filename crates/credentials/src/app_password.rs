//! App passwords: one for each program or device, made here, shown once, limited to protocols, and revoked one by one.
//!
//! The text is `app-IIII-SSSS-SSSS-SSSS-SSSS-SSSS-SSSS-SSSS`: a fixed beginning, an id of 20 bits that is found in the
//! person's list, and a secret of 140 random bits, in 32 letters and digits that are not mistaken for each other. A secret of
//! that size cannot be guessed whatever hash is used, so a keyed SHA-256 does, and no program that logs in each minute
//! costs an argon2id.

use std::collections::BTreeMap;

use ring::hmac;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::protocol::{Protocol, ProtocolSet};
use crate::sasl::{ScramKeys, ScramSalt};
use crate::secret::{RandomError, SecretBytes, random};

/// How many a person may have, those that were revoked and are kept for the record included.
pub const MOST_APP_PASSWORDS: usize = 64;

/// The longest name, in bytes.
pub const LONGEST_LABEL: usize = 100;

/// The last use is stored when it is older than this, so that a program that logs in each minute does not write each minute.
pub const USE_GRAIN_MS: u64 = 60 * 60 * 1000;

const PREFIX: &str = "app";
const ID_LETTERS: usize = 4;
const SECRET_LETTERS: usize = 28;
/// Without I, L, O and U.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Why there is no such app password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AppPasswordError {
    /// The person has as many as there may be, all of them valid.
    #[error("there are {MOST_APP_PASSWORDS} app passwords; revoke one first")]
    TooMany,
    /// A name is needed, of at most [`LONGEST_LABEL`] bytes and without control characters.
    #[error("an app password needs a name of at most {LONGEST_LABEL} bytes without control characters")]
    Name,
    /// It would be for no protocol.
    #[error("an app password needs at least one protocol, and cannot be for the browser")]
    Scope,
    /// No app password has this id, or it was revoked.
    #[error("there is no such app password")]
    Unknown,
    /// As [`RandomError`].
    #[error(transparent)]
    Random(#[from] RandomError),
}

/// The text of an app password, taken apart. It is no log's to show.
#[derive(Clone, PartialEq, Eq)]
pub struct AppPasswordText {
    id: String,
    secret: String,
}

impl std::fmt::Debug for AppPasswordText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "AppPasswordText({}…)", self.id)
    }
}

impl AppPasswordText {
    fn make() -> Result<Self, RandomError> {
        Ok(Self { id: letters::<ID_LETTERS>()?, secret: letters::<SECRET_LETTERS>()? })
    }

    /// Takes a text apart if it has the form of an app password, in any case, with or without its hyphens, with spaces
    /// where somebody typed them, and with `o`, `i` and `l` for the digits that they were read for.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        const LONGEST: usize = 100;
        if text.len() > LONGEST || !text.get(..PREFIX.len())?.eq_ignore_ascii_case(PREFIX) {
            return None;
        }
        let rest = text.get(PREFIX.len()..)?;
        let mut letters = String::with_capacity(ID_LETTERS + SECRET_LETTERS);
        for letter in rest.chars().filter(|letter| !matches!(letter, '-' | ' ')) {
            let letter = match letter.to_ascii_lowercase() {
                'o' => '0',
                'i' | 'l' => '1',
                other => other,
            };
            let known = u8::try_from(letter).is_ok_and(|byte| LETTERS.contains(&byte));
            if !known || letters.len() == ID_LETTERS + SECRET_LETTERS {
                return None;
            }
            letters.push(letter);
        }
        if letters.len() < ID_LETTERS + SECRET_LETTERS {
            return None;
        }
        let (id, secret) = letters.split_at_checked(ID_LETTERS)?;
        Some(Self { id: id.to_owned(), secret: secret.to_owned() })
    }

    /// The id under which it is found.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The text as it is shown to the person, once.
    #[must_use]
    pub fn show(&self) -> String {
        let mut text = PREFIX.to_owned();
        for (place, letter) in self.id.chars().chain(self.secret.chars()).enumerate() {
            if place % 4 == 0 {
                text.push('-');
            }
            text.push(letter);
        }
        text
    }
}

/// `N` random letters.
fn letters<const N: usize>() -> Result<String, RandomError> {
    let bytes = random::<N>()?;
    Ok(bytes
        .iter()
        .filter_map(|byte| LETTERS.get(usize::from(byte % 32)))
        .map(|byte| char::from(*byte))
        .collect())
}

/// An app password as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppPassword {
    /// Under which it is found; part of its text.
    pub id: String,
    /// What the person calls it, such as "phone".
    pub name: String,
    /// The protocols that it is for.
    pub scope: ProtocolSet,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it was last used, with [`USE_GRAIN_MS`]; `None` for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_ms: Option<u64>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_ms: Option<u64>,
    /// HMAC-SHA-256 of the secret, under a key that is the id.
    hash: SecretBytes,
    /// SCRAM's keys of the text as it was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scram: Option<ScramKeys>,
}

impl AppPassword {
    /// Whether it can be used at all at this time.
    #[must_use]
    pub fn is_valid(&self, now_ms: u64) -> bool {
        self.revoked_ms.is_none() && self.expires_ms.is_none_or(|end_ms| now_ms < end_ms)
    }

    /// Whether it lets somebody in by a protocol at this time.
    #[must_use]
    pub fn is_for(&self, protocol: Protocol, now_ms: u64) -> bool {
        self.is_valid(now_ms) && self.scope.has(protocol)
    }

    /// Whether this is its text.
    #[must_use]
    pub fn verify(&self, text: &AppPasswordText) -> bool {
        // Compares in constant time; ids are no secrets.
        self.id == text.id
            && hmac::verify(&key_of(&text.id), text.secret.as_bytes(), self.hash.expose()).is_ok()
    }
}

fn key_of(id: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, format!("scrinium app password {id}").as_bytes())
}

/// What a new app password is to be.
#[derive(Clone, Copy, Debug)]
pub struct NewAppPassword<'a> {
    /// What the person calls it.
    pub name: &'a str,
    /// The protocols that it is for.
    pub scope: ProtocolSet,
    /// When it ends by itself, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

/// The app passwords of a person, found by their id. The list is bounded, so that finding one takes constant time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AppPasswords(BTreeMap<String, AppPassword>);

impl AppPasswords {
    pub(crate) fn get(&self, id: &str) -> Option<&AppPassword> {
        self.0.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut AppPassword> {
        self.0.get_mut(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &AppPassword> {
        self.0.values()
    }

    pub(crate) fn make(
        &self,
        new: NewAppPassword<'_>,
        salt: Option<&ScramSalt>,
        now_ms: u64,
    ) -> Result<(AppPassword, AppPasswordText), AppPasswordError> {
        let name = checked_name(new.name)?;
        if new.scope.is_empty() || new.scope.has(Protocol::Browser) {
            return Err(AppPasswordError::Scope);
        }
        let mut text = AppPasswordText::make()?;
        while self.0.contains_key(&text.id) {
            text = AppPasswordText::make()?;
        }
        let scram = new.scope.iter().any(Protocol::has_sasl);
        let stored = AppPassword {
            id: text.id.clone(),
            name: name.to_owned(),
            scope: new.scope,
            created_ms: now_ms,
            used_ms: None,
            expires_ms: new.expires_ms,
            revoked_ms: None,
            hash: SecretBytes::new(hmac::sign(&key_of(&text.id), text.secret.as_bytes()).as_ref()),
            scram: salt.filter(|_| scram).map(|salt| salt.keys_of(&text.show())),
        };
        Ok((stored, text))
    }

    /// Takes one that was made. Two with one id, one in a million, are one too many.
    pub(crate) fn put(&mut self, made: AppPassword, now_ms: u64) -> Result<(), AppPasswordError> {
        if self.0.contains_key(&made.id) {
            return Err(AppPasswordError::TooMany);
        }
        self.make_room(now_ms)?;
        self.0.insert(made.id.clone(), made);
        Ok(())
    }

    /// The one that has been of no use for longest makes room.
    fn make_room(&mut self, now_ms: u64) -> Result<(), AppPasswordError> {
        if self.0.len() < MOST_APP_PASSWORDS {
            return Ok(());
        }
        let ended = self.0.values().filter(|password| !password.is_valid(now_ms));
        let oldest = ended.min_by_key(|password| password.revoked_ms.or(password.expires_ms));
        let id = oldest.map(|password| password.id.clone()).ok_or(AppPasswordError::TooMany)?;
        self.0.remove(&id);
        Ok(())
    }

    pub(crate) fn rename(&mut self, id: &str, name: &str) -> Result<(), AppPasswordError> {
        let name = checked_name(name)?;
        let password = self.0.get_mut(id).filter(|password| password.revoked_ms.is_none());
        password.map(|password| name.clone_into(&mut password.name)).ok_or(AppPasswordError::Unknown)
    }

    pub(crate) fn revoke(&mut self, id: &str, now_ms: u64) -> Result<(), AppPasswordError> {
        let password = self.0.get_mut(id).filter(|password| password.revoked_ms.is_none());
        password.map(|password| password.revoked_ms = Some(now_ms)).ok_or(AppPasswordError::Unknown)
    }
}

fn checked_name(name: &str) -> Result<&str, AppPasswordError> {
    let name = name.trim();
    if name.is_empty() || name.len() > LONGEST_LABEL || name.chars().any(char::is_control) {
        return Err(AppPasswordError::Name);
    }
    Ok(name)
}

impl Serialize for AppPasswords {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.values())
    }
}

impl<'de> Deserialize<'de> for AppPasswords {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = Vec::<AppPassword>::deserialize(deserializer)?;
        if list.len() > MOST_APP_PASSWORDS {
            return Err(serde::de::Error::custom("too many app passwords"));
        }
        let length = list.len();
        let map: BTreeMap<_, _> = list.into_iter().map(|password| (password.id.clone(), password)).collect();
        if map.len() == length {
            Ok(Self(map))
        } else {
            Err(serde::de::Error::custom("two app passwords with one id"))
        }
    }
}

//! The password of a person: an argon2id hash (RFC 9106) in a PHC string, and SCRAM's keys next to it.

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::app_password::AppPasswordText;
use crate::names::{NameError, prepare_password};
use crate::sasl::{ScramKeys, ScramSalt};
use crate::secret::{RandomError, SecretBytes, random};

/// Memory of one hashing, in KiB, its passes and lanes: the least that OWASP's password storage cheat sheet advises.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// A hash from elsewhere may cost no more than this, or one record could exhaust the memory.
const HIGHEST_MEMORY_KIB: u32 = 64 * 1024;
const HIGHEST_PASSES: u32 = 10;
const HIGHEST_LANES: u32 = 4;
const LONGEST_HASH: usize = 512;

/// Why a password cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PasswordError {
    /// It is empty or too long.
    #[error("the password is not valid: {0}")]
    Text(#[from] NameError),
    /// It looks like an app password, and would be taken for one.
    #[error("the password has the form of an app password; choose another one")]
    LooksLikeAppPassword,
    /// A stored hash is no argon2id hash of bounded cost.
    #[error("the stored hash is not an argon2id hash of at most m=65536, t=10, p=4")]
    Hash,
    /// As [`RandomError`].
    #[error(transparent)]
    Random(#[from] RandomError),
}

/// A password as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PasswordCredential {
    hash: HashText,
    /// Whether the password was prepared ([`prepare_password`]) before it was hashed. Hashes that were taken over from
    /// elsewhere are of the bytes as they were typed.
    prepared: bool,
    /// SCRAM's keys, with the person's salt. A hash that was taken over has none until the password is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scram: Option<ScramKeys>,
    /// The mark of the same password as it was stored before; see [`PasswordMark`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<SecretBytes>,
}

/// What tells one password of a person from the next, and says nothing of either: it stays when the same password is stored
/// in another way, and is another one whenever a password is set. Sessions and memories are bound to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordMark(SecretBytes);

impl PasswordMark {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.expose()
    }
}

/// A password as it was hashed for somebody, on its way into their record ([`crate::StoredCredentials::put_password`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HashedPassword {
    pub(crate) credential: PasswordCredential,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) salt: Option<ScramSalt>,
}

impl HashedPassword {
    /// Hashes a password and, where `iterations` says so, derives SCRAM's keys: under `salt`, the one that the person's app
    /// passwords have, else under a fresh one. Takes some 50 ms and 19 MiB.
    ///
    /// # Errors
    /// [`PasswordError`]
    pub fn make(
        password: &str,
        salt: Option<ScramSalt>,
        iterations: Option<u32>,
    ) -> Result<Self, PasswordError> {
        let mut credential = PasswordCredential::hash(password)?;
        let Some(iterations) = iterations else { return Ok(Self { credential, salt: None }) };
        let salt = salt.map_or_else(|| ScramSalt::make(iterations), Ok)?;
        credential.scram = Some(salt.keys_of(password));
        Ok(Self { credential, salt: Some(salt) })
    }

    /// An argon2id hash that was made elsewhere. There are no keys for SCRAM until the password is seen.
    ///
    /// # Errors
    /// [`PasswordError::Hash`] where it is no whole argon2id hash, or costs too much.
    pub fn take_over(phc: &str) -> Result<Self, PasswordError> {
        Ok(Self { credential: PasswordCredential::take_over(phc)?, salt: None })
    }

    /// As bytes, which are as secret as the record.
    ///
    /// # Errors
    /// serde_json's, which cannot happen to what was made here.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Reads what [`Self::to_bytes`] has made.
    ///
    /// # Errors
    /// [`PasswordError::Hash`]
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PasswordError> {
        let read: Self = serde_json::from_slice(bytes).map_err(|_| PasswordError::Hash)?;
        read.credential.check()?;
        let is_sound = read.salt.as_ref().is_none_or(ScramSalt::is_within_limits);
        if is_sound { Ok(read) } else { Err(PasswordError::Hash) }
    }
}

/// A PHC string, which no log may show.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HashText(String);

impl std::fmt::Debug for HashText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("HashText(…)")
    }
}

impl PasswordCredential {
    /// Hashes a password with a fresh salt. Takes some 20 ms and 19 MiB.
    ///
    /// # Errors
    /// [`PasswordError`]
    pub fn hash(password: &str) -> Result<Self, PasswordError> {
        if AppPasswordText::parse(password).is_some() {
            return Err(PasswordError::LooksLikeAppPassword);
        }
        let prepared = prepare_password(password)?;
        let salt = SaltString::encode_b64(&random::<16>()?).map_err(|_| RandomError)?;
        let parameters = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(|_| PasswordError::Hash)?;
        let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters);
        let hash = hasher.hash_password(prepared.as_bytes(), &salt).map_err(|_| PasswordError::Hash)?;
        Ok(Self { hash: HashText(hash.to_string()), prepared: true, scram: None, mark: None })
    }

    /// Takes over a hash that was made elsewhere, of the password as it was typed.
    ///
    /// # Errors
    /// [`PasswordError::Hash`] where it is no whole argon2id hash, or costs too much.
    pub fn take_over(phc: &str) -> Result<Self, PasswordError> {
        check_cost(phc)?;
        Ok(Self { hash: HashText(phc.to_owned()), prepared: false, scram: None, mark: None })
    }

    /// Whether this is the password. Takes as long as hashing, whether it is or not.
    #[must_use]
    pub fn verify(&self, password: &str) -> bool {
        let prepared = if self.prepared { prepare_password(password) } else { checked(password) };
        // A password that nobody can set is still hashed, so that its refusal takes the same time.
        let (candidate, possible) = prepared.map_or_else(|_| ("-".to_owned(), false), |text| (text, true));
        let Ok(hash) = PasswordHash::new(&self.hash.0) else { return false };
        let right = Argon2::default().verify_password(candidate.as_bytes(), &hash).is_ok();
        right && possible
    }

    /// Whether it would be stored in another way today: it has no keys for SCRAM, where that is offered, is of the bytes as
    /// they were typed, or its hash is cheaper.
    #[must_use]
    pub fn is_outdated(&self, has_scram: bool) -> bool {
        (has_scram && self.scram.is_none()) || !self.prepared || is_cheap(&self.hash.0)
    }

    /// Which password it is.
    #[must_use]
    pub fn mark(&self) -> PasswordMark {
        let of_hash = || SecretBytes::new(digest(&SHA256, self.hash.0.as_bytes()).as_ref());
        PasswordMark(self.mark.clone().unwrap_or_else(of_hash))
    }

    /// This one, stored in place of `before`, which was of the same password.
    pub(crate) fn in_place_of(self, before: &Self) -> Self {
        Self { mark: Some(before.mark().0), ..self }
    }

    /// Whether what was read can be used.
    pub(crate) fn check(&self) -> Result<(), PasswordError> {
        check_cost(&self.hash.0)
    }
}

fn checked(password: &str) -> Result<String, NameError> {
    match password.len() {
        0 => Err(NameError::Empty),
        1..=crate::names::LONGEST_PASSWORD => Ok(password.to_owned()),
        _ => Err(NameError::TooLong),
    }
}

fn check_cost(phc: &str) -> Result<(), PasswordError> {
    if phc.len() > LONGEST_HASH {
        return Err(PasswordError::Hash);
    }
    let hash = PasswordHash::new(phc).map_err(|_| PasswordError::Hash)?;
    if hash.algorithm != Algorithm::Argon2id.ident() || hash.hash.is_none() || hash.salt.is_none() {
        return Err(PasswordError::Hash);
    }
    let parameters = Params::try_from(&hash).map_err(|_| PasswordError::Hash)?;
    let dear = parameters.m_cost() > HIGHEST_MEMORY_KIB
        || parameters.t_cost() > HIGHEST_PASSES
        || parameters.p_cost() > HIGHEST_LANES;
    if dear { Err(PasswordError::Hash) } else { Ok(()) }
}

fn is_cheap(phc: &str) -> bool {
    let parameters = PasswordHash::new(phc).ok().and_then(|hash| Params::try_from(&hash).ok());
    parameters.is_none_or(|parameters| parameters.m_cost() < MEMORY_KIB || parameters.t_cost() < PASSES)
}

//! The password of a person: an argon2id hash (RFC 9106) in a PHC string, and SCRAM's keys next to it.

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::app_password::AppPasswordText;
use crate::names::{NameError, prepare_password};
use crate::sasl::ScramKeys;
use crate::secret::{RandomError, random};

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
        Ok(Self { hash: HashText(hash.to_string()), prepared: true, scram: None })
    }

    /// Takes over a hash that was made elsewhere, of the password as it was typed.
    ///
    /// # Errors
    /// [`PasswordError::Hash`] where it is no whole argon2id hash, or costs too much.
    pub fn take_over(phc: &str) -> Result<Self, PasswordError> {
        check_cost(phc)?;
        Ok(Self { hash: HashText(phc.to_owned()), prepared: false, scram: None })
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

//! Passwords as argon2id hashes in PHC strings.

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use rand::TryRngCore;
use rand::rngs::OsRng;

use crate::DirectoryError;

/// Memory of one hashing, in KiB: 19 MiB, with two passes and one lane, is the least that OWASP's password
/// storage cheat sheet advises for argon2id.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// A hash brought from elsewhere may cost no more than this, or one document could exhaust the memory.
const HIGHEST_MEMORY_KIB: u32 = 64 * 1024;
const HIGHEST_PASSES: u32 = 10;
const HIGHEST_LANES: u32 = 4;

const LONGEST_PASSWORD: usize = 1024;
const LONGEST_HASH: usize = 512;

/// A password's hash, as the PHC string `$argon2id$v=19$m=…,t=…,p=…$salt$hash`.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHashText(String);

impl PasswordHashText {
    /// Checks that `text` is an argon2id hash of bounded cost.
    ///
    /// # Errors
    /// [`DirectoryError::Value`] where it is not.
    pub fn parse(text: &str) -> Result<Self, DirectoryError> {
        let refuse = |rule| DirectoryError::Value { field: "PasswordHash", value: "…".to_owned(), rule };
        if text.len() > LONGEST_HASH {
            return Err(refuse("it is too long"));
        }
        let hash = PasswordHash::new(text).map_err(|_| refuse("it is not a PHC string"))?;
        if hash.algorithm != Algorithm::Argon2id.ident() || hash.hash.is_none() || hash.salt.is_none() {
            return Err(refuse("only whole argon2id hashes are accepted"));
        }
        let parameters = Params::try_from(&hash).map_err(|_| refuse("its parameters cannot be read"))?;
        if parameters.m_cost() > HIGHEST_MEMORY_KIB
            || parameters.t_cost() > HIGHEST_PASSES
            || parameters.p_cost() > HIGHEST_LANES
        {
            return Err(refuse("it costs more than m=65536, t=10, p=4"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The PHC string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Shows nothing of the hash: it ends up in logs otherwise.
impl std::fmt::Debug for PasswordHashText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("PasswordHashText(…)")
    }
}

/// Whether a password that is to be set is long enough, and not too long.
///
/// # Errors
/// [`DirectoryError::PasswordLength`].
pub fn check_password(password: &str, least: usize) -> Result<(), DirectoryError> {
    if (least.max(1)..=LONGEST_PASSWORD).contains(&password.len()) {
        Ok(())
    } else {
        Err(DirectoryError::PasswordLength { least: least.max(1), limit: LONGEST_PASSWORD })
    }
}

/// Hashes a password with a fresh salt. Takes some 20 ms and 19 MiB.
///
/// # Errors
/// [`DirectoryError::PasswordLength`] for an empty password or one of more than 1,024 bytes;
/// [`DirectoryError::Hash`] where the system gives no random bytes.
pub fn hash_password(password: &str) -> Result<PasswordHashText, DirectoryError> {
    check_password(password, 1)?;
    let mut salt = [0_u8; 16];
    OsRng.try_fill_bytes(&mut salt).map_err(|error| DirectoryError::Hash(error.to_string()))?;
    let failed = |error: argon2::password_hash::Error| DirectoryError::Hash(error.to_string());
    let salt = SaltString::encode_b64(&salt).map_err(failed)?;
    let hash = hasher()?.hash_password(password.as_bytes(), &salt).map_err(failed)?;
    Ok(PasswordHashText(hash.to_string()))
}

/// Whether `password` is the one that was hashed; the comparison takes the same time either way. Takes as
/// long as hashing.
#[must_use]
pub fn verify_password(password: &str, hash: &PasswordHashText) -> bool {
    // A password longer than any that can be set is not the right one; it is not worth its hashing.
    let password = if password.len() > LONGEST_PASSWORD { "" } else { password };
    let Ok(hash) = PasswordHash::new(hash.as_str()) else { return false };
    Argon2::default().verify_password(password.as_bytes(), &hash).is_ok() && !password.is_empty()
}

fn hasher() -> Result<Argon2<'static>, DirectoryError> {
    let parameters = Params::new(MEMORY_KIB, PASSES, LANES, None)
        .map_err(|error| DirectoryError::Hash(error.to_string()))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters))
}

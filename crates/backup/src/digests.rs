//! Digests by which files are known and checked: plain ones, or such as mean nothing without a key.
//!
//! A plain digest would tell anyone who holds a repository that a file is one that they have too. So in a repository that is
//! encrypted all digests of contents are keyed. The key is the server's, made for this repository, and lies in each
//! manifest where the private key alone opens it.

use std::fmt;

use ring::rand::{SecureRandom, SystemRandom};

use crate::age::CipherError;

/// The key of the digests of one repository.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct DigestKey([u8; 32]);

impl DigestKey {
    /// That of the repository with this salt, on a server with this secret.
    pub(crate) fn of(secret: &[u8; 32], salt: &[u8]) -> Self {
        let mut hasher =
            blake3::Hasher::new_derive_key("scrinium 2026-11 digests of an encrypted repository");
        hasher.update(secret);
        hasher.update(salt);
        Self(*hasher.finalize().as_bytes())
    }

    pub(crate) fn to_hex(self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }

    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        Some(Self(*blake3::Hash::from_hex(text).ok()?.as_bytes()))
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DigestKey")
    }
}

/// How contents are digested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Digests {
    /// BLAKE3 as it is.
    #[default]
    Plain,
    /// BLAKE3 with a key.
    Keyed(DigestKey),
}

impl Digests {
    pub(crate) fn hasher(self) -> blake3::Hasher {
        match self {
            Self::Plain => blake3::Hasher::new(),
            Self::Keyed(DigestKey(key)) => blake3::Hasher::new_keyed(&key),
        }
    }
}

/// As many random bytes as a salt or a secret has.
pub(crate) fn random_bytes() -> Result<[u8; 32], CipherError> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| CipherError::NoRandomness)?;
    Ok(bytes)
}

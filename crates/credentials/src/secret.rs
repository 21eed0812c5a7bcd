//! Bytes that no log may show: random, compared in constant time, sealed for a client to keep.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use subtle::ConstantTimeEq;
use thiserror::Error;

/// The system gives no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the system gives no random bytes; nothing secret can be made")]
pub struct RandomError;

/// `N` fresh random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], RandomError> {
    let mut bytes = [0_u8; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| RandomError)?;
    Ok(bytes)
}

/// Whether two texts are the same, in a time that tells nothing but their lengths.
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

/// Bytes that are stored as base64url, compared in constant time and never shown.
#[derive(Clone, Default)]
pub struct SecretBytes(Vec<u8>);

impl SecretBytes {
    /// Takes bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretBytes({} bytes)", self.0.len())
    }
}

impl PartialEq for SecretBytes {
    fn eq(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

impl Eq for SecretBytes {}

impl Serialize for SecretBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&URL_SAFE_NO_PAD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for SecretBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        URL_SAFE_NO_PAD.decode(text).map(Self).map_err(|_| serde::de::Error::custom("not base64url"))
    }
}

/// Why a sealed text was not opened: it was changed, was sealed by another server, or for another purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the sealed text was not made here for this purpose")]
pub struct SealError;

/// The longest text that is opened.
const LONGEST_SEALED: usize = 4096;

/// Seals what a client keeps for the server between two requests, such as the state of a sign-in: the client can
/// neither read nor change it. It can show it twice, so what is sealed holds a time.
pub(crate) struct SealingKey(LessSafeKey);

impl SealingKey {
    /// A key from the server's secret.
    ///
    /// # Errors
    /// [`RandomError`], which cannot happen with 32 bytes.
    pub(crate) fn new(secret: &[u8; 32]) -> Result<Self, RandomError> {
        UnboundKey::new(&CHACHA20_POLY1305, secret)
            .map(|key| Self(LessSafeKey::new(key)))
            .map_err(|_| RandomError)
    }

    /// Seals bytes for one purpose, as base64url.
    ///
    /// # Errors
    /// [`RandomError`]
    pub(crate) fn seal(&self, purpose: &str, bytes: &[u8]) -> Result<String, RandomError> {
        let nonce = random::<NONCE_LEN>()?;
        let mut sealed = bytes.to_vec();
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(purpose), &mut sealed)
            .map_err(|_| RandomError)?;
        let mut all = nonce.to_vec();
        all.append(&mut sealed);
        Ok(URL_SAFE_NO_PAD.encode(all))
    }

    /// Opens a text that [`Self::seal`] made for the same purpose.
    ///
    /// # Errors
    /// [`SealError`]
    pub(crate) fn open(&self, purpose: &str, text: &str) -> Result<Vec<u8>, SealError> {
        if text.len() > LONGEST_SEALED {
            return Err(SealError);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| SealError)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>().ok_or(SealError)?;
        let mut sealed = sealed.to_vec();
        self.0
            .open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(purpose), &mut sealed)
            .map(|opened| opened.to_vec())
            .map_err(|_| SealError)
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SealingKey(…)")
    }
}

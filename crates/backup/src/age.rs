//! The file format of age (<https://age-encryption.org/v1>, C2SP/age), encrypted to one public key of X25519.
//!
//! ```text
//! age-encryption.org/v1
//! -> X25519 <share, base64>
//! <file key, encrypted, base64>
//! --- <MAC of the header, base64>
//! <nonce, 16 bytes><pieces of 64 KiB, each with a tag of 16 bytes>
//! ```
//!
//! So anyone who has the private key can read a backup by hand, with `age -d` or `rage -d`, without this program. The
//! primitives are libraries'; only what belongs to the format stands here.

mod identity;
mod open;
mod seal;

pub use identity::{Identities, Identity, KeyError, Recipient};
pub(crate) use open::Opener;
pub(crate) use seal::{Sealer, sealed_bytes};

use ring::aead::{CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::hmac;

const VERSION_LINE: &str = "age-encryption.org/v1";
const STANZA: &str = "-> ";
const MAC_LINE: &str = "---";
const KIND: &str = "X25519";
const WRAP_INFO: &[u8] = b"age-encryption.org/v1/X25519";

const FILE_KEY_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
const NONCE_BYTES: usize = 16;
/// Content of one piece.
const CHUNK_BYTES: usize = 64 << 10;
const SEALED_CHUNK_BYTES: usize = CHUNK_BYTES + TAG_BYTES;

/// The key of one file.
type FileKey = [u8; FILE_KEY_BYTES];

/// Why something cannot be encrypted or decrypted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CipherError {
    /// It is no file of age, or one of another version.
    #[error("it is not encrypted as backups are")]
    Format,
    /// None of the keys opens it.
    #[error("none of the keys that were given opens it")]
    WrongKey,
    /// It is not what was encrypted, or it was cut.
    #[error("it is not what was encrypted")]
    Damaged,
    /// The system gave no random numbers, or a library refused.
    #[error("the system gave no random numbers")]
    NoRandomness,
}

/// How many bytes a derived key has.
#[derive(Clone, Copy)]
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        32
    }
}

fn derive(secret: &[u8], salt: &[u8], info: &[u8]) -> Result<[u8; 32], CipherError> {
    let mut key = [0; 32];
    let extracted = Salt::new(HKDF_SHA256, salt).extract(secret);
    let info = [info];
    let expanded = extracted.expand(&info, Length).map_err(|_| CipherError::Damaged)?;
    expanded.fill(&mut key).map_err(|_| CipherError::Damaged)?;
    Ok(key)
}

fn cipher(key: &[u8; 32]) -> Result<LessSafeKey, CipherError> {
    UnboundKey::new(&CHACHA20_POLY1305, key).map(LessSafeKey::new).map_err(|_| CipherError::Damaged)
}

/// Each key of this kind encrypts one thing once.
fn no_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// Of the piece of this number: eleven bytes of it, and whether it is the last.
fn piece_nonce(number: u64, last: bool) -> Nonce {
    let mut nonce = [0; 12];
    if let Some(place) = nonce.get_mut(3..11) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    if let Some(flag) = nonce.last_mut() {
        *flag = u8::from(last);
    }
    Nonce::assume_unique_for_key(nonce)
}

fn header_key(file_key: &FileKey) -> Result<hmac::Key, CipherError> {
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &derive(file_key, b"", b"header")?))
}

fn payload_cipher(file_key: &FileKey, nonce: &[u8]) -> Result<LessSafeKey, CipherError> {
    cipher(&derive(file_key, nonce, b"payload")?)
}

#[cfg(test)]
mod tests;

//! Keys that sign.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use getrandom::SysRng;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use rsa::pkcs8::EncodePrivateKey as _;

/// Bits of RSA keys that are made (RFC 8301 §3.2; longer ones do not fit into one string of DNS, and some servers refuse them).
const RSA_BITS: usize = 2_048;

/// Letters of one string in a TXT record (RFC 1035 §3.3).
const STRING_LETTERS: usize = 255;

/// A kind of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// RSA, with SHA-256: everybody verifies it.
    Rsa,
    /// Ed25519 (RFC 8463): some do, so it comes next to RSA or not at all.
    Ed25519,
}

/// Why a key cannot be made or used. It says nothing of the key itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The bytes are no private key of this kind.
    #[error("this is no private key that can sign")]
    Bytes,
    /// There is no randomness, or no memory.
    #[error("a key could not be made")]
    Making,
    /// Signing failed.
    #[error("a message could not be signed")]
    Signing,
}

/// A private key.
pub struct SigningKey {
    pair: Pair,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SigningKey").field("kind", &self.kind()).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Makes a key, as PKCS #8 has it. It takes up to seconds for RSA, so it belongs on a thread for such work.
    ///
    /// # Errors
    /// [`KeyError::Making`]
    pub fn make(kind: KeyKind) -> Result<Vec<u8>, KeyError> {
        match kind {
            KeyKind::Rsa => {
                let key = rsa::PrivateKey::new(&mut SysRng, RSA_BITS).map_err(|_| KeyError::Making)?;
                let document = key.to_pkcs8_der().map_err(|_| KeyError::Making)?;
                Ok(document.as_bytes().to_vec())
            }
            KeyKind::Ed25519 => {
                let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
                Ok(made.map_err(|_| KeyError::Making)?.as_ref().to_vec())
            }
        }
    }

    /// A key as PKCS #8 has it.
    ///
    /// # Errors
    /// [`KeyError::Bytes`]
    pub fn from_pkcs8(kind: KeyKind, bytes: &[u8]) -> Result<Self, KeyError> {
        let pair = match kind {
            KeyKind::Rsa => Pair::Rsa(Box::new(RsaKeyPair::from_pkcs8(bytes).map_err(|_| KeyError::Bytes)?)),
            KeyKind::Ed25519 => {
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(bytes);
                Pair::Ed25519(Box::new(pair.map_err(|_| KeyError::Bytes)?))
            }
        };
        Ok(Self { pair })
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> KeyKind {
        match &self.pair {
            Pair::Rsa(_) => KeyKind::Rsa,
            Pair::Ed25519(_) => KeyKind::Ed25519,
        }
    }

    /// The record to publish at `SELECTOR._domainkey.DOMAIN` (RFC 6376 §3.6.1, RFC 8463 §4).
    #[must_use]
    pub fn record(&self) -> String {
        match &self.pair {
            Pair::Rsa(pair) => {
                format!("v=DKIM1; k=rsa; p={}", STANDARD.encode(public_info(pair.public().as_ref())))
            }
            Pair::Ed25519(pair) => {
                format!("v=DKIM1; k=ed25519; p={}", STANDARD.encode(pair.public_key().as_ref()))
            }
        }
    }

    /// The same as strings of a TXT record, none of which is longer than DNS allows.
    #[must_use]
    pub fn record_strings(&self) -> Vec<String> {
        let record = self.record();
        let strings = record.as_bytes().chunks(STRING_LETTERS);
        strings.map(|string| String::from_utf8_lossy(string).into_owned()).collect()
    }

    /// Signs what [`super::Signer`] has put together.
    ///
    /// # Errors
    /// [`KeyError::Signing`]
    pub(crate) fn sign(&self, data: &[u8]) -> Result<Vec<u8>, KeyError> {
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let signed = pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), data, &mut signature);
                signed.map(|()| signature).map_err(|_| KeyError::Signing)
            }
            Pair::Ed25519(pair) => Ok(pair.sign(digest(&SHA256, data).as_ref()).as_ref().to_vec()),
        }
    }
}

/// A SubjectPublicKeyInfo (RFC 5280 §4.1.2.7) around an RSA key, which all verifiers expect.
fn public_info(key: &[u8]) -> Vec<u8> {
    // rsaEncryption, 1.2.840.113549.1.1.1, with NULL.
    const ALGORITHM: [u8; 15] =
        [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
    let mut bits = vec![0];
    bits.extend_from_slice(key);
    let mut inner = ALGORITHM.to_vec();
    inner.extend(element(0x03, &bits));
    element(0x30, &inner)
}

fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = contents.len().to_be_bytes();
    let octets = length.iter().position(|octet| *octet != 0).and_then(|first| length.get(first..));
    let octets = octets.unwrap_or(&[0]);
    match octets {
        [short @ 0..0x80] => out.push(*short),
        octets => {
            out.push(0x80 | u8::try_from(octets.len()).unwrap_or_default());
            out.extend_from_slice(octets);
        }
    }
    out.extend_from_slice(contents);
    out
}

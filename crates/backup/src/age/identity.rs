//! Public and private keys as people write them.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};
use ring::rand::{SecureRandom, SystemRandom};
use x25519_dalek::{PublicKey, StaticSecret};

use super::CipherError;

const PUBLIC_PREFIX: &str = "age";
const SECRET_PREFIX: &str = "age-secret-key-";

/// A longer file is no list of keys.
const IDENTITY_FILE_BYTES: u64 = 64 << 10;

/// Why a text or a file is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is no public key.
    #[error(
        "{0:?} is no public key of age: it begins with age1; `scrinium backup keygen FILE` or age-keygen makes one"
    )]
    Recipient(String),
    /// The file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file holds no private key.
    #[error("{} holds no private key (a line that begins with AGE-SECRET-KEY-1){}", path.display(), if *locked {
        "; it is encrypted itself: decrypt it first, with `age -d`"
    } else { "" })]
    NoIdentity {
        /// The file.
        path: PathBuf,
        /// It is encrypted itself.
        locked: bool,
    },
    /// No key could be made.
    #[error(transparent)]
    Cipher(#[from] CipherError),
}

/// A public key: anyone who has it can encrypt, and read nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Recipient(pub(super) [u8; 32]);

/// A private key.
pub struct Identity(pub(super) StaticSecret);

/// Private keys that are tried one after the other.
#[derive(Default)]
pub struct Identities(pub(super) Vec<Identity>);

/// The 32 bytes of a key in Bech32 with this prefix (BIP 173, without its limit of length).
fn decode(text: &str, prefix: &str) -> Option<[u8; 32]> {
    let checked = CheckedHrpstring::new::<Bech32>(text).ok()?;
    if checked.hrp().to_lowercase() != prefix {
        return None;
    }
    let bytes: Vec<u8> = checked.byte_iter().take(33).collect();
    bytes.try_into().ok()
}

fn encode(bytes: &[u8], prefix: &str) -> Option<String> {
    bech32::encode::<Bech32>(Hrp::parse(prefix).ok()?, bytes).ok()
}

impl FromStr for Recipient {
    type Err = KeyError;

    /// `age1...`
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let wrong = || KeyError::Recipient(text.to_owned());
        if text.len() > 100 || text.chars().any(|letter| letter.is_ascii_uppercase()) {
            return Err(wrong());
        }
        decode(text, PUBLIC_PREFIX).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&encode(&self.0, PUBLIC_PREFIX).unwrap_or_default())
    }
}

impl fmt::Debug for Recipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

impl Identity {
    /// A new key.
    ///
    /// # Errors
    /// [`CipherError::NoRandomness`].
    pub fn generate() -> Result<Self, CipherError> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| CipherError::NoRandomness)?;
        Ok(Self(StaticSecret::from(bytes)))
    }

    /// `AGE-SECRET-KEY-1...`
    fn parse(text: &str) -> Option<Self> {
        decode(text, SECRET_PREFIX).map(|bytes| Self(StaticSecret::from(bytes)))
    }

    /// What the file of the key holds: the public one as a remark, and the private one.
    #[must_use]
    pub fn file_text(&self) -> String {
        let secret = encode(self.0.as_bytes(), SECRET_PREFIX).unwrap_or_default().to_ascii_uppercase();
        format!("# public key: {}\n{secret}\n", self.recipient())
    }

    /// The public key that belongs to it.
    #[must_use]
    pub fn recipient(&self) -> Recipient {
        Recipient(PublicKey::from(&self.0).to_bytes())
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Identity of {}", self.recipient())
    }
}

impl Identities {
    /// Reads a file as `age-keygen` writes it: a key a line, and remarks.
    ///
    /// # Errors
    /// [`KeyError::File`] or [`KeyError::NoIdentity`].
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { action: "read", path: path.to_owned(), source };
        let length = fs::metadata(path).map_err(failed)?.len();
        let bytes = if length > IDENTITY_FILE_BYTES { Vec::new() } else { fs::read(path).map_err(failed)? };
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let found: Vec<Identity> = lines.filter_map(Identity::parse).collect();
        if found.is_empty() {
            let locked = text.starts_with(super::VERSION_LINE) || text.starts_with("-----BEGIN AGE");
            return Err(KeyError::NoIdentity { path: path.to_owned(), locked });
        }
        Ok(Self(found))
    }
}

impl From<Identity> for Identities {
    fn from(identity: Identity) -> Self {
        Self(vec![identity])
    }
}

impl fmt::Debug for Identities {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(&self.0).finish()
    }
}

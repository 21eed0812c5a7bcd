//! Who may read the backups of a repository: any holder of it, or only a holder of a private key.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::BackupError;
use crate::age::{Identities, Recipient};
use crate::digests::{DigestKey, Digests, random_bytes};

/// The format of a repository whose backups anyone who holds it can read.
const FORMAT_OPEN: u64 = 1;

/// That of one whose backups are encrypted, and the newest that is read.
const FORMAT_SEALED: u64 = 2;

/// What a server needs to make backups that it cannot read itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Protection {
    /// To whom they are encrypted.
    pub recipient: Recipient,
    /// Known to the server alone: what the key of digests is derived from. With another one the next backup is a full one.
    pub secret: [u8; 32],
}

impl Protection {
    /// A new secret, for a server that has none.
    ///
    /// # Errors
    /// [`BackupError::Cipher`] where the system gives no random numbers.
    pub fn new_secret() -> Result<[u8; 32], BackupError> {
        random_bytes().map_err(|error| BackupError::cipher("a secret", error))
    }
}

impl std::fmt::Debug for Protection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Protection").field("recipient", &self.recipient).finish_non_exhaustive()
    }
}

/// What a repository says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Nature {
    /// To whom its backups are encrypted, if they are.
    pub(crate) recipient: Option<String>,
    salt: String,
}

impl Nature {
    pub(crate) fn new(protection: Option<&Protection>) -> Result<Self, BackupError> {
        let salt = protection.map(|_| random_bytes()).transpose();
        let salt = salt.map_err(|error| BackupError::cipher("a salt", error))?;
        Ok(Self {
            recipient: protection.map(|protection| protection.recipient.to_string()),
            salt: salt.map(|salt| blake3::Hash::from_bytes(salt).to_hex().to_string()).unwrap_or_default(),
        })
    }

    pub(crate) fn encode(&self) -> String {
        let identity = match &self.recipient {
            None => json!({"scrinium_repository": FORMAT_OPEN}),
            Some(recipient) => {
                json!({"scrinium_repository": FORMAT_SEALED, "recipient": recipient, "salt": self.salt})
            }
        };
        format!("{identity}\n")
    }

    /// Reads it; `what` is for messages.
    pub(crate) fn decode(what: &str, text: &[u8]) -> Result<Self, BackupError> {
        let damaged = |problem: &str| BackupError::damaged(what, problem);
        let identity: Value = serde_json::from_slice(text).map_err(|error| damaged(&error.to_string()))?;
        let field = |name: &str| identity.get(name).and_then(Value::as_str).map(str::to_owned);
        match identity.get("scrinium_repository").and_then(Value::as_u64) {
            Some(FORMAT_OPEN) => Ok(Self { recipient: None, salt: String::new() }),
            Some(FORMAT_SEALED) => match (field("recipient"), field("salt")) {
                (Some(recipient), Some(salt)) => Ok(Self { recipient: Some(recipient), salt }),
                _ => Err(damaged("it does not say for whom it is encrypted")),
            },
            Some(found) if found > FORMAT_SEALED => {
                Err(BackupError::NewerFormat { what: what.to_owned(), found, supported: FORMAT_SEALED })
            }
            _ => Err(damaged("it names no format")),
        }
    }

    /// What backups in it are made with. What the repository says is never believed as to who may read them.
    ///
    /// # Errors
    /// [`BackupError::OtherProtection`] where it differs from the server's setting.
    pub(crate) fn writer(&self, place: &str, protection: Option<&Protection>) -> Result<Writer, BackupError> {
        let wanted = protection.map(|protection| protection.recipient.to_string());
        if wanted != self.recipient {
            return Err(BackupError::OtherProtection {
                place: place.to_owned(),
                found: self.recipient.clone(),
                wanted,
            });
        }
        Ok(match protection {
            None => Writer::default(),
            Some(Protection { recipient, secret }) => {
                let key = DigestKey::of(secret, self.salt.as_bytes());
                Writer { recipient: Some(*recipient), digests: Digests::Keyed(key), key: Some(key) }
            }
        })
    }
}

/// How a backup is written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Writer {
    pub(crate) recipient: Option<Recipient>,
    pub(crate) digests: Digests,
    /// For the manifest, where anyone who restores finds it.
    pub(crate) key: Option<DigestKey>,
}

/// Reads private keys from a file, for [`Repository::with_identities`](crate::Repository::with_identities).
///
/// # Errors
/// [`BackupError::Key`].
pub fn read_identities(path: &Path) -> Result<Arc<Identities>, BackupError> {
    Ok(Arc::new(Identities::read(path)?))
}

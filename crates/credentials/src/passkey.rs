//! Passkeys: what a server does of Web Authentication (W3C, Level 3), without sockets and without trust in anybody's
//! attestation.
//!
//! The server makes a [`PasskeyChallenge`], keeps it, and shows the options that go with it to the browser. What the browser
//! gives back is checked against it once: take the challenge away from where it is kept before [`verify_registration`] or
//! [`verify_assertion`] is
//! called, so that no answer is good for twice.

mod authenticator;
mod cbor;
mod ceremony;
mod options;

pub use ceremony::{
    AssertionResponse, PasskeyError, PasskeyProof, RegistrationResponse, verify_assertion,
    verify_registration,
};
pub use options::{creation_options, request_options};

use serde::{Deserialize, Serialize};

use crate::public_key::PublicKey;
use crate::secret::{RandomError, SecretBytes, random};

/// How many passkeys a person may have.
pub const MOST_PASSKEYS: usize = 16;

/// How long somebody has to touch the authenticator.
pub const CHALLENGE_MS: u64 = 5 * 60 * 1000;

/// The longest credential id (WebAuthn, section 4).
const LONGEST_CREDENTIAL_ID: usize = 1023;

/// The server as passkeys know it (WebAuthn, section 4, "relying party").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelyingParty {
    /// Its domain, to which passkeys belong: the host's name or a domain above it. It cannot be changed without losing them.
    pub id: String,
    /// What people read.
    pub name: String,
    /// The origins, with scheme and port, of the pages from which people sign in.
    pub origins: Vec<String>,
}

/// What a challenge is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ceremony {
    /// A passkey is added.
    Registration,
    /// A passkey is used.
    Assertion,
}

/// A challenge that was sent to a browser, kept until it answers or [`CHALLENGE_MS`] have passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasskeyChallenge {
    pub(crate) bytes: SecretBytes,
    pub(crate) ceremony: Ceremony,
    pub(crate) made_ms: u64,
}

impl PasskeyChallenge {
    /// A fresh one, of 256 bits.
    ///
    /// # Errors
    /// [`RandomError`]
    pub fn make(ceremony: Ceremony, now_ms: u64) -> Result<Self, RandomError> {
        Ok(Self { bytes: SecretBytes::new(random::<32>()?), ceremony, made_ms: now_ms })
    }

    /// One whose bytes are known.
    #[must_use]
    pub fn with_bytes(bytes: [u8; 32], ceremony: Ceremony, made_ms: u64) -> Self {
        Self { bytes: SecretBytes::new(bytes), ceremony, made_ms }
    }

    /// Its bytes, which no other challenge has.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.expose()
    }

    /// Whether it may be answered still.
    #[must_use]
    pub const fn is_open(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.made_ms) < CHALLENGE_MS
    }
}

/// A passkey as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passkey {
    /// The credential id, which the authenticator chose.
    pub id: SecretBytes,
    /// What the person calls it.
    pub name: String,
    pub(crate) key: PublicKey,
    /// How often it was used, as the authenticator counts; 0 where it does not.
    pub sign_count: u32,
    /// Whether it can be copied to other devices (flag BE), and was (flag BS).
    pub is_syncable: bool,
    /// As above.
    pub is_synced: bool,
    /// When it was added, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it was last used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_ms: Option<u64>,
}

impl Passkey {
    pub(crate) fn is_within_limits(&self) -> bool {
        let length = self.id.expose().len();
        (1..=LONGEST_CREDENTIAL_ID).contains(&length) && self.key.is_within_limits() && self.name.len() <= 100
    }
}

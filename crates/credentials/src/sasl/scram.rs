//! SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677): neither side shows the password, and each shows the other that
//! it has it.
//!
//! The server keeps `StoredKey` and `ServerKey`, from neither of which the password, or what a client needs, can be had
//! but by guessing. One salt is the person's: their password and their app passwords have keys under it, and whichever
//! the client used is the one that its proof fits.

mod client;
mod message;
mod server;

pub use client::{ScramClient, ScramClientError};
pub(super) use message::read_saslname;
pub(super) use server::ScramServer;

use std::num::NonZeroU32;

use ring::{digest, hmac, pbkdf2};
use serde::{Deserialize, Serialize};

use crate::names::prepare_password;
use crate::secret::{RandomError, SecretBytes, random, same};

/// How often PBKDF2 goes round where nothing else is said. RFC 7677, section 4, wants 4,096 at least; this takes some 20 ms of
/// the client, and of the server only when a password is set. Programs that use Cyrus SASL, such as mbsync, refuse a larger number.
pub(crate) const ITERATIONS: u32 = 65_536;

/// What a client does at least, and at most, when a server says how often.
const LEAST_ITERATIONS: u32 = 4096;
const MOST_ITERATIONS: u32 = 1_000_000;

const SALT_BYTES: usize = 16;
const KEY_BYTES: usize = 32;

/// The salt of a person and how often PBKDF2 goes round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScramSalt {
    salt: SecretBytes,
    iterations: NonZeroU32,
}

impl ScramSalt {
    /// A fresh one.
    ///
    /// # Errors
    /// [`RandomError`]
    pub fn make(iterations: u32) -> Result<Self, RandomError> {
        Ok(Self::with_salt(&random::<SALT_BYTES>()?, iterations))
    }

    pub(crate) fn with_salt(salt: &[u8], iterations: u32) -> Self {
        let iterations = NonZeroU32::new(iterations.clamp(LEAST_ITERATIONS, MOST_ITERATIONS));
        Self { salt: SecretBytes::new(salt), iterations: iterations.unwrap_or(NonZeroU32::MIN) }
    }

    /// What a name that nobody has seems to have: always the same, and not to be told from a real one.
    pub(crate) fn of_nobody(key: &hmac::Key, name: &str, iterations: u32) -> Self {
        let tag = hmac::sign(key, name.as_bytes());
        Self::with_salt(tag.as_ref().get(..SALT_BYTES).unwrap_or_default(), iterations)
    }

    /// The keys of a password (RFC 5802, section 3). Takes as long as the iterations do.
    #[must_use]
    pub fn keys_of(&self, password: &str) -> ScramKeys {
        let salted = self.salted(password);
        let client_key = hmac_of(&salted, b"Client Key");
        ScramKeys {
            stored_key: SecretBytes::new(sha256(&client_key)),
            server_key: SecretBytes::new(hmac_of(&salted, b"Server Key")),
        }
    }

    /// `SaltedPassword := Hi(Normalize(password), salt, i)`
    fn salted(&self, password: &str) -> [u8; KEY_BYTES] {
        // What is empty or too long was refused where it could be set, and fits nothing here.
        let prepared = prepare_password(password).unwrap_or_default();
        let mut salted = [0; KEY_BYTES];
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            self.iterations,
            self.salt.expose(),
            prepared.as_bytes(),
            &mut salted,
        );
        salted
    }

    pub(crate) fn is_within_limits(&self) -> bool {
        (LEAST_ITERATIONS..=MOST_ITERATIONS).contains(&self.iterations.get())
            && self.salt.expose().len() <= 64
    }
}

/// `StoredKey` and `ServerKey` of a password under a [`ScramSalt`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScramKeys {
    stored_key: SecretBytes,
    server_key: SecretBytes,
}

impl ScramKeys {
    /// Whether a client's proof for this exchange is of the password of these keys (RFC 5802, section 3).
    fn fits(&self, auth_message: &[u8], proof: &[u8; KEY_BYTES]) -> bool {
        let signature = hmac_of(self.stored_key.expose(), auth_message);
        let client_key = exclusive_or(proof, &signature);
        same(&sha256(&client_key), self.stored_key.expose())
    }

    /// `ServerSignature := HMAC(ServerKey, AuthMessage)`
    fn server_signature(&self, auth_message: &[u8]) -> [u8; KEY_BYTES] {
        hmac_of(self.server_key.expose(), auth_message)
    }
}

/// Whose keys fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScramKey {
    /// The person's password.
    Password,
    /// The app password with this id.
    AppPassword(String),
}

/// What an exchange needs of the person whom a name belongs to, or seems to: see [`crate::Gate::scram_account`].
#[derive(Clone, Debug)]
pub struct ScramAccount {
    pub(crate) salt: ScramSalt,
    /// Bounded, as app passwords are.
    pub(crate) keys: Vec<(ScramKey, ScramKeys)>,
    /// Who it is; `None` for a name that nobody has.
    pub(crate) person_id: Option<String>,
}

/// That a client has shown, in an exchange that is over, that it has a password. Nothing else makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScramProof {
    pub(crate) person_id: Option<String>,
    /// `None` where the proof fitted no key.
    pub(crate) key: Option<ScramKey>,
    /// Whether the exchange was bound to the connection.
    pub(crate) is_bound: bool,
}

impl ScramProof {
    /// Whether the exchange was bound to the connection, so that nobody stands in between.
    #[must_use]
    pub const fn is_bound(&self) -> bool {
        self.is_bound
    }
}

fn hmac_of(key: &[u8], message: &[u8]) -> [u8; KEY_BYTES] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message);
    tag.as_ref().first_chunk().copied().unwrap_or([0; KEY_BYTES])
}

fn sha256(bytes: &[u8]) -> [u8; KEY_BYTES] {
    digest::digest(&digest::SHA256, bytes).as_ref().first_chunk().copied().unwrap_or([0; KEY_BYTES])
}

fn exclusive_or(one: &[u8; KEY_BYTES], other: &[u8; KEY_BYTES]) -> [u8; KEY_BYTES] {
    let mut result = *one;
    for (byte, other) in result.iter_mut().zip(other) {
        *byte ^= other;
    }
    result
}

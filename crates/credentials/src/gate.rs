//! The one question: may this person with this proof come in by this protocol, now?

mod answer;
mod decide;
mod question;

pub use answer::{Admission, Answer, Decision, Method, NextStep, Reason, Refusal, SecondStep};
pub use question::{Candidate, Proof, Protection, Question, SessionProof, Standing};

use ring::hmac;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::oidc::SignIn;
use crate::password::{PasswordCredential, PasswordError};
use crate::protocol::Protocol;
use crate::sasl::{ITERATIONS, ScramAccount, ScramSalt};
use crate::secret::{RandomError, SealError, SealingKey, random};

/// How long somebody who has shown a password has for the second step.
pub const SECOND_STEP_MS: u64 = 10 * 60 * 1000;

/// What sealed texts are for; one is never taken for another.
const STEP: &str = "second step";
const SIGN_IN: &str = "sign-in";
const VALUE: &str = "value: ";

/// What a gate needs to know of the server.
#[derive(Clone, Copy, Debug)]
pub struct GateOptions {
    /// How often PBKDF2 goes round for SCRAM's keys; also what a name that nobody has seems to have. `None` where the server
    /// does not offer SCRAM, so that no keys are kept.
    pub scram_iterations: Option<u32>,
}

impl Default for GateOptions {
    fn default() -> Self {
        Self { scram_iterations: Some(ITERATIONS) }
    }
}

/// What decides. One for the server, made when it starts; it holds no person.
#[derive(Debug)]
pub struct Gate {
    options: GateOptions,
    /// Makes salts of names that nobody has: the same after a restart, and unknown to others.
    nobodies: hmac::Key,
    sealing: SealingKey,
    /// Checked where there is no password, so that this takes as long.
    nobody: PasswordCredential,
}

impl Gate {
    /// Makes a gate with the server's secret. Hashes once, which takes some 20 ms.
    ///
    /// # Errors
    /// [`PasswordError`], where the system gives no random bytes.
    pub fn new(secret: &[u8], options: GateOptions) -> Result<Self, PasswordError> {
        let derived = |purpose: &[u8]| {
            let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), purpose);
            tag.as_ref().first_chunk::<32>().copied().ok_or(RandomError)
        };
        let nobodies = hmac::Key::new(hmac::HMAC_SHA256, &derived(b"scrinium credentials: salts of nobody")?);
        let sealing = SealingKey::new(&derived(b"scrinium credentials: sealed states")?)?;
        let unknown = data_encoding::HEXLOWER.encode(&random::<16>()?);
        Ok(Self { options, nobodies, sealing, nobody: PasswordCredential::hash(&unknown)? })
    }

    /// How often PBKDF2 goes round, as [`crate::StoredCredentials::set_password`] takes it.
    #[must_use]
    pub const fn scram_iterations(&self) -> Option<u32> {
        self.options.scram_iterations
    }

    /// What SCRAM's exchange needs of a prepared name. A name that nobody has, and a person without keys, get a salt that is
    /// always the same for this name, so that they cannot be told from others.
    #[must_use]
    pub fn scram_account(
        &self,
        name: &str,
        person: Option<&Candidate<'_>>,
        protocol: Protocol,
        now_ms: u64,
    ) -> ScramAccount {
        let keys = person.map(|person| person.credentials.scram_keys(protocol, now_ms)).unwrap_or_default();
        // The same one by every protocol, whether or not one of the keys is for it.
        let known = person.and_then(|person| person.credentials.scram_salt());
        let iterations = self.options.scram_iterations.unwrap_or(ITERATIONS);
        let salt = known.cloned().unwrap_or_else(|| ScramSalt::of_nobody(&self.nobodies, name, iterations));
        ScramAccount { salt, keys, person_id: person.map(|person| person.id.to_owned()) }
    }

    /// Seals a first step for the browser to keep until the second one.
    ///
    /// # Errors
    /// [`RandomError`]
    pub fn seal_step(&self, step: &NextStep) -> Result<String, RandomError> {
        let bytes = serde_json::to_vec(step).map_err(|_| RandomError)?;
        self.sealing.seal(STEP, &bytes)
    }

    /// Opens what [`Self::seal_step`] has made.
    ///
    /// # Errors
    /// [`SealError`]
    pub fn open_step(&self, text: &str) -> Result<NextStep, SealError> {
        serde_json::from_slice(&self.sealing.open(STEP, text)?).map_err(|_| SealError)
    }

    /// Seals what a client keeps between two requests, for one purpose: it can neither read nor change it, nor use it for another
    /// one. It can show it twice and at any time, so the value holds what forbids that.
    ///
    /// # Errors
    /// [`RandomError`]
    pub fn seal_value<T: Serialize>(&self, purpose: &str, value: &T) -> Result<String, RandomError> {
        let bytes = serde_json::to_vec(value).map_err(|_| RandomError)?;
        self.sealing.seal(&format!("{VALUE}{purpose}"), &bytes)
    }

    /// Opens what [`Self::seal_value`] has made for the same purpose.
    ///
    /// # Errors
    /// [`SealError`]
    pub fn open_value<T: DeserializeOwned>(&self, purpose: &str, text: &str) -> Result<T, SealError> {
        let bytes = self.sealing.open(&format!("{VALUE}{purpose}"), text)?;
        serde_json::from_slice(&bytes).map_err(|_| SealError)
    }

    /// Seals a sign-in with a provider, for a cookie with `SameSite=Lax`.
    ///
    /// # Errors
    /// [`RandomError`]
    pub fn seal_sign_in(&self, sign_in: &SignIn) -> Result<String, RandomError> {
        let bytes = serde_json::to_vec(sign_in).map_err(|_| RandomError)?;
        self.sealing.seal(SIGN_IN, &bytes)
    }

    /// Opens what [`Self::seal_sign_in`] has made.
    ///
    /// # Errors
    /// [`SealError`]
    pub fn open_sign_in(&self, text: &str) -> Result<SignIn, SealError> {
        serde_json::from_slice(&self.sealing.open(SIGN_IN, text)?).map_err(|_| SealError)
    }
}

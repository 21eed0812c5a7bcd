//! Registering a passkey (WebAuthn, section 7.1) and verifying an assertion (section 7.2).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use thiserror::Error;

use crate::passkey::authenticator::{AuthenticatorData, attested_data};
use crate::passkey::{Ceremony, Passkey, PasskeyChallenge, RelyingParty};
use crate::secret::{SecretBytes, same};

/// The longest part of an answer, in bytes. Attestation statements with certificates are what is long.
const LONGEST_PART: usize = 64 * 1024;

/// Why an answer of a browser is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PasskeyError {
    /// It has not the form that the standard gives it, or is too long.
    #[error("the browser's answer is malformed")]
    Malformed,
    /// The challenge was for something else, is another one, or too old.
    #[error("the answer is to another challenge, or came too late")]
    Challenge,
    /// It is an answer to the other ceremony.
    #[error("the answer is of another ceremony")]
    Ceremony,
    /// It was made on another site, or in a frame of one.
    #[error("the answer was made for another site")]
    Origin,
    /// The authenticator was asked by another relying party.
    #[error("the passkey is of another site")]
    Party,
    /// Nobody has touched the authenticator.
    #[error("nobody has touched the authenticator")]
    NotPresent,
    /// The authenticator has not checked who touches it, by PIN or finger, where that is needed.
    #[error("the authenticator has not checked who uses it")]
    NotVerified,
    /// The key is of none of the algorithms that were asked for, or malformed.
    #[error("the key is of an algorithm that was not asked for")]
    Key,
    /// The person has this passkey already, or too many.
    #[error("the passkey is known already, or there are too many")]
    Known,
    /// No such passkey is the person's.
    #[error("there is no such passkey")]
    Unknown,
    /// The signature does not fit.
    #[error("the signature is wrong")]
    Signature,
    /// The authenticator counts less than it did: somebody has copied it (section 6.1.1).
    #[error("the passkey seems to have been copied")]
    Copied,
}

/// What `navigator.credentials.create` gave, decoded: `toJSON()` has the parts in base64url.
#[derive(Clone, Debug, Deserialize)]
pub struct RegistrationResponse {
    /// `clientDataJSON`
    #[serde(rename = "clientDataJSON")]
    pub client_data: SecretBytes,
    /// `attestationObject`
    #[serde(rename = "attestationObject")]
    pub attestation_object: SecretBytes,
}

/// What `navigator.credentials.get` gave, decoded.
#[derive(Clone, Debug, Deserialize)]
pub struct AssertionResponse {
    /// `rawId`, from outside the inner object.
    #[serde(skip)]
    pub credential_id: SecretBytes,
    /// `clientDataJSON`
    #[serde(rename = "clientDataJSON")]
    pub client_data: SecretBytes,
    /// `authenticatorData`
    #[serde(rename = "authenticatorData")]
    pub authenticator_data: SecretBytes,
    /// `signature`
    pub signature: SecretBytes,
    /// `userHandle`: whom the authenticator knows the passkey to be of.
    #[serde(rename = "userHandle", default)]
    pub user_handle: Option<SecretBytes>,
}

#[derive(Deserialize)]
struct Outer<T> {
    #[serde(rename = "rawId")]
    raw_id: SecretBytes,
    r#type: String,
    response: T,
}

fn outer<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<Outer<T>, PasskeyError> {
    if json.len() > 2 * LONGEST_PART {
        return Err(PasskeyError::Malformed);
    }
    let outer: Outer<T> = serde_json::from_slice(json).map_err(|_| PasskeyError::Malformed)?;
    if outer.r#type == "public-key" { Ok(outer) } else { Err(PasskeyError::Malformed) }
}

impl RegistrationResponse {
    /// Reads `PublicKeyCredential.toJSON()` (section 5.1, `RegistrationResponseJSON`).
    ///
    /// # Errors
    /// [`PasskeyError::Malformed`]
    pub fn from_json(json: &[u8]) -> Result<Self, PasskeyError> {
        outer::<Self>(json).map(|outer| outer.response)
    }
}

impl AssertionResponse {
    /// Reads `PublicKeyCredential.toJSON()` (section 5.1, `AuthenticationResponseJSON`).
    ///
    /// # Errors
    /// [`PasskeyError::Malformed`]
    pub fn from_json(json: &[u8]) -> Result<Self, PasskeyError> {
        let outer = outer::<Self>(json)?;
        Ok(Self { credential_id: outer.raw_id, ..outer.response })
    }
}

/// `CollectedClientData` (section 5.8.1). What else it holds is passed over.
#[derive(Deserialize)]
struct ClientData {
    r#type: String,
    challenge: String,
    origin: String,
    #[serde(rename = "crossOrigin", default)]
    cross_origin: bool,
}

/// That a passkey was used. Nothing else makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasskeyProof {
    pub(crate) credential_id: SecretBytes,
    pub(crate) sign_count: u32,
    pub(crate) is_synced: bool,
    pub(crate) user_verified: bool,
}

impl PasskeyProof {
    /// Whether the authenticator has checked who uses it, so that it counts as two factors.
    #[must_use]
    pub const fn user_verified(&self) -> bool {
        self.user_verified
    }
}

/// Checks the answer to a registration (section 7.1) and gives the passkey to be stored. The caller has made sure who is
/// there, and has taken the challenge away from where it was kept.
///
/// # Errors
/// [`PasskeyError`]
pub fn verify_registration(
    party: &RelyingParty,
    challenge: &PasskeyChallenge,
    response: &RegistrationResponse,
    name: &str,
    now_ms: u64,
) -> Result<Passkey, PasskeyError> {
    check_client_data(party, challenge, Ceremony::Registration, response.client_data.expose(), now_ms)?;
    let object = bounded(response.attestation_object.expose())?;
    let data = attested_data(object).ok_or(PasskeyError::Malformed)?;
    let data = AuthenticatorData::parse(data).ok_or(PasskeyError::Key)?;
    check_data(party, &data)?;
    let (is_syncable, is_synced, sign_count) = (data.is_syncable(), data.is_synced(), data.sign_count);
    let (id, key) = data.credential.ok_or(PasskeyError::Malformed)?;
    Ok(Passkey {
        id: SecretBytes::new(id),
        name: name.chars().filter(|letter| !letter.is_control()).take(25).collect(),
        key,
        sign_count,
        is_syncable,
        is_synced,
        created_ms: now_ms,
        used_ms: None,
    })
}

/// Checks the answer to a request (section 7.2) with the passkeys of the person whom the name, or the handle, says it is of.
/// The caller has taken the challenge away from where it was kept.
///
/// # Errors
/// [`PasskeyError`]
pub fn verify_assertion(
    party: &RelyingParty,
    challenge: &PasskeyChallenge,
    response: &AssertionResponse,
    known: &[Passkey],
    now_ms: u64,
) -> Result<PasskeyProof, PasskeyError> {
    check_client_data(party, challenge, Ceremony::Assertion, response.client_data.expose(), now_ms)?;
    let bytes = bounded(response.authenticator_data.expose())?;
    let data = AuthenticatorData::parse(bytes).ok_or(PasskeyError::Malformed)?;
    check_data(party, &data)?;
    let passkey =
        known.iter().find(|passkey| passkey.id == response.credential_id).ok_or(PasskeyError::Unknown)?;
    // Steps 20 and 21: the signature is over the data and the hash of the client data.
    let mut message = bytes.to_vec();
    message.extend_from_slice(digest(&SHA256, response.client_data.expose()).as_ref());
    if !passkey.key.verify_of_passkey(&message, bounded(response.signature.expose())?) {
        return Err(PasskeyError::Signature);
    }
    // Step 22: who counts, counts up.
    if (data.sign_count != 0 || passkey.sign_count != 0) && data.sign_count <= passkey.sign_count {
        return Err(PasskeyError::Copied);
    }
    // What could not be copied cannot be it now (section 6.1.3).
    if data.is_syncable() != passkey.is_syncable {
        return Err(PasskeyError::Copied);
    }
    Ok(PasskeyProof {
        credential_id: passkey.id.clone(),
        sign_count: data.sign_count,
        is_synced: data.is_synced(),
        user_verified: data.user_verified(),
    })
}

fn bounded(bytes: &[u8]) -> Result<&[u8], PasskeyError> {
    if bytes.len() > LONGEST_PART { Err(PasskeyError::Malformed) } else { Ok(bytes) }
}

fn check_client_data(
    party: &RelyingParty,
    challenge: &PasskeyChallenge,
    ceremony: Ceremony,
    json: &[u8],
    now_ms: u64,
) -> Result<(), PasskeyError> {
    let data: ClientData = serde_json::from_slice(bounded(json)?).map_err(|_| PasskeyError::Malformed)?;
    let kind = match ceremony {
        Ceremony::Registration => "webauthn.create",
        Ceremony::Assertion => "webauthn.get",
    };
    if data.r#type != kind || challenge.ceremony != ceremony {
        return Err(PasskeyError::Ceremony);
    }
    let shown = URL_SAFE_NO_PAD.decode(data.challenge.as_bytes()).map_err(|_| PasskeyError::Malformed)?;
    if !same(&shown, challenge.bytes.expose()) || !challenge.is_open(now_ms) {
        return Err(PasskeyError::Challenge);
    }
    // Exactly one of the origins; never by a part of it.
    if data.cross_origin || !party.origins.contains(&data.origin) {
        return Err(PasskeyError::Origin);
    }
    Ok(())
}

fn check_data(party: &RelyingParty, data: &AuthenticatorData<'_>) -> Result<(), PasskeyError> {
    if !same(data.rp_id_hash, digest(&SHA256, party.id.as_bytes()).as_ref()) {
        return Err(PasskeyError::Party);
    }
    if !data.user_present() {
        return Err(PasskeyError::NotPresent);
    }
    // What cannot be copied has not been (section 6.1.3).
    if data.is_synced() && !data.is_syncable() { Err(PasskeyError::Malformed) } else { Ok(()) }
}

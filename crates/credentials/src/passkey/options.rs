//! What the browser is asked for, as the JSON that `PublicKeyCredential.parseCreationOptionsFromJSON` and
//! `parseRequestOptionsFromJSON` take (WebAuthn, sections 5.1.8 and 5.1.9).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::passkey::authenticator::{EDDSA, ES256, RS256};
use crate::passkey::{CHALLENGE_MS, Passkey, PasskeyChallenge, RelyingParty};

/// Options for adding a passkey. `handle` tells the person to the authenticator: at most 64 bytes that say nothing of them
/// (section 14.6.1), such as random ones that are kept with them.
#[must_use]
pub fn creation_options(
    party: &RelyingParty,
    challenge: &PasskeyChallenge,
    handle: &[u8; 32],
    name: &str,
    display_name: &str,
    known: &[Passkey],
) -> Value {
    let algorithms: Vec<_> = [ES256, EDDSA, RS256]
        .iter()
        .map(|algorithm| json!({ "type": "public-key", "alg": algorithm }))
        .collect();
    json!({
        "rp": { "id": party.id, "name": party.name },
        "user": { "id": URL_SAFE_NO_PAD.encode(handle), "name": name, "displayName": display_name },
        "challenge": URL_SAFE_NO_PAD.encode(challenge.bytes.expose()),
        "pubKeyCredParams": algorithms,
        "timeout": CHALLENGE_MS,
        "excludeCredentials": descriptors(known),
        "authenticatorSelection": { "residentKey": "preferred", "userVerification": "required" },
        "attestation": "none",
    })
}

/// Options for signing in: with the passkeys of a person who is known, or with none, so that the authenticator says who it is.
#[must_use]
pub fn request_options(party: &RelyingParty, challenge: &PasskeyChallenge, known: &[Passkey]) -> Value {
    json!({
        "rpId": party.id,
        "challenge": URL_SAFE_NO_PAD.encode(challenge.bytes.expose()),
        "timeout": CHALLENGE_MS,
        "allowCredentials": descriptors(known),
        "userVerification": if known.is_empty() { "required" } else { "preferred" },
    })
}

fn descriptors(known: &[Passkey]) -> Vec<Value> {
    let describe = |passkey: &Passkey| json!({ "type": "public-key", "id": URL_SAFE_NO_PAD.encode(passkey.id.expose()) });
    known.iter().map(describe).collect()
}

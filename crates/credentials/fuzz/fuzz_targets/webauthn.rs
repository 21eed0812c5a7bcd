//! Any bytes as what a browser and an authenticator say: client data, attestation objects, authenticator data, signatures. Nobody
//! comes in without the key, and nothing is registered that was made for another site or another question.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_credentials::passkey::{
    AssertionResponse, Ceremony, PasskeyChallenge, RegistrationResponse, RelyingParty, verify_assertion,
    verify_registration,
};
use scrinium_credentials::{SecretBytes, StoredCredentials};
use serde_json::Value;

const ORIGIN: &str = "https://a";

fuzz_target!(|bytes: &[u8]| {
    let party = RelyingParty { id: "a".into(), name: "a".into(), origins: vec![ORIGIN.into()] };
    let _ = (RegistrationResponse::from_json(bytes), AssertionResponse::from_json(bytes));
    // Parts are separated by the byte 0xfe; where the client data is empty, it is as it should be.
    let mut parts = bytes.split(|byte| *byte == 0xfe);
    let (first, second) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let client_data = |kind: &str| {
        let right = format!(r#"{{"type":"{kind}","challenge":"{}","origin":"{ORIGIN}"}}"#, "A".repeat(43));
        SecretBytes::new(if first.is_empty() { right.into_bytes() } else { first.to_vec() })
    };
    let asked = PasskeyChallenge::with_bytes([0; 32], Ceremony::Registration, 0);
    let made = RegistrationResponse {
        client_data: client_data("webauthn.create"),
        attestation_object: SecretBytes::new(second),
    };
    let mut stored = StoredCredentials::default();
    if let Ok(passkey) = verify_registration(&party, &asked, &made, "x", 0) {
        let data: Value = serde_json::from_slice(made.client_data.expose()).unwrap();
        assert!(data["origin"] == ORIGIN && data["type"] == "webauthn.create");
        stored.add_passkey(passkey).unwrap();
        assert_eq!(StoredCredentials::from_bytes(&stored.to_bytes().unwrap()).unwrap(), stored);
    }
    // The fuzzer has no private key, so that it signs nothing; but RSA with an exponent that it chose, such as a small one,
    // could be made to fit.
    let id = stored.passkeys().first().map_or_else(|| SecretBytes::new([1]), |passkey| passkey.id.clone());
    let asked = PasskeyChallenge::with_bytes([0; 32], Ceremony::Assertion, 0);
    let used = AssertionResponse {
        credential_id: id,
        client_data: client_data("webauthn.get"),
        authenticator_data: SecretBytes::new(second),
        signature: SecretBytes::new(parts.next().unwrap_or_default()),
        user_handle: None,
    };
    assert!(verify_assertion(&party, &asked, &used, &[], 0).is_err());
    if verify_assertion(&party, &asked, &used, stored.passkeys(), 0).is_ok() {
        let data: Value = serde_json::from_slice(used.client_data.expose()).unwrap();
        assert!(data["origin"] == ORIGIN && data["type"] == "webauthn.get");
    }
});

//! Any bytes as what a stranger sends to come in: exchanges of SASL, answers of browsers and providers, tokens, keys,
//! records. No panic, and nobody comes in.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use scrinium_credentials::oidc::{Provider, id_token_of};
use scrinium_credentials::passkey::{
    AssertionResponse, Ceremony, PasskeyChallenge, RegistrationResponse, RelyingParty, verify_assertion,
    verify_registration,
};
use scrinium_credentials::sasl::{
    ChannelBindings, ClaimedProof, SaslMechanism, ServerExchange, Step, server_end_point,
};
use scrinium_credentials::token::{CouchRules, KeySet, VerifyKey, verify_couch};
use scrinium_credentials::{
    AppPasswordText, Gate, GateOptions, Protocol, SecretBytes, StoredCredentials, prepare_name,
    prepare_password,
};

static GATE: LazyLock<Gate> = LazyLock::new(|| Gate::new(b"fuzz", GateOptions::default()).unwrap());

/// An exchange whose messages are parted by the byte 0xff; the first one chooses the mechanism.
fn exchange(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let mechanism = SaslMechanism::ALL[usize::from(*first) % SaslMechanism::ALL.len()];
    let bindings = ChannelBindings { exporter: Some([7; 32]), server_end_point: None };
    let mut server = ServerExchange::begin(mechanism, bindings);
    let mut messages = rest.split(|byte| *byte == 0xff);
    let mut step = server.start(messages.next());
    for _ in 0..8 {
        step = match step {
            Ok(Step::Challenge(_)) => server.respond(messages.next().unwrap_or_default()),
            Ok(Step::Account(name)) => {
                server.give_account(GATE.scram_account(&name, None, Protocol::Imap, 0))
            }
            Ok(Step::Claim(claim)) => {
                assert!(claim.name.is_none_or(|name| prepare_name(&name).is_ok()));
                if let ClaimedProof::Password(password) = claim.proof {
                    assert!(password.len() <= scrinium_credentials::LONGEST_PASSWORD);
                }
                return;
            }
            Err(_) => return,
        };
    }
    panic!("the exchange does not end");
}

fn passkeys(bytes: &[u8]) {
    let party = RelyingParty { id: "a".into(), name: "a".into(), origins: vec!["https://a".into()] };
    let data = |kind: &str| {
        let challenge = "A".repeat(43);
        SecretBytes::new(
            format!(r#"{{"type":"{kind}","challenge":"{challenge}","origin":"https://a"}}"#).into_bytes(),
        )
    };
    let asked = PasskeyChallenge::with_bytes([0; 32], Ceremony::Registration, 0);
    let made = RegistrationResponse {
        client_data: data("webauthn.create"),
        attestation_object: SecretBytes::new(bytes),
    };
    if let Ok(passkey) = verify_registration(&party, &asked, &made, "x", 0) {
        // Whatever was registered is stored and read back.
        let mut stored = StoredCredentials::default();
        stored.add_passkey(passkey).unwrap();
        assert_eq!(StoredCredentials::from_bytes(&stored.to_bytes().unwrap()).unwrap(), stored);
    }
    let asked = PasskeyChallenge::with_bytes([0; 32], Ceremony::Assertion, 0);
    let used = AssertionResponse {
        credential_id: SecretBytes::new([1]),
        client_data: data("webauthn.get"),
        authenticator_data: SecretBytes::new(bytes),
        signature: SecretBytes::new(bytes),
        user_handle: None,
    };
    assert!(verify_assertion(&party, &asked, &used, &[], 0).is_err());
}

fuzz_target!(|bytes: &[u8]| {
    exchange(bytes);
    passkeys(bytes);
    let text = String::from_utf8_lossy(bytes);
    let _ =
        (server_end_point(bytes), VerifyKey::from_pem(&text), id_token_of(bytes), prepare_password(&text));
    let _ = Provider::parse("https://a", true, bytes);
    if let Some(app) = AppPasswordText::parse(&text) {
        assert_eq!(AppPasswordText::parse(&app.show()), Some(app));
    }
    if let Ok(keys) = KeySet::parse(bytes) {
        assert!(verify_couch("e30.e30.AA", &keys, &CouchRules::default(), 0).is_err());
    }
    assert!(verify_couch(&text, &KeySet::default(), &CouchRules::default(), 0).is_err());
    if let Ok(stored) = StoredCredentials::from_bytes(bytes) {
        let again = StoredCredentials::from_bytes(&stored.to_bytes().unwrap()).unwrap();
        assert_eq!(again, stored);
    }
});

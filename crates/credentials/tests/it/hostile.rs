//! Bytes of strangers: whatever comes, nothing panics, and no limit is passed.

use proptest::prelude::*;
use scrinium_credentials::oidc::{Provider, id_token_of};
use scrinium_credentials::passkey::{
    AssertionResponse, Ceremony, PasskeyChallenge, RegistrationResponse, RelyingParty, verify_assertion,
    verify_registration,
};
use scrinium_credentials::sasl::{
    ChannelBindings, PlainMessage, SaslMechanism, ScramClient, ServerExchange, server_end_point,
};
use scrinium_credentials::token::{CouchRules, KeySet, VerifyKey, verify_couch};
use scrinium_credentials::{SecretBytes, StoredCredentials, prepare_name, prepare_password};

use crate::people::GATE;
use crate::tokens::keys;

fn party() -> RelyingParty {
    RelyingParty { id: "example.org".into(), name: "x".into(), origins: vec!["https://example.org".into()] }
}

/// Everything that reads what a stranger can send.
fn read_all(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = (PlainMessage::parse(bytes), server_end_point(bytes), StoredCredentials::from_bytes(bytes));
    let _ = (KeySet::parse(bytes), VerifyKey::from_pem(&text), id_token_of(bytes));
    let _ = verify_couch(&text, keys(), &CouchRules::default(), 0);
    let provider = Provider::parse("https://example.org", true, bytes);
    assert!(provider.is_err());
    let _ = (prepare_name(&text), prepare_password(&text), GATE.open_step(&text), GATE.open_sign_in(&text));
    let _ = (RegistrationResponse::from_json(bytes), AssertionResponse::from_json(bytes));
    let client_data = |kind: &str, challenge: &str| {
        let data =
            serde_json::json!({ "type": kind, "challenge": challenge, "origin": "https://example.org" });
        SecretBytes::new(data.to_string())
    };
    let asked = PasskeyChallenge::with_bytes([0; 32], Ceremony::Registration, 0);
    let made = RegistrationResponse {
        client_data: client_data("webauthn.create", &"A".repeat(43)),
        attestation_object: SecretBytes::new(bytes),
    };
    assert!(verify_registration(&party(), &asked, &made, "x", 0).is_err());
    let asked = PasskeyChallenge::with_bytes([0; 32], Ceremony::Assertion, 0);
    let used = AssertionResponse {
        credential_id: SecretBytes::new([1]),
        client_data: client_data("webauthn.get", &"A".repeat(43)),
        authenticator_data: SecretBytes::new(bytes),
        signature: SecretBytes::new(bytes),
        user_handle: None,
    };
    assert!(verify_assertion(&party(), &asked, &used, &[], 0).is_err());
    let mut client = ScramClient::new("ada", "x", false, &ChannelBindings::default()).unwrap();
    // A server that asks for many rounds is what makes a client work; they are bounded.
    if !text.contains("i=") {
        assert!(client.last(bytes).is_err());
    }
    assert!(client.check(bytes).is_err());
}

#[test]
fn what_is_too_long_is_refused_before_it_is_read() {
    let long = vec![b'a'; 1 << 20];
    for mechanism in SaslMechanism::ALL {
        let mut server = ServerExchange::begin(mechanism, ChannelBindings::default());
        assert!(server.start(Some(&long)).is_err(), "{mechanism:?}");
    }
    read_all(&long);
    let nested = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    read_all(&nested);
    let cbor = vec![0x81; 60_000];
    read_all(&cbor);
}

#[test]
fn what_the_grammars_of_sasl_do_not_allow_is_refused() {
    for (mechanism, message) in [
        (SaslMechanism::Plain, &b""[..]),
        (SaslMechanism::Plain, b"ada"),
        (SaslMechanism::Plain, b"\0ada"),
        (SaslMechanism::Plain, b"\0\0x"),
        (SaslMechanism::Plain, b"\0ada\0"),
        (SaslMechanism::Plain, b"\0ada\0x\0y"),
        (SaslMechanism::Plain, b"\0ada\0\xff"),
        (SaslMechanism::Plain, b"\0a\x07da\0x"),
        (SaslMechanism::ScramSha256, b"n,,n=ada"),
        (SaslMechanism::ScramSha256, b"n,,r=x,n=ada"),
        (SaslMechanism::ScramSha256, b"n,,n=,r=x"),
        (SaslMechanism::ScramSha256, b"n,,n=a=2cb,r=x"),
        (SaslMechanism::ScramSha256, b"n,,n=a=,r=x"),
        (SaslMechanism::ScramSha256, b"n,,n=ada,r="),
        (SaslMechanism::ScramSha256, b"n,,n=ada,r=\xc3\xa4"),
        (SaslMechanism::ScramSha256, b"n,,m=x,n=ada,r=x"),
        (SaslMechanism::ScramSha256, b"n,,n=ada,r=x,m=y"),
        (SaslMechanism::ScramSha256, b"n,,n=ada,r=x,1=y"),
        (SaslMechanism::ScramSha256, b"n,x,n=ada,r=x"),
        (SaslMechanism::ScramSha256, b"x,,n=ada,r=x"),
        (SaslMechanism::OauthBearer, b"n,,\x01\x01"),
        (SaslMechanism::OauthBearer, b"n,,\x01auth=Bearer x\x01"),
        (SaslMechanism::OauthBearer, b"n,,\x01auth=Basic x\x01\x01"),
        (SaslMechanism::OauthBearer, b"n,,\x01auth=Bearer \x01\x01"),
        (SaslMechanism::OauthBearer, b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01"),
        (SaslMechanism::OauthBearer, b"p=tls-exporter,,\x01auth=Bearer x\x01\x01"),
        (SaslMechanism::OauthBearer, b"n,,\x01auth=Bearer x\r\ny\x01\x01"),
        (SaslMechanism::Xoauth2, b"auth=Bearer x\x01\x01"),
        (SaslMechanism::Xoauth2, b"user=\xff\x01auth=Bearer x\x01\x01"),
    ] {
        let mut server = ServerExchange::begin(mechanism, ChannelBindings::default());
        let told = server.start(Some(message));
        let text = String::from_utf8_lossy(message);
        assert!(told.is_err(), "{mechanism:?} {text:?}: {told:?}");
    }
}

proptest! {
    #[test]
    fn nothing_panics_whatever_the_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_all(&bytes);
    }

    #[test]
    fn nothing_panics_where_bytes_are_nearly_right(
        place in 0_usize..400, byte in any::<u8>(), which in 0_usize..5,
    ) {
        let seeds: [&[u8]; 5] = [
            br#"{"version":1,"app_passwords":[],"passkeys":[],"links":[{"issuer":"a","subject":"b"}]}"#,
            b"eyJhbGciOiJFZERTQSIsImtpZCI6ImVkIn0.e30.AAAA",
            b"r=abc,s=AAAA,x=4096",
            b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x45AAAAA",
            br#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#,
        ];
        let mut bytes = seeds[which].to_vec();
        let length = bytes.len();
        bytes[place % length] = byte;
        read_all(&bytes);
    }
}

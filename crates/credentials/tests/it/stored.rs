//! The record: what is written is read back, versions and limits, and nothing of it in a log.

use scrinium_credentials::{
    Decision, Gate, GateOptions, Proof, Protocol, ProviderLink, Standing, StoredCredentials, StoredError,
};

use crate::passkeys::Device;
use crate::people::{ADA_STORED, GATE, NOW_MS, PASSWORD, ROUNDS, ada, everywhere, question};
use crate::second_factors::{scram_proof, with_totp};

fn everything() -> (StoredCredentials, Vec<String>) {
    let mut stored = StoredCredentials::default();
    stored.set_password(PASSWORD, Some(ROUNDS), NOW_MS).unwrap();
    let app = stored.create_app_password(everywhere("phone"), Some(ROUNDS), NOW_MS).unwrap().show();
    let (code, recovery) = with_totp(&mut stored);
    stored.add_passkey(Device::new().register()).unwrap();
    stored.passkey_handle().unwrap();
    stored.link(ProviderLink { issuer: "https://id.example.org".into(), subject: "42".into() });
    let secret = stored.totp().unwrap().secret_text();
    (stored, vec![PASSWORD.to_owned(), app, code, recovery, secret])
}

#[test]
fn what_is_written_is_read_back_and_no_secret_is_in_it_or_shown() {
    let (stored, secrets) = everything();
    let record = stored.to_bytes().unwrap();
    assert_eq!(StoredCredentials::from_bytes(&record).unwrap(), stored);
    let (text, shown) = (String::from_utf8(record).unwrap(), format!("{stored:?}"));
    for secret in &secrets {
        assert!(!text.contains(secret.as_str()), "the record holds {secret}");
        assert!(!shown.contains(secret.as_str()), "a log would show {secret}");
    }
    // Nor a hash, nor a key.
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let phc = json["password"]["hash"].as_str().unwrap();
    assert!(phc.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && !shown.contains(phc));
    assert!(!shown.contains(json["password"]["scram"]["stored_key"].as_str().unwrap()));
}

/// Version 1 as it was first written; a server reads it for ever.
const GOLDEN: &str = r#"{"version":1,
"password":{"hash":"$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQxMjM0NTY3OA$zBsAqWTVB0PMyRtULNMvSwPNA2Xy8/y0vzyGdvvn7Lo","prepared":false},
"app_passwords":[{"id":"k3f9","name":"phone","scope":["submission","imap","a protocol of later"],"created_ms":1,"used_ms":2,
"revoked_ms":3,"hash":"AAAA"}],
"totp":{"secret":"MTIzNDU2Nzg5MDEyMzQ1Njc4OTA","hash":"sha1","digits":6,"confirmed":true,"last_step":7},
"recovery":{"salt":"AAAA","hashes":["AAAA",null]},
"passkeys":[{"id":"AQ","name":"key","key":{"kind":"ed25519","key":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},"sign_count":3,
"is_syncable":true,"is_synced":false,"created_ms":1}],
"links":[{"issuer":"https://id.example.org","subject":"42"}]}"#;

#[test]
fn a_record_of_the_first_version_is_read() {
    let stored = StoredCredentials::from_bytes(GOLDEN.as_bytes()).unwrap();
    assert!(stored.password().unwrap().is_outdated(false));
    let app = stored.app_password("k3f9").unwrap();
    assert!(app.scope.has(Protocol::Imap) && !app.scope.has(Protocol::Http) && app.revoked_ms == Some(3));
    assert_eq!((stored.recovery().unwrap().left(), stored.passkeys().len(), stored.links().len()), (1, 1, 1));
    assert_eq!(stored.totp().unwrap().secret_text(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
}

#[test]
fn a_record_of_a_newer_server_or_beyond_the_limits_is_not_read() {
    let change = |path: &str, value: serde_json::Value| {
        let mut record: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
        *record.pointer_mut(path).unwrap() = value;
        StoredCredentials::from_bytes(record.to_string().as_bytes()).unwrap_err()
    };
    assert!(matches!(change("/version", 2.into()), StoredError::Version(2)));
    assert!(matches!(change("/version", "1".into()), StoredError::Version(0)));
    let dear =
        "$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQxMjM0NTY3OA$zBsAqWTVB0PMyRtULNMvSwPNA2Xy8/y0vzyGdvvn7Lo";
    assert!(matches!(change("/password/hash", dear.into()), StoredError::Limits(_)));
    assert!(matches!(change("/password/hash", "secret".into()), StoredError::Limits(_)));
    let one = serde_json::from_str::<serde_json::Value>(GOLDEN).unwrap()["passkeys"][0].clone();
    assert!(matches!(change("/passkeys", vec![one; 17].into()), StoredError::Limits(_)));
    let twice = serde_json::from_str::<serde_json::Value>(GOLDEN).unwrap()["app_passwords"][0].clone();
    assert!(matches!(change("/app_passwords", vec![twice; 2].into()), StoredError::Form(_)));
    assert!(matches!(change("/passkeys/0/key/key", "AA".into()), StoredError::Limits(_)));
    assert!(matches!(change("/links", 1.into()), StoredError::Form(_)));
    let unknown = GOLDEN.replacen("\"links\"", "\"later\":1,\"links\"", 1);
    assert!(matches!(StoredCredentials::from_bytes(unknown.as_bytes()), Err(StoredError::Form(_))));
    assert!(StoredCredentials::from_bytes(&vec![b' '; 300 * 1024]).is_err());
}

#[test]
fn a_password_that_was_taken_over_is_renewed_when_it_is_seen() {
    let phc = {
        let bytes = ADA_STORED.0.to_bytes().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        json["password"]["hash"].as_str().unwrap().to_owned()
    };
    let mut stored = StoredCredentials::default();
    stored.take_over_password(&phc).unwrap();
    let decide = |stored: &StoredCredentials| {
        let person = Some(ada(stored, Standing::default()));
        GATE.decide(&question(Protocol::Imap, person, Proof::Password(PASSWORD)))
    };
    let Decision::Admitted(admission) = decide(&stored) else { panic!("it is right") };
    assert!(admission.is_outdated, "SCRAM has no keys yet");
    let scram = |stored: &StoredCredentials| {
        let person = ada(stored, Standing::default());
        let proof = scram_proof(&person, PASSWORD, Protocol::Imap);
        GATE.decide(&question(Protocol::Imap, Some(person), Proof::Scram(&proof))).is_admitted()
    };
    assert!(!scram(&stored));
    stored.set_password(PASSWORD, Some(ROUNDS), NOW_MS).unwrap();
    let Decision::Admitted(admission) = decide(&stored) else { panic!("it is right") };
    assert!(!admission.is_outdated && scram(&stored));
    // A server without SCRAM does not renew it at each log-in for keys that it does not want.
    let without = Gate::new(b"a secret of tests", GateOptions { scram_iterations: None }).unwrap();
    stored.set_password(PASSWORD, without.scram_iterations(), NOW_MS).unwrap();
    let person = Some(ada(&stored, Standing::default()));
    let Decision::Admitted(admission) =
        without.decide(&question(Protocol::Imap, person, Proof::Password(PASSWORD)))
    else {
        panic!("it is right")
    };
    assert!(!admission.is_outdated && !scram(&stored));
    for wrong in ["", "$argon2i$v=19$m=64,t=1,p=1$c29tZXNhbHQ$AAAA", "$2b$12$abc", &"x".repeat(600)] {
        assert!(stored.take_over_password(wrong).is_err());
    }
}

#[test]
fn app_passwords_go_on_with_scram_when_the_password_changes() {
    let mut stored = StoredCredentials::default();
    stored.set_password(PASSWORD, Some(ROUNDS), NOW_MS).unwrap();
    let app = stored.create_app_password(everywhere("phone"), Some(ROUNDS), NOW_MS).unwrap();
    stored.set_password("another one", Some(ROUNDS), NOW_MS).unwrap();
    let scram = |stored: &StoredCredentials, password: &str| {
        let person = ada(stored, Standing::default());
        let proof = scram_proof(&person, password, Protocol::Imap);
        GATE.decide(&question(Protocol::Imap, Some(person), Proof::Scram(&proof))).is_admitted()
    };
    assert!(scram(&stored, &app.show()) && scram(&stored, "another one") && !scram(&stored, PASSWORD));
    stored.revoke_app_password(app.id(), NOW_MS).unwrap();
    assert!(!scram(&stored, &app.show()));
    stored.remove_password();
    assert!(!scram(&stored, "another one"));
}

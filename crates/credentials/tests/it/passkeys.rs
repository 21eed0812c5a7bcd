//! Passkeys: the vectors of the standard, a device of our own with each algorithm, and answers that are not as they should be.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use scrinium_credentials::passkey::{
    AssertionResponse, CHALLENGE_MS, Ceremony, Passkey, PasskeyChallenge, PasskeyError, PasskeyProof,
    RegistrationResponse, RelyingParty, creation_options, request_options, verify_assertion,
    verify_registration,
};
use scrinium_credentials::{
    ChangeError, Decision, Proof, Protocol, SecretBytes, Standing, StoredCredentials,
};

use crate::people::{GATE, NOW_MS, ada, question};

fn party() -> RelyingParty {
    let (id, name) = ("example.org".to_owned(), "Example".to_owned());
    RelyingParty { id, name, origins: vec!["https://example.org".to_owned()] }
}

enum Key {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

/// An authenticator, as a test has it.
pub(crate) struct Device {
    key: Key,
    count: u32,
    id: Vec<u8>,
}

/// What is not as it should be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    Origin(&'static str),
    CrossOrigin,
    Party,
    Type,
    NotPresent,
    Challenge,
    Signature,
    Count,
    Trailing,
    BackedUp,
}

const PRESENT: u8 = 1;
const VERIFIED: u8 = 4;

fn bytes(value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap().to_be_bytes();
    [&[0x59][..], &length, value].concat()
}

impl Device {
    pub(crate) fn new() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random).unwrap();
        Self { key: Key::P256(pair), count: 0, id: vec![5; 16] }
    }

    fn ed25519() -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[3; 32]).unwrap();
        Self { key: Key::Ed25519(pair), count: 0, id: vec![6; 16] }
    }

    fn rsa() -> Self {
        Self { key: Key::Rsa(crate::tokens::rsa_pair()), count: 0, id: vec![7; 16] }
    }

    /// The COSE key, in the order of CTAP2.
    fn cose(&self) -> Vec<u8> {
        match &self.key {
            Key::P256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                [&[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32][..], x, &[0x22, 0x58, 32], y].concat()
            }
            Key::Ed25519(pair) => {
                [&[0xa4, 1, 1, 3, 0x27, 0x20, 6, 0x21, 0x58, 32][..], pair.public_key().as_ref()].concat()
            }
            Key::Rsa(pair) => {
                let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
                let head = [0xa4, 1, 3, 3, 0x39, 1, 0, 0x20];
                [&head[..], &bytes(&public.n), &[0x21], &bytes(&public.e)].concat()
            }
        }
    }

    fn signature(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.key {
            Key::P256(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Key::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            Key::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }

    fn client_data(kind: &str, challenge: &[u8; 32], wrong: Wrong) -> Vec<u8> {
        let kind = if wrong == Wrong::Type { "payment.get" } else { kind };
        let origin = if let Wrong::Origin(origin) = wrong { origin } else { "https://example.org" };
        let challenge = if wrong == Wrong::Challenge { [0; 32] } else { *challenge };
        let challenge = URL_SAFE_NO_PAD.encode(challenge);
        let cross = wrong == Wrong::CrossOrigin;
        serde_json::json!({ "type": kind, "challenge": challenge, "origin": origin, "crossOrigin": cross, "other": {} })
            .to_string()
            .into_bytes()
    }

    fn data(&self, flags: u8, wrong: Wrong, credential: &[u8]) -> Vec<u8> {
        let party = if wrong == Wrong::Party { "example.com" } else { "example.org" };
        let flags = if wrong == Wrong::NotPresent { flags & !PRESENT } else { flags };
        let flags = if wrong == Wrong::BackedUp { flags | 0x18 } else { flags };
        let end: &[u8] = if wrong == Wrong::Trailing { &[0] } else { &[] };
        let party = digest(&SHA256, party.as_bytes());
        [party.as_ref(), &[flags], &self.count.to_be_bytes(), credential, end].concat()
    }

    fn registration(&self, challenge: &[u8; 32], wrong: Wrong, statement: &[u8]) -> RegistrationResponse {
        let length = u16::try_from(self.id.len()).unwrap().to_be_bytes();
        let credential = [&[0; 16][..], &length, &self.id, &self.cose()].concat();
        let data = self.data(PRESENT | VERIFIED | 0x40, wrong, &credential);
        let object = [&[0xa3][..], statement, b"\x68authData", &bytes(&data)].concat();
        RegistrationResponse {
            client_data: SecretBytes::new(Self::client_data("webauthn.create", challenge, wrong)),
            attestation_object: SecretBytes::new(object),
        }
    }

    fn assertion(&mut self, challenge: &[u8; 32], flags: u8, wrong: Wrong) -> AssertionResponse {
        if wrong != Wrong::Count {
            self.count += 1;
        }
        let client_data = Self::client_data("webauthn.get", challenge, wrong);
        let data = self.data(flags, wrong, &[]);
        let mut signature = self.signature(&[&data[..], digest(&SHA256, &client_data).as_ref()].concat());
        if wrong == Wrong::Signature {
            *signature.last_mut().unwrap() ^= 1;
        }
        AssertionResponse {
            credential_id: SecretBytes::new(self.id.clone()),
            client_data: SecretBytes::new(client_data),
            authenticator_data: SecretBytes::new(data),
            signature: SecretBytes::new(signature),
            user_handle: None,
        }
    }

    /// A passkey of this device.
    pub(crate) fn register(&self) -> Passkey {
        let challenge = PasskeyChallenge::with_bytes([1; 32], Ceremony::Registration, NOW_MS);
        verify_registration(
            &party(),
            &challenge,
            &self.registration(&[1; 32], Wrong::Nothing, NONE),
            "key",
            NOW_MS,
        )
        .unwrap()
    }

    /// The use of it.
    pub(crate) fn sign(&mut self, known: &[Passkey], is_verified: bool) -> PasskeyProof {
        let flags = PRESENT | if is_verified { VERIFIED } else { 0 };
        self.check(known, flags, Wrong::Nothing).unwrap()
    }

    fn check(&mut self, known: &[Passkey], flags: u8, wrong: Wrong) -> Result<PasskeyProof, PasskeyError> {
        let challenge = PasskeyChallenge::with_bytes([2; 32], Ceremony::Assertion, NOW_MS);
        let response = self.assertion(&[2; 32], flags, wrong);
        verify_assertion(&party(), &challenge, &response, known, NOW_MS)
    }
}

/// `"fmt": "none", "attStmt": {}`
const NONE: &[u8] = b"\x63fmt\x64none\x67attStmt\xa0";

#[test]
fn the_vectors_of_the_standard_are_accepted() {
    // WebAuthn Level 3, section 16.2: ES256 without attestation.
    let hex = |text: &str| {
        SecretBytes::new(HEXLOWER.decode(text.replace(char::is_whitespace, "").as_bytes()).unwrap())
    };
    let challenge = |text: &str, ceremony| {
        let bytes = <[u8; 32]>::try_from(hex(text).expose()).unwrap();
        PasskeyChallenge::with_bytes(bytes, ceremony, NOW_MS)
    };
    let made = RegistrationResponse {
        client_data: hex(
            "7b2274797065223a22776562617574686e2e637265617465222c226368616c6c656e6765223a22414d4d5074345578784754537
             46e63647134313759447742466938767049612d7077386f4f755657345441222c226f726967696e223a2268747470733a2f2f65
             78616d706c652e6f7267222c2263726f73734f726967696e223a66616c73652c22657874726144617461223a22636c69656e744
             46174614a534f4e206d617920626520657874656e6465642077697468206164646974696f6e616c206669656c647320696e2074
             6865206675747572652c207375636820617320746869733a20426b5165446a646354427258426941774a544c453551227d",
        ),
        attestation_object: hex(
            "a363666d74646e6f6e656761747453746d74a068617574684461746158a4bfabc37432958b063360d3ad6461c9c4735ae7f8edd
             46592a5e0f01452b2e4b559000000008446ccb9ab1db374750b2367ff6f3a1f0020f91f391db4c9b2fde0ea70189cba3fb63f57
             9ba6122b33ad94ff3ec330084be4a5010203262001215820afefa16f97ca9b2d23eb86ccb64098d20db90856062eb249c33a9b6
             72f26df61225820930a56b87a2fca66334b03458abf879717c12cc68ed73290af2e2664796b9220",
        ),
    };
    let asked =
        challenge("00c30fb78531c464d2b6771dab8d7b603c01162f2fa486bea70f283ae556e130", Ceremony::Registration);
    let passkey = verify_registration(&party(), &asked, &made, "vector", NOW_MS).unwrap();
    let used = AssertionResponse {
        credential_id: hex("f91f391db4c9b2fde0ea70189cba3fb63f579ba6122b33ad94ff3ec330084be4"),
        authenticator_data: hex("bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b51900000000"),
        client_data: hex(
            "7b2274797065223a22776562617574686e2e676574222c226368616c6c656e6765223a224f63446e55685158756c5455506f334
             a5558543049393770767a7a59425039745a63685879617630314167222c226f726967696e223a2268747470733a2f2f6578616d
             706c652e6f7267222c2263726f73734f726967696e223a66616c73657d",
        ),
        signature: hex(
            "3046022100f50a4e2e4409249c4a853ba361282f09841df4dd4547a13a87780218deffcd380221008480ac0f0b93538174f575b
             f11a1dd5d78c6e486013f937295ea13653e331e87",
        ),
        user_handle: None,
    };
    assert!(passkey.id == used.credential_id && passkey.is_syncable && passkey.is_synced);
    let asked =
        challenge("39c0e7521417ba54d43e8dc95174f423dee9bf3cd804ff6d65c857c9abf4d408", Ceremony::Assertion);
    let proof = verify_assertion(&party(), &asked, &used, std::slice::from_ref(&passkey), NOW_MS).unwrap();
    assert!(!proof.user_verified());
    let late = verify_assertion(&party(), &asked, &used, &[passkey], NOW_MS + CHALLENGE_MS);
    assert_eq!(late, Err(PasskeyError::Challenge));
}

#[test]
fn each_algorithm_is_registered_and_used_as_browsers_write_it() {
    for mut device in [Device::new(), Device::ed25519(), Device::rsa()] {
        let encode = |part: &SecretBytes| URL_SAFE_NO_PAD.encode(part.expose());
        let made = device.registration(&[1; 32], Wrong::Nothing, NONE);
        let id = URL_SAFE_NO_PAD.encode(&device.id);
        let json = serde_json::json!({
            "id": id, "rawId": id, "type": "public-key", "clientExtensionResults": {},
            "response": {
                "clientDataJSON": encode(&made.client_data),
                "attestationObject": encode(&made.attestation_object),
                "transports": ["internal"],
            },
        });
        let made = RegistrationResponse::from_json(json.to_string().as_bytes()).unwrap();
        let asked = PasskeyChallenge::with_bytes([1; 32], Ceremony::Registration, NOW_MS);
        let passkey = verify_registration(&party(), &asked, &made, "key\n", NOW_MS).unwrap();
        assert_eq!((passkey.name.as_str(), passkey.id.expose()), ("key", device.id.as_slice()));
        let used = device.assertion(&[2; 32], PRESENT | VERIFIED, Wrong::Nothing);
        let json = serde_json::json!({
            "id": id, "rawId": id, "type": "public-key", "clientExtensionResults": {},
            "response": {
                "clientDataJSON": encode(&used.client_data),
                "authenticatorData": encode(&used.authenticator_data),
                "signature": encode(&used.signature),
                "userHandle": null,
            },
        });
        let used = AssertionResponse::from_json(json.to_string().as_bytes()).unwrap();
        let asked = PasskeyChallenge::with_bytes([2; 32], Ceremony::Assertion, NOW_MS);
        assert!(
            verify_assertion(&party(), &asked, &used, std::slice::from_ref(&passkey), NOW_MS)
                .unwrap()
                .user_verified()
        );
        // What is stored is read back, and verifies still.
        let mut stored = StoredCredentials::default();
        stored.add_passkey(passkey.clone()).unwrap();
        assert_eq!(stored.add_passkey(passkey), Err(PasskeyError::Known));
        let stored = StoredCredentials::from_bytes(&stored.to_bytes().unwrap()).unwrap();
        assert!(verify_assertion(&party(), &asked, &used, stored.passkeys(), NOW_MS).is_ok());
    }
}

#[test]
fn an_answer_that_is_not_as_it_should_be_is_refused() {
    let mut device = Device::new();
    let known = [device.register()];
    device.sign(&known, true);
    for (wrong, error) in [
        (Wrong::Origin("http://example.org"), PasskeyError::Origin),
        (Wrong::Origin("https://example.org.evil.net"), PasskeyError::Origin),
        (Wrong::Origin("https://evil.example.org"), PasskeyError::Origin),
        (Wrong::Origin("https://example.org:8443"), PasskeyError::Origin),
        (Wrong::CrossOrigin, PasskeyError::Origin),
        (Wrong::Party, PasskeyError::Party),
        (Wrong::Type, PasskeyError::Ceremony),
        (Wrong::NotPresent, PasskeyError::NotPresent),
        (Wrong::Challenge, PasskeyError::Challenge),
    ] {
        assert_eq!(device.check(&known, PRESENT, wrong), Err(error));
        let asked = PasskeyChallenge::with_bytes([1; 32], Ceremony::Registration, NOW_MS);
        let made =
            verify_registration(&party(), &asked, &device.registration(&[1; 32], wrong, NONE), "key", NOW_MS);
        assert_eq!(made.err(), Some(error));
    }
    assert_eq!(device.check(&known, PRESENT, Wrong::Signature), Err(PasskeyError::Signature));
    assert_eq!(device.check(&known, PRESENT, Wrong::Trailing), Err(PasskeyError::Malformed));
    assert_eq!(
        device.check(&known, PRESENT, Wrong::BackedUp),
        Err(PasskeyError::Copied),
        "it could not be copied"
    );
    assert_eq!(device.check(&known, PRESENT | 0x10, Wrong::Nothing), Err(PasskeyError::Malformed));
    assert_eq!(device.check(&[], PRESENT, Wrong::Nothing), Err(PasskeyError::Unknown));
    // An assertion does not answer a registration, nor is a challenge for one good for the other.
    let asked = PasskeyChallenge::with_bytes([2; 32], Ceremony::Registration, NOW_MS);
    let used = device.assertion(&[2; 32], PRESENT, Wrong::Nothing);
    assert_eq!(verify_assertion(&party(), &asked, &used, &known, NOW_MS), Err(PasskeyError::Ceremony));
}

#[test]
fn a_copied_passkey_is_noticed_by_its_counter() {
    let mut device = Device::new();
    let mut stored = StoredCredentials::default();
    stored.add_passkey(device.register()).unwrap();
    let mut copy = Device { count: 0, ..Device::new() };
    let proof = device.sign(stored.passkeys(), true);
    let person = Some(ada(&stored, Standing::default()));
    let Decision::Admitted(admission) =
        GATE.decide(&question(Protocol::Browser, person, Proof::Passkey(&proof)))
    else {
        panic!("it is hers")
    };
    assert!(admission.has_second_factor && admission.changes[0].must_be_stored_first());
    stored.apply(&admission.changes[0]).unwrap();
    assert_eq!(
        stored.apply(&admission.changes[0]),
        Err(ChangeError::AlreadyUsed),
        "two log-ins with one signature"
    );
    std::mem::swap(&mut copy.key, &mut device.key);
    assert_eq!(copy.check(stored.passkeys(), PRESENT, Wrong::Nothing), Err(PasskeyError::Copied));
}

#[test]
fn what_an_authenticator_says_of_itself_is_not_believed_and_not_needed() {
    let device = Device::new();
    let asked = PasskeyChallenge::with_bytes([1; 32], Ceremony::Registration, NOW_MS);
    let make = |statement: &[u8]| {
        verify_registration(
            &party(),
            &asked,
            &device.registration(&[1; 32], Wrong::Nothing, statement),
            "key",
            NOW_MS,
        )
    };
    // `"fmt": "packed", "attStmt": {"alg": -7, "sig": h'00'}`
    assert!(make(b"\x63fmt\x66packed\x67attStmt\xa2\x63alg\x26\x63sig\x41\x00").is_ok());
    // `none` with a statement, no statement, a format twice, values too deep.
    assert!(make(b"\x63fmt\x64none\x67attStmt\xa1\x63alg\x26").is_err());
    assert!(make(b"\x63fmt\x64none\x63foo\xa0").is_err());
    assert!(make(b"\x63fmt\x64none\x63fmt\x64none").is_err());
    let deep = [&b"\x63fmt\x66packed\x67attStmt"[..], &[0x81; 200], &[0]].concat();
    assert!(make(&deep).is_err());
    let long = [&b"\x63fmt\x66packed\x67attStmt"[..], b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff"].concat();
    assert!(make(&long).is_err(), "a length that nothing follows");
}

#[test]
fn options_are_what_browsers_read() {
    let challenge = PasskeyChallenge::make(Ceremony::Registration, NOW_MS).unwrap();
    let known = [Device::new().register()];
    let made = creation_options(&party(), &challenge, &[9; 32], "ada", "Ada", &known);
    assert_eq!(made["attestation"], "none");
    assert_eq!(made["rp"]["id"], "example.org");
    assert_eq!(made["pubKeyCredParams"][0]["alg"], -7);
    assert_eq!(made["excludeCredentials"][0]["id"], URL_SAFE_NO_PAD.encode([5; 16]));
    let asked = request_options(&party(), &challenge, &[]);
    assert_eq!(
        (asked["userVerification"].as_str(), asked["rpId"].as_str()),
        (Some("required"), Some("example.org"))
    );
}

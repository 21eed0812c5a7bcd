//! An authenticator of passkeys, as a browser and a security key make one together.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

const PRESENT: u8 = 1;
const VERIFIED: u8 = 4;
const ATTESTED: u8 = 0x40;

pub struct Device {
    pair: EcdsaKeyPair,
    party: &'static str,
    handle: Value,
    count: u32,
}

impl Device {
    const ID: [u8; 16] = [5; 16];

    /// One that is asked to make a passkey.
    pub fn new(party: &'static str, options: &Value) -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random).unwrap();
        Self { pair, party, handle: options["user"]["id"].clone(), count: 0 }
    }

    fn client_data(kind: &str, origin: &str, options: &Value) -> Vec<u8> {
        json!({"type": kind, "challenge": options["challenge"], "origin": origin, "crossOrigin": false})
            .to_string()
            .into_bytes()
    }

    fn data(&self, flags: u8, credential: &[u8]) -> Vec<u8> {
        let party = digest(&SHA256, self.party.as_bytes());
        [party.as_ref(), &[flags], &self.count.to_be_bytes(), credential].concat()
    }

    fn answer(response: &Value) -> Value {
        let id = URL_SAFE_NO_PAD.encode(Self::ID);
        json!({"id": id, "rawId": id, "type": "public-key", "clientExtensionResults": {}, "response": response})
    }

    /// What `navigator.credentials.create` gives on a page of `origin`.
    pub fn register(&self, origin: &str, options: &Value) -> Value {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        // {1: 2, 3: -7, -1: 1, -2: x, -3: y}
        let key = [&[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32][..], x, &[0x22, 0x58, 32], y].concat();
        let credential = [&[0; 16][..], &[0, 16], &Self::ID, &key].concat();
        let data = self.data(PRESENT | VERIFIED | ATTESTED, &credential);
        let length = u8::try_from(data.len()).unwrap();
        let head = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58";
        let object = [&head[..], &[length], &data].concat();
        let client_data = Self::client_data("webauthn.create", origin, options);
        Self::answer(&json!({
            "clientDataJSON": URL_SAFE_NO_PAD.encode(client_data),
            "attestationObject": URL_SAFE_NO_PAD.encode(object),
        }))
    }

    /// What `navigator.credentials.get` gives there.
    pub fn sign(&mut self, origin: &str, options: &Value) -> Value {
        self.count += 1;
        let client_data = Self::client_data("webauthn.get", origin, options);
        let data = self.data(PRESENT | VERIFIED, &[]);
        let message = [&data[..], digest(&SHA256, &client_data).as_ref()].concat();
        let signature = self.pair.sign(&SystemRandom::new(), &message).unwrap();
        Self::answer(&json!({
            "clientDataJSON": URL_SAFE_NO_PAD.encode(client_data),
            "authenticatorData": URL_SAFE_NO_PAD.encode(data),
            "signature": URL_SAFE_NO_PAD.encode(signature.as_ref()),
            "userHandle": self.handle,
        }))
    }
}

//! Tokens of providers and of CouchDB's interface: the vectors of the standards, and tokens that lie.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use scrinium_credentials::token::{
    Algorithm, CouchRules, FactorRule, KeyCache, KeySet, NameClaim, TokenError, TokenRules, TokenUse,
    VerifiedToken, VerifyKey, sign_hmac, verify, verify_couch,
};
use serde_json::{Value, json};

use crate::people::NOW_MS;

const NOW_S: u64 = NOW_MS / 1000;
pub(crate) const ISSUER: &str = "https://id.example.org";

pub(crate) fn rsa_pair() -> RsaKeyPair {
    let text: String = include_str!("rsa_key.txt").split_whitespace().collect();
    RsaKeyPair::from_der(&STANDARD.decode(text).unwrap()).unwrap()
}

fn ed25519() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[4; 32]).unwrap()
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn signed(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let message = format!("{}.{}", part(header), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(message.as_bytes()));
    format!("{message}.{signature}")
}

/// A token of Ed25519.
pub(crate) fn token(claims: &Value) -> String {
    signed(&json!({ "alg": "EdDSA", "kid": "ed", "typ": "JWT" }), claims, |message| {
        ed25519().sign(message).as_ref().to_vec()
    })
}

fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn key_set_json() -> Vec<u8> {
    let rsa = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(rsa_pair().public());
    json!({ "keys": [
        { "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": encoded(ed25519().public_key().as_ref()) },
        { "kty": "RSA", "kid": "rsa", "use": "sig", "alg": "RS256", "n": encoded(&rsa.n), "e": encoded(&rsa.e) },
        { "kty": "RSA", "kid": "enc", "use": "enc", "n": encoded(&rsa.n), "e": encoded(&rsa.e) },
        { "kty": "oct", "kid": "secret", "k": encoded(&[1; 32]) },
        { "kty": "new", "kid": "future" },
        "nonsense",
    ] })
    .to_string()
    .into_bytes()
}

/// Read once: an RSA pair is checked for long before it is used.
pub(crate) fn keys() -> &'static KeySet {
    static KEYS: LazyLock<KeySet> = LazyLock::new(|| KeySet::parse(&key_set_json()).unwrap());
    &KEYS
}

fn rules(usage: TokenUse) -> TokenRules {
    let factor = FactorRule::Claimed(vec!["urn:strong".to_owned()]);
    TokenRules { issuer: ISSUER.to_owned(), usage, name: NameClaim::VerifiedEmail, factor }
}

fn identity() -> TokenRules {
    rules(TokenUse::Identity { client_id: "scrinium".to_owned(), nonce: "n-0S6".to_owned() })
}

fn access() -> TokenRules {
    rules(TokenUse::Access { audiences: vec!["https://mail.example.org".to_owned()] })
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "sub": "248289761001", "aud": "scrinium", "nonce": "n-0S6",
        "exp": NOW_S + 300, "iat": NOW_S, "email": "Ada@example.org", "email_verified": true,
    })
}

fn with(changes: &Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

/// A verified token that names somebody by their address.
pub(crate) fn token_of(email: &str, is_identity: bool, has_factor: bool) -> VerifiedToken {
    let amr = if has_factor { json!(["pwd", "mfa"]) } else { json!(["pwd"]) };
    let aud = if is_identity { "scrinium" } else { "https://mail.example.org" };
    let claims = with(&json!({ "email": email, "amr": amr, "aud": aud }));
    verify(&token(&claims), keys(), &if is_identity { identity() } else { access() }, NOW_S).unwrap()
}

#[test]
fn an_id_token_is_believed_if_everything_in_it_is_right() {
    let verified = verify(&token(&claims()), keys(), &identity(), NOW_S).unwrap();
    assert_eq!((verified.subject(), verified.name()), ("248289761001", Some("ada@example.org")));
    for (changes, error) in [
        (json!({ "iss": "https://id.example.org/" }), TokenError::Issuer),
        (json!({ "iss": null }), TokenError::Issuer),
        (json!({ "aud": "other" }), TokenError::Audience),
        (json!({ "aud": null }), TokenError::Audience),
        (json!({ "aud": ["scrinium", "other"] }), TokenError::Audience),
        (json!({ "aud": ["scrinium", "other"], "azp": "other" }), TokenError::Audience),
        (json!({ "azp": "other" }), TokenError::Audience),
        (json!({ "exp": NOW_S - 60 }), TokenError::Expired),
        (json!({ "exp": -1 }), TokenError::Claim("exp".to_owned())),
        (json!({ "exp": "never" }), TokenError::Claim("exp".to_owned())),
        (json!({ "exp": null }), TokenError::Claim("exp".to_owned())),
        (json!({ "nbf": NOW_S + 61 }), TokenError::NotYet),
        (json!({ "iat": NOW_S + 61 }), TokenError::NotYet),
        (json!({ "nonce": "another" }), TokenError::Nonce),
        (json!({ "nonce": null }), TokenError::Nonce),
        (json!({ "sub": "" }), TokenError::Claim("sub".to_owned())),
        (json!({ "sub": "s".repeat(256) }), TokenError::Claim("sub".to_owned())),
    ] {
        assert_eq!(verify(&token(&with(&changes)), keys(), &identity(), NOW_S), Err(error), "{changes}");
    }
    for changes in [
        json!({ "aud": ["scrinium", "other"], "azp": "scrinium" }),
        json!({ "exp": NOW_S - 59 }),
        json!({ "nbf": NOW_S + 60 }),
        json!({ "iat": (NOW_S as f64) + 0.5 }),
    ] {
        assert!(verify(&token(&with(&changes)), keys(), &identity(), NOW_S).is_ok(), "{changes}");
    }
    // An address that nobody has verified names nobody.
    let named = |changes: &Value| {
        verify(&token(&with(changes)), keys(), &identity(), NOW_S).unwrap().name().is_some()
    };
    assert!(!named(&json!({ "email_verified": false })) && !named(&json!({ "email_verified": "true" })));
    // An ID token is no access token, nor the other way.
    assert_eq!(verify(&token(&claims()), keys(), &access(), NOW_S), Err(TokenError::Audience));
    let of_access = with(&json!({ "aud": ["x", "https://mail.example.org"], "nonce": null }));
    assert!(verify(&token(&of_access), keys(), &access(), NOW_S).is_ok());
    assert_eq!(verify(&token(&of_access), keys(), &identity(), NOW_S), Err(TokenError::Audience));
    let of_page = with(&json!({ "aud": "https://mail.example.org", "at_hash": "77QmUPtjPfzWtF2AnpK9RQ" }));
    assert_eq!(verify(&token(&of_page), keys(), &access(), NOW_S), Err(TokenError::Type));
}

#[test]
fn a_token_cannot_choose_how_it_is_verified() {
    let sign = |message: &[u8]| ed25519().sign(message).as_ref().to_vec();
    let check = |token: &str| verify(token, keys(), &identity(), NOW_S).err();
    for (header, error) in [
        (json!({ "alg": "none", "kid": "ed" }), TokenError::Algorithm),
        (json!({ "alg": "None", "kid": "ed" }), TokenError::Algorithm),
        (json!({ "alg": "eddsa", "kid": "ed" }), TokenError::Algorithm),
        (json!({ "alg": "HS256", "kid": "ed" }), TokenError::Algorithm),
        (json!({ "alg": "RS256", "kid": "ed" }), TokenError::Algorithm),
        (json!({ "alg": "EdDSA", "kid": "other" }), TokenError::UnknownKey),
        (json!({ "alg": "EdDSA", "kid": "secret" }), TokenError::UnknownKey),
        (json!({ "alg": "EdDSA", "kid": "enc" }), TokenError::UnknownKey),
        (json!({ "alg": "EdDSA", "kid": "ed", "crit": ["b64"], "b64": false }), TokenError::Critical),
        (json!({ "alg": "EdDSA", "kid": "ed", "crit": [] }), TokenError::Critical),
        (json!({ "alg": "EdDSA", "kid": "ed", "typ": "logout+jwt" }), TokenError::Type),
        (json!({ "alg": "EdDSA", "kid": "ed", "typ": "at+jwt" }), TokenError::Type),
        (json!({ "kid": "ed" }), TokenError::Malformed),
        (json!([]), TokenError::Malformed),
    ] {
        assert_eq!(check(&signed(&header, &claims(), sign)), Some(error), "{header}");
    }
    // No `kid`: every key of the algorithm is tried.
    assert_eq!(check(&signed(&json!({ "alg": "EdDSA" }), &claims(), sign)), None);
    // The public key as the secret of an HMAC.
    let rsa = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(rsa_pair().public());
    assert_eq!(check(&sign_hmac(&rsa.n, Some("rsa"), &claims())), Some(TokenError::Algorithm));
    // Another key in the header, a signature that is cut off, a part too many, whitespace.
    let good = token(&claims());
    let (message, signature) = good.rsplit_once('.').unwrap();
    for forged in [
        format!("{message}."),
        format!("{message}.{}", &signature[..40]),
        format!("{good}.{signature}"),
        format!("{message}. {signature}"),
        format!("{message}.{signature}="),
        message.to_owned(),
        String::new(),
        "..".to_owned(),
    ] {
        assert!(matches!(check(&forged), Some(TokenError::Malformed | TokenError::Signature)), "{forged}");
    }
    assert_eq!(check(&"a".repeat(20_000)), Some(TokenError::TooLong));
}

#[test]
fn rsa_and_p256_sign_as_well() {
    let random = SystemRandom::new();
    let rsa = signed(&json!({ "alg": "RS256", "kid": "rsa" }), &claims(), |message| {
        let pair = rsa_pair();
        let mut signature = vec![0; pair.public().modulus_len()];
        pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
        signature
    });
    assert!(verify(&rsa, keys(), &identity(), NOW_S).is_ok());
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
    let set =
        json!({ "keys": [{ "kty": "EC", "crv": "P-256", "x": encoded(x), "y": encoded(y) }] }).to_string();
    let set = KeySet::parse(set.as_bytes()).unwrap();
    let header = json!({ "alg": "ES256" });
    let made = signed(&header, &claims(), |message| pair.sign(&random, message).unwrap().as_ref().to_vec());
    assert!(verify(&made, &set, &identity(), NOW_S).is_ok());
    assert_eq!(verify(&made, keys(), &identity(), NOW_S), Err(TokenError::Algorithm));
}

/// RFC 7515, appendices A.1 to A.3: the same payload by three algorithms.
#[test]
fn the_tokens_of_rfc_7515_are_verified() {
    const PAYLOAD: &str =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let modulus = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd\
        2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg\
        665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    let mut keys = KeySet::parse(
        json!({ "keys": [
            { "kty": "RSA", "n": modulus, "e": "AQAB" },
            { "kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
              "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0" },
        ] })
        .to_string()
        .as_bytes(),
    )
    .unwrap();
    let secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
    keys.add(None, VerifyKey::shared(&URL_SAFE_NO_PAD.decode(secret).unwrap()).unwrap());
    let rules =
        CouchRules { required: vec![("iss".to_owned(), Some("joe".to_owned()))], ..CouchRules::default() };
    for (header, signature) in [
        ("eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        (
            "eyJhbGciOiJSUzI1NiJ9",
            "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr\
             7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi\
             12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypG\
             lUPQGe77Rw",
        ),
        (
            "eyJhbGciOiJFUzI1NiJ9",
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
        ),
    ] {
        // It has no subject, which is asked for last: whatever was before is right.
        let token = format!("{header}.{PAYLOAD}.{signature}");
        let outcome = verify_couch(&token, &keys, &rules, 1_300_819_379);
        assert_eq!(outcome, Err(TokenError::Claim("sub".to_owned())), "{header}");
        assert_eq!(verify_couch(&token, &keys, &rules, 1_300_819_440), Err(TokenError::Expired));
    }
}

#[test]
fn couchdbs_tokens_name_somebody_and_their_roles() {
    let secret = [5; 32];
    let mut keys = KeySet::default();
    keys.add(Some("a".to_owned()), VerifyKey::shared(&secret).unwrap());
    assert!(VerifyKey::shared(&secret[1..]).is_none(), "RFC 7518, section 3.2");
    let rules = CouchRules::default();
    let check = |claims: &Value, rules: &CouchRules| {
        verify_couch(&sign_hmac(&secret, Some("a"), claims), &keys, rules, NOW_S)
    };
    let base = json!({ "sub": "ada", "exp": NOW_S + 10, "_couchdb.roles": ["_admin", "staff"], "realm": { "roles": ["x"] } });
    let told = check(&base, &rules).unwrap();
    assert_eq!((told.name.as_str(), told.roles.len()), ("ada", 2));
    let by_path = CouchRules { roles: "realm.roles".to_owned(), ..rules.clone() };
    assert_eq!(check(&base, &by_path).unwrap().roles, ["x"]);
    let refused = |claims: &Value| check(claims, &rules).unwrap_err();
    assert_eq!(refused(&json!({ "sub": "ada" })), TokenError::Claim("exp".to_owned()));
    assert_eq!(refused(&json!({ "sub": 1, "exp": NOW_S + 10 })), TokenError::Claim("sub".to_owned()));
    let wrong = json!({ "sub": "ada", "exp": NOW_S + 10, "_couchdb.roles": "_admin" });
    assert_eq!(refused(&wrong), TokenError::Claim("_couchdb.roles".to_owned()));
    let wrong = json!({ "sub": "ada", "exp": NOW_S + 10, "_couchdb.roles": [1] });
    assert_eq!(refused(&wrong), TokenError::Claim("_couchdb.roles".to_owned()));
    assert_eq!(refused(&json!({ "sub": "ada", "exp": NOW_S - 60 })), TokenError::Expired);
    // Not required, and still believed where they are there.
    let lax = CouchRules { required: Vec::new(), ..rules.clone() };
    assert!(check(&json!({ "sub": "ada" }), &lax).is_ok());
    assert_eq!(check(&json!({ "sub": "ada", "nbf": NOW_S + 100 }), &lax), Err(TokenError::NotYet));
}

#[test]
fn keys_in_pem_are_read_and_nothing_else_is() {
    for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ED25519] {
        let pair = rcgen::KeyPair::generate_for(algorithm).unwrap();
        let pem = pair.public_key_pem();
        let key = VerifyKey::from_pem(&pem).expect("it is read");
        assert!(
            key.is_for(Algorithm::Es256) != key.is_for(Algorithm::EdDsa) && !key.is_for(Algorithm::Hs256)
        );
        assert_eq!(VerifyKey::from_pem(&pem.replace("PUBLIC", "PRIVATE")), None);
        for cut in 0..pem.len() {
            let _ = VerifyKey::from_pem(&pem[..cut]);
        }
    }
    // RSA, as `openssl pkey -pubout` writes it: SubjectPublicKeyInfo around the pair's own DER.
    let inner = rsa_pair().public().as_ref().to_vec();
    let wrapped = |tag: u8, contents: &[u8]| {
        let length = u16::try_from(contents.len()).unwrap().to_be_bytes();
        [&[tag, 0x82][..], &length, contents].concat()
    };
    let algorithm = [0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
    let spki = wrapped(0x30, &[&algorithm[..], &wrapped(3, &[&[0], &inner[..]].concat())].concat());
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(spki));
    assert!(VerifyKey::from_pem(&pem).expect("it is read").is_for(Algorithm::Rs512));
}

#[test]
fn keys_are_fetched_again_when_they_rotate_but_no_stranger_makes_the_server_fetch() {
    let mut cache = KeyCache::default();
    assert!(cache.should_fetch(false, NOW_S), "there are none");
    assert!(!cache.should_fetch(true, NOW_S + 59), "that it fails is no reason to hurry");
    cache.take(&key_set_json(), NOW_S).unwrap();
    let fetched = (60..=3600).filter(|second| cache.should_fetch(true, NOW_S + second)).count();
    assert_eq!(fetched, 60, "once a minute, however many tokens name keys that are not there");
    assert!(!cache.should_fetch(false, NOW_S + 4000));
    assert!(cache.should_fetch(false, NOW_S + 24 * 3600), "a day later");
    assert!(cache.take(b"<html>", NOW_S).is_err());
    assert!(verify(&token(&claims()), cache.keys(), &identity(), NOW_S).is_ok(), "the keys from before stay");
    let many =
        json!({ "keys": vec![json!({ "kty": "OKP", "crv": "Ed25519", "x": encoded(&[1; 32]) }); 5_000] });
    assert_eq!(KeySet::parse(many.to_string().as_bytes()), Err(TokenError::TooLong));
}

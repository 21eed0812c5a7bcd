//! Any claims in a token whose signature is right, and any change of a token: what is let in says all that it must, and nothing
//! but the very token is.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_credentials::token::{
    CouchRules, FactorRule, KeySet, NameClaim, TokenRules, TokenUse, VerifyKey, claimed_issuer, sign_hmac,
    verify, verify_couch,
};
use serde_json::Value;

const SECRET: &[u8] = b"a secret of thirty-two bytes, or more";
const ISSUER: &str = "https://id.example.org";
const NOW_S: u64 = 1_790_000_000;

fn says(claims: &Value, name: &str, wanted: &str) -> bool {
    match &claims[name] {
        Value::String(one) => one == wanted,
        Value::Array(several) => several.iter().any(|one| one == wanted),
        _ => false,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut keys = KeySet::default();
    keys.add(Some("k".to_owned()), VerifyKey::shared(SECRET).unwrap());
    let rules = |usage| TokenRules {
        issuer: ISSUER.to_owned(),
        usage,
        name: NameClaim::VerifiedEmail,
        factor: FactorRule::Claimed(Vec::new()),
    };
    let access = rules(TokenUse::Access { audiences: vec!["mail".to_owned()] });
    let identity = rules(TokenUse::Identity { client_id: "mail".to_owned(), nonce: "n".to_owned() });
    // The first byte chooses what is changed of the token.
    let Some((choice, json)) = bytes.split_first() else { return };
    if let Ok(claims) = serde_json::from_slice::<Value>(json) {
        let token = sign_hmac(SECRET, Some("k"), &claims);
        for rules in [&access, &identity] {
            if let Ok(verified) = verify(&token, &keys, rules, NOW_S) {
                assert!(says(&claims, "iss", ISSUER) && says(&claims, "aud", "mail"));
                assert!(verified.expires_s() + 60 > NOW_S && !verified.subject().is_empty());
                assert!(verified.name().is_none() || claims["email_verified"] == true);
                assert_eq!(claimed_issuer(&token).as_deref(), Some(ISSUER));
                let place = usize::from(*choice) % token.len();
                let mut changed = token.clone().into_bytes();
                changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
                assert!(verify(&String::from_utf8(changed).unwrap(), &keys, rules, NOW_S).is_err());
            }
        }
        if let Ok(verified) = verify_couch(&token, &keys, &CouchRules::default(), NOW_S) {
            assert!(says(&claims, "sub", &verified.name) && verified.expires_s.is_some());
        }
    }
    let text = String::from_utf8_lossy(json);
    assert!(verify(&text, &keys, &access, NOW_S).is_err());
});

//! Signing in with a provider: what is sent and what is believed of what comes back.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use scrinium_credentials::oidc::{
    ClientAuthentication, OidcClient, OidcError, Provider, SignIn, id_token_of,
};
use scrinium_credentials::token::{FactorRule, NameClaim, TokenRules, verify};
use scrinium_credentials::{
    Decision, Method, Proof, Protocol, ProviderLink, SecretBytes, Standing, StoredCredentials,
};
use serde_json::json;

use crate::people::{GATE, NOW_MS, ada, question};
use crate::tokens::{ISSUER, keys, token};

const NOW_S: u64 = NOW_MS / 1000;

fn discovery() -> serde_json::Value {
    json!({
        "issuer": ISSUER,
        "authorization_endpoint": "https://id.example.org/authorize?tenant=1",
        "token_endpoint": "https://id.example.org/token",
        "jwks_uri": "https://id.example.org/keys",
        "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        "authorization_response_iss_parameter_supported": true,
    })
}

fn provider() -> Provider {
    Provider::parse(ISSUER, true, discovery().to_string().as_bytes()).unwrap()
}

fn client() -> OidcClient {
    OidcClient {
        client_id: "scrinium".to_owned(),
        secret: Some(SecretBytes::new(*b"s&cret:1")),
        redirect_uri: "https://mail.example.org/_oidc".to_owned(),
        scopes: vec!["email".to_owned()],
    }
}

fn query_of(url: &str) -> std::collections::BTreeMap<String, String> {
    let (_, query) = url.split_once('?').unwrap();
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

#[test]
fn a_sign_in_goes_its_way_and_lets_the_linked_person_in() {
    let (provider, client) = (provider(), client());
    let begun = SignIn::begin("/mail", NOW_S).unwrap();
    // The browser keeps it, sealed.
    let cookie = GATE.seal_sign_in(&begun).unwrap();
    let kept = GATE.open_sign_in(&cookie).unwrap();
    assert_eq!((&kept, kept.next()), (&begun, "/mail"));
    let sent = query_of(&begun.url(&provider, &client));
    assert_eq!((sent["tenant"].as_str(), sent["scope"].as_str()), ("1", "openid email"));
    assert_eq!((sent["response_type"].as_str(), sent["code_challenge_method"].as_str()), ("code", "S256"));
    let back = format!("code=a%2Fb&iss={}&state={}", ISSUER.replace(':', "%3A"), sent["state"]);
    let callback = kept.callback(&back, &provider, NOW_S + 10).unwrap();
    let request = kept.token_request(&callback, &provider, &client);
    assert_eq!(request.url, "https://id.example.org/token");
    // RFC 6749, section 2.3.1: both are encoded as in a form first.
    let basic = request.authorization.unwrap();
    assert_eq!(STANDARD.decode(basic.strip_prefix("Basic ").unwrap()).unwrap(), b"scrinium:s%26cret%3A1");
    let form = query_of(&format!("?{}", request.body));
    assert_eq!((form["code"].as_str(), form["grant_type"].as_str()), ("a/b", "authorization_code"));
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, form["code_verifier"].as_bytes()).as_ref());
    assert_eq!(challenge, sent["code_challenge"]);
    assert!((43..=128).contains(&form["code_verifier"].len()), "RFC 7636, section 4.1");
    // The provider's answer.
    let claims =
        json!({ "iss": ISSUER, "sub": "42", "aud": "scrinium", "exp": NOW_S + 60, "nonce": sent["nonce"] });
    let answer = json!({ "access_token": "x", "token_type": "Bearer", "id_token": token(&claims) });
    let id_token = id_token_of(answer.to_string().as_bytes()).unwrap();
    let rules = TokenRules {
        issuer: ISSUER.to_owned(),
        usage: kept.token_use(&client),
        name: NameClaim::Nothing,
        factor: FactorRule::Never,
    };
    let verified = verify(&id_token, keys(), &rules, NOW_S).unwrap();
    let mut stored = StoredCredentials::default();
    let decide = |stored: &StoredCredentials| {
        let person = Some(ada(stored, Standing::default()));
        GATE.decide(&question(Protocol::Browser, person, Proof::Token(&verified)))
    };
    assert!(!decide(&stored).is_admitted(), "nobody has linked it");
    assert!(stored.link(ProviderLink { issuer: ISSUER.to_owned(), subject: "43".to_owned() }));
    assert!(!decide(&stored).is_admitted(), "somebody else's account");
    assert!(stored.link(ProviderLink { issuer: ISSUER.to_owned(), subject: "42".to_owned() }));
    let Decision::Admitted(admission) = decide(&stored) else { panic!("it is linked") };
    assert_eq!(admission.method, Method::Token);
    // Another sign-in has another nonce.
    let other = TokenRules { usage: SignIn::begin("/", NOW_S).unwrap().token_use(&client), ..rules };
    assert!(verify(&id_token, keys(), &other, NOW_S).is_err());
}

#[test]
fn a_browser_that_comes_back_from_elsewhere_is_not_let_in() {
    let provider = provider();
    let begun = SignIn::begin("/", NOW_S).unwrap();
    let state = query_of(&begun.url(&provider, &client()))["state"].clone();
    let callback = |query: &str, now_s| begun.callback(query, &provider, now_s).err();
    let iss = "iss=https://id.example.org";
    assert_eq!(callback(&format!("code=x&{iss}&state={state}"), NOW_S), None);
    assert_eq!(callback(&format!("code=x&{iss}&state={state}x"), NOW_S), Some(OidcError::State));
    assert_eq!(callback(&format!("code=x&{iss}"), NOW_S), Some(OidcError::State));
    assert_eq!(callback(&format!("code=x&{iss}&state={state}"), NOW_S + 901), Some(OidcError::State));
    // Mix-up: the code is of another provider (RFC 9207).
    let other = callback(&format!("code=x&iss=https://evil.example&state={state}"), NOW_S);
    assert_eq!(other, Some(OidcError::Issuer("https://evil.example".to_owned())));
    assert!(matches!(callback(&format!("code=x&state={state}"), NOW_S), Some(OidcError::Malformed(_))));
    let twice = callback(&format!("code=x&code=y&{iss}&state={state}"), NOW_S);
    assert!(matches!(twice, Some(OidcError::Malformed(_))));
    let refused = callback(&format!("error=access_denied<script>&{iss}&state={state}"), NOW_S);
    assert_eq!(refused, Some(OidcError::Refused("access_deniedscript".to_owned())));
    assert!(matches!(callback(&format!("{iss}&state={state}"), NOW_S), Some(OidcError::Malformed(_))));
    assert!(matches!(callback(&"x".repeat(10_000), NOW_S), Some(OidcError::Malformed(_))));
    for answer in ["", "[]", "{}", r#"{"token_type":"mac","id_token":"x"}"#, r#"{"token_type":"bearer"}"#] {
        assert!(matches!(id_token_of(answer.as_bytes()), Err(OidcError::Malformed(_))), "{answer}");
    }
    assert_eq!(
        id_token_of(br#"{"error":"invalid_grant"}"#),
        Err(OidcError::Refused("invalid_grant".to_owned()))
    );
}

#[test]
fn nobody_is_sent_to_another_server_after_a_sign_in() {
    for (next, kept) in [
        ("/mail?x=1#y", "/mail?x=1#y"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example/", "/"),
        ("/a\r\nb", "/"),
        ("/\t/evil.example", "/"),
        ("mail", "/"),
        ("", "/"),
    ] {
        assert_eq!(SignIn::begin(next, NOW_S).unwrap().next(), kept);
    }
}

#[test]
fn a_provider_that_is_another_one_or_not_encrypted_is_refused() {
    let parse = |name: &str, value: &str| {
        let mut document = discovery();
        document[name] = value.into();
        Provider::parse(ISSUER, true, document.to_string().as_bytes())
    };
    assert_eq!(
        parse("issuer", "https://evil.example"),
        Err(OidcError::Issuer("https://evil.example".to_owned()))
    );
    for name in ["authorization_endpoint", "token_endpoint", "jwks_uri"] {
        for address in [
            "http://id.example.org/x",
            "ftp://id.example.org/x",
            "javascript:alert(1)",
            "https://",
            "https://id.example.org@evil.example/",
            "http://localhost.evil.example/",
            "https://id.example.org/\r\nX: y",
            "https://id.example.org/#x",
        ] {
            assert!(parse(name, address).is_err(), "{name} {address}");
        }
        assert!(parse(name, "http://127.0.0.1:8080/x").is_ok() && parse(name, "http://[::1]/x").is_ok());
    }
    assert_eq!(Provider::discovery_url("https://a/b/"), "https://a/b/.well-known/openid-configuration");
    let mut document = discovery();
    document["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
    let by_form = Provider::parse(ISSUER, true, document.to_string().as_bytes()).unwrap();
    assert_eq!(by_form.authentication, ClientAuthentication::Form);
    let public = Provider::parse(ISSUER, false, document.to_string().as_bytes()).unwrap();
    assert_eq!(public.authentication, ClientAuthentication::Public);
}

//! Exchanges as a mail port drives them: a client on one side, the people of the directory on the other.

use std::sync::Arc;
use std::time::Duration;

use scrinium_clock::Clock;
use scrinium_credentials::sasl::{
    ChannelBindings, ClientExchange, ClientSecret, ExchangeError, SaslMechanism, oauthbearer_response,
};
use scrinium_credentials::token::{
    FactorRule, KeySet, NameClaim, TokenRules, TokenUse, VerifyKey, sign_hmac, verify,
};
use scrinium_credentials::{HashedPassword, Protection, Protocol, ProtocolSet};
use scrinium_directory::{
    Approach, LoginError, Logins, NameIndex, SaslConnection, SaslError, SaslReply, TokenVerification,
    TokenVerifier,
};
use serde_json::json;

use crate::common::{address, document, logins, stored};
use crate::credentials::{NOW_MS, app};

const ISSUER: &str = "https://id.example.org";
const KEY: &[u8] = b"a key that nobody else has, of 32 bytes or more";

/// A provider whose keys are at hand.
struct Provider;

impl TokenVerifier for Provider {
    fn verify<'a>(&'a self, token: &'a str) -> TokenVerification<'a> {
        let mut keys = KeySet::default();
        keys.add(None, VerifyKey::shared(KEY).unwrap());
        let rules = TokenRules {
            issuer: ISSUER.to_owned(),
            usage: TokenUse::Access { audiences: vec!["mail".to_owned()] },
            name: NameClaim::VerifiedEmail,
            factor: FactorRule::Never,
        };
        Box::pin(std::future::ready(verify(token, &keys, &rules, NOW_MS / 1000)))
    }

    fn discovery_url(&self) -> Option<&str> {
        Some("https://id.example.org/.well-known/openid-configuration")
    }
}

pub(crate) fn token(email: &str) -> String {
    let claims = json!({"iss": ISSUER, "aud": "mail", "sub": "42", "email": email, "email_verified": true,
        "exp": NOW_MS / 1000 + 600});
    sign_hmac(KEY, None, &claims)
}

fn connection(protection: Protection) -> SaslConnection {
    let approach = Approach { protocol: Protocol::Imap, protection, address: address(1) };
    SaslConnection { approach, bindings: ChannelBindings::default() }
}

fn people() -> (Logins, String) {
    let index = Arc::new(NameIndex::new());
    let mut ada = stored(None);
    ada.put_password(HashedPassword::make("engine", None, Some(4096)).unwrap(), NOW_MS);
    let made = app(&mut ada, ProtocolSet::mail());
    index.apply_with("person:ada", Some(&document("ada")), Some(ada));
    index.apply_with("person:bob", Some(&document("bob")), Some(stored(Some("engine"))));
    (logins(index, Clock::manual(NOW_MS).clock(), Duration::from_hours(1)), made)
}

/// Lets a client and the server speak until it is decided.
async fn exchange(logins: &Logins, mechanism: SaslMechanism, name: &str, password: &str) -> SaslReply {
    let bindings = ChannelBindings::default();
    let secret = ClientSecret::Password(password);
    let mut client = ClientExchange::begin(&[mechanism], name, secret, true, &bindings).unwrap();
    let mut server = logins.begin_sasl(mechanism, connection(Protection::Protected), None);
    let mut reply = server.start(client.initial().as_deref()).await;
    for _ in 0..4 {
        match reply {
            SaslReply::Challenge(challenge) => {
                let response = client.respond(&challenge).unwrap();
                reply = server.respond(&response).await;
            }
            SaslReply::Accepted { data: Some(ref data), .. } => {
                client.respond(data).expect("the server has shown that it knows the password");
                return reply;
            }
            _ => return reply,
        }
    }
    panic!("the exchange does not end");
}

fn is_refused(reply: &SaslReply) -> bool {
    matches!(reply, SaslReply::Refused { error: SaslError::Login(LoginError::Refused), .. })
}

#[tokio::test(start_paused = true)]
async fn each_mechanism_lets_in_who_has_the_password_or_an_app_password() {
    let (logins, made) = people();
    for mechanism in [SaslMechanism::ScramSha256, SaslMechanism::Plain, SaslMechanism::Login] {
        for password in ["engine", made.as_str()] {
            let reply = exchange(&logins, mechanism, "ADA@example.org", password).await;
            let SaslReply::Accepted { login, .. } = reply else { panic!("{mechanism:?} {reply:?}") };
            assert_eq!(
                (login.person.id.as_str(), login.app_password.is_some()),
                ("person:ada", password != "engine")
            );
        }
        let nobody = exchange(&logins, mechanism, "eve", "engine").await;
        assert!(is_refused(&exchange(&logins, mechanism, "ada", "wrong").await) && is_refused(&nobody));
    }
}

#[tokio::test(start_paused = true)]
async fn scram_is_for_who_has_keys_and_guesses_are_counted() {
    let (logins, made) = people();
    // Bob has a hash that was taken over: SCRAM begins once the password was seen.
    assert!(is_refused(&exchange(&logins, SaslMechanism::ScramSha256, "bob", "engine").await));
    let mut tries = 0;
    loop {
        tries += 1;
        assert!(tries < 50, "passwords can be tried for ever");
        let reply = exchange(&logins, SaslMechanism::ScramSha256, "ada", &format!("guess {tries}")).await;
        if matches!(reply, SaslReply::Refused { error: SaslError::Login(LoginError::Locked { .. }), .. }) {
            break;
        }
    }
    // What nobody can guess goes on.
    let reply = exchange(&logins, SaslMechanism::ScramSha256, "ada", &made).await;
    assert!(matches!(reply, SaslReply::Accepted { .. }), "{reply:?}");
}

#[tokio::test(start_paused = true)]
async fn a_token_lets_in_whom_it_names_and_a_refusal_says_where_the_provider_is() {
    let (logins, _) = people();
    let speak = async |message: Vec<u8>| {
        let mechanism = SaslMechanism::OauthBearer;
        let mut server = logins.begin_sasl(mechanism, connection(Protection::Protected), Some(&Provider));
        server.start(Some(&message)).await
    };
    for name in ["ada", ""] {
        let reply = speak(oauthbearer_response(name, &token("ada@example.org"))).await;
        let SaslReply::Accepted { login, .. } = reply else { panic!("{reply:?}") };
        assert_eq!(login.person.id, "person:ada");
    }
    for message in [
        oauthbearer_response("bob", &token("ada@example.org")),
        oauthbearer_response("", &token("eve@example.org")),
        oauthbearer_response("ada", "no.token.here"),
    ] {
        let SaslReply::Refused { error: SaslError::Login(LoginError::Refused), data: Some(data) } =
            speak(message).await
        else {
            panic!("it is not hers")
        };
        assert!(String::from_utf8(data).unwrap().contains("openid-configuration"));
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_that_shows_a_secret_is_taken_over_an_open_connection() {
    let (logins, made) = people();
    let open = connection(Protection::Open);
    assert_eq!(logins.mechanisms(&open, true), [SaslMechanism::ScramSha256]);
    assert_eq!(logins.mechanisms(&connection(Protection::Protected), true).len(), 5);
    let mut server = logins.begin_sasl(SaslMechanism::Plain, open, None);
    let reply = server.start(Some(format!("\0ada\0{made}").as_bytes())).await;
    assert!(matches!(reply, SaslReply::Refused { error: SaslError::Login(LoginError::Denied(..)), .. }));
    let again = server.respond(b"x").await;
    assert!(matches!(again, SaslReply::Refused { error: SaslError::Exchange(ExchangeError::Order), .. }));
}

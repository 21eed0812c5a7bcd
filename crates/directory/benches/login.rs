//! Log-ins a second of 64 clients that each log in again and again, as mail clients do: with app passwords, by SCRAM-SHA-256,
//! and with tokens of a provider, next to passwords, whose argon2id is slow on purpose.
//!
//! A log-in is the whole exchange as a port drives it, of one of 64 people. No right password is remembered. Clients of SCRAM keep
//! their salted password (RFC 5802, section 5.1), so its stretching is not measured: servers do not do it. All four take
//! turns within one run.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use ring::{digest, hmac, pbkdf2};
use scrinium_accounting::{AccountOptions, Accounts};
use scrinium_bench::{Against, Line, report, setting};
use scrinium_credentials::sasl::{ChannelBindings, SaslMechanism, oauthbearer_response};
use scrinium_credentials::token::{FactorRule, KeySet, NameClaim, TokenRules, TokenUse, verify};
use scrinium_credentials::{
    GateOptions, HashedPassword, NewAppPassword, Protocol, ProtocolSet, StoredCredentials,
};
use scrinium_directory::{
    Approach, CredentialOptions, Credentials, HashingOptions, LoginAttempt, Logins, NameIndex,
    SaslConnection, SaslLogin, SaslReply, TokenVerification, TokenVerifier,
};
use scrinium_statistics::Registry;
use serde_json::{Value, json};

const CLIENTS: u32 = 64;
const ROUNDS: usize = 5;
const ISSUER: &str = "https://id.example.org";

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// A provider whose keys have been fetched.
struct Provider(KeySet, TokenRules);

impl TokenVerifier for Provider {
    fn verify<'a>(&'a self, token: &'a str) -> TokenVerification<'a> {
        Box::pin(std::future::ready(verify(token, &self.0, &self.1, now().as_secs())))
    }
}

/// The provider, and a token of it for each client.
fn provider() -> (Provider, Vec<String>) {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
    let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
    let keys = json!({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "x": x, "y": y}]});
    let keys = KeySet::parse(keys.to_string().as_bytes()).unwrap();
    let rules = TokenRules {
        issuer: ISSUER.to_owned(),
        usage: TokenUse::Access { audiences: vec!["mail".to_owned()] },
        name: NameClaim::PreferredUsername,
        factor: FactorRule::Never,
    };
    let token = |number: u32| {
        let claims = json!({"iss": ISSUER, "aud": "mail", "sub": number.to_string(),
            "preferred_username": name(number), "exp": now().as_secs() + 3600});
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encode(&json!({"alg": "ES256"})), encode(&claims));
        let signature = pair.sign(&random, message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    };
    (Provider(keys, rules), (0..CLIENTS).map(token).collect())
}

fn name(number: u32) -> String {
    format!("person{number}")
}

/// What one client has.
#[derive(Clone)]
struct Client {
    number: u32,
    password: String,
    app_password: String,
    token: String,
    salted_password: Option<Vec<u8>>,
}

#[derive(Clone, Copy)]
enum By {
    Password,
    AppPassword,
    Scram,
    Token,
}

fn people(tokens: Vec<String>) -> (Logins, Vec<Client>) {
    let index = Arc::new(NameIndex::new());
    let now_ms = u64::try_from(now().as_millis()).unwrap();
    let iterations = GateOptions::default().scram_iterations;
    let mut clients = Vec::new();
    for (number, token) in (0..CLIENTS).zip(tokens) {
        let password = format!("the password of {number}");
        let mut credentials = StoredCredentials::default();
        credentials.put_password(HashedPassword::make(&password, None, iterations).unwrap(), now_ms);
        let new = NewAppPassword { name: "phone", scope: ProtocolSet::mail(), expires_ms: None };
        let app_password = credentials.create_app_password(new, iterations, now_ms).unwrap().show();
        let id = format!("person:{}", name(number));
        let document =
            json!({"_id": id, "Form": "Person", "FullName": [name(number)], "ShortName": name(number)});
        index.apply_with(&id, document.as_object(), Some(credentials));
        clients.push(Client { number, password, app_password, token, salted_password: None });
    }
    let options = CredentialOptions { remember_for: Duration::ZERO, ..CredentialOptions::default() };
    let credentials = Credentials::new(index, &options).unwrap();
    let watch = Box::new(|_: &LoginAttempt<'_>| {});
    // All that wait find their place.
    let hashing = HashingOptions { waiting: 4 * CLIENTS as usize, ..HashingOptions::default() };
    let accounts = Accounts::new(AccountOptions::default());
    (Logins::new(credentials, accounts, hashing, (&Registry::new(), watch)).unwrap(), clients)
}

impl Client {
    /// Each comes from a network of its own.
    fn connection(&self) -> SaslConnection {
        let address = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0001 + self.number * 256));
        let approach = Approach::protected(Protocol::Imap, address);
        SaslConnection { approach, bindings: ChannelBindings::default() }
    }

    async fn log_in(&mut self, by: By, logins: &Logins, provider: &Provider) {
        let begin = |mechanism| logins.begin_sasl(mechanism, self.connection(), Some(provider));
        let name = name(self.number);
        let plain = |password: &str| format!("\0{name}\0{password}").into_bytes();
        let reply = match by {
            By::Password => begin(SaslMechanism::Plain).start(Some(&plain(&self.password))).await,
            By::AppPassword => begin(SaslMechanism::Plain).start(Some(&plain(&self.app_password))).await,
            By::Token => {
                let response = oauthbearer_response(&name, &self.token);
                begin(SaslMechanism::OauthBearer).start(Some(&response)).await
            }
            By::Scram => {
                let exchange = begin(SaslMechanism::ScramSha256);
                self.scram(exchange, &name).await
            }
        };
        let SaslReply::Accepted { login, .. } = reply else { panic!("{reply:?}") };
        assert_eq!(login.person.short_name, name);
    }

    /// RFC 5802, section 3.
    async fn scram(&mut self, mut exchange: SaslLogin<'_>, name: &str) -> SaslReply {
        let first = format!("n={name},r=abcdefghijklmnop");
        let SaslReply::Challenge(challenge) = exchange.start(Some(format!("n,,{first}").as_bytes())).await
        else {
            panic!("a challenge")
        };
        let challenge = String::from_utf8(challenge).unwrap();
        let part = |name: char| {
            challenge.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')).unwrap()
        };
        if self.salted_password.is_none() {
            let iterations = NonZeroU32::new(part('i').parse().unwrap()).unwrap();
            let salt = STANDARD.decode(part('s')).unwrap();
            let mut salted = vec![0; 32];
            pbkdf2::derive(
                pbkdf2::PBKDF2_HMAC_SHA256,
                iterations,
                &salt,
                self.password.as_bytes(),
                &mut salted,
            );
            self.salted_password = Some(salted);
        }
        let sign =
            |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes());
        let client_key = sign(self.salted_password.as_deref().unwrap(), "Client Key");
        let stored_key = digest::digest(&digest::SHA256, client_key.as_ref());
        let without_proof = format!("c=biws,r={}", part('r'));
        let signature = sign(stored_key.as_ref(), &format!("{first},{challenge},{without_proof}"));
        let proof: Vec<u8> =
            client_key.as_ref().iter().zip(signature.as_ref()).map(|(key, bits)| key ^ bits).collect();
        exchange.respond(format!("{without_proof},p={}", STANDARD.encode(proof)).as_bytes()).await
    }
}

/// Log-ins a second of all clients together, for about `seconds`.
async fn rate(
    by: By,
    seconds: f64,
    logins: &Arc<Logins>,
    (provider, clients): (&Arc<Provider>, &mut Vec<Client>),
) -> f64 {
    let began = Instant::now();
    let end = began + Duration::from_secs_f64(seconds);
    let tasks = clients.drain(..).map(|mut client| {
        let (logins, provider) = (Arc::clone(logins), Arc::clone(provider));
        tokio::spawn(async move {
            let mut number = 0_u64;
            while Instant::now() < end {
                client.log_in(by, &logins, &provider).await;
                number += 1;
                tokio::task::yield_now().await;
            }
            (client, number)
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut all = 0;
    for task in tasks {
        let (client, number) = task.await.unwrap();
        clients.push(client);
        all += number;
    }
    all as f64 / began.elapsed().as_secs_f64()
}

fn main() {
    let seconds = setting("SCRINIUM_SECONDS", 2.0_f64);
    let (provider, tokens) = provider();
    let (logins, mut clients) = people(tokens);
    let (logins, provider) = (Arc::new(logins), Arc::new(provider));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut rates: [Vec<f64>; 4] = Default::default();
    for round in 0..=ROUNDS {
        for (by, values) in [By::Password, By::AppPassword, By::Scram, By::Token].into_iter().zip(&mut rates)
        {
            let found = runtime.block_on(rate(by, seconds, &logins, (&provider, &mut clients)));
            // The first round stretches the passwords of SCRAM's clients.
            if round > 0 {
                values.push(found);
            }
        }
    }
    let [password, app_password, scram, token] = &rates;
    for (case, values) in [
        ("app password, 64 clients", app_password),
        ("SCRAM, 64 clients", scram),
        ("OIDC token, 64 clients", token),
    ] {
        report(&Line {
            name: "login",
            case,
            values,
            unit: "log-ins/s",
            against: Against::Measured("password, 64 clients", password),
        });
    }
}

//! Every credential by every protocol in every state, through the directory that ports ask.
//!
//! A letter says what comes out: `A` admitted, `2` a second step, `w` name or proof is wrong, `d` disabled, `e` expired,
//! `n` not by this protocol, `l` locked, `.` not offered. The columns are HTTP, browser, submission, IMAP, POP3, ManageSieve,
//! CalDAV, CardDAV, LDAP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use scrinium_accounting::{AccountOptions, Accounts, NetworkPrefixes};
use scrinium_clock::Clock;
use scrinium_credentials::sasl::{
    ChannelBindings, ClaimedProof, ClientExchange, ClientSecret, SaslMechanism, ScramProof, ServerExchange,
    Step,
};
use scrinium_credentials::token::{
    FactorRule, KeySet, NameClaim, TokenRules, TokenUse, VerifiedToken, VerifyKey, sign_hmac, verify,
};
use scrinium_credentials::{Answer, Candidate, NextStep, Proof, Protocol, ProtocolSet, SessionProof, Totp};
use scrinium_directory::{Approach, LoginError, Logins, NameIndex, Person};
use serde_json::json;

use crate::common::{address, document, logins_with, stored};
use crate::credentials::{NOW_MS, app, code_at, with_totp};

const GOOD: [(&str, &str); 12] = [
    ("password", "AAAAAAAAA"),
    ("wrong password", "wwwwwwwww"),
    ("app password", "A.AAAAAAA"),
    ("wrong app password", "w.wwwwwww"),
    ("app password for mail", "n.AAAAnnn"),
    ("SCRAM", "..AAAA..A"),
    ("SCRAM, app password", "..AAAA..A"),
    ("code", ".A......."),
    ("ID token", ".A......."),
    ("access token", "A.AAAAAAA"),
    ("session", "AA......."),
    ("session of an app password", "An......."),
];

/// With a second factor on.
const FACTOR: [(&str, &str); 12] = [
    ("password", "w2wwwwwww"),
    ("wrong password", "wwwwwwwww"),
    ("app password", "A.AAAAAAA"),
    ("wrong app password", "w.wwwwwww"),
    ("app password for mail", "n.AAAAnnn"),
    ("SCRAM", "..wwww..w"),
    ("SCRAM, app password", "..AAAA..A"),
    ("code", ".A......."),
    ("ID token", ".2......."),
    ("access token", "w.wwwwwww"),
    ("session", "ww......."),
    ("session of an app password", "An......."),
];

const GUESSED: [&str; 4] = ["password", "wrong password", "SCRAM", "code"];

/// A person in one state, and the server that they come to.
struct World {
    index: Arc<NameIndex>,
    logins: Logins,
    accounts: Accounts,
    all: String,
    mail: String,
    totp: Totp,
    first: NextStep,
    is_locked: bool,
}

impl World {
    async fn make(account: serde_json::Value, has_factor: bool) -> Self {
        let index = Arc::new(NameIndex::new());
        let manual = Clock::manual(NOW_MS);
        let options = AccountOptions {
            clock: manual.clock(),
            prefixes: NetworkPrefixes::default(),
            ..AccountOptions::default()
        };
        let accounts = Accounts::new(options);
        let records: Arc<NameIndex> = Arc::clone(&index);
        let logins = logins_with(records, manual.clock(), Duration::from_hours(1), accounts.clone());
        let mut credentials = stored(None);
        credentials.set_password("engine", Some(4096), NOW_MS).unwrap();
        let all = app(&mut credentials, ProtocolSet::all().without(Protocol::Browser));
        let mail = app(&mut credentials, ProtocolSet::mail());
        // A first step is one of somebody who has a second factor on, and is in good standing.
        let (totp, _) = with_totp(&mut credentials, NOW_MS);
        index.apply_with("person:ada", Some(&document("ada")), Some(credentials.clone()));
        let browser = Approach::protected(Protocol::Browser, address(1));
        let Err(LoginError::SecondStep(first)) = logins.verify("ada", "engine", &browser).await else {
            panic!("a second step")
        };
        if !has_factor {
            credentials.remove_totp();
        }
        let mut ada = document("ada");
        ada.extend(account.as_object().unwrap().clone());
        index.apply_with("person:ada", Some(&ada), Some(credentials));
        Self { index, logins, accounts, all, mail, totp, first, is_locked: false }
    }

    fn person(&self) -> Arc<Person> {
        self.index.person("person:ada").unwrap()
    }

    fn scram(&self, password: &str, protocol: Protocol) -> ScramProof {
        let person = self.person();
        let candidate = Candidate {
            id: &person.id,
            names: &[],
            credentials: &person.credentials,
            standing: person.account,
        };
        let (mechanism, bindings) = (SaslMechanism::ScramSha256, ChannelBindings::default());
        let secret = ClientSecret::Password(password);
        let mut client = ClientExchange::begin(&[mechanism], "ada", secret, true, &bindings).unwrap();
        let mut server = ServerExchange::begin(mechanism, bindings);
        let Step::Account(name) = server.start(client.initial().as_deref()).unwrap() else {
            panic!("a name")
        };
        let protocol = if protocol.has_sasl() { protocol } else { Protocol::Imap };
        let account =
            self.logins.credentials().gate().scram_account(&name, Some(&candidate), protocol, NOW_MS);
        let Step::Challenge(challenge) = server.give_account(account).unwrap() else { panic!("a challenge") };
        let Step::Claim(claim) = server.respond(&client.respond(&challenge).unwrap()).unwrap() else {
            panic!("a claim")
        };
        let ClaimedProof::Scram(proof) = claim.proof else { panic!("a proof") };
        proof
    }

    async fn letter(&self, name: &str, protocol: Protocol) -> char {
        static NEXT: AtomicU32 = AtomicU32::new(10);
        let approach = Approach::protected(protocol, address(NEXT.fetch_add(1, Ordering::Relaxed)));
        if self.is_locked {
            let network = self.accounts.network(approach.address);
            let guess = self.accounts.guess("person:ada", network);
            for attempt in 0..100 {
                guess.failed(attempt);
            }
        }
        let wrong = format!(
            "{}{}",
            &self.all[..self.all.len() - 4],
            if self.all.ends_with("zzzz") { "yyyy" } else { "zzzz" }
        );
        let session = |app_password: Option<&str>| SessionProof {
            person_id: "person:ada".to_owned(),
            has_second_factor: false,
            app_password: app_password.and_then(|text| text.split('-').nth(1)).map(str::to_owned),
        };
        let (own, of_app) = (session(None), session(Some(&self.all)));
        let token = token(name == "ID token");
        let scram = match name {
            "SCRAM" => Some(self.scram("engine", protocol)),
            "SCRAM, app password" => Some(self.scram(&self.all, protocol)),
            _ => None,
        };
        let code = code_at(&self.totp, NOW_MS);
        let proof = match name {
            "password" => Proof::Password("engine"),
            "wrong password" => Proof::Password("wrong"),
            "app password" => Proof::Password(&self.all),
            "wrong app password" => Proof::Password(&wrong),
            "app password for mail" => Proof::Password(&self.mail),
            "SCRAM" | "SCRAM, app password" => Proof::Scram(scram.as_ref().unwrap()),
            "code" => Proof::Code { first: &self.first, code: &code },
            "ID token" | "access token" => Proof::Token(&token),
            "session" => Proof::Session(&own),
            _ => Proof::Session(&of_app),
        };
        match self.logins.prove("ada", None, proof, &approach).await {
            Ok(_) => 'A',
            Err(LoginError::SecondStep(_)) => '2',
            Err(LoginError::Refused) => 'w',
            Err(LoginError::Locked { .. }) => 'l',
            Err(LoginError::Busy { .. }) => 'b',
            Err(LoginError::Denied(answer, _)) => match answer {
                Answer::Disabled => 'd',
                Answer::Ended => 'e',
                Answer::NotByThis => 'n',
                Answer::NotOffered => '.',
                Answer::BeginAgain => 'a',
                _ => '?',
            },
        }
    }

    /// Holds a table against what comes out; `change` makes a letter of another state of the table's.
    async fn hold(&self, table: &[(&str, &str)], change: impl Fn(&str, Protocol, char) -> char) {
        let mut wrong = Vec::new();
        for (name, letters) in table {
            let (mut found, mut expected) = (String::new(), String::new());
            for (protocol, letter) in Protocol::ALL.into_iter().zip(letters.chars()) {
                found.push(self.letter(name, protocol).await);
                expected.push(change(name, protocol, letter));
            }
            if found != expected {
                wrong.push(format!("{name}: {found} instead of {expected}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

fn token(is_identity: bool) -> VerifiedToken {
    let key = [7; 32];
    let mut keys = KeySet::default();
    keys.add(None, VerifyKey::shared(&key).unwrap());
    let (issuer, nonce) = ("https://id.example.org".to_owned(), "once".to_owned());
    let usage = if is_identity {
        TokenUse::Identity { client_id: "us".to_owned(), nonce }
    } else {
        TokenUse::Access { audiences: vec!["us".to_owned()] }
    };
    let claims = json!({"iss": issuer, "aud": "us", "sub": "42", "email": "ada@example.org", "email_verified": true,
        "nonce": "once", "exp": NOW_MS / 1000 + 600});
    let rules = TokenRules { issuer, usage, name: NameClaim::VerifiedEmail, factor: FactorRule::Never };
    verify(&sign_hmac(&key, None, &claims), &keys, &rules, NOW_MS / 1000).unwrap()
}

fn instead(from: &'static str, to: char) -> impl Fn(&str, Protocol, char) -> char {
    move |_, _, letter| if from.contains(letter) { to } else { letter }
}

/// Without a second factor there is no code.
fn without_code(name: &str, protocol: Protocol, letter: char) -> char {
    if name == "code" && protocol == Protocol::Browser { 'a' } else { letter }
}

#[tokio::test(start_paused = true)]
async fn every_credential_by_every_protocol_without_a_second_factor() {
    let good = World::make(json!({}), false).await;
    good.hold(&GOOD, without_code).await;
    let disabled = World::make(json!({"Disabled": true}), false).await;
    disabled
        .hold(&GOOD, |name, by, letter| instead("A", 'd')(name, by, without_code(name, by, letter)))
        .await;
    let ended = World::make(json!({"Expires": "2026-07-01"}), false).await;
    ended.hold(&GOOD, |name, by, letter| instead("A", 'e')(name, by, without_code(name, by, letter))).await;
    let mail = World::make(json!({"Protocols": ["submission", "imap", "pop3", "managesieve"]}), false).await;
    mail.hold(&GOOD, |name, by, letter| match without_code(name, by, letter) {
        'A' if !ProtocolSet::mail().has(by) => 'n',
        letter => letter,
    })
    .await;
    let mut locked = World::make(json!({}), false).await;
    locked.is_locked = true;
    locked
        .hold(&GOOD, |name, _, letter| if letter != '.' && GUESSED.contains(&name) { 'l' } else { letter })
        .await;
}

#[tokio::test(start_paused = true)]
async fn every_credential_by_every_protocol_with_a_second_factor() {
    World::make(json!({}), true).await.hold(&FACTOR, |_, _, letter| letter).await;
    let disabled = World::make(json!({"Disabled": true}), true).await;
    disabled.hold(&FACTOR, instead("A2", 'd')).await;
    let ended = World::make(json!({"Expires": "2026-07-01"}), true).await;
    ended.hold(&FACTOR, instead("A2", 'e')).await;
    let required = World::make(json!({"SecondFactor": "required"}), false).await;
    required.hold(&FACTOR, without_code).await;
    let mut locked = World::make(json!({}), true).await;
    locked.is_locked = true;
    locked
        .hold(&FACTOR, |name, _, letter| if letter != '.' && GUESSED.contains(&name) { 'l' } else { letter })
        .await;
}

//! Every credential by every protocol in every state.
//!
//! A letter says what comes out: `A` admitted, `2` a second step, `w` name or proof is wrong, `d` disabled, `e` expired,
//! `n` not by this protocol, `l` locked, `c` the connection must be encrypted, `.` not offered. The columns are HTTP, browser,
//! submission, IMAP, POP3, ManageSieve, CalDAV, CardDAV, LDAP.

use argon2::password_hash::{PasswordHasher, SaltString};
use scrinium_credentials::passkey::PasskeyProof;
use scrinium_credentials::sasl::ScramProof;
use scrinium_credentials::token::VerifiedToken;
use scrinium_credentials::{
    Answer, AppPasswordText, Decision, NewAppPassword, NextStep, Proof, Protection, Protocol, ProtocolSet,
    SessionProof, Standing, StoredCredentials,
};

use crate::passkeys::Device;
use crate::people::{ADA, GATE, NOW_MS, PASSWORD, ROUNDS, ada, everywhere, question};
use crate::second_factors::{scram_proof, with_totp};
use crate::tokens::token_of;

const GOOD: [(&str, &str); 24] = [
    ("password", "AAAAAAAAA"),
    ("password right elsewhere", "AAAAAAAAA"),
    ("wrong password", "wwwwwwwww"),
    ("app password", "A.AAAAAAA"),
    ("wrong app password", "w.wwwwwww"),
    ("revoked app password", "w.wwwwwww"),
    ("expired app password", "w.wwwwwww"),
    ("app password for mail", "n.AAAAnnn"),
    ("SCRAM", "..AAAA..A"),
    ("SCRAM, wrong password", "..wwww..w"),
    ("SCRAM, app password", "..AAAA..A"),
    ("SCRAM of somebody else", "..wwww..w"),
    ("code", ".w......."),
    ("wrong code", ".w......."),
    ("recovery code", ".w......."),
    ("passkey as second step", ".A......."),
    ("passkey", ".A......."),
    ("passkey without PIN", ".w......."),
    ("ID token", ".A......."),
    ("ID token with factor", ".A......."),
    ("access token", "A.AAAAAAA"),
    ("access token with factor", "A.AAAAAAA"),
    ("session", "AA......."),
    ("session with factor", "AA......."),
];

/// With a second factor on.
const FACTOR: [(&str, &str); 24] = [
    ("password", "w2wwwwwww"),
    ("password right elsewhere", "w2wwwwwww"),
    ("wrong password", "wwwwwwwww"),
    ("app password", "A.AAAAAAA"),
    ("wrong app password", "w.wwwwwww"),
    ("revoked app password", "w.wwwwwww"),
    ("expired app password", "w.wwwwwww"),
    ("app password for mail", "n.AAAAnnn"),
    ("SCRAM", "..wwww..w"),
    ("SCRAM, wrong password", "..wwww..w"),
    ("SCRAM, app password", "..AAAA..A"),
    ("SCRAM of somebody else", "..wwww..w"),
    ("code", ".A......."),
    ("wrong code", ".w......."),
    ("recovery code", ".A......."),
    ("passkey as second step", ".A......."),
    ("passkey", ".A......."),
    ("passkey without PIN", ".w......."),
    ("ID token", ".2......."),
    ("ID token with factor", ".A......."),
    ("access token", "w.wwwwwww"),
    ("access token with factor", "A.AAAAAAA"),
    ("session", "ww......."),
    ("session with factor", "AA......."),
];

/// What cannot be locked out: nobody guesses it.
const NO_GUESS: [&str; 15] = [
    "app password",
    "wrong app password",
    "revoked app password",
    "expired app password",
    "app password for mail",
    "SCRAM, app password",
    "passkey as second step",
    "passkey",
    "passkey without PIN",
    "ID token",
    "ID token with factor",
    "access token",
    "access token with factor",
    "session",
    "session with factor",
];

/// One of each proof.
struct Proofs {
    stored: StoredCredentials,
    apps: Vec<AppPasswordText>,
    code: String,
    recovery: String,
    first: NextStep,
    passkeys: [PasskeyProof; 2],
    tokens: [VerifiedToken; 4],
    sessions: [SessionProof; 2],
    scram: Vec<(&'static str, Protocol, ScramProof)>,
}

/// The record with a hash that costs little, or the table would be a thousand times 20 ms.
fn cheapened(stored: &StoredCredentials) -> StoredCredentials {
    let cheap = argon2::Params::new(64, 1, 1, None).unwrap();
    let hasher = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, cheap);
    let salt = SaltString::encode_b64(&[1; 16]).unwrap();
    let hash = hasher.hash_password(PASSWORD.as_bytes(), &salt).unwrap().to_string();
    let mut record: serde_json::Value = serde_json::from_slice(&stored.to_bytes().unwrap()).unwrap();
    record["password"]["hash"] = hash.into();
    StoredCredentials::from_bytes(record.to_string().as_bytes()).unwrap()
}

/// The four exchanges by every protocol that has them.
fn exchanges(stored: &StoredCredentials, app: &str) -> Vec<(&'static str, Protocol, ScramProof)> {
    let mut proofs = Vec::new();
    for protocol in Protocol::ALL.into_iter().filter(|protocol| protocol.has_sasl()) {
        for (name, password, owner) in [
            ("SCRAM", PASSWORD, ADA),
            ("SCRAM, wrong password", "wrong", ADA),
            ("SCRAM, app password", app, ADA),
            ("SCRAM of somebody else", PASSWORD, "person:eve"),
        ] {
            let mut person = ada(stored, Standing::default());
            person.id = owner;
            proofs.push((name, protocol, scram_proof(&person, password, protocol)));
        }
    }
    proofs
}

impl Proofs {
    fn make(has_totp: bool) -> Self {
        let mut stored = StoredCredentials::default();
        stored.set_password(PASSWORD, Some(ROUNDS), NOW_MS).unwrap();
        let mut create =
            |new: NewAppPassword<'_>| stored.create_app_password(new, Some(ROUNDS), NOW_MS).unwrap();
        let all = create(everywhere("all"));
        let revoked = create(everywhere("revoked"));
        let expired = create(NewAppPassword { expires_ms: Some(NOW_MS), ..everywhere("expired") });
        let mail = create(NewAppPassword { scope: ProtocolSet::mail(), ..everywhere("mail") });
        stored.revoke_app_password(revoked.id(), NOW_MS).unwrap();
        let (code, recovery) =
            if has_totp { with_totp(&mut stored) } else { ("123456".into(), "A".repeat(16)) };
        let mut device = Device::new();
        stored.add_passkey(device.register()).unwrap();
        let passkeys = [true, false].map(|verified| device.sign(stored.passkeys(), verified));
        let scram = exchanges(&stored, &all.show());
        let stored = cheapened(&stored);
        let standing = Standing { requires_second_factor: true, ..Standing::default() };
        let asked = question(Protocol::Browser, Some(ada(&stored, standing)), Proof::Password(PASSWORD));
        let Decision::Next(first) = GATE.decide(&asked) else { panic!("a second step") };
        let tokens = [(true, false), (true, true), (false, false), (false, true)]
            .map(|(is_identity, has_factor)| token_of("ada@example.org", is_identity, has_factor));
        let session = |has_second_factor| SessionProof {
            person_id: ADA.to_owned(),
            has_second_factor,
            app_password: None,
        };
        let (apps, sessions) = (vec![all, revoked, expired, mail], [session(false), session(true)]);
        Self { stored, apps, code, recovery, first, passkeys, tokens, sessions, scram }
    }

    /// The outcome of an exchange by a protocol, made once: the work is in the client's rounds.
    fn scram(&self, name: &str, protocol: Protocol) -> &ScramProof {
        let protocol = if protocol.has_sasl() { protocol } else { Protocol::Imap };
        &self.scram.iter().find(|(of, by, _)| *of == name && *by == protocol).unwrap().2
    }
}

fn letter(decision: &Decision) -> char {
    match decision {
        Decision::Admitted(_) => 'A',
        Decision::Next(_) => '2',
        Decision::Refused(refusal) => match refusal.answer {
            Answer::WrongCredentials => 'w',
            Answer::Later(_) => 'l',
            Answer::Encrypt => 'c',
            Answer::NotOffered => '.',
            Answer::Disabled => 'd',
            Answer::Ended => 'e',
            Answer::NotByThis => 'n',
            Answer::NotAsOther => 'o',
            Answer::BeginAgain => 'b',
        },
    }
}

#[derive(Clone, Copy)]
struct State {
    standing: Standing,
    is_there: bool,
    is_locked: bool,
    is_open: bool,
}

/// What comes out for one proof in one state, by every protocol.
fn row(proofs: &Proofs, name: &str, state: State) -> String {
    let mut letters = String::new();
    for protocol in Protocol::ALL {
        let (app, mail) = (proofs.apps[0].show(), proofs.apps[3].show());
        let (revoked, expired) = (proofs.apps[1].show(), proofs.apps[2].show());
        let wrong_app =
            format!("{}{}", &app[..app.len() - 4], if app.ends_with("zzzz") { "yyyy" } else { "zzzz" });
        let scram = proofs.scram(if name.starts_with("SCRAM") { name } else { "SCRAM" }, protocol);
        let first = &proofs.first;
        let proof = match name {
            "password" => Proof::Password(PASSWORD),
            "wrong password" => Proof::Password("wrong"),
            "password right elsewhere" => Proof::CheckedElsewhere,
            "app password" => Proof::Password(&app),
            "wrong app password" => Proof::Password(&wrong_app),
            "revoked app password" => Proof::Password(&revoked),
            "expired app password" => Proof::Password(&expired),
            "app password for mail" => Proof::Password(&mail),
            "code" => Proof::Code { first, code: &proofs.code },
            "wrong code" => Proof::Code { first, code: "000" },
            "recovery code" => Proof::Code { first, code: &proofs.recovery },
            "passkey as second step" => Proof::SecondPasskey { first, passkey: &proofs.passkeys[1] },
            "passkey" => Proof::Passkey(&proofs.passkeys[0]),
            "passkey without PIN" => Proof::Passkey(&proofs.passkeys[1]),
            "ID token" => Proof::Token(&proofs.tokens[0]),
            "ID token with factor" => Proof::Token(&proofs.tokens[1]),
            "access token" => Proof::Token(&proofs.tokens[2]),
            "access token with factor" => Proof::Token(&proofs.tokens[3]),
            "session" => Proof::Session(&proofs.sessions[0]),
            "session with factor" => Proof::Session(&proofs.sessions[1]),
            _ => Proof::Scram(scram),
        };
        let person = state.is_there.then(|| ada(&proofs.stored, state.standing));
        let mut question = question(protocol, person, proof);
        question.protection = if state.is_open { Protection::Open } else { Protection::Protected };
        question.locked_until_ms = state.is_locked.then_some(NOW_MS + 1);
        letters.push(letter(&GATE.decide(&question)));
    }
    letters
}

/// Holds a table against what comes out; `change` makes a letter of another state of the table's.
fn hold(
    table: &[(&str, &str)],
    proofs: &Proofs,
    state: State,
    change: impl Fn(&str, Protocol, char) -> char,
) {
    let mut wrong = Vec::new();
    for (name, letters) in table {
        let expected: String = letters
            .chars()
            .zip(Protocol::ALL)
            .map(|(letter, protocol)| change(name, protocol, letter))
            .collect();
        let found = row(proofs, name, state);
        if found != expected {
            wrong.push(format!("{name}: {found} instead of {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn states() -> (State, Standing) {
    let standing = Standing::default();
    (State { standing, is_there: true, is_locked: false, is_open: false }, standing)
}

fn instead(from: &'static str, to: char) -> impl Fn(&str, Protocol, char) -> char {
    move |_, _, letter| if from.contains(letter) { to } else { letter }
}

#[test]
fn every_credential_by_every_protocol_without_a_second_factor() {
    let proofs = Proofs::make(false);
    let (good, standing) = states();
    hold(&GOOD, &proofs, good, |_, _, letter| letter);
    let disabled = State { standing: Standing { is_disabled: true, ..standing }, ..good };
    hold(&GOOD, &proofs, disabled, instead("A", 'd'));
    let ended = State { standing: Standing { expires_ms: Some(NOW_MS), ..standing }, ..good };
    hold(&GOOD, &proofs, ended, instead("A", 'e'));
    let ends_later = State { standing: Standing { expires_ms: Some(NOW_MS + 1), ..standing }, ..good };
    hold(&GOOD, &proofs, ends_later, |_, _, letter| letter);
    hold(&GOOD, &proofs, State { is_there: false, ..good }, instead("An", 'w'));
    let mail_alone = State { standing: Standing { protocols: ProtocolSet::mail(), ..standing }, ..good };
    hold(&GOOD, &proofs, mail_alone, |_, protocol, letter| {
        if letter == 'A' && !ProtocolSet::mail().has(protocol) { 'n' } else { letter }
    });
    hold(&GOOD, &proofs, State { is_open: true, ..good }, |name, _, letter| {
        if letter == '.' || name.starts_with("SCRAM") { letter } else { 'c' }
    });
    let locked = |name: &str, _, letter| if letter == '.' || NO_GUESS.contains(&name) { letter } else { 'l' };
    hold(&GOOD, &proofs, State { is_locked: true, ..good }, locked);
    // A name that is locked is locked whether anybody has it or not.
    hold(&GOOD[..2], &proofs, State { is_locked: true, is_there: false, ..good }, locked);
}

#[test]
fn every_credential_by_every_protocol_with_a_second_factor() {
    let proofs = Proofs::make(true);
    let (good, standing) = states();
    hold(&FACTOR, &proofs, good, |_, _, letter| letter);
    // Nothing of an account is said to who has shown the password alone, where no second step can follow.
    let disabled = State { standing: Standing { is_disabled: true, ..standing }, ..good };
    hold(&FACTOR, &proofs, disabled, instead("A2", 'd'));
    let ended = State { standing: Standing { expires_ms: Some(NOW_MS), ..standing }, ..good };
    hold(&FACTOR, &proofs, ended, instead("A2", 'e'));
    hold(&FACTOR, &proofs, State { is_there: false, ..good }, instead("A2n", 'w'));
    let locked = |name: &str, _, letter| if letter == '.' || NO_GUESS.contains(&name) { letter } else { 'l' };
    hold(&FACTOR, &proofs, State { is_locked: true, ..good }, locked);
}

#[test]
fn a_factor_that_is_required_holds_for_who_has_none_yet() {
    let proofs = Proofs::make(false);
    let (good, standing) = states();
    let required = State { standing: Standing { requires_second_factor: true, ..standing }, ..good };
    // As with a second factor, but that there are no codes.
    hold(&FACTOR, &proofs, required, |name, protocol, letter| match name {
        "code" | "recovery code" if protocol == Protocol::Browser => 'w',
        _ => letter,
    });
}

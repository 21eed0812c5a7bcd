//! Codes of authenticators, recovery codes, and the two steps of a sign-in.

use data_encoding::BASE32_NOPAD;
use scrinium_credentials::sasl::{
    ChannelBindings, ClaimedProof, ClientExchange, ClientSecret, SaslMechanism, ScramProof, ServerExchange,
    Step,
};
use scrinium_credentials::{
    Answer, Candidate, Change, ChangeError, Decision, NextStep, Proof, Protocol, Reason, SECOND_STEP_MS,
    STEP_S, SecondStep, Standing, StoredCredentials, Totp, TotpHash, code_of_step,
};

use crate::people::{GATE, NOW_MS, PASSWORD, ada, question};

/// The outcome of SCRAM with a person.
pub(crate) fn scram_proof(person: &Candidate<'_>, password: &str, protocol: Protocol) -> ScramProof {
    let bindings = ChannelBindings::default();
    let mechanism = SaslMechanism::ScramSha256;
    let mut client =
        ClientExchange::begin(&[mechanism], "ada", ClientSecret::Password(password), true, &bindings)
            .unwrap();
    let mut server = ServerExchange::begin(mechanism, bindings);
    let Step::Account(name) = server.start(client.initial().as_deref()).unwrap() else {
        panic!("keys are needed")
    };
    let account = GATE.scram_account(&name, Some(person), protocol, NOW_MS);
    let Step::Challenge(challenge) = server.give_account(account).unwrap() else { panic!("a challenge") };
    let Step::Claim(claim) = server.respond(&client.respond(&challenge).unwrap()).unwrap() else {
        panic!("a claim")
    };
    let ClaimedProof::Scram(proof) = claim.proof else { panic!("a proof of SCRAM") };
    proof
}

fn code_at(totp: &Totp, now_ms: u64) -> String {
    let secret = BASE32_NOPAD.decode(totp.secret_text().as_bytes()).unwrap();
    code_of_step(&secret, now_ms / 1000 / STEP_S, 6, TotpHash::Sha1)
}

/// Gives a person an authenticator; gives the next code and a recovery code.
pub(crate) fn with_totp(stored: &mut StoredCredentials) -> (String, String) {
    let begun = stored.begin_totp().unwrap();
    let before_ms = NOW_MS - STEP_S * 1000;
    let (shown, next) = (code_at(&begun, before_ms), code_at(&begun, NOW_MS));
    let recovery = stored.confirm_totp(begun, &shown, before_ms).unwrap().expect("the code is right");
    (next, recovery[3].clone())
}

#[test]
fn codes_are_those_of_rfc_6238() {
    // Appendix B; the secrets are as long as the hash.
    let secret = |length| b"1234567890".iter().copied().cycle().take(length).collect::<Vec<u8>>();
    for (time_s, sha1, sha256, sha512) in [
        (59, "94287082", "46119246", "90693936"),
        (1_111_111_109, "07081804", "68084774", "25091201"),
        (1_111_111_111, "14050471", "67062674", "99943326"),
        (1_234_567_890, "89005924", "91819424", "93441116"),
        (2_000_000_000, "69279037", "90698825", "38618901"),
        (20_000_000_000, "65353130", "77737706", "47863826"),
    ] {
        assert_eq!(code_of_step(&secret(20), time_s / STEP_S, 8, TotpHash::Sha1), sha1);
        assert_eq!(code_of_step(&secret(32), time_s / STEP_S, 8, TotpHash::Sha256), sha256);
        assert_eq!(code_of_step(&secret(64), time_s / STEP_S, 8, TotpHash::Sha512), sha512);
    }
    // RFC 4226, appendix D: the same by counting.
    let counted: Vec<_> = (0..4).map(|step| code_of_step(&secret(20), step, 6, TotpHash::Sha1)).collect();
    assert_eq!(counted, ["755224", "287082", "359152", "969429"]);
}

#[test]
fn a_code_is_good_near_its_time_and_once() {
    let totp = Totp::with_secret(b"12345678901234567890");
    let code = code_at(&totp, NOW_MS);
    let step = NOW_MS / 1000 / STEP_S;
    for (steps, accepted) in [(-2, false), (-1, true), (0, true), (1, true), (2, false)] {
        let now_ms = NOW_MS.saturating_add_signed(steps * 30_000);
        assert_eq!(totp.step_of(&code, now_ms), accepted.then_some(step), "{steps} steps later");
    }
    assert_eq!(
        totp.step_of(&format!("{} {}", &code[..3], &code[3..]), NOW_MS),
        Some(step),
        "as it is read out"
    );
    for wrong in ["", "000", &code[..5], &format!("{code}0"), "abcdef"] {
        assert_eq!(totp.step_of(wrong, NOW_MS), None);
    }
    assert_eq!(
        totp.uri("Scrinium & Co", "ada@example.org"),
        "otpauth://totp/Scrinium%20%26%20Co:ada%40example%2Eorg?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\
         &issuer=Scrinium%20%26%20Co&algorithm=SHA1&digits=6&period=30"
    );
}

/// A person with a password and an authenticator, what was decided of the password, and the codes.
fn two_steps() -> (StoredCredentials, NextStep, String, String) {
    let mut stored = StoredCredentials::default();
    stored.set_password(PASSWORD, None, NOW_MS).unwrap();
    let (code, recovery) = with_totp(&mut stored);
    let person = Some(ada(&stored, Standing::default()));
    let Decision::Next(next) = GATE.decide(&question(Protocol::Browser, person, Proof::Password(PASSWORD)))
    else {
        panic!("a second step")
    };
    (stored, next, code, recovery)
}

#[test]
fn of_two_log_ins_with_one_code_one_comes_in() {
    let (mut stored, next, code, recovery) = two_steps();
    assert_eq!(next.by(), [SecondStep::Code]);
    for (code, is_totp) in [(code.as_str(), true), (recovery.as_str(), false)] {
        let decide = |stored: &StoredCredentials| {
            let person = Some(ada(stored, Standing::default()));
            GATE.decide(&question(Protocol::Browser, person, Proof::Code { first: &next, code }))
        };
        // Both are decided before either is stored.
        let (Decision::Admitted(one), Decision::Admitted(other)) = (decide(&stored), decide(&stored)) else {
            panic!("both are right")
        };
        assert!(one.has_second_factor && one.changes.iter().all(Change::must_be_stored_first));
        assert_eq!(matches!(one.changes[..], [Change::TotpStep(_)]), is_totp);
        assert_eq!(stored.apply(&one.changes[0]), Ok(()));
        assert_eq!(stored.apply(&other.changes[0]), Err(ChangeError::AlreadyUsed));
        // What was stored is read back, and the code stays used.
        let again = StoredCredentials::from_bytes(&stored.to_bytes().unwrap()).unwrap();
        let Decision::Refused(refusal) = decide(&again) else { panic!("it was used") };
        assert_eq!((refusal.answer, refusal.reason), (Answer::WrongCredentials, Reason::WrongCode));
    }
    assert_eq!(stored.recovery().unwrap().left(), 9);
}

#[test]
fn a_first_step_is_its_persons_and_ends() {
    let (stored, next, code, _) = two_steps();
    let sealed = GATE.seal_step(&next).unwrap();
    assert!(GATE.open_sign_in(&sealed).is_err(), "another purpose");
    for place in 0..sealed.len() {
        let mut changed = sealed.clone().into_bytes();
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        let opened = GATE.open_step(std::str::from_utf8(&changed).unwrap());
        // The last letter has bits that say nothing, which base64 refuses to be set.
        assert!(opened.is_err(), "a letter changed at {place}");
    }
    let first = GATE.open_step(&sealed).unwrap();
    let decide = |now_ms, id| {
        let mut person = ada(&stored, Standing::default());
        person.id = id;
        let mut question =
            question(Protocol::Browser, Some(person), Proof::Code { first: &first, code: &code });
        question.now_ms = now_ms;
        GATE.decide(&question)
    };
    assert!(decide(NOW_MS, "person:ada").is_admitted());
    let Decision::Refused(refusal) = decide(NOW_MS, "person:eve") else { panic!("it is somebody else's") };
    assert_eq!(refusal.reason, Reason::OtherPerson);
    let Decision::Refused(refusal) = decide(NOW_MS + SECOND_STEP_MS, "person:ada") else {
        panic!("too late")
    };
    assert_eq!(refusal.answer, Answer::BeginAgain);
}

#[test]
fn a_first_step_is_void_once_the_password_is_another_one() {
    let (mut stored, first, code, _) = two_steps();
    let admits = |stored: &StoredCredentials| {
        let person = Some(ada(stored, Standing::default()));
        GATE.decide(&question(Protocol::Browser, person, Proof::Code { first: &first, code: &code }))
            .is_admitted()
    };
    assert!(admits(&stored) && first.is_open(&stored, NOW_MS));
    stored.set_password("another one", None, NOW_MS).unwrap();
    assert!(!admits(&stored) && !first.is_open(&stored, NOW_MS));
}

#[test]
fn who_must_have_a_second_factor_and_has_none_sets_one_up() {
    let mut stored = StoredCredentials::default();
    stored.set_password(PASSWORD, None, NOW_MS).unwrap();
    let begun = stored.begin_totp().unwrap();
    assert!(stored.totp().is_none(), "one that is not confirmed counts for nothing");
    let standing = Standing { requires_second_factor: true, ..Standing::default() };
    let person = Some(ada(&stored, standing));
    let Decision::Next(next) = GATE.decide(&question(Protocol::Browser, person, Proof::Password(PASSWORD)))
    else {
        panic!("a second step")
    };
    assert_eq!(next.by(), [SecondStep::SetUp]);
    let code = code_at(&begun, NOW_MS);
    assert_eq!(stored.confirm_totp(begun.clone(), "000000", NOW_MS).unwrap(), None);
    assert_eq!(stored.confirm_totp(begun, &code, NOW_MS).unwrap().unwrap().len(), 10);
    assert!(stored.totp().unwrap().step_of(&code, NOW_MS).is_none(), "the code that confirmed it is used");
}

//! Exchanges of SASL: both sides speak with each other, and a server meets any bytes.

use proptest::prelude::*;
use scrinium_credentials::sasl::{
    BindingType, ChannelBindings, Claim, ClaimedProof, ClientError, ClientExchange, ClientSecret, Ending,
    ExchangeError, SaslMechanism, ScramClientError, ServerExchange, Step, server_end_point,
};
use scrinium_credentials::{Answer, Decision, Method, Proof, Protocol, Reason, Standing, prepare_name};

use crate::people::{ADA_STORED, GATE, NAMES, NOW_MS, PASSWORD, ada, question};

fn bindings() -> ChannelBindings {
    ChannelBindings { exporter: Some([7; 32]), server_end_point: Some(vec![9; 32]) }
}

/// Brings a client and a server together; gives the claim, what was decided, and whether the client believes the server.
fn speak(
    client: &mut ClientExchange,
    on_client: usize,
    server_bindings: ChannelBindings,
) -> Result<(Claim, Decision, Result<(), ClientError>), ExchangeError> {
    let mut server = ServerExchange::begin(client.mechanism(), server_bindings);
    let initial = if on_client == 0 { None } else { client.initial() };
    let mut step = server.start(initial.as_deref())?;
    for _ in 0..6 {
        step = match step {
            Step::Challenge(challenge) => server.respond(&client.respond(&challenge).unwrap())?,
            Step::Account(name) => {
                let person = ada(&ADA_STORED.0, Standing::default());
                let person = NAMES.contains(&name.as_str()).then_some(person);
                server.give_account(GATE.scram_account(&name, person.as_ref(), Protocol::Imap, NOW_MS))?
            }
            Step::Claim(claim) => {
                let known = claim.name.as_deref().is_some_and(|name| NAMES.contains(&name));
                let person = known.then(|| ada(&ADA_STORED.0, Standing::default()));
                let proof = match &claim.proof {
                    ClaimedProof::Password(password) => Proof::Password(password),
                    ClaimedProof::Scram(proof) => Proof::Scram(proof),
                    ClaimedProof::Token(_) => panic!("no token was shown"),
                };
                let mut question = question(Protocol::Imap, person, proof);
                question.act_as = claim.act_as.as_deref();
                let decision = GATE.decide(&question);
                let believed = match server.end(decision.is_admitted(), None) {
                    Ending::Success(Some(data)) | Ending::Failure(Some(data)) => {
                        client.respond(&data).map(|_| ())
                    }
                    Ending::Success(None) | Ending::Failure(None) => Ok(()),
                };
                return Ok((claim, decision, believed));
            }
        };
    }
    panic!("the exchange does not end");
}

fn client(
    mechanism: SaslMechanism,
    name: &str,
    password: &str,
    bindings: &ChannelBindings,
) -> ClientExchange {
    ClientExchange::begin(&[mechanism], name, ClientSecret::Password(password), true, bindings).unwrap()
}

#[test]
fn every_mechanism_lets_the_right_password_in_and_no_other() {
    let app = ADA_STORED.1.show();
    for mechanism in [
        SaslMechanism::ScramSha256Plus,
        SaslMechanism::ScramSha256,
        SaslMechanism::Plain,
        SaslMechanism::Login,
    ] {
        let bindings =
            if mechanism == SaslMechanism::ScramSha256Plus { bindings() } else { ChannelBindings::default() };
        for initial in [0, 1] {
            for (name, password, method) in [
                ("Ada", PASSWORD, Some(Method::Password)),
                ("ada@example.org", app.as_str(), Some(Method::AppPassword)),
                ("ada", "wrong", None),
                ("nobody", PASSWORD, None),
            ] {
                let mut client = client(mechanism, name, password, &bindings);
                let (claim, decision, believed) = speak(&mut client, initial, bindings.clone()).unwrap();
                assert_eq!(claim.name, Some(prepare_name(name).unwrap()));
                match (method, &decision) {
                    (Some(method), Decision::Admitted(admission)) => {
                        assert_eq!(admission.method, method, "{mechanism:?} {name}");
                        believed.unwrap();
                        assert!(client.may_succeed());
                    }
                    (None, Decision::Refused(refusal)) => {
                        assert_eq!(refusal.answer, Answer::WrongCredentials);
                        let scram = mechanism.name().starts_with("SCRAM");
                        let refused = Err(ClientError::Scram(ScramClientError::Refused));
                        assert_eq!(believed, if scram { refused } else { Ok(()) });
                    }
                    other => panic!("{mechanism:?} {name}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_name_that_nobody_has_gets_the_same_salt_each_time_and_cannot_be_told_from_others() {
    let challenge = |name: &str| {
        let mut server = ServerExchange::begin(SaslMechanism::ScramSha256, ChannelBindings::default());
        let Step::Account(name) = server.start(Some(format!("n,,n={name},r=abc").as_bytes())).unwrap() else {
            panic!("the keys are needed")
        };
        let person = NAMES.contains(&name.as_str()).then(|| ada(&ADA_STORED.0, Standing::default()));
        let account = GATE.scram_account(&name, person.as_ref(), Protocol::Imap, NOW_MS);
        let Step::Challenge(challenge) = server.give_account(account).unwrap() else { panic!("a challenge") };
        let text = String::from_utf8(challenge).unwrap();
        let salt = text.split(",s=").nth(1).unwrap().to_owned();
        (text.len(), salt)
    };
    let (real, nobody) = (challenge("ada"), challenge("bob"));
    assert_eq!(real.0, nobody.0, "the same length");
    assert_eq!(nobody, challenge("BOB"), "the same salt whenever and however it is asked for");
    assert_ne!(nobody.1, challenge("eve").1);
    assert_ne!(nobody.1, real.1);
    let rounds = |salt: &str| salt.split(",i=").nth(1).unwrap().to_owned();
    assert_eq!(rounds(&real.1), rounds(&nobody.1));
}

#[test]
fn somebody_in_between_is_noticed() {
    // Another connection has another exporter.
    let mut bound = client(SaslMechanism::ScramSha256Plus, "ada", PASSWORD, &bindings());
    let other = ChannelBindings { exporter: Some([8; 32]), ..bindings() };
    assert_eq!(speak(&mut bound, 1, other).err(), Some(ExchangeError::Binding));
    // A server whose list was shortened: the client says that it could have bound the exchange.
    let mut hidden = client(SaslMechanism::ScramSha256, "ada", PASSWORD, &bindings());
    assert_eq!(speak(&mut hidden, 1, bindings()).err(), Some(ExchangeError::Downgrade));
    // A server without TLS 1.3 and certificate has nothing to bind to, and that is no lie.
    let mut honest = client(SaslMechanism::ScramSha256, "ada", PASSWORD, &bindings());
    assert!(speak(&mut honest, 1, ChannelBindings::default()).unwrap().1.is_admitted());
    // -PLUS without a binding, and a binding without -PLUS.
    for (mechanism, first) in [
        (SaslMechanism::ScramSha256Plus, "n,,n=ada,r=x"),
        (SaslMechanism::ScramSha256Plus, "y,,n=ada,r=x"),
        (SaslMechanism::ScramSha256Plus, "p=tls-unique,,n=ada,r=x"),
        (SaslMechanism::ScramSha256, "p=tls-exporter,,n=ada,r=x"),
    ] {
        let told = ServerExchange::begin(mechanism, bindings()).start(Some(first.as_bytes()));
        assert!(matches!(told, Err(ExchangeError::Binding | ExchangeError::Downgrade)), "{first}: {told:?}");
    }
}

#[test]
fn what_is_offered_and_chosen_shows_no_secret_on_an_open_connection() {
    let offered = |protected, bindings: &ChannelBindings| SaslMechanism::offered(protected, bindings, true);
    assert_eq!(offered(false, &ChannelBindings::default()), [SaslMechanism::ScramSha256]);
    assert_eq!(offered(true, &bindings()), SaslMechanism::ALL);
    let begin = |secret| {
        ClientExchange::begin(&SaslMechanism::ALL, "ada", secret, false, &ChannelBindings::default())
    };
    assert_eq!(begin(ClientSecret::Password("x")).unwrap().mechanism(), SaslMechanism::ScramSha256);
    assert_eq!(begin(ClientSecret::Token("x")).err(), Some(ClientError::NoMechanism));
    let only_plain = ClientExchange::begin(
        &[SaslMechanism::Plain],
        "ada",
        ClientSecret::Password("x"),
        false,
        &bindings(),
    );
    assert_eq!(only_plain.err(), Some(ClientError::NoMechanism));
    // What would be read as other fields is not sent.
    let forged = ClientExchange::begin(
        &[SaslMechanism::Plain],
        "ada\0root",
        ClientSecret::Password("x"),
        true,
        &ChannelBindings::default(),
    );
    assert!(matches!(forged, Err(ClientError::Exchange(ExchangeError::Malformed))));
}

#[test]
fn login_says_the_two_words_that_outlook_knows() {
    let mut server = ServerExchange::begin(SaslMechanism::Login, ChannelBindings::default());
    let Step::Challenge(first) = server.start(None).unwrap() else { panic!("a challenge") };
    let Step::Challenge(second) = server.respond(b"ada").unwrap() else { panic!("a challenge") };
    assert_eq!((first.as_slice(), second.as_slice()), (&b"Username:"[..], &b"Password:"[..]));
    let mut server = ServerExchange::begin(SaslMechanism::Login, ChannelBindings::default());
    let Step::Challenge(second) = server.start(Some(b"ada")).unwrap() else { panic!("a challenge") };
    assert_eq!(second, b"Password:", "an initial response is the name");
    let Step::Claim(claim) = server.respond(b"secret").unwrap() else { panic!("a claim") };
    assert_eq!(claim.proof, ClaimedProof::Password("secret".to_owned()));
    assert!(matches!(server.respond(b"more"), Err(ExchangeError::Order)));
}

#[test]
fn a_token_comes_with_the_messages_of_rfc_7628_and_of_xoauth2() {
    let message = b"n,a=user@example.com,\x01host=server.example.com\x01port=143\x01auth=Bearer vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==\x01\x01";
    let mut server = ServerExchange::begin(SaslMechanism::OauthBearer, ChannelBindings::default());
    let Step::Claim(claim) = server.start(Some(message)).unwrap() else { panic!("a claim") };
    assert_eq!(claim.name.as_deref(), Some("user@example.com"));
    assert_eq!(claim.proof, ClaimedProof::Token("vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==".to_owned()));
    let Ending::Failure(Some(json)) = server.end(false, Some("https://id.example.org/x")) else {
        panic!("JSON")
    };
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["status"], "invalid_token");
    assert_eq!(json["openid-configuration"], "https://id.example.org/x");
    for (mechanism, made) in [
        (SaslMechanism::OauthBearer, scrinium_credentials::sasl::oauthbearer_response("a,b=c", "t0k.en")),
        (SaslMechanism::Xoauth2, scrinium_credentials::sasl::xoauth2_response("a,b=c", "t0k.en")),
    ] {
        let mut server = ServerExchange::begin(mechanism, ChannelBindings::default());
        let Step::Claim(claim) = server.start(Some(&made)).unwrap() else { panic!("a claim") };
        assert_eq!(
            (claim.name.as_deref(), claim.proof),
            (Some("a,b=c"), ClaimedProof::Token("t0k.en".to_owned()))
        );
        assert!(
            matches!(server.end(false, None), Ending::Failure(Some(_))),
            "JSON, which the client answers"
        );
    }
}

#[test]
fn nobody_acts_as_somebody_else() {
    let decide = |message: &[u8]| {
        let mut server = ServerExchange::begin(SaslMechanism::Plain, ChannelBindings::default());
        let Step::Claim(claim) = server.start(Some(message)).unwrap() else { panic!("a claim") };
        let ClaimedProof::Password(password) = &claim.proof else { panic!("a password") };
        let person = Some(ada(&ADA_STORED.0, Standing::default()));
        let mut question = question(Protocol::Imap, person, Proof::Password(password));
        question.act_as = claim.act_as.as_deref();
        GATE.decide(&question)
    };
    let app = ADA_STORED.1.show();
    assert!(decide(format!("Ada@Example.org\0ada\0{app}").as_bytes()).is_admitted(), "her own other name");
    let Decision::Refused(refusal) = decide(format!("root\0ada\0{app}").as_bytes()) else {
        panic!("refused")
    };
    assert_eq!((refusal.answer, refusal.reason), (Answer::NotAsOther, Reason::ActingAsOther));
    let Decision::Refused(refusal) = decide(b"root\0ada\0wrong") else { panic!("refused") };
    assert_eq!(refusal.answer, Answer::WrongCredentials, "who has shown nothing hears nothing");
}

#[test]
fn a_certificate_is_bound_to_by_the_hash_of_its_signature() {
    let digest = |hash, bytes: &[u8]| ring::digest::digest(hash, bytes).as_ref().to_vec();
    let made = |algorithm| {
        let key = rcgen::KeyPair::generate_for(algorithm).unwrap();
        let params = rcgen::CertificateParams::new(vec!["mail.example.org".to_owned()]).unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    };
    let p256 = made(&rcgen::PKCS_ECDSA_P256_SHA256);
    assert_eq!(server_end_point(&p256), Some(digest(&ring::digest::SHA256, &p256)));
    let p384 = made(&rcgen::PKCS_ECDSA_P384_SHA384);
    assert_eq!(server_end_point(&p384), Some(digest(&ring::digest::SHA384, &p384)));
    assert_eq!(server_end_point(&made(&rcgen::PKCS_ED25519)), None, "RFC 5929 leaves it undefined");
    for cut in 0..p256.len() {
        let _ = server_end_point(&p256[..cut]);
    }
    assert_eq!(BindingType::Exporter.name(), "tls-exporter");
}

#[test]
fn passwords_are_the_same_however_a_keyboard_writes_them() {
    // RFC 4013, section 3, and an accent in two forms; a no-break space is a space.
    for (one, other) in
        [("I\u{ad}X", "IX"), ("\u{2168}", "IX"), ("caf\u{e9}", "cafe\u{301}"), ("a\u{a0}b", "a b")]
    {
        let prepared = |text| scrinium_credentials::prepare_password(text).unwrap();
        assert_eq!(prepared(one), prepared(other));
        let mut stored = scrinium_credentials::StoredCredentials::default();
        stored.set_password(one, None, NOW_MS).unwrap();
        assert!(stored.password().unwrap().verify(other), "{one:?} {other:?}");
    }
    // What SASLprep does not know stays as it is.
    assert_eq!(scrinium_credentials::prepare_password("pass\u{1f9ff}").unwrap(), "pass\u{1f9ff}");
    assert!(
        prepare_name("a\u{0}b").is_err()
            && prepare_name("").is_err()
            && prepare_name(&"a".repeat(256)).is_err()
    );
    assert_eq!(prepare_name("\u{c4}da@Example.ORG").unwrap(), "\u{e4}da@example.org");
}

proptest! {
    /// Whatever comes, and in whatever order: no panic, and an exchange ends.
    #[test]
    fn an_exchange_ends_whatever_comes(
        mechanism in prop::sample::select(SaslMechanism::ALL.to_vec()),
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 1..6),
        begin in prop::sample::select(vec!["", "n,,n=ada,r=", "n,a=x,", "user=", "\0ada\0", "p=tls-exporter,,n=a,r=x"]),
    ) {
        let mut server = ServerExchange::begin(mechanism, bindings());
        let mut first = begin.as_bytes().to_vec();
        first.extend_from_slice(&messages[0]);
        let mut step = server.start(Some(&first));
        let mut steps = 0;
        for message in &messages {
            steps += 1;
            step = match step {
                Ok(Step::Challenge(_)) => server.respond(message),
                Ok(Step::Account(name)) => server.give_account(GATE.scram_account(&name, None, Protocol::Imap, 0)),
                Ok(Step::Claim(_)) => {
                    prop_assert!(matches!(server.respond(message), Err(ExchangeError::Order)));
                    break;
                }
                Err(_) => break,
            };
        }
        prop_assert!(steps <= 5);
    }
}

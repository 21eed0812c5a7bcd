//! Signatures: published vectors, canonical forms, keys, rotation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use ring::digest::{SHA256, digest};
use scrinium_sender_authentication::dkim::{
    BodyDigests, BodyHasher, Canonicalization, DkimFault, DkimOutcome, DkimResult, KeyKind, KeyRecord,
    KeyState, KeyStep, RecordError, RotationPolicy, SIGNATURES_MAX, SignError, Signature, SignatureError,
    Signer, SigningKey, StoredKey, next_steps, verify,
};
use scrinium_sender_authentication::{Answers, Head, settle, split_message};

use crate::kit::{NOW_SECONDS, Zone, finish, name, signed, signer};

/// RFC 8463, appendix A.
const FOOTBALL_ZONE: &str = "
    brisbane._domainkey.football.example.com TXT v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
    test._domainkey.football.example.com TXT v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQiY/J16JYi0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB
";
const FOOTBALL: &str = concat!(
    "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n",
    " d=football.example.com; i=@football.example.com;\r\n",
    " q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r\n",
    " subject : date : message-id : from : subject : date;\r\n",
    " bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n",
    " b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus\r\n",
    " Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==\r\n",
    "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;\r\n",
    " d=football.example.com; i=@football.example.com;\r\n",
    " q=dns/txt; s=test; t=1528637909; h=from : to : subject :\r\n",
    " date : message-id : from : subject : date;\r\n",
    " bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n",
    " b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3\r\n",
    " DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz\r\n",
    " dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=\r\n",
    "From: Joe SixPack <joe@football.example.com>\r\n",
    "To: Suzie Q <suzie@shopping.example.net>\r\n",
    "Subject: Is dinner ready?\r\n",
    "Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\n",
    "Message-ID: <20030712040037.46341.5F8J@football.example.com>\r\n",
    "\r\n",
    "Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n",
);

fn outcomes(zone: &Zone, message: &str) -> Vec<DkimOutcome> {
    let (head, body) = split_message(message.as_bytes());
    let (head, digests) = (Head::parse(head), BodyDigests::of(body));
    let mut answers = Answers::default();
    finish(settle(zone, &mut answers, |answers| verify(&head, &digests, NOW_SECONDS, answers)))
}

fn outcome(zone: &Zone, message: &str) -> (DkimResult, Option<DkimFault>) {
    let found = outcomes(zone, message);
    (found[0].result, found[0].fault)
}

#[test]
fn signatures_of_the_rfc_verify() {
    let zone = Zone::of(FOOTBALL_ZONE);
    let found = outcomes(&zone, FOOTBALL);
    assert_eq!(found.iter().map(|one| one.result).collect::<Vec<_>>(), [DkimResult::Pass; 2], "{found:?}");
    let changed = FOOTBALL.replace("We lost", "We won");
    assert_eq!(outcome(&zone, &changed), (DkimResult::Fail, Some(DkimFault::Body)));
    let changed = FOOTBALL.replace("Subject: Is", "Subject: Was");
    assert_eq!(outcome(&zone, &changed), (DkimResult::Fail, Some(DkimFault::Fields)));
    // RFC 6376 §3.4.2: what the relaxed form allows.
    let folded = FOOTBALL
        .replace("Subject: Is dinner", "SUBJECT  :\r\n Is  \t dinner")
        .replace("game.  Are", "game.\t Are \t");
    assert_eq!(outcome(&zone, &folded.replace(" Are \t you", " Are you")), (DkimResult::Pass, None));
}

#[test]
fn bodies_have_the_digests_of_the_rfc() {
    // RFC 6376 §3.4.3, §3.4.4: an empty body, in both forms.
    let empty = BodyDigests::of(b"");
    assert_eq!(
        STANDARD.encode(empty.of_form(Canonicalization::Simple)),
        "frcCV1k9oG9oKj3dpUqdJg1PxRT2RSN/XKdLCPjaYaY="
    );
    assert_eq!(
        STANDARD.encode(empty.of_form(Canonicalization::Relaxed)),
        "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    );
    // RFC 6376 §3.4.5.
    let body = BodyDigests::of(b" C \r\nD \t E\r\n\r\n\r\n");
    assert_eq!(body.of_form(Canonicalization::Relaxed), digest(&SHA256, b" C\r\nD E\r\n").as_ref());
    assert_eq!(body.of_form(Canonicalization::Simple), digest(&SHA256, b" C \r\nD \t E\r\n").as_ref());
    for (body, relaxed, simple) in [
        (&b"a"[..], &b"a\r\n"[..], &b"a\r\n"[..]),
        (b"\r\n\r\n", b"", b"\r\n"),
        (b" \r\n\t", b"", b" \r\n\t\r\n"),
        (b"a\rb \n\r", b"a\rb \n\r\r\n", b"a\rb \n\r\r\n"),
        (b"\r\n\r\na", b"\r\n\r\na\r\n", b"\r\n\r\na\r\n"),
    ] {
        let found = BodyDigests::of(body);
        assert_eq!(found.of_form(Canonicalization::Relaxed), digest(&SHA256, relaxed).as_ref(), "{body:?}");
        assert_eq!(found.of_form(Canonicalization::Simple), digest(&SHA256, simple).as_ref(), "{body:?}");
    }
}

proptest! {
    #[test]
    fn a_body_in_pieces_has_the_digests_of_the_whole(body in "[ab \t\r\n]{0,60}", cuts in prop::collection::vec(0_usize..60, 0..6)) {
        let mut hasher = BodyHasher::default();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
        cuts.sort_unstable();
        let mut from = 0;
        for cut in cuts.into_iter().chain([body.len()]) {
            hasher.update(&body.as_bytes()[from..cut]);
            from = cut;
        }
        prop_assert_eq!(hasher.finish(), BodyDigests::of(body.as_bytes()));
    }

    /// The relaxed form against the RFC's words, line by line.
    #[test]
    fn the_relaxed_form_is_what_the_rfc_says(body in "[ab \t]{0,6}(\r\n[ab \t]{0,6}){0,6}") {
        let lines = body.split("\r\n").map(|line| {
            let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
            let start = if line.starts_with([' ', '\t']) && !words.is_empty() { " " } else { "" };
            format!("{start}{}\r\n", words.join(" "))
        });
        let mut canonical: String = lines.collect();
        while let Some(rest) = canonical.strip_suffix("\r\n") {
            if !rest.is_empty() && !rest.ends_with("\r\n") { break }
            canonical = rest.to_owned();
        }
        let expected = digest(&SHA256, canonical.as_bytes());
        let found = BodyDigests::of(body.as_bytes());
        prop_assert_eq!(found.of_form(Canonicalization::Relaxed), expected.as_ref());
    }

    #[test]
    fn what_is_signed_verifies(
        subject in "[ -~]{0,90}", fields in prop::collection::vec(("(X-[A-Z]|To|Cc|List-Id)", "[ -~]{0,30}(\r\n [ -~]{1,9}){0,2}"), 0..6),
        body in "[ -~\t\r\n]{0,200}",
    ) {
        let mut zone = Zone::default();
        let signer = signer(&mut zone, "example.org");
        let mut message = format!("From: a@example.org\r\nSubject:{subject}\r\n");
        let mut seen = Vec::new();
        for (name, value) in fields {
            if !seen.contains(&name) || name.starts_with("X-") {
                message.push_str(&format!("{name}: {value}\r\n"));
                seen.push(name);
            }
        }
        let message = signed(&signer, &format!("{message}\r\n{body}"));
        prop_assert!(message.split("\r\n").take_while(|line| !line.starts_with("From:")).all(|line| line.len() <= 78));
        prop_assert_eq!(outcome(&zone, &message), (DkimResult::Pass, None));
    }
}

#[test]
fn signatures_that_break_a_rule_do_not_count() {
    let good = "v=1; a=rsa-sha256; d=example.org; s=s1; h=from; bh=AAAA; b=AAAA";
    assert!(Signature::parse(good.as_bytes()).is_ok());
    let cases: [(&str, &str, SignatureError); 18] = [
        ("v=1;", "", SignatureError::Tag("v")),
        ("v=1", "v=2", SignatureError::Version),
        ("rsa-sha256", "rsa-sha1", SignatureError::Sha1),
        ("rsa-sha256", "rsa-md5", SignatureError::Algorithm),
        ("d=example.org", "d=exam ple.org", SignatureError::Tag("d")),
        ("d=example.org", "d=", SignatureError::Tag("d")),
        ("s=s1", "s=s1..x", SignatureError::Tag("s")),
        ("s=s1", "s=*", SignatureError::Tag("s")),
        ("h=from", "h=to:subject", SignatureError::FromNotSigned),
        ("h=from", "h=from::to", SignatureError::Tag("h")),
        ("bh=AAAA", "bh=!", SignatureError::Tag("bh")),
        ("; b=AAAA", "; b=", SignatureError::Tag("b")),
        ("b=AAAA", "b=AAAA; l=0", SignatureError::PartOfBody),
        ("b=AAAA", "b=AAAA; i=a@elsewhere.org", SignatureError::Identity),
        ("b=AAAA", "b=AAAA; i=a@badexample.org", SignatureError::Identity),
        ("b=AAAA", "b=AAAA; t=9; x=9", SignatureError::Tag("x")),
        ("b=AAAA", "b=AAAA; c=loose", SignatureError::Tag("c")),
        ("b=AAAA", "b=AAAA; q=http", SignatureError::Tag("q")),
    ];
    for (old, new, error) in cases {
        let text = good.replacen(old, new, 1);
        assert_eq!(Signature::parse(text.as_bytes()), Err(error), "{text}");
    }
    assert!(
        Signature::parse(format!("{good}; d=example.org").as_bytes()).is_err(),
        "RFC 6376 §3.2: a tag twice"
    );
    let identity = Signature::parse(format!("{good}; i=a@mail.example.org;").as_bytes()).unwrap();
    assert_eq!(identity.identity, "a@mail.example.org");
}

#[test]
fn keys_that_break_a_rule_do_not_count() {
    let cases: [(&str, RecordError); 9] = [
        ("v=DKIM1; p=", RecordError::Revoked),
        ("v=DKIM2; p=AAAA", RecordError::Malformed),
        ("p=AAAA; v=DKIM1", RecordError::Malformed),
        ("v=DKIM1; k=rsa", RecordError::Malformed),
        ("v=DKIM1; k=dsa; p=AAAA", RecordError::Kind),
        ("v=DKIM1; h=sha1; p=AAAA", RecordError::Hash),
        ("v=DKIM1; s=web; p=AAAA", RecordError::Service),
        ("v=DKIM1; k=ed25519; p=AAAA", RecordError::Key),
        // 512 bits (RFC 8301 §3.2).
        (
            "v=DKIM1; p=MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAM1i2nVSjvYSbzNADPivFwGSZgU1iG1aDYlCIyoZJqxvzzTgf7xga3eoljbIVrzFMmC0WTRLxJ/2Ekq7Z88pOLMCAwEAAQ==",
            RecordError::Short,
        ),
    ];
    for (record, error) in cases {
        assert_eq!(KeyRecord::parse(record.as_bytes()), Err(error), "{record}");
    }
    let key =
        "k=ed25519; t=s:y; n=a note; h=sha1:sha256; s=*; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    let key = KeyRecord::parse(key.as_bytes()).unwrap();
    assert!(key.is_testing && key.is_strict);
}

#[test]
fn what_dns_says_of_a_key_decides() {
    let mut zone = Zone::default();
    let own = signer(&mut zone, "example.org");
    let message = signed(&own, "From: a@example.org\r\n\r\nHello\r\n");
    assert_eq!(outcome(&zone, &message), (DkimResult::Pass, None));
    let key = own.key.record();
    let at = "s1._domainkey.example.org";
    let with = |lines: &str| outcome(&Zone::of(lines), &message);
    assert_eq!(with(""), (DkimResult::PermError, Some(DkimFault::NoKey)));
    assert_eq!(with(&format!("{at} FAIL")), (DkimResult::TempError, Some(DkimFault::Dns)));
    assert_eq!(
        with(&format!("{at} TXT {key}\n{at} TXT {key}")),
        (DkimResult::PermError, Some(DkimFault::SeveralKeys))
    );
    assert_eq!(
        with(&format!("{at} TXT v=DKIM1; p=")),
        (DkimResult::PermError, Some(DkimFault::Record(RecordError::Revoked)))
    );
    let other =
        FOOTBALL_ZONE.lines().find(|line| line.contains("k=rsa")).unwrap().split_once("TXT ").unwrap().1;
    assert_eq!(with(&format!("{at} TXT {other}")), (DkimResult::PermError, Some(DkimFault::Kind)));
    // RFC 6376 §3.6.1: t=y makes a failure count as no signature, t=s keeps a key from subdomains.
    let changed = message.replace("Hello", "Goodbye");
    let testing = Zone::of(&format!("{at} TXT {key}; t=y"));
    assert_eq!(outcome(&testing, &message), (DkimResult::Pass, None));
    assert_eq!(
        outcome(&testing, &changed).0,
        DkimResult::Fail,
        "a body is wrong before its key is asked for"
    );
    let moved = message.replace("From: a@", "From: b@");
    assert_eq!(outcome(&testing, &moved), (DkimResult::Neutral, Some(DkimFault::Fields)));
}

#[test]
fn a_signature_ends() {
    let mut zone = Zone::default();
    let mut own = signer(&mut zone, "example.org");
    own.expires_after_seconds = Some(61);
    assert_eq!(outcome(&zone, &signed(&own, "From: a@example.org\r\n\r\n")), (DkimResult::Pass, None));
    own.expires_after_seconds = Some(60);
    assert_eq!(
        outcome(&zone, &signed(&own, "From: a@example.org\r\n\r\n")),
        (DkimResult::Fail, Some(DkimFault::Expired))
    );
}

#[test]
fn only_the_first_signatures_cost_anything() {
    let mut zone = Zone::default();
    let own = signer(&mut zone, "example.org");
    let message = signed(&own, "From: a@example.org\r\n\r\n");
    let (field, rest) = message.split_once("From:").unwrap();
    let many = format!("{}From:{rest}", field.repeat(1_000));
    assert_eq!(outcomes(&zone, &many).len(), SIGNATURES_MAX);
    assert_eq!(zone.asked.lock().unwrap().len(), 1, "one key is asked for once");
}

#[test]
fn a_message_without_one_author_is_not_signed() {
    let own = signer(&mut Zone::default(), "example.org");
    for head in ["", "To: a@example.org\r\n", "From: a@example.org\r\nFrom: b@example.org\r\n"] {
        let signed = own.sign(&Head::parse(head.as_bytes()), &BodyDigests::of(b""), NOW_SECONDS);
        assert_eq!(signed, Err(SignError::From), "{head}");
    }
}

#[test]
fn an_rsa_key_signs_and_its_record_fits_into_dns() {
    let pkcs8 = STANDARD.decode(include_str!("rsa-2048.pkcs8.txt").replace('\n', "")).unwrap();
    let key = SigningKey::from_pkcs8(KeyKind::Rsa, &pkcs8).unwrap();
    assert!(SigningKey::from_pkcs8(KeyKind::Ed25519, &pkcs8).is_err());
    let strings = key.record_strings();
    assert!(strings.len() == 2 && strings.iter().all(|string| string.len() <= 255));
    let mut zone = Zone::default();
    zone.add("r1._domainkey.example.org", "TXT", &strings.concat());
    let own =
        Signer { domain: name("example.org"), selector: "r1".to_owned(), key, expires_after_seconds: None };
    assert_eq!(format!("{:?}", own.key), "SigningKey { kind: Rsa, .. }", "no secret is shown");
    assert_eq!(outcome(&zone, &signed(&own, "From: a@example.org\r\n\r\nHi\r\n")), (DkimResult::Pass, None));
}

#[test]
fn an_rsa_key_that_is_made_here_signs() {
    let pkcs8 = SigningKey::make(KeyKind::Rsa).unwrap();
    let key = SigningKey::from_pkcs8(KeyKind::Rsa, &pkcs8).unwrap();
    let mut zone = Zone::default();
    zone.add("r1._domainkey.example.org", "TXT", &key.record());
    let (domain, selector) = (name("example.org"), "r1".to_owned());
    let own = Signer { domain, selector, key, expires_after_seconds: None };
    assert_eq!(outcome(&zone, &signed(&own, "From: a@example.org\r\n\r\nHi\r\n")), (DkimResult::Pass, None));
}

/// Keys over a year, with a DNS that shows a record a day after it is asked for.
#[test]
fn keys_change_without_a_moment_in_which_nobody_can_verify() {
    const DAY: u64 = 24 * 60 * 60;
    let policy = RotationPolicy::default();
    let mut keys: Vec<StoredKey> = Vec::new();
    let (mut made, mut days_without) = (0, 0);
    for day in 0..400 {
        let now = NOW_SECONDS + day * DAY;
        let seen = |key: &StoredKey| now >= key.since_seconds + DAY;
        for step in next_steps(&keys, KeyKind::Ed25519, policy, now, seen) {
            let state = |keys: &mut Vec<StoredKey>, selector: &str, state| {
                let key = keys.iter_mut().find(|key| key.selector == selector).unwrap();
                (key.state, key.since_seconds) = (state, now);
            };
            match step {
                KeyStep::Make(kind, selector) => {
                    made += 1;
                    assert!(keys.iter().all(|key| key.selector != selector));
                    let domain = name("example.org");
                    let state = KeyState::Waiting;
                    keys.push(StoredKey {
                        domain,
                        selector,
                        kind,
                        state,
                        since_seconds: now,
                        pkcs8: Vec::new(),
                    });
                }
                KeyStep::LookUp(_) => {}
                KeyStep::Begin(selector) => state(&mut keys, &selector, KeyState::Signing),
                KeyStep::Retire(selector) => state(&mut keys, &selector, KeyState::Retired),
                KeyStep::Remove(selector) => {
                    let key = keys.iter().find(|key| key.selector == selector).unwrap();
                    assert!(now - key.since_seconds >= policy.retired_seconds);
                    keys.retain(|key| key.selector != selector);
                }
            }
        }
        let signing = keys.iter().filter(|key| key.state == KeyState::Signing).count();
        assert!(signing <= 1, "{keys:?}");
        days_without += usize::from(signing == 0);
    }
    assert_eq!((made, days_without), (3, 1), "before the first record is seen nothing can be signed");
    assert_eq!(keys.iter().filter(|key| key.state == KeyState::Signing).count(), 1);
    // A record that DNS never shows is never signed with.
    let waiting = vec![StoredKey { state: KeyState::Waiting, ..keys[0].clone() }];
    let steps = next_steps(&waiting, KeyKind::Ed25519, policy, NOW_SECONDS + 900 * DAY, |_| false);
    assert_eq!(steps, [KeyStep::LookUp(waiting[0].selector.clone())]);
}

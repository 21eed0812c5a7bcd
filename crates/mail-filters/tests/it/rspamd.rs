//! Answers of rspamd: what they mean, and what they cannot do.

use proptest::prelude::*;
use scrinium_mail_filters::milter::Change;
use scrinium_mail_filters::{RSPAMD_ANSWER_BYTES_MAX, RspamdAction, RspamdAnswer, RspamdError};

fn parse(text: &str) -> Result<RspamdAnswer, RspamdError> {
    RspamdAnswer::parse(text.as_bytes())
}

fn action(name: &str) -> Result<RspamdAction, RspamdError> {
    let text =
        format!("{{\"action\":\"{name}\",\"score\":7.25,\"required_score\":15,\"symbols\":{{\"X\":{{}}}}}}");
    parse(&text).map(|answer| answer.action)
}

#[test]
fn each_action_of_rspamd_means_one_thing() {
    let aside = RspamdAction::PutAside("rspamd gives it 7.2 of 15.0".to_owned());
    for (name, wanted) in [
        ("no action", RspamdAction::Accept),
        ("greylist", RspamdAction::Accept),
        ("add header", aside.clone()),
        ("rewrite subject", aside.clone()),
        ("quarantine", aside),
        ("discard", RspamdAction::Discard),
    ] {
        assert_eq!(action(name), Ok(wanted), "{name}");
    }
    assert!(matches!(action("soft reject"), Ok(RspamdAction::Postpone(words)) if !words.is_empty()));
    assert!(matches!(action("reject"), Ok(RspamdAction::Reject(words)) if !words.is_empty()));
    assert_eq!(action("dance"), Err(RspamdError::Action("dance".to_owned())));
    let said = r#"{"action":"reject","messages":{"smtp_message":"Gtube\r\n250 ok\u0000\u00e4 pattern"}}"#;
    assert_eq!(parse(said).unwrap().action, RspamdAction::Reject("Gtube250 ok pattern".to_owned()));
}

#[test]
fn fields_go_and_come_and_stay_fields() {
    let text = r#"{"action":"no action","milter":{
        "remove_headers":{"X-Spam":0,"X-Old":2,"a b":1,"X-Last":-1,"X-None":"x"},
        "add_headers":{"X-Spam":"Yes","X-Two":[{"value":"a","order":1},"b"],"X-Fold":"a\r\n\tb\n c",
            "X-Bad":"a\r\nBcc: x@y.example","X-Empty":"a\r\n\r\nbody","Bad:":"x","X-Number":7,"X-Nul":"a\u0000b"}}}"#;
    let changes = parse(text).unwrap().changes;
    let removed = |change: &Change| matches!(change, Change::ChangeField { index: 1, name, value: None } if name == "X-Spam");
    assert!(changes.iter().take(20).all(removed), "{changes:?}");
    let rest = &changes[20..];
    let add = |name: &str, value: &str| Change::AddField {
        name: name.to_owned(),
        value: value.as_bytes().to_vec(),
    };
    let wanted = [
        Change::ChangeField { index: 2, name: "X-Old".to_owned(), value: None },
        add("X-Fold", "a\r\n\tb\r\n c"),
        add("X-Spam", "Yes"),
        Change::InsertField { index: 1, name: "X-Two".to_owned(), value: b"a".to_vec() },
        add("X-Two", "b"),
    ];
    assert_eq!(rest.len(), wanted.len(), "{rest:?}");
    assert!(wanted.iter().all(|change| rest.contains(change)), "{rest:?}");
}

#[test]
fn what_is_no_answer_is_none_and_an_answer_costs_no_more_than_it_may() {
    for text in ["", "[]", "null", "{}", "{\"action\":7}", "{\"action\":\"no action\"", "hello"] {
        assert_eq!(parse(text), Err(RspamdError::Form), "{text}");
    }
    let deep = format!("{{\"action\":\"no action\",\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(parse(&deep), Err(RspamdError::Form));
    let long = format!("{{\"action\":\"no action\",\"x\":\"{}\"}}", "x".repeat(RSPAMD_ANSWER_BYTES_MAX));
    assert_eq!(parse(&long), Err(RspamdError::Form));
    let many: Vec<String> = (0..10_000).map(|number| format!("\"X-{number}\":\"a\"")).collect();
    let many = format!("{{\"action\":\"no action\",\"milter\":{{\"add_headers\":{{{}}}}}}}", many.join(","));
    assert_eq!(parse(&many).unwrap().changes.len(), 100);
}

proptest! {
    #[test]
    fn no_field_ends_early_whatever_rspamd_says(name in "\\PC{0,12}", value in "[ -~\r\n\t\u{0}\u{e4}]{0,40}") {
        let text = serde_json::json!({"action": "no action", "milter": {"add_headers": {name: value}}}).to_string();
        for change in parse(&text).unwrap().changes {
            let Change::AddField { name, value } = change else { panic!("{change:?}") };
            prop_assert!(name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':'));
            let text = String::from_utf8(value).unwrap();
            for line in text.split("\r\n").skip(1) {
                prop_assert!(line.starts_with([' ', '\t']) && !line.trim().is_empty(), "{text:?}");
            }
            prop_assert!(!text.replace("\r\n", "").contains(['\r', '\n', '\0']));
        }
    }

    #[test]
    fn any_bytes_are_an_answer_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        _ = RspamdAnswer::parse(&bytes);
    }
}

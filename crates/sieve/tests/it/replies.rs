//! Vacation: whom it answers, how often, and what it says.

use scrinium_sieve::{Action, Delivery, NoHost, NoReply, VacationReply, no_reply};

use crate::kit::{actions, delivery, outcome, run};
use crate::message::TestMessage;

const LETTER: &str = "\
From: Ada <ada@example.net>
To: Bob <bob@example.org>
Subject: =?utf-8?q?Caf=C3=A9?=
Message-ID: <3@example.net>
References: <1@example.net> <2@example.net>

Hello
";

fn reply(script: &str, message: &str) -> VacationReply {
    let outcome = run(script, message);
    match outcome.actions.as_slice() {
        [Action::Vacation(reply), Action::Keep { is_implicit: true, .. }] => (**reply).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_reply_is_addressed_and_threaded() {
    let found = reply("require \"vacation\"; vacation \"I am away.\";", LETTER);
    assert_eq!(found.period_seconds, 7 * 86_400);
    assert_eq!(
        found.fields(),
        [
            ("From", "bob+sales@example.org".to_owned()),
            ("To", "ada@example.net".to_owned()),
            ("Subject", "Auto: Café".to_owned()),
            ("Auto-Submitted", "auto-replied (vacation)".to_owned()),
            ("In-Reply-To", "<3@example.net>".to_owned()),
            ("References", "<1@example.net> <2@example.net> <3@example.net>".to_owned()),
        ]
    );
    let script = "require [\"vacation\", \"vacation-seconds\", \"fcc\", \"mailbox\", \"imap4flags\"]; vacation :seconds 0 \
        :from \"Bob <bob@example.org>\" :subject \"Away\r\nBcc: x@x.example\" :mime :fcc \"Sent\" :create :flags \"\\\\Seen\" \
        \"Content-Type: text/plain\r\n\r\nAway\";";
    let found = reply(script, LETTER);
    assert_eq!((found.period_seconds, found.is_mime), (0, true));
    assert_eq!((found.from.as_str(), found.subject.as_str()), ("bob@example.org", "Away Bcc: x@x.example"));
    let fcc = found.fcc.unwrap();
    assert_eq!((fcc.mailbox.as_str(), fcc.create, fcc.flags), ("Sent", true, vec!["\\Seen".to_owned()]));
}

#[test]
fn replies_are_told_apart_by_their_handle_or_words() {
    let key = |arguments: &str| reply(&format!("require \"vacation\"; vacation {arguments};"), LETTER).key;
    assert_eq!(key("\"a\""), key(":days 3 \"a\""));
    assert_ne!(key("\"a\""), key("\"b\""));
    assert_ne!(key("\"a\""), key(":subject \"s\" \"a\""));
    assert_ne!(key("\"a\""), key(":mime \"a\""));
    assert_eq!(key(":handle \"h\" \"a\""), key(":handle \"h\" :subject \"s\" \"b\""));
    assert_eq!(reply("require \"vacation\"; vacation :days 0 \"a\";", LETTER).period_seconds, 86_400);
    assert_eq!(reply("require \"vacation\"; vacation :days 4000 \"a\";", LETTER).period_seconds, 90 * 86_400);
}

#[test]
fn some_are_never_answered() {
    let plain = "To: bob@example.org\n";
    for (sender, header, expected) in [
        ("ada@example.net", plain, None),
        ("ada@example.net", "To: x@example.org\nResent-Cc: BOB@example.org\n", None),
        ("ada@example.net", "To: bob@example.org\nAuto-Submitted: no\n", None),
        ("ada@example.net", "To: bob@example.org\nPrecedence: normal\n", None),
        ("", plain, Some(NoReply::NullSender)),
        ("not an address", plain, Some(NoReply::InvalidSender)),
        ("Bob@example.org", plain, Some(NoReply::OwnAddress)),
        ("mailer-daemon@example.net", plain, Some(NoReply::AutomaticSender)),
        ("owner-list@example.net", plain, Some(NoReply::AutomaticSender)),
        ("list-request@example.net", plain, Some(NoReply::AutomaticSender)),
        ("list-bounces+bob=example.org@example.net", plain, Some(NoReply::AutomaticSender)),
        (
            "ada@example.net",
            "To: bob@example.org\nAuto-Submitted: auto-replied (vacation)\n",
            Some(NoReply::AutoSubmitted),
        ),
        (
            "ada@example.net",
            "To: bob@example.org\nAuto-Submitted:\n auto-generated; x=y\n",
            Some(NoReply::AutoSubmitted),
        ),
        ("ada@example.net", "To: bob@example.org\nList-Id: <x.example.net>\n", Some(NoReply::MailingList)),
        (
            "ada@example.net",
            "To: bob@example.org\nLIST-UNSUBSCRIBE: <mailto:x>\n",
            Some(NoReply::MailingList),
        ),
        ("ada@example.net", "To: bob@example.org\nPrecedence: Bulk\n", Some(NoReply::Bulk)),
        (
            "ada@example.net",
            "To: bob@example.org\nX-Auto-Response-Suppress: DR, OOF\n",
            Some(NoReply::Suppressed),
        ),
        (
            "ada@example.net",
            "To: bob@example.org\nContent-Type: multipart/report; report-type=x\n",
            Some(NoReply::Report),
        ),
        ("ada@example.net", "To: carol@example.org\n", Some(NoReply::NotAddressed)),
        ("ada@example.net", "X-To: bob@example.org\n", Some(NoReply::NotAddressed)),
    ] {
        let message = TestMessage::new(&format!("{header}\nHello\n"));
        assert_eq!(no_reply(&message, sender, &["bob@example.org"]), expected, "{sender} {header}");
        let delivery = Delivery { sender, ..delivery() };
        let script = "require \"vacation\"; vacation \"away\";";
        let outcome = outcome(script, &format!("{header}\nHello\n"), &delivery, &NoHost);
        assert_eq!(
            (outcome.no_reply, outcome.actions.len()),
            (expected, if expected.is_some() { 1 } else { 2 })
        );
    }
}

#[test]
fn other_addresses_of_the_owner_are_named_in_the_script() {
    let message = "To: robert@example.com\nSubject: x\n\nHello\n";
    assert_eq!(actions("require \"vacation\"; vacation \"away\";", message), "implicit");
    let script = "require \"vacation\"; vacation :addresses [\"robert@example.com\"] \"away\";";
    assert_eq!(actions(script, message), "vacation 604800 Auto: x; implicit");
}

#[test]
fn a_message_is_answered_once_and_not_if_it_is_refused() {
    let twice = "require \"vacation\"; vacation \"a\"; vacation \"b\";";
    assert_eq!(
        actions(twice, LETTER),
        "error line 1, column 35: \"vacation\" cannot be done together with \"vacation\""
    );
    let refused = "require [\"vacation\", \"reject\"]; vacation \"a\"; reject \"no\";";
    assert!(actions(refused, LETTER).ends_with("\"reject\" cannot be done together with \"vacation\""));
    let refused = "require [\"vacation\", \"reject\"]; reject \"no\"; vacation \"a\";";
    assert!(actions(refused, LETTER).ends_with("\"vacation\" cannot be done together with \"reject\""));
}

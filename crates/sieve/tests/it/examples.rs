//! The base language (RFC 5228).

use crate::kit::{actions, holds};

const SALE: &str = "\
From: \"Lovelace, Ada\" <Ada.Lovelace@Example.NET>
Sender: desk@example.net
To: bob@example.org, Carol <carol@example.com>
Cc: team: dan@example.org, eve@example.org;
Subject:   Winter
 =?utf-8?q?caf=C3=A9?= * sale?
X-Empty:
X-Priority: 2
Message-ID: <1@example.net>
Date: Thu, 26 Nov 2026 04:30:13 +0100

One hundred chairs.
";

#[test]
fn commands_decide_where_a_message_goes() {
    for (script, expected) in [
        ("", "implicit"),
        ("keep;", "keep"),
        ("keep; keep;", "keep"),
        ("discard;", "discard"),
        ("discard; keep;", "keep"),
        ("stop; discard;", "implicit"),
        ("require \"fileinto\"; fileinto \"A\";", "fileinto A"),
        ("require \"fileinto\"; fileinto \"A\"; fileinto \"A\"; keep;", "fileinto A; keep"),
        ("require \"fileinto\"; fileinto \"inbox\"; keep;", "keep"),
        ("require \"fileinto\"; fileinto \"inbox/New\";", "fileinto INBOX/New"),
        ("redirect \"carol@example.com\";", "redirect carol@example.com"),
        ("redirect \"c@example.com\"; redirect \"C@example.COM\";", "redirect c@example.com"),
        ("if false { discard; } elsif true { keep; } else { stop; }", "keep"),
        ("if false { discard; } else { redirect \"a@b.example\"; }", "redirect a@b.example"),
        ("if true { if true { stop; } } discard;", "implicit"),
        ("# comment\nkeep /* in\nside */ ; # last", "keep"),
        ("KEEP;", "keep"),
        ("IF TRUE { DISCARD; }", "discard"),
    ] {
        assert_eq!(actions(script, SALE), expected, "{script}");
    }
}

#[test]
fn tests_look_at_a_message() {
    for (require, test, expected) in [
        ("", "header \"subject\" \"winter café * sale?\"", true),
        ("", "header :comparator \"i;octet\" \"subject\" \"winter café * sale?\"", false),
        ("", "header :contains \"Subject\" [\"none\", \"CAFé\"]", true),
        ("", "header :matches \"Subject\" \"*caf? \\\\* sale\\\\?\"", true),
        ("", "header :matches \"Subject\" \"winter\"", false),
        ("", "header :is \"X-Empty\" \"\"", true),
        ("", "header :contains \"X-Empty\" \"\"", true),
        ("", "header :contains \"X-Missing\" \"\"", false),
        ("", "header :is \"subject:\" \"x\"", false),
        ("", "address :is \"from\" \"ada.lovelace@example.net\"", true),
        ("", "address :localpart [\"to\", \"cc\"] \"eve\"", true),
        ("", "address :domain :is \"to\" \"example.com\"", true),
        ("", "address :all :contains \"cc\" \"team\"", false),
        ("", "address :domain :comparator \"i;octet\" \"from\" \"example.net\"", false),
        ("", "exists [\"From\", \"x-priority\"]", true),
        ("", "exists [\"From\", \"X-Missing\"]", false),
        ("", "size :over 100", true),
        ("", "size :under 1K", true),
        ("", "size :over 1G", false),
        ("", "not false", true),
        ("", "allof (true, true, not false)", true),
        ("", "allof (true, false)", false),
        ("", "anyof (false, false, true)", true),
        ("", "anyof (false)", false),
        ("\"envelope\"", "envelope \"from\" \"ADA@example.net\"", true),
        ("\"envelope\"", "envelope :localpart [\"to\"] \"bob+sales\"", true),
        ("\"envelope\", \"subaddress\"", "envelope :detail \"to\" \"sales\"", true),
        ("\"envelope\", \"subaddress\"", "envelope :user \"to\" \"bob\"", true),
        ("\"envelope\", \"subaddress\"", "envelope :detail \"from\" \"\"", false),
        ("\"encoded-character\"", "header :contains \"subject\" \"caf${hex: c3 A9}\"", true),
        ("\"encoded-character\"", "header :contains \"subject\" \"caf${unicode:00e9}\"", true),
        ("\"encoded-character\"", "header :contains \"subject\" \"${hex:zz}\"", false),
        (
            "\"comparator-i;ascii-numeric\"",
            "header :comparator \"i;ascii-numeric\" \"x-priority\" \"02\"",
            true,
        ),
    ] {
        assert_eq!(holds(require, test, SALE), expected, "{test}");
    }
}

#[test]
fn size_is_neither_over_nor_under_itself() {
    let message = "Subject: x\n\nab\n";
    // With CR LF: 12, 2 and 4 bytes.
    assert!(!holds("", "size :over 18", message) && !holds("", "size :under 18", message));
    assert!(holds("", "size :over 17", message) && holds("", "size :under 19", message));
}

#[test]
fn strings_are_read_as_they_are_written() {
    let script = "require [\"reject\"];\nreject text: # the reason\n..dots\r\nof \"mine\"\\\n.\n;";
    let outcome = crate::kit::run(script, SALE);
    let scrinium_sieve::Action::Reject { reason, .. } = &outcome.actions[0] else { panic!("{outcome:?}") };
    assert_eq!(reason, ".dots\r\nof \"mine\"\\\r\n");
    let outcome = crate::kit::run("require \"reject\"; reject \"a \\\"b\\\" \\c \\\\ \nd\";", SALE);
    let scrinium_sieve::Action::Reject { reason, .. } = &outcome.actions[0] else { panic!("{outcome:?}") };
    assert_eq!(reason, "a \"b\" c \\ \r\nd");
}

#[test]
fn the_null_sender_is_empty_in_all_its_parts() {
    let delivery = scrinium_sieve::Delivery { sender: "", ..crate::kit::delivery() };
    for part in [":all", ":localpart", ":domain"] {
        let script = format!("require \"envelope\"; if envelope {part} \"from\" \"\" {{ discard; }}");
        let outcome = crate::kit::outcome(&script, SALE, &delivery, &scrinium_sieve::NoHost);
        assert_eq!(crate::kit::shown(&outcome), "discard", "{part}");
    }
}

#[test]
fn a_mailing_list_and_a_boss() {
    let script = r#"
        require ["fileinto"];
        # Sort by who wrote it.
        if header :is "Sender" "owner-ietf-mta-filters@imc.example" {
            fileinto "filter";
        } elsif address :domain :is ["From", "To"] "example.com" {
            keep;
        } elsif anyof (not address :all :contains ["To", "Cc", "Bcc"] "bob@example.org",
                       header :matches "subject" ["*make*money*fast*", "*university*dipl*mas*"]) {
            fileinto "spam";
        } else {
            fileinto "personal";
        }
    "#;
    for (header, expected) in [
        ("Sender: owner-ietf-mta-filters@imc.example", "fileinto filter"),
        ("From: x@example.com", "keep"),
        ("To: x@example.net", "fileinto spam"),
        ("To: bob@example.org\nSubject: MAKE MONEY real FAST!!", "fileinto spam"),
        ("To: bob@example.org\nSubject: Hello", "fileinto personal"),
    ] {
        assert_eq!(actions(script, &format!("{header}\n\nText\n")), expected, "{header}");
    }
}

//! Extensions, each by its RFC.

use std::sync::Arc;

use scrinium_sieve::{Action, HeaderEdit, Host, Location, Script};

use crate::kit::{actions, compile, delivery, holds, outcome, run, shown};

const NOTE: &str = "\
Received: from a.example by b.example; Wed, 25 Nov 2026 23:30:00 -0500
Received: from x.example by a.example; Wed, 25 Nov 2026 23:29:00 -0500
From: Ada <ada+list@example.net>
To: bob@example.org
Subject: [acme-users] [fwd] version 1.0 is out
X-Mood: one
X-Mood: two
X-Mood: three
X-Priority: 3
Message-ID: <2@example.net>
Date: Thu, 26 Nov 2026 04:30:13 +0100
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=\"b\"

before
--b
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Caf=E9 is open
--b
Content-Type: text/html

<p>Hello <b>wor</b>ld</p>
--b--
after
";

#[test]
fn copies_leave_the_rest_as_it_is() {
    for (script, expected) in [
        ("require [\"copy\", \"fileinto\"]; fileinto :copy \"A\";", "fileinto A; implicit"),
        ("require \"copy\"; redirect :copy \"a@b.example\";", "redirect a@b.example; implicit"),
        ("require \"copy\"; redirect :copy \"a@b.example\"; discard;", "redirect a@b.example"),
    ] {
        assert_eq!(actions(script, NOTE), expected, "{script}");
    }
}

#[test]
fn variables_are_set_changed_and_put_in() {
    for (commands, expected) in [
        ("set \"a\" \"x\"; fileinto \"${a}${A}${b}-${ a}\";", "xx-${ a}"),
        ("set \"honorific\" \"Mr\"; fileinto \"${honorific}.\";", "Mr."),
        ("set :lower :upperfirst \"n\" \"juMBlEd\"; fileinto \"${n}\";", "Jumbled"),
        ("set :upper :lowerfirst \"n\" \"juMBlEd\"; fileinto \"${n}\";", "jUMBLED"),
        ("set :upper \"n\" \"Café\"; fileinto \"${n}\";", "CAFé"),
        ("set :lower :upperfirst \"n\" \"éCOLE\"; fileinto \"${n}\";", "école"),
        ("set :quotewildcard \"n\" \"Rock*?\\\\\"; fileinto \"${n}\";", "Rock\\*\\?\\\\"),
        ("set :length \"n\" \"caf\u{e9}\"; fileinto \"${n}\";", "4"),
        (
            "if header :matches \"Subject\" \"[*] *\" { fileinto \"${1}|${2}\"; }",
            "acme-users|[fwd] version 1.0 is out",
        ),
        ("if header :matches \"Subject\" [\"*v?rsi?n*\"] { fileinto \"${2}${3}\"; }", "eo"),
        (
            "if header :matches \"Subject\" \"*\" {} if header :matches \"Subject\" \"x*\" {} fileinto \"${0}\";",
            "[acme-users] [fwd] version 1.0 is out",
        ),
        (
            "if anyof (header :matches \"X-Mood\" \"t*\", header :matches \"X-Mood\" \"o*\") { fileinto \"${1}\"; }",
            "wo",
        ),
        ("set \"x\" \"${Subject}\"; if string :is \"${x}\" \"\" { fileinto \"empty\"; }", "empty"),
        ("if string :matches \"ada@example.net\" \"*@*\" { fileinto \"${2}\"; }", "example.net"),
        ("set \"a\" \"${b\"; set \"b\" \"}\"; fileinto \"${a}${b}\";", "${b}"),
    ] {
        let script = format!("require [\"variables\", \"fileinto\"]; {commands}");
        assert_eq!(actions(&script, NOTE), format!("fileinto {expected}"), "{commands}");
    }
}

#[test]
fn values_are_compared_and_counted() {
    let require = "\"relational\", \"comparator-i;ascii-numeric\", \"variables\", \"index\"";
    for (test, expected) in [
        ("header :value \"lt\" :comparator \"i;ascii-numeric\" \"x-priority\" \"10\"", true),
        ("header :value \"lt\" \"x-priority\" \"10\"", false),
        ("header :value \"ge\" \"x-mood\" \"two\"", true),
        ("header :value \"gt\" \"x-mood\" \"two\"", false),
        ("header :count \"eq\" :comparator \"i;ascii-numeric\" \"x-mood\" \"3\"", true),
        ("header :count \"ne\" :comparator \"i;ascii-numeric\" [\"x-mood\", \"received\"] \"5\"", false),
        ("header :count \"eq\" :comparator \"i;ascii-numeric\" \"x-missing\" \"0\"", true),
        ("address :count \"ge\" :comparator \"i;ascii-numeric\" [\"to\", \"from\"] \"2\"", true),
        ("string :count \"eq\" :comparator \"i;ascii-numeric\" [\"a\", \"\", \"b\"] \"2\"", true),
        ("header :index 2 \"x-mood\" \"two\"", true),
        ("header :index 1 :last \"x-mood\" \"three\"", true),
        ("header :index 4 \"x-mood\" \"three\"", false),
        ("header :index 2 :contains \"received\" \"x.example\"", true),
        ("address :index 1 \"to\" \"bob@example.org\"", true),
    ] {
        assert_eq!(holds(require, test, NOTE), expected, "{test}");
    }
}

#[test]
fn flags_are_set_added_removed_and_looked_at() {
    for (commands, expected) in [
        ("setflag \"\\\\Seen \\\\seen junk\";", "implicit [\\Seen junk]"),
        ("addflag [\"a\", \"b a\"]; removeflag \"A\"; keep;", "keep [b]"),
        ("addflag \"\\\\Recent\"; addflag \"bad(flag\"; keep;", "keep"),
        ("keep :flags \"a\";", "keep [a]"),
        ("setflag \"a\"; fileinto :flags \"b\" \"M\"; fileinto \"N\";", "fileinto M [b]; fileinto N [a]"),
        ("setflag \"v\" \"x y\"; addflag \"v\" \"z\"; keep :flags \"${v}\";", "keep [x y z]"),
        ("setflag \"A B\"; if hasflag \"b\" { keep; }", "keep [A B]"),
        ("setflag \"A B\"; if hasflag :is \"c b\" { keep; }", "keep [A B]"),
        ("setflag \"v\" \"NonJunk forward\"; if hasflag :contains \"v\" \"label ward\" { keep; }", "keep"),
        (
            "setflag \"v\" \"a b\"; if hasflag :count \"ge\" :comparator \"i;ascii-numeric\" \"v\" \"2\" { keep; }",
            "keep",
        ),
        ("setflag \"a\"; if hasflag :matches \"?\" { discard; }", "discard"),
    ] {
        let script = format!(
            "require [\"imap4flags\", \"fileinto\", \"variables\", \"relational\", \"comparator-i;ascii-numeric\"]; {commands}"
        );
        assert_eq!(actions(&script, NOTE), expected, "{commands}");
    }
}

#[test]
fn bodies_are_looked_at_raw_decoded_and_as_text() {
    for (test, expected) in [
        ("body :raw :contains \"Caf=E9\"", true),
        ("body :contains \"caf\u{e9} is\"", true),
        ("body :text :contains \"Hello world\"", true),
        ("body :content \"text\" :contains \"<b>wor\"", true),
        ("body :content \"text/plain\" :contains \"wor\"", false),
        ("body :content [\"text/html\", \"image\"] :contains \"wor\"", true),
        ("body :content \"multipart\" :contains \"before\"", true),
        ("body :content \"multipart/mixed\" :contains \"after\"", true),
        ("body :content \"text/\" :contains \"\"", false),
        ("body :content \"\" :contains \"open\"", true),
    ] {
        assert_eq!(holds("\"body\"", test, NOTE), expected, "{test}");
    }
}

#[test]
fn dates_are_taken_apart() {
    for (test, expected) in [
        ("date \"date\" \"date\" \"2026-11-26\"", true),
        ("date :originalzone \"date\" \"hour\" \"04\"", true),
        ("date :zone \"-0500\" \"date\" \"std11\" \"Wed, 25 Nov 2026 22:30:13 -0500\"", true),
        ("date :index 2 \"received\" \"minute\" \"29\"", true),
        ("date :index 1 :last :originalzone \"received\" \"time\" \"23:29:00\"", true),
        ("date :value \"gt\" \"date\" \"weekday\" \"3\"", true),
        ("date \"x-mood\" \"year\" \"2026\"", false),
        ("currentdate :value \"ge\" \"iso8601\" \"2026-11-26T04:30:13+01:00\"", true),
        ("currentdate :zone \"+0000\" \"hour\" \"03\"", true),
        ("currentdate :is \"weekday\" [\"0\", \"6\"]", false),
    ] {
        assert_eq!(holds("\"date\", \"relational\", \"index\"", test, NOTE), expected, "{test}");
    }
}

#[test]
fn surroundings_are_known_or_not() {
    for (test, expected) in [
        ("environment \"domain\" \"example.org\"", true),
        ("environment :contains \"name\" \"scrin\"", true),
        ("environment :matches \"location\" \"*\"", false),
        ("environment \"remote-ip\" \"192.0.2.7\"", true),
    ] {
        assert_eq!(holds("\"environment\"", test, NOTE), expected, "{test}");
    }
}

#[test]
fn regular_expressions_match_and_keep_their_groups() {
    for (commands, expected) in [
        (
            "if header :regex \"subject\" \"version ([0-9]+)\\\\.([0-9]+)\" { fileinto \"v${1}-${2}\"; }",
            "fileinto v1-0",
        ),
        ("if header :regex \"subject\" \"^VERSION\" { fileinto \"x\"; }", "implicit"),
        ("if header :regex :comparator \"i;octet\" \"x-mood\" \"^T\" { discard; }", "implicit"),
        (
            "if header :regex \"x-mood\" [\"^four$\", \"^[[:alpha:]]{5}$\"] { fileinto \"${0}\"; }",
            "fileinto three",
        ),
        ("set :quoteregex \"q\" \"1.0\"; if string :regex \"1x0\" \"^${q}$\" { discard; }", "implicit"),
        (
            "set \"q\" \"(\"; if string :regex \"x\" \"${q}\" { discard; }",
            "error line 1, column 58: ( is not a regular expression",
        ),
    ] {
        let script = format!("require [\"regex\", \"variables\", \"fileinto\"]; {commands}");
        assert_eq!(actions(&script, NOTE), expected, "{commands}");
    }
}

#[test]
fn headers_are_edited_and_later_commands_see_it() {
    let script = "require [\"editheader\", \"fileinto\", \"copy\"]; \
        fileinto :copy \"before\"; addheader \"X-Mood\" \"zero\"; addheader :last \"X-End\" \"1\"; \
        deleteheader :index 1 :last \"x-mood\"; deleteheader :matches \"X-Mood\" \"t*\"; deleteheader \"Received\"; \
        if allof (header \"x-mood\" \"zero\", not header \"x-mood\" [\"two\", \"three\"], exists \"received\") \
        { fileinto \"after\"; }";
    let outcome = run(script, NOTE);
    assert_eq!(shown(&outcome), "fileinto before; fileinto after");
    let add =
        |name: &str, value: &str, last| HeaderEdit::Add { name: name.into(), value: value.into(), last };
    // The fields are numbered as they stand: X-Mood four times from 0, 6, 7 and 8 on.
    let expected = [
        add("X-Mood", "zero", false),
        add("X-End", "1", true),
        HeaderEdit::Delete { index: 8 },
        HeaderEdit::Delete { index: 7 },
    ];
    assert_eq!(outcome.header_edits, expected);
    let edits: Vec<usize> = outcome
        .actions
        .iter()
        .map(|action| match action {
            Action::FileInto { edits, .. } => *edits,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(edits, [0, 4]);
    let outcome = run(
        "require [\"editheader\", \"variables\"]; set \"v\" \"a\r\nBcc: x\"; addheader \"X-A\" \"${v}\";",
        NOTE,
    );
    assert_eq!(outcome.header_edits, [add("X-A", "a Bcc: x", false)]);
}

#[test]
fn refusals_go_with_nothing_else() {
    for (commands, expected) in [
        ("reject \"no\";", "reject no"),
        ("ereject \"no\";", "ereject no"),
        ("reject \"no\"; discard;", "reject no"),
        ("keep; reject \"no\";", "error \"reject\" cannot be done together with \"keep\""),
        ("reject \"no\"; fileinto \"A\";", "error \"fileinto\" cannot be done together with \"reject\""),
        ("reject \"a\"; ereject \"b\";", "error \"ereject\" cannot be done together with \"reject\""),
    ] {
        let script = format!("require [\"reject\", \"ereject\", \"fileinto\"]; {commands}");
        let found = actions(&script, NOTE);
        // Without the place.
        let found =
            found.split_once(": ").map_or_else(|| found.clone(), |(_, fault)| format!("error {fault}"));
        assert_eq!(found, expected, "{commands}");
    }
}

struct House;

impl Host for House {
    fn mailbox_exists(&self, name: &str) -> bool {
        name == "INBOX/Old"
    }

    fn has_special_use(&self, mailbox: Option<&str>, special_use: &str) -> bool {
        special_use == "\\Junk" && mailbox.is_none_or(|mailbox| mailbox == "Spam")
    }

    fn mailbox_id_exists(&self, id: &str) -> bool {
        id == "F1"
    }

    fn script(&self, location: Location, name: &str) -> Result<Option<Arc<Script>>, String> {
        let source = match (location, name) {
            (Location::Personal, "flags") => {
                "require [\"imap4flags\", \"include\"]; addflag \"inner\"; return; addflag \"no\";"
            }
            (Location::Global, "Stop") => "discard; stop;",
            (Location::Personal, "loop") => "require \"include\"; include \"loop\";",
            (Location::Personal, "shared") => {
                "require [\"include\", \"variables\"]; global \"a\"; set \"a\" \"${a}2\"; set \"global.c\" \"3\"; set \"own\" \"x\";"
            }
            (Location::Personal, "wrong") => {
                return Err("line 1, column 1: there is no command \"x\"".to_owned());
            }
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(compile(source))))
    }

    fn was_seen(&self, key: &str) -> bool {
        let known = run("require \"duplicate\"; if duplicate :uniqueid \"old\" {}", NOTE);
        known.seen[0].key == key
    }
}

#[test]
fn scripts_include_each_other() {
    for (commands, expected) in [
        ("include \"flags\"; addflag \"outer\";", "implicit [inner outer]"),
        ("include \"flags\"; include :once \"flags\"; setflag \"x\";", "implicit [x]"),
        ("include :global \"Stop\"; keep;", "discard"),
        (
            "include :global \"stop\";",
            "error line 1, column 61: the script \"stop\" cannot be included: there is no such script",
        ),
        ("include :optional \"missing\"; discard;", "discard"),
        (
            "include \"loop\";",
            "error line 1, column 20: the script \"loop\" cannot be included: it would include itself",
        ),
        (
            "include \"wrong\";",
            "error line 1, column 61: the script \"wrong\" cannot be included: line 1, column 1: there is no command \"x\"",
        ),
        (
            "global \"a\"; set \"a\" \"1\"; include \"shared\"; fileinto \"${a}-${global.c}-${own}\";",
            "fileinto 12-3-",
        ),
        ("return; discard;", "implicit"),
    ] {
        let script =
            format!("require [\"include\", \"imap4flags\", \"variables\", \"fileinto\"]; {commands}");
        assert_eq!(shown(&outcome(&script, NOTE, &delivery(), &House)), expected, "{commands}");
    }
}

#[test]
fn mailboxes_are_asked_for() {
    let require = "require [\"mailbox\", \"special-use\", \"mailboxid\", \"fileinto\", \"copy\"];";
    for (commands, expected) in [
        ("if mailboxexists \"inbox/Old\" { discard; }", "discard"),
        ("if mailboxexists [\"INBOX/Old\", \"New\"] { discard; }", "implicit"),
        ("if specialuse_exists \"\\\\Junk\" { discard; }", "discard"),
        ("if specialuse_exists \"Spam\" [\"\\\\Junk\"] { discard; }", "discard"),
        ("if specialuse_exists \"Other\" [\"\\\\Junk\"] { discard; }", "implicit"),
        ("if mailboxidexists \"F1\" { discard; }", "discard"),
        ("if mailboxidexists [\"F1\", \"F2\"] { discard; }", "implicit"),
        ("fileinto :create \"New\";", "fileinto New create"),
        ("fileinto :specialuse \"\\\\Junk\" \"Spam\";", "fileinto Spam use=\\Junk"),
        ("fileinto :mailboxid \"F1\" \"Spam\";", "fileinto Spam id=F1"),
    ] {
        let script = format!("{require} {commands}");
        assert_eq!(shown(&outcome(&script, NOTE, &delivery(), &House)), expected, "{commands}");
    }
}

#[test]
fn duplicates_are_found_and_remembered() {
    let script = "require [\"duplicate\", \"variables\"]; if duplicate :uniqueid \"old\" { discard; }";
    let found = outcome(script, NOTE, &delivery(), &House);
    assert_eq!((shown(&found).as_str(), found.seen.len()), ("discard", 0));
    let script = "require \"duplicate\"; if duplicate :uniqueid \"old\" :last :seconds 60 { discard; }";
    let found = outcome(script, NOTE, &delivery(), &House);
    assert_eq!((shown(&found).as_str(), found.seen[0].period_seconds), ("discard", 60));
    let script =
        "require \"duplicate\"; if anyof (duplicate, duplicate, duplicate :handle \"h\") { discard; }";
    let found = outcome(script, NOTE, &delivery(), &House);
    assert_eq!((shown(&found).as_str(), found.seen.len()), ("implicit", 2));
    assert_ne!(found.seen[0].key, found.seen[1].key);
    let found = run("require \"duplicate\"; if duplicate :header \"X-Missing\" { discard; }", NOTE);
    assert_eq!((shown(&found).as_str(), found.seen.len()), ("implicit", 0));
}

#[test]
fn what_is_not_there_may_be_asked_for() {
    let script = "require \"ihave\"; if ihave [\"fileinto\", \"x-new\"] { fileinto \"A\"; frobnicate :hard \"x\"; } \
        elsif ihave \"fileinto\" { fileinto \"B\"; } else { error \"nothing works\"; }";
    assert_eq!(actions(script, NOTE), "fileinto B");
    let script = "require \"ihave\"; if not ihave \"x-new\" { error \"needs x-new\"; }";
    assert_eq!(actions(script, NOTE), "error line 1, column 41: the script ends itself: needs x-new");
    let script = "require \"ihave\"; frobnicate;";
    assert_eq!(actions(script, NOTE), "error line 1, column 18: there is no command \"frobnicate\"");
}

#[test]
fn notifications_go_by_mail() {
    for (commands, expected) in [
        (
            "notify \"mailto:a@b.example\";",
            "notify a@b.example 2 [acme-users] [fwd] version 1.0 is out; implicit",
        ),
        (
            "notify :importance \"1\" :message \"New mail\" \"mailto:a@b.example,c@d.example?subject=x\";",
            "notify a@b.example,c@d.example 1 New mail; implicit",
        ),
        ("if valid_notify_method [\"mailto:a@b.example\", \"xmpp:a@b.example\"] { discard; }", "implicit"),
        ("if notify_method_capability \"mailto:a@b.example\" \"online\" \"maybe\" { discard; }", "discard"),
        ("set :encodeurl \"u\" \"a b&c\u{e9}\"; fileinto \"${u}\";", "fileinto a%20b%26c%C3%A9"),
    ] {
        let script = format!("require [\"enotify\", \"variables\", \"fileinto\"]; {commands}");
        assert_eq!(actions(&script, NOTE), expected, "{commands}");
    }
    let automatic = NOTE.replace("X-Priority: 3", "Auto-Submitted: auto-generated");
    assert_eq!(actions("require \"enotify\"; notify \"mailto:a@b.example\";", &automatic), "implicit");
}

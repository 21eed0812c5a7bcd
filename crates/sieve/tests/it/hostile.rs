//! Scripts and messages that are made to do harm.

use proptest::prelude::*;
use scrinium_sieve::{Limits, NoHost, Script};

use crate::kit::{actions, compile, delivery};
use crate::message::TestMessage;

fn compiled(script: &str) -> Result<Script, String> {
    Script::compile(script.as_bytes(), &Limits::default()).map_err(|error| error.fault.to_string())
}

#[test]
fn depth_is_bounded() {
    for (script, is_fine) in [
        ("if true {".repeat(30) + &"}".repeat(30), true),
        ("if true {".repeat(33) + &"}".repeat(33), false),
        ("if true {".repeat(20_000), false),
        (format!("if {} true {{}}", "not ".repeat(30)), true),
        (format!("if {} true {{}}", "not ".repeat(7_000)), false),
        (format!("if {}", "allof (".repeat(30_000)), false),
        ("[".repeat(100_000), false),
        ("(".repeat(100_000), false),
        ("/*".repeat(100_000), false),
    ] {
        assert_eq!(compiled(&script).is_ok(), is_fine, "{}", &script[..40]);
    }
}

#[test]
fn sizes_are_bounded() {
    let long = "x".repeat(65_537);
    for script in [
        "keep;".repeat(100_000),
        "keep;".repeat(9_000),
        format!("if header \"a\" \"{long}\" {{}}"),
        format!("require \"reject\"; reject text:\n{long}\n.\n;"),
        format!("if header \"a\" [{}\"a\"] {{}}", "\"a\",".repeat(1_100)),
        format!("keep {};", "\"a\"".repeat(1_100)),
        format!(
            "require \"variables\"; {}",
            (0..129).map(|n| format!("set \"v{n}\" \"\";")).collect::<String>()
        ),
        format!("require \"regex\"; if header :regex \"a\" \"{}\" {{}}", "a".repeat(1_025)),
        format!("require \"regex\"; if header :regex \"a\" [{}\"a\"] {{}}", "\"a\",".repeat(64)),
        "require \"regex\"; if header :regex \"a\" \"((((a{50}){50}){50}){50}){50}\" {}".to_owned(),
        format!("require \"regex\"; if header :regex \"a\" \"{}\" {{}}", "(".repeat(1_000)),
        format!("if size :over {} {{}}", "9".repeat(100_000)),
    ] {
        assert!(compiled(&script).is_err(), "{}", &script[..60]);
    }
}

#[test]
fn a_variable_that_doubles_ends_at_its_limit() {
    let doubling = "set \"a\" \"${a}${a}\";".repeat(200);
    let script = format!(
        "require [\"variables\", \"fileinto\"]; set \"a\" \"é\"; {doubling} set :length \"n\" \"${{a}}\"; fileinto \"${{n}}\";"
    );
    assert_eq!(actions(&script, "Subject: x\n\n"), "fileinto 4096");
}

#[test]
fn work_is_bounded() {
    let body = "a".repeat(200_000);
    let message = format!("Subject: {}\n\n{body}\n", "a".repeat(60_000));
    // Wildcards that come near at each place.
    let near = format!("{}?b", "a".repeat(30_000));
    let glob = format!("require \"body\"; if body :raw :matches \"*{near}*\" {{ discard; }}");
    let many = "if body :raw :contains \"ab\" {}".repeat(200);
    let many = format!("require \"body\"; {many}");
    let steps = "if not not not false {}".repeat(1_000);
    let limits = Limits { work_bytes: 4_000_000, steps: 4_999, ..Limits::default() };
    let source = TestMessage::new(&message);
    for script in [glob, many, steps] {
        let outcome = compile(&script).run(&source, &delivery(), &NoHost, &limits);
        let error = outcome.error.unwrap_or_else(|| panic!("{}", &script[..60]));
        assert_eq!(error.fault, scrinium_sieve::RunFault::TooMuchWork);
    }
    // What would take for ever where a match goes back.
    let bomb = "require \"regex\"; if header :regex \"subject\" \"^(a+)+$b\" { discard; }";
    assert_eq!(actions(bomb, &message), "implicit");
    let stars = format!("if header :matches \"subject\" \"{}b\" {{ discard; }}", "*a".repeat(1_000));
    assert_eq!(actions(&stars, &message), "implicit");
}

#[test]
fn actions_are_bounded() {
    let redirects: String = (0..6).map(|n| format!("redirect \"a{n}@b.example\";")).collect();
    assert!(actions(&redirects, "a: b\n\n").ends_with("the script makes more than 5 redirects"));
    let files: String = (0..65).map(|n| format!("fileinto \"{n}\";")).collect();
    let files = format!("require \"fileinto\"; {files}");
    assert!(actions(&files, "a: b\n\n").ends_with("the script makes more than 64 actions"));
    let edits = format!("require \"editheader\"; {}", "addheader \"a\" \"b\";".repeat(65));
    assert!(actions(&edits, "a: b\n\n").ends_with("the script makes more than 64 changes of the header"));
    let notes = format!("require \"enotify\"; {}", "notify \"mailto:a@b.example\";".repeat(6));
    assert!(actions(&notes, "a: b\n\n").ends_with("the script makes more than 5 notifications"));
    let flags: String = (0..100).map(|n| format!("f{n} ")).collect();
    let script = format!("require \"imap4flags\"; setflag \"{flags}\";");
    assert_eq!(actions(&script, "a: b\n\n").matches('f').count(), 64);
}

#[test]
fn headers_of_any_size_are_looked_at_within_limits() {
    let fields = "X: 1\n".repeat(50_000);
    let script = "require [\"relational\", \"comparator-i;ascii-numeric\"]; \
        if header :count \"eq\" :comparator \"i;ascii-numeric\" \"x\" \"10000\" { discard; }";
    assert_eq!(actions(script, &format!("{fields}\n")), "discard");
    let addresses = "a@b.example, ".repeat(100_000);
    let script =
        script.replace("header :count", "address :count").replace("\"x\"", "\"to\"").replace("10000", "9000");
    // The field is cut at its limit, which is before that of addresses.
    assert_eq!(actions(&script, &format!("To: {addresses}\n\n")), "implicit");
}

/// Pieces of scripts.
fn pieces() -> impl Strategy<Value = String> {
    let words = vec![
        "require",
        "\"fileinto\"",
        "[\"variables\",\"imap4flags\",\"regex\",\"body\",\"date\",\"vacation\"]",
        ";",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ",",
        "if",
        "elsif",
        "else",
        "not",
        "allof",
        "anyof",
        "true",
        "false",
        "header",
        "address",
        "string",
        "size",
        ":over",
        ":is",
        ":contains",
        ":matches",
        ":regex",
        ":count",
        "\"eq\"",
        "\"subject\"",
        "\"*\"",
        "\"${1}\"",
        "\"${a}\"",
        "\"(a|b)*\"",
        "5",
        "7K",
        "keep",
        "discard",
        "stop",
        "fileinto",
        "redirect",
        "\"a@b.example\"",
        "set",
        "\"a\"",
        "setflag",
        "addflag",
        "vacation",
        ":days",
        "hasflag",
        "body",
        ":raw",
        "date",
        "currentdate",
        "\"year\"",
        "text:\nx\n.\n",
        "/* x */",
        "# x\n",
        "\"",
        "\\",
        "é",
        "exists",
        ":comparator",
        "\"i;octet\"",
        ":lower",
    ];
    prop::collection::vec(prop::sample::select(words), 0..40).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_script_and_message_come_to_something(script in pieces(), message in prop::collection::vec(any::<u8>(), 0..300)) {
        let require = "require [\"fileinto\",\"variables\",\"imap4flags\",\"regex\",\"body\",\"date\",\"vacation\",\"relational\"];";
        for script in [script.clone(), format!("{require}{script}"), format!("{require} if {script} {{ keep; }}")] {
            if let Ok(script) = Script::compile(script.as_bytes(), &Limits::default()) {
                let message = TestMessage::of_bytes(&message);
                let first = script.run(&message, &delivery(), &NoHost, &Limits::default());
                let second = script.run(&message, &delivery(), &NoHost, &Limits::default());
                prop_assert_eq!(&first, &second);
                prop_assert!(first.actions.len() <= Limits::default().actions + 1);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_script_or_an_error(script in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = Script::compile(&script, &Limits::default()) {
            prop_assert!(error.position.line >= 1 && error.position.column >= 1);
        }
    }
}

#[test]
fn a_script_may_be_shared_between_threads() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    is_shared(&compile("keep;"));
}

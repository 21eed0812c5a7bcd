//! The workloads: what they do compared with what was published, what is printed and read again, and what is captured.

use proptest::prelude::*;
use scrinium_lab_script::{COMMANDS, Command, Estimate, Script, Support, Variables, Workload, capture};

fn commands(script: &Script) -> Vec<Command> {
    script.statements.iter().map(|statement| statement.command.clone()).collect()
}

/// What the sources publish of one round, or of one hour.
#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn workloads_do_what_was_published() {
    let per_round: &[(&str, &[(&str, f64)])] = &[
        (
            "r6mail",
            &[
                ("Navigate", 5.0),
                ("Stamp", 2.0),
                ("Delete", 2.0),
                ("Entries", 1.0),
                ("Open", 1.0),
                ("ChangeTo", 1.0),
                // Per 90 minutes, which are six rounds.
                ("Add", 12.0 / 6.0),
                ("SendMessage", 1.0 / 6.0),
                ("Cal Appointment", 1.0 / 6.0),
                ("Cal Invitation", 1.0 / 6.0),
                ("Accept", 1.0 / 6.0),
                ("Lookup", 1.0 / 6.0),
            ],
        ),
        (
            "n8mail",
            &[
                ("Navigate", 5.0),
                ("SendMessageFromColl", 0.5),
                ("MoveToFolder", 1.0),
                ("Delete", 2.0),
                ("ChangeTo", 1.0),
                ("Open", 1.0),
                ("Entries", 1.0),
                // One to one person, and in every other round one to three.
                ("SendMessage", 1.5),
                // Per two hours, which are eight rounds.
                ("Cal Appointment", 1.0 / 8.0),
                ("Cal Invitation", 1.0 / 8.0),
                ("Accept", 1.0 / 8.0),
            ],
        ),
        (
            "shared-database",
            &[("Open", 1.0), ("Entries", 4.0), ("Unread", 1.0), ("Navigate", 3.0), ("Add", 1.0)],
        ),
        (
            "web-mail",
            &[
                ("Open", 1.0),
                ("Navigate", 5.0),
                ("Delete", 1.0),
                ("SendMessage", 1.0 / 6.0),
                ("Cal Appointment", 1.0 / 6.0),
                ("Cal Invitation", 1.0 / 6.0),
                ("Accept", 1.0 / 6.0),
            ],
        ),
    ];
    for (name, wanted) in per_round {
        let workload = Workload::find(name, &Variables::default()).unwrap();
        let estimate = Estimate::of(&workload.script);
        for (command, wanted) in *wanted {
            let found = estimate.commands.iter().find(|found| found.command == *command);
            let per_loop = found.map_or(0.0, |found| found.per_loop);
            assert!((per_loop - wanted).abs() < 1e-9, "{name}: {command} {per_loop} and not {wanted}");
        }
    }
    // Four rounds in an hour; the shared database's round takes 6 to 10 minutes, SMTP and POP3 some 10.
    for (name, minutes) in [
        ("r5mail", 15.0..=15.0),
        ("r6mail", 15.0..=15.0),
        ("n8mail", 15.0..=15.0),
        ("mail-only", 15.0..=15.0),
        ("maildb", 15.0..=15.0),
        ("groupware_a", 15.0..=15.0),
        ("groupware_b", 15.0..=15.0),
        ("web-mail", 15.0..=15.0),
        ("calendar", 15.0..=15.0),
        ("imap", 15.0..=15.0),
        ("shared-database", 6.0..=10.0),
        ("smtp-pop3", 9.5..=10.5),
    ] {
        let workload = Workload::find(name, &Variables::default()).unwrap();
        let round = Estimate::of(&workload.script).one_loop.as_secs_f64() / 60.0;
        assert!(minutes.contains(&round), "{name}: {round} minutes");
    }
}

#[test]
fn every_workload_names_its_source_and_its_choices() {
    let names = Workload::names();
    assert!(names.len() >= 15, "{names:?}");
    for name in names {
        let workload = Workload::find(&name, &Variables::default()).unwrap();
        let header = &workload.script.header;
        assert!(header.title.is_some() && !header.source.is_empty() && !header.choices.is_empty(), "{name}");
    }
}

#[test]
fn the_page_about_workloads_is_up_to_date() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/workloads.md");
    let page = scrinium_lab_script::workloads_markdown();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/reference/workloads.md is out of date; run the test with UPDATE=1 to write it again"
    );
}

#[test]
fn printed_workloads_are_read_again() {
    for name in Workload::names() {
        let workload = Workload::find(&name, &Variables::default()).unwrap();
        let mut variables = Variables::default();
        for name in ["NB_MAIL_SAVE_MESSAGE", "NormalMessageSize"] {
            variables.set(name, workload.variables.get(name).unwrap_or_default());
        }
        let printed = workload.script.to_string();
        let (again, _) = Script::parse(&printed, &variables)
            .unwrap_or_else(|errors| panic!("{name}\n{printed}\n{errors}"));
        assert_eq!(commands(&again), commands(&workload.script), "{name}\n{printed}");
    }
}

/// A line of the language as somebody may write it.
fn line() -> impl Strategy<Value = String> {
    let runs: Vec<&str> =
        COMMANDS.iter().filter(|info| info.support == Support::Runs).map(|info| info.name).collect();
    let word = prop_oneof![
        3 => "[1-9][0-9]{0,2}",
        1 => "\"[a-z $!\\\\#;|]{0,9}(\\[#\\])?(\\[user\\])?\"",
        1 => Just("profile".to_owned()),
        1 => Just("10:1|200:3".to_owned()),
        1 => Just("NEXT_UNREAD|CIRCULAR".to_owned()),
        1 => Just("Appointment".to_owned()),
        1 => Just("(a,b c,d)".to_owned()),
    ];
    prop_oneof![
        6 => (proptest::sample::select(runs), prop::collection::vec(word, 0..4))
            .prop_map(|(name, words)| format!("{name} {}", words.join(" "))),
        1 => "Pause [0-9]{1,4}(\\.[0-9]{1,3})?(sec|min)?",
        1 => "@Chance (100|[0-9]{1,2}(\\.[0-9]{1,4})?)\nClose\n(@Else\nDrop\n)?@EndIf",
        1 => "@Nth [1-9]\n(@If 1\nClose\n@Else\n@EndIf\n)?@EndIf",
        1 => "If [01] NewMail\\(,[1-9],[1-9]\\)",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Lines that are accepted are printed so that they are read as the same commands.
    #[test]
    fn what_is_printed_is_read_as_the_same(lines in prop::collection::vec(line(), 1..9)) {
        let none = Variables::default();
        let right: Vec<String> = lines.into_iter().filter(|line| Script::parse(line, &none).is_ok()).collect();
        if let Ok((script, _)) = Script::parse(&right.join("\n"), &none) {
            let printed = script.to_string();
            let again = Script::parse(&printed, &none);
            prop_assert!(again.is_ok(), "{}\n{:?}", printed, again);
            prop_assert_eq!(commands(&again.unwrap().0), commands(&script), "{}", printed);
        }
    }
}

/// A log as a server writes it, of users who do the same round again and again: what is captured does as much in an hour.
#[test]
fn a_captured_workload_does_as_much_in_an_hour_as_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("operations.log");
    let mut lines = vec!["# scrinium-operation-log/1 1790000000000".to_owned()];
    // Three minutes a round: open, five documents, and in every third round a message, in every second an update.
    for user in 0..7_u64 {
        let mut at = 1_790_000_000_000 + user * 1000;
        let mut say = |pause_ms: u64, operation: &str, kind: &str, bytes: u64, at: &mut u64| {
            *at += pause_ms;
            lines.push(format!("{at} {user:016x} {operation} {kind} 00000000000000aa {bytes} 3 200"));
        };
        for round in 0..60_u64 {
            say(60_000, "OPEN_DB", "own", 300, &mut at);
            say(20, "OPEN_COLLECTION", "own", 4000, &mut at);
            for _ in 0..5 {
                say(15_000 + 1000 * (round % 10), "OPEN_NOTE", "own", 2000, &mut at);
            }
            if round.is_multiple_of(3) {
                say(20_000, "MAIL_DEPOSIT", "box", 1500 + 1000 * (round % 2), &mut at);
            }
            if round.is_multiple_of(2) {
                say(9000, "OPEN_NOTE", "own", 2000, &mut at);
                say(30, "UPDATE_NOTE", "own", 2000, &mut at);
            }
        }
        say(0, "OTHER", "-", 0, &mut at);
    }
    lines.push("what is this".to_owned());
    std::fs::write(&path, lines.join("\n")).unwrap();
    let captured = capture::capture(&path, "Office").unwrap();
    assert_eq!(
        (captured.users, captured.unreadable, captured.left_out.as_slice()),
        (7, 1, &[("OTHER".to_owned(), 7)][..])
    );
    let mut given = Variables::default();
    for name in ["MailServer", "MailTemplate"] {
        given.set(name, "");
    }
    let (script, _) = Script::parse(&captured.script, &given)
        .unwrap_or_else(|errors| panic!("{}\n{errors}", captured.script));
    let estimate = Estimate::of(&script);
    // A round's mean: 60 s, 20 ms, 5 of 19.5 s, a third of 20 s, half of 9 s.
    let round_s = 60.0 + 0.02 + 5.0 * 19.5 + 20.0 / 3.0 + 4.5 + 0.015;
    let per_hour = 3600.0 / round_s;
    let wanted =
        [("ChangeTo", 1.0), ("Open", 1.0), ("Navigate", 5.0), ("SendMessage", 1.0 / 3.0), ("Update", 0.5)];
    for (name, count) in wanted {
        let found = estimate.commands.iter().find(|command| command.command == name).unwrap().per_hour;
        let wanted = count * per_hour;
        assert!(
            (found - wanted).abs() < 0.02 * wanted,
            "{name}: {found} and not {wanted}\n{}",
            captured.script
        );
    }
    assert!(captured.script.contains("SendMessage 1000:5|2000:5"), "{}", captured.script);
}

#[test]
fn a_log_that_is_none_or_says_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("operations.log");
    for (text, said) in [
        ("hello\n", "is no operation log"),
        ("# scrinium-operation-log/1 5\n", "holds too little"),
        (
            "# scrinium-operation-log/1 5\n6 zz OPEN_DB own 1 1 1 200\n\u{fffd}\n7 1 OPEN_DB own 1 1 1 200 9\n",
            "holds too little",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let refused = capture::capture(&path, "x").unwrap_err().to_string();
        assert!(refused.contains(said), "{text:?}: {refused}");
    }
    assert!(capture::capture(&folder.path().join("none"), "x").is_err());
}

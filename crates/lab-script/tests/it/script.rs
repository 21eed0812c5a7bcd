//! The script language: what is read, what is refused and how, and that nothing makes the parser fall over.

use std::time::Duration;

use proptest::prelude::*;
use scrinium_lab_script::{
    COMMANDS, Command, Estimate, LoopName, MessageSize, Script, Sending, Support, TimeRange, Variables,
    Workload, find_command,
};

fn variables() -> Variables {
    let mut variables = Variables::default();
    for (name, value) in [("MailServer", "host"), ("NormalMessageSize", "10000"), ("Nth", "6"), ("Off", "0")]
    {
        variables.set(name, value);
    }
    variables
}

fn commands(text: &str) -> Vec<Command> {
    let (script, _) = Script::parse(text, &variables()).unwrap();
    script.statements.into_iter().map(|statement| statement.command).collect()
}

fn seconds(low: f64, high: f64) -> TimeRange {
    TimeRange { low: Duration::from_secs_f64(low), high: Duration::from_secs_f64(high) }
}

/// Each script of the golden file with what is wrong with it. `UPDATE_GOLDEN=1` writes the file again.
#[test]
fn errors_name_line_and_word() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/script-errors.txt");
    let golden = std::fs::read_to_string(path).unwrap();
    let mut now = String::new();
    for case in golden.split("=====\n").filter(|case| !case.trim().is_empty()) {
        let (script, _) = case.split_once("-----\n").unwrap_or((case, ""));
        let errors = Script::parse(script, &variables()).unwrap_err();
        now.push_str(&format!("=====\n{script}-----\n{errors}\n"));
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    assert_eq!(now, golden);
}

#[test]
fn times_are_read_in_all_their_forms() {
    let script =
        "pause 500\nPause 5000-10000\npause 0 - 180000\nPAUSE 10-20sec\nPause 8-12min\nPause 1.5 hours";
    let wanted = [(0.5, 0.5), (5.0, 10.0), (0.0, 180.0), (10.0, 20.0), (480.0, 720.0), (5400.0, 5400.0)];
    let wanted: Vec<Command> =
        wanted.iter().map(|(low, high)| Command::Pause(seconds(*low, *high))).collect();
    assert_eq!(commands(script), wanted);
}

#[test]
fn variables_stand_in_words_and_quotes() {
    let all = commands(
        "ChangeTo \"[mailserver]!!mail[#].nsf\" [Off] -keepopen **a comment** \nSendMessage [NormalMessageSize] 3 [NTH]\nSendMessage profile 1 1",
    );
    let [Command::ChangeTo { database, keep_open: true, .. }, memo, profile] = all.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(database.of(7, "user0007"), "host!!mail7.nsf");
    let size = MessageSize::Bytes { body: 10_000, attachment: 0 };
    assert_eq!(*memo, Command::SendMessage { size, sending: Sending { recipients: 3, nth: 6, kept: false } });
    let sending = Sending { recipients: 1, nth: 1, kept: false };
    assert_eq!(*profile, Command::SendMessage { size: MessageSize::Profile, sending });
}

#[test]
fn conditions_and_loops_know_where_they_jump() {
    let all = commands(
        "@If [Off]\nClose\n@Else\nDrop\n@EndIf\nBeginLoop\nBeginLoop2\nClose\nRewind2 5\nIf [Off] Drop\nRewind",
    );
    assert_eq!(all[0], Command::SkipUnless { holds: false, target: 3 });
    assert_eq!(all[2], Command::Jump { target: 4 });
    assert_eq!(all[7], Command::Rewind { name: LoopName::Second, times: Some(5), target: 6 });
    assert_eq!(all[8], Command::SkipUnless { holds: false, target: 10 });
    assert_eq!(all[10], Command::Rewind { name: LoopName::First, times: None, target: 5 });
}

#[test]
fn known_commands_are_told_apart_from_those_that_run() {
    let (script, _) = Script::parse("LDAPLookup a b c\nClose\nGetCollation", &variables()).unwrap();
    assert_eq!(script.cannot_run().collect::<Vec<_>>(), [(1, "LDAPLookup"), (3, "GetCollation")]);
    let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
    let mut sorted = names.clone();
    sorted.sort_by_key(|name| name.to_lowercase());
    assert_eq!(names, sorted, "the table of commands is in order");
    assert!(COMMANDS.iter().filter(|command| command.support != Support::Known).count() >= 43);
}

/// Remarks as they stand in published scripts, and around commands.
#[test]
fn remarks_are_read_in_every_form_that_is_published() {
    let script = "\u{feff}**Two asterisks on either side**\n*One, to the end of the line ** and more\n* One *\n\
        ***** A heading *****\n****************\nClose **behind a command**\n**before one** Drop\n\
        **Over several lines, as a page breaks them: the settings of\n\
        NOTES.INI stand in brackets, as [MailServer], and [#] is the\n\
        number of the user.**\nDBClose\n  *indented\n\t**not closed\nClose\n**not closed either\nDrop ** nor here\n**three***";
    let names: Vec<String> = commands(script).iter().map(ToString::to_string).collect();
    assert_eq!(names, ["Close", "Drop", "DBClose", "Close", "Drop"]);
    // What is no remark stays a mistake, and what closes nothing swallows no command.
    assert!(Script::parse("Close *", &variables()).is_err());
    assert_eq!(commands("**open\nClose\nDrop\n").len(), 2);
    let (named, _) =
        Script::parse("**Workload: Mine**\n*Workload: not a header\nClose", &variables()).unwrap();
    assert_eq!(named.header.name.as_deref(), Some("Mine"));
    // A script of comments alone, none of them closed, is read in no time.
    assert!(Script::parse(&"**open\n".repeat(100_000), &variables()).is_err());
}

/// The list of Server.Load's commands in the administration help of Domino 12.0.2.
#[test]
fn every_documented_command_is_known() {
    let documented = "@Else @EndIf @If Add BeginCrit BeginLoop BeginLoop2 Break Cal ChangeTo CheckForNewMail Close \
        CloseColl ColFindKey ColorProfileAdd ColorProfileDelete Console DBClose DbDelete DBGetModNoteInfo Delete \
        DeleteFromColl Drop EndCrit Entries ErrorDelay FindByKey GetAll GetAllFolderChangesRqst GetCollation If \
        ImailCloseMailbox ImailFetchEntry ImailFetchOld ImailGetLastEntries ImailGetNewMail ImailHelp \
        ImailListMailboxes ImailLogin ImailLogout ImailOpenMailbox ImailPostMessage ImailSetSeen Index LDAPLookup \
        Lookup MailRuleDeleteAll NABRetrievePOP3Mail Navigate NewMail NewMailPoll NewReplicateDB Open OpenColl Pause \
        Populate ProfileClose ProfileOpen ProfileUpdate Quit Read Replicate RetrievePOP3Mail Rewind Rewind2 \
        SendMessage SendMessageFromColl SendSMTPMessage SessionsClose SessionsOpen SetCalProfile SetCollation Stamp \
        Unread Update WebGet";
    let unknown: Vec<&str> =
        documented.split_whitespace().filter(|name| find_command(name).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn attachments_are_sizes_or_files() {
    let size = |text: &str, given: &Variables| match Script::parse(text, given)
        .unwrap()
        .0
        .statements
        .remove(0)
        .command
    {
        Command::SendMessage { size: MessageSize::Bytes { body, attachment }, sending } => {
            (body, attachment, sending.recipients)
        }
        other => panic!("{other:?}"),
    };
    let mut given = variables();
    given.set("File", "plan.doc");
    given.set("None", "");
    assert_eq!(size("SendMessage 100 2 1 700", &given), (100, 700, 2));
    assert_eq!(size("SendMessage 100 2 1 [Nth]", &given), (100, 6, 2));
    assert_eq!(size("SendMessage 100 2 1 [None]", &given), (100, 0, 2));
    assert_eq!(size("SendMessage 100 2 1 \"c:\\my path\\a[#].doc\"", &given), (100, 50_000, 2));
    assert_eq!(size("SendMessage 100 2 1 [File] N8", &given), (100, 50_000, 2));
    given.set("AttachmentBytes", "12");
    assert_eq!(size("SendMessage 100 2 1 [File]", &given), (100, 12, 2));
    for wrong in
        ["SendMessage 100 2 1 -5", "SendMessage 100 2 1 99999999999", "SendMessage profile 2 1 plan.doc"]
    {
        assert!(Script::parse(wrong, &given).is_err(), "{wrong}");
    }
}

#[test]
fn r5mail_does_what_its_sources_say() {
    let workload = Workload::find("R5Mail", &Variables::default()).unwrap();
    assert_eq!(workload.script.cannot_run().count(), 0);
    assert_eq!(workload.variables.get("nummailnotesperuser"), Some("100"));
    let estimate = Estimate::of(&workload.script);
    assert_eq!(estimate.one_loop, Duration::from_secs(15 * 60));
    let per_loop = |name: &str| {
        let found = estimate.commands.iter().find(|command| command.command == name);
        found.map_or(0.0, |command| command.per_loop)
    };
    let robinson = [
        ("Navigate", 5.0),
        ("Stamp", 2.0),
        ("Delete", 1.0),
        ("Add", 1.0),
        ("Entries", 1.0),
        ("ChangeTo", 1.0),
        ("SendMessage", 1.0),
        ("Cal Appointment", 1.0),
        ("Cal Invitation", 1.0),
    ];
    for (name, wanted) in robinson {
        assert_eq!(per_loop(name), wanted, "{name}");
    }
    let mut given = Variables::default();
    given.set("NthIteration", "6");
    let sixth = Estimate::of(&Workload::find("r5mail", &given).unwrap().script);
    let memo = sixth.commands.iter().find(|command| command.command == "SendMessage").unwrap();
    assert!((memo.per_hour - 4.0 / 6.0).abs() < 1e-9);
}

/// The drawn time divided, not another draw: the quantiles of a pause shrink by the speed-up and nothing else.
#[test]
fn pauses_keep_their_distribution_under_speed_up() {
    let range = seconds(240.0, 360.0);
    for speedup in [1.0, 7.0, 900.0] {
        for step in 0..=100 {
            let fraction = f64::from(step) / 100.0;
            let wanted = (240.0 + 120.0 * fraction) / speedup;
            assert!((range.at(fraction, speedup).as_secs_f64() - wanted).abs() < 1e-8);
        }
    }
}

fn word() -> impl Strategy<Value = String> {
    let names: Vec<String> = COMMANDS.iter().map(|command| command.name.to_owned()).collect();
    prop_oneof![
        4 => proptest::sample::select(names),
        1 => Just("[Nth]".to_owned()),
        1 => Just("[nothing]".to_owned()),
        2 => "[0-9]{1,3}(-[0-9]{1,3})?(sec|min)?",
        1 => "[\"*\\[\\]()!$-]{1,4}",
        1 => "\\PC{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_makes_the_parser_panic(text in "\\PC{0,200}(\n\\PC{0,80}){0,4}") {
        drop(Script::parse(&text, &variables()));
    }

    /// Scripts of real words: what is accepted has jumps inside the script, and can be estimated.
    #[test]
    fn accepted_scripts_jump_only_inside(lines in prop::collection::vec(prop::collection::vec(word(), 1..4), 0..12)) {
        let text: Vec<String> = lines.iter().map(|words| words.join(" ")).collect();
        if let Ok((script, _)) = Script::parse(&text.join("\n"), &variables()) {
            for statement in &script.statements {
                match statement.command {
                    Command::Rewind { target, .. } => prop_assert!(target < script.statements.len()),
                    Command::SkipUnless { target, .. } | Command::Jump { target } => {
                        prop_assert!(target <= script.statements.len() && target > 0);
                    }
                    _ => {}
                }
            }
            prop_assert!(Estimate::of(&script).commands.iter().all(|command| command.per_loop.is_finite()));
        }
    }
}

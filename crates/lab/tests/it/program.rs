//! The command line: what goes to which output, and the exit codes.

use std::process::{Command, Output};

use crate::fake::{FakeServer, Faults};
use serde_json::{Value, json};

fn lab(folder: &std::path::Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium-lab"));
    command.current_dir(folder).args(arguments).output().unwrap()
}

async fn load(server: &FakeServer, folder: &std::path::Path, more: &[&str]) -> Output {
    let url = server.url();
    // The server's counts are read each second: of one second alone there may be none.
    let mut arguments: Vec<String> =
        ["load", "R5Mail", "--target", &url, "--admin", "admin", "--password", "secret"]
            .iter()
            .chain(&["--users", "6", "--speedup", "900", "--messages-per-user", "8", "--duration", "3s"])
            .chain(&["--ramp-up", "1s", "--ramp-down", "100ms"])
            .chain(more)
            .map(|argument| (*argument).to_owned())
            .collect();
    let folder = folder.to_owned();
    tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter_mut().map(|argument| argument.as_str()).collect();
        lab(&folder, &arguments)
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn data_goes_to_standard_output_and_talk_to_standard_error() {
    let server = FakeServer::start(Faults::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let output = load(&server, folder.path(), &["--json", "--report", "out"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["format"], "scrinium-lab-report/1");
    // The server under test is this process: found by its port, and measured.
    assert_eq!(report["run"]["server_pid"], std::process::id());
    assert!(report["summary"]["resident_bytes"].as_u64().unwrap() > 1_000_000);
    assert!(report["summary"]["log_syncs_per_s"].is_number());
    // As the server counts them: three of four blocks found, two changes each time.
    assert_eq!(
        (&report["summary"]["pool_hits_percent"], &report["summary"]["view_lag_changes"]),
        (&json!(75.0), &json!(2.0))
    );
    let command = report["run"]["command"].as_str().unwrap();
    assert!(command.contains("--password ***") && !command.contains("secret"), "{command}");
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(talk.contains("Trans/Min") && talk.contains("report.html") && !talk.contains('\u{1b}'), "{talk}");
    for name in ["report.html", "report.json", "report.csv"] {
        assert!(folder.path().join("out").join(name).metadata().unwrap().len() > 100, "{name}");
    }
    // A busy machine may starve the driver, which is said by this code.
    assert!(matches!(output.status.code(), Some(0 | 99)), "{talk}");

    let output = load(&server, folder.path(), &["--no-report", "--max-average", "0.001"]).await;
    assert_eq!(output.status.code(), Some(99));
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(
        table.contains("MISSED: average latency") && table.starts_with("R5Mail \u{b7} 6 users"),
        "{table}"
    );
    assert!(!folder.path().join("reports").exists());
}

#[test]
fn scripts_are_checked_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    std::fs::write(folder.path().join("bad.script"), "Pause 5\nOpne $Inbox\n").unwrap();
    std::fs::write(folder.path().join("later.script"), "Pause 5\nLDAPLookup\n").unwrap();

    let listed = lab(folder.path(), &["list"]);
    assert!(text(&listed).contains("R5Mail") && listed.status.success());
    let shown = lab(folder.path(), &["show", "R5Mail", "--set", "NthIteration=6"]);
    assert!(text(&shown).contains("15.00 minutes") && text(&shown).contains("0.67"), "{}", text(&shown));
    let good = lab(folder.path(), &["check", "R5Mail"]);
    assert_eq!((good.status.code(), text(&good).contains("nothing wrong")), (Some(0), true));
    let bad = lab(folder.path(), &["check", "bad.script"]);
    assert_eq!(bad.status.code(), Some(2));
    let said = String::from_utf8_lossy(&bad.stderr).into_owned();
    assert_eq!(
        said,
        "bad.script\nline 2, column 1: \u{201c}Opne\u{201d}: no command has this name; did you mean Open?\n"
    );
    let later = lab(folder.path(), &["check", "later.script"]);
    assert_eq!(later.status.code(), Some(1));
    assert_eq!(
        text(&later),
        "later.script: line 2: LDAPLookup is known, and cannot be run yet: it looks a name up by LDAP\n"
    );

    // A name that is mistyped would change nothing, and nobody would know.
    std::fs::write(folder.path().join("own.script"), "Pause [Thinking]\n").unwrap();
    for (arguments, words) in [
        (vec!["check", "R5Mail", "--set", "NthIteratoin=6"], "did you mean NthIteration?"),
        (
            vec!["show", "R5Mail", "--set", "Nope=1"],
            "r5mail.script has no variable Nope; it has MailServer, ",
        ),
        (
            vec!["load", "r5mail", "--users", "1", "--set", "NumMailNotesPerUsers=1"],
            "did you mean NumMailNotesPerUser?",
        ),
        (
            vec!["check", "own.script", "--set", "Thinking=5", "--set", "Think=5"],
            "did you mean Thinking?; it has Thinking",
        ),
    ] {
        let strange = lab(folder.path(), &arguments);
        let said = String::from_utf8_lossy(&strange.stderr).into_owned();
        assert!(strange.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
    let own = lab(folder.path(), &["check", "own.script", "--set", "thinking=5", "--set", "MailServer=x"]);
    assert_eq!(own.status.code(), Some(0), "{}", String::from_utf8_lossy(&own.stderr));

    let attached = "SendMessage 1000 3 1 c:\\papers\\plan.doc\nSendMessage 1000 1 1 700\n";
    std::fs::write(folder.path().join("attached.script"), attached).unwrap();
    let attached = lab(folder.path(), &["check", "attached.script"]);
    let said = text(&attached);
    assert!(
        attached.status.success()
            && said.starts_with("attached.script: line 1: \u{201c}c:\\papers\\plan.doc\u{201d} is not read"),
        "{said}"
    );
    assert_eq!(said.matches("is not read").count(), 1, "{said}");

    for (arguments, code) in [
        (vec!["load", "NoSuchWorkload"], 2),
        (vec!["load", "R5Mail", "--users", "0"], 2),
        (vec!["load", "R5Mail", "--target", "ftp://localhost"], 2),
        (vec!["load", "later.script"], 2),
        (vec!["load", "R5Mail", "--target", "http://127.0.0.1:9", "--no-report"], 1),
    ] {
        assert_eq!(lab(folder.path(), &arguments).status.code(), Some(code), "{arguments:?}");
    }
}

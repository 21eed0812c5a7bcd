//! The binary as it is typed: what goes to standard output, what to standard error, and the exit codes.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// The binary in `folder`, with no variables of ours.
fn scrinium(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium"));
    command.current_dir(folder).stdin(Stdio::null()).env_clear();
    command
}

fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    told(&scrinium(folder).args(arguments).output().unwrap())
}

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn help_and_version_are_data() {
    let folder = tempfile::tempdir().unwrap();
    let (code, output, talk) = run(folder.path(), &["--version"]);
    assert_eq!((code, output, talk), (0, format!("scrinium {}\n", env!("CARGO_PKG_VERSION")), String::new()));
    let of_laboratory: &[&str] = if cfg!(feature = "lab") { &["demo", "lab", "plan"] } else { &[] };
    let own = ["serve", "import", "person", "group", "console", "advise", "config", "formula"];
    for command in own.iter().chain(of_laboratory) {
        let (code, output, talk) = run(folder.path(), &["--help"]);
        assert!(code == 0 && talk.is_empty() && output.contains(&format!("\n  {command} ")), "{output}");
    }
    for command in ["check", "eval"] {
        let (code, output, talk) = run(folder.path(), &["formula", command, "--help"]);
        assert!(code == 0 && talk.is_empty() && output.contains("\nExamples: scrinium formula "), "{output}");
    }
    let (code, output, talk) = run(folder.path(), &["serv"]);
    assert_eq!((code, output), (2, String::new()));
    assert!(talk.contains("a similar subcommand exists: 'serve'"), "{talk}");
}

/// The server can be built without the laboratory. Its commands are not listed then, and say so.
#[cfg(not(feature = "lab"))]
#[test]
fn a_build_without_the_laboratory_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (_, output, _) = run(folder.path(), &["--help"]);
    for words in [&["lab", "list"][..], &["plan", "--example"], &["demo"]] {
        assert!(!output.contains(&format!("\n  {} ", words[0])), "{output}");
        let (code, _, talk) = run(folder.path(), words);
        assert!(code == 2 && talk.contains("this build has no laboratory"), "{words:?}: {code}, {talk}");
    }
}

/// They ended with 1, as a run that failed does.
#[cfg(feature = "lab")]
#[test]
fn mistakes_in_commands_of_the_laboratory_end_with_2() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("wrong.toml"), "nonsense = 1\n").unwrap();
    for (words, word) in [
        (&["lab", "experiment", "no-such"][..], "transaction-logging"),
        (&["lab", "load", "no-such", "--admin", "ada", "--password", "x"], "r5mail"),
        (&["plan", "wrong.toml"], "wrong.toml"),
    ] {
        let (code, _, talk) = run(folder.path(), words);
        assert!(code == 2 && talk.contains(word), "{words:?}: {code}, {talk}");
    }
}

#[test]
fn the_configuration_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scrinium.toml");
    let nothing = run(folder.path(), &["config", "check"]);
    let keys = scrinium_server::config::keys().count();
    assert_eq!(
        nothing,
        (0, format!("no configuration file: fine; 0 of {keys} keys are set\n"), String::new())
    );

    std::fs::write(&file, "[server]\npool_tasks = 0\nnome = \"x\"\n").unwrap();
    assert_eq!(
        run(folder.path(), &["config", "check"]),
        (
            2,
            String::new(),
            "error: 2 problems\n\
             scrinium.toml:2: server.pool_tasks: 0 is out of bounds: it takes a whole number, 1 to 10000\n\
             scrinium.toml:3: there is no key server.nome; did you mean server.name?\n"
                .to_owned()
        )
    );
    let (code, output, _) = run(folder.path(), &["config", "check", "--json"]);
    let answer: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((code, &answer["ok"], &answer["problems"][1]["line"]), (2, &json!(false), &json!(3)));
    let (code, output, talk) = run(folder.path(), &["serve"]);
    assert!(code == 2 && output.is_empty() && talk.contains("scrinium.toml:2"), "{code} {talk}");

    std::fs::write(&file, "[server]\npool_tasks = 5\n").unwrap();
    let fine = format!("scrinium.toml: fine; 1 of {keys} keys are set\n");
    assert_eq!(run(folder.path(), &["config", "check"]), (0, fine, String::new()));
    std::fs::write(&file, "[submission]\ntls_listen = \"127.0.0.1:465\"\n").unwrap();
    let (code, output, _) = run(folder.path(), &["config", "check"]);
    assert!(
        code == 0
            && output.contains("remark: submission.tls_listen")
            && output.contains("http.tls_certificate")
    );
    std::fs::write(
        &file,
        "[http]\ntls_certificate = \"/nowhere.pem\"\n[submission]\nlisten = \"127.0.0.1:587\"\n",
    )
    .unwrap();
    let (code, _, talk) = run(folder.path(), &["config", "check"]);
    assert!(
        code == 2 && talk.contains("scrinium.toml:2: http.tls_certificate: there is no file /nowhere.pem"),
        "{talk}"
    );
    let (code, _, talk) = run(folder.path(), &["config", "check", "--config", "other.toml"]);
    assert!(
        code == 2 && talk.starts_with("error: cannot read the configuration file other.toml: "),
        "{talk}"
    );
}

#[test]
fn the_configuration_is_dumped_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.toml"), "[mail]\nboxes = 7\n").unwrap();
    let output = scrinium(folder.path())
        .args(["config", "dump", "--changed", "--data-dir", "/elsewhere"])
        .env("SCRINIUM_CONFIG", "mine.toml")
        .env("SCRINIUM_DOCUMENT__MAX_BYTES", "1 MB")
        .output()
        .unwrap();
    let expected = "\
[server]
data_dir = \"/elsewhere\"                  # --data-dir

[document]
max_bytes = \"1 MB\"                       # SCRINIUM_DOCUMENT__MAX_BYTES

[mail]
boxes = 7                                # mine.toml:2
";
    assert_eq!(told(&output), (0, expected.to_owned(), String::new()));

    let (code, output, _) = run(folder.path(), &["config", "explain", "SERVER_POOL_TASKS", "--json"]);
    let answer: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((code, &answer["key"], &answer["value"]), (0, &json!("server.pool_tasks"), &json!(100)));
    let (code, output, talk) = run(folder.path(), &["config", "explain", "poll_tasks"]);
    assert_eq!((code, output), (2, String::new()));
    assert_eq!(talk, "error: there is no key poll_tasks; did you mean server.pool_tasks?\n");
    let (code, output, _) = run(folder.path(), &["config", "default"]);
    assert_eq!((code, output), (0, scrinium_server::config::default_file()));
}

#[test]
fn nobody_reading_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = scrinium(folder.path())
        .args(["config", "default"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let (code, _, talk) = told(&child.wait_with_output().unwrap());
    assert_eq!((code, talk), (0, String::new()));
}

#[test]
fn a_command_for_a_server_that_is_not_there_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (code, output, talk) = run(folder.path(), &["console", "show", "server"]);
    assert_eq!((code, output), (2, String::new()));
    assert!(talk.starts_with("error: no password: set SCRINIUM_ADMIN_PASSWORD"), "{talk}");
    // The port of a listener that is gone again is free.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = scrinium(folder.path())
        .args(["console", "show", "server"])
        .env("SCRINIUM_ADMIN_PASSWORD", "secret")
        .env("SCRINIUM_HTTP__LISTEN", format!("0.0.0.0:{port}"))
        .output()
        .unwrap();
    let (code, output, talk) = told(&output);
    assert_eq!((code, output), (1, String::new()));
    assert!(talk.starts_with(&format!("error: no server answers at http://127.0.0.1:{port}: ")), "{talk}");
}

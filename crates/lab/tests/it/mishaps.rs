//! What goes wrong around a run: disks, folders, servers, passwords, files. Each is reported with what to do about it, by an
//! exit code, and what was measured is shown all the same.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::fake::{FakeServer, Faults};
use crate::mail_server::{MailServer, Security};
use serde_json::Value;

const LAB: &str = env!("CARGO_BIN_EXE_scrinium-lab");

const SMALL: [&str; 9] =
    ["--users", "4", "--messages-per-user", "8", "--speedup", "900", "--ramp-up", "500ms", "--json"];

async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn load(folder: &Path, url: &str, duration: &str, more: &[&str]) -> Command {
    let mut command = Command::new(LAB);
    command.current_dir(folder).args(["load", "R5Mail", "--target", url, "--admin", "admin"]);
    command.args(SMALL).args(["--duration", duration]).args(more);
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_cannot_be_written_is_told_before_anything_is_sent() {
    let server = FakeServer::start(Faults::default()).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    for place in ["notes.txt/report", "notes.txt", "/proc/report"] {
        let more = ["--password", "secret", "--report", place];
        let output = output(load(folder.path(), &server.url(), "1s", &more)).await;
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(place) && said.contains("by --report"), "{said}");
    }
    assert!(server.log().is_empty());
    assert_eq!(std::fs::read_to_string(folder.path().join("notes.txt")).unwrap(), "mine");
    let experiment = Command::new(LAB)
        .args(["experiment", "users", "--quick", "--server-command", "false", "--report", "/proc/report"])
        .output()
        .unwrap();
    assert_eq!(experiment.status.code(), Some(1));
    assert!(said(&experiment).contains("/proc/report"), "{}", said(&experiment));
}

/// A calibration lost a step because a server on a busy machine refused one login of its preparation.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_busy_while_users_are_prepared_is_asked_again() {
    let server = FakeServer::start(Faults { busy: 3, ..Faults::default() }).await;
    let folder = tempfile::tempdir().unwrap();
    let output = output(load(folder.path(), &server.url(), "1s", &["--password", "secret"])).await;
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(server.count("directory"), 4, "{said}");
}

/// A limit of the length of files stands for a disk that is full when the run is over.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_full_disk_does_not_take_is_shown() {
    let server = FakeServer::start(Faults::default()).await;
    let folder = tempfile::tempdir().unwrap();
    for repeat in ["1", "2"] {
        let more = ["--password", "secret", "--report", "out", "--repeat", repeat];
        let words = load(folder.path(), &server.url(), "1s", &more);
        let mut command = Command::new("sh");
        command.current_dir(folder.path()).args(["-c", "trap '' XFSZ; ulimit -f 12; exec \"$@\"", "sh", LAB]);
        command.args(words.get_args());
        let output = output(command).await;
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("cannot write") && said.contains("report.json"), "{said}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["format"], "scrinium-lab-report/1");
        assert!(said.contains("Trans/Min"), "{said}");
    }
    let left = walk(folder.path());
    assert!(left.is_empty(), "{left:?}");
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

/// Of a server on this machine the process is seen to be gone; of one on another machine only that nothing is answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_goes_away_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    for (is_seen, reason) in [(true, "the server's process ended"), (false, "stopped early: ")] {
        let server = FakeServer::start(Faults::default()).await;
        let mut process = Command::new("sleep").arg("3600").spawn().unwrap();
        let pid = if is_seen { process.id() } else { std::process::id() }.to_string();
        let more = ["--password", "secret", "--no-report", "--server-pid", &pid];
        let command = load(folder.path(), &server.url(), "1h", &more);
        let running = tokio::spawn(output(command));
        while server.served().len() < 8 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        server.go_away();
        process.kill().unwrap();
        process.wait().unwrap();
        let output = running.await.unwrap();
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
        let reasons = report["validity"]["reasons"].to_string();
        assert!(output.status.code() == Some(99) && reasons.contains(reason), "{reasons}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_are_told_with_their_options() {
    let server = FakeServer::start(Faults::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let more = ["--password", "secret", "--no-report", "--user-password", "first"];
    output(load(folder.path(), &server.url(), "1s", &more)).await;
    let mail = MailServer::start(Security::Plain, None, <_>::default()).await;
    let imap = format!("imap://127.0.0.1:{}", mail.imap);
    std::fs::write(folder.path().join("read.script"), "ImailLogin\nImailOpenMailbox\n").unwrap();
    let url = server.url();
    let cases: [(&[&str], &str); 4] = [
        (&["R5Mail", "--target", &url, "--admin", "admin", "--password", "guess"], "--admin and --password"),
        (&["R5Mail", "--target", &url], "--admin and --password"),
        (
            &[
                "R5Mail",
                "--target",
                &url,
                "--admin",
                "admin",
                "--password",
                "secret",
                "--user-password",
                "second",
            ],
            "--user-password",
        ),
        (&["read.script", "--target", &imap, "--user-password", "guess"], "--login-name and --user-password"),
    ];
    for (arguments, words) in cases {
        let mut command = Command::new(LAB);
        command.current_dir(folder.path()).arg("load").args(arguments).args(SMALL).arg("--no-report");
        let output = output(command).await;
        let said = said(&output);
        assert!(output.status.code() == Some(1) && said.contains(words), "{arguments:?}: {said}");
        assert!(!said.contains("guess") && !said.contains("second"), "{said}");
    }
}

/// A short word on what is wrong, whatever is in a file.
#[test]
fn files_that_are_no_scripts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let junk: Vec<u8> =
        (0..2_500_000_u32).flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let cases: [(&str, Vec<u8>, &str); 6] = [
        ("junk", junk, "it is longer than 1048576 bytes"),
        ("bytes", vec![0xff; 1000], "it is no text"),
        ("zeros", vec![0; 100_000], "\\u{0}"),
        ("word", vec![b'a'; 1_000_000], "no command has this name"),
        ("lines", b"Opne\n".repeat(100_000), "and at least 950 more"),
        ("empty", Vec::new(), "the script has no command"),
    ];
    for (name, bytes, words) in cases {
        let path = folder.path().join(format!("{name}.script"));
        std::fs::write(&path, bytes).unwrap();
        for command in ["check", "load"] {
            let output =
                Command::new(LAB).current_dir(folder.path()).arg(command).arg(&path).output().unwrap();
            let said = said(&output);
            assert_eq!(output.status.code(), Some(2), "{name}: {said}");
            assert!(said.contains(words) && said.len() < 6000, "{name}: {} bytes: {:.300}", said.len(), said);
            assert!(!said.chars().any(|character| character.is_control() && character != '\n'), "{said:?}");
        }
        let output = Command::new(LAB).arg("experiment").arg(&path).output().unwrap();
        assert!(output.status.code() == Some(2) && said(&output).len() < 6000, "{name}: {}", said(&output));
    }
}

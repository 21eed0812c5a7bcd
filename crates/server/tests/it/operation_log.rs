//! The operation log: what users do stands in it without contents, and a workload is made of it that does the same.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const PASSWORD: &str = "a password of this test";

const SCRIPT: &str = "**Variable: NumMailNotesPerUser = 40 (documents)**
**Variable: NormalMessageSize = 900 (bytes)**
BeginLoop
ChangeTo MAIL
Pause 20-40
Open $Inbox
Pause 10-30
Navigate 3 NEXT
Pause 10-30
@Nth 2
  Add 1
@EndIf
Pause 10-20
SendMessage 700 1 3
Pause 10-20
Delete 1
Pause 10-20
Rewind 12
";

fn scrinium(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).env_clear();
    command.env("SCRINIUM_ADMIN_PASSWORD", PASSWORD).env("SCRINIUM_LAB_PASSWORD", PASSWORD);
    command
}

/// A process of `scrinium serve`; killed with the test.
struct Server(Child, String);

impl Server {
    fn start(folder: &Path) -> Self {
        let mut process = scrinium(folder, &["serve"])
            .env("SCRINIUM_TRACING__FORMAT", "json")
            .env("SCRINIUM_MEMORY__BUDGET", "32 MB")
            .env("SCRINIUM_LOG__EXTENT_BYTES", "1 MB")
            .env("SCRINIUM_DISK__RESERVE_BYTES", "0")
            .env("SCRINIUM_HTTP__LISTEN", "127.0.0.1:0")
            .env("SCRINIUM_HTTP__OPERATION_LOG", "operations.log")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let url = lines.find_map(|line| {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            line["url"].as_str().map(str::to_owned)
        });
        // The rest is read, so that the server is never held up by it.
        std::thread::spawn(move || lines.for_each(drop));
        Self(process, url.unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn done(output: &Output) -> String {
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Actions of one command for each round, as `lab show --json` tells them.
fn per_round(shown: &Value, command: &str) -> f64 {
    let rate = |name: &str| {
        let commands = shown["commands"].as_array().unwrap();
        commands
            .iter()
            .find(|found| found["command"] == name)
            .map_or(0.0, |found| found["per_hour"].as_f64().unwrap())
    };
    rate(command) / rate("ChangeTo")
}

#[test]
fn a_workload_captured_from_a_server_does_what_its_users_did() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("office.script"), SCRIPT).unwrap();
    {
        let server = Server::start(folder);
        let arguments = ["lab", "load", "office.script", "--users", "4", "--admin", "admin", "--no-report"];
        let loaded = scrinium(folder, &arguments)
            .args(["--target", &server.1, "--duration", "300s", "--max-errors", "0"])
            .output()
            .unwrap();
        // A busy machine may make the run invalid, which is 99; what was done was done.
        assert!(matches!(loaded.status.code(), Some(0 | 99)), "{}", String::from_utf8_lossy(&loaded.stderr));
        // What was handed over is in the file within half a second.
        std::thread::sleep(std::time::Duration::from_secs(2));
    }
    let log = std::fs::read_to_string(folder.join("data/operations.log")).unwrap();
    assert!(
        !log.contains("user0001") && !log.contains("lab-") && !log.contains("mail/"),
        "no name stands in it"
    );

    done(
        &scrinium(folder, &["lab", "capture", "data/operations.log", "-o", "captured.script"])
            .output()
            .unwrap(),
    );
    done(&scrinium(folder, &["lab", "check", "captured.script"]).output().unwrap());
    let shown = done(&scrinium(folder, &["lab", "show", "captured.script", "--json"]).output().unwrap());
    let shown: Value = serde_json::from_str(&shown).unwrap();
    // 12 rounds and the look at the mail file when it is made: 13 openings of each user.
    for (command, rounds) in
        [("Navigate", 36.0), ("Add", 6.0), ("SendMessage", 4.0), ("Delete", 12.0), ("Open", 12.0)]
    {
        let (found, wanted) = (per_round(&shown, command), rounds / 13.0);
        assert!((found - wanted).abs() < 0.12 * wanted, "{command}: {found} and not {wanted}");
    }
}

//! The server as a process: it says where it listens, answers the console, and ends by a signal.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use scrinium_server::config::{Change, Kind, keys};
use serde_json::{Value, json};

const PASSWORD: &str = "a password of this test";

fn scrinium(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium"));
    command.current_dir(folder).stdin(Stdio::null()).env_clear().env("SCRINIUM_ADMIN_PASSWORD", PASSWORD);
    command
}

/// A process of `scrinium serve`; killed with the test.
struct Server {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStderr>>,
    url: String,
}

impl Server {
    fn start(folder: &Path, tls: bool) -> Self {
        Self::start_with(folder, tls, &[])
    }

    fn start_with(folder: &Path, tls: bool, environment: &[(&str, &str)]) -> Self {
        std::fs::write(folder.join("scrinium.toml"), "[memory]\nbudget = \"32 MB\"\n").unwrap();
        let mut process = scrinium(folder)
            .arg("serve")
            .env("SCRINIUM_TRACING__FORMAT", "json")
            .env("SCRINIUM_LOG__EXTENT_BYTES", "1 MB")
            .env("SCRINIUM_DISK__RESERVE_BYTES", "0")
            .env("SCRINIUM_HTTP__LISTEN", "127.0.0.1:0")
            .env("SCRINIUM_HTTP__TLS", tls.to_string())
            .envs(environment.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut server = Self { process, lines, url: String::new() };
        let url = server.line_that_says("listening")["url"].as_str().map(str::to_owned);
        server.url = url.unwrap();
        server
    }

    fn line_that_says(&mut self, message: &str) -> Value {
        let mut lines =
            self.lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        lines.find(|line| line["message"] == message).unwrap()
    }

    /// What `scrinium console` answers: exit code, standard output, standard error.
    fn console(&self, folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = scrinium(folder).args(["console", "--url", &self.url]).args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn data(&self, folder: &Path, command: &str) -> Value {
        let (code, output, talk) = self.console(folder, &["--json", command]);
        assert_eq!(code, Some(0), "{command}: {talk}");
        serde_json::from_str(&output).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[test]
fn the_console_asks_and_tells_and_a_signal_ends_the_server() {
    for (tls, signal, name) in [(false, Signal::TERM, "SIGTERM"), (true, Signal::INT, "SIGINT")] {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server::start(folder.path(), tls);
        let folder = folder.path();
        assert!(server.url.starts_with(if tls { "https://127.0.0.1:" } else { "http://127.0.0.1:" }));

        let told = server.data(folder, "show server");
        assert_eq!((&told["process"], &told["ports"]), (&json!(server.process.id()), &json!([server.url])));
        let (code, output, _) = server.console(folder, &["show", "stat", "Server.Trans.Total"]);
        assert!(code == Some(0) && output.starts_with("  Server.Trans.Total = "), "{output}");
        let (code, _, talk) = server.console(folder, &["show", "taks"]);
        assert_eq!((code, talk.contains("did you mean: show tasks")), (Some(1), true), "{talk}");

        server.data(folder, "set config server.pool_tasks=7");
        let kept = std::fs::read_to_string(folder.join("scrinium.toml")).unwrap();
        assert_eq!(kept, "[memory]\nbudget = \"32 MB\"\n\n[server]\npool_tasks = 7\n");
        assert_eq!(server.data(folder, "show config server.pool_tasks")["value"], 7);

        kill_process(Pid::from_child(&server.process), signal).unwrap();
        assert_eq!(server.line_that_says("stopping")["signal"], name);
        server.line_that_says("stopped");
        assert_eq!(server.process.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn every_key_that_is_said_to_change_while_running_does() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), false);
    for key in keys().filter(|key| key.change == Change::Running) {
        // The test's own budget stays; a quarter of the machine's memory is not for a test.
        let value = if matches!(key.kind, Kind::Memory { .. }) { "48 MB" } else { key.default };
        let answer = server.data(folder.path(), &format!("set config {}={value}", key.name));
        assert_eq!(answer["used"], "now", "{}", key.name);
    }
}

#[test]
fn a_plain_and_an_encrypted_port_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_with(folder.path(), false, &[("SCRINIUM_HTTPS__LISTEN", "127.0.0.1:0")]);
    let plain = server.url.clone();
    let encrypted = server.line_that_says("listening")["url"].as_str().unwrap().to_owned();
    assert!(plain.starts_with("http://") && encrypted.starts_with("https://"), "{plain} {encrypted}");
    for url in [&plain, &encrypted] {
        server.url.clone_from(url);
        assert_eq!(server.data(folder.path(), "show server")["ports"], json!([plain, encrypted]));
    }
}

//! `scrinium advise` at servers that are set up badly and well; and that its rules name keys, statistics and commands
//! that this server has.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{PASSWORD, Server};
use scrinium_advise::{AdvisedStep, Verdict, needs_restart, rules};
use scrinium_server::config::{Change, Key, key, volume_key};
use scrinium_server::console::Command as Console;
use serde_json::{Value, json};

const DOCUMENTS: usize = 12_000;
const CHANGES: usize = 150;

/// What `scrinium advise --json` says, and its exit code.
fn advise(server: &Server, folder: &Path, arguments: &[&str]) -> (i32, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_scrinium"))
        .args(["advise", "--json", "--url", &format!("http://{}", server.address())])
        .args(arguments)
        .current_dir(folder)
        .env("SCRINIUM_ADMIN_PASSWORD", PASSWORD)
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {talk}"));
    (output.status.code().unwrap_or(-1), value)
}

fn names(report: &Value, list: &str) -> Vec<String> {
    report[list].as_array().unwrap().iter().map(|entry| entry["rule"].as_str().unwrap().to_owned()).collect()
}

/// Fills a database with some 54 MB, and changes it.
fn fill(server: &Server) {
    let mut client = server.client();
    client.json("PUT", "/work", &json!({})).unwrap().expect(201);
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for some in 0..DOCUMENTS / 100 {
        let documents: Vec<Value> = (0..100)
            .map(|number| {
                // Longer fields would be contents.
                let mut field = || (0..96).map(|_| format!("{:016x}", random.next())).collect::<String>();
                json!({"_id": format!("d{:05}", some * 100 + number), "a": field(), "b": field(), "c": field()})
            })
            .collect();
        client.json("POST", "/work/_bulk_docs", &json!({"docs": documents})).unwrap().expect(201);
    }
    for number in 0..CHANGES {
        client.json("PUT", &format!("/work/c{number}"), &json!({"n": number})).unwrap().expect(201);
    }
}

/// Reads documents in no order, until told to stop.
fn read(server: &Server, stop: &AtomicBool) {
    let (mut client, mut random) = (server.client(), Random(0x9e37_79b9_7f4a_7c15));
    while !stop.load(Ordering::Relaxed) {
        let ids: Vec<Value> =
            (0..100).map(|_| json!({"id": format!("d{:05}", random.next() % DOCUMENTS as u64)})).collect();
        client.json("POST", "/work/_bulk_get", &json!({"docs": ids})).unwrap().expect(200);
    }
}

/// Stops the readers when it is dropped, also by a test that fails.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Numbers without a pattern (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn a_server_without_a_log_and_with_a_tiny_pool_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let settings = [("SCRINIUM_LOG__STYLE", "off"), ("SCRINIUM_MEMORY__BUDGET", "16 MB")];
    let server = Server::start(folder.path(), &settings);
    fill(&server);
    let (code, report) = advise(&server, folder.path(), &["--for", "0"]);
    assert_eq!(
        (code, names(&report, "advice").first().map(String::as_str)),
        (1, Some("log-off")),
        "{report:#}"
    );
    let change = &report["advice"][0]["change"][0];
    assert_eq!(change["command"], "scrinium console 'set config log.style=circular'");
    assert_eq!((&change["used"], &change["set_by"]), (&json!("next start"), &json!("SCRINIUM_LOG__STYLE")));

    // While people read and nobody writes.
    let stop = AtomicBool::new(false);
    let (code, report) = std::thread::scope(|scope| {
        scope.spawn(|| read(&server, &stop));
        let _ended = Ended(&stop);
        advise(&server, folder.path(), &["--for", "5s"])
    });
    assert!(code == 1 && names(&report, "advice").contains(&"pool-small".to_owned()), "{report:#}");
}

#[test]
fn a_server_that_is_set_up_well_is_told_nothing_and_has_everything_that_rules_look_at() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[("SCRINIUM_MEMORY__BUDGET", "512 MB")]);
    fill(&server);
    let (code, report) = advise(&server, folder.path(), &["--for", "0"]);
    // What the machine itself lacks is no setting.
    let machine = ["disk-full", "log-device", "slow-syncs", "processors-busy", "pool-tasks", "hot-database"];
    let advice: Vec<String> =
        names(&report, "advice").into_iter().filter(|name| !machine.contains(&name.as_str())).collect();
    assert!(advice.is_empty(), "{code} {report:#}");
    assert_eq!(code, i32::from(!names(&report, "advice").is_empty()));
    let untold: Vec<&Value> = report["not_judged"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| rule["reason"].as_str().unwrap().starts_with("the server does not report"))
        .collect();
    assert!(untold.is_empty(), "{untold:?}");

    let mut client = server.client();
    let told = client.json("POST", "/_console", &json!({"command": "show statistics"})).unwrap().expect(200);
    let told = told.value()["data"]["statistics"].take();
    // Operations that this server has not run, and statistics that only an archive has.
    let elsewhere = [
        "UNLOGGED_FLUSH",
        "LOG_SYNC",
        "POOL_WAIT",
        "GET_OBJECT",
        "Log.Archive.Waiting",
        "Log.Archive.Failures",
    ];
    let names: BTreeSet<&str> = rules().flat_map(|rule| rule.looks_at).copied().collect();
    for name in names.into_iter().filter(|name| !name.starts_with("show ") && !elsewhere.contains(name)) {
        assert!(told[name].is_number(), "the server does not report {name}");
    }
}

#[test]
fn a_look_takes_its_time_and_a_server_that_is_not_there_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &[]);
    let (code, report) = advise(&server, folder.path(), &["--for", "1s", "--all"]);
    assert_eq!((code, &report["since_start"]), (0, &json!(false)), "{report:#}");
    assert!(report["seconds"].as_f64().unwrap() >= 1.0);
    assert!(names(&report, "not_judged").contains(&"pool-small".to_owned()), "{report:#}");
    server.kill();
    let output = Command::new(env!("CARGO_BIN_EXE_scrinium"))
        .args(["advise", "--for", "0", "--url", &format!("http://{}", server.address())])
        .env("SCRINIUM_ADMIN_PASSWORD", PASSWORD)
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true));
    assert!(talk.starts_with("error: no server answers at http://127.0.0.1:"), "{talk}");
}

#[test]
fn keys_values_and_commands_of_advice_are_the_servers() {
    for rule in rules() {
        for key in rule.keys {
            let known = find(key).unwrap_or_else(|| panic!("{} names {key}, which is no key", rule.name));
            assert_eq!(needs_restart(key), known.change == Change::Restart && is_changed(key), "{key}");
        }
    }
    for case in crate::cases::CASES {
        let rule = rules().find(|rule| rule.name == case.rule).unwrap();
        let mut seen = crate::cases::well_set_up();
        (case.speaks)(&mut seen);
        let Ok(Verdict::Change(advice)) = (rule.check)(&seen) else { continue };
        for step in &advice.steps {
            match step {
                AdvisedStep::Set { key, value } => {
                    let known = find(key).unwrap();
                    assert_ne!(known.change, Change::File, "{}: the console does not set {key}", rule.name);
                    let taken = known.kind.parse_text(value);
                    assert!(taken.is_ok(), "{}: {key}={value}: {taken:?}", rule.name);
                }
                AdvisedStep::Console(command) => {
                    let parsed = Console::parse(command);
                    assert!(parsed.is_ok(), "{}: {command}: {parsed:?}", rule.name);
                }
                AdvisedStep::ByHand(_) => {}
            }
        }
    }
}

/// Keys that rules only look at, or have changed by hand.
fn is_changed(key: &str) -> bool {
    !["disk.reserve_bytes", "http.tls", "https.listen", "log.archive_dir", "volume.NAME.dir"].contains(&key)
}

/// The key of this name, also one of a volume.
fn find(name: &str) -> Option<&'static Key> {
    key(name).or_else(|| volume_key(&name.to_lowercase()).map(|(_, key)| key))
}

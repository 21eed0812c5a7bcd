//! What keeps a server going: healthchecks, upgrades, and words where a release cannot go back.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use crate::common::{self, Server, beside, small_with, start_with};
use scrinium_fault::copy_folder;
use serde_json::{Value, json};

fn run(root: &Path, listen: &str, arguments: &[&str]) -> Output {
    beside(root, small_with([]), listen, arguments).output().unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

fn data(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_healthcheck_tells_a_server_that_serves_from_one_that_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut server = start_with(root, &small_with([("SCRINIUM_HTTPS__LISTEN", "127.0.0.1:0".to_owned())]));
    let plain = server.address().to_string();
    assert_eq!(run(root, &plain, &["healthcheck"]).status.code(), Some(0));
    let messages = server.messages();
    let encrypted =
        messages.lines().find_map(|line| line.split_once("listening url=https://")).unwrap().1.trim();
    // By an address, with a certificate that is trusted for being the server's own.
    let asked = ["--json", "healthcheck", "--url", &format!("https://{encrypted}")];
    let output = run(root, &plain, &asked);
    assert!(output.status.success() && data(&output)["ok"] == true, "{}", words(&output));
    // Another certificate is not taken, no matter who shows it.
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
    fs::write(root.join("data/tls/certificate.pem"), other).unwrap();
    assert_eq!(run(root, &plain, &asked).status.code(), Some(1));

    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let output = run(root, &plain, &["healthcheck", "--url", &url, "--within", "300ms"]);
    assert!(output.status.code() == Some(1) && words(&output).contains("does not answer within 0.3 s"));
    assert!(server.terminate(Duration::from_secs(60)).success());
    assert_eq!(run(root, &plain, &["healthcheck"]).status.code(), Some(1));
}

#[test]
fn an_upgrade_says_before_what_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let check = |arguments: &[&str]| run(root, "127.0.0.1:1", &[&["--json", "upgrade"], arguments].concat());
    let nothing = check(&["--check"]);
    assert!(
        nothing.status.code() == Some(1) && words(&nothing).contains("holds no data yet"),
        "{}",
        words(&nothing)
    );

    let mut server = start_with(root, &small_with([]));
    let output = check(&["--check"]);
    assert_eq!(output.status.code(), Some(0), "a server may be at work: {}", words(&output));
    assert_eq!(
        (&data(&output)["changes"], &data(&output)["last_release"]),
        (&json!(false), &json!(env!("CARGO_PKG_VERSION")))
    );
    assert!(server.terminate(Duration::from_secs(60)).success());
    drop(server);

    // The log of a release whose records told no time.
    fs::remove_dir_all(root.join("data")).unwrap();
    fs::create_dir(root.join("data")).unwrap();
    copy_folder(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../database/tests/golden/format-1/store"),
        &root.join("data/store"),
    )
    .unwrap();
    fs::rename(root.join("data/store/log"), root.join("data/log")).unwrap();
    let output = check(&["--check"]);
    let told = data(&output);
    assert_eq!(
        (output.status.code(), &told["ok"], &told["changes"]),
        (Some(4), &json!(true), &json!(true)),
        "{told}"
    );
    let output = check(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    assert_eq!(check(&["--check"]).status.code(), Some(0));
    let server = start_with(root, &small_with([]));
    let databases = server.client().get("/_all_dbs").unwrap().expect(200).value();
    assert!(databases.as_array().unwrap().len() > 2, "{databases}");
}

#[test]
fn a_data_folder_of_a_newer_release_is_refused_with_words() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut server = start_with(root, &small_with([]));
    assert!(server.terminate(Duration::from_secs(60)).success());
    let format = root.join("data/store/store.format");
    let text = fs::read_to_string(&format).unwrap();
    fs::write(&format, text.replacen("format 3", "format 99", 1)).unwrap();
    let before = fs::read(&format).unwrap();
    for arguments in
        [&["upgrade", "--check"][..], &["upgrade"], &["serve"], &["fixup"], &["backup", "/nowhere/backups"]]
    {
        let output = run(root, "127.0.0.1:0", arguments);
        let told = words(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(told.contains("newer"), "{arguments:?}: {told}");
    }
    assert_eq!(fs::read(&format).unwrap(), before);
}

/// By an administrator, over HTTP.
#[test]
fn the_console_neither_sets_keys_of_the_machine_nor_writes_to_places_that_are_not_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let server = Server::start(root, &common::SMALL);
    let mut client = server.client();
    let mut refused = |command: &str| {
        let answer = client.json("POST", "/_console", &json!({"command": command})).unwrap();
        assert_eq!(answer.status, 400, "{command}: {}", answer.text());
        answer.value()["reason"].as_str().unwrap().to_owned()
    };
    for key in [
        "view.rebuild_dir=/etc",
        "http.operation_log=/etc/cron.d/x",
        "http.tls_key=/etc/shadow",
        "attachment.store=file:///etc",
        "backup.targets=/etc",
    ] {
        assert!(refused(&format!("set config {key}")).contains("in the configuration file alone"), "{key}");
    }
    let elsewhere = root.join("elsewhere");
    let place = elsewhere.display();
    for command in
        [format!("load backup {place}"), format!("load restore {place} a b"), "load backup".to_owned()]
    {
        assert!(refused(&command).contains("backup.targets"), "{command}");
    }
    assert!(!elsewhere.exists());
}

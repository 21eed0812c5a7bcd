//! A server whose log is damaged does not start, says why and what to do; doing that names what is lost, and it starts.

use std::path::Path;

use crate::common::{Server, beside};
use serde_json::{Value, json};

/// Nothing of the log goes to the databases' own files by itself.
const SETTINGS: [(&str, &str); 3] = [
    ("SCRINIUM_LOG__EXTENT_BYTES", "1 MB"),
    ("SCRINIUM_LOG__FAVOR", "runtime"),
    ("SCRINIUM_MEMORY__BUDGET", "64 MB"),
];

fn scrinium(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = beside(folder, SETTINGS, "127.0.0.1:0", arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_damaged_log_is_verified_and_salvaged_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut server = Server::start(folder, &SETTINGS);
    let mut client = server.client();
    client.ask("PUT", "/notes", "application/json", &[]).unwrap().expect(201);
    for number in 0..60 {
        let document = json!({"text": format!("{number} ").repeat(400)});
        client.json("PUT", &format!("/notes/{number:02}"), &document).unwrap().expect(201);
    }
    let shown = client.json("POST", "/_console", &json!({"command": "show server"})).unwrap().value();
    assert_eq!(shown["data"]["log"]["style"], "circular");
    assert!(shown["data"]["log"]["redo_bytes"].as_f64().unwrap() > 60_000.0, "{shown}");
    let (code, _, talk) = scrinium(folder, &["log", "verify"]);
    assert!(code == 1 && talk.contains("in use"), "{talk}");
    server.kill();
    let (code, output, talk) = scrinium(folder, &["log", "verify"]);
    assert!(code == 0 && output.contains("Nothing is damaged."), "{output}{talk}");
    let extent = folder.join("data/log/S0000001.TXN");
    let mut bytes = std::fs::read(&extent).unwrap();
    let sought = b"30 30 30 30";
    let at = bytes.windows(sought.len()).position(|window| window == sought).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&extent, bytes).unwrap();

    let (code, _, said) = scrinium(folder, &["serve"]);
    assert!(
        code == 1 && said.contains("is damaged at byte") && said.contains("scrinium log salvage"),
        "{said}"
    );
    let (code, output, _) = scrinium(folder, &["log", "verify", "--json"]);
    let found: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(
        (code, found["damaged_places"].as_u64(), found["missing"].as_array().unwrap().len()),
        (1, Some(1), 1)
    );
    let (code, output, _) = scrinium(folder, &["log", "salvage"]);
    assert!(
        code == 0 && output.contains("LOST: records ") && output.contains("Nothing was changed"),
        "{output}"
    );
    let (code, output, talk) = scrinium(folder, &["log", "salvage", "--yes", "--json"]);
    assert_eq!(code, 0, "{talk}");
    let done: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(done["lost"]["first"], found["missing"][0]["first"]);
    assert_eq!(done["next"], found["next"]);
    assert!(Path::new(done["set_aside"].as_str().unwrap()).join("S0000001.TXN").exists());

    let server = Server::start(folder, &SETTINGS);
    let mut client = server.client();
    for number in 0..60 {
        let status = client.get(&format!("/notes/{number:02}")).unwrap().status;
        assert_eq!(status, if number < 30 { 200 } else { 404 }, "{number}");
    }
    client.json("PUT", "/notes/30", &json!({"text": "again"})).unwrap().expect(201);
}

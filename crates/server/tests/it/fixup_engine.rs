//! Files of the store are damaged: the server serves what is sound and says how to recover; `scrinium fixup --engine` does it.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use crate::common::{SMALL, Server, beside};
use serde_json::{Value, json};

const DOCUMENTS: usize = 300;

fn scrinium(folder: &Path, arguments: &[&str]) -> Output {
    beside(folder, SMALL, "127.0.0.1:0", arguments).output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Letters that do not compress much.
fn letter(state: &mut u64) -> char {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    char::from(b'a' + state.to_be_bytes()[0] % 26)
}

/// The sorted files of the store, the largest last.
fn tables(folder: &Path) -> Vec<PathBuf> {
    let found =
        std::fs::read_dir(folder.join("data/store/tree")).unwrap().flatten().map(|entry| entry.path());
    let mut found: Vec<_> =
        found.filter(|path| path.extension().is_some_and(|ending| ending == "sst")).collect();
    found.sort_by_key(|path| path.metadata().unwrap().len());
    found
}

#[test]
fn a_damaged_store_is_written_anew_and_what_is_lost_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut server = Server::start(folder, &SMALL);
    let mut client = server.client();
    client.json("PUT", "/notes", &json!({})).unwrap().expect(201);
    let mut state = 7;
    for number in 0..DOCUMENTS {
        let text: String = (0..400).map(|_| letter(&mut state)).collect();
        client.json("PUT", &format!("/notes/{number:03}"), &json!({"text": text})).unwrap().expect(201);
    }
    let refused = scrinium(folder, &["fixup", "--engine"]);
    assert!(!refused.status.success() && told(&refused).contains("in use"), "{}", told(&refused));
    assert!(told(&refused).contains("load fixup"), "{}", told(&refused));
    assert!(server.terminate(Duration::from_secs(60)).success());
    let table = tables(folder).pop().unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[2000] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let both = scrinium(folder, &["fixup", "--engine", "--dry-run"]);
    assert_eq!(both.status.code(), Some(2), "{}", told(&both));

    let done = scrinium(folder, &["fixup", "--engine", "--json"]);
    assert_eq!(done.status.code(), Some(3), "{}", told(&done));
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let kept = PathBuf::from(report["engine"]["kept"].as_str().unwrap());
    assert!(kept.join(table.file_name().unwrap()).exists(), "{report}");
    assert!(!report["engine"]["unreadable"].as_array().unwrap().is_empty(), "{report}");
    let findings = report["reports"][0]["findings"].as_array().unwrap();
    let lost: Vec<&str> = findings.iter().filter_map(|finding| finding["subject"].as_str()).collect();

    // What was not named is there, and what was is gone or whole.
    let server = Server::start(folder, &SMALL);
    let mut client = server.client();
    let mut gone = 0;
    for number in 0..DOCUMENTS {
        let id = format!("{number:03}");
        let status = client.get(&format!("/notes/{id}")).unwrap().status;
        assert!(status == 200 || status == 404 && lost.contains(&id.as_str()), "{id}: {status} {lost:?}");
        gone += usize::from(status == 404);
    }
    assert!(gone < DOCUMENTS, "one block was damaged");
    client.json("PUT", "/notes/new", &json!({})).unwrap().expect(201);
    drop(server);
    assert_eq!(scrinium(folder, &["fixup", "--quick"]).status.code(), Some(0));
}

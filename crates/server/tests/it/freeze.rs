//! Changes are held for a snapshot of the disks: for a bounded time, and nothing that was answered is lost, whatever happens.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Client, Server, beside, small_with, start_with};
use scrinium_fault::copy_folder;
use serde_json::{Value, json};

fn start(root: &Path) -> Server {
    let place = |name: &str| root.join(name).display().to_string();
    start_with(
        root,
        &small_with([("SCRINIUM_LOG__DIR", place("log")), ("SCRINIUM_VOLUME__FAST__DIR", place("fast"))]),
    )
}

fn up(client: &mut Client) -> Value {
    client.get("/_up").unwrap().expect(200).value()
}

/// What `scrinium backup freeze` or `thaw` answers: exit code and words.
fn ask(root: &Path, server: &Server, arguments: &[&str]) -> (Option<i32>, String) {
    let settings: [(&str, &str); 0] = [];
    let arguments = [&["backup"], arguments].concat();
    let output = beside(root, settings, &server.address().to_string(), &arguments).output().unwrap();
    let words = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&words).into_owned())
}

fn write(client: &mut Client, database: &str, from: u32, to: u32) {
    let documents: Vec<Value> = (from..to).map(|number| json!({"_id": number.to_string()})).collect();
    client.json("POST", &format!("/{database}/_bulk_docs"), &json!({"docs": documents})).unwrap().expect(201);
}

fn count(client: &mut Client, database: &str) -> u64 {
    client.get(&format!("/{database}")).unwrap().expect(200).value()["doc_count"].as_u64().unwrap()
}

/// Log, data and volume are copied one after the other, as snapshots of three disks would be.
#[test]
fn snapshots_of_several_disks_are_of_one_moment_and_changes_go_on_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let server = start(root);
    let mut client = server.client();
    client.json("PUT", "/papers", &json!({})).unwrap().expect(201);
    client.json("PUT", "/elsewhere?volume=fast", &json!({})).unwrap().expect(201);
    for database in ["papers", "elsewhere"] {
        write(&mut client, database, 0, 300);
    }
    assert!(up(&mut client).get("frozen_seconds").is_none());
    let (code, words) = ask(root, &server, &["freeze", "--for", "60s"]);
    assert!(code == Some(0) && words.contains("Changes are held"), "{words}");
    assert!(up(&mut client)["frozen_seconds"].as_f64().unwrap() <= 60.0);
    assert_eq!(ask(root, &server, &["freeze"]).0, Some(1), "one at a time");

    // One who changes something soon waits, and is served when changes go on.
    let mut writer = server.client();
    let waiting = std::thread::spawn(move || {
        let began = Instant::now();
        let answer = writer.json("PUT", "/papers/waited", &json!({})).unwrap();
        (answer.status, began.elapsed())
    });
    let copy = root.join("copy");
    std::fs::create_dir(&copy).unwrap();
    for place in ["log", "data", "fast"] {
        copy_folder(&root.join(place), &copy.join(place)).unwrap();
    }
    assert_eq!(count(&mut client, "papers"), 300, "reading goes on");
    let (code, words) = ask(root, &server, &["thaw"]);
    let (status, _) = waiting.join().unwrap();
    // On a slow machine it has waited for as long as it may.
    assert!(code == Some(0) && [201, 503].contains(&status), "{words} {status}");
    assert!(up(&mut client).get("frozen_seconds").is_none());
    write(&mut client, "papers", 1000, 1100);
    assert_eq!(ask(root, &server, &["thaw"]), (Some(1), "error: changes are not held\n".to_owned()));

    let copied = start(&copy);
    let mut client = copied.client();
    for database in ["papers", "elsewhere"] {
        assert_eq!(count(&mut client, database), 300, "{database}");
    }
    assert!(!copied.messages().contains("reading the log again"), "{}", copied.messages());
}

#[test]
fn a_freeze_that_nobody_ends_ends_by_itself_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let server = start(root);
    let mut client = server.client();
    client.json("PUT", "/papers", &json!({})).unwrap().expect(201);
    assert_eq!(ask(root, &server, &["freeze", "--for", "1s"]).0, Some(0));
    client.json("PUT", "/papers/one", &json!({})).unwrap().expect(201);
    let (code, words) = ask(root, &server, &["thaw"]);
    assert!(code == Some(1) && words.contains("had ended by itself"), "{words}");
    assert!(server.messages().contains("resume by themselves"), "{}", server.messages());
    assert_eq!(ask(root, &server, &["freeze", "--for", "1h"]).0, Some(1), "too long");
}

/// Neither what was answered before a freeze is lost, nor is anything answered in one.
#[test]
fn a_server_that_is_killed_while_changes_are_held_has_all_that_it_answered() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut server = start(root);
    let mut client = server.client();
    client.json("PUT", "/papers", &json!({})).unwrap().expect(201);
    write(&mut client, "papers", 0, 50);
    assert_eq!(ask(root, &server, &["freeze"]).0, Some(0));
    let writers: Vec<_> = (0..3)
        .map(|number| {
            let mut writer = server.client();
            std::thread::spawn(move || {
                let answer = writer.json("PUT", &format!("/papers/held-{number}"), &json!({}));
                answer.is_ok_and(|answer| answer.status == 201)
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    server.kill();
    let answered: Vec<bool> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
    assert_eq!(answered, [false; 3]);
    let server = start(root);
    assert_eq!(count(&mut server.client(), "papers"), 50);
}

//! How a server ends in order, and what it refuses to begin with.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{SMALL, Server, command};
use serde_json::json;

/// Seconds on an idle machine; tests run on loaded ones.
const STOPS_WITHIN: Duration = Duration::from_secs(20);

/// What a start that is refused says. Its exit code is 1.
fn refusal(folder: &Path) -> String {
    let output = command(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn sigterm_under_load_ends_in_order_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    server.client().ask("PUT", "/db", "application/json", &[]).unwrap().expect(201);
    let written: Vec<String> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|number| {
                let mut client = server.client();
                scope.spawn(move || {
                    let mut written = Vec::new();
                    for document in 0.. {
                        let id = format!("{number}-{document}");
                        // The end of the server: the connection closes, or it says that it is closing.
                        match client.json("PUT", &format!("/db/{id}"), &json!({"Body": "b".repeat(2_000)})) {
                            Ok(answer) if answer.status == 201 => written.push(id),
                            Ok(answer) => answer.expect_error(503, "service_unavailable"),
                            Err(_) => break,
                        }
                    }
                    written
                })
            })
            .collect();
        // One who waits for changes does not hold up the end.
        let mut waiting = server.client();
        scope.spawn(move || drop(waiting.get("/db/_changes?feed=longpoll&since=now&timeout=60000")));
        std::thread::sleep(Duration::from_millis(500));
        let began = Instant::now();
        assert_eq!(server.terminate(STOPS_WITHIN).code(), Some(0));
        println!("it ended within {} ms", began.elapsed().as_millis());
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    assert!(!written.is_empty());
    let server = Server::start(folder.path(), &SMALL);
    let listing = server.client().get("/db/_all_docs").unwrap().expect(200).value();
    let ids: Vec<&str> =
        listing["rows"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    for id in &written {
        assert!(ids.contains(&id.as_str()), "{id} was acknowledged");
    }
}

#[test]
fn a_second_server_on_the_same_data_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    let said = refusal(folder.path());
    assert!(said.contains("store"), "{said}");
    println!("{said}");
    server.client().get("/_up").unwrap().expect(200);
}

#[test]
fn a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    assert_eq!(server.terminate(STOPS_WITHIN).code(), Some(0));
    let path = folder.path().join("data/store/store.format");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("format 3", "format 99")).unwrap();
    let said = refusal(folder.path());
    println!("{said}");
    assert!(said.contains("store.format") && said.contains("99") && said.contains("newer"), "{said}");
    fs::write(&path, text).unwrap();
    Server::start(folder.path(), &SMALL);
}

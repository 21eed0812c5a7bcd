//! What a server does with views by itself.

use std::time::{Duration, Instant};

use crate::common::{Client, SMALL, Server};
use serde_json::{Value, json};

/// However loaded the machine is.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(60);

/// How many rows a view has as it stands, once they are `expected`, or after a long time.
fn rows(client: &mut Client, view: &str, expected: u64) -> u64 {
    let begun = Instant::now();
    loop {
        let path = format!("/sales/_design/d/_view/{view}?update=false&limit=0");
        let rows = client.get(&path).unwrap().expect(200).value()["total_rows"].as_u64().unwrap();
        if rows == expected || begun.elapsed() > FOLLOWED_WITHIN {
            return rows;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn put_sales(client: &mut Client, count: usize) {
    let documents: Vec<Value> = (0..count).map(|sum| json!({"sum": sum})).collect();
    client.json("POST", "/sales/_bulk_docs", &json!({"docs": documents})).unwrap().expect(201);
}

#[test]
fn views_follow_in_the_background_as_their_policies_say() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    let mut client = server.client();
    client.ask("PUT", "/sales", "application/json", b"").unwrap().expect(201);
    let map = "function (doc) { emit(doc.sum) }";
    let design = json!({"options": {"update": "automatic"}, "views": {
        "automatic": {"map": map}, "manual": {"map": format!("{map} "), "update": "manual"}}});
    client.json("PUT", "/sales/_design/d", &design).unwrap().expect(201);
    put_sales(&mut client, 30);
    assert_eq!(rows(&mut client, "automatic", 30), 30);
    client.get("/sales/_design/d/_view/manual?limit=0").unwrap().expect(200);
    put_sales(&mut client, 10);
    assert_eq!(rows(&mut client, "automatic", 40), 40);
    let stands = client.get("/sales/_design/d/_view/manual?limit=0").unwrap().expect(200);
    assert_eq!(stands.value()["total_rows"], 30);
    client.get("/sales/_design/d/_view/manual?limit=0&update=lazy").unwrap().expect(200);
    assert_eq!(rows(&mut client, "manual", 40), 40);
    // Also where nobody has opened the database but to write to it.
    server.kill();
    let server = Server::start(folder.path(), &SMALL);
    let mut client = server.client();
    put_sales(&mut client, 1);
    assert_eq!(rows(&mut client, "automatic", 41), 41);
    let wrong = json!({"views": {"v": {"map": map, "update": "now and then"}}});
    let refused = client.json("PUT", "/sales/_design/wrong", &wrong).unwrap().expect(400);
    assert!(refused.value()["reason"].as_str().unwrap().starts_with("view `v`: `update` must be"));
}

#[test]
fn tombstones_are_purged_within_the_window_and_databases_compacted_on_the_console() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[&SMALL[..], &[("SCRINIUM_COMPACT__WINDOW", "")]].concat());
    let mut client = server.client();
    client.ask("PUT", "/notes", "application/json", b"").unwrap().expect(201);
    let made = client.json("PUT", "/notes/a", &json!({"n": 1})).unwrap().expect(201);
    let path = format!("/notes/a?rev={}", made.value()["rev"].as_str().unwrap());
    client.ask("DELETE", &path, "application/json", b"").unwrap().expect(200);
    let told = |client: &mut Client, command: &str| {
        client.json("POST", "/_console", &json!({"command": command})).unwrap().value()
    };
    assert!(told(&mut client, "load compact none").to_string().contains("Database does not exist"));
    told(&mut client, "load compact *");
    let completed = |client: &mut Client| {
        let shown = told(client, "show stat Database.Compact.Completed").to_string();
        shown.contains("Database.Compact.Completed") && !shown.contains("Completed\":0")
    };
    let begun = Instant::now();
    while !completed(&mut client) && begun.elapsed() < FOLLOWED_WITHIN {
        std::thread::sleep(Duration::from_millis(20));
    }
    let info = client.get("/notes").unwrap().expect(200).value();
    assert_eq!((&info["doc_del_count"], &info["purge_seq"]), (&json!(1), &json!("0")), "not old enough");
    drop(server);
    // From an hour ago to two hours from now, whatever the time is.
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).hour();
    let window = format!("{:02}:00-{:02}:00", (now + 23) % 24, (now + 2) % 24);
    let settings = [
        ("SCRINIUM_COMPACT__WINDOW", window.as_str()),
        ("SCRINIUM_COMPACT__TIME_ZONE", "UTC"),
        ("SCRINIUM_COMPACT__PURGE_AFTER", "1 ms"),
    ];
    let server = Server::start(folder.path(), &[&SMALL[..], &settings[..]].concat());
    let mut client = server.client();
    let begun = Instant::now();
    let purged = loop {
        let info = client.get("/notes").unwrap().expect(200).value();
        if info["doc_del_count"] == 0 || begun.elapsed() > FOLLOWED_WITHIN {
            break info["purge_seq"].clone();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(purged, "1");
}

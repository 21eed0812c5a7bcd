//! What a server does with views by itself.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{Client, SMALL, Server};
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

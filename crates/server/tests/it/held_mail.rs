//! Memos that do not go at once: taken back by their senders, and by nobody else; else they go, also after a crash.

use std::time::{Duration, SystemTime};

use scrinium_fault::wait_until;
use serde_json::{Value, json};

use crate::common::{Client, SMALL, Server};

/// However loaded the machine is.
const SOON: Duration = Duration::from_secs(60);

fn now_ms() -> u64 {
    u64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap()
}

fn log_in(server: &Server, name: &str) -> Client {
    let login = json!({"name": name, "password": "a long password"});
    let answer = server.client_with("").json("POST", "/_session", &login).unwrap().expect(200);
    server.client_with(answer.header("set-cookie").unwrap().split(';').next().unwrap())
}

fn subjects(server: &Server, name: &str) -> Vec<Value> {
    let answer = server.client().get(&format!("/mail%2F{name}/_all_docs?include_docs=true")).unwrap();
    if answer.status == 404 {
        return Vec::new();
    }
    let rows = answer.expect(200).value()["rows"].as_array().unwrap().clone();
    rows.iter().map(|row| row["doc"]["Subject"].clone()).filter(|subject| !subject.is_null()).collect()
}

fn post(client: &mut Client, id: &str, not_before: &Value) -> u16 {
    let memo = json!({"Form": "Memo", "SendTo": ["bob"], "Subject": id, "NotBefore": not_before});
    client.json("PUT", &format!("/mail.box/{id}"), &memo).unwrap().status
}

fn take_back(client: &mut Client, id: &str) -> u16 {
    client.ask("DELETE", &format!("/_held_mail/{id}"), "application/json", b"").unwrap().status
}

#[test]
fn a_memo_that_waits_is_taken_back_by_its_sender_alone_and_goes_else_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    for name in ["ada", "bob"] {
        let person =
            json!({"Form": "Person", "FullName": [name], "ShortName": name, "password": "a long password"});
        server.client().json("PUT", &format!("/directory/person:{name}"), &person).unwrap().expect(201);
    }
    let (mut ada, mut bob) = (log_in(&server, "ada"), log_in(&server, "bob"));
    let hour = json!(now_ms() + 3_600_000);
    assert_eq!(post(&mut ada, "m1", &hour), 201);
    for wrong in [json!("tomorrow"), json!(-1), json!(now_ms() + 31 * 86_400_000)] {
        assert_eq!(post(&mut ada, "m9", &wrong), 403, "{wrong}");
    }
    // What somebody writes there of the server's own is not believed.
    let forged =
        json!({"SendTo": ["bob"], "Subject": "m2", "$Envelope": {"release_ms": now_ms() + 3_600_000}});
    bob.json("PUT", "/mail.box/m2", &forged).unwrap().expect(201);
    wait_until("the memo that does not wait", SOON, || subjects(&server, "bob") == ["m2"]);

    assert_eq!([take_back(&mut bob, "m1"), take_back(&mut server.client(), "m1")], [404, 404]);
    assert_eq!([take_back(&mut ada, "m2"), take_back(&mut ada, "m3")], [404, 404]);
    assert_eq!(take_back(&mut server.client_with(""), "m1"), 401);
    assert_eq!(take_back(&mut ada, "m1"), 200);
    assert_eq!(take_back(&mut ada, "m1"), 404);
    assert_eq!(server.client().get("/mail.box/m1").unwrap().status, 404);

    // It may be sent again, under another id, and waits over a crash.
    assert_eq!(post(&mut ada, "m4", &json!(now_ms() + 3_000)), 201);
    server.kill();
    server = Server::start(folder.path(), &SMALL);
    wait_until("the memo that has waited", SOON, || subjects(&server, "bob").len() == 2);
    assert!(subjects(&server, "bob").contains(&json!("m4")));
    assert_eq!(take_back(&mut log_in(&server, "ada"), "m4"), 404);
    let delivered = server.client().get("/mail%2Fbob/_all_docs?include_docs=true").unwrap().text();
    assert!(!delivered.contains("NotBefore") && !delivered.contains("release_ms"), "{delivered}");
}

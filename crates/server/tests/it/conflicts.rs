//! The console's commands on replications and the conflicts that they bring.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Client, SMALL, Server};

fn say(client: &mut Client, command: &str) -> Value {
    client.json("POST", "/_console", &json!({"command": command})).unwrap().expect(200).value()
}

/// Stores a leaf under a name of its own.
fn bring(client: &mut Client, database: &str, revision: &str, fields: &Value) {
    let mut leaf = json!({"_id": "d", "_rev": revision});
    leaf.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let body = json!({"docs": [leaf], "new_edits": false});
    client.json("POST", &format!("/{database}/_bulk_docs"), &body).unwrap().expect(201);
}

#[test]
fn a_conflict_is_found_and_settled_and_its_replication_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    let mut client = server.client();
    for database in ["one", "two"] {
        client.json("PUT", &format!("/{database}"), &Value::Null).unwrap().expect(201);
    }
    assert!(say(&mut client, "show conflicts one").to_string().contains("no conflicts"));
    bring(
        &mut client,
        "one",
        &format!("1-{}", "a".repeat(32)),
        &json!({"At": "2026-03-05", "Tags": ["red"]}),
    );
    bring(
        &mut client,
        "two",
        &format!("1-{}", "b".repeat(32)),
        &json!({"At": "2026-03-01", "Tags": ["blue"]}),
    );
    say(&mut client, "replicate two one");
    let began = Instant::now();
    while !say(&mut client, "show conflicts one").to_string().contains("1-aaaa") {
        assert!(began.elapsed() < Duration::from_secs(60), "the conflict never came");
        std::thread::sleep(Duration::from_millis(20));
    }
    let settled = say(&mut client, r#"settle conflicts one {"newest": "At", "union": ["Tags"]}"#);
    let began = Instant::now();
    while !say(&mut client, "show conflicts one").to_string().contains("no conflicts") {
        assert!(began.elapsed() < Duration::from_secs(60), "it is never settled: {settled}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let kept = client.get("/one/d").unwrap().expect(200).value();
    assert_eq!((&kept["At"], &kept["Tags"]), (&json!("2026-03-05"), &json!(["red", "blue"])));
    let told = say(&mut client, "show replication one").to_string();
    assert!(told.contains("two"), "{told}");
    let refused = client.json("POST", "/_console", &json!({"command": "settle conflicts one {}"})).unwrap();
    assert!(refused.status >= 400 && refused.text().contains("settle_conflicts"), "{}", refused.text());
}

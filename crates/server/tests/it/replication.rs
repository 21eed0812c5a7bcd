//! Replications that documents order: over a kill, and without their credentials being seen anywhere.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Client, PASSWORD, SMALL, Server};

/// However loaded the machine is.
const WITHIN: Duration = Duration::from_secs(60);

fn get(client: &mut Client, path: &str) -> (u16, Value) {
    let answer = client.get(path).unwrap();
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
}

fn put(client: &mut Client, path: &str, body: &Value) {
    client.json("PUT", path, body).unwrap().expect(201);
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < WITHIN, "it never came that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn orders_outlive_a_kill_and_show_no_password() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    let mut client = server.client();
    for path in ["/from", "/to", "/across", "/_replicator"] {
        put(&mut client, path, &Value::Null);
    }
    put(&mut client, "/from/a", &json!({}));
    // By the server's own port, which needs no leave, and whose log-in is needed.
    let secret = PASSWORD.replace(' ', "%20");
    let url = format!("http://admin:{secret}@{}/from", server.address());
    let order = json!({"source": url, "target": "across", "continuous": true});
    put(&mut client, "/_replicator/across", &order);
    put(&mut client, "/_replicator/within", &json!({"source": "from", "target": "to", "continuous": true}));
    until("it came across", || get(&mut client, "/across/a").0 == 200);
    until("it came within", || get(&mut client, "/to/a").0 == 200);
    for path in [
        "/_replicator/across",
        "/_replicator/_changes?include_docs=true",
        "/_replicator/_all_docs?include_docs=true",
        "/_scheduler/docs",
        "/_scheduler/docs/_replicator/across",
        "/_scheduler/jobs",
        "/_active_tasks",
    ] {
        let (status, shown) = get(&mut client, path);
        let shown = shown.to_string();
        assert!(status == 200 && !shown.contains(PASSWORD) && !shown.contains(&secret), "{path}: {shown}");
    }
    let (_, stored) = get(&mut client, "/_replicator/across");
    assert_eq!(stored["owner"], "admin");
    // Written again as it is shown, it keeps its password.
    let mut changed = stored;
    changed["worker_batch_size"] = 10.into();
    put(&mut client, "/_replicator/across", &changed);
    put(&mut client, "/from/b", &json!({}));
    until("it came across", || get(&mut client, "/across/b").0 == 200);
    assert!(!server.messages().contains(&secret) && !server.messages().contains(PASSWORD));

    server.kill();
    let mut server = Server::start(folder.path(), &SMALL);
    let mut client = server.client();
    put(&mut client, "/from/c", &json!({}));
    until("it came within", || get(&mut client, "/to/c").0 == 200);
    // A document that cannot be carried out is refused, and so is one of somebody who may not.
    let refused = client.json("PUT", "/_replicator/x", &json!({"source": 3, "target": "to"})).unwrap();
    assert_eq!(refused.status, 403, "{}", refused.text());
    let delete = |client: &mut Client, id: &str| {
        let (_, stored) = get(client, &format!("/_replicator/{id}"));
        let path = format!("/_replicator/{id}?rev={}", stored["_rev"].as_str().unwrap());
        client.json("DELETE", &path, &Value::Null).unwrap().expect(200);
    };
    delete(&mut client, "within");
    delete(&mut client, "across");
    until("nothing runs", || get(&mut client, "/_scheduler/jobs").1["total_rows"] == 0);
    server.terminate(WITHIN);
}

#[test]
fn conflicts_are_counted_listed_and_settled_by_a_task() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    let mut client = server.client();
    put(&mut client, "/plans", &Value::Null);
    // More than are looked up at a time.
    let leaf = |number: usize, name: &str, day: &str| json!({"_id": format!("p{number}"), "_rev": format!("1-{}", name.repeat(32)), "Modified": day});
    let leaves: Vec<Value> = (0..700)
        .flat_map(|number| [leaf(number, "a", "2026-03-02"), leaf(number, "b", "2026-03-01")])
        .collect();
    let brought = client.json("POST", "/plans/_bulk_docs", &json!({"new_edits": false, "docs": leaves}));
    brought.unwrap().expect(201);
    let mut say = |line: &str| {
        let answer = client.json("POST", "/_console", &json!({"command": line})).unwrap();
        (answer.status, answer.text())
    };
    assert!(say("show statistics Database.Conflicts.*").1.contains("700"));
    assert!(say("show conflicts plans").1.contains("There are more."));
    for wrong in [r#"{"newest": "a\" + \"b"}"#, "{}", "newest"] {
        assert_ne!(say(&format!("settle conflicts plans {wrong}")).0, 200, "{wrong}");
    }
    assert_ne!(say(r#"settle conflicts none {"newest": "Modified"}"#).0, 200);
    let begun = say(r#"settle conflicts plans {"newest": "Modified"}"#);
    assert!(begun.0 == 200 && begun.1.contains("task"), "{begun:?}");
    until("all are settled", || say("show conflicts plans").1.contains("has no conflicts"));
    let (_, kept) = get(&mut client, "/plans/p3?conflicts=true");
    assert_eq!((&kept["Modified"], kept.get("_conflicts")), (&json!("2026-03-02"), None));
    server.terminate(WITHIN);
}

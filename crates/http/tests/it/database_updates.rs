//! `_db_updates`, and CouchDB's own databases.

use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::common::Server;

/// Kinds and names of the events that somebody sees, once there are this many.
async fn events(server: &Server, name: &str, count: usize) -> Vec<(String, String)> {
    let mut told = Vec::new();
    for _ in 0..100 {
        let answer = server.ask_as(name, "GET", "/_db_updates", ()).await.expect(200).json();
        let text = |event: &Value, member: &str| event[member].as_str().unwrap().to_owned();
        let results = answer["results"].as_array().unwrap();
        told = results.iter().map(|event| (text(event, "type"), text(event, "db_name"))).collect();
        if told.len() >= count {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    told
}

fn event(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_is_told_of_the_databases_that_they_may_read() {
    let server = Server::start().await;
    server.ask_as("", "GET", "/_db_updates", ()).await.expect(401);
    assert!(events(&server, "admin", 0).await.is_empty());
    for name in ["open", "closed", "gone"] {
        server.ask("PUT", &format!("/{name}"), ()).await.expect(201);
    }
    let list = json!({"default": {"level": "reader"}, "entries": []});
    server.ask("PUT", "/open/_acl", list).await.expect(201);
    server.ask("PUT", "/closed/a", json!({})).await.expect(201);
    server.ask("DELETE", "/gone", ()).await.expect(200);
    let mut told = events(&server, "admin", 5).await;
    told.sort();
    let expected = [
        event("created", "closed"),
        event("created", "gone"),
        event("created", "open"),
        event("deleted", "gone"),
        event("updated", "closed"),
    ];
    assert_eq!(told, expected);
    assert_eq!(events(&server, "ada", 1).await, [event("created", "open")]);
    // Those who may not read it get nothing by another way.
    server.ask_as("ada", "GET", "/_global_changes/_changes", ()).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_of_databases_wait_and_resume() {
    let server = Server::start().await;
    let begun = server.ask("GET", "/_db_updates", ()).await.expect(200).json();
    let since = begun["last_seq"].as_str().unwrap();
    for feed in ["longpoll", "continuous", "eventsource"] {
        let path = format!("/_db_updates?feed={feed}&since={since}&limit=1&timeout=20000");
        let feed = async {
            let response = server.open_as("admin", "GET", &path, ()).await;
            let text = response.into_body().collect().await.unwrap().to_bytes();
            String::from_utf8(text.to_vec()).unwrap()
        };
        let name = format!("made-{}", path.len());
        let (text, ()) = tokio::join!(feed, async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            server.ask("PUT", &format!("/{name}"), ()).await.expect(201);
        });
        assert!(text.contains("{\"db_name\":\"made-") && text.contains("\"type\":\"created\""), "{text}");
        assert!(!text.contains("pending"), "{text}");
    }
    // An event that comes again is seen again, after what was read.
    server.ask("PUT", "/again", ()).await.expect(201);
    let told = events(&server, "admin", 4).await;
    assert_eq!(told.len(), 4, "{told:?}");
    let last = server.ask("GET", "/_db_updates", ()).await.json()["last_seq"].as_str().unwrap().to_owned();
    server.ask("DELETE", "/again", ()).await.expect(200);
    server.ask("PUT", "/again", ()).await.expect(201);
    let path = format!("/_db_updates?feed=longpoll&since={last}&timeout=20000");
    let again = server.ask("GET", &path, ()).await.expect(200).json();
    assert_eq!(again["results"][0]["db_name"], "again");
}

#[tokio::test(flavor = "multi_thread")]
async fn couchdbs_own_databases_are_there_for_administrators() {
    let server = Server::start().await;
    for name in ["_replicator", "_global_changes"] {
        server.ask_as("ada", "GET", &format!("/{name}"), ()).await.expect(404);
        server.ask_as("ada", "PUT", &format!("/{name}"), ()).await.expect(401);
        server.ask("HEAD", &format!("/{name}"), ()).await.expect(200);
        server.ask("GET", &format!("/{name}/_index"), ()).await.expect(200);
        server.ask("GET", &format!("/{name}/_security"), ()).await.expect(200);
        server.ask("PUT", &format!("/{name}"), ()).await.expect(412);
        server.ask_as("ada", "GET", &format!("/{name}/_all_docs"), ()).await.expect(404);
    }
    server.ask("GET", "/_duck", ()).await.expect(404);
    server.ask("PUT", "/_duck", ()).await.expect(400);
    let all = server.ask("GET", "/_all_dbs", ()).await.json();
    assert_eq!(all, json!(["_global_changes", "_replicator"]));
    server.ask("DELETE", "/_global_changes", ()).await.expect(200);
    server.ask("PUT", "/db", ()).await.expect(201);
    server.ask("GET", "/_db_updates", ()).await.expect(200);
}

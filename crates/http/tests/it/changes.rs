//! Change feeds.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::common::Server;

/// Reads a feed's lines; gives up after a while, so that a hanging server fails the test.
struct Lines {
    body: Incoming,
    text: String,
}

impl Lines {
    fn of(response: http::Response<Incoming>) -> Self {
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), text: String::new() }
    }

    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(length) = self.text.find('\n') {
                let line = self.text[..length].to_owned();
                self.text.drain(..=length);
                return Some(line);
            }
            let frame =
                timeout(Duration::from_secs(10), self.body.frame()).await.expect("the feed is silent");
            let bytes: Bytes = frame?.unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    async fn next_json(&mut self) -> Value {
        serde_json::from_str(&self.next().await.expect("the feed has ended")).unwrap()
    }
}

fn ids(changes: &Value) -> Vec<&str> {
    changes["results"].as_array().unwrap().iter().map(|change| change["id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_listed_each_document_once() {
    let server = Server::start().await;
    server.fill("db", &[json!({"_id": "a", "x": 1}), json!({"_id": "b"}), json!({"_id": "_design/d"})]).await;
    let revision = server.ask("GET", "/db/a", ()).await.json()["_rev"].clone();
    let last = server
        .ask("DELETE", &format!("/db/a?rev={}", revision.as_str().unwrap()), ())
        .await
        .expect(200)
        .revision();

    let whole = server.ask("GET", "/db/_changes", ()).await.expect(200);
    assert!(whole.text().starts_with("{\"results\":[\n{\"seq\":\"2-"), "{}", whole.text());
    let whole = whole.json();
    assert_eq!(ids(&whole), ["b", "_design/d", "a"]);
    assert_eq!(whole["results"][2]["changes"], json!([{"rev": last}]));
    assert_eq!((&whole["results"][2]["deleted"], &whole["pending"]), (&json!(true), &json!(0)));
    assert_eq!(whole["last_seq"], whole["results"][2]["seq"]);

    let first = server.ask("GET", "/db/_changes?limit=1&include_docs=true", ()).await.json();
    assert_eq!((ids(&first), &first["results"][0]["doc"]["_id"]), (vec!["b"], &json!("b")));
    let since = first["last_seq"].as_str().unwrap();
    assert_eq!(
        ids(&server.ask("GET", &format!("/db/_changes?since={since}"), ()).await.json()),
        ["_design/d", "a"]
    );
    let resumed = server.ask("GET", "/db/_changes", [("last-event-id", since)]).await.json();
    assert_eq!(ids(&resumed), ["_design/d", "a"]);
    assert_eq!(
        ids(&server.ask("GET", "/db/_changes?descending=true", ()).await.json()),
        ["a", "_design/d", "b"]
    );
    assert_eq!(ids(&server.ask("GET", "/db/_changes?filter=_design", ()).await.json()), ["_design/d"]);
    let path = "/db/_changes?filter=_doc_ids&doc_ids=[%22b%22]";
    assert_eq!(ids(&server.ask("GET", path, ()).await.json()), ["b"]);
    let asked = json!({"doc_ids": ["a", "zz"]});
    assert_eq!(ids(&server.ask("POST", "/db/_changes?filter=_doc_ids", asked).await.json()), ["a"]);
    let now = server.ask("GET", "/db/_changes?since=now", ()).await;
    now.expect_text(
        200,
        &format!("{{\"results\":[\n\n],\n\"last_seq\":{},\"pending\":0}}\n", whole["last_seq"]),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_feed_cannot_do_is_said() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let refused = async |query: &str| server.ask("GET", &format!("/db/_changes?{query}"), ()).await;
    refused("since=nonsense").await.expect(400);
    refused("feed=nonsense").await.expect_error(
        400,
        "bad_request",
        "Supported `feed` types: normal, continuous, live, longpoll, eventsource",
    );
    refused("feed=continuous&heartbeat=0").await.expect_error(
        400,
        "bad_request",
        "The heartbeat value should be a positive integer (in milliseconds).",
    );
    refused("feed=continuous&heartbeat=soon").await.expect_error(
        400,
        "bad_request",
        "Invalid heartbeat value. Expecting a positive integer value (in milliseconds).",
    );
    refused("feed=longpoll&heartbeat=-1").await.expect_error(
        400,
        "bad_request",
        "The heartbeat value should be a positive integer (in milliseconds).",
    );
    refused("filter=some/function").await.expect(404);
    refused("limit=x").await.expect_error(400, "query_parse_error", "Invalid value for integer: \"x\"");
    server.ask("GET", "/none/_changes?feed=continuous", ()).await.expect(404);
    server.ask("DELETE", "/db/_changes", ()).await.expect_error(
        405,
        "method_not_allowed",
        "Only GET,HEAD,POST allowed",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_waits_for_the_next_change() {
    let server = Server::start().await;
    server.fill("db", &[json!({"_id": "a"})]).await;
    let at_once = server.ask("GET", "/db/_changes?feed=longpoll", ()).await.expect(200).json();
    assert_eq!(ids(&at_once), ["a"]);
    let since = at_once["last_seq"].as_str().unwrap();
    let path = format!("/db/_changes?feed=longpoll&since={since}");
    let (woken, ()) = tokio::join!(server.ask("GET", &path, ()), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.ask("PUT", "/db/b", json!({})).await.expect(201);
    });
    assert_eq!(ids(&woken.expect(200).json()), ["b"]);
    let quiet = server.ask("GET", "/db/_changes?feed=longpoll&since=now&timeout=50", ()).await.expect(200);
    assert!(quiet.text().starts_with("{\"results\":[\n\n],\n\"last_seq\":\"2-"), "{}", quiet.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_continuous_feed_goes_on_until_its_database_is_dropped() {
    let server = Server::start().await;
    server.fill("db", &[json!({"_id": "a"})]).await;
    let path = "/db/_changes?feed=continuous&heartbeat=100&include_docs=true";
    let mut feed = Lines::of(server.open_as("admin", "GET", path, ()).await);
    assert_eq!(feed.next_json().await["doc"]["_id"], "a");
    assert_eq!(feed.next().await.as_deref(), Some(""));
    server.ask("PUT", "/db/b", json!({"x": 1})).await.expect(201);
    let line = loop {
        let line = feed.next().await.unwrap();
        if !line.is_empty() {
            break line;
        }
    };
    let change: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&change["id"], &change["doc"]["x"]), (&json!("b"), &json!(1)));
    server.ask("DELETE", "/db", ()).await.expect(200);
    let end = loop {
        let line = feed.next().await.unwrap();
        if !line.is_empty() {
            break line;
        }
    };
    assert_eq!(serde_json::from_str::<Value>(&end).unwrap()["last_seq"], change["seq"]);
    assert_eq!(feed.next().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_have_limits_and_times() {
    let server = Server::start().await;
    server.fill("db", &[json!({"_id": "a"}), json!({"_id": "b"}), json!({"_id": "c"})]).await;
    let limited = server.ask("GET", "/db/_changes?feed=continuous&limit=2", ()).await.expect(200).text();
    let lines: Vec<&str> = limited.lines().collect();
    assert!(lines.len() == 3 && lines[2].starts_with("{\"last_seq\":\"2-"), "{limited}");
    let timed =
        server.ask("GET", "/db/_changes?feed=continuous&since=now&timeout=20", ()).await.expect(200).text();
    assert!(timed.starts_with("{\"last_seq\":\"3-"), "{timed}");
    let events = server.ask("GET", "/db/_changes?feed=eventsource&timeout=20", ()).await.expect(200);
    assert_eq!(events.header("content-type"), Some("text/event-stream"));
    let first = events.text().split("\n\n").next().unwrap().to_owned();
    assert!(first.starts_with("data: {\"seq\":\"1-") && first.contains("\nid: 1-"), "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_end_when_the_server_stops() {
    let mut server = Server::start().await;
    server.fill("db", &[json!({"_id": "a"})]).await;
    let path = "/db/_changes?feed=continuous&heartbeat=true&since=now";
    let mut feed = Lines::of(server.open_as("admin", "GET", path, ()).await);
    let poll =
        server.open_as("admin", "GET", "/db/_changes?feed=longpoll&since=now&heartbeat=true", ()).await;
    let mut poll = Lines::of(poll);
    server.stop().await;
    assert!(feed.next_json().await["last_seq"].as_str().unwrap().starts_with("1-"));
    assert_eq!(feed.next().await, None);
    let mut whole = String::new();
    while let Some(line) = poll.next().await {
        whole.push_str(&line);
    }
    assert!(serde_json::from_str::<Value>(&whole).unwrap()["last_seq"].as_str().unwrap().starts_with("1-"));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_changes_come_in_pieces() {
    let server = Server::start().await;
    let documents: Vec<Value> =
        (0..3000).map(|number| json!({"_id": format!("{number:05}"), "x": "y".repeat(50)})).collect();
    server.fill("db", &documents).await;
    for feed in ["normal", "longpoll"] {
        let path = format!("/db/_changes?feed={feed}&include_docs=true");
        assert_eq!(ids(&server.ask("GET", &path, ()).await.expect(200).json()).len(), 3000);
    }
    let rows = server.ask("GET", "/db/_all_docs?include_docs=true", ()).await.expect(200).json();
    assert_eq!(rows["rows"].as_array().unwrap().len(), 3000);
    assert_eq!((&rows["total_rows"], &rows["offset"]), (&json!(3000), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pending_is_what_is_left() {
    let server = Server::start().await;
    let documents: Vec<Value> = (0..5).map(|number| json!({"_id": number.to_string()})).collect();
    server.fill("db", &documents).await;
    // Documents that change again, and folders, leave gaps in the sequence.
    server.ask("PUT", "/db/_folder/Inbox", json!({})).await.expect(201);
    for id in ["0", "1"] {
        let revision = server.ask("GET", &format!("/db/{id}"), ()).await.json()["_rev"].clone();
        server.ask("PUT", &format!("/db/{id}"), json!({"_rev": revision})).await.expect(201);
    }
    server.ask("POST", "/db/_folder/Inbox", json!({"add": ["0", "1"]})).await.expect(200);
    let last = async |query: &str| {
        let text = server.ask("GET", &format!("/db/_changes?{query}"), ()).await.expect(200).text();
        let value: Value = match serde_json::from_str(&text) {
            Ok(whole) => whole,
            Err(_) => serde_json::from_str(text.trim().lines().last().unwrap()).unwrap(),
        };
        (value["pending"].as_u64().unwrap(), value["last_seq"].as_str().unwrap().to_owned())
    };
    for feed in ["normal", "longpoll", "continuous"] {
        let mut since = "0".to_owned();
        for pending in [3, 1, 0] {
            let query = format!("feed={feed}&limit=2&timeout=100&since={since}");
            let (found, reached) = last(&query).await;
            assert_eq!(found, pending, "{query}");
            since = reached;
        }
        for (limit, pending) in [(1, 4), (3, 2), (5, 0), (9, 0)] {
            let query = format!("feed={feed}&limit={limit}&descending=true&timeout=100");
            assert_eq!(last(&query).await.0, pending, "{query}");
        }
    }
    assert_eq!(last("since=now").await.0, 0);
    let filtered = "filter=_doc_ids&doc_ids=[%222%22]&limit=1";
    assert_eq!(last(filtered).await.0, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn much_that_is_pending_is_told_too() {
    let server = Server::start().await;
    let documents: Vec<Value> = (0..1500).map(|number| json!({"_id": number.to_string()})).collect();
    server.fill("db", &documents).await;
    let pending = async |query: &str| {
        server.ask("GET", &format!("/db/_changes?{query}"), ()).await.expect(200).json()["pending"].clone()
    };
    assert_eq!(pending("limit=10").await, 1490);
    assert_eq!(pending("limit=10&descending=true").await, 1490);
    assert_eq!(pending("limit=700").await, 800);
}

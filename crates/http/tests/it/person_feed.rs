//! `_feed`: one stream for all that somebody looks at.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::common::{PASSWORD, Server};

/// However loaded the machine is.
const SOON: Duration = Duration::from_secs(20);

struct Events {
    body: Incoming,
    text: String,
}

impl Events {
    async fn open(server: &Server, name: &str, databases: &[&str]) -> Self {
        let path =
            format!("/_feed?heartbeat=60000&databases={}", json!(databases).to_string().replace('"', "%22"));
        let opened = server.open_as(name, "GET", &path, ()).await;
        assert_eq!(opened.status(), 200);
        assert_eq!(opened.headers()["content-type"], "text/event-stream");
        Self { body: opened.into_body(), text: String::new() }
    }

    /// The next event: a database and its sequence. `None` at the end.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(data) = event.strip_prefix("data: ") {
                    let told: Value = serde_json::from_str(data).unwrap();
                    return Some((told["db"].as_str().unwrap().to_owned(), told["seq"].clone()));
                }
            }
            let frame = timeout(SOON, self.body.frame()).await.expect("no event comes")?;
            self.text.push_str(&String::from_utf8_lossy(&frame.ok()?.into_data().unwrap_or_default()));
        }
    }
}

async fn members(server: &Server, database: &str, names: &[&str]) {
    server
        .ask("PUT", &format!("/{database}/_security"), json!({"members": {"names": names}}))
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stream_tells_of_changes_of_what_its_reader_may_read_and_of_nothing_else() {
    let server = Server::start().await;
    for database in ["open", "other", "closed"] {
        server.fill(database, &[json!({"_id": "a"})]).await;
        members(&server, database, if database == "closed" { &["bob"] } else { &["ada"] }).await;
    }
    let mut events = Events::open(&server, "ada", &["open", "closed", "other", "later", "open"]).await;
    let (first, second) = (events.next().await.unwrap(), events.next().await.unwrap());
    assert_eq!((first.0.as_str(), second.0.as_str()), ("open", "other"));
    assert!(first.1.is_string() && second.1.is_string());
    // Of what changes close together there is one event; of what the reader may not read, none.
    for number in 0..5 {
        server.ask("PUT", &format!("/closed/b{number}"), json!({})).await.expect(201);
        server.ask("PUT", &format!("/other/b{number}"), json!({})).await.expect(201);
    }
    let told = events.next().await.unwrap();
    assert!(told.0 == "other" && told.1 != second.1, "{told:?}");
    let last = server.ask("GET", "/other", ()).await.json()["update_seq"].clone();
    let mut reached = told;
    while reached.1 != last {
        reached = events.next().await.unwrap();
        assert_eq!(reached.0, "other");
    }
    // Who may not read any more is told nothing but that, once.
    members(&server, "open", &["bob"]).await;
    server.ask("PUT", "/open/c", json!({})).await.expect(201);
    assert_eq!(events.next().await.unwrap(), ("open".to_owned(), Value::Null));
    server.ask("DELETE", "/other", ()).await.expect(200);
    assert_eq!(events.next().await.unwrap(), ("other".to_owned(), Value::Null));
    // What comes later is found.
    server.fill("later", &[json!({"_id": "a"})]).await;
    members(&server, "later", &["ada"]).await;
    assert_eq!(events.next().await.unwrap().0, "later");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_with_the_session_and_refuses_what_is_no_list_of_databases() {
    let server = Server::start().await;
    server.fill("db", &[json!({"_id": "a"})]).await;
    members(&server, "db", &["ada"]).await;
    let opened = server.ask_as("", "POST", "/_session", json!({"name": "ada", "password": PASSWORD})).await;
    let cookie = opened.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let path = "/_feed?heartbeat=60000&databases=[%22db%22]";
    let body = server.open_as("", "GET", path, [("cookie", cookie.as_str())]).await.into_body();
    let mut events = Events { body, text: String::new() };
    assert_eq!(events.next().await.unwrap().0, "db");
    server.ask_as("", "DELETE", "/_session", [("cookie", cookie.as_str())]).await.expect(200);
    assert_eq!(events.next().await, None);
    server.ask_as("", "GET", path, ()).await.expect(401);
    let many: Vec<String> = (0..33).map(|number| format!("db{number}")).collect();
    let many = json!(many).to_string().replace('"', "%22");
    for wrong in [
        "",
        "?databases=db",
        "?databases=[]",
        "?databases=[1]",
        "?databases={}",
        &format!("?databases={many}"),
    ] {
        server.ask_as("ada", "GET", &format!("/_feed{wrong}"), ()).await.expect(400);
    }
}

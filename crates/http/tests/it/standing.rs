//! Answers and feeds under way end when the one who asked may not have them any more.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::common::{PASSWORD, Server};

/// However loaded the machine is; what waits for nothing else would wait for a minute.
const SOON: Duration = Duration::from_secs(20);

async fn session(server: &Server, name: &str) -> String {
    let opened = server.ask_as("", "POST", "/_session", json!({"name": name, "password": PASSWORD})).await;
    opened.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

/// All that comes until the answer ends, and whether it ended as it should.
async fn rest(response: http::Response<Incoming>) -> (String, bool) {
    let mut body = response.into_body();
    let mut text = String::new();
    loop {
        match timeout(SOON, body.frame()).await.expect("the answer goes on") {
            Some(Ok(frame)) => {
                text.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap_or_default()));
            }
            Some(Err(_)) => return (text, false),
            None => return (text, true),
        }
    }
}

const FEEDS: [&str; 3] = [
    "/db/_changes?feed=continuous&heartbeat=60000&since=now",
    "/db/_changes?feed=longpoll&timeout=60000&since=now",
    "/db/_changes?feed=eventsource&heartbeat=60000&since=now",
];

async fn filled() -> Server {
    let server = Server::start().await;
    let text = "x".repeat(1000);
    let documents: Vec<Value> =
        (0..15_000).map(|number| json!({"_id": format!("{number:06}"), "text": text})).collect();
    for some in documents.chunks(1000) {
        if server.databases.get("db").is_err() {
            server.fill("db", some).await;
        } else {
            server.ask("POST", "/db/_bulk_docs", json!({"docs": some})).await.expect(201);
        }
    }
    server.ask("PUT", "/db/_security", json!({"members": {"names": ["ada", "bob"]}})).await.expect(200);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_out_ends_the_feeds_of_its_session_and_no_others() {
    let server = filled().await;
    let (first, second) = (session(&server, "ada").await, session(&server, "ada").await);
    let mut ended = Vec::new();
    let mut going_on = Vec::new();
    for feed in FEEDS {
        ended.push(server.open_as("", "GET", feed, [("cookie", first.as_str())]).await);
        going_on.push(server.open_as("", "GET", feed, [("cookie", second.as_str())]).await);
    }
    server.ask_as("", "DELETE", "/_session", [("cookie", first.as_str())]).await.expect(200);
    for (response, feed) in ended.into_iter().zip(FEEDS) {
        let (text, whole) = rest(response).await;
        assert!(whole, "{feed}: a client can tell where to go on");
        assert!(feed.contains("eventsource") || text.contains("\"last_seq\":"), "{feed}: {text}");
    }
    for response in going_on {
        let more = timeout(Duration::from_millis(300), response.into_body().frame()).await;
        assert!(!matches!(more, Ok(None | Some(Err(_)))), "another session is another session");
    }
    server.ask_as("", "GET", FEEDS[1], [("cookie", first.as_str())]).await.expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_who_was_removed_is_told_of_further_changes_or_gets_the_rest_of_an_answer() {
    let server = filled().await;
    let mut feeds = Vec::new();
    for feed in FEEDS {
        feeds.push(server.open_as("ada", "GET", feed, ()).await);
    }
    // More than all that sockets and libraries hold meanwhile.
    let stream = server.open_as("ada", "GET", "/db/_all_docs?include_docs=true", ()).await;
    let of_bob = server.open_as("bob", "GET", "/db/_all_docs?include_docs=true", ()).await;
    assert_eq!((stream.status().as_u16(), of_bob.status().as_u16()), (200, 200));
    server.people.remove("ada");
    tokio::time::sleep(Duration::from_millis(1500)).await;
    server.ask("PUT", "/db/secret", json!({})).await.expect(201);
    for response in feeds {
        let (text, _) = rest(response).await;
        assert!(!text.contains("secret"), "{text}");
    }
    let (text, whole) = rest(stream).await;
    assert!(!whole && !text.contains("\"014999\""), "{} bytes came", text.len());
    let (text, whole) = rest(of_bob).await;
    assert!(whole && text.contains("\"014999\""));
}

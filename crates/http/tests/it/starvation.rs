//! Clients who send, read or wait slowly hold no worker thread, whatever it is that they asked for.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::common::{PASSWORD, Server, basic};

/// More than the server of these tests has worker threads.
const CLIENTS: usize = 12;

fn head(method: &str, path: &str, more: &str) -> String {
    let authorization = basic("admin", PASSWORD);
    format!("{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n{more}\r\n")
}

async fn send(server: &Server, text: &str) -> TcpStream {
    let mut stream = server.connect().await;
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Half of a body, of each kind that there is.
fn halves() -> Vec<String> {
    let length = "Content-Length: 300000\r\nContent-Type: ";
    let filler = "y".repeat(150_000);
    let json = format!("{length}application/json\r\n");
    let related = format!("{length}multipart/related; boundary=one\r\n");
    let part = "--one\r\nContent-Type: application/json\r\n\r\n\
        {\"_attachments\":{\"a\":{\"follows\":true,\"length\":299000}}}\r\n--one\r\n\r\n";
    vec![
        format!("{}{{\"text\":\"{filler}", head("PUT", "/db/slow", &json)),
        format!("{}{{\"docs\":[{{\"text\":\"{filler}", head("POST", "/db/_bulk_docs", &json)),
        format!("{}{{\"selector\":{{\"a\":\"{filler}", head("POST", "/db/_find", &json)),
        format!("{}{{\"keys\":[\"{filler}", head("POST", "/db/_all_docs", &json)),
        format!("{}{filler}", head("PUT", "/db/slow/a", &format!("{length}a/b\r\n"))),
        format!("{}{part}{filler}", head("PUT", "/db/slow2", &related)),
        head("PUT", "/db/slow3", "Transfer-Encoding: chunked\r\n") + "2\r\n{\"\r\n",
    ]
}

/// Answers that are longer than sockets hold.
fn long_answers() -> Vec<String> {
    let get = |path: &str| head("GET", path, "");
    vec![
        get("/db/large/file"),
        get("/db/large?attachments=true"),
        get("/db/_all_docs?include_docs=true&attachments=true"),
        get("/db/_changes?include_docs=true&attachments=true"),
        head("GET", "/db/large?attachments=true", "Accept: multipart/related\r\n"),
        get("/db/_design/d/_view/v?include_docs=true&attachments=true"),
    ]
}

fn feeds() -> Vec<String> {
    ["continuous", "longpoll", "eventsource"]
        .map(|feed| head("GET", &format!("/db/_changes?feed={feed}&since=now&heartbeat=60000"), ""))
        .into()
}

/// Waits until no worker thread runs, for as long as a loaded machine may need for what it has begun.
async fn is_idle(server: &Server, what: &str) {
    let began = Instant::now();
    loop {
        let counted = server.statistics.snapshot();
        if counted.gauges["Server.Pool.Running"] == 0.0 && counted.gauges["Server.Pool.Queued"] == 0.0 {
            return;
        }
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{what} hold worker threads: {:?}",
            counted.gauges
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_client_holds_a_worker_thread_by_being_slow() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    server.ask("PUT", "/db/large/file", (&[][..], vec![7; 16 << 20])).await.expect(201);
    let design = json!({"language": "formula", "views": {"v": {"columns": [{"title": "A", "formula": "@DocumentUniqueID", "sort": "asc"}]}}});
    server.ask("PUT", "/db/_design/d", design).await.expect(201);
    server.ask("GET", "/db/_design/d/_view/v", ()).await.expect(200);
    let mut held = Vec::new();
    for (what, requests) in
        [("slow bodies", halves()), ("readers who do not read", long_answers()), ("feeds", feeds())]
    {
        for request in requests {
            for _ in 0..CLIENTS {
                held.push(send(&server, &request).await);
            }
            is_idle(&server, what).await;
            server.ask("GET", "/db/large", ()).await.expect(200);
        }
    }
    let written = server.ask("PUT", "/db/honest", json!({"fine": true})).await.expect(201).json();
    assert_eq!(written["ok"], Value::Bool(true));
    // They were all taken, and wait: none was cut off meanwhile.
    let mut open = 0;
    for stream in &mut held {
        let ended = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut [0; 1])).await;
        open += usize::from(!matches!(ended, Ok(Ok(0) | Err(_))));
    }
    assert_eq!(open, held.len());
}

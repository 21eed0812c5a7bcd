//! Who is refused while still sending reads why: the connection is not reset before the answer was read.

use std::time::Duration;

use scrinium_database::DatabaseOptions;
use scrinium_http::{HttpOptions, PortOptions};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::common::{PASSWORD, Server, basic, local_port};

const LENGTH: usize = 10 << 20;

/// A server that holds requests of 1 MB.
async fn small() -> Server {
    let port = PortOptions { max_request_bytes: 1 << 20, ..local_port() };
    let server = Server::with(port, DatabaseOptions::default()).await;
    server.ask("PUT", "/db", ()).await.expect(201);
    server
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Sends `head` and ten megabytes, and looks for an answer only then; with `expects` as soon as it has sent the head.
async fn answered(server: &Server, head: &str, expects: bool) -> String {
    let mut stream = server.connect().await;
    let expect = if expects { "Expect: 100-continue\r\n" } else { "" };
    let head = format!("{head}Host: x\r\n{expect}Content-Length: {LENGTH}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    if expects {
        answer = read_head(&mut stream).await;
    }
    if !expects || answer.starts_with("HTTP/1.1 100") {
        answer.clear();
        let piece = vec![b' '; 64 << 10];
        for sent in (0..LENGTH).step_by(piece.len()) {
            let written = stream.write_all(&piece).await;
            assert!(written.is_ok(), "{written:?} after {sent} bytes for {head}");
        }
    }
    let read = timeout(Duration::from_secs(10), stream.read_to_string(&mut answer)).await.unwrap();
    assert!(read.is_ok(), "{read:?} for {head}");
    answer
}

fn check(answer: &str, status: u16, words: &str) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
    assert!(answer.contains(words) && answer.ends_with("\"}\n"), "{status}: {answer}");
    assert!(answer.to_ascii_lowercase().contains("\r\nconnection: close\r\n"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_ten_megabytes_and_is_refused_reads_why() {
    let server = small().await;
    let admin = format!("Authorization: {}\r\n", basic("admin", PASSWORD));
    let wrong = format!("Authorization: {}\r\n", basic("ada", "wrong"));
    for expects in [false, true] {
        for (head, status, words) in [
            (format!("PUT /db/x HTTP/1.1\r\n{admin}"), 413, "too large"),
            ("PUT /db/x HTTP/1.1\r\n".to_owned(), 401, "Authentication required"),
            (format!("PUT /db/x HTTP/1.1\r\n{wrong}"), 401, "incorrect"),
            (format!("PUT /db/x HTTP/1.1\r\n{admin}Content-Encoding: br\r\n"), 415, "br"),
            (format!("PATCH /db/x HTTP/1.1\r\n{admin}"), 405, "allowed"),
            (format!("PUT /none/x HTTP/1.1\r\n{admin}"), 404, "does not exist"),
            (format!("POST /_session HTTP/1.1\r\n{admin}"), 413, "4096"),
        ] {
            check(&answered(&server, &head, expects).await, status, words);
        }
    }
    server.people.busy();
    check(&answered(&server, &format!("PUT /db/x HTTP/1.1\r\n{wrong}"), false).await, 429, "Too many");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_finds_the_budget_used_up_reads_so() {
    let http = HttpOptions { body_budget_bytes: 4 << 20, ..HttpOptions::default() };
    let server = Server::with_http(local_port(), DatabaseOptions::default(), http).await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let admin = format!("Authorization: {}\r\n", basic("admin", PASSWORD));
    let ada = format!("Authorization: {}\r\n", basic("ada", PASSWORD));
    server.ask("PUT", "/db/_security", json!({"members": {"names": ["ada"], "roles": []}})).await.expect(200);
    for expects in [false, true] {
        let mut answer = String::new();
        for attempt in 1..=20 {
            // One who holds most of the budget, and continues sending.
            let mut first = server.connect().await;
            let head =
                format!("PUT /db/first HTTP/1.1\r\nHost: x\r\n{admin}Content-Length: {}\r\n\r\n", 3 << 20);
            first.write_all(head.as_bytes()).await.unwrap();
            first.write_all(&vec![b' '; 5 << 19]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20 * attempt)).await;
            answer = answered(&server, &format!("PUT /db/x HTTP/1.1\r\n{ada}"), expects).await;
            if answer.starts_with("HTTP/1.1 503") {
                break;
            }
            // So large a body is refused in any case, as long as the first one has not come.
            check(&answer, 413, "body_budget_bytes");
        }
        check(&answer, 503, "Too many large requests");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_a_head_that_is_too_long_reads_so() {
    let server = small().await;
    let mut stream = server.connect().await;
    let head = format!("GET /_up HTTP/1.1\r\nHost: x\r\nX-Long: {}", "x".repeat(4 << 20));
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(Duration::from_secs(10), stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

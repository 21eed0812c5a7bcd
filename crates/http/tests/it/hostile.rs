//! What no well-meaning client sends.

use std::time::Duration;

use scrinium_database::DatabaseOptions;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::common::{Server, basic, local_port};

async fn impatient() -> Server {
    let port = scrinium_http::PortOptions {
        read_timeout_ms: 300,
        idle_timeout_ms: 2_000,
        max_request_bytes: 1 << 20,
        max_header_bytes: 16 << 10,
        ..local_port()
    };
    Server::with(port, DatabaseOptions::default()).await
}

/// Everything up to the end that the server makes.
async fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = timeout(Duration::from_secs(10), stream.read_to_end(&mut bytes));
    // A reset after the answer is an end as well.
    drop(read.await.expect("the server keeps the connection"));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The server still answers.
async fn is_well(server: &Server) {
    server.ask_as("", "GET", "/_up", ()).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_without_end_is_refused() {
    let server = impatient().await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: ").await.unwrap();
    let piece = [b'a'; 4096];
    let mut sent = 0_u64;
    while sent < 2 << 30 && stream.write_all(&piece).await.is_ok() {
        sent += piece.len() as u64;
    }
    assert!(sent < 64 << 20, "{sent} bytes of a head were taken");
    is_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_comes_drop_by_drop_is_cut_off() {
    let server = impatient().await;
    let mut stream = server.connect().await;
    let started = Instant::now();
    for byte in b"GET /_up HTTP/1.1\r\nHost: example\r\nAccept: everything\r\n".iter().cycle() {
        if stream.write_all(&[*byte]).await.is_err() || started.elapsed() > Duration::from_secs(8) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(started.elapsed() < Duration::from_secs(8), "a slow head is still read");
    // Between two requests a client may take its time.
    let mut idle = server.connect().await;
    for _ in 0..2 {
        idle.write_all(b"GET /_up HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut answer = [0; 1024];
        let length = timeout(Duration::from_secs(5), idle.read(&mut answer)).await.unwrap().unwrap();
        assert!(answer[..length].starts_with(b"HTTP/1.1 200"));
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    assert_eq!(read_all(&mut idle).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_long_or_too_slow_is_refused() {
    let server = impatient().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let head = |framing: &str| {
        let authorization = basic("admin", crate::common::PASSWORD);
        format!("PUT /db/x HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n{framing}\r\n\r\n")
    };
    let mut declared = server.connect().await;
    declared.write_all(head("Content-Length: 99999999999").as_bytes()).await.unwrap();
    let answer = read_all(&mut declared).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(
        answer.ends_with("{\"error\":\"too_large\",\"reason\":\"the request entity is too large\"}\n"),
        "{answer}"
    );

    let mut endless = server.connect().await;
    endless.write_all(head("Transfer-Encoding: chunked").as_bytes()).await.unwrap();
    let chunk = [b"4000\r\n".to_vec(), vec![b' '; 0x4000], b"\r\n".to_vec()].concat();
    let mut sent = 0;
    while sent < 1 << 30 && endless.write_all(&chunk).await.is_ok() {
        sent += chunk.len();
    }
    assert!(sent < 32 << 20, "{sent} bytes of a body were taken");

    let mut slow = server.connect().await;
    slow.write_all(head("Content-Length: 1000").as_bytes()).await.unwrap();
    slow.write_all(b"{").await.unwrap();
    assert!(read_all(&mut slow).await.starts_with("HTTP/1.1 408"));
    is_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_nobody_takes_is_given_up() {
    let port = scrinium_http::PortOptions { write_timeout_ms: 300, ..local_port() };
    let server = Server::with(port, DatabaseOptions::default()).await;
    server.ask("PUT", "/db", ()).await.expect(201);
    server.ask("PUT", "/db/x/large", (&[][..], vec![7; 30 << 20])).await.expect(201);
    let mut stream = server.connect().await;
    let authorization = basic("admin", crate::common::PASSWORD);
    let request = format!("GET /db/x/large HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(read_all(&mut stream).await.len() < 30 << 20);
    is_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_documents_and_attachments_are_told() {
    let options = DatabaseOptions {
        document_max_bytes: 1000,
        attachment_max_bytes: 400_000,
        ..DatabaseOptions::default()
    };
    let server = Server::with(local_port(), options).await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let refused = server.ask("PUT", "/db/x", json!({"x": "y".repeat(2000)})).await.expect(413).json();
    assert_eq!(refused["error"], "document_too_large");
    // The same with attachments behind it.
    let related = |text: String| {
        format!("--one\r\nContent-Type: application/json\r\n\r\n{{\"x\":\"{text}\"}}\r\n--one--")
    };
    let kind = [("content-type", "multipart/related; boundary=one")];
    for length in [2000, 5_000_000] {
        let body = related("y".repeat(length));
        let refused = server.ask("PUT", "/db/x", (kind, body)).await.expect(413).json();
        assert_eq!(refused["error"], "document_too_large");
    }
    server.ask("PUT", "/db/related", (kind, related("y".repeat(500)))).await.expect(201);
    for length in [400_001, 5_000_000] {
        let refused = server.ask("PUT", "/db/x/a", (&[][..], vec![1; length])).await.expect(413).json();
        assert_eq!(refused["error"], "attachment_too_large");
    }
    server.ask("PUT", "/db/x/a", (&[][..], vec![1; 400_000])).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_json_and_strange_names_harm_nothing() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let nested = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let json = [("content-type", "application/json")];
    server.ask("PUT", "/db/deep", (json, nested.clone())).await.expect(400);
    let bulk = format!("{{\"docs\":[{nested}]}}");
    let row = server.ask("POST", "/db/_bulk_docs", (json, bulk)).await;
    assert!(row.status == 400 || row.json()[0]["error"] == "bad_request", "{}", row.text());
    let keys = format!("{{\"keys\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    server.ask("POST", "/db/_all_docs", (json, keys)).await.expect_error(
        400,
        "bad_request",
        "invalid UTF-8 JSON",
    );

    for path in ["/..%2F..%2Fetc%2Fpasswd", "/%2e%2e", "/db%00", "/_nothing", "/%C3%A9", "/a%20b"] {
        let refused = server.ask("PUT", path, ()).await.expect(400);
        assert_eq!(refused.json()["error"], "illegal_database_name", "{path}");
    }
    server.ask("GET", "/db/..%2F..%2Fetc", ()).await.expect_error(404, "not_found", "missing");
    server.ask("GET", "/db/%ff", ()).await.expect(400);
    server.ask("GET", "/db/_all_docs?key=%ff", ()).await.expect(400);
    let huge = "9".repeat(1000);
    server.ask("GET", &format!("/db/_all_docs?limit={huge}&skip={huge}"), ()).await.expect(200);
    server.ask("GET", &format!("/db/_all_docs?skip=-{huge}"), ()).await.expect(400);
    server.ask("GET", &format!("/_uuids?count={huge}"), ()).await.expect(400);
    server.ask("GET", &format!("/db/_changes?since={huge}"), ()).await.expect(400);
    server.ask("GET", &format!("/db/_changes?limit={huge}"), ()).await.expect(200);
    let many = "a=b&".repeat(10_000);
    server.ask("GET", &format!("/db/_all_docs?{many}"), ()).await.expect(400);
    server.ask("PUT", "/db/_mine", json!({})).await.expect_error(
        400,
        "illegal_docid",
        "Only reserved document ids may start with underscore.",
    );
    server.ask("GET", "/db/_mine", ()).await.expect_error(404, "not_found", "missing");
    server.ask("BREW", "/db/x", ()).await.expect(405);
    server.ask("BREW", "/", ()).await.expect_error(
        405,
        "method_not_allowed",
        "Only GET,HEAD,PROPFIND allowed",
    );
    server.ask("GET", "/db", ()).await.expect(200);
    server.ask("PUT", "/db/x", json!({"fine": true})).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_http_gets_an_error() {
    let server = impatient().await;
    for garbage in
        ["nonsense\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\u{16}\u{3}\u{1}", "GET /\u{0} HTTP/1.1\r\n\r\n"]
    {
        let mut stream = server.connect().await;
        stream.write_all(garbage.as_bytes()).await.unwrap();
        let answer = read_all(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
    let mut smuggled = server.connect().await;
    let request = "POST /_session HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    smuggled.write_all(request.as_bytes()).await.unwrap();
    assert!(!read_all(&mut smuggled).await.starts_with("HTTP/1.1 200"));
    is_well(&server).await;
}

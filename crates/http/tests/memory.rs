//! What the worst bodies and answers take in memory. A program of its own, since it counts every allocation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

#[path = "it/common.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod common;

use std::io::Write;
use std::time::Duration;

use base64::Engine;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::join_all;
use http_body_util::BodyExt;
use peak_alloc::PeakAlloc;
use scrinium_database::DatabaseOptions;
use scrinium_http::{BodyLimit, HttpOptions, PortOptions, routes};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use common::{Server, local_port};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What requests and answers may hold.
const BUDGET_BYTES: usize = 8 << 20;

/// What else a server takes while it answers a few requests, in these tests.
const ROOM_BYTES: usize = 24 << 20;

async fn server() -> Server {
    let port = PortOptions { max_request_bytes: 4 << 20, ..local_port() };
    let http = HttpOptions { body_budget_bytes: BUDGET_BYTES, ..HttpOptions::default() };
    let server = Server::with_http(port, DatabaseOptions::default(), http).await;
    server.ask("PUT", "/db", ()).await.expect(201);
    server
}

/// The most that is allocated while `work` is done, beyond what is before it.
async fn growth<T>(work: impl Future<Output = T>) -> (usize, T) {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let done = work.await;
    (MEMORY.peak_usage().saturating_sub(before), done)
}

fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap().into()
}

/// Bodies that take many times their length once they are parsed, of about this length.
fn worst(length: usize) -> [Bytes; 4] {
    let around = |start: &str, piece: &str, end: &str| {
        let middle = piece.repeat((length.saturating_sub(start.len() + end.len())) / piece.len());
        Bytes::from(format!("{start}{middle}0{end}"))
    };
    [
        around("{\"a\":[", "0,", "]}"),
        around("{\"docs\":[", "{},", "]}"),
        around("{\"selector\":{\"a\":{\"$in\":[", "[],", "]}}}"),
        Bytes::from(format!("{{\"keys\":{}", "[".repeat(length))),
    ]
}

/// A log-in inflated a body of some KB to 64 MB, and made 3 GB of that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_body_takes_more_than_the_budget() {
    let server = server().await;
    // Where the budget is missed, a megabyte shows it; `make torture` sends as much as the routes take.
    let longest = if std::env::var_os("SCRINIUM_TIMES").is_some() { 4 << 20 } else { 1 << 20 };
    for route in routes() {
        let address = route.path.replace("{db}", "db").replace("...", "").replace(['{', '}'], "");
        for entry in route.methods {
            let most = match entry.limits.body {
                BodyLimit::Nothing | BodyLimit::Attachment => continue,
                BodyLimit::Bytes(bytes) => bytes.min(longest),
                BodyLimit::Document | BodyLimit::PlainDocument | BodyLimit::Port => longest,
            };
            for body in worst(most) {
                for packed in [false, true] {
                    let (plain, compressed) = (
                        [("content-type", "application/json")],
                        [("content-type", "application/json"), ("content-encoding", "gzip")],
                    );
                    let sent = if packed { gzip(&body) } else { body.clone() };
                    let headers: &[(&str, &str)] = if packed { &compressed } else { &plain };
                    let asked =
                        (0..3).map(|_| server.try_ask(entry.method, &address, (headers, sent.clone())));
                    let (grown, answers) = growth(join_all(asked)).await;
                    for answer in answers.into_iter().flatten() {
                        let is_defect = answer.status.is_server_error() && answer.status != 503;
                        assert!(!is_defect, "{} {address}: {}", entry.method, answer.text());
                        if packed && !entry.limits.gzip {
                            assert_eq!(answer.status, 415, "{} {address}", entry.method);
                        }
                    }
                    // The client's own copies are counted too.
                    let most = BUDGET_BYTES + ROOM_BYTES + 6 * sent.len();
                    assert!(
                        grown < most,
                        "{} {address}: {grown} bytes for {} sent",
                        entry.method,
                        sent.len()
                    );
                }
            }
        }
    }
    server.ask_as("", "GET", "/_up", ()).await.expect(200);
}

/// Sends a long body of blanks. A client that is refused while it sends may be cut off before it reads why, and asks
/// again.
async fn refuses(server: &Server, (name, method, path): (&str, &str, &str), length: usize, status: u16) {
    let authorization = common::basic(name, common::PASSWORD);
    let authorization =
        if name.is_empty() { String::new() } else { format!("Authorization: {authorization}\r\n") };
    let mut answers = Vec::new();
    for _ in 0..20 {
        let mut stream = server.connect().await;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{authorization}Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        drop(stream.write_all(&vec![b' '; length]).await);
        let mut first = [0; 12];
        if tokio::io::AsyncReadExt::read_exact(&mut stream, &mut first).await.is_ok() {
            answers.push(String::from_utf8_lossy(&first).into_owned());
            break;
        }
    }
    assert_eq!(answers, [format!("HTTP/1.1 {status}")], "{method} {path}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_longer_than_its_route_allows_is_not_read() {
    let server = server().await;
    let json = [("content-type", "application/json")];
    let refused = server.ask_as("", "POST", "/_session", (json, vec![b' '; 5000])).await.expect(413);
    assert!(refused.text().contains("4096"), "{}", refused.text());
    server.ask("POST", "/_console", (json, vec![b' '; 5000])).await.expect(413);
    refuses(&server, ("admin", "POST", "/db/_find"), (1 << 20) + 1, 413).await;
    refuses(&server, ("admin", "PUT", "/db/x"), (4 << 20) + 1, 413).await;
    // Nor what is compressed.
    let packed = [("content-type", "application/json"), ("content-encoding", "gzip")];
    server.ask("POST", "/db/_find", (packed, gzip(&vec![b' '; (1 << 20) + 1]))).await.expect(413);
    let many = format!("{{\"selector\":{{\"a\":{{\"$in\":[{}0]}}}}}}", "0,".repeat(60_000));
    server.ask("POST", "/db/_find", (json, many)).await.expect(413);
    // Nor that of somebody who may not ask.
    refuses(&server, ("", "PUT", "/db/x"), 3 << 20, 401).await;
    server.ask("PUT", "/db/_security", json!({"members": {"names": ["ada"], "roles": []}})).await.expect(200);
    refuses(&server, ("bob", "POST", "/db/_bulk_docs"), 3 << 20, 404).await;
}

/// They were made whole in memory, for each client that did not read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attachments_in_json_are_read_as_they_are_sent() {
    let server = server().await;
    let content: Vec<u8> = (0..20_000_001_u32).map(|number| (number % 251) as u8).collect();
    let expected = base64::engine::general_purpose::STANDARD.encode(&content);
    let mut rev = String::new();
    for name in ["a", "b"] {
        let path = format!("/db/x/{name}?rev={rev}");
        let path = if rev.is_empty() { "/db/x/a".to_owned() } else { path };
        rev = server.ask("PUT", &path, (&[][..], content.clone())).await.expect(201).revision();
    }
    drop(content);
    let as_json = [("accept", "application/json")];
    for (method, path) in [
        ("GET", "/db/x?attachments=true".to_owned()),
        ("GET", format!("/db/x?attachments=true&rev={rev}&revs=true")),
        ("GET", "/db/x?open_revs=all&attachments=true".to_owned()),
        ("GET", "/db/_all_docs?include_docs=true&attachments=true".to_owned()),
        ("GET", "/db/_changes?include_docs=true&attachments=true".to_owned()),
        ("GET", "/db/_changes?feed=longpoll&include_docs=true&attachments=true".to_owned()),
        ("POST", "/db/_bulk_get?attachments=true".to_owned()),
    ] {
        let asked = || {
            if method == "POST" {
                json!({"docs": [{"id": "x"}]}).into()
            } else {
                common::Asked::from(as_json)
            }
        };
        // Clients that do not read.
        let (grown, unread) = growth(async {
            let opened = join_all((0..4).map(|_| server.open_as("admin", method, &path, asked()))).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            opened
        })
        .await;
        assert!(unread.iter().all(|answer| answer.status() == 200), "{path}");
        assert!(grown < ROOM_BYTES, "{path}: {grown} bytes");
        drop(unread);
        let answer = server.open_as("admin", method, &path, asked()).await;
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        let text = std::str::from_utf8(&text).unwrap();
        assert_eq!(text.matches(&expected).count(), 2, "{path}: {} bytes", text.len());
        assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{path}");
    }
}

/// Five of them took all of the budget by what they declared, and kept it for as long as they liked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_bodies_do_not_keep_others_from_writing() {
    let server = server().await;
    server.ask("PUT", "/db/_security", json!({"members": {"names": ["ada"], "roles": []}})).await.expect(200);
    let authorization = common::basic("ada", common::PASSWORD);
    let mut slow = Vec::new();
    for number in 0..16 {
        let mut stream = server.connect().await;
        let length = 4 << 20;
        let head = format!(
            "PUT /db/slow{number} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // Who is refused may be cut off while it sends.
        drop(stream.write_all(&vec![b' '; 900 << 10]).await);
        slow.push(stream);
    }
    let document = json!({"text": "x".repeat(100_000)});
    for number in 0..20 {
        for stream in &mut slow {
            drop(stream.write_all(b" ").await);
        }
        server.ask_as("admin", "PUT", &format!("/db/honest{number}"), document.clone()).await.expect(201);
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}

/// They were held whole, as the base64 that they came as, with all others of the request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attachments_in_json_are_not_held_as_they_come() {
    let server = server().await;
    let content: Vec<u8> = (0..1_500_001_u32).map(|number| (number % 249) as u8).collect();
    let encoded = base64::engine::general_purpose::STANDARD.encode(&content);
    let small = base64::engine::general_purpose::STANDARD.encode(&content[..40_000]);
    for data in [&encoded, &small] {
        let document = |number: usize| {
            format!(
                "{{\"_id\":\"{}-{number}\",\"_attachments\":{{\"a\":{{\"data\":\"{data}\"}}}}}}",
                data.len()
            )
        };
        let many: Vec<String> = (0..(30 << 20) / data.len()).map(document).collect();
        let body = Bytes::from(format!("{{\"docs\":[{}]}}", many.join(",")));
        let number = many.len();
        drop(many);
        let asked = server.ask("POST", "/db/_bulk_docs", ([("content-type", "application/json")], body));
        let (grown, answer) = growth(asked).await;
        let rows = answer.expect(201).json();
        assert_eq!(rows.as_array().unwrap().iter().filter(|row| row["ok"] == true).count(), number);
        assert!(grown < BUDGET_BYTES + ROOM_BYTES, "{grown} bytes for attachments of {}", data.len());
    }
}

//! Framing of HTTP/1.1 that two programs may read differently, and floods of HTTP/2 frames.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::common::{PASSWORD, Server, basic};

/// The beginning of what is answered to `request`, with everything that comes within a moment.
async fn answer(server: &Server, request: &[u8]) -> String {
    let mut stream = server.connect().await;
    drop(stream.write_all(request).await);
    read_some(&mut stream).await
}

async fn read_some(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(Ok(length)) = timeout(Duration::from_millis(300), stream.read(&mut piece)).await {
        if length == 0 {
            break;
        }
        bytes.extend_from_slice(&piece[..length]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn is_well(server: &Server) {
    server.ask_as("", "GET", "/_up", ()).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_read_in_two_ways_is_refused() {
    let server = Server::start().await;
    let many: String = (0..300).map(|number| format!("X-{number}: y\r\n")).collect();
    for (what, request) in [
        ("two hosts", "GET /_up HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n".to_owned()),
        ("the same host twice", "GET /_up HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n".to_owned()),
        ("no host", "GET /_up HTTP/1.1\r\nAccept: */*\r\n\r\n".to_owned()),
        ("no name of a host", "GET /_up HTTP/1.1\r\nHost: a b/c\r\n\r\n".to_owned()),
        ("lines that end with LF", "GET /_up HTTP/1.1\nHost: x\n\n".to_owned()),
        ("one line that ends with LF", "GET /_up HTTP/1.1\r\nHost: x\nX-Y: z\r\n\r\n".to_owned()),
        ("a head that ends with LF", "GET /_up HTTP/1.1\r\nHost: x\r\n\n".to_owned()),
        ("two lengths", "POST /_session HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}".to_owned()),
        ("a list of lengths", "POST /_session HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 3\r\n\r\n{}".to_owned()),
        ("a length that is invalid", "POST /_session HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}".to_owned()),
        ("length and coding", "POST /_session HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned()),
        ("another coding", "POST /_session HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n".to_owned()),
        ("a coding spelled oddly", "POST /_session HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \u{b}chunked\r\n\r\n0\r\n\r\n".to_owned()),
        ("a folded line", "GET /_up HTTP/1.1\r\nHost: x\r\nX-Y: a\r\n b\r\n\r\n".to_owned()),
        ("a blank before the colon", "GET /_up HTTP/1.1\r\nHost : x\r\n\r\n".to_owned()),
        ("300 headers", format!("GET /_up HTTP/1.1\r\nHost: x\r\n{many}\r\n")),
    ] {
        let answered = answer(&server, request.as_bytes()).await;
        let refused = answered.is_empty()
            || answered.starts_with("HTTP/1.1 400")
            || answered.starts_with("HTTP/1.1 431")
            || answered.starts_with("HTTP/1.1 501");
        assert!(refused, "{what}: {answered}");
        assert_eq!(answered.matches("HTTP/1.1").count().max(1), 1, "{what}: {answered}");
    }
    let fine =
        answer(&server, b"GET /_up HTTP/1.1\r\nHost: x\r\n\r\nGET /_up HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(fine.matches("HTTP/1.1 200").count(), 2, "{fine}");
    // A second request in the same packet is looked at as well.
    let second = answer(&server, b"GET /_up HTTP/1.1\r\nHost: x\r\n\r\nGET /_up HTTP/1.1\nHost: x\n\n").await;
    assert_eq!(second.matches("HTTP/1.1 200").count(), 1, "{second}");
    is_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_with_line_ends_come_through_as_they_are() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let mut stream = server.connect().await;
    let authorization = basic("admin", PASSWORD);
    let head = format!("PUT /db/x/text HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n");
    let text = "a\nb\n\nGET / HTTP/1.1\n\n\r\n\r\nc\n".repeat(50);
    let request = format!("{head}Content-Length: {}\r\n\r\n{text}", text.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let stored = read_some(&mut stream).await;
    assert!(stored.starts_with("HTTP/1.1 201"), "{stored}");
    assert_eq!(server.ask("GET", "/db/x/text", ()).await.expect(200).text(), text);
    let rev = server.ask("GET", "/db/x", ()).await.json()["_rev"].as_str().unwrap().to_owned();
    let head = head.replace("/text", &format!("/text?rev={rev}"));
    let chunks: String = text
        .as_bytes()
        .chunks(9)
        .map(|chunk| format!("{:x}\r\n{}\r\n", chunk.len(), String::from_utf8_lossy(chunk)))
        .collect();
    let request = format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n");
    // On the same connection, in two packets.
    let (first, second) = request.as_bytes().split_at(400);
    stream.write_all(first).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    stream.write_all(second).await.unwrap();
    let stored = read_some(&mut stream).await;
    assert!(stored.starts_with("HTTP/1.1 201"), "{stored}");
    assert_eq!(server.ask("GET", "/db/x/text", ()).await.expect(200).text(), text);
    // Extensions of chunks are bounded.
    let mut stream = server.connect().await;
    let endless = format!("{head}Transfer-Encoding: chunked\r\n\r\n1;");
    stream.write_all(endless.as_bytes()).await.unwrap();
    let mut sent = 0;
    while sent < 64 << 20 && stream.write_all(&[b'x'; 65536]).await.is_ok() {
        sent += 65536;
    }
    assert!(sent < 16 << 20, "{sent} bytes of an extension were taken");
    is_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_say_how_they_may_be_kept_and_shown() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let made = server.ask("PUT", "/db/x", json!({})).await.expect(201);
    assert_eq!(made.header("location"), Some("/db/x"));
    for (name, path, expected) in [
        ("", "/", "must-revalidate"),
        ("admin", "/", "private, must-revalidate"),
        ("admin", "/db/x", "private, must-revalidate"),
        ("admin", "/db/nothing", "private, must-revalidate"),
        ("admin", "/_uuids", "private, must-revalidate, no-cache"),
    ] {
        let answer = server.ask_as(name, "GET", path, ()).await;
        assert_eq!(answer.header("cache-control"), Some(expected), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("strict-transport-security"), None, "{path}");
    }
    let opened = server
        .ask_as("", "POST", "/_session", json!({"name": "ada", "password": PASSWORD}))
        .await
        .expect(200);
    assert_eq!(opened.header("cache-control"), Some("no-store"));
    let closed = server.ask_as("ada", "DELETE", "/_session", ()).await.expect(200);
    assert_eq!(closed.header("cache-control"), Some("must-revalidate"));
}

/// A frame of HTTP/2 (RFC 9113 §4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// `GET /` with an authority `x`, by the static table and literals (RFC 7541).
const HEADERS: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x01, b'x'];

/// Sends frames until the server has enough of them; how many were taken.
async fn flood(server: &Server, most: u32, next: impl Fn(u32) -> Vec<u8>) -> u32 {
    let mut stream = server.connect().await;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    stream.write_all(&frame(4, 0, 0, &[])).await.unwrap();
    for number in 0..most {
        let sent = timeout(Duration::from_millis(500), stream.write_all(&next(number))).await;
        if !matches!(sent, Ok(Ok(()))) {
            return number;
        }
    }
    most
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_of_http2_frames_are_cut_off() {
    let server = Server::start().await;
    // Requests that are taken back at once (CVE-2023-44487).
    let reset = flood(&server, 20_000, |number| {
        let stream = 2 * number + 1;
        [frame(1, 5, stream, HEADERS), frame(3, 0, stream, &[0, 0, 0, 8])].concat()
    });
    assert!(reset.await < 20_000, "all requests that were reset were taken");
    is_well(&server).await;
    // A head that never ends (CVE-2024-27316).
    let endless = flood(&server, 50_000, |number| match number {
        0 => frame(1, 1, 1, HEADERS),
        _ => frame(9, 0, 1, &[0x00, 0x01, b'a', 0x01, b'b'].repeat(200)),
    });
    assert!(endless.await < 50_000, "a head without end was taken");
    is_well(&server).await;
    // Frames that each want an answer, from a client that reads none: what waits for it is bounded, and others go on.
    flood(&server, 30_000, |_| frame(6, 0, 0, &[7; 8])).await;
    is_well(&server).await;
    flood(&server, 30_000, |_| frame(4, 0, 0, &[0, 3, 0, 0, 0, 100])).await;
    is_well(&server).await;
}

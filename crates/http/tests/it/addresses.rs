//! Addresses as people and browsers write them, with characters that ought to be encoded.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::{PASSWORD, Server, basic};

/// The status and the JSON that are answered to a request with this address, byte for byte.
async fn ask(server: &Server, method: &str, target: &[u8], headers: &[u8], body: &str) -> (u16, Value) {
    let mut stream = server.connect().await;
    let length = format!(
        "\r\nHost: x\r\nConnection: close\r\nAuthorization: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        basic("admin", PASSWORD),
        body.len()
    );
    let head =
        [method.as_bytes(), b" ", target, b" HTTP/1.1", length.as_bytes(), headers, b"\r\n", body.as_bytes()];
    drop(stream.write_all(&head.concat()).await);
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer).await);
    let answer = String::from_utf8(answer).unwrap();
    let (head, mut body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        // One piece.
        body = body.split("\r\n").nth(1).unwrap();
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{target:?}: {error}: {answer}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ought_to_be_encoded_in_an_address_is_taken_for_itself() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    // Every character that can stand in a line, but for those that mean something in a path.
    let name: String = (33_u8..127).map(char::from).filter(|char| !"#%/?+".contains(*char)).collect();
    let name = format!("{name}\u{e4}\u{20ac}\u{1f600}");
    let target = format!("/db/{name}");
    let (status, made) = ask(&server, "PUT", target.as_bytes(), b"", "{\"n\":1}").await;
    assert_eq!((status, &made["id"]), (201, &json!(name)));
    let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let read = server.ask("GET", &format!("/db/{encoded}"), ()).await.expect(200).json();
    assert_eq!(read["_id"], json!(name));
    for key in [&b"?key=\"a\""[..], b"?startkey=\"<\"&endkey=\">\"", b"?keys=[\"a\",\"{}|^`\\\\\"]"] {
        let (status, rows) = ask(&server, "GET", &[b"/db/_all_docs", key].concat(), b"", "").await;
        assert_eq!(status, 200, "{rows}");
    }
    let key =
        [b"/db/_all_docs?key=", json!(name).to_string().replace('&', "%26").replace('+', "%2B").as_bytes()]
            .concat();
    let (_, rows) = ask(&server, "GET", &key, b"", "").await;
    assert_eq!(rows["rows"][0]["id"], json!(name), "{rows}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_refused_is_refused_with_a_reason() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let long = [b"/db/", &[b'"'; 60_000][..]].concat();
    for (target, headers, expected) in [
        (&b"/db/\xe4"[..], &b""[..], 400),
        (b"/db/_all_docs?key=%22\xff%22", b"", 400),
        (b"/db/a b", b"", 400),
        (b"/db/a\tb", b"", 400),
        (b"/db/a\0b", b"", 400),
        (b"/db/a\x7f", b"", 400),
        (b"/db/a\rb", b"", 400),
        (b"/db/a\nb", b"", 400),
        (b"db", b"", 400),
        (b"/db", b"X-Y : z\r\n", 400),
        (b"/db", b"X-Y: a\0\r\n", 400),
        (b"/db", b"X-Y: a\nZ: b\r\n", 400),
        (b"/db", b"Content-Length: 7\r\n", 400),
        (b"/db", b"Transfer-Encoding: gzip\r\n", 501),
        (&long, b"", 414),
    ] {
        let (status, refusal) = ask(&server, "GET", target, headers, "").await;
        assert_eq!(status, expected, "{refusal}");
        let is_said = |member: &str| refusal[member].as_str().is_some_and(|text| !text.is_empty());
        assert!(is_said("error") && is_said("reason"), "{target:?}: {refusal}");
    }
    // What follows a refused request on its connection is no request.
    let mut stream = server.connect().await;
    let both = b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(both).await.unwrap();
    let mut answer = String::new();
    drop(stream.read_to_string(&mut answer).await);
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
}

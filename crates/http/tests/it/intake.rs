//! Attachments that stand in the JSON of documents, as PouchDB sends them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use scrinium_database::DatabaseOptions;
use scrinium_http::PortOptions;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::{PASSWORD, Server, basic, local_port};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// A server that holds a megabyte of a request.
async fn small() -> Server {
    let port = PortOptions { max_request_bytes: 1 << 20, ..local_port() };
    let options = DatabaseOptions { attachment_max_bytes: 3 << 20, ..DatabaseOptions::default() };
    let server = Server::with(port, options).await;
    server.ask("PUT", "/db", ()).await.expect(201);
    server
}

fn photograph(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 11) as u8).collect()
}

fn with_photographs(id: &str, contents: &[Vec<u8>]) -> Value {
    let attachments: serde_json::Map<String, Value> = contents
        .iter()
        .enumerate()
        .map(|(number, content)| {
            let stub = json!({"content_type": "image/jpeg", "data": STANDARD.encode(content)});
            (format!("{number}.jpg"), stub)
        })
        .collect();
    json!({"_id": id, "_attachments": attachments, "note": "x"})
}

async fn check(server: &Server, id: &str, contents: &[Vec<u8>]) {
    let document = server.ask("GET", &format!("/db/{id}"), ()).await.expect(200).json();
    assert_eq!(
        (&document["note"], document["_attachments"].as_object().unwrap().len()),
        (&json!("x"), contents.len())
    );
    for (number, content) in contents.iter().enumerate() {
        let name = format!("{number}.jpg");
        let stub = &document["_attachments"][&name];
        assert_eq!((&stub["length"], &stub["content_type"]), (&json!(content.len()), &json!("image/jpeg")));
        let read = server.ask("GET", &format!("/db/{id}/{name}"), ()).await.expect(200);
        assert!(read.body == content[..], "{id} {name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn photographs_of_many_documents_come_in_one_request() {
    let server = small().await;
    // Large ones, many small ones, some that are the same, and none.
    let lengths: [&[usize]; 4] = [&[900_000, 600_000], &[70_000; 8], &[3_000; 120], &[]];
    let mut all = Vec::new();
    for round in 0..6 {
        for (kind, lengths) in lengths.iter().enumerate() {
            let seed = if kind == 1 { 0 } else { round * 1000 };
            let contents: Vec<_> =
                lengths.iter().enumerate().map(|(at, length)| photograph(seed + at * 7, *length)).collect();
            all.push((format!("{round}-{kind}"), contents));
        }
    }
    let documents: Vec<Value> = all.iter().map(|(id, contents)| with_photographs(id, contents)).collect();
    let documents: Vec<Value> = documents
        .into_iter()
        .map(|mut document| {
            if let Value::Object(attachments) = document["_attachments"].take() {
                document["_attachments"] = attachments.into_iter().collect();
            }
            document
        })
        .collect();
    let body = json!({"docs": documents}).to_string();
    assert!(body.len() > 12 << 20);
    let rows = server.ask("POST", "/db/_bulk_docs", (JSON, body)).await.expect(201).json();
    assert!(rows.as_array().unwrap().iter().all(|row| row["ok"] == true), "{rows}");
    for (id, contents) in &all {
        if contents.is_empty() {
            server.ask("GET", &format!("/db/{id}"), ()).await.expect(200);
        } else {
            check(&server, id, contents).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_writing_a_document_takes_long_attachments() {
    let server = small().await;
    let contents = [photograph(1, 2_500_000), photograph(2, 1), photograph(3, 2_000_000)];
    let document = with_photographs("put", &contents).to_string();
    server.ask("PUT", "/db/put", (JSON, document)).await.expect(201);
    check(&server, "put", &contents).await;
    let document = with_photographs("post", &contents).to_string();
    server.ask("POST", "/db", (JSON, document)).await.expect(201);
    check(&server, "post", &contents).await;
    // A revision that is brought keeps its own, and the same document again changes nothing.
    for _ in 0..2 {
        let mut document = with_photographs("brought", &contents);
        document["_rev"] = "3-abc".into();
        let body = json!({"new_edits": false, "docs": [document]}).to_string();
        server.ask("POST", "/db/_bulk_docs", (JSON, body)).await.expect_text(201, "[]\n");
    }
    check(&server, "brought", &contents).await;
    // In chunks, the content before its type, and other members around it.
    let authorization = basic("admin", PASSWORD);
    let mut stream = server.connect().await;
    let head = format!(
        "PUT /db/chunked HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\nConnection: close\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let text = format!(
        "{{\"note\":\"x\",\"_attachments\":{{\"0.jpg\":{{\"data\":\"{}\",\"length\":7,\"digest\":\"md5-x\",\
         \"content_type\":\"image/jpeg\"}}}},\"last\":[{{\"data\":\"{}\"}}]}}",
        STANDARD.encode(&contents[0]).replace('/', "\\/"),
        "A".repeat(100_000)
    );
    for piece in text.as_bytes().chunks(50_000) {
        stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await.unwrap();
        stream.write_all(piece).await.unwrap();
        stream.write_all(b"\r\n").await.unwrap();
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    check(&server, "chunked", &contents[..1]).await;
    let read = server.ask("GET", "/db/chunked", ()).await.expect(200).json();
    assert_eq!(read["last"][0]["data"].as_str().unwrap().len(), 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_wrong_attachment_leaves_nothing() {
    let server = small().await;
    let good = with_photographs("good", &[photograph(1, 800_000)]).to_string();
    let long = STANDARD.encode(photograph(2, 400_000));
    let broken = format!("{{\"_attachments\":{{\"a\":{{\"data\":\"{long}*{long}\"}}}}}}");
    let too_long = with_photographs("long", &[photograph(3, (3 << 20) + 1)]).to_string();
    let stub = "{\"_attachments\":{\"a\":{\"follows\":true}}}";
    let cases: [(String, u16, &str); 4] = [
        (broken, 400, "bad_request"),
        (too_long, 413, "attachment_too_large"),
        (format!("{{\"x\":\"{}\"}}", "y".repeat(2 << 20)), 413, "too_large"),
        (
            format!("{{\"_zing\":1,\"_attachments\":{{\"a\":{{\"data\":\"{long}\"}}}}}}"),
            400,
            "doc_validation",
        ),
    ];
    for (document, status, error) in cases {
        let bulk = format!("{{\"docs\":[{good},{document}]}}");
        for (method, path, body) in [("POST", "/db/_bulk_docs", bulk), ("PUT", "/db/one", document.clone())] {
            let answer = server.ask(method, path, (JSON, body)).await.expect(status).json();
            assert_eq!(answer["error"], error, "{method} {status}");
        }
    }
    // What is said to follow is not there, and is not what another document brought.
    let bulk = format!(
        "{{\"docs\":[{good},{{\"_id\":\"other\",\"_attachments\":{{\"0.jpg\":{{\"follows\":true}}}}}}]}}"
    );
    let rows = server.ask("POST", "/db/_bulk_docs", (JSON, bulk)).await.expect(201).json();
    assert_eq!((&rows[0]["ok"], &rows[1]["error"]), (&json!(true), &json!("bad_request")));
    server.ask("PUT", "/db/other", (JSON, stub)).await.expect(400);
    server.ask("GET", "/db/one", ()).await.expect(404);
    assert_eq!(server.ask("GET", "/db", ()).await.expect(200).json()["doc_count"], 1);
    // One that breaks off.
    let mut stream = server.connect().await;
    let head = format!(
        "PUT /db/cut HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\nContent-Length: {}\r\n\r\n",
        basic("admin", PASSWORD),
        good.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&good.as_bytes()[..good.len() / 2]).await.unwrap();
    drop(stream);
    server.ask("PUT", "/db/after", (JSON, Bytes::from(good))).await.expect(201);
    server.ask("GET", "/db/cut", ()).await.expect(404);
}

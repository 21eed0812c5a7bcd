//! Attachments by themselves.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use serde_json::json;

use crate::common::Server;

#[tokio::test(flavor = "multi_thread")]
async fn an_attachment_is_put_read_and_removed() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let text = ([("content-type", "text/plain")], "Hello, attachment");
    let made = server.ask("PUT", "/db/x/folder/a%20b.txt", text).await.expect(201);
    let revision = made.revision();
    assert_eq!(made.header("location"), Some("/db/x/folder%2Fa%20b.txt"));
    let read = server.ask("GET", "/db/x/folder/a%20b.txt", ()).await.expect_text(200, "Hello, attachment");
    let digest = "xvGzHtPGnWy5+9YWhr4c7A==";
    let digest_told = read.header("content-md5").unwrap().to_owned();
    assert_eq!(digest_told.len(), digest.len());
    assert_eq!(read.header("etag"), Some(format!("\"{digest_told}\"").as_str()));
    assert_eq!(read.header("content-type"), Some("text/plain"));
    assert_eq!(read.header("accept-ranges"), Some("bytes"));
    assert_eq!(read.header("content-length"), Some("17"));
    assert_eq!(read.header("content-security-policy"), Some("sandbox"));
    let tag = read.header("etag").unwrap();
    server.ask("GET", "/db/x/folder/a%20b.txt", [("if-none-match", tag)]).await.expect_text(304, "");
    let head = server.ask("HEAD", "/db/x/folder/a%20b.txt", ()).await.expect_text(200, "");
    assert_eq!(head.header("content-length"), Some("17"));

    let document = server.ask("GET", "/db/x", ()).await.expect(200).json();
    let stub = &document["_attachments"]["folder/a b.txt"];
    assert_eq!((&stub["stub"], &stub["length"], &stub["revpos"]), (&json!(true), &json!(17), &json!(1)));
    assert_eq!(stub["digest"], json!(format!("md5-{digest_told}")));
    let as_json = [("accept", "application/json")];
    let inline = server.ask("GET", "/db/x?attachments=true", as_json).await.expect(200).json();
    assert_eq!(inline["_attachments"]["folder/a b.txt"]["data"], "SGVsbG8sIGF0dGFjaG1lbnQ=");

    server.ask("PUT", "/db/x/other", (&[][..], "x")).await.expect(409);
    let with_digest = (&[("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")][..], "x");
    let path = format!("/db/x/other?rev={revision}");
    server.ask("PUT", &path, with_digest).await.expect_error(
        400,
        "content_md5_mismatch",
        "Possible message corruption.",
    );
    server.ask("PUT", &path, ([("content-encoding", "br")], "x")).await.expect(415);
    let second = server.ask("PUT", &path, (&[][..], "x")).await.expect(201).revision();
    assert_eq!(
        server.ask("GET", "/db/x/other", ()).await.header("content-type"),
        Some("application/octet-stream")
    );
    server.ask("DELETE", "/db/x/other", ()).await.expect(409);
    let missing = server.ask("DELETE", &format!("/db/x/none?rev={second}"), ()).await;
    missing.expect_error(404, "not_found", "Document is missing attachment");
    server.ask("DELETE", "/db/none/a", ()).await.expect_error(404, "not_found", "missing");
    server.ask("DELETE", "/db/x/none", ()).await.expect_error(
        404,
        "not_found",
        "Document is missing attachment",
    );
    // A revision that was superseded is a conflict; one that never was is another thing.
    server.ask("DELETE", &format!("/db/x/other?rev={revision}"), ()).await.expect(409);
    server.ask("PUT", &path, (&[][..], "x")).await.expect_error(409, "conflict", "Document update conflict.");
    for (method, path) in [
        ("PUT", "/db/x/other?rev=7-abc"),
        ("DELETE", "/db/x/other?rev=7-abc"),
        ("PUT", "/db/none/a?rev=1-abc"),
        ("DELETE", "/db/none/a?rev=1-abc"),
    ] {
        server.ask(method, path, (&[][..], "x")).await.expect_error(409, "not_found", "missing_rev");
    }
    let third = server.ask("DELETE", &format!("/db/x/other?rev={second}"), ()).await.expect(200).revision();
    assert!(third.starts_with("3-"));
    server.ask("GET", "/db/x/other", ()).await.expect_error(
        404,
        "not_found",
        "Document is missing attachment",
    );
    let old = server.ask("GET", &format!("/db/x/folder/a%20b.txt?rev={third}"), ()).await;
    old.expect_text(200, "Hello, attachment");
    server.ask("GET", "/db/none/a", ()).await.expect_error(404, "not_found", "missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_is_read_by_range() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    server.ask("PUT", "/db/x/a", (&[][..], "0123456789")).await.expect(201);
    let part = server.ask("GET", "/db/x/a", [("range", "bytes=2-5")]).await;
    assert_eq!(part.header("content-range"), Some("bytes 2-5/10"));
    assert_eq!(part.header("content-length"), Some("4"));
    part.expect_text(206, "2345");
    server.ask("GET", "/db/x/a", [("range", "bytes=-3")]).await.expect_text(206, "789");
    let whole = server.ask("GET", "/db/x/a", [("range", "bytes=0-")]).await.expect_text(200, "0123456789");
    assert_eq!((whole.header("content-range"), whole.header("content-md5").is_some()), (None, true));
    let several = server.ask("GET", "/db/x/a", [("range", "bytes=0-1,4-4,-2")]).await.expect(206);
    let kind = several.header("content-type").unwrap();
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=\"").unwrap().trim_end_matches('"');
    let part = |range: &str, text: &str| {
        format!(
            "\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes {range}/10\r\n\r\n{text}\r\n"
        )
    };
    let parts =
        [part("0-1", "01"), part("4-4", "4"), part("8-9", "89")].map(|part| format!("--{boundary}{part}"));
    assert_eq!(several.text(), format!("{}--{boundary}--", parts.concat()));
    assert_eq!(several.header("content-length"), Some(several.body.len().to_string().as_str()));
    for reversed in ["bytes=2-1", "bytes=0-0,2-1", "bytes=0-0,20-"] {
        server.ask("GET", "/db/x/a", [("range", reversed)]).await.expect(416);
    }
    let outside = server.ask("GET", "/db/x/a", [("range", "bytes=10-")]).await;
    assert_eq!(outside.header("content-range"), Some("bytes */10"));
    outside.expect_error(416, "requested_range_not_satisfiable", "Requested range not satisfiable");
    let other = [("range", "bytes=2-5"), ("if-range", "\"other\"")];
    server.ask("GET", "/db/x/a", other).await.expect_text(200, "0123456789");
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_bodies_are_inflated() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let gzip = [("content-encoding", "gzip")];
    let text = "compressed ".repeat(100_000);
    server.ask("PUT", "/db/x/a", (gzip, compressed(text.as_bytes()))).await.expect(201);
    assert!(server.ask("GET", "/db/x/a", ()).await.expect(200).body == text.as_bytes());
    server.ask("PUT", "/db/y", (gzip, compressed(b"{\"x\":1}"))).await.expect(201);
    assert_eq!(server.ask("GET", "/db/y", ()).await.expect(200).json()["x"], 1);
    for broken in [&b"nonsense"[..], &compressed(text.as_bytes())[..2000]] {
        server.ask("PUT", "/db/x/b", (gzip, broken.to_vec())).await.expect(400);
        server.ask("PUT", "/db/z", (gzip, broken.to_vec())).await.expect(400);
    }
    // A small body that stands for more than the port takes.
    let bomb = compressed(&vec![b' '; 65 << 20]);
    assert!(bomb.len() < 1 << 20);
    server.ask("PUT", "/db/z", (gzip, bomb)).await.expect(413);
}

/// As CouchDB stores and gives it, and takes it from replicators.
#[tokio::test(flavor = "multi_thread")]
async fn an_attachment_that_came_as_gzip_goes_out_so_to_who_takes_it() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let text = "compressed ".repeat(100_000);
    let packed = compressed(text.as_bytes());
    let digest = STANDARD.encode(Md5::digest(&packed));
    let sent = [("content-encoding", "gzip"), ("content-type", "text/plain"), ("content-md5", &*digest)];
    server.ask("PUT", "/db/x/a", (&sent[..], packed.clone())).await.expect(201);
    let named = json!({"content_type": "text/plain", "revpos": 1, "digest": format!("md5-{digest}"),
        "length": text.len(), "stub": true});
    let mut told = named.clone();
    told["encoding"] = json!("gzip");
    told["encoded_length"] = json!(packed.len());
    let stub =
        async |path: &str| server.ask("GET", path, ()).await.expect(200).json()["_attachments"]["a"].take();
    assert_eq!(stub("/db/x").await, named);
    assert_eq!(stub("/db/x?att_encoding_info=true").await, told);

    for (accepted, is_taken) in [
        ("gzip", true),
        ("deflate, gzip;q=0.5", true),
        ("*", true),
        ("gzip;q=0, *", false),
        ("identity", false),
        ("br", false),
    ] {
        let asked = [("accept-encoding", accepted), ("range", "bytes=1-2")];
        let read = server.ask("GET", "/db/x/a", asked).await.expect(200);
        assert_eq!(read.header("content-encoding"), is_taken.then_some("gzip"), "{accepted}");
        assert_eq!(read.header("content-md5"), is_taken.then_some(&*digest), "{accepted}");
        assert_eq!(
            (read.header("accept-ranges"), read.header("vary")),
            (Some("none"), Some("accept-encoding"))
        );
        let right = if is_taken { &packed[..] } else { text.as_bytes() };
        assert!(read.body == right, "{accepted}");
        assert_eq!(read.header("content-length"), Some(&*right.len().to_string()));
    }
    let json = [("accept", "application/json")];
    let inline =
        server.ask("GET", "/db/x?attachments=true&att_encoding_info=true", json).await.expect(200).json();
    assert_eq!(inline["_attachments"]["a"]["data"], STANDARD.encode(&text));
    // What says how it is encoded is taken for itself all the same, as in CouchDB.
    let inline = server.ask("PUT", "/db/inline", json!({"_attachments": inline["_attachments"]})).await;
    inline.expect(201);
    assert!(server.ask("GET", "/db/inline/a", ()).await.expect(200).body == text.as_bytes());

    // From here to there by multipart, and within by COPY.
    let related = [("accept", "multipart/related")];
    let path = "/db/x?attachments=true&revs=true&att_encoding_info=true";
    let moved = server.ask("GET", path, related).await.expect(200);
    let kind = moved.header("content-type").unwrap().to_owned();
    server.ask("PUT", "/there", ()).await.expect(201);
    let path = "/there/x?new_edits=false";
    server.ask("PUT", path, ([("content-type", &*kind)], moved.body.clone())).await.expect(201);
    server.ask("COPY", "/db/x", ([("destination", "copy")], String::new())).await.expect(201);
    for path in ["/there/x", "/db/copy"] {
        assert_eq!(stub(&format!("{path}?att_encoding_info=true")).await, told, "{path}");
        let read = server.ask("GET", &format!("{path}/a"), [("accept-encoding", "gzip")]).await.expect(200);
        assert!(read.body == packed);
    }
    // Who does not ask how it is encoded gets what it stands for.
    let plain = server.ask("GET", "/db/x?attachments=true", related).await.expect(200);
    assert!(plain.text().contains(&text));
}

pub(crate) fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_attachment_streams_both_ways() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let content: Vec<u8> =
        (0..5_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    server.ask("PUT", "/db/x/large", (&[][..], content.clone())).await.expect(201);
    let read = server.ask("GET", "/db/x/large", ()).await.expect(200);
    assert_eq!(read.header("content-length"), Some("5000000"));
    assert!(read.body == content);
    let part = server.ask("GET", "/db/x/large", [("range", "bytes=1000000-3999999")]).await.expect(206);
    assert!(part.body == content[1_000_000..4_000_000]);
    assert!(server.statistics.snapshot().operations["WRITE_OBJECT"].count == 1);
}

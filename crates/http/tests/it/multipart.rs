//! Documents and attachments in multipart bodies.

use serde_json::{Value, json};

use crate::common::Server;

const BODY: &str = "ignored preamble\r\n--one\r\nContent-Type: application/json\r\n\r\n\
    {\"x\":1,\"_attachments\":{\
    \"a.txt\":{\"follows\":true,\"content_type\":\"text/plain\",\"length\":3},\
    \"b c.bin\":{\"follows\":true,\"content_type\":\"application/octet-stream\",\"length\":8}}}\r\n\
    --one\r\n\r\nabc\r\n--one\r\nContent-Disposition: attachment; filename=\"b c.bin\"\r\n\r\n\
    12\r\n--on\r\n--one--\r\nepilogue";

#[tokio::test(flavor = "multi_thread")]
async fn a_document_comes_and_goes_with_its_attachments() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let headers = [("content-type", "multipart/related; boundary=\"one\"")];
    let revision = server.ask("PUT", "/db/x", (headers, BODY)).await.expect(201).revision();
    server.ask("GET", "/db/x/a.txt", ()).await.expect_text(200, "abc");
    server.ask("GET", "/db/x/b%20c.bin", ()).await.expect_text(200, "12\r\n--on");

    let whole =
        server.ask("GET", "/db/x?attachments=true", [("accept", "multipart/related")]).await.expect(200);
    let kind = whole.header("content-type").unwrap();
    let boundary =
        kind.strip_prefix("multipart/related; boundary=\"").unwrap().trim_end_matches('"').to_owned();
    assert_eq!(whole.header("content-length"), Some(whole.body.len().to_string().as_str()));
    let text = whole.text();
    let parts: Vec<&str> = text.split(&format!("--{boundary}")).collect();
    assert_eq!(parts.len(), 5, "{text}");
    let json: Value = serde_json::from_str(parts[1].split_once("\r\n\r\n").unwrap().1.trim()).unwrap();
    assert_eq!(json["_attachments"]["a.txt"]["follows"], true);
    assert!(json["_attachments"]["a.txt"].get("stub").is_none());
    assert!(parts[2].contains("filename=\"a.txt\"") && parts[2].ends_with("\r\n\r\nabc\r\n"), "{text}");
    assert_eq!(parts[4], "--");

    // What came out goes in again.
    let again = text.replacen("\"_rev\"", "\"_note\"", 0);
    let headers = [("content-type", kind)];
    server.ask("PUT", "/db/y?new_edits=false", (headers, again)).await.expect(201);
    server.ask("GET", "/db/y/b%20c.bin", ()).await.expect_text(200, "12\r\n--on");

    let since = format!("/db/x?atts_since=[%22{revision}%22]");
    let known = server.ask("GET", &since, [("accept", "multipart/related")]).await.expect(200).json();
    assert_eq!(known["_attachments"]["a.txt"]["stub"], true);
    assert!(known.get("_revisions").is_none());
    let next = server.ask("PUT", &format!("/db/x/new?rev={revision}"), (&[][..], "new")).await.expect(201);
    assert!(next.revision().starts_with("2-"));
    let newer = server.ask("GET", &since, [("accept", "multipart/related")]).await.expect(200).text();
    assert!(newer.contains("\r\n\r\nnew\r\n") && !newer.contains("\r\n\r\nabc"), "{newer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn open_revisions_come_as_multipart() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    server.ask("PUT", "/db/x/a", (&[][..], "content")).await.expect(201);
    let other = json!({"_id": "x", "_rev": "1-bb", "n": 2});
    server.ask("PUT", "/db/x?new_edits=false", other).await.expect(201);
    let path = "/db/x?open_revs=all&revs=true";
    let mixed = server.ask("GET", path, [("accept", "multipart/mixed")]).await.expect(200);
    assert!(mixed.header("content-type").unwrap().starts_with("multipart/mixed; boundary="));
    let text = mixed.text();
    assert_eq!(text.matches("multipart/related").count(), 1, "{text}");
    assert!(text.contains("\r\n\r\ncontent\r\n") && text.contains("\"_rev\":\"1-bb\""), "{text}");
    let missing =
        server.ask("GET", "/db/x?open_revs=[%229-zz%22]", [("accept", "multipart/mixed")]).await.expect(200);
    assert!(missing.text().contains("error=\"true\"\r\n\r\n{\"missing\":\"9-zz\"}"), "{}", missing.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_multipart_bodies_are_refused() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let related = [("content-type", "multipart/related; boundary=one")];
    for cut in [0, 20, 60, 200, BODY.len() - 30] {
        server.ask("PUT", "/db/x", (related, &BODY.as_bytes()[..cut])).await.expect(400);
    }
    server.ask("PUT", "/db/x", ([("content-type", "multipart/related")], BODY)).await.expect(400);
    let fewer = BODY.replace("--one\r\n\r\nabc\r\n", "");
    server.ask("PUT", "/db/x", (related, fewer)).await.expect(400);
    let more = BODY.replace("--one--", "--one\r\n\r\nextra\r\n--one--");
    server.ask("PUT", "/db/x", (related, more)).await.expect(400);
    server.ask("GET", "/db/x", ()).await.expect_error(404, "not_found", "missing");
}

/// A document and its attachments, each with what its stub says.
fn related(stubs: &[(&str, serde_json::Value)], contents: &[&[u8]]) -> Vec<u8> {
    let stubs: serde_json::Map<String, Value> = stubs
        .iter()
        .map(|(name, stub)| {
            let mut stub = stub.clone();
            stub["follows"] = true.into();
            ((*name).to_owned(), stub)
        })
        .collect();
    let mut body = b"--b\r\nContent-Type: application/json\r\n\r\n".to_vec();
    body.extend(json!({"_attachments": stubs}).to_string().into_bytes());
    for content in contents {
        body.extend(b"\r\n--b\r\n\r\n");
        body.extend(*content);
    }
    body.extend(b"\r\n--b--");
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_that_are_not_what_their_stubs_say_are_refused() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let headers = [("content-type", "multipart/related;boundary=b")];
    let right = "md5-XUFAKrxLKna5cZ2REBfFkg==";
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, b"hello").unwrap();
    let packed = packed.finish().unwrap();
    let gzip = |length: u64, encoded: usize| json!({"encoding": "gzip", "length": length, "encoded_length": encoded});
    let (longer, shorter) = ("attachment longer than expected", "attachment shorter than expected");
    let corrupted = "Possible message corruption.";
    let cases: Vec<(Value, &[u8], &str)> = vec![
        (json!({"length": 5, "digest": right}), b"hello", ""),
        (json!({"digest": "sha1-x"}), b"hello", ""),
        (json!({}), b"hello", ""),
        (json!({"length": 3}), b"hello", longer),
        (json!({"length": 0}), b"hello", longer),
        (json!({"length": 6}), b"hello", shorter),
        (json!({"length": 6}), b"", shorter),
        (json!({"length": 5, "digest": right}), b"hellO", corrupted),
        (gzip(5, packed.len()), &packed, ""),
        (gzip(4, packed.len()), &packed, longer),
        (gzip(6, packed.len()), &packed, shorter),
        (gzip(5, packed.len() - 1), &packed, longer),
        (gzip(5, packed.len() + 1), &packed, shorter),
    ];
    for (number, (stub, content, reason)) in cases.into_iter().enumerate() {
        let path = format!("/db/x{number}");
        // One before it that is right is not stored either.
        let body = related(&[("a", json!({"length": 1})), ("f", stub.clone())], &[b"A", content]);
        let answer = server.ask("PUT", &path, (headers, body)).await;
        if reason.is_empty() {
            answer.expect(201);
            server.ask("GET", &format!("{path}/f"), ()).await.expect_text(200, "hello");
        } else {
            let word = if reason == corrupted { "content_md5_mismatch" } else { "bad_request" };
            answer.expect_error(400, word, reason);
            server.ask("GET", &path, ()).await.expect(404);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_documents_come_as_multipart_where_a_client_takes_nothing_else() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let revision = server.ask("PUT", "/db/x/a", (&[][..], "content")).await.expect(201).revision();
    server.ask("PUT", "/db/y", json!({"n": 1})).await.expect(201);
    let asked = json!({"docs": [{"id": "x"}, {"id": "y"}, {"id": "none"}, {}, {"id": "y", "rev": "9-aa"},
        {"id": "x", "rev": revision, "atts_since": [revision]}]});
    let ask = async |accept: &str| {
        let headers = [("content-type", "application/json"), ("accept", accept)];
        server.ask("POST", "/db/_bulk_get", (headers, asked.to_string())).await.expect(200)
    };
    for accept in ["application/json", "*/*", "application/json, multipart/mixed"] {
        assert_eq!(ask(accept).await.header("content-type"), Some("application/json"), "{accept}");
    }
    for (accept, kind) in [
        ("multipart/mixed", "multipart/mixed"),
        ("multipart/related", "multipart/related"),
        ("multipart/*", "multipart/mixed"),
    ] {
        let answer = ask(accept).await;
        let told = answer.header("content-type").unwrap();
        let boundary =
            told.strip_prefix(&format!("{kind}; boundary=\"")).unwrap().trim_end_matches('"').to_owned();
        let text = answer.text();
        let parts: Vec<&str> = text.split(&format!("\r\n--{boundary}")).collect();
        assert_eq!((parts.len(), parts[7]), (8, "--"), "{text}");
        let head =
            format!("\r\nX-Doc-Id: x\r\nX-Rev-Id: {revision}\r\nContent-Type: multipart/related; boundary=");
        assert!(parts[1].starts_with(&head) && parts[1].contains("\r\n\r\ncontent\r\n--"), "{text}");
        assert!(parts[2].starts_with("\r\nContent-Type: application/json\r\n\r\n{\"_id\":\"y\""), "{text}");
        for (part, reason) in [(parts[3], "missing"), (parts[4], "document id missed"), (parts[5], "missing")]
        {
            let (head, json) = part.split_once("\r\n\r\n").unwrap();
            assert_eq!(head, "\r\nContent-Type: application/json; error=\"true\"");
            assert_eq!(serde_json::from_str::<Value>(json).unwrap()["reason"], reason);
        }
        // What the client has it gets as a stub.
        assert!(parts[6].contains("\"stub\":true") && !parts[6].contains("content\r\n"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_everything_gets_contents_as_they_are() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let revision = server.ask("PUT", "/db/x/a", (&[][..], "content")).await.expect(201).revision();
    for path in ["/db/x?attachments=true", "/db/x?open_revs=all", "/db/x?atts_since=[]"] {
        let kind = if path.contains("open_revs") { "multipart/mixed" } else { "multipart/related" };
        for accept in ["*/*", "multipart/*", kind] {
            let answer = server.ask("GET", path, [("accept", accept)]).await.expect(200);
            assert!(answer.header("content-type").unwrap().starts_with(kind), "{path} {accept}");
            assert!(answer.text().contains("\r\n\r\ncontent\r\n--"), "{path} {accept}");
        }
        let answer = server.ask("GET", path, [("accept", "application/json")]).await.expect(200).json();
        let document = answer.get(0).map_or(&answer, |first| &first["ok"]);
        let has_content = document["_attachments"]["a"].get("data").is_some();
        assert_eq!(has_content, !path.contains("open_revs"), "{path}");
    }
    let since = format!("/db/x?atts_since=[%22{revision}%22]");
    let known = server.ask("GET", &since, [("accept", "application/json")]).await.expect(200).json();
    assert_eq!(known["_attachments"]["a"]["stub"], true);
}

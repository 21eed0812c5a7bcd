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
    let path = "/db/x?open_revs=all&attachments=true&revs=true";
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

//! A message as people read it: its page does nothing, its files are stored and not shown, and who may not read it learns nothing.

use serde_json::json;

use crate::common::Server;

const MESSAGE: &str = "From nobody Thu Jan  1 00:00:00 2026\nFrom: eve@evil.example\nSubject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n<p style=\"background:url(https://evil.example/a)\">Hello</p><script>harm()</script><img src=https://evil.example/t.gif alt=Logo><img src=cid:pic>\n--b\nContent-Type: image/png\nContent-ID: <pic>\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--b\nContent-Type: text/html\nContent-Disposition: attachment; filename=\"a\\\"; filename=b.html\"\n\n<script>harm()</script>\n--b--\n";

async fn with_message(message: &str) -> Server {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let start = if message.starts_with("From ") { message.find('\n').unwrap() + 1 } else { 0 };
    let made = server
        .ask("PUT", "/db/m", json!({"Form": "Memo", "$SourceStart": start}))
        .await
        .expect(201)
        .revision();
    let path = format!("/db/m/message.eml?rev={made}");
    server.ask("PUT", &path, ([("content-type", "message/rfc822")], message.to_owned())).await.expect(201);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_shown_in_a_page_that_can_do_nothing() {
    let server = with_message(MESSAGE).await;
    let outline = server.ask("GET", "/db/m/_message", ()).await.expect(200).json();
    assert_eq!((&outline["html"], &outline["remote_pictures"]), (&json!(true), &json!(1)));
    assert_eq!(outline["files"][0]["content_type"], "image/png");
    assert_eq!(outline["files"][1]["name"], "a\"; filename=b.html");
    let page = server.ask("GET", "/db/m/_body", ()).await.expect(200);
    let policy = page.header("content-security-policy").unwrap();
    for part in ["sandbox allow-popups", "default-src 'none'", "img-src data:;", "frame-ancestors 'self'"] {
        assert!(policy.contains(part), "{part} is not in {policy}");
    }
    assert!(!policy.contains("allow-scripts") && !policy.contains("allow-same-origin"), "{policy}");
    assert_eq!(page.header("x-dns-prefetch-control"), Some("off"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let text = page.text();
    assert!(text.contains("<p>Hello</p>") && text.contains("data:image/png;base64,iVBORw0KGgo="), "{text}");
    for hostile in ["script", "harm", "evil.example"] {
        assert!(!text.contains(hostile), "{text}");
    }
    let with_pictures = server.ask("GET", "/db/m/_body?pictures=true", ()).await.expect(200);
    assert!(
        with_pictures.text().contains("src=\"https://evil.example/t.gif\" referrerpolicy=\"no-referrer\"")
    );
    assert!(with_pictures.header("content-security-policy").unwrap().contains("img-src data: https:;"));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_message_are_stored_and_never_shown() {
    let server = with_message(MESSAGE).await;
    let file = server.ask("GET", "/db/m/_file/1", ()).await.expect_text(200, "<script>harm()</script>");
    assert_eq!(file.header("content-type"), Some("application/octet-stream"));
    assert_eq!(file.header("content-security-policy"), Some("sandbox; default-src 'none'"));
    let disposition = "attachment; filename*=UTF-8''a%22%3B%20filename%3Db%2Ehtml";
    assert_eq!(file.header("content-disposition"), Some(disposition));
    assert_eq!(file.header("content-length"), Some("23"));
    for path in [
        "/db/m/_file/2",
        "/db/m/_file/x",
        "/db/m/_file/-1",
        "/db/m/_file/99999999999999999999999",
        "/db/none/_file/0",
    ] {
        server.ask("GET", path, ()).await.expect(404);
    }
    server.ask("PUT", "/db/plain", json!({"Body": "no message"})).await.expect(201);
    for path in ["_message", "_body", "_file/0"] {
        server.ask("GET", &format!("/db/plain/{path}"), ()).await.expect(404);
        for method in ["PUT", "POST", "DELETE"] {
            server.ask(method, &format!("/db/m/{path}"), json!({})).await.expect(405);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_read_a_message_learns_nothing_of_it() {
    let server = with_message(MESSAGE).await;
    let readers = json!({"default": {"level": "reader"}, "entries": []});
    server.ask("PUT", "/db/_acl", readers).await.expect(201);
    server.ask_as("bob", "GET", "/db/m/_body", ()).await.expect(200);
    server
        .ask("PUT", "/db/_acl", json!({"default": {"level": "no_access"}, "entries": []}))
        .await
        .expect(201);
    for path in ["/db/m/_message", "/db/m/_body", "/db/m/_file/0"] {
        server.ask_as("bob", "GET", path, ()).await.expect(404);
        server.ask_as("", "GET", path, ()).await.expect(401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_message_is_made_of_it_is_answered() {
    let nested = "Content-Type: multipart/mixed; boundary=b\n\n--b\n".repeat(2_000);
    let parts = format!("Content-Type: multipart/mixed; boundary=b\n\n{}", "--b\n\nx\n".repeat(5_000));
    let within = "Content-Type: message/rfc822\n\n".repeat(2_000);
    for message in
        ["", "\n", "\0\0\0", "x", &nested, &parts, &within, "Content-Type: text/html\n\n<svg><script>harm()"]
    {
        let server = with_message(message).await;
        let outline = server.ask("GET", "/db/m/_message", ()).await.expect(200).json();
        assert!(outline["files"].as_array().unwrap().len() <= 1_000);
        let page = server.ask("GET", "/db/m/_body", ()).await.expect(200);
        assert!(!page.text().contains("harm"), "{}", page.text());
    }
}

//! The web console's files: for everybody, under their headers, and nothing else by the same way.

use scrinium_database::DatabaseOptions;

use crate::common::{Server, local_port};

#[tokio::test(flavor = "multi_thread")]
async fn the_console_opens_without_a_name_under_a_strict_policy() {
    let server = Server::start().await;
    let moved = server.ask_as("", "GET", "/_utils", ()).await.expect(301);
    assert_eq!(moved.header("location"), Some("_utils/"));
    let first = server.ask_as("", "GET", "/_utils/", ()).await.expect(200);
    assert_eq!(first.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(first.header("cache-control"), Some("no-cache"));
    let tag = first.header("etag").unwrap().to_owned();
    let known = server.ask_as("", "GET", "/_utils/", [("if-none-match", tag.as_str())]).await;
    assert_eq!((known.status.as_u16(), known.text().as_str()), (304, ""));
    for answer in [first, known, server.ask_as("ada", "GET", "/_utils/index.html", ()).await] {
        let policy = answer.header("content-security-policy").unwrap();
        for part in
            ["default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'"]
        {
            assert!(policy.contains(part), "{part} is not in {policy}");
        }
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    }
    let client = server.ask_as("", "GET", "/_app", ()).await.expect(301);
    assert_eq!(client.header("location"), Some("_app/"));
    let client = server.ask_as("", "GET", "/_app/", ()).await.expect(200);
    let policy = client.header("content-security-policy").unwrap();
    for part in ["default-src 'none'", "script-src 'self';", "frame-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{part} is not in {policy}");
    }
    for page in scrinium_web_pages::pages() {
        let answer = server.ask_as("", "GET", &format!("/_utils/{}", page.path), ()).await.expect(200);
        assert_eq!(answer.header("content-type"), Some(page.media_type), "{}", page.path);
        assert!(!answer.text().is_empty(), "{}", page.path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_the_consoles_files_is_below_its_address() {
    let port = scrinium_http::PortOptions { compression: true, ..local_port() };
    let server = Server::with(port, DatabaseOptions::default()).await;
    let long = format!("/_utils/{}", "a".repeat(5_000));
    for path in [
        "/_utils/../Cargo.toml",
        "/_utils/%2e%2e/%2e%2e/etc/passwd",
        "/_utils/..%2F..%2Fetc%2Fpasswd",
        "/_utils//etc/passwd",
        "/_utils/index.html%00.js",
        "/_utils/index.html/x",
        "/_utils/pages.tsv",
        "/_utils/INDEX.HTML",
        "/_utils/%3Cscript%3E",
        "/_app/../Cargo.toml",
        "/_app/%2e%2e/%2e%2e/etc/passwd",
        "/_app/app.html/x",
        &long,
    ] {
        let refused = server.ask_as("", "GET", path, ()).await;
        refused.expect_error(404, "not_found", "There is no such file of the web pages.");
    }
    server.ask_as("", "GET", "/_utils/%ff", ()).await.expect(400);
    for method in ["PUT", "POST", "DELETE", "COPY"] {
        server.ask_as("", method, "/_utils/index.html", ()).await.expect(405);
        server.ask("PUT", "/_utils", ()).await.expect(405);
    }
    for accepted in ["br;q=0", ",,;;q", "gzip;q=9e999", "*", "identity;q=0"] {
        server.ask_as("", "GET", "/_utils/", [("accept-encoding", accepted)]).await.expect(200);
    }
}

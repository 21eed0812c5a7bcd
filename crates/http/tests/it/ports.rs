//! A port's switches: TLS, HTTP/2, compression, CORS.

use std::sync::Arc;

use http::{Request, Version};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use scrinium_database::DatabaseOptions;
use serde_json::{Value, json};

use crate::common::{PASSWORD, Server, basic, local_port};

#[tokio::test(flavor = "multi_thread")]
async fn a_port_with_tls_speaks_http2_and_keeps_cookies_safe() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = CertificateDer::from(made.cert.der().to_vec());
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let port = scrinium_http::PortOptions { tls: Some(Arc::new(tls)), ..local_port() };
    let server = Server::with(port, DatabaseOptions::default()).await;

    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"h2".to_vec()];
    let stream = server.connect().await;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
    let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let body = http_body_util::Full::new(bytes::Bytes::from(format!("name=ada&password={PASSWORD}")));
    let request = Request::post("https://localhost/_session")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body)
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_2));
    let cookie = answer.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    let many: Vec<_> = (0..20)
        .map(|_| {
            let request = Request::get("https://localhost/_up").body(Default::default()).unwrap();
            sender.send_request(request)
        })
        .collect();
    for answer in many {
        assert_eq!(answer.await.unwrap().status(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_compresses_what_is_worth_it() {
    let port = scrinium_http::PortOptions { compression: true, ..local_port() };
    let server = Server::with(port, DatabaseOptions::default()).await;
    let documents: Vec<Value> = (0..500).map(|number| json!({"_id": format!("{number:05}")})).collect();
    server.fill("db", &documents).await;
    for (accepted, named) in [("gzip", "gzip"), ("zstd", "zstd"), ("br", ""), ("identity", "")] {
        let answer = server.ask("GET", "/db/_all_docs", [("accept-encoding", accepted)]).await.expect(200);
        assert_eq!(answer.header("content-encoding").unwrap_or(""), named);
        assert_eq!(answer.body.len() < 10_000, !named.is_empty());
    }
    let short = server.ask("GET", "/db", [("accept-encoding", "gzip")]).await.expect(200);
    assert_eq!(short.header("content-encoding"), None);
    let picture = ([("content-type", "image/png")], "x".repeat(5000));
    server.ask("PUT", "/db/p/a.png", picture).await.expect(201);
    let picture = server.ask("GET", "/db/p/a.png", [("accept-encoding", "gzip")]).await.expect(200);
    assert_eq!((picture.header("content-encoding"), picture.body.len()), (None, 5000));
    let text = ([("content-type", "text/plain")], "x".repeat(5000));
    server.ask("PUT", "/db/t/a.txt", text).await.expect(201);
    let text = server.ask("GET", "/db/t/a.txt", [("accept-encoding", "gzip")]).await.expect(200);
    assert!(text.header("etag").unwrap().starts_with("W/\""));
    let path = "/db/_changes?feed=continuous&timeout=10";
    let feed = server.ask("GET", path, [("accept-encoding", "gzip")]).await.expect(200);
    assert_eq!(feed.header("content-encoding"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_named_origins_may_ask() {
    let port = scrinium_http::PortOptions {
        cors_origins: vec!["https://app.example".to_owned()],
        cors_credentials: true,
        ..local_port()
    };
    let server = Server::with(port, DatabaseOptions::default()).await;
    let asked = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "content-type, If-Match"),
    ];
    let preflight = server.ask_as("", "OPTIONS", "/db/x", asked).await.expect_text(204, "");
    assert_eq!(preflight.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(preflight.header("access-control-allow-credentials"), Some("true"));
    assert_eq!(preflight.header("access-control-allow-headers"), Some("content-type, If-Match"));
    assert_eq!(preflight.header("access-control-max-age"), Some("600"));
    assert!(preflight.header("access-control-allow-methods").unwrap().contains("COPY"));
    let answer = server.ask_as("", "GET", "/", [("origin", "https://app.example")]).await.expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    assert!(answer.header("access-control-expose-headers").unwrap().contains("etag"));
    let refused = server.ask_as("", "GET", "/none", [("origin", "https://app.example")]).await.expect(401);
    assert!(refused.header("access-control-allow-origin").is_some());
    let stranger = [("origin", "https://evil.example"), ("access-control-request-method", "PUT")];
    let stranger = server.ask_as("", "OPTIONS", "/db/x", stranger).await;
    assert_eq!(stranger.header("access-control-allow-origin"), None);
    stranger.expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_and_requests_are_counted() {
    let server = Server::start().await;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(server.connect().await)).await.unwrap();
    let open = tokio::spawn(connection);
    let request = Request::get("/_session")
        .header("host", "x")
        .header("authorization", basic("ada", PASSWORD))
        .body(Empty::<bytes::Bytes>::new())
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.into_body().collect().await.unwrap();
    let counted = server.statistics.snapshot();
    assert_eq!(counted.gauges["Server.Users"], 1.0);
    assert_eq!(counted.counters["HTTP.Requests"], 1);
    drop(sender);
    open.await.unwrap().unwrap();
    for _ in 0..100 {
        if server.statistics.snapshot().gauges["Server.Users"] == 0.0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("a closed connection is still counted");
}

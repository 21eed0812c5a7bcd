//! The console's client against a server of the same form: passwords, errors, encryption.

use std::convert::Infallible;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use scrinium_clock::Clock;
use scrinium_server::Ground;
use scrinium_server::client::{ClientError, ConsoleClient};
use scrinium_server::config::{Configuration, Sources};
use scrinium_server::console::Console;
use scrinium_server::credentials::Credentials;
use scrinium_server::tls;
use scrinium_statistics::Registry;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Answers `POST /_console` as the HTTP port does.
async fn answer(console: Console, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let admin = format!("Basic {}", STANDARD.encode("admin:pass:word"));
    let right = request.headers().get(AUTHORIZATION).is_some_and(|given| given == admin.as_str());
    let asked = (request.method().as_str().to_owned(), request.uri().path().to_owned());
    assert_eq!(asked, ("POST".to_owned(), "/_console".to_owned()));
    assert_eq!(request.headers()[CONTENT_TYPE], "application/json");
    let body: Value = serde_json::from_slice(&request.collect().await.unwrap().to_bytes()).unwrap();
    let (status, body) = if right {
        match console.execute(body["command"].as_str().unwrap()) {
            Ok(reply) => (StatusCode::OK, json!({"ok": true, "text": reply.text, "data": reply.data})),
            Err(error) => {
                (StatusCode::BAD_REQUEST, json!({"error": "bad_request", "reason": error.to_string()}))
            }
        }
    } else {
        let reason = "Name or password is incorrect.";
        (StatusCode::UNAUTHORIZED, json!({"error": "unauthorized", "reason": reason}))
    };
    Ok(Response::builder().status(status).body(Full::new(Bytes::from(body.to_string()))).unwrap())
}

/// Serves a console on a free port, and gives the port.
async fn serve(tls: Option<Arc<rustls::ServerConfig>>) -> u16 {
    let configuration = Configuration::load(&Sources::default()).unwrap();
    let ground = Arc::new(Ground::lay(configuration, Registry::new(), None));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let console = ground.console();
            let service = service_fn(move |request| answer(console.clone(), request));
            let tls = tls.clone().map(TlsAcceptor::from);
            tokio::spawn(async move {
                let server = auto::Builder::new(TokioExecutor::new());
                match tls {
                    None => drop(server.serve_connection(TokioIo::new(stream), service).await),
                    Some(tls) => {
                        let Ok(stream) = tls.accept(stream).await else { return };
                        drop(server.serve_connection(TokioIo::new(stream), service).await);
                    }
                }
            });
        }
    });
    port
}

fn admin(password: &str) -> Credentials {
    Credentials { name: "admin".to_owned(), password: password.to_owned() }
}

fn client(url: &str, password: &str, trusted: &[&Path]) -> Result<ConsoleClient, ClientError> {
    let trusted: Vec<_> = trusted.iter().map(|path| path.to_path_buf()).collect();
    ConsoleClient::new(url, admin(password), || tls::client(&trusted))
}

#[tokio::test]
async fn commands_are_answered_and_errors_told() {
    let url = format!("http://127.0.0.1:{}", serve(None).await);
    let right = client(&url, "pass:word", &[]).unwrap();
    let reply = right.send("show stat Server.Trans.Total").await.unwrap();
    assert_eq!(reply.text, "  Server.Trans.Total = 0\n  1 statistic found\n");
    assert_eq!(reply.data, json!({"statistics": {"Server.Trans.Total": 0}}));
    let refused = right.send("show taks").await.unwrap_err();
    assert!(matches!(refused, ClientError::Refused(_)));
    assert_eq!(refused.to_string(), "there is no command \"show taks\"; did you mean: show tasks");
    let wrong = client(&url, "wrong", &[]).unwrap().send("show stat").await.unwrap_err().to_string();
    assert_eq!(wrong, "the server does not take admin as an administrator: Name or password is incorrect.");
    let nothing = client("127.0.0.1:5984", "", &[]).map(drop).unwrap_err().to_string();
    assert_eq!(nothing, "\"127.0.0.1:5984\" is no address of a server: write it like http://127.0.0.1:5984");
}

#[tokio::test]
async fn a_self_signed_certificate_is_taken_only_if_it_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = folder.path().join("certificate.pem");
    let encryption =
        tls::load_or_make(&certificate, &folder.path().join("key.pem"), &["host.example"], &Clock::system())
            .unwrap();
    assert_eq!(encryption.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec(), b"acme-tls/1".to_vec()]);
    let port = serve(Some(encryption)).await;
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("https://{host}:{port}");
        let reply = client(&url, "pass:word", &[&certificate]).unwrap().send("help").await.unwrap();
        assert!(reply.text.contains("show statistics"));
        let untrusted = client(&url, "pass:word", &[]).unwrap().send("help").await.unwrap_err().to_string();
        assert!(untrusted.contains("UnknownIssuer") && untrusted.contains("--trust FILE"), "{untrusted}");
    }
}

#[test]
fn files_that_are_no_certificates_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    tls::load_or_make(&path("one.pem"), &path("one.key"), &["localhost"], &Clock::system()).unwrap();
    tls::load_or_make(&path("two.pem"), &path("two.key"), &["localhost"], &Clock::system()).unwrap();
    std::fs::write(path("empty.pem"), "").unwrap();
    let told = |certificate: &str, key: &str| {
        let error = tls::load(&path(certificate), &path(key)).map(drop).unwrap_err().to_string();
        error.replace(&format!("{}/", folder.path().display()), "")
    };
    assert_eq!(told("empty.pem", "one.key"), "cannot read the certificate in empty.pem: there is none in it");
    assert_eq!(told("one.pem", "one.pem"), "cannot read the private key in one.pem: there is none in it");
    assert!(told("one.pem", "gone.key").starts_with("cannot read the private key in gone.key: No such file"));
    assert!(
        told("one.pem", "two.key")
            .starts_with("the certificate in one.pem and the key in two.key cannot be used")
    );
}

/// The binary with commands on its standard input.
fn console(folder: &Path, port: u16, arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_scrinium"))
        .args(["console", "--data-dir"])
        .arg(folder)
        .args(arguments)
        .env_clear()
        .env("SCRINIUM_HTTP__LISTEN", format!("127.0.0.1:{port}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_binary_talks_to_a_server_with_the_data_folders_credentials() {
    let folder = tempfile::tempdir().unwrap();
    admin("pass:word").write(folder.path()).unwrap();
    let port = serve(None).await;
    let ask = |arguments: &'static [&'static str], input: &'static str| {
        let folder = folder.path().to_owned();
        tokio::task::spawn_blocking(move || console(&folder, port, arguments, input))
    };
    let (code, output, talk) = ask(&["show", "tasks"], "").await.unwrap();
    assert_eq!((code, output.as_str(), talk.as_str()), (Some(0), "No task is running.\n", ""));
    let (code, output, _) = ask(&["--json", "show tasks"], "").await.unwrap();
    assert_eq!((code, output.as_str()), (Some(0), "{\"running\":[],\"ended\":[]}\n"));
    let script = "show tasks\n\nshow stat Server.Trans.Total\nexit\nshow nothing\n";
    let (code, output, talk) = ask(&[], script).await.unwrap();
    let expected = "No task is running.\n  Server.Trans.Total = 0\n  1 statistic found\n";
    assert_eq!((code, output.as_str(), talk.as_str()), (Some(0), expected, ""));
    let (code, output, talk) = ask(&[], "show nothing\nshow tasks\n").await.unwrap();
    assert_eq!((code, output.as_str()), (Some(1), ""), "a script ends at what is wrong");
    assert!(talk.starts_with("error: there is no command"), "{talk}");
    let (code, _, talk) = ask(&["--user", "ann", "show tasks"], "").await.unwrap();
    assert!(code == Some(2) && talk.starts_with("error: no password"), "the file is somebody else's: {talk}");
}

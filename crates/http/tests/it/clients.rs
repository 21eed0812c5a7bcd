//! Where clients come from, through proxies or not, and how much of the server one of them may hold.

use std::net::IpAddr;
use std::time::Duration;

use scrinium_accounting::{AccountOptions, HolderLimits};
use scrinium_database::DatabaseOptions;
use scrinium_http::PortOptions;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::common::{PASSWORD, Server, basic, local_port};

/// However loaded the machine is.
const SOON: Duration = Duration::from_secs(20);

async fn behind_a_proxy() -> Server {
    let port = PortOptions { trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()], ..local_port() };
    Server::with(port, DatabaseOptions::default()).await
}

async fn limited(limits: AccountOptions) -> Server {
    Server::with_accounts(local_port(), DatabaseOptions::default(), limits).await
}

/// Sends bytes as they are, and gives the beginning of what comes back; nothing: the connection was closed.
async fn send(server: &Server, bytes: &[u8]) -> String {
    let mut stream = server.connect().await;
    // What is refused may be closed before all was sent.
    drop(stream.write_all(bytes).await);
    let mut read = vec![0; 4096];
    let length = timeout(SOON, stream.read(&mut read)).await.unwrap().unwrap_or(0);
    String::from_utf8_lossy(&read[..length]).into_owned()
}

fn log_in(headers: &str) -> String {
    let body = json!({"name": "ada", "password": PASSWORD}).to_string();
    let length = body.len();
    format!(
        "POST /_session HTTP/1.1\r\nHost: db.example\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

fn seen(server: &Server) -> IpAddr {
    server.people.seen_from.lock().unwrap().take().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_forges_where_they_come_from() {
    let server = Server::start().await;
    for forged in [
        "X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Proto: https\r\n",
        "Forwarded: for=192.0.2.9;proto=https\r\n",
        "X-Real-IP: 192.0.2.9\r\n",
    ] {
        let answer = send(&server, log_in(forged).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("; Secure"), "{answer}");
        assert_eq!(seen(&server).to_string(), "127.0.0.1", "{forged}");
    }
    let proxied = format!("PROXY TCP4 192.0.2.9 127.0.0.1 4711 5984\r\n{}", log_in(""));
    let answer = send(&server, proxied.as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    let header = &b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x09\x7f\0\0\x01\x12\x67\x17\x60"[..];
    let binary = [header.to_vec(), log_in("").into_bytes()];
    let answer = send(&server, &binary.concat()).await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(server.people.seen_from.lock().unwrap().is_none(), "nobody was asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxy_says_who_asks_and_by_which_scheme() {
    let server = behind_a_proxy().await;
    let said = "X-Forwarded-For: 10.0.0.1, 192.0.2.9\r\nX-Forwarded-Proto: https\r\n";
    let answer = send(&server, log_in(said).as_bytes()).await;
    assert_eq!(seen(&server).to_string(), "192.0.2.9");
    let cookies: Vec<&str> = answer.lines().filter_map(|line| line.strip_prefix("set-cookie: ")).collect();
    assert_eq!(cookies.len(), 2, "{answer}");
    assert!(cookies[0].starts_with("AuthSession=") && cookies[0].ends_with("; Secure"));
    assert!(cookies[1].starts_with("__Host-AuthSession=") && cookies[1].contains("; Path=/;"));
    assert!(!cookies[1].contains("Domain"));
    // That one alone is enough, and counts before the other one.
    let token = cookies[1].split(';').next().unwrap();
    let both = format!("AuthSession=nonsense; {token}");
    let shown = server.ask_as("", "GET", "/_session", [("cookie", both.as_str())]).await.json();
    assert_eq!(shown["userCtx"]["name"], "ada");

    let https = [("x-forwarded-proto", "https"), ("host", "db.example")];
    let made = server.ask("PUT", "/db", https).await.expect(201);
    assert_eq!(made.header("location"), Some("/db"));
    // A browser that used TLS towards the proxy does so from now on.
    assert_eq!(made.header("strict-transport-security"), Some("max-age=31536000"));
    let made = server.ask("PUT", "/db2", [("host", "db.example")]).await.expect(201);
    assert_eq!(made.header("location"), Some("/db2"));
    assert_eq!(made.header("strict-transport-security"), None);

    let answer = send(&server, format!("PROXY TCP6 2001:db8::9 ::1 1 2\r\n{}", log_in("")).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("; Secure"), "{answer}");
    assert_eq!(seen(&server).to_string(), "2001:db8::9");
    // What a client that the header names says of itself is not believed.
    let forged =
        format!("PROXY TCP4 198.51.100.1 127.0.0.1 1 2\r\n{}", log_in("X-Forwarded-For: 192.0.2.9\r\n"));
    send(&server, forged.as_bytes()).await;
    assert_eq!(seen(&server).to_string(), "198.51.100.1");
    let with_tls =
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x14\xc0\0\x02\x07\x7f\0\0\x01\x12\x67\x17\x60\x20\0\x05\x01\0\0\0\0";
    let answer = send(&server, &[&with_tls[..], log_in("").as_bytes()].concat()).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("; Secure"), "{answer}");
    assert!(answer.contains("strict-transport-security: max-age="), "{answer}");
    assert_eq!(seen(&server).to_string(), "192.0.2.7");
    assert_eq!(send(&server, b"PROXY TCP4 nonsense\r\nGET / HTTP/1.1\r\n\r\n").await, "", "closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_another_site_logs_nobody_in() {
    let server = Server::start().await;
    for (headers, status) in [
        (&[("origin", "https://evil.example")][..], 403),
        (&[("origin", "null")], 403),
        (&[("sec-fetch-site", "cross-site")], 403),
        (&[("sec-fetch-site", "same-origin"), ("origin", "https://db.example")], 200),
        (&[("sec-fetch-site", "none")], 200),
        (&[("origin", "http://db.example"), ("host", "db.example")], 200),
        (&[], 200),
    ] {
        let mut all = vec![("content-type", "application/x-www-form-urlencoded")];
        all.extend_from_slice(headers);
        let (headers, body) = (all, format!("name=ada&password={PASSWORD}"));
        server.ask_as("", "POST", "/_session", (&headers[..], body)).await.expect(status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_who_has_not_logged_in_learns_the_version() {
    let server = Server::start().await;
    let version = env!("CARGO_PKG_VERSION");
    let anonymous = server.ask_as("", "GET", "/", ()).await.expect(200);
    assert_eq!(anonymous.json()["couchdb"], "Welcome");
    assert!(anonymous.json()["version"].as_str().unwrap().starts_with("3."), "CouchDB's");
    assert_eq!(anonymous.json()["vendor"], json!({"name": "Scrinium"}));
    assert_eq!(anonymous.header("server"), Some("Scrinium"));
    let known = server.ask_as("ada", "GET", "/", ()).await.expect(200).json();
    assert_eq!(known["vendor"]["version"], version);
}

/// Whether the server has closed a connection on which it owes nothing.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let read = timeout(Duration::from_millis(300), stream.read_u8()).await;
    read.is_ok_and(|read| read.is_err())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_idle_connection_of_a_network_makes_room_for_a_new_one() {
    let usual = AccountOptions::default();
    let network = HolderLimits { connections: 4, ..usual.network };
    let server = limited(AccountOptions { network, ..usual }).await;
    let mut idle = Vec::new();
    for _ in 0..4 {
        idle.push(server.connect().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The first has asked something since, so that the second is the oldest.
    idle[0].write_all(b"GET /_up HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = [0; 15];
    timeout(SOON, idle[0].read_exact(&mut answer)).await.unwrap().unwrap();
    let answer = send(&server, b"GET /_up HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(is_closed(&mut idle[1]).await);
    assert!(!is_closed(&mut idle[2]).await && !is_closed(&mut idle[3]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_idle_connections_keeps_nobody_out_of_a_full_server() {
    let server = limited(AccountOptions { connections: 8, ..AccountOptions::default() }).await;
    let mut crowd = Vec::new();
    for _ in 0..60 {
        crowd.push(server.connect().await);
    }
    for _ in 0..5 {
        let answer = send(&server, b"GET /_up HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    drop(crowd);
    server.ask_as("ada", "GET", "/_session", ()).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_has_so_many_feeds_and_requests_and_others_notice_nothing() {
    let usual = AccountOptions::default();
    let person = HolderLimits { feeds: 2, requests: 4, ..usual.person };
    let server = limited(AccountOptions { person, ..usual }).await;
    server.fill("db", &[json!({"_id": "a"})]).await;
    server.ask("PUT", "/db/_security", json!({"members": {"names": ["ada", "bob"]}})).await.expect(200);
    let feed = "/db/_changes?feed=continuous&heartbeat=10000&since=now";
    let mut feeds =
        vec![server.open_as("ada", "GET", feed, ()).await, server.open_as("ada", "GET", feed, ()).await];
    let refused = server.ask_as("ada", "GET", feed, ()).await.expect(429);
    assert_eq!(
        (refused.header("retry-after"), &refused.json()["error"]),
        (Some("1"), &json!("too_many_requests"))
    );
    let bob = server.open_as("bob", "GET", feed, ()).await;
    assert_eq!(bob.status(), 200);
    server.ask_as("ada", "GET", "/db/a", ()).await.expect(200);
    // A feed that ends is given back.
    feeds.pop();
    let mut again = server.open_as("ada", "GET", feed, ()).await;
    for _ in 0..100 {
        if again.status() == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        again = server.open_as("ada", "GET", feed, ()).await;
    }
    assert_eq!(again.status(), 200);
    let administrator: Vec<_> =
        futures_util::future::join_all((0..8).map(|_| server.open_as("admin", "GET", feed, ()))).await;
    assert!(administrator.iter().all(|feed| feed.status() == 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn log_ins_that_cannot_be_checked_now_are_told_when_to_come_back() {
    let server = Server::start().await;
    server.people.busy();
    let refused = server.ask_as("", "GET", "/db", [("authorization", basic("ada", PASSWORD).as_str())]).await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (429, Some("3")));
    let locked = server.ask_as("", "POST", "/_session", json!({"name": "locked", "password": "x"})).await;
    locked.expect_error(
        403,
        "forbidden",
        "Account is temporarily locked due to multiple authentication failures",
    );
}

//! rspamd over HTTP, as clients meet it. The server of it here says what a test tells it to.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_mail::Quarantine;
use scrinium_smtp::Service;
use scrinium_smtp_server::{FilterAddress, FilterOptions};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::common::Server;

/// A question as it came: its first line, its head by lower-case names, its body.
#[derive(Clone, Debug, Default)]
struct Asked {
    line: String,
    head: HashMap<String, Vec<String>>,
    body: Vec<u8>,
}

/// A server of rspamd that answers the same to all.
#[derive(Clone)]
struct Stub {
    address: SocketAddr,
    answer: Arc<Mutex<Vec<u8>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<AtomicUsize>,
}

impl Stub {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stub =
            Self { address, answer: Arc::default(), asked: Arc::default(), connections: Arc::default() };
        let serving = stub.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serving.clone().talk(stream));
            }
        });
        stub
    }

    /// Answers this from now on: a status with its words, and a body.
    fn answers(&self, status: &str, body: &str) {
        let text = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        *self.answer.lock() = text.into_bytes();
    }

    async fn talk(self, stream: TcpStream) -> Option<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let mut asked = Asked::default();
            stream.read_line(&mut asked.line).await.ok().filter(|bytes| *bytes > 0)?;
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).await.ok()?;
                let Some((name, value)) = line.trim_end().split_once(": ") else { break };
                asked.head.entry(name.to_ascii_lowercase()).or_default().push(value.to_owned());
            }
            asked.body = vec![0; asked.head["content-length"][0].parse().unwrap()];
            stream.read_exact(&mut asked.body).await.ok()?;
            self.asked.lock().push(asked);
            let answer = self.answer.lock().clone();
            stream.write_all(&answer).await.ok()?;
        }
    }

    fn last(&self) -> Asked {
        self.asked.lock().last().unwrap().clone()
    }
}

fn with(address: SocketAddr, change: impl FnOnce(&mut FilterOptions)) -> Server {
    let mut options = FilterOptions {
        milters: Vec::new(),
        rspamd: Some(FilterAddress::parse(&address.to_string()).unwrap()),
        keeps_back: false,
        passes_unfiltered: false,
        timeout: Duration::from_secs(20),
        server: "mx.acme.example".to_owned(),
    };
    change(&mut options);
    Server::start_as(Service::Relay, |setting| setting.filters = Some(options))
}

const HEAD: &str = "From: eve@else.example\r\nX-Spam: no\r\nSubject: one\r\nx-spam: no\r\n";

async fn deliver(server: &Server, body: &str) -> String {
    let mut client = server.connect().await;
    client.ask("EHLO mail.else.example").await;
    let text = format!("{HEAD}\r\n{body}");
    client.deliver("eve@else.example", &["ada@acme.example"], text.as_bytes()).await
}

fn answer(action: &str) -> String {
    json!({"action": action, "score": 7.5, "required_score": 15.0}).to_string()
}

/// The sources of what ada has, from their From fields on.
fn mail(server: &Server) -> Vec<String> {
    server.deliver();
    let from = |source: Vec<u8>| {
        let text = String::from_utf8(source).unwrap();
        text[text.find("From: ").unwrap()..].to_owned()
    };
    server.mail_of("ada").into_iter().map(|(_, source)| from(source)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rspamd_hears_of_a_whole_message_and_changes_its_fields() {
    let stub = Stub::start().await;
    let server = with(stub.address, |_| {});
    let changes = json!({"action": "no action", "milter": {"remove_headers": {"X-Spam": 0},
        "add_headers": {"X-Spamd-Bar": "-", "X-First": {"value": "yes", "order": 0}}}});
    stub.answers("200 OK", &changes.to_string());
    // More than one piece, and more than there is memory for.
    let body = "line\r\n".repeat(40_000);
    assert!(deliver(&server, &body).await.starts_with("250"));
    let asked = stub.last();
    assert!(asked.line.starts_with("POST /checkv2 HTTP/1.1"), "{}", asked.line);
    for (name, value) in [
        ("ip", "127.0.0.1"),
        ("helo", "mail.else.example"),
        ("from", "eve@else.example"),
        ("rcpt", "ada@acme.example"),
        ("mta-name", "mx.acme.example"),
    ] {
        assert_eq!(asked.head[name], [value], "{name}");
    }
    let text = String::from_utf8(asked.body).unwrap();
    assert!(text.ends_with(&format!("{HEAD}\r\n{body}")), "{text:.300}");
    let mail = mail(&server);
    let wanted = format!("From: eve@else.example\r\nSubject: one\r\nX-Spamd-Bar: -\r\n\r\n{body}");
    assert!(mail == [wanted], "{:.300}", mail[0]);
    assert!(deliver(&server, "again\r\n").await.starts_with("250"));
    assert_eq!(stub.connections.load(Ordering::SeqCst), 1, "a connection is used again");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_rspamd_says_is_done() {
    let stub = Stub::start().await;
    let server = with(stub.address, |_| {});
    for (action, reply) in [
        ("reject", "550 5.7.1"),
        ("soft reject", "451 4.7.1"),
        ("discard", "250"),
        ("no action", "250"),
        ("greylist", "250"),
        ("add header", "250"),
        ("rewrite subject", "250"),
    ] {
        stub.answers("200 OK", &answer(action));
        let told = deliver(&server, &format!("{action}\r\n")).await;
        assert!(told.starts_with(reply), "{action}: {told}");
    }
    let mut mail = mail(&server);
    mail.sort();
    assert_eq!(mail.len(), 4, "{mail:?}");
    let junk = server.databases.get("mail/ada").unwrap().folder("Junk", None).unwrap();
    assert_eq!(junk.total, 2);
    assert_eq!((server.counted("SMTP.Filters.Refused"), server.counted("SMTP.Filters.Discarded")), (2, 1));
    let keeps = with(stub.address, |options| options.keeps_back = true);
    stub.answers("200 OK", &answer("add header"));
    assert!(deliver(&keeps, "kept back\r\n").await.starts_with("250"));
    assert!(self::mail(&keeps).is_empty());
    let (held, _) = Quarantine::new(&keeps.databases).list(10).unwrap();
    assert_eq!(held[0].reason, "rspamd gives it 7.5 of 15.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_rspamd_a_message_waits_or_goes_on_as_it_is_set() {
    let stub = Stub::start().await;
    let strict = with(stub.address, |options| options.timeout = Duration::from_secs(1));
    let long = format!("{{\"action\":\"no action\",\"x\":\"{}\"}}", "x".repeat(2 << 20));
    for (status, body) in [
        ("200 OK", "hello"),
        ("200 OK", "{\"action\":\"dance\"}"),
        ("500 No", "{\"action\":\"no action\"}"),
        ("200 OK", &long),
        ("100 000", ""),
    ] {
        stub.answers(status, body);
        let told = deliver(&strict, "a\r\n").await;
        assert!(told.starts_with("451 4.3.0"), "{status} {body:.40}: {told}");
    }
    assert_eq!(strict.counted("SMTP.Filters.Failed"), 5);
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert!(deliver(&with(nobody, |_| {}), "a\r\n").await.starts_with("451 4.3.0"));
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mild = with(silent.local_addr().unwrap(), |options| {
        options.timeout = Duration::from_millis(300);
        options.passes_unfiltered = true;
    });
    let begun = Instant::now();
    assert!(deliver(&mild, "a\r\n").await.starts_with("250"));
    assert!(begun.elapsed() < Duration::from_secs(10), "it is not waited for");
    assert_eq!(mail(&mild).len(), 1);
    assert_eq!(mild.counted("SMTP.Filters.Failed"), 1);
}

//! Messages of other servers, and whether they are from whom they say.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_clock::Clock;
use scrinium_database::SpecialUse;
use scrinium_sender_authentication::{Answer, Question};
use scrinium_smtp::Service;
use scrinium_smtp_server::{SenderCheckOptions, SenderDns};

use serde_json::json;

use crate::common::{Server, add};

/// TXT records, and domains of which nothing can be found out.
#[derive(Default)]
struct Zone {
    texts: Vec<(&'static str, &'static str)>,
    failing: Vec<&'static str>,
    asked: AtomicUsize,
}

impl SenderDns for Zone {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = match question {
            Question::Texts(name) if self.failing.iter().any(|end| name.to_string().ends_with(end)) => {
                Answer::Failed
            }
            Question::Texts(name) => {
                let found = self.texts.iter().filter(|(owner, _)| name.to_string() == *owner);
                let texts: Vec<Vec<u8>> = found.map(|(_, text)| text.as_bytes().to_vec()).collect();
                if texts.is_empty() { Answer::NoRecords } else { Answer::Texts(texts) }
            }
            _ => Answer::NoSuchName,
        };
        async move { answer }.boxed()
    }
}

fn zone() -> Arc<Zone> {
    let texts = vec![
        ("good.example", "v=spf1 ip4:127.0.0.1 -all"),
        ("_dmarc.good.example", "v=DMARC1; p=reject"),
        ("_dmarc.strict.example", "v=DMARC1; p=reject"),
        ("_dmarc.wary.example", "v=DMARC1; p=quarantine"),
    ];
    Arc::new(Zone { texts, failing: vec!["broken.example"], ..Zone::default() })
}

fn start(zone: &Arc<Zone>, change: impl FnOnce(&mut SenderCheckOptions)) -> Server {
    let mut options = SenderCheckOptions {
        dns: zone.clone(),
        server: "mx.acme.example".to_owned(),
        applies_dmarc: true,
        trusted: Vec::new(),
        clock: Clock::default(),
    };
    change(&mut options);
    Server::start_as(Service::Relay, |setting| setting.check = Some(options))
}

/// What the server says to a message from somebody.
async fn deliver(server: &Server, sender: &str, head: &str, body: &str) -> String {
    let mut client = server.connect().await;
    client.ask("EHLO mail.else.example").await;
    let text = format!("{head}\r\n{body}");
    client.deliver(sender, &["ada@acme.example"], text.as_bytes()).await
}

/// The only message that came in, without what the trace says.
fn only(server: &Server) -> (String, String) {
    server.deliver();
    let [(_, source)] = <[_; 1]>::try_from(server.mail_of("ada")).unwrap();
    let text = String::from_utf8(source).unwrap();
    let (before, after) = text.split_once("Received: from ").unwrap();
    let (_, message) = after.split_once("\r\nFrom: ").unwrap();
    (before.to_owned(), format!("From: {message}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_says_who_vouches_for_it_and_nobody_says_so_in_our_name() {
    let server = start(&zone(), |_| {});
    let claims = "Authentication-Results: else.example; spf=fail\r\nAuthentication-Results: MX.acme.example;\r\n\tdmarc=pass\r\n\
                  authentication-results : (a comment) mx.acme.example; dkim=pass\r\n";
    let body = "line\r\n".repeat(40_000);
    let head = format!("From: eve@good.example\r\n{claims}Subject: hello\r\n");
    let reply = deliver(&server, "eve@good.example", &head, &body).await;
    assert!(reply.starts_with("250"), "{reply}");
    let (before, message) = only(&server);
    assert_eq!(
        before,
        "Return-Path: <eve@good.example>\r\n\
         Authentication-Results: mx.acme.example;\r\n\tspf=pass smtp.mailfrom=eve@good.example;\r\n\tdkim=none;\r\n\t\
         dmarc=pass header.from=good.example policy.dmarc=reject\r\n"
    );
    let expected = format!(
        "From: eve@good.example\r\nAuthentication-Results: else.example; spf=fail\r\nSubject: hello\r\n\r\n{body}"
    );
    assert_eq!(message, expected);
    assert_eq!(server.counted("SMTP.DMARC.Passed"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_domain_asks_for_is_done() {
    let zone = zone();
    let server = start(&zone, |_| {});
    for (author, code) in [
        ("eve@strict.example", "550 5.7.26"),
        ("eve@deep.strict.example", "550 5.7.26"),
        ("eve@broken.example", "451 4.4.3"),
        // Two authors: the stricter domain has its way.
        ("eve@wary.example, mallory@strict.example", "550 5.7.26"),
    ] {
        let reply = deliver(&server, "eve@good.example", &format!("From: {author}\r\n"), "Text.\r\n").await;
        assert!(reply.starts_with(code), "{author}: {reply}");
    }
    assert_eq!((server.waiting().len(), server.counted("SMTP.DMARC.Refused")), (0, 4));
    let reply = deliver(&server, "eve@good.example", "From: eve@wary.example\r\n", "Text.\r\n").await;
    assert!(reply.starts_with("250"), "{reply}");
    let (before, _) = only(&server);
    assert!(before.contains("dmarc=fail") && before.contains("policy.dmarc=quarantine"), "{before}");
    // It was put aside, into the folder that mail programs know.
    assert_eq!(in_folder(&server, "Junk"), (1, Some(SpecialUse::Junk)));
    let reply = deliver(&server, "eve@good.example", "From: eve@good.example\r\n", "Text.\r\n").await;
    assert!(reply.starts_with("250"), "{reply}");
    assert_eq!((in_folder(&server, "Inbox").0, in_folder(&server, "Junk").0), (1, 1));
}

/// What is in a folder of ada's, and what it is for.
fn in_folder(server: &Server, name: &str) -> (u64, Option<SpecialUse>) {
    let folder = server.databases.get("mail/ada").unwrap().folder(name, None).unwrap();
    (folder.total, folder.special_use)
}

/// Anybody may write somebody else's address into an envelope.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_believes_an_address_that_its_domain_vouches_for() {
    let server = start(&zone(), |_| {});
    let writers = ["eve@good.example", "max@strict.example", "eve@broken.example"];
    add(
        &server.databases,
        json!({"_id": "group:board", "Form": "Group", "ListName": "board", "Members": ["ada"],
            "MayWrite": "listed", "Writers": writers}),
    );
    for (sender, code) in [
        ("eve@good.example", "250"),
        // SPF says nothing, and no signature stands in for it.
        ("max@strict.example", "550 5.7.23"),
        ("eve@broken.example", "451 4.7.24"),
    ] {
        let mut client = server.connect().await;
        client.ask("EHLO mail.else.example").await;
        let text = b"From: eve@plain.example\r\n\r\nText.\r\n";
        let reply = client.deliver(sender, &["board@acme.example"], text).await;
        assert!(reply.starts_with(code), "{sender}: {reply}");
    }
    server.deliver();
    assert_eq!(server.mail_of("ada").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_may_be_written_down_alone_and_servers_may_be_trusted() {
    let server = start(&zone(), |options| options.applies_dmarc = false);
    let reply = deliver(&server, "eve@good.example", "From: eve@strict.example\r\n", "Text.\r\n").await;
    assert!(reply.starts_with("250"), "{reply}");
    assert!(only(&server).0.contains("dmarc=fail"));
    let zone = zone();
    let server = start(&zone, |options| options.trusted = vec!["127.0.0.0/8".parse().unwrap()]);
    let reply = deliver(&server, "eve@good.example", "From: eve@strict.example\r\n", "Text.\r\n").await;
    assert!(reply.starts_with("250"), "{reply}");
    assert_eq!(only(&server).0, "Return-Path: <eve@good.example>\r\n");
    assert_eq!(zone.asked.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_nobody_could_read_is_refused() {
    let server = start(&zone(), |_| {});
    let head = format!("From: eve@good.example\r\nSubject: {}\r\n", "long \r\n ".repeat(160_000));
    let reply = deliver(&server, "eve@good.example", &head, "Text.\r\n").await;
    assert!(reply.starts_with("552 5.3.4") || reply.starts_with("452"), "{reply}");
    assert!(server.waiting().is_empty());
}

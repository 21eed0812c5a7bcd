//! Messages of other servers.

use std::time::Duration;

use scrinium_database::{InitialAccess, Properties, Quota};
use scrinium_smtp::Service;
use serde_json::json;

use crate::common::{FILE_BYTES, Server, add};

const MESSAGE: &[u8] = b"From: eve@else.example\r\nTo: ada@acme.example\r\nSubject: hello\r\nMessage-ID: <1@else.example>\r\n\r\nText.\r\n";

/// The source begins with what this server puts before it.
fn check_source(source: &[u8], sender: &str, message: &[u8]) {
    let text = String::from_utf8_lossy(source).into_owned();
    assert!(text.starts_with(&format!("Return-Path: <{sender}>\r\nReceived: from ")), "{text}");
    assert!(source.ends_with(message), "{text}");
    let trace = String::from_utf8_lossy(&source[..source.len() - message.len()]).into_owned();
    assert!(trace.contains("mx.acme.example") && trace.contains("127.0.0.1"), "{trace}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_durable_when_it_is_acknowledged_and_reaches_everybody_once() {
    let server = Server::start(Service::Relay, |_| {});
    let mut client = server.connect().await;
    assert!(client.ask("EHLO else.example").await.contains("STARTTLS"));
    let reply =
        client.deliver("eve@else.example", &["ada@acme.example", "press@acme.example"], MESSAGE).await;
    assert!(reply.starts_with("250"), "{reply}");
    assert!(server.waiting().is_empty(), "nothing is written that goes again");
    for name in ["ada", "bob"] {
        let [(memo, source)] = <[_; 1]>::try_from(server.mail_of(name)).unwrap();
        check_source(&source, "eve@else.example", MESSAGE);
        assert_eq!(memo["From"], json!("eve@else.example"));
        assert_eq!((&memo["$ReturnPath"], &memo["Subject"]), (&json!("eve@else.example"), &json!("hello")));
        assert!(!memo.contains_key("Recipients") && !memo.contains_key("$Envelope"));
    }
    assert!(server.waiting().is_empty());
    assert!(client.ask("QUIT").await.starts_with("221"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_comes_again_is_the_same_document() {
    let server = Server::start(Service::Relay, |_| {});
    for _ in 0..3 {
        let mut client = server.connect().await;
        client.ask("EHLO else.example").await;
        let reply = client.deliver("eve@else.example", &["ada@acme.example"], MESSAGE).await;
        assert!(reply.starts_with("250"), "{reply}");
    }
    assert_eq!(server.mail_of("ada").len(), 1);
    assert_eq!((server.counted("SMTP.Messages"), server.counted("SMTP.Messages.Repeated")), (1, 2));
    // The same text from somebody else, or to somebody else, is another message.
    let mut client = server.connect().await;
    client.ask("EHLO else.example").await;
    client.deliver("mallory@else.example", &["ada@acme.example"], MESSAGE).await;
    client.deliver("eve@else.example", &["bob@acme.example"], MESSAGE).await;
    server.deliver();
    assert_eq!((server.mail_of("ada").len(), server.mail_of("bob").len()), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_here_is_refused_and_the_postmaster_is_somebody() {
    let server = Server::start(Service::Relay, |_| {});
    let mut client = server.connect().await;
    client.ask("EHLO else.example").await;
    client.ask("MAIL FROM:<>").await;
    assert!(client.ask("RCPT TO:<nobody@acme.example>").await.starts_with("550 5.1.1"));
    let relayed = client.ask("RCPT TO:<ada@far.example>").await;
    assert!(relayed.starts_with("550 5.7"), "{relayed}");
    assert!(client.ask("DATA").await.starts_with('5'), "nobody is left");
    assert!(client.ask("RSET").await.starts_with("250"));
    for postmaster in ["postmaster", "PostMaster@acme.example"] {
        // Two messages: of one, somebody whom two addresses lead to has it once.
        let text = format!("Subject: to {postmaster}\r\n\r\nText.\r\n");
        let reply = client.deliver("", &[postmaster], text.as_bytes()).await;
        assert!(reply.starts_with("250"), "{reply}");
    }
    assert_eq!(server.counted("SMTP.Recipients.Refused"), 2);
    server.deliver();
    let found = server.mail_of("bob");
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].0["$ReturnPath"], json!(""));
    assert!(found[0].1.starts_with(b"Return-Path: <>\r\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_takes_no_mail_of_strangers_unless_it_says_so() {
    for service in [Service::Relay, Service::Lmtp] {
        let server = Server::start(service, |_| {});
        let mut client = server.connect().await;
        client.ask(if service == Service::Lmtp { "LHLO else.example" } else { "EHLO else.example" }).await;
        // No matter who they say they are.
        for sender in ["eve@else.example", "ada@acme.example", ""] {
            client.ask(&format!("MAIL FROM:<{sender}>")).await;
            for group in ["team@acme.example", "Team+x@acme.example"] {
                let reply = client.ask(&format!("RCPT TO:<{group}>")).await;
                assert!(reply.starts_with("550 5.7.2") && reply.contains("group"), "{reply}");
            }
            assert!(client.ask("RCPT TO:<press@acme.example>").await.starts_with("250"));
            client.ask("RSET").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_mailbox_is_said_to_be_full_before_the_text() {
    let server = Server::start(Service::Relay, |_| {});
    let mut client = server.connect().await;
    client.ask("EHLO else.example").await;
    assert!(client.deliver("eve@else.example", &["ada@acme.example"], MESSAGE).await.starts_with("250"));
    server.deliver();
    let quota = Quota { documents: 1, ..Quota::NONE };
    let database = server.databases.get("mail/ada").unwrap();
    database.set_properties(Properties { quota, ..database.properties() }).unwrap();
    client.ask("MAIL FROM:<eve@else.example>").await;
    let reply = client.ask("RCPT TO:<ada@acme.example>").await;
    assert!(reply.starts_with("452 4.2.2"), "{reply}");
    assert!(client.ask("RCPT TO:<bob@acme.example>").await.starts_with("250"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_in_database_gets_mail_of_strangers_until_it_is_full() {
    for service in [Service::Relay, Service::Lmtp] {
        let server = Server::start(service, |_| {});
        let database = server.databases.create("mail/tickets", &InitialAccess::Closed).unwrap();
        add(
            &server.databases,
            json!({"_id": "mail-in:tickets", "Name": "Tickets", "Database": "mail/tickets",
                "InternetAddress": "tickets@acme.example"}),
        );
        let mut client = server.connect().await;
        client.ask(if service == Service::Lmtp { "LHLO else.example" } else { "EHLO else.example" }).await;
        let reply = client.deliver("eve@else.example", &["tickets+x@acme.example"], MESSAGE).await;
        assert!(reply.starts_with("250"), "{reply}");
        server.deliver();
        let [(_, source)] = <[_; 1]>::try_from(server.mail_of("tickets")).unwrap();
        check_source(&source, "eve@else.example", MESSAGE);
        let quota = Quota { documents: 1, ..Quota::NONE };
        database.set_properties(Properties { quota, ..database.properties() }).unwrap();
        client.ask("MAIL FROM:<eve@else.example>").await;
        let reply = client.ask("RCPT TO:<tickets@acme.example>").await;
        assert!(reply.starts_with("452 4.2.2"), "{reply}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_texts_go_through_files_and_come_out_as_they_were() {
    let server = Server::start(Service::Relay, |_| {});
    let line = [b"x".repeat(76).as_slice(), b"\r\n"].concat();
    let long = [MESSAGE, &line.repeat(60_000)].concat();
    let mut clients = Vec::new();
    for number in 0..4 {
        let mut client = server.connect().await;
        client.ask("EHLO else.example").await;
        client.begin(&format!("eve{number}@else.example"), &["ada@acme.example"]).await;
        client.send(&long[..long.len() / 2]).await;
        clients.push(client);
    }
    for client in &mut clients {
        let reply = client.text(&long[long.len() / 2..]).await;
        assert!(reply.starts_with("250"), "{reply}");
    }
    server.deliver();
    let found = server.mail_of("ada");
    assert_eq!(found.len(), 4);
    for (memo, source) in found {
        let sender = memo["$ReturnPath"].as_str().unwrap().to_owned();
        check_source(&source, &sender, &long);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_has_all_its_files_is_to_try_again() {
    let server = Server::start(Service::Relay, |_| {});
    let mut client = server.connect().await;
    client.ask("EHLO else.example").await;
    let line = [b"x".repeat(998).as_slice(), b"\r\n"].concat();
    let huge = [MESSAGE, &line.repeat(FILE_BYTES / line.len() + 1)].concat();
    let reply = client.deliver("eve@else.example", &["ada@acme.example"], &huge).await;
    assert!(reply.starts_with("452 4.3.1"), "{reply}");
    assert!(server.waiting().is_empty());
    // What it took is free again.
    let half = &huge[..huge.len() / 2];
    let half = &half[..half.iter().rposition(|byte| *byte == b'\n').unwrap() + 1];
    let reply = client.deliver("eve@else.example", &["ada@acme.example"], half).await;
    assert!(reply.starts_with("250"), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_within_a_text_leaves_nothing() {
    let server = Server::start(Service::Relay, |_| {});
    for end in [10, 200] {
        let mut client = server.connect().await;
        client.ask("EHLO else.example").await;
        client.begin("eve@else.example", &["ada@acme.example"]).await;
        client.send(&MESSAGE.repeat(end)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(server.waiting().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_in_the_clear_is_forgotten_once_hands_are_shaken() {
    let server = Server::start(Service::Relay, |_| {});
    let mut client = server.connect().await;
    client.ask("EHLO plain.example").await;
    client.ask("MAIL FROM:<mallory@else.example>").await;
    let mut client = server.encrypt(client).await;
    assert!(
        client.ask("RCPT TO:<ada@acme.example>").await.starts_with("503"),
        "greeting and sender are gone"
    );
    assert!(!client.ask("EHLO else.example").await.contains("STARTTLS"));
    assert!(client.deliver("eve@else.example", &["ada@acme.example"], MESSAGE).await.starts_with("250"));
    server.deliver();
    let found = server.mail_of("ada");
    assert!(String::from_utf8_lossy(&found[0].1).contains("with ESMTPS"), "it came encrypted");
    // Commands behind STARTTLS are nobody's.
    let mut injected = server.connect().await;
    injected.ask("EHLO else.example").await;
    injected.send(b"STARTTLS\r\nMAIL FROM:<mallory@else.example>\r\n").await;
    let reply = injected.reply().await + &injected.reply().await;
    assert!(!reply.contains("250"), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_end_by_another_line_end_carry_no_second_message() {
    let server = Server::start(Service::Relay, |_| {});
    for end in ["\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r\n.\r", "\r.\r\n"] {
        let mut client = server.connect().await;
        client.ask("EHLO else.example").await;
        client.begin("eve@else.example", &["ada@acme.example"]).await;
        let smuggled = format!(
            "Subject: one{end}MAIL FROM:<mallory@else.example>\r\nRCPT TO:<bob@acme.example>\r\nDATA\r\nSubject: two\r\n"
        );
        let reply = client.text(smuggled.as_bytes()).await;
        assert!(!reply.starts_with("250"), "{end:?}: {reply}");
    }
    server.deliver();
    assert_eq!(server.mail_of("ada").len() + server.mail_of("bob").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_says_so_and_keeps_what_it_has_acknowledged() {
    let mut server = Server::start(Service::Relay, |_| {});
    let mut idle = server.connect().await;
    let mut busy = server.connect().await;
    busy.ask("EHLO else.example").await;
    assert!(busy.deliver("eve@else.example", &["ada@acme.example"], MESSAGE).await.starts_with("250"));
    busy.begin("eve@else.example", &["bob@acme.example"]).await;
    busy.send(&MESSAGE[..40]).await;
    server.stop().await;
    assert!(idle.reply().await.starts_with("421"));
    assert!(busy.reply().await.starts_with("421"));
    server.deliver();
    assert_eq!((server.mail_of("ada").len(), server.mail_of("bob").len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_is_sent_away() {
    let server = Server::start(Service::Relay, |options| {
        options.times.command_ms = 200;
        options.times.text_pause_ms = 200;
    });
    let mut silent = server.connect().await;
    assert!(silent.reply().await.starts_with("421"));
    let mut slow = server.connect().await;
    slow.ask("EHLO else.example").await;
    slow.begin("eve@else.example", &["ada@acme.example"]).await;
    slow.send(b"Subject: slo").await;
    assert!(slow.reply().await.starts_with("421"));
    assert!(server.waiting().is_empty());
}

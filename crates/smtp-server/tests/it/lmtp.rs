//! Messages of a server in front of this one.

use scrinium_mail::{RuleBook, RuleOwner};
use scrinium_smtp::Service;
use serde_json::json;

use crate::common::Server;

#[tokio::test(flavor = "multi_thread")]
async fn each_recipient_is_answered() {
    let server = Server::start(Service::Lmtp, |_| {});
    let mut client = server.connect().await;
    assert!(client.ask("EHLO front.example").await.starts_with('5'), "LMTP greets by LHLO");
    assert!(client.ask("LHLO front.example").await.starts_with("250"));
    client.ask("MAIL FROM:<eve@else.example>").await;
    assert!(client.ask("RCPT TO:<ada@acme.example>").await.starts_with("250"));
    assert!(client.ask("RCPT TO:<nobody@acme.example>").await.starts_with("550"));
    assert!(client.ask("RCPT TO:<bob@acme.example>").await.starts_with("250"));
    assert!(client.ask("DATA").await.starts_with("354"));
    let first = client.text(b"Subject: both\r\n\r\nText.\r\n").await;
    let second = client.reply().await;
    assert!(first.starts_with("250") && second.starts_with("250"), "{first} {second}");
    server.deliver();
    assert_eq!((server.mail_of("ada").len(), server.mail_of("bob").len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_take_it_is_no_obstacle_to_others() {
    let server = Server::start(Service::Lmtp, |_| {});
    let rules = json!({"rules": [{"name": "all", "when": "1", "actions": [{"reject": "Nothing today."}]}]});
    RuleBook::new(&server.databases).set(RuleOwner::Person("person:bob"), &rules).unwrap();
    let mut client = server.connect().await;
    assert!(client.ask("LHLO front.example").await.starts_with("250"));
    for number in 0..2 {
        client.ask("MAIL FROM:<eve@else.example>").await;
        for name in ["bob", "ada", "press"] {
            assert!(client.ask(&format!("RCPT TO:<{name}@acme.example>")).await.starts_with("250"));
        }
        assert!(client.ask("DATA").await.starts_with("354"));
        let text = b"Message-ID: <1@else.example>\r\nSubject: three\r\n\r\nText.\r\n";
        let replies = [client.text(text).await, client.reply().await, client.reply().await];
        assert!(replies[0].starts_with("550 5.7.1") && replies[0].ends_with("Nothing today."), "{replies:?}");
        assert!(replies[1].starts_with("250") && replies[2].starts_with("250"), "{number}: {replies:?}");
    }
    server.deliver();
    assert_eq!((server.mail_of("ada").len(), server.mail_of("bob").len()), (1, 0));
}

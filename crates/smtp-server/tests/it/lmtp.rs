//! Messages of a server in front of this one.

use scrinium_smtp::Service;

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

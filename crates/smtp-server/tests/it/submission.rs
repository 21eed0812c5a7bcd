//! People who hand messages in.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use scrinium_credentials::sasl::{ChannelBindings, ClientExchange, ClientSecret, SaslMechanism};
use scrinium_credentials::token::{
    FactorRule, KeySet, NameClaim, TokenRules, TokenUse, VerifyKey, sign_hmac, verify,
};
use scrinium_credentials::{NewAppPassword, ProtocolSet, StoredCredentials};
use scrinium_database::ReadOptions;
use scrinium_directory::{DIRECTORY_DATABASE, Person, TokenVerification, TokenVerifier};
use scrinium_mail::SendRight;
use scrinium_smtp::Service;
use scrinium_smtp_server::{AllowanceLimits, SendRights};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::common::{Client, SERVER, Server, Setting, add, bindings};

const MESSAGE: &[u8] =
    b"From: Ada <ada@acme.example>\r\nTo: bob@acme.example\r\nSubject: hello\r\n\r\nText.\r\n";

/// With STARTTLS, as on port 587.
fn start(change: impl FnOnce(&mut Setting)) -> Server {
    Server::start_as(Service::Submission, change)
}

fn plain(name: &str, password: &str) -> String {
    format!("AUTH PLAIN {}", STANDARD.encode(format!("\0{name}\0{password}")))
}

/// A client that has greeted over TLS.
async fn encrypted(server: &Server) -> Client<TlsStream<TcpStream>> {
    let mut client = server.connect().await;
    client.ask("EHLO home.example").await;
    let mut client = server.encrypt(client).await;
    let offers = client.ask("EHLO home.example").await;
    assert!(offers.starts_with("250"), "{offers}");
    client
}

async fn logged_in(server: &Server, name: &str) -> Client<TlsStream<TcpStream>> {
    let mut client = encrypted(server).await;
    let reply = client.ask(&plain(name, &format!("secret of {name}"))).await;
    assert!(reply.starts_with("235"), "{reply}");
    client
}

/// An exchange of a client that knows the mechanism; what the server says last.
async fn log_in<S: AsyncReadExt + AsyncWriteExt + Unpin>(
    client: &mut Client<S>,
    (mechanism, name, secret): (SaslMechanism, &str, ClientSecret<'_>),
    bindings: &ChannelBindings,
) -> String {
    let mut exchange = ClientExchange::begin(&[mechanism], name, secret, true, bindings).unwrap();
    let initial = exchange.initial();
    let word = initial.map(|initial| format!(" {}", STANDARD.encode(initial))).unwrap_or_default();
    let mut said = client.ask(&format!("AUTH {}{word}", mechanism.name())).await;
    while let Some(challenge) = said.strip_prefix("334 ") {
        let challenge = STANDARD.decode(challenge).unwrap();
        let response = exchange.respond(&challenge).unwrap_or_default();
        said = client.ask(&STANDARD.encode(response)).await;
    }
    said
}

const ISSUER: &str = "https://id.example.org";
const KEY: &[u8] = b"a key that nobody else has, of 32 bytes or more";

/// A provider whose keys are at hand.
struct Provider;

impl TokenVerifier for Provider {
    fn verify<'a>(&'a self, token: &'a str) -> TokenVerification<'a> {
        let mut keys = KeySet::default();
        keys.add(None, VerifyKey::shared(KEY).unwrap());
        let rules = TokenRules {
            issuer: ISSUER.to_owned(),
            usage: TokenUse::Access { audiences: vec!["mail".to_owned()] },
            name: NameClaim::VerifiedEmail,
            factor: FactorRule::Never,
        };
        Box::pin(std::future::ready(verify(token, &keys, &rules, 1_795_684_851)))
    }
}

fn token(email: &str) -> String {
    let claims = json!({"iss": ISSUER, "aud": "mail", "sub": "42", "email": email, "email_verified": true,
        "exp": 1_795_684_851 + 600});
    sign_hmac(KEY, None, &claims)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_handed_in_is_completed_and_reaches_people() {
    let server = start(|_| {});
    let mut client = logged_in(&server, "ada").await;
    let reply = client.deliver("ada@acme.example", &["bob@acme.example"], MESSAGE).await;
    assert!(reply.starts_with("250"), "{reply}");
    assert!(server.waiting().is_empty());
    let [(memo, source)] = <[_; 1]>::try_from(server.mail_of("bob")).unwrap();
    assert!(!memo.contains_key("$Envelope"));
    assert_eq!(memo["From"], json!("Ada <ada@acme.example>"));
    let text = String::from_utf8(source).unwrap();
    for field in ["\r\nDate: ", "\r\nMessage-ID: <", "with ESMTPSA"] {
        assert!(text.contains(field), "{field}: {text}");
    }
    assert!(
        !text.contains("127.0.0.1") && !text.contains("home.example"),
        "where Ada lives is nobody's to know"
    );
    assert!(text.ends_with("\r\n\r\nText.\r\n"));
    assert_eq!(server.counted("Submission.Messages"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_for_later_waits() {
    let server = start(|setting| setting.options.future_release_s = Some(3600));
    let mut client = logged_in(&server, "ada").await;
    assert!(client.ask("MAIL FROM:<ada@acme.example> HOLDFOR=3601").await.starts_with("501"));
    assert!(client.ask("MAIL FROM:<ada@acme.example> HOLDFOR=600").await.starts_with("250"));
    assert!(client.ask("RCPT TO:<bob@acme.example>").await.starts_with("250"));
    assert!(client.ask("DATA").await.starts_with("354"));
    assert!(client.text(MESSAGE).await.starts_with("250"));
    server.deliver();
    let [waiting] = <[_; 1]>::try_from(server.waiting()).unwrap();
    assert_eq!(waiting["$Envelope"]["submitter"], json!("ada"));
    assert!(server.mail_of("bob").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_logs_in_or_sends_without_encryption() {
    let server = start(|_| {});
    let mut client = server.connect().await;
    let offers = client.ask("EHLO home.example").await;
    assert!(offers.contains("STARTTLS") && !offers.contains("AUTH"), "{offers}");
    let reply = client.ask(&plain("ada", "secret of ada")).await;
    assert!(reply.starts_with("538 5.7.11"), "{reply}");
    assert!(client.ask("AUTH SCRAM-SHA-256").await.starts_with("538"));
    assert!(client.ask("MAIL FROM:<ada@acme.example>").await.starts_with("530"));
    let mut client = server.encrypt(client).await;
    let offers = client.ask("EHLO home.example").await;
    assert!(!offers.contains("STARTTLS"), "{offers}");
    for mechanism in ["PLAIN", "LOGIN", "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"] {
        assert!(offers.contains(mechanism), "{mechanism}: {offers}");
    }
    assert!(!offers.contains("XOAUTH2"), "no provider is known");
    assert!(client.ask("MAIL FROM:<ada@acme.example>").await.starts_with("530"));
    // On this machine an administrator may allow it.
    let server = start(|setting| setting.trusts_loopback = true);
    let mut client = server.connect().await;
    assert!(client.ask("EHLO home.example").await.contains("PLAIN"));
    assert!(client.ask(&plain("ada", "secret of ada")).await.starts_with("235"));
    let reply = client.deliver("ada@acme.example", &["bob@acme.example"], MESSAGE).await;
    assert!(reply.starts_with("250"), "{reply}");
    server.deliver();
    assert!(String::from_utf8_lossy(&server.mail_of("bob")[0].1).contains("with ESMTPA"));
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_comes_in_by_each_mechanism() {
    let server = start(|setting| {
        setting.begins_with_tls = true;
        setting.tokens = Some(Arc::new(Provider));
        setting.options.has_tokens = true;
    });
    let (right, wrong) = (token("ada@acme.example"), token("bob@far.example"));
    for mechanism in SaslMechanism::ALL {
        let is_token = matches!(mechanism, SaslMechanism::OauthBearer | SaslMechanism::Xoauth2);
        let secret = |word| {
            if is_token {
                ClientSecret::Token(if word == "secret of ada" { &right } else { &wrong })
            } else {
                ClientSecret::Password(word)
            }
        };
        let mut client = server.connect_encrypted().await;
        client.ask("EHLO home.example").await;
        // Who could bind and believes that the server cannot has met somebody in between.
        let is_bound = mechanism == SaslMechanism::ScramSha256Plus;
        let bound = if is_bound { bindings(&client, &server) } else { ChannelBindings::default() };
        let name = if is_token { "ada@acme.example" } else { "ada" };
        let reply = log_in(&mut client, (mechanism, name, secret("wrong")), &bound).await;
        assert!(reply.starts_with("535"), "{mechanism:?}: {reply}");
        let reply = log_in(&mut client, (mechanism, name, secret("secret of ada")), &bound).await;
        assert!(reply.starts_with("235"), "{mechanism:?}: {reply}");
        assert!(client.ask("MAIL FROM:<ada@acme.example>").await.starts_with("250"));
    }
    // By the address as well, and acting as nobody else.
    for (name, code) in [("BOB@acme.example", "235"), ("bob@far.example", "535")] {
        for mechanism in [SaslMechanism::ScramSha256, SaslMechanism::Plain, SaslMechanism::Login] {
            let mut client = server.connect_encrypted().await;
            client.ask("EHLO home.example").await;
            let secret = ClientSecret::Password("secret of bob");
            let reply = log_in(&mut client, (mechanism, name, secret), &ChannelBindings::default()).await;
            assert!(reply.starts_with(code), "{mechanism:?} as {name}: {reply}");
        }
    }
    // Bound to the certificate alone, as by clients that know no exporter; and to another connection.
    let mut client = server.connect_encrypted().await;
    client.ask("EHLO home.example").await;
    let bound = bindings(&client, &server);
    let plus = (SaslMechanism::ScramSha256Plus, "ada", ClientSecret::Password("secret of ada"));
    let foreign = ChannelBindings { exporter: Some([7; 32]), server_end_point: None };
    assert!(log_in(&mut client, plus, &foreign).await.starts_with("535"));
    let certificate = ChannelBindings { exporter: None, ..bound };
    let plus = (SaslMechanism::ScramSha256Plus, "ada", ClientSecret::Password("secret of ada"));
    assert!(log_in(&mut client, plus, &certificate).await.starts_with("235"));
}

#[tokio::test(flavor = "multi_thread")]
async fn people_send_as_themselves_alone() {
    let server = start(|_| {});
    let mut client = logged_in(&server, "ada").await;
    for stranger in ["bob@acme.example", "nobody@acme.example", "ada@far.example"] {
        let reply = client.ask(&format!("MAIL FROM:<{stranger}>")).await;
        assert!(reply.starts_with("553 5.7.1") && reply.contains("ada@acme.example"), "{stranger}: {reply}");
    }
    for author in [
        "bob@acme.example",
        "Ada <bob@acme.example>",
        "ada@acme.example, bob@acme.example",
        "\"ada@acme.example\" <eve@far.example>",
        "Team: bob@acme.example;",
        "nobody",
    ] {
        let text = format!("From: {author}\r\nSubject: forged\r\n\r\nText.\r\n");
        let reply = client.deliver("ada@acme.example", &["bob@acme.example"], text.as_bytes()).await;
        assert!(reply.starts_with("550"), "{author}: {reply}");
    }
    let twice = b"From: ada@acme.example\r\nFrom: bob@acme.example\r\n\r\nText.\r\n";
    assert!(client.deliver("ada@acme.example", &["bob@acme.example"], twice).await.starts_with("550"));
    assert!(
        client.deliver("", &["bob@acme.example"], b"Subject: from nobody\r\n\r\n").await.starts_with("550")
    );
    assert!(server.waiting().is_empty());
    // In any case, and a notice from nobody.
    let text = b"From: ADA@Acme.Example\r\nSender: Bob <bob@acme.example>\r\n\r\nText.\r\n";
    let reply = client.deliver("Ada@ACME.example", &["bob@acme.example"], text).await;
    assert!(reply.starts_with("250"), "{reply}");
    assert!(client.deliver("", &["bob@acme.example"], MESSAGE).await.starts_with("250"));
    server.deliver();
    let sources: Vec<String> =
        server.mail_of("bob").into_iter().map(|(_, source)| String::from_utf8(source).unwrap()).collect();
    assert!(sources.iter().any(|source| source.contains("\r\nSender: <ada@acme.example>\r\n")));
    assert!(sources.iter().all(|source| !source.contains("Sender: Bob")), "{sources:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_send_for_groups_and_for_those_who_let_them() {
    let server = start(|_| {});
    let set = |fields: serde_json::Value| {
        let mut bob =
            json!({"_id": "person:bob", "Form": "Person", "ShortName": "bob", "FullName": ["bob Someone"]});
        let present = server.databases.get(DIRECTORY_DATABASE).unwrap();
        let read = present.read("person:bob", &ReadOptions::default(), &SERVER).unwrap();
        bob["_rev"] = json!(read.revision);
        bob.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        add(&server.databases, bob);
    };
    let mut client = logged_in(&server, "ada").await;
    // The name of a group to which a person belongs, with the person's own next to it.
    for (fields, author, expected) in [
        (json!({}), "team@acme.example", Some(true)),
        (json!({}), "bob@acme.example", None),
        (json!({"SendOnBehalf": ["press"]}), "bob@acme.example", Some(true)),
        (json!({"SendAs": ["ada"], "SendOnBehalf": ["ada"]}), "bob@acme.example", Some(false)),
        (json!({"SendAs": ["nobody", "bob"]}), "bob@acme.example", None),
    ] {
        set(fields.clone());
        let text = format!("From: {author}\r\nSubject: {fields}\r\n\r\nText.\r\n");
        let envelope = if expected.is_some() { author } else { "ada@acme.example" };
        let reply = client.deliver(envelope, &["bob@acme.example"], text.as_bytes()).await;
        assert_eq!(reply.starts_with("250"), expected.is_some(), "{fields}: {reply}");
        let Some(has_sender) = expected else { continue };
        server.deliver();
        let source = String::from_utf8(server.mail_of("bob").pop().unwrap().1).unwrap();
        assert_eq!(source.contains("\r\nSender: <ada@acme.example>\r\n"), has_sender, "{source}");
    }
}

/// Ada writes as the team, and for Bob.
struct Delegates;

impl SendRights for Delegates {
    fn right(&self, person: &Person, address: &str) -> SendRight {
        match (person.short_name.as_str(), address) {
            ("ada", "team@acme.example") => SendRight::As,
            ("ada", "bob@acme.example") => SendRight::OnBehalf,
            (name, address) if address == format!("{name}@acme.example") => SendRight::Own,
            _ => SendRight::None,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_writes_for_another_stands_in_the_sender_field() {
    let server = start(|setting| setting.rights = Some(Arc::new(Delegates)));
    let mut client = logged_in(&server, "ada").await;
    let all = [
        ("From: team@acme.example\r\n", "team@acme.example", None),
        ("From: bob@acme.example\r\n", "ada@acme.example", Some("Sender: <ada@acme.example>")),
        ("From: Bob <bob@acme.example>\r\n", "bob@acme.example", Some("Sender: <ada@acme.example>")),
        (
            "Sender: team@acme.example\r\nFrom: bob@acme.example\r\n",
            "ada@acme.example",
            Some("Sender: team@acme.example"),
        ),
        (
            "From: ada@acme.example, bob@acme.example\r\n",
            "ada@acme.example",
            Some("Sender: <ada@acme.example>"),
        ),
    ];
    for (head, from, expected) in all {
        let text = format!("{head}Subject: {head:?}\r\n\r\nText.\r\n");
        let reply = client.deliver(from, &["bob@acme.example"], text.as_bytes()).await;
        assert!(reply.starts_with("250"), "{head}: {reply}");
        server.deliver();
        let source = String::from_utf8(server.mail_of("bob").pop().unwrap().1).unwrap();
        let found = source.lines().find(|line| line.starts_with("Sender:"));
        assert_eq!(found, expected, "{source}");
    }
    let mut client = logged_in(&server, "bob").await;
    assert!(client.ask("MAIL FROM:<team@acme.example>").await.starts_with("553"));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_domains_are_for_servers_that_send_there() {
    let server = start(|_| {});
    let mut client = logged_in(&server, "ada").await;
    client.ask("MAIL FROM:<ada@acme.example>").await;
    let reply = client.ask("RCPT TO:<eve@far.example>").await;
    assert!(reply.starts_with("550 5.7.1"), "{reply}");
    assert!(client.ask("RCPT TO:<nobody@acme.example>").await.starts_with("550 5.1.1"));
    let server = start(|setting| setting.reaches_others = true);
    let mut client = logged_in(&server, "ada").await;
    client
        .ask("MAIL FROM:<ada@acme.example> RET=HDRS ENVID=QQ314159 BODY=8BITMIME SMTPUTF8 REQUIRETLS")
        .await;
    let reply =
        client.ask("RCPT TO:<eve@far.example> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;Eve@far.example").await;
    assert!(reply.starts_with("250"), "{reply}");
    assert!(client.ask("DATA").await.starts_with("354"));
    assert!(
        client
            .text("From: ada@acme.example\r\nSubject: Gr\u{fc}\u{df}e\r\n\r\nT\r\n".as_bytes())
            .await
            .starts_with("250")
    );
    let [waiting] = <[_; 1]>::try_from(server.waiting()).unwrap();
    assert_eq!(
        waiting["$Envelope"],
        json!({"submitter": "ada", "envelope_id": "QQ314159", "returns_all": false, "require_tls": true,
            "recipients": {"eve@far.example": {"notify": "SUCCESS,DELAY", "original": "rfc822;Eve@far.example"}}})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_has_its_limits_on_all_connections_of_a_person() {
    let server = start(|setting| setting.limits = AllowanceLimits { messages: 3, recipients: 4 });
    let mut client = logged_in(&server, "ada").await;
    let mut second = logged_in(&server, "ada").await;
    let both = ["bob@acme.example", "ada@acme.example"];
    assert!(client.deliver("ada@acme.example", &both, MESSAGE).await.starts_with("250"));
    second.ask("MAIL FROM:<ada@acme.example>").await;
    assert!(second.ask("RCPT TO:<bob@acme.example>").await.starts_with("250"));
    assert!(client.deliver("ada@acme.example", &["bob@acme.example"], MESSAGE).await.starts_with("250"));
    let reply = second.ask("RCPT TO:<ada@acme.example>").await;
    assert!(reply.starts_with("450 4.7.1") && reply.contains("4 recipients a day"), "{reply}");
    // A message that is not taken is not counted.
    assert!(second.ask("DATA").await.starts_with("354"));
    assert!(second.text(b"From: eve@far.example\r\n\r\n").await.starts_with("550"));
    assert!(second.deliver("ada@acme.example", &["bob@acme.example"], MESSAGE).await.starts_with("250"));
    let reply = client.ask("MAIL FROM:<ada@acme.example>").await;
    assert!(reply.starts_with("451 4.7.1") && reply.contains("3 messages a day"), "{reply}");
    assert_eq!(server.counted("Submission.Limited"), 2);
    let mut bob = logged_in(&server, "bob").await;
    assert!(bob.ask("MAIL FROM:<bob@acme.example>").await.starts_with("250"), "others are not concerned");
    server.clock.advance(Duration::from_hours(24));
    assert!(client.deliver("ada@acme.example", &both, MESSAGE).await.starts_with("250"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_disabled_or_has_another_password_sends_nothing_more() {
    let server = start(|_| {});
    let made = {
        let directory = &server.directory;
        let create = |credentials: &mut StoredCredentials| {
            let new = NewAppPassword { name: "phone", scope: ProtocolSet::mail(), expires_ms: None };
            Ok(credentials.create_app_password(new, Some(4096), 1)?)
        };
        directory.change_credentials("person:ada", create).unwrap()
    };
    let mut phone = encrypted(&server).await;
    assert!(phone.ask(&plain("ada", &made.show())).await.starts_with("235"));
    let mut client = logged_in(&server, "ada").await;
    let mut other = logged_in(&server, "bob").await;
    let revoke = {
        let id = made.id().to_owned();
        move |credentials: &mut StoredCredentials| Ok(credentials.revoke_app_password(&id, 2)?)
    };
    server.directory.change_credentials("person:ada", revoke).unwrap();
    let reply = phone.ask("MAIL FROM:<ada@acme.example>").await;
    assert!(reply.starts_with("530"), "{reply}");
    // The password still holds; then everything ends, also what has begun.
    client.ask("MAIL FROM:<ada@acme.example>").await;
    assert!(client.ask("RCPT TO:<bob@acme.example>").await.starts_with("250"));
    let end = |credentials: &mut StoredCredentials| {
        credentials.end_sessions();
        Ok(())
    };
    server.directory.change_credentials("person:ada", end).unwrap();
    let reply = client.ask("DATA").await;
    assert!(reply.starts_with("530"), "{reply}");
    assert!(other.ask("MAIL FROM:<bob@acme.example>").await.starts_with("250"));
    assert!(server.waiting().is_empty());
}

//! What no well-meaning client sends, at every port for mail: each gets a refusal, nothing comes in that should not, and the server
//! serves on. Each attack is tried at each port.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use scrinium_smtp::Service;
use tokio::net::TcpStream;

use crate::common::{Client, Server};

const SERVICES: [Service; 3] = [Service::Relay, Service::Submission, Service::Lmtp];

/// What a text begins with, so that it is one of Ada's at a port for submission as well.
const HEAD: &str = "From: ada@acme.example\r\nSubject: one\r\n\r\n";

const SENDER: &str = "ada@acme.example";

/// A server that is soon tired of a client, and takes short messages alone.
fn start(service: Service) -> Server {
    Server::start_as(service, |setting| {
        setting.trusts_loopback = true;
        setting.options.limits.message_bytes = 256 << 10;
        let times = &mut setting.options.times;
        (times.command_ms, times.text_pause_ms, times.login_ms) = (2_000, 2_000, 20_000);
    })
}

const fn hello(service: Service) -> &'static str {
    match service {
        Service::Lmtp => "LHLO x.example",
        Service::Relay | Service::Submission => "EHLO x.example",
    }
}

/// A client that may send.
async fn ready(server: &Server, service: Service) -> Client<TcpStream> {
    let mut client = server.connect().await;
    assert!(client.ask(hello(service)).await.starts_with("250"));
    if service == Service::Submission {
        let secret = STANDARD.encode("\0ada\0secret of ada");
        assert!(client.ask(&format!("AUTH PLAIN {secret}")).await.starts_with("235"));
    }
    client
}

/// An honest message still comes in.
async fn serves(server: &Server, service: Service) {
    let mut client = ready(server, service).await;
    let text = format!("{HEAD}Honest.\r\n");
    let reply = client.deliver(SENDER, &["bob@acme.example"], text.as_bytes()).await;
    assert!(reply.starts_with("250"), "{service:?}: {reply}");
    server.deliver();
    let found = server.mail_of("bob").into_iter().map(|(_, source)| source);
    assert_eq!(found.filter(|source| source.ends_with(b"Honest.\r\n")).count(), 1, "{service:?}");
}

/// Nothing arrived but what an honest client has sent, which is nothing yet.
fn assert_nothing(server: &Server, what: &str) {
    server.deliver();
    let found = server.mail_of("ada").len() + server.mail_of("bob").len() + server.waiting().len();
    assert_eq!(found, 0, "{what}");
}

/// All that is still said to a client that sends nothing more, until the server closes.
async fn rest(client: &mut Client<TcpStream>) -> Vec<String> {
    client.finish().await;
    let mut said = Vec::new();
    loop {
        match client.reply().await {
            reply if reply.is_empty() => return said,
            reply => said.push(reply),
        }
    }
}

/// Ends of a text that are none, as they were tried against other servers, and the second message behind them.
const FALSE_ENDS: [&str; 13] = [
    "\n.\n",
    "\n.\r\n",
    "\r\n.\n",
    "\r.\r",
    "\r\n.\r",
    "\r.\r\n",
    "\r\n.\r\r\n",
    "\r\r\n.\r\n",
    "\n\n.\r\n",
    "\r\n.\0\r\n",
    "\r\n\0.\r\n",
    "\r\n.\u{0}\n",
    "\r\n..\n",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_false_end_lets_a_second_message_in() {
    for service in SERVICES {
        let server = start(service);
        for end in FALSE_ENDS {
            let second = format!(
                "MAIL FROM:<{SENDER}>\r\nRCPT TO:<bob@acme.example>\r\nDATA\r\nFrom: {SENDER}\r\nSubject: two\r\n\r\nSmuggled.\r\n"
            );
            let text = format!("{HEAD}One.{end}{second}");
            // By DATA, by one chunk and by two that are cut within the end.
            let mut client = ready(&server, service).await;
            client.begin(SENDER, &["ada@acme.example"]).await;
            client.text(text.as_bytes()).await;
            rest(&mut client).await;
            let half = HEAD.len() + 5;
            for pieces in [vec![text.as_str()], vec![&text[..half], &text[half..]]] {
                let mut client = ready(&server, service).await;
                client.ask(&format!("MAIL FROM:<{SENDER}>")).await;
                client.ask("RCPT TO:<ada@acme.example>").await;
                let last = pieces.len() - 1;
                for (place, piece) in pieces.iter().enumerate() {
                    let word = if place == last { " LAST" } else { "" };
                    client.send(format!("BDAT {}{word}\r\n{piece}", piece.len()).as_bytes()).await;
                }
                rest(&mut client).await;
            }
        }
        server.deliver();
        assert!(server.mail_of("bob").is_empty(), "{service:?}: a smuggled message came");
        for (_, source) in server.mail_of("ada") {
            // What came is one message with the second as its text, and has no line end of another kind.
            let text = String::from_utf8_lossy(&source).into_owned();
            assert!(text.contains("Smuggled.") && text.contains("RCPT TO:<bob"), "{service:?}: {text:?}");
            let bare = text.replace("\r\n", "");
            assert!(!bare.contains(['\r', '\n']), "{service:?}: {text:?}");
        }
        serves(&server, service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_come_before_the_encryption_are_nobodys() {
    for service in SERVICES {
        let server = Server::start(service, |_| {});
        for injected in [
            "NOOP\r\n",
            "MAIL FROM:<ada@acme.example>\r\nRCPT TO:<ada@acme.example>\r\n",
            "\u{16}\u{3}\u{1}",
            " ",
        ] {
            let mut client = server.connect().await;
            client.ask(hello(service)).await;
            client.send(format!("STARTTLS\r\n{injected}").as_bytes()).await;
            let said = rest(&mut client).await.join("\n");
            assert!(!said.contains("250"), "{service:?}: {injected:?}: {said}");
        }
        // What was said in the clear is forgotten.
        let mut client = server.connect().await;
        client.ask(hello(service)).await;
        client.ask("MAIL FROM:<ada@acme.example>").await;
        let mut client = server.encrypt(client).await;
        for command in ["RCPT TO:<ada@acme.example>", "DATA", "MAIL FROM:<ada@acme.example>"] {
            assert!(client.ask(command).await.starts_with("503"), "{service:?}: {command}");
        }
        assert!(client.ask(hello(service)).await.starts_with("250"));
        assert!(client.ask("STARTTLS").await.starts_with("503"));
        assert_nothing(&server, "nothing came before the encryption");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_slow_is_sent_away_wherever_it_is() {
    for service in SERVICES {
        let server = start(service);
        let mut clients = Vec::new();
        for beginning in
            ["", "MAIL FROM:<ada@acme.example>\r\nRCPT TO:<ada@acme.exa", "MAIL FROM:<ada@acme.example>\r\n"]
        {
            let mut client = ready(&server, service).await;
            client.send(beginning.as_bytes()).await;
            clients.push(client);
        }
        let mut within = ready(&server, service).await;
        within.begin(SENDER, &["ada@acme.example"]).await;
        within.send(b"From: ada@acme.example\r\nSubject: sl").await;
        clients.push(within);
        let mut chunk = ready(&server, service).await;
        chunk.ask(&format!("MAIL FROM:<{SENDER}>")).await;
        chunk.ask("RCPT TO:<ada@acme.example>").await;
        chunk.send(b"BDAT 1000 LAST\r\nFrom: ada@acme.example\r\n").await;
        clients.push(chunk);
        for client in &mut clients {
            let mut last = String::new();
            loop {
                let reply = client.reply().await;
                if reply.is_empty() {
                    break;
                }
                last = reply;
            }
            assert!(last.starts_with("421"), "{service:?}: {last}");
        }
        assert_nothing(&server, "half a message does not count");
        serves(&server, service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_long_is_refused_and_never_kept() {
    for service in SERVICES {
        let server = start(service);
        let line = [b"x".repeat(998).as_slice(), b"\r\n"].concat();
        let mut client = ready(&server, service).await;
        let reply = client.ask(&format!("MAIL FROM:<{SENDER}> SIZE=300000")).await;
        assert!(reply.starts_with("552"), "{service:?}: {reply}");
        let reply = client
            .deliver(SENDER, &["ada@acme.example"], &[HEAD.as_bytes(), &line.repeat(300)].concat())
            .await;
        assert!(reply.starts_with("552"), "{service:?}: {reply}");
        // One line of 70 KB, and a head of nothing but fields.
        let long = [HEAD.as_bytes(), &b"y".repeat(70_000), b"\r\n"].concat();
        let reply = client.deliver(SENDER, &["ada@acme.example"], &long).await;
        assert!(reply.starts_with("550"), "{service:?}: {reply}");
        // A command without an end, and the next one.
        let mut client = ready(&server, service).await;
        client.send(&b"NOOP ".repeat(20_000)).await;
        client.send(b"\r\nNOOP\r\n").await;
        let said = rest(&mut client).await;
        assert!(
            said[0].starts_with("500") && said.last().unwrap().starts_with("250"),
            "{service:?}: {said:?}"
        );
        // A chunk that nobody can send.
        let mut client = ready(&server, service).await;
        client.ask(&format!("MAIL FROM:<{SENDER}>")).await;
        client.ask("RCPT TO:<ada@acme.example>").await;
        client.send(b"BDAT 18446744073709551615 LAST\r\n").await;
        let said = rest(&mut client).await;
        assert!(
            said[0].starts_with('5') && !said.iter().any(|reply| reply.starts_with("250")),
            "{service:?}: {said:?}"
        );
        assert_nothing(&server, "what is too long is not kept");
        serves(&server, service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_commands_at_once_are_answered_in_order_or_ended() {
    for service in SERVICES {
        let server = start(service);
        let mut client = ready(&server, service).await;
        client.send(&b"NOOP\r\nVRFY bob\r\nRSET\r\n".repeat(1000)).await;
        let said = rest(&mut client).await;
        let (last, before) = said.split_last().unwrap();
        assert!(last.starts_with("421") && before.len() <= 200, "{service:?}: {}", said.len());
        for (place, reply) in before.iter().enumerate() {
            let code = if place % 3 == 1 { "252" } else { "250" };
            assert!(reply.starts_with(code), "{service:?}: {place}: {reply}");
        }
        // Nonsense is ended sooner.
        let mut client = ready(&server, service).await;
        client.send(&b"\x80\xff nonsense\r\n".repeat(1000)).await;
        let said = rest(&mut client).await;
        assert!(said.len() <= 40 && said.last().unwrap().starts_with("421"), "{service:?}: {}", said.len());
        // A browser that a page has sent here.
        let mut client = server.connect().await;
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\n\r\nMAIL FROM:<a@b>\r\n").await;
        assert!(rest(&mut client).await[0].starts_with("421"));
        serves(&server, service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_recipients_are_too_many_and_the_first_thousand_are_served() {
    for service in SERVICES {
        let server = start(service);
        let mut client = ready(&server, service).await;
        assert!(client.ask(&format!("MAIL FROM:<{SENDER}>")).await.starts_with("250"));
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..100 {
            client.send("RCPT TO:<ada@acme.example>\r\n".repeat(100).as_bytes()).await;
            for _ in 0..100 {
                match client.reply().await {
                    reply if reply.starts_with("250") => taken += 1,
                    reply if reply.starts_with("452 4.5.3") => refused += 1,
                    reply => panic!("{service:?}: {reply}"),
                }
            }
        }
        assert_eq!((taken, refused), (1000, 9000), "{service:?}");
        assert!(client.ask("DATA").await.starts_with("354"));
        let reply = client.text(format!("{HEAD}To many.\r\n").as_bytes()).await;
        assert!(reply.starts_with("250"), "{service:?}: {reply}");
        if service == Service::Lmtp {
            for _ in 1..1000 {
                assert!(client.reply().await.starts_with("250"));
            }
        }
        server.deliver();
        assert_eq!(server.mail_of("ada").len(), 1, "{service:?}: everybody gets it once");
        // Thousands who are not here end the connection.
        let mut client = ready(&server, service).await;
        client.ask(&format!("MAIL FROM:<{SENDER}>")).await;
        client.send("RCPT TO:<nobody@acme.example>\r\n".repeat(1000).as_bytes()).await;
        let said = rest(&mut client).await;
        assert!(said.len() <= 101 && said.last().unwrap().starts_with("421"), "{service:?}: {}", said.len());
        serves(&server, service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn log_ins_that_are_none_end_the_connection_and_let_nobody_in() {
    let long = STANDARD.encode("\0ada\0".to_owned() + &"x".repeat(9_000));
    let attempts = [
        format!("AUTH PLAIN {}", "A".repeat(60_000)),
        format!("AUTH PLAIN {long}"),
        format!("AUTH PLAIN\r\n{}", "B".repeat(60_000)),
        "AUTH LOGIN\r\n====\r\n".to_owned(),
        "AUTH LOGIN AAAA\r\nAAAA".to_owned(),
        format!("AUTH PLAIN {}", STANDARD.encode(b"\0ada\0secret of ada\0")),
        format!("AUTH PLAIN {}", STANDARD.encode(b"bob\0ada\0secret of ada")),
        format!("AUTH PLAIN {}", STANDARD.encode(b"\0ada\xff\0secret of ada")),
        format!("AUTH SCRAM-SHA-256 {}", STANDARD.encode(b"n,,n=ada,r=")),
        format!("AUTH SCRAM-SHA-256 {}", STANDARD.encode(b"p=tls-unique,,n=ada,r=abcdefgh")),
        "AUTH X\0Y".to_owned(),
        "AUTH".to_owned(),
    ];
    for service in SERVICES {
        let server = start(service);
        for attempt in &attempts {
            let mut client = server.connect().await;
            client.ask(hello(service)).await;
            client.send(format!("{attempt}\r\n").as_bytes()).await;
            client.send(b"MAIL FROM:<ada@acme.example>\r\n").await;
            let said = rest(&mut client).await.join("\n");
            assert!(!said.contains("235"), "{service:?}: {attempt:?}: {said}");
            if service == Service::Submission {
                assert!(!said.contains("The sender is fine"), "{attempt:?}: {said}");
            } else {
                assert!(
                    said.contains("502") || said.contains("500") || said.contains("501"),
                    "{service:?}: {attempt:?}: {said}"
                );
            }
        }
        serves(&server, service).await;
    }
    // A name that is guessed is locked, however many connections there are, and only for who guesses.
    let server = start(Service::Submission);
    let mut answers = Vec::new();
    for guess in 0..9 {
        let mut client = server.connect().await;
        client.ask(hello(Service::Submission)).await;
        let secret = STANDARD.encode(format!("\0bob\0guess {guess}"));
        answers.push(client.ask(&format!("AUTH PLAIN {secret}")).await);
    }
    assert!(answers[0].starts_with("535") && answers.last().unwrap().starts_with("454"), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_not_logged_in_sends_to_people_here_alone_and_nobody_relays() {
    for service in SERVICES {
        let server = start(service);
        let mut client = ready(&server, service).await;
        client.ask(&format!("MAIL FROM:<{SENDER}>")).await;
        for elsewhere in [
            "eve@far.example",
            "eve%far.example@acme.example",
            "\"eve@far.example\"@acme.example",
            "@acme.example:eve@far.example",
            "far.example!eve@acme.example",
            "eve@[127.0.0.1]",
            "eve@[IPv6:::1]",
            "ada@acme.example@far.example",
            "ada\0@acme.example",
            "ada@acme.example\u{0}.far.example",
        ] {
            let reply = client.ask(&format!("RCPT TO:<{elsewhere}>")).await;
            assert!(reply.starts_with('5'), "{service:?}: {elsewhere}: {reply}");
        }
        let reply = client.ask("DATA").await;
        assert!(reply.starts_with('5'), "{service:?}: {reply}");
        assert_nothing(&server, "nobody was a recipient");
        serves(&server, service).await;
    }
}

/// Pieces of which nonsense that is nearly right is made.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&'static [u8]> = vec![
        b"EHLO x\r\n",
        b"LHLO x\r\n",
        b"HELO x\r\n",
        b"MAIL FROM:<ada@acme.example>\r\n",
        b"MAIL FROM:<>\r\n",
        b"MAIL FROM: <ada@acme.example> SIZE=9\r\n",
        b"RCPT TO:<bob@acme.example>\r\n",
        b"RCPT TO:<nobody@acme.example>\r\n",
        b"DATA\r\n",
        b"BDAT 5\r\n",
        b"BDAT 0 LAST\r\n",
        b"BDAT 99999\r\n",
        b"RSET\r\n",
        b"NOOP\r\n",
        b"VRFY x\r\n",
        b"AUTH PLAIN\r\n",
        b"AUTH PLAIN AGFkYQBzZWNyZXQgb2YgYWRh\r\n",
        b"AUTH LOGIN\r\n",
        b"*\r\n",
        b"STARTTLS\r\n",
        b".\r\n",
        b"\r\n.\r\n",
        b"..\r\n",
        b"\n",
        b"\r",
        b"\0",
        b"From: ada@acme.example\r\n",
        b"\r\n",
        b"From: ",
        b"\xff\xfe",
        b"<",
        b">",
        b"\"",
        b"QUIT\r\n",
    ];
    prop_oneof![
        9 => prop::sample::select(words).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

#[test]
fn whatever_is_sent_the_server_answers_in_replies_and_serves_on() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let times = std::env::var("SCRINIUM_TIMES").ok().and_then(|times| times.parse::<u32>().ok()).unwrap_or(1);
    for service in SERVICES {
        let server = runtime.block_on(async { start(service) });
        let mut runner =
            TestRunner::new(Config { cases: 25 * times, failure_persistence: None, ..Config::default() });
        let tried = runner.run(&prop::collection::vec(piece(), 1..40), |pieces| {
            runtime.block_on(async {
                let mut client = server.connect().await;
                client.send_all(&pieces.concat()).await;
                client.send_all(b"\r\nQUIT\r\n").await;
                for reply in rest(&mut client).await {
                    let code: u16 = reply[..3].parse().unwrap();
                    assert!((200..600).contains(&code), "{reply}");
                }
            });
            Ok(())
        });
        tried.unwrap();
        runtime.block_on(async {
            let mut client = ready(&server, service).await;
            assert!(client.ask(&format!("MAIL FROM:<{SENDER}>")).await.starts_with("250"), "{service:?}");
        });
    }
}

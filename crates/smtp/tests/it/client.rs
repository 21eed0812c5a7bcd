//! Dialogues of the client with servers, as these are known to speak.

use scrinium_credentials::sasl::ChannelBindings;
use scrinium_smtp::ClientSession;
use scrinium_smtp::client::{
    ClientLogin, ClientOptions, ClientRequest, LoginSecret, Outcome, Outgoing, Protocol, Reason, TlsPolicy,
};
use scrinium_smtp_wire::{Command, ForwardPath, OriginalRecipient, ReversePath};

const NOW_MS: u64 = 1000;

fn path(address: &str) -> ForwardPath {
    match Command::parse(format!("RCPT TO:<{address}>").as_bytes()) {
        Ok(Command::Recipient(path, _)) => path,
        other => panic!("{other:?}"),
    }
}

fn message(recipients: &[&str]) -> Outgoing {
    let recipients = recipients.iter().map(|one| path(one)).collect();
    let Ok(Command::Mail(sender, _)) = Command::parse(b"MAIL FROM:<a@b.test>") else { panic!("no sender") };
    Outgoing { text_bytes: Some(9), ..Outgoing::new(sender, recipients) }
}

/// A server that says what the script says: it gets the lines of `C: ` and says those of `S: `, where `~` is a line end.
/// `CLOSE` ends the connection, `TLS` is where hands are shaken, `WAIT` lets the client do what it can.
fn play(options: ClientOptions, message: &Outgoing, script: &str) -> (Vec<ClientRequest>, ClientSession) {
    let mut session = ClientSession::new(options, None, NOW_MS);
    let (mut requests, mut sent) = (Vec::new(), String::new());
    let mut handed_in = false;
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        loop {
            let request = session.next(NOW_MS);
            sent.push_str(&String::from_utf8(session.take_output()).expect("text"));
            match request {
                None => break,
                Some(ClientRequest::Ready) if !handed_in => {
                    handed_in = true;
                    assert!(session.send(message.clone(), NOW_MS));
                }
                Some(ClientRequest::StartTls) => {
                    assert_eq!(line, "TLS");
                    session.tls_started(ChannelBindings::default(), NOW_MS);
                }
                Some(ClientRequest::Text) => {
                    session.give_text(b".x\r\n");
                    session.end_text();
                }
                Some(request) => requests.push(request),
            }
        }
        if let Some(expected) = line.strip_prefix("C: ") {
            let end = sent.find("\r\n").unwrap_or_else(|| panic!("{expected} was not sent; {requests:?}"));
            let rest = sent.split_off(end + 2);
            assert_eq!(sent.trim_end(), expected);
            sent = rest;
        } else if let Some(said) = line.strip_prefix("S: ") {
            session.receive(format!("{}\r\n", said.replace('~', "\r\n")).as_bytes(), NOW_MS);
        } else if line == "CLOSE" {
            session.disconnected();
        } else {
            assert!(matches!(line, "TLS" | "WAIT"), "{line}");
        }
    }
    while let Some(request) = session.next(NOW_MS) {
        requests.push(request);
    }
    assert_eq!(sent, "", "more was sent");
    (requests, session)
}

fn smtp() -> ClientOptions {
    ClientOptions::new(Protocol::Smtp, "us.test")
}

fn outcomes(requests: &[ClientRequest]) -> Vec<String> {
    let word = |outcome: &Outcome| {
        let word = match outcome {
            Outcome::Delivered { .. } => "delivered",
            Outcome::Deferred(_) => "deferred",
            Outcome::Failed(_) => "failed",
            Outcome::Unknown(_) => "unknown",
        };
        format!("{word} {:?} {}", outcome.said().reason, outcome.said().enhanced)
    };
    let done = requests.iter().find_map(|request| match request {
        ClientRequest::Done(outcomes) => Some(outcomes),
        _ => None,
    });
    done.unwrap_or_else(|| panic!("{requests:?}")).iter().map(word).collect()
}

const OPEN: &str = "S: 220 there
    C: EHLO us.test
    S: 250-there
    S: 250-PIPELINING
    S: 250-SIZE 1000
    S: 250 DSN
    ";

#[test]
fn a_message_goes_out_in_two_round_trips() {
    let mut message = message(&["a@x.test", "b@x.test"]);
    message.recipients[0].original = OriginalRecipient::new("rfc822", "first@x.test");
    message.envelope_id = Some("e1".to_owned());
    let script = format!(
        "{OPEN}C: MAIL FROM:<a@b.test> SIZE=9 ENVID=e1
        C: RCPT TO:<a@x.test> ORCPT=rfc822;first@x.test
        C: RCPT TO:<b@x.test>
        C: DATA
        S: 250 ok
        S: 250 ok
        S: 550-5.1.1 no
        S: 550 5.1.1 such
        S: 354 go
        C: ..x
        C: .
        S: 250 2.0.0 queued
        "
    );
    let (requests, session) = play(smtp(), &message, &script);
    assert_eq!(outcomes(&requests), ["delivered Replied 2.0.0", "failed Replied 5.1.1"]);
    let ClientRequest::Done(outcomes) = &requests[0] else { panic!("{requests:?}") };
    assert!(
        matches!(&outcomes[0], Outcome::Delivered { dsn_passed_on: true, said } if said.text == "queued")
    );
    assert_eq!(outcomes[1].said().text, "no such");
    assert_eq!((requests.get(1), session.is_closed()), (Some(&ClientRequest::Ready), false));
}

#[test]
fn an_old_server_is_greeted_with_helo_and_asked_one_thing_at_a_time() {
    let script = "S: 220 there
        C: EHLO us.test
        S: 500 what
        C: HELO us.test
        S: 250 there
        C: MAIL FROM:<a@b.test>
        S: 250 ok
        C: RCPT TO:<a@x.test>
        S: 250 ok
        C: DATA
        S: 354 go
        C: ..x
        C: .
        S: 250 ok";
    assert_eq!(outcomes(&play(smtp(), &message(&["a@x.test"]), script).0), ["delivered Replied 2.0.0"]);
    let required = ClientOptions { tls: TlsPolicy::Required, ..smtp() };
    let (requests, _) = play(required, &message(&["a@x.test"]), "S: 220 there\nC: EHLO us.test\nS: 500 what");
    assert!(matches!(&requests[..], [ClientRequest::Failed(said)] if said.is_permanent()), "{requests:?}");
}

#[test]
fn what_is_known_when_a_connection_is_lost() {
    let sent = "C: MAIL FROM:<a@b.test> SIZE=9\nC: RCPT TO:<a@x.test>\nC: RCPT TO:<b@x.test>\nC: DATA\n";
    let text = "S: 250 ok\nS: 250 ok\nS: 550 no\nS: 354 go\nC: ..x\nC: .\n";
    let cases = [
        (format!("{OPEN}{sent}CLOSE"), ["deferred Lost 4.4.2", "deferred Lost 4.4.2"]),
        (
            format!("{OPEN}{sent}S: 250 ok\nS: 550 5.7.1 no\nCLOSE"),
            ["failed Replied 5.7.1", "deferred Lost 4.4.2"],
        ),
        // Old servers say so that there are too many recipients.
        (
            format!("{OPEN}{sent}S: 250 ok\nS: 552 full\nCLOSE"),
            ["deferred Replied 4.5.3", "deferred Lost 4.4.2"],
        ),
        (format!("{OPEN}{sent}{text}CLOSE"), ["unknown Lost 4.4.2", "failed Replied 5.0.0"]),
        (
            format!("{OPEN}{sent}{text}S: 421 4.3.2 stopping"),
            ["deferred Replied 4.3.2", "failed Replied 5.0.0"],
        ),
        (format!("{OPEN}{sent}{text}S: nonsense"), ["unknown Protocol 4.5.0", "failed Replied 5.0.0"]),
        (format!("{OPEN}{sent}S: 421 4.7.0 slow down"), ["deferred Replied 4.7.0", "deferred Replied 4.7.0"]),
    ];
    for (script, expected) in &cases {
        let (requests, session) = play(smtp(), &message(&["a@x.test", "b@x.test"]), script);
        assert_eq!(outcomes(&requests), *expected, "{script}");
        assert!(session.is_closed());
    }
    let script = format!("{OPEN}{sent}S: 550 5.7.1 no\nS: 503 x\nS: 503 x\nS: 503 x");
    let (requests, session) = play(smtp(), &message(&["a@x.test", "b@x.test"]), &script);
    assert_eq!(outcomes(&requests), ["failed Replied 5.7.1"; 2]);
    assert_eq!((requests.get(1), session.is_closed()), (Some(&ClientRequest::Ready), false));
}

#[test]
fn time_that_passes_is_counted_for_what_is_awaited() {
    let mut session = ClientSession::new(smtp(), None, NOW_MS);
    assert_eq!(session.deadline_ms(), NOW_MS + 5 * 60_000);
    session.time_passed(NOW_MS + 5 * 60_000 - 1);
    assert!(!session.is_closed());
    session.time_passed(NOW_MS + 5 * 60_000);
    assert!(
        matches!(session.next(NOW_MS), Some(ClientRequest::Failed(said)) if said.reason == Reason::TimedOut)
    );
}

#[test]
fn a_server_that_waits_for_a_text_for_nobody_gets_none() {
    let script = format!(
        "{OPEN}C: MAIL FROM:<a@b.test> SIZE=9
        C: RCPT TO:<a@x.test>
        C: DATA
        S: 250 ok
        S: 550 5.1.1 no
        S: 354 go
        C: .
        S: 554 nobody"
    );
    let (requests, _) = play(smtp(), &message(&["a@x.test"]), &script);
    assert_eq!(outcomes(&requests), ["failed Replied 5.1.1"]);
    assert_eq!(requests.get(1), Some(&ClientRequest::Ready));
    // Where nothing goes along, DATA is not sent, and RSET ends the message.
    let script = "S: 220 there
        C: EHLO us.test
        S: 250 there
        C: MAIL FROM:<a@b.test>
        S: 250 ok
        C: RCPT TO:<a@x.test>
        S: 450 later
        C: RSET
        S: 250 ok";
    let (requests, _) = play(smtp(), &message(&["a@x.test"]), script);
    assert_eq!(outcomes(&requests), ["deferred Replied 4.0.0"]);
    assert_eq!(requests.last(), Some(&ClientRequest::Ready));
}

#[test]
fn what_a_server_cannot_take_is_not_sent() {
    let utf8 = message(&["a@x.test", "ü@x.test"]);
    let script = format!(
        "{OPEN}C: MAIL FROM:<a@b.test> SIZE=9
        C: RCPT TO:<a@x.test>
        C: DATA
        S: 250 ok
        S: 250 ok
        S: 354 go
        C: ..x
        C: .
        S: 250 ok"
    );
    let (requests, _) = play(smtp(), &utf8, &script);
    assert_eq!(outcomes(&requests), ["delivered Replied 2.0.0", "failed NeedsUtf8 5.6.7"]);
    let refused = |message: Outgoing| outcomes(&play(smtp(), &message, &format!("{OPEN}WAIT")).0).remove(0);
    let one = || message(&["a@x.test"]);
    assert_eq!(refused(Outgoing { needs_utf8: true, ..one() }), "failed NeedsUtf8 5.6.7");
    assert_eq!(refused(Outgoing { requires_tls: true, ..one() }), "failed NeedsRequireTls 5.7.30");
    assert_eq!(refused(Outgoing { text_bytes: Some(1001), ..one() }), "failed TooLarge 5.3.4");
    let limits = OPEN.replace("250 DSN", "250 LIMITS RCPTMAX=1");
    let script = format!(
        "{limits}C: MAIL FROM:<> SIZE=9\nC: RCPT TO:<a@x.test>\nC: DATA\nS: 250 ok\nS: 550 no\nS: 554 no\nC: RSET\nS: 250 ok"
    );
    let bounce = Outgoing { sender: ReversePath::Null, ..message(&["a@x.test", "b@x.test"]) };
    let (requests, _) = play(smtp(), &bounce, &script);
    assert_eq!(outcomes(&requests), ["failed Replied 5.0.0", "deferred TooManyRecipients 4.5.3"]);
}

#[test]
fn a_connection_is_encrypted_before_anything_counts() {
    let script = "S: 220 there
        C: EHLO us.test
        S: 250-there
        S: 250 STARTTLS
        C: STARTTLS
        S: 220 go
        TLS
        C: EHLO us.test
        S: 250 there";
    let (requests, session) = play(
        ClientOptions { tls: TlsPolicy::Required, ..smtp() },
        &message(&["a@x.test"]),
        &format!("{script}\nC: MAIL FROM:<a@b.test>"),
    );
    assert!(requests.is_empty() && session.is_encrypted());
    let start = "S: 220 there\nC: EHLO us.test\nS: 250 STARTTLS\n";
    for (policy, script, reason) in [
        (TlsPolicy::Required, "S: 220 there\nC: EHLO us.test\nS: 250 there".to_owned(), Reason::NoTls),
        (
            TlsPolicy::Required,
            "S: 220 there\nC: EHLO us.test\nS: 250-there\nS: 250 STARTTLS\nC: STARTTLS\nS: 454 no".to_owned(),
            Reason::NoTls,
        ),
        // What was put behind the reply by somebody in between.
        (
            TlsPolicy::Opportunistic,
            "S: 220 there\nC: EHLO us.test\nS: 250-there\nS: 250 STARTTLS\nC: STARTTLS\nS: 220 go~250 x"
                .to_owned(),
            Reason::Protocol,
        ),
    ] {
        let (requests, session) =
            play(ClientOptions { tls: policy, ..smtp() }, &message(&["a@x.test"]), &script);
        assert!(
            matches!(&requests[..], [ClientRequest::Failed(said)] if said.reason == reason),
            "{start}{script}: {requests:?}"
        );
        assert!(session.is_closed());
    }
}

#[test]
fn a_relay_host_wants_a_log_in() {
    let login = ClientLogin { name: "ada".to_owned(), secret: LoginSecret::Password("secret".to_owned()) };
    let options = || ClientOptions { login: Some(login.clone()), ..smtp() };
    let start = "S: 220 there\nC: EHLO us.test\nS: 250-there\nS: 250 AUTH PLAIN LOGIN\n";
    // In the open no password is shown.
    let (requests, _) = play(options(), &message(&["a@x.test"]), start);
    assert!(
        matches!(&requests[..], [ClientRequest::Failed(said)] if said.reason == Reason::LogIn),
        "{requests:?}"
    );
    let mut session = ClientSession::new(options(), Some(ChannelBindings::default()), NOW_MS);
    session.receive(b"220 there\r\n", NOW_MS);
    session.receive(b"250-there\r\n250 AUTH LOGIN\r\n", NOW_MS);
    session.receive(b"334 VXNlcm5hbWU6\r\n", NOW_MS);
    session.receive(b"334 UGFzc3dvcmQ6\r\n", NOW_MS);
    assert_eq!(session.take_output(), b"EHLO us.test\r\nAUTH LOGIN\r\nYWRh\r\nc2VjcmV0\r\n");
    assert_eq!(session.next(NOW_MS), None);
    session.receive(b"235 in\r\n", NOW_MS);
    assert_eq!(session.next(NOW_MS), Some(ClientRequest::Ready));
}

#[test]
fn lmtp_says_what_became_of_each_recipient() {
    let script = "S: 220 there
        C: LHLO us.test
        S: 250-there
        S: 250 CHUNKING
        C: MAIL FROM:<a@b.test>
        S: 250 ok
        C: RCPT TO:<a@x.test>
        S: 250 ok
        C: RCPT TO:<b@x.test>
        S: 550 no
        C: RCPT TO:<c@x.test>
        S: 250 ok
        C: BDAT 4
        C: .x
        S: 250 ok
        C: BDAT 0 LAST
        S: 452 4.2.2 full
        S: 250 2.1.5 fine";
    let chunks = ClientOptions { prefers_chunks: true, ..ClientOptions::new(Protocol::Lmtp, "us.test") };
    // The text is handed in by the loop of the test in one go, which asks for it twice here.
    let message = message(&["a@x.test", "b@x.test", "c@x.test"]);
    let (requests, _) = play(chunks, &message, script);
    assert_eq!(
        outcomes(&requests),
        ["deferred Replied 4.2.2", "failed Replied 5.0.0", "delivered Replied 2.1.5"]
    );
}

//! What hostile clients send.

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_smtp::Service;

use crate::world::{NOW_MS, Port, codes, options};

fn data() -> Port {
    let mut port = Port::new(options(Service::Relay));
    assert_eq!(
        port.codes("EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<ada@mx.test>\r\nDATA\r\n"),
        [250, 250, 250, 354]
    );
    port
}

#[test]
fn no_string_but_one_ends_a_text() {
    // A second message behind what another server may take for the end of the first (mail that is smuggled).
    let smuggled = "MAIL FROM:<admin@mx.test>\r\nRCPT TO:<bob@mx.test>\r\nDATA\r\nforged\r\n.\r\n";
    for end in [
        "\n.\n",
        "\n.\r\n",
        "\r\n.\n",
        "\r.\r",
        "\r\n.\r",
        "\r\n.\r\r\n",
        "\r.\r\n",
        "\r\n\0.\r\n",
        "\n\n.\r\n",
        "\r\r\n.\r\r\n",
        "\n.\r",
        "\r\n.\0\r\n",
        // An end, and not to a server that reads CR CR LF otherwise.
        "\r\r\n.\r\n",
    ] {
        for piece in [1, 2, 3, 999] {
            let mut port = data();
            let replies = port.give(format!("a: b\r\n\r\nhi{end}{smuggled}").as_bytes(), piece);
            // One text, that ends behind what was smuggled, and is refused if it has a bare CR or LF; then nothing more is heard.
            assert!(port.world.stored.len() <= 1);
            assert!(port.world.stored.iter().all(|stored| stored.text.contains("forged")));
            let is_bare = end.replace("\r\n", "").contains(['\r', '\n']);
            let expected = if is_bare { vec![550, 421] } else { vec![250] };
            assert_eq!(codes(&replies), expected, "{end:?}: {replies}");
            assert_eq!(replies.starts_with("550 5.6.11 "), is_bare, "{end:?}: {replies}");
        }
    }
}

#[test]
fn bare_line_ends_separate_no_commands() {
    for line in
        ["RSET\nQUIT\r\n", "RSET\rQUIT\r\n", "NOOP\r\rNOOP\r\n", "MAIL FROM:<a@b>\nRCPT TO:<ada@mx.test>\r\n"]
    {
        for piece in [1, 4, 99] {
            let mut port = Port::new(options(Service::Relay));
            port.codes("EHLO x\r\n");
            assert_eq!(
                codes(&port.give(format!("{line}NOOP\r\n").as_bytes(), piece)),
                [500, 250],
                "{line:?}"
            );
        }
    }
}

#[test]
fn nothing_said_in_the_open_counts_behind_starttls() {
    let mut port = Port::new(options(Service::Relay));
    assert_eq!(
        port.codes("EHLO x\r\nSTARTTLS\r\nMAIL FROM:<a@b.test>\r\nRCPT TO:<ada@mx.test>\r\n"),
        [250, 554]
    );
    assert!(
        port.session.is_closed() && !port.world.asked.iter().any(|asked| asked == "tls" || asked == "sender")
    );
    // Behind the reply, before the handshake.
    let mut port = Port::new(options(Service::Relay));
    port.codes("EHLO x\r\n");
    port.session.receive(b"STARTTLS\r\n", NOW_MS);
    assert!(matches!(port.session.next(NOW_MS), Some(scrinium_smtp::Request::StartTls)));
    port.session.receive(b"RSET\r\n", NOW_MS);
    port.turn(NOW_MS);
    assert!(port.session.is_closed());
    // The greeting, the sender and the recipients are forgotten.
    let mut port = Port::new(options(Service::Relay));
    assert_eq!(port.codes("EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<ada@mx.test>\r\n"), [250, 250, 250]);
    assert_eq!(port.codes("STARTTLS\r\n"), [220]);
    assert_eq!(port.codes("RCPT TO:<ada@mx.test>\r\nMAIL FROM:<>\r\n"), [503, 503]);
    assert_eq!(port.codes("EHLO x\r\nSTARTTLS\r\nDATA\r\n"), [250, 503, 503]);
}

#[test]
fn a_text_behind_a_refused_data_is_not_read_as_commands() {
    let mut port = Port::new(options(Service::Relay));
    let text = "MAIL FROM:<eve@out.test>\r\nRCPT TO:<nobody@mx.test>\r\nDATA\r\nRCPT TO:<ada@mx.test>\r\nDATA\r\nx\r\n.\r\n";
    assert_eq!(port.codes(&format!("EHLO x\r\n{text}")), [250, 250, 550, 554, 421]);
    assert!(port.session.is_closed() && port.world.stored.is_empty());
}

#[test]
fn every_limit_holds() {
    let mut small = options(Service::Relay);
    small.limits.recipients = 3;
    small.limits.message_bytes = 1000;
    small.limits.messages = 2;
    let envelope = "MAIL FROM:<>\r\nRCPT TO:<ada@mx.test>\r\n";
    let mut port = Port::new(small.clone());
    let many = "RCPT TO:<ada@mx.test>\r\n".repeat(4);
    assert_eq!(
        port.codes(&format!("EHLO x\r\nMAIL FROM:<>\r\n{many}DATA\r\n")),
        [250, 250, 250, 250, 250, 452, 354]
    );
    assert_eq!(codes(&port.give(format!("{}\r\n.\r\n", "x".repeat(1001)).as_bytes(), 100)), [552]);
    assert_eq!(
        port.codes(&format!("{envelope}BDAT 999\r\n{}BDAT 2 LAST\r\nxx", "x".repeat(999))),
        [250, 250, 250, 552]
    );
    assert_eq!(port.codes(&format!("{envelope}BDAT 4000\r\n")), [250, 250, 552, 421]);
    // A text without end.
    let mut port = Port::new(small.clone());
    port.codes(&format!("EHLO x\r\n{envelope}DATA\r\n"));
    let endless = "x\r\n".repeat(1000);
    let mut replies = String::new();
    for _ in 0..1000 {
        replies.push_str(&port.give(endless.as_bytes(), 9999));
    }
    assert_eq!((codes(&replies), port.session.is_closed()), (vec![552, 421], true));
    // Messages.
    let mut port = Port::new(small);
    port.codes("EHLO x\r\n");
    for _ in 0..2 {
        assert_eq!(port.codes(&format!("{envelope}BDAT 0 LAST\r\n")), [250, 250, 250]);
    }
    assert_eq!(port.codes(envelope), [421]);
    // Errors, unknown recipients, commands without a message, log-ins, long lines.
    let closes = |input: &str| {
        let mut port = Port::new(options(Service::Relay));
        let said = port.codes(&format!("EHLO x\r\nMAIL FROM:<>\r\n{}", input.repeat(1000)));
        assert_eq!(said.last(), Some(&421), "{input}");
        said.len()
    };
    assert_eq!(closes("FOO\r\n"), 23);
    assert_eq!(closes("RCPT TO:<nobody@mx.test>\r\n"), 103);
    assert_eq!(closes("NOOP\r\n"), 102);
    assert_eq!(closes("BDAT 0\r\n"), 23);
    assert_eq!(closes(&format!("{}\r\n", "x".repeat(5000))), 23);
    assert_eq!(closes("GET / HTTP/1.1\r\n"), 3);
    // The envelope.
    let mut port = Port::new(options(Service::Relay));
    let long = format!("RCPT TO:<ada@mx.test> ORCPT=rfc822;{}\r\n", "x".repeat(3000));
    let said = port.codes(&format!("EHLO x\r\nMAIL FROM:<>\r\n{}", long.repeat(900)));
    assert_eq!((said.iter().filter(|code| **code == 250).count(), said.last()), (347, Some(&452)));
    assert!(port.held_max < 1_200_000);
}

#[test]
fn a_message_that_goes_in_a_circle_is_refused() {
    for (hops, code) in [(100, 250), (101, 554)] {
        let mut port = data();
        let head = "Received: from a by b\r\n\tfor c; today\r\n".repeat(hops);
        assert_eq!(codes(&port.give(format!("{head}\r\n.\r\n").as_bytes(), 77)), [code]);
    }
}

/// Groups of input, each of which a client sends when all of the one before is answered.
fn groups() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let text = vec(
        prop::sample::select(vec![
            "a: b",
            "\r\n",
            "\r\n.",
            "..",
            ".",
            "\r",
            "\n",
            "\r\n\r\n",
            "é",
            "Received: x\r\n",
            "From: y\r\n",
            "\0",
            "Message-ID: <1>\r\n",
        ]),
        0..12,
    )
    .prop_map(|pieces| pieces.concat());
    let line = prop::sample::select(vec![
        "EHLO x\r\n",
        "HELO x\r\n",
        "LHLO x\r\n",
        "RSET\r\n",
        "NOOP\r\n",
        "MAIL FROM:<a@b.test>\r\n",
        "MAIL FROM:<>\r\n",
        "RCPT TO:<ada@mx.test>\r\n",
        "RCPT TO:<nobody@mx.test>\r\n",
        "RCPT TO:<quota@mx.test>\r\n",
        "VRFY x\r\n",
        "FOO\r\n",
        "RSET\nQUIT\r\n",
        "BDAT x\r\n",
        "\r\n",
        "AUTH PLAIN AGFkYQBzZWNyZXQ=\r\n",
        "AUTH PLAIN\r\n",
        "*\r\n",
        "AUTH LOGIN =\r\n",
    ]);
    let group = prop_oneof![
        4 => vec(line, 1..6).prop_map(|lines| vec![lines.concat().into_bytes()]),
        2 => text.clone().prop_map(|text| vec![b"DATA\r\n".to_vec(), format!("{text}\r\n.\r\n").into_bytes()]),
        2 => (text, any::<bool>()).prop_map(|(text, is_last)| {
            vec![format!("BDAT {}{}\r\n{text}", text.len(), if is_last { " LAST" } else { "" }).into_bytes()]
        }),
        2 => Just(vec![b"MAIL FROM:<c@d.test>\r\nRCPT TO:<ada@mx.test>\r\nRCPT TO:<bob@mx.test>\r\n".to_vec()]),
        1 => vec(any::<u8>(), 0..40).prop_map(|bytes| vec![bytes]),
    ];
    vec(group, 0..10).prop_map(|groups| groups.concat())
}

fn dialogue(service: Service, groups: &[Vec<u8>], piece: usize) -> Port {
    let mut options = options(service);
    options.requires_tls = false;
    options.limits.piece_bytes = 16;
    options.limits.hops = 3;
    let encryption = (service == Service::Submission).then(crate::world::encryption);
    let mut port = Port::with(options, encryption);
    let greeting = if service == Service::Lmtp { "LHLO x\r\n" } else { "EHLO x\r\n" };
    port.give(greeting.as_bytes(), piece);
    for group in groups {
        let is_data = group == b"DATA\r\n";
        let said = port.give(group, piece);
        assert!(port.held_max <= 32 * 1024 + 17 * 1024 + 4096, "{} bytes", port.held_max);
        // A client that is not asked for a text does not send it.
        if is_data && !said.ends_with("354 Send the message, and end it with a line of one dot\r\n") {
            break;
        }
    }
    port
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn input_in_other_pieces_means_the_same(
        groups in groups(),
        piece in 1_usize..40,
        service in prop::sample::select(vec![Service::Relay, Service::Submission, Service::Lmtp]),
    ) {
        let whole = dialogue(service, &groups, usize::MAX);
        let pieces = dialogue(service, &groups, piece);
        prop_assert_eq!(&whole.sent, &pieces.sent);
        prop_assert_eq!(&whole.world.stored, &pieces.world.stored);
        prop_assert_eq!(whole.world.open.is_some(), pieces.world.open.is_some());
        prop_assert_eq!(whole.session.is_closed(), pieces.session.is_closed());
    }
}

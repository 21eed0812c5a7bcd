//! Dialogues of clients with the server, as these programs are known to speak.

use scrinium_smtp::{Refusal, ServerOptions, Service};
use scrinium_smtp_wire::BareEnds;

use crate::world::{NOW_MS, Port, encryption, options};

const HELLO: &str = "EHLO out.test\r\n";

fn relay() -> Port {
    let mut port = Port::new(options(Service::Relay));
    assert_eq!(port.sent, "220 mx.test ESMTP\r\n");
    assert_eq!(port.codes(HELLO), [250]);
    port
}

#[test]
fn a_server_pipelines_an_envelope() {
    // As Postfix speaks.
    let mut port = relay();
    let group = "MAIL FROM:<eve@out.test> SIZE=400 BODY=8BITMIME\r\nRCPT TO:<ada@mx.test> ORCPT=rfc822;ada@mx.test\r\n\
                 RCPT TO:<nobody@mx.test>\r\nRCPT TO:<Bob@mx.test> NOTIFY=SUCCESS,DELAY\r\nDATA\r\n";
    let before = port.writes;
    let replies = port.give(group.as_bytes(), usize::MAX);
    assert_eq!(
        replies,
        "250 2.1.0 The sender is fine\r\n250 2.1.5 The recipient is fine\r\n\
         550 5.1.1 There is no such recipient here; check the address\r\n250 2.1.5 The recipient is fine\r\n\
         354 Send the message, and end it with a line of one dot\r\n"
    );
    // Replies to what came together go together: those before the text may wait for one more write.
    assert!(port.writes - before <= 2, "{} writes", port.writes - before);
    let end = port.give(b"From: eve\r\nMessage-ID: <1@out>\r\n\r\n..dot\r\n.\r\nQUIT\r\n", usize::MAX);
    assert_eq!(end, "250 2.0.0 The message is safe here as m0\r\n221 2.0.0 mx.test says goodbye\r\n");
    assert!(port.session.is_closed());
    let stored = &port.world.stored[0];
    assert_eq!(stored.own_text(), "From: eve\r\nMessage-ID: <1@out>\r\n\r\n.dot\r\n");
    assert_eq!(stored.recipients(), ["<ada@mx.test>", "<Bob@mx.test>"]);
    assert_eq!(
        &stored.text[..stored.text.len() - stored.own_text().len()],
        "Received: from out.test\r\n\t(out.test [192.0.2.7])\r\n\tby mx.test with ESMTP id m0;\r\n\t\
         Thu, 26 Nov 2026 09:20:51 +0000\r\n"
    );
    assert_eq!(stored.summary.repeat_ids.len(), 2);
}

#[test]
fn what_is_offered() {
    let mut port = Port::new(options(Service::Relay));
    let offers = port.give(HELLO.as_bytes(), usize::MAX);
    assert_eq!(
        offers,
        "250-mx.test at your service\r\n250-PIPELINING\r\n250-SIZE 52428800\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n\
         250-CHUNKING\r\n250-DSN\r\n250-ENHANCEDSTATUSCODES\r\n250-STARTTLS\r\n250 LIMITS MAILMAX=1000 RCPTMAX=1000\r\n"
    );
    let mut submission = options(Service::Submission);
    submission.future_release_s = Some(86_400);
    let offers = Port::with(submission, Some(encryption())).give(HELLO.as_bytes(), 3);
    for line in [
        "250-AUTH SCRAM-SHA-256-PLUS SCRAM-SHA-256 OAUTHBEARER XOAUTH2 PLAIN LOGIN\r\n",
        "250-REQUIRETLS\r\n",
        "250-FUTURERELEASE 86400 2026-11-27T09:20:51Z\r\n",
    ] {
        assert!(offers.contains(line), "{offers}");
    }
    assert!(!offers.contains("STARTTLS"));
    assert_eq!(Port::new(options(Service::Relay)).give(b"HELO x\r\n", 9), "250 mx.test at your service\r\n");
}

#[test]
fn a_text_comes_in_chunks() {
    // As Exchange and Gmail speak.
    let mut port = relay();
    let all = "MAIL FROM:<eve@out.test>\r\nRCPT TO:<ada@mx.test>\r\nBDAT 12\r\nFrom: eve\r\n\rBDAT 3\r\n\nhiBDAT 2 LAST\r\n\r\nQUIT\r\n";
    for piece in [1, 2, 5, 1000] {
        let mut port = relay();
        assert_eq!(crate::world::codes(&port.give(all.as_bytes(), piece)), [250, 250, 250, 250, 250, 221]);
        assert_eq!(port.world.stored[0].own_text(), "From: eve\r\n\r\nhi\r\n");
    }
    // Without a message a chunk is read and refused.
    assert_eq!(port.codes("BDAT 6\r\nQUIT\r\nNOOP\r\n"), [503, 250]);
    assert_eq!(port.codes("MAIL FROM:<>\r\nBDAT 6 LAST\r\nQUIT\r\nNOOP\r\nRSET\r\n"), [250, 554, 250, 250]);
}

#[test]
fn people_hand_messages_in() {
    // As Outlook speaks: a space behind the colon, and LOGIN.
    let mut port = Port::with(options(Service::Submission), None);
    assert_eq!(port.codes("EHLO [192.168.1.4]\r\nMAIL FROM: <ada@mx.test>\r\n"), [250, 530]);
    assert_eq!(port.codes("AUTH LOGIN\r\n"), [538]);
    assert_eq!(port.codes("STARTTLS\r\n"), [220]);
    assert_eq!(port.codes("MAIL FROM:<ada@mx.test>\r\n"), [503]);
    assert_eq!(port.codes("EHLO desk\r\nAUTH LOGIN\r\n"), [250, 334]);
    assert_eq!(port.give(b"YWRh\r\n", 1), "334 UGFzc3dvcmQ6\r\n");
    assert_eq!(port.codes("c2VjcmV0\r\n"), [235]);
    assert_eq!(port.codes("AUTH LOGIN\r\n"), [503]);
    let text = "From: ada@mx.test\r\nBcc: eve@out.test\r\n\r\nhi\r\n.\r\n";
    assert_eq!(port.codes("MAIL FROM: <ada@mx.test>\r\nRCPT TO: <bob@mx.test>\r\nDATA\r\n"), [250, 250, 354]);
    assert_eq!(port.codes(text), [250]);
    let stored = &port.world.stored[0];
    assert_eq!(
        stored.text,
        "Received: from unknown\r\n\tby mx.test with ESMTPSA tls TLS_AES_128_GCM_SHA256 id m0\r\n\tfor <bob@mx.test>;\r\n\t\
         Thu, 26 Nov 2026 09:20:51 +0000\r\nFrom: ada@mx.test\r\nDate: Thu, 26 Nov 2026 09:20:51 +0000\r\n\
         Message-ID: <m0@mx.test>\r\n\r\nhi\r\n"
    );
    assert_eq!(stored.envelope.person.as_deref(), Some("person:ada"));
    // A program that gives no Message-ID may send the same twice and mean it.
    assert!(stored.summary.repeat_ids.is_empty());
    assert_eq!(port.codes("MAIL FROM:<ada@mx.test>\r\nRCPT TO:<bob@mx.test>\r\nDATA\r\n"), [250, 250, 354]);
    assert_eq!(port.codes("From: a\r\nFrom: b\r\n\r\n.\r\n"), [550]);
    assert_eq!((port.world.stored.len(), port.world.open.is_none()), (1, true));
}

#[test]
fn lmtp_answers_for_each_recipient() {
    let mut port = Port::new(options(Service::Lmtp));
    assert_eq!(port.codes("EHLO a\r\nLHLO front.test\r\nDATA\r\n"), [500, 250, 503]);
    let envelope = "MAIL FROM:<>\r\nRCPT TO:<ada@a.test>\r\nRCPT TO:<quota@a.test>\r\nRCPT TO:<nobody@a.test>\r\nRCPT TO:<bob@a.test>\r\n";
    assert_eq!(port.codes(&format!("{envelope}DATA\r\n")), [250, 250, 250, 550, 250, 354]);
    assert_eq!(port.codes("x: y\r\n\r\n.\r\n"), [250, 452, 250]);
    assert!(port.world.stored[0].text.contains(" with LMTP id "));
    // A text that is refused is refused for all.
    assert_eq!(port.codes(&format!("{envelope}DATA\r\n")), [250, 250, 250, 550, 250, 354]);
    assert_eq!(port.codes(&format!("{}\r\n.\r\n", "x".repeat(70_000))), [550, 550, 550]);
    assert_eq!(
        port.codes(&format!("{envelope}BDAT 4 LAST\r\na\nb\n")),
        [250, 250, 250, 550, 250, 550, 550, 550]
    );
    assert_eq!(port.codes("DATA\r\n"), [503]);
    // Where a text ends is not clear to all: then nothing that follows is heard.
    assert_eq!(port.codes(&format!("{envelope}DATA\r\n")), [250, 250, 250, 550, 250, 354]);
    assert_eq!(port.codes("bare\nend\r\n.\r\nNOOP\r\n"), [550, 550, 550, 421]);
}

#[test]
fn recipients_are_answered_as_they_are() {
    let mut port = relay();
    let say =
        |port: &mut Port, local: &str| port.give(format!("RCPT TO:<{local}@mx.test>\r\n").as_bytes(), 99);
    assert_eq!(port.codes("MAIL FROM:<>\r\n"), [250]);
    for (local, start) in [
        ("ada", "250 2.1.5 "),
        ("nobody", "550 5.1.1 "),
        ("full", "452 4.2.2 "),
        ("small", "552 5.2.3 "),
        ("far", "550 5.7.1 "),
        ("forward", "251 2.1.6 The message will go on to <ada@there.test>"),
        ("moved", "551 5.1.6 The recipient has moved; send it to <ada@there.test>"),
        ("later", "451 4.7.1 "),
        ("zoë", "553 5.6.7 "),
    ] {
        let said = say(&mut port, local);
        assert!(said.starts_with(start), "{local}: {said}");
    }
    assert_eq!(port.codes("RCPT TO:<Postmaster>\r\n"), [250]);
    assert_eq!(port.codes("DATA\r\n"), [354]);
    assert_eq!(port.codes("\r\n.\r\n"), [250]);
    assert_eq!(port.world.stored[0].recipients(), ["<ada@mx.test>", "<forward@mx.test>", "<Postmaster>"]);
}

#[test]
fn nothing_is_left_of_what_was_refused() {
    let envelope = "MAIL FROM:<eve@out.test>\r\nRCPT TO:<ada@mx.test>\r\n";
    let again = "RCPT TO:<ada@mx.test>\r\n";
    let trouble = || Refusal::new(451, 3, 0, "Trouble");
    // What goes wrong, what is said, and whether the message may have been seen.
    let cases: [(&str, Option<&'static str>, &[u16]); 9] = [
        ("BDAT 3 LAST\r\na\nb", None, &[550]),
        ("BDAT 1500\r\n", None, &[552]),
        ("BDAT 3\r\nabc", Some("begin"), &[451]),
        ("BDAT 3 LAST\r\nabc", Some("text"), &[451]),
        ("BDAT 3 LAST\r\nabc", Some("finish"), &[451]),
        ("DATA\r\n", Some("begin"), &[451]),
        ("BDAT 3\r\nabcRSET\r\n", None, &[250, 250]),
        ("BDAT 3\r\nabcEHLO out.test\r\n", None, &[250, 250]),
        ("RSET\r\n", None, &[250]),
    ];
    for (what, instead, codes) in cases {
        let mut small = options(Service::Relay);
        small.limits.message_bytes = 1000;
        let mut port = Port::new(small);
        port.codes(HELLO);
        assert_eq!(port.codes(envelope), [250, 250]);
        port.world.instead.extend(instead.map(|word| (word, trouble())));
        let rest = if what.contains("1500") { "x".repeat(1500) } else { String::new() };
        assert_eq!(port.codes(&format!("{what}{rest}")), codes, "{what}");
        // Neither sender nor recipients are there any more.
        assert_eq!(port.codes(&format!("{again}BDAT 1\r\nxDATA\r\n")), [503, 503, 503]);
        assert_eq!(port.codes(&format!("{envelope}DATA\r\n")), [250, 250, 354]);
        assert_eq!(port.codes("a: b\r\n\r\n.\r\n"), [250]);
        assert!(port.world.open.is_none(), "{what:?}");
        assert_eq!(port.world.stored.last().map(|stored| stored.own_text()), Some("a: b\r\n\r\n"));
        assert_eq!(port.world.stored.last().map(|stored| stored.recipients().len()), Some(1));
    }
    for (what, word) in [("DATA\r\nx: y\r\n\r\n.\r\n", "finish"), ("DATA\r\nx: y\r\n\r\n.\r\n", "text")] {
        let mut port = relay();
        port.world.instead.push((word, trouble()));
        assert_eq!(port.codes(&format!("{envelope}{what}")), [250, 250, 354, 451]);
        assert_eq!(port.codes(again), [503]);
        assert!(port.world.stored.is_empty() && port.world.asked.last().is_some());
    }
    let mut port = relay();
    port.world.instead.push(("sender", Refusal::new(550, 7, 1, "No")));
    assert_eq!(port.codes(&format!("MAIL FROM:<x@y>\r\n{again}")), [550, 503]);
    // A second sender is refused, and the first stays.
    assert_eq!(
        port.codes("MAIL FROM:<a@b.test>\r\nMAIL FROM:<c@d.test>\r\nRCPT TO:<ada@mx.test>\r\nDATA\r\n"),
        [250, 503, 250, 354]
    );
    assert_eq!(port.codes("\r\n.\r\n"), [250]);
    assert_eq!(port.world.stored[0].envelope.sender.to_string(), "<a@b.test>");
}

#[test]
fn parameters_that_are_not_offered_are_refused() {
    let mut port = relay();
    for (parameters, code) in [
        ("SIZE=52428801", 552),
        ("BODY=BINARYMIME", 504),
        ("MT-PRIORITY=3", 555),
        ("HOLDFOR=60", 555),
        ("REQUIRETLS", 555),
        ("XNEW=1", 555),
        ("SIZE=1 SIZE=2", 501),
    ] {
        assert_eq!(port.codes(&format!("MAIL FROM:<a@b.test> {parameters}\r\n")), [code], "{parameters}");
    }
    assert_eq!(
        port.codes("MAIL FROM:<zoë@b.test>\r\nMAIL FROM:<zoë@b.test> SMTPUTF8 BODY=8BITMIME\r\n"),
        [553, 250]
    );
    assert_eq!(
        port.codes("RCPT TO:<ада@mx.test> XNEW=1\r\nRCPT TO:<ада@mx.test>\r\nDATA\r\n"),
        [555, 250, 354]
    );
    assert_eq!(port.codes("Subject: é\r\n\r\n.\r\n"), [250]);
    let stored = &port.world.stored[0];
    assert!(stored.text.contains(" with UTF8SMTP id m0\r\n\tfor <ада@mx.test>;"), "{}", stored.text);
    assert!(stored.summary.has_eight_bit);
}

#[test]
fn a_message_waits_until_its_time() {
    let mut submission = options(Service::Submission);
    submission.future_release_s = Some(3600);
    let mut port = Port::with(submission, Some(encryption()));
    assert_eq!(port.codes("EHLO a\r\nAUTH PLAIN AGFkYQBzZWNyZXQ=\r\n"), [250, 235]);
    for (hold, code) in
        [("HOLDFOR=3601", 501), ("HOLDUNTIL=2026-11-26T10:20:52Z", 501), ("HOLDUNTIL=soon", 501)]
    {
        assert_eq!(port.codes(&format!("MAIL FROM:<a@b.test> {hold}\r\n")), [code], "{hold}");
    }
    let all = "MAIL FROM:<a@b.test> HOLDUNTIL=2026-11-26T11:20:51+01:00\r\nRCPT TO:<b@c.test>\r\nDATA\r\n";
    assert_eq!(port.codes(all), [250, 250, 354]);
    assert_eq!(port.codes("From: a\r\n\r\n.\r\n"), [250]);
    assert_eq!(port.world.stored[0].envelope.release_ms, Some(NOW_MS + 3_600_000));
}

#[test]
fn small_commands_answer_as_they_should() {
    let mut port = relay();
    let all = "NOOP\r\nNOOP hi\r\nVRFY ada\r\nEXPN list\r\nHELP\r\nHELP MAIL\r\nETRN x\r\nTURN\r\nAUTH PLAIN\r\nRSET\r\nEHLO x\r\n";
    assert_eq!(port.codes(all), [250, 250, 252, 502, 214, 214, 502, 500, 502, 250, 250]);
    assert_eq!(
        Port::new(options(Service::Relay)).codes("MAIL FROM:<>\r\nRCPT TO:<a@b>\r\nDATA\r\n"),
        [503, 503, 503]
    );
}

#[test]
fn bare_line_ends_are_made_whole_where_the_port_says_so() {
    let mut options: ServerOptions = options(Service::Relay);
    options.bare_ends = BareEnds::Normalise;
    for groups in [["DATA\r\n", "a: b\n\nc\rd\r\n.\r\n"], ["BDAT 4\r\na: b", "BDAT 6 LAST\r\n\n\nc\rd\r"]] {
        for piece in [1, 3, 99] {
            let mut port = Port::new(options.clone());
            port.codes(HELLO);
            port.codes("MAIL FROM:<>\r\nRCPT TO:<ada@mx.test>\r\n");
            for group in groups {
                port.give(group.as_bytes(), piece);
            }
            assert_eq!(port.world.stored[0].own_text(), "a: b\r\n\r\nc\r\nd\r\n", "{groups:?}");
        }
    }
}

#[test]
fn a_repeat_is_recognised() {
    let ids = |envelope: &str, text: &str, by_chunks: bool| {
        let mut port = relay();
        port.codes(envelope);
        if by_chunks {
            port.codes(&format!("BDAT {} LAST\r\n{text}", text.len()));
        } else {
            port.codes("DATA\r\n");
            port.codes(&format!("{text}.\r\n"));
        }
        port.world.stored.remove(0).summary.repeat_ids
    };
    let both = "MAIL FROM:<a@B.test>\r\nRCPT TO:<ada@mx.test>\r\nRCPT TO:<bob@mx.test>\r\n";
    let text = "Message-ID: <1>\r\n\r\nhi\r\n";
    let first = ids(both, text, false);
    assert_eq!(first, ids(both, text, true));
    // Only the one whose answer was lost.
    let one = "MAIL FROM:<a@b.test>\r\nRCPT TO:<bob@MX.test>\r\n";
    assert_eq!(ids(one, text, false), [first[1]]);
    assert_ne!(ids(one, "Message-ID: <1>\r\n\r\nho\r\n", false), [first[1]]);
    assert_ne!(ids("MAIL FROM:<c@b.test>\r\nRCPT TO:<bob@MX.test>\r\n", text, false), [first[1]]);
    assert!(ids(one, "Subject: alarm\r\n\r\n", false).is_empty());
}

#[test]
fn a_server_that_stops_says_so_at_any_point() {
    let steps: [&[&str]; 5] = [
        &[],
        &["EHLO x\r\n"],
        &["EHLO x\r\n", "MAIL FROM:<>\r\nRCPT TO:<ada@mx.test>\r\n"],
        &["EHLO x\r\n", "MAIL FROM:<>\r\nRCPT TO:<ada@mx.test>\r\nDATA\r\n", "a: b\r\n\r\nhalf"],
        &["EHLO x\r\n", "MAIL FROM:<>\r\nRCPT TO:<ada@mx.test>\r\nBDAT 9\r\na: b"],
    ];
    for steps in steps {
        for timeout in [false, true] {
            let mut port = Port::new(options(Service::Relay));
            for step in steps {
                port.give(step.as_bytes(), 99);
            }
            if timeout {
                let deadline_ms = port.session.deadline_ms();
                port.session.time_passed(deadline_ms - 1);
                assert!(!port.session.is_closed());
                port.session.time_passed(deadline_ms);
            } else {
                port.session.shut_down(NOW_MS);
            }
            port.turn(NOW_MS);
            assert!(
                port.sent.ends_with("\r\n") && crate::world::codes(&port.sent).last() == Some(&421),
                "{}",
                port.sent
            );
            assert!(port.session.is_closed() && port.world.open.is_none() && port.world.stored.is_empty());
        }
    }
}

#[test]
fn a_connection_that_is_lost_leaves_no_half_message() {
    let mut port = relay();
    port.codes("MAIL FROM:<>\r\nRCPT TO:<ada@mx.test>\r\nDATA\r\n");
    port.codes("a: b\r\n\r\nhalf");
    assert!(port.world.open.is_some());
    port.session.disconnected();
    port.turn(NOW_MS);
    assert!(port.world.open.is_none() && port.world.stored.is_empty());
}

#[test]
fn slow_senders_have_no_time_without_end() {
    // One byte after the other does not move the deadline of a command.
    let mut port = relay();
    let deadline_ms = port.session.deadline_ms();
    for second in 0..200 {
        port.session.receive(b"N", NOW_MS + second * 1000);
        port.turn(NOW_MS + second * 1000);
    }
    assert_eq!(port.session.deadline_ms(), deadline_ms);
    // A text must go on, and reach its end in a time that its length gives.
    let mut port = relay();
    port.codes("MAIL FROM:<>\r\nRCPT TO:<ada@mx.test>\r\nDATA\r\n");
    let mut now_ms = NOW_MS;
    while now_ms < port.session.deadline_ms() {
        port.session.receive(b"x", now_ms);
        port.turn(now_ms);
        now_ms += 60_000;
    }
    assert!(now_ms - NOW_MS <= 12 * 60_000, "{} ms", now_ms - NOW_MS);
}

//! A filter that follows milter's protocol, and filters that do not.

use proptest::prelude::*;
use scrinium_mail_filters::milter::{
    Change, Client, MilterError, MilterLimits, MilterSession, PacketReader, Sending, Told, Verdict,
};

fn packet(kind: u8, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len() + 1).unwrap().to_be_bytes();
    [&length[..], &[kind], data].concat()
}

/// A session with a filter that wants what `wishes` do not refuse and may do what `actions` say.
fn session(actions: u32, wishes: u32) -> MilterSession {
    let (mut session, opening) = MilterSession::new(MilterLimits::default());
    assert_eq!(opening, packet(b'O', &[0, 0, 0, 6, 0, 0, 0, 0xff, 0, 0x1d, 0xf6, 0xff]));
    let answer = [6_u32, actions, wishes].map(u32::to_be_bytes).concat();
    assert_eq!(session.take(&packet(b'O', &answer)), Ok(Some(Verdict::Continue)));
    session
}

const CLIENT: Client<'static> = Client { name: "mx.example.com", address: None, port: 0 };

fn events() -> [Told<'static>; 9] {
    [
        Told::Connect(CLIENT),
        Told::Helo(b"mx.example.com"),
        Told::Sender(b"<a@example.com>", &[b"SIZE=10"]),
        Told::Recipient(b"<b@example.org>", &[]),
        Told::Data,
        Told::Field(b"Subject", b" one\r\n two"),
        Told::EndOfFields,
        Told::Body(b"Hello\r\n"),
        Told::End,
    ]
}

/// Tells events until one with this number, the filter going on after each.
fn until(session: &mut MilterSession, number: usize) {
    for told in events().iter().take(number) {
        if session.tell(told, &[]).unwrap().is_answered {
            assert_eq!(session.take(&packet(b'c', b"")), Ok(Some(Verdict::Continue)));
        }
    }
}

#[test]
fn each_thing_is_told_as_the_protocol_says() {
    let mut session = session(0, 0);
    let address = Some("192.0.2.1".parse().unwrap());
    let expected: [(Told<'_>, &[u8]); 9] = [
        (
            Told::Connect(Client { address, port: 0x1234, ..CLIENT }),
            b"Cmx.example.com\x004\x12\x34192.0.2.1\0",
        ),
        (Told::Helo(b"mx"), b"Hmx\0"),
        (Told::Sender(b"<a@x>", &[b"SIZE=1"]), b"M<a@x>\0SIZE=1\0"),
        (Told::Recipient(b"<b@y>", &[]), b"R<b@y>\0"),
        (Told::Data, b"T"),
        (Told::Field(b"Subject", b" one\r\n two"), b"LSubject\0one\n two\0"),
        (Told::EndOfFields, b"N"),
        (Told::Body(b"a\r\nb"), b"Ba\r\nb"),
        (Told::End, b"E"),
    ];
    for (told, bytes) in expected {
        let sent = session.tell(&told, &[("i", "42"), ("{x}", "a\0b")]).unwrap();
        let macros = packet(b'D', &[&bytes[..1], b"i\x0042\0{x}\0ab\0"].concat());
        assert_eq!(
            sent,
            Sending { bytes: [macros, packet(bytes[0], &bytes[1..])].concat(), is_answered: true }
        );
        assert_eq!(session.tell(&told, &[]), Err(MilterError::Order), "an answer is waited for");
        // Answers come in pieces, and a filter may say that it is still at work.
        assert_eq!(session.take(&packet(b'p', b"")), Ok(None));
        let answer = packet(b'c', b"");
        assert_eq!(session.take(&answer[..3]), Ok(None));
        assert_eq!(session.take(&answer[3..]), Ok(Some(Verdict::Continue)));
    }
    assert_eq!(session.quit(), packet(b'Q', b""));
}

#[test]
fn what_a_filter_does_not_want_is_not_told() {
    // NO_CONNECT, NO_HELO, NO_BODY, SILENT_FIELD.
    let mut session = session(0, 0x01 | 0x02 | 0x10 | 0x80);
    let sent: Vec<(bool, bool)> = events()
        .iter()
        .map(|told| {
            let sent = session.tell(told, &[]).unwrap();
            if sent.is_answered {
                session.take(&packet(b'c', b"")).unwrap();
            }
            (sent.bytes.is_empty(), sent.is_answered)
        })
        .collect();
    let (told, silent, left_out) = ((false, true), (false, false), (true, false));
    assert_eq!(sent, [left_out, left_out, told, told, told, silent, told, left_out, told]);
}

#[test]
fn verdicts_end_what_they_are_about() {
    let verdict = |number: usize, answer: &[u8]| {
        let mut session = session(0, 0);
        until(&mut session, number);
        assert!(session.tell(&events()[number], &[]).unwrap().is_answered);
        let verdict = session.take(answer).unwrap().unwrap();
        let next = session.tell(events().get(number + 1).unwrap_or(&Told::Sender(b"<>", &[])), &[]).unwrap();
        (verdict, next.bytes.is_empty())
    };
    assert_eq!(verdict(0, &packet(b'a', b"")), (Verdict::Accept, true), "the whole connection");
    assert_eq!(verdict(1, &packet(b'r', b"")), (Verdict::Reject, true));
    assert_eq!(verdict(2, &packet(b'd', b"")), (Verdict::Discard, true), "the message");
    assert_eq!(verdict(3, &packet(b'r', b"")), (Verdict::Reject, false), "one recipient");
    assert_eq!(verdict(3, &packet(b'a', b"")), (Verdict::Accept, true));
    assert_eq!(verdict(7, &packet(b's', b"")), (Verdict::Continue, false), "no more of the body");
    assert_eq!(verdict(8, &packet(b'a', b"")), (Verdict::Accept, false), "the next message is another one");
    assert_eq!(verdict(5, &packet(b'4', b"")), (Verdict::Shutdown, true));
    let reply = |text: &[u8]| verdict(8, &packet(b'y', text)).0;
    assert_eq!(reply(b"550 5.7.1 No %\0"), Verdict::Reply(550, "5.7.1 No %".to_owned()));
    assert_eq!(
        reply(b"451-4.7.1 Not\r\n451 4.7.1 now\r\0"),
        Verdict::Reply(451, "4.7.1 Not 4.7.1 now".to_owned())
    );
}

#[test]
fn a_message_that_is_given_up_leaves_nothing_for_the_next() {
    let mut session = session(0xff, 0);
    until(&mut session, 8);
    assert_eq!(session.abort(), packet(b'A', b""));
    assert_eq!(session.tell(&Told::Recipient(b"<b@x>", &[]), &[]), Err(MilterError::Order));
    assert!(session.tell(&Told::Sender(b"<a@x>", &[]), &[]).unwrap().is_answered);
    // Given up while an answer is on its way: it must not be taken for another's.
    session.abort();
    assert_eq!(session.tell(&Told::Sender(b"<a@x>", &[]), &[]), Err(MilterError::Order));
}

#[test]
fn changes_are_those_that_were_agreed_upon() {
    let at_end = |actions: u32| {
        let mut session = session(actions, 0);
        until(&mut session, 8);
        session.tell(&Told::End, &[]).unwrap();
        session
    };
    let mut all = at_end(0xff);
    let packets: [(u8, &[u8]); 9] = [
        (b'h', b"X-Spam\0no\n score=1\r\n\tend\0"),
        (b'i', b"\0\0\0\x01X-First\0 a\0"),
        (b'm', b"\0\0\0\x02Subject\0\0"),
        (b'm', b"\0\0\0\x01Subject\0New\0"),
        (b'+', b"<c@x>\0"),
        (b'-', b"<b@x>\0"),
        (b'e', b"<>\0SIZE=1\0"),
        (b'b', b"one "),
        (b'b', b"two"),
    ];
    for (kind, data) in packets {
        assert_eq!(all.take(&packet(kind, data)), Ok(None));
    }
    assert_eq!(all.take(&packet(b'q', b"a virus\0")), Ok(None));
    assert_eq!(all.take(&packet(b'a', b"")), Ok(Some(Verdict::Accept)));
    let field = |name: &str, value: &[u8]| (name.to_owned(), value.to_vec());
    let ((added, added_value), (first, first_value)) =
        (field("X-Spam", b"no\r\n score=1\r\n\tend"), field("X-First", b" a"));
    assert_eq!(
        all.take_changes(),
        [
            Change::AddField { name: added, value: added_value },
            Change::InsertField { index: 1, name: first, value: first_value },
            Change::ChangeField { index: 2, name: "Subject".into(), value: None },
            Change::ChangeField { index: 1, name: "Subject".into(), value: Some(b"New".to_vec()) },
            Change::AddRecipient(b"<c@x>".to_vec()),
            Change::RemoveRecipient(b"<b@x>".to_vec()),
            Change::ChangeSender(b"<>".to_vec()),
            Change::Body(b"one two".to_vec()),
            Change::Quarantine("a virus".into()),
        ]
    );
    // Each needs its own permission, and comes at the end alone.
    for (kind, data) in packets {
        assert_eq!(at_end(0).take(&packet(kind, data)), Err(MilterError::NotAgreed(kind)));
        let mut early = session(0xff, 0);
        early.tell(&Told::Connect(CLIENT), &[]).unwrap();
        assert_eq!(early.take(&packet(kind, data)), Err(MilterError::Unexpected(kind)));
    }
    // A field stays a field.
    for data in [&b"X\0a\nBcc: b\0"[..], b"X\0a\rb\0", b"X: y\0a\0", b"\0a\0", b"X y\0a\0", b"X\0a\0b\0"] {
        assert_eq!(at_end(0xff).take(&packet(b'h', data)), Err(MilterError::Malformed(b'h')), "{data:?}");
    }
    assert_eq!(at_end(0xff).take(&packet(b'+', b"<a@x>\r\nRCPT\0")), Err(MilterError::Malformed(b'+')));
    assert_eq!(at_end(0xff).take(&packet(b'y', b"250 fine\0")), Err(MilterError::Malformed(b'y')));
}

#[test]
fn what_a_filter_makes_us_keep_is_bounded() {
    let limits = MilterLimits { packet_bytes: 100, changes: 3, changed_bytes: 250 };
    let mut reader = PacketReader::new(100);
    assert_eq!(reader.take(&[0, 0, 0, 101]), Err(MilterError::Length(101)));
    assert_eq!(PacketReader::new(100).take(&[0, 0, 0, 0]), Err(MilterError::Length(0)));
    let filled = |packets: &[Vec<u8>]| {
        let (mut session, _) = MilterSession::new(limits);
        session.take(&packet(b'O', &[0, 0, 0, 6, 0, 0, 0, 0xff, 0, 0, 0, 0])).unwrap();
        until(&mut session, 8);
        session.tell(&Told::End, &[]).unwrap();
        packets.iter().find_map(|packet| session.take(packet).err())
    };
    assert_eq!(filled(&vec![packet(b'h', b"X\0y\0"); 4]), Some(MilterError::Changes));
    assert_eq!(filled(&vec![packet(b'b', &[b'x'; 90]); 3]), Some(MilterError::Changes));
    assert_eq!(filled(&vec![packet(b'b', &[b'x'; 90]); 2]), None);
    let mut whole = session(0, 0);
    until(&mut whole, 7);
    assert_eq!(whole.tell(&Told::Body(&[0; 65_536]), &[]), Err(MilterError::Order), "a piece is never cut");
}

#[test]
fn a_filter_that_wants_what_was_not_offered_is_left() {
    for answer in [[1, 0, 0], [6, 0x100, 0], [6, 0, 0x200_0000]] {
        let (mut session, _) = MilterSession::new(MilterLimits::default());
        let answer = answer.map(u32::to_be_bytes).concat();
        assert_eq!(session.take(&packet(b'O', &answer)), Err(MilterError::Negotiation));
        assert_eq!(session.take(&packet(b'c', b"")), Err(MilterError::Order), "the session is over");
    }
    let mut session = session(0, 0);
    assert_eq!(session.take(&packet(b'c', b"")), Err(MilterError::Unexpected(b'c')), "nothing was asked");
}

proptest! {
    #[test]
    fn any_bytes_end_in_a_verdict_or_an_error(
        kinds in prop::collection::vec((prop::sample::select(b"Oacdrtf4spyhim+-2ebqz".to_vec()), "[ -~\n\r\0]{0,20}"), 0..30),
        cut in 1_usize..9,
    ) {
        let mut session = session(0xff, 0);
        until(&mut session, 8);
        session.tell(&Told::End, &[]).unwrap();
        let bytes: Vec<u8> = kinds.iter().flat_map(|(kind, data)| packet(*kind, data.as_bytes())).collect();
        let mut whole = session.clone();
        let (mut in_pieces, mut at_once) = (None, None);
        for piece in bytes.chunks(cut) {
            match session.take(piece) {
                Ok(None) => {}
                end => { in_pieces = Some(end); break }
            }
        }
        // With bytes behind a verdict the session is over when they come, in one piece or in several.
        match whole.take(&bytes) {
            Ok(None) => {}
            end => at_once = Some(end),
        }
        match (in_pieces, at_once) {
            (Some(Ok(_)), Some(Err(MilterError::Unexpected(_) | MilterError::Length(_)))) => {}
            (pieces, once) => prop_assert_eq!(pieces, once),
        }
        for change in session.take_changes() {
            if let Change::AddField { value, .. } = change {
                let text = String::from_utf8_lossy(&value).replace("\r\n ", "").replace("\r\n\t", "");
                prop_assert!(!text.contains(['\r', '\n']));
            }
        }
    }
}

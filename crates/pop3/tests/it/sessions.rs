//! Sessions as transcripts.

use std::sync::Arc;

use proptest::prelude::*;
use scrinium_pop3::{Peer, ServerOptions, ServerSession};

use crate::world::{Connection, NOW_MS, World};

fn messages() -> World {
    World::with(&[
        b"Subject: 1\r\n\r\none\r\n.dot\r\nthree\r\n",
        b"Subject: 2\r\n\r\n",
        b"Subject: 3\r\n\r\nx",
    ])
}

fn logged_in(world: &mut World) -> Connection {
    let mut client = Connection::with(ServerOptions::new("pop.test"));
    client.say(world, "");
    assert_eq!(
        client.say(world, "USER ada\r\nPASS se cret\r\n"),
        "+OK And the password?\r\n+OK 3 messages\r\n"
    );
    client
}

fn transcript(client: &mut Connection, world: &mut World, pairs: &[(&str, &str)]) {
    for (said, answered) in pairs {
        let answer = client.say(world, &format!("{said}\r\n"));
        assert_eq!(answer.trim_end().replace("\r\n", "\n"), *answered, "to {said}");
    }
}

#[test]
fn a_session_from_its_beginning() {
    let mut world = messages();
    let mut client = Connection::with(ServerOptions::new("pop.test"));
    assert_eq!(client.say(&mut world, ""), "+OK pop.test is ready\r\n");
    transcript(
        &mut client,
        &mut world,
        &[
            (
                "CAPA",
                "+OK What there is\nTOP\nUIDL\nRESP-CODES\nAUTH-RESP-CODE\nPIPELINING\nUTF8\nUSER\nSASL SCRAM-SHA-256 PLAIN LOGIN\n.",
            ),
            ("STAT", "-ERR Log in first"),
            ("PASS x", "-ERR USER comes first"),
            ("USER ada", "+OK And the password?"),
            (
                "PASS wrong",
                "-ERR [AUTH] The name or the password is wrong. Programs may need a password of their own",
            ),
            ("AUTH PLAIN AGFkYQBzZSBjcmV0", "+OK 3 messages"),
            ("STAT", "+OK 3 61"),
            ("LIST", "+OK 3 messages\n1 32\n2 14\n3 15\n."),
            ("LIST 2", "+OK 2 14"),
            ("LIST 4", "-ERR There is no such message"),
            ("UIDL", "+OK 3 messages\n1 77.1\n2 77.2\n3 77.3\n."),
            ("UIDL 3", "+OK 3 77.3"),
            ("RETR 1", "+OK 32 octets\nSubject: 1\n\none\n..dot\nthree\n."),
            ("TOP 1 0", "+OK 32 octets\nSubject: 1\n\n."),
            ("TOP 1 2", "+OK 32 octets\nSubject: 1\n\none\n..dot\n."),
            ("TOP 3 9", "+OK 15 octets\nSubject: 3\n\nx\n."),
            ("DELE 2", "+OK Marked"),
            ("DELE 2", "-ERR There is no such message"),
            ("RETR 2", "-ERR There is no such message"),
            ("STAT", "+OK 2 47"),
            ("UIDL", "+OK 3 messages\n1 77.1\n3 77.3\n."),
            ("RSET", "+OK Nothing is marked"),
            ("DELE 1", "+OK Marked"),
            ("DELE 3", "+OK Marked"),
            ("QUIT", "+OK Goodbye"),
        ],
    );
    assert!(client.session.is_closed() && !world.in_use);
    assert_eq!(world.messages.iter().map(|(uid, _)| *uid).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_maildrop_is_one_sessions_and_what_is_marked_stays_without_quit() {
    let mut world = messages();
    let mut first = logged_in(&mut world);
    let mut second = Connection::with(ServerOptions::new("pop.test"));
    second.say(&mut world, "");
    let answer = second.say(&mut world, "USER ada\r\nPASS se cret\r\nSTAT\r\n");
    assert!(
        answer.ends_with("-ERR [IN-USE] Another session has the maildrop\r\n-ERR Log in first\r\n"),
        "{answer}"
    );
    first.say(&mut world, "DELE 1\r\n");
    first.session.disconnected();
    first.say(&mut world, "");
    assert!(!world.in_use && world.messages.len() == 3);
}

#[test]
fn what_comes_and_goes_meanwhile_changes_no_number() {
    let mut world = messages();
    let mut client = logged_in(&mut world);
    world.remove(1);
    world.add(b"new\r\n");
    transcript(
        &mut client,
        &mut world,
        &[
            ("LIST", "+OK 3 messages\n2 14\n3 15\n."),
            ("RETR 1", "-ERR The message is gone"),
            ("RETR 4", "-ERR There is no such message"),
            ("UIDL 2", "+OK 2 77.2"),
        ],
    );
}

#[test]
fn what_is_said_behind_stls_in_the_open_ends_the_connection() {
    let mut options = ServerOptions::new("pop.test");
    options.has_certificate = true;
    let mut world = messages();
    let mut client = Connection::with(options.clone());
    client.session = ServerSession::new(Arc::new(options), Peer::default(), None, NOW_MS);
    client.say(&mut world, "");
    assert!(client.say(&mut world, "USER ada\r\n").starts_with("-ERR Passwords"));
    let answer = client.say(&mut world, "STLS\r\nUSER ada\r\n");
    assert!(answer.starts_with("-ERR Something") && client.session.is_closed(), "{answer}");
}

proptest! {
    #[test]
    fn a_message_comes_out_as_it_is(
        lines in prop::collection::vec("[ -~.]{0,12}", 0..20),
        piece in 1_u64..20,
        output_bytes in 1_usize..50,
    ) {
        let message: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let message = format!("A: b\r\n\r\n{message}");
        let mut world = World::with(&[message.as_bytes()]);
        let mut options = ServerOptions::new("pop.test");
        options.limits.piece_bytes = piece;
        options.limits.output_bytes = output_bytes;
        let mut client = Connection::with(options);
        client.say(&mut world, "");
        client.say(&mut world, "USER ada\r\nPASS se cret\r\n");
        let read = |answer: String| {
            let (_, text) = answer.split_once("\r\n").unwrap();
            let text = text.strip_suffix(".\r\n").unwrap();
            let lines = text.split_inclusive("\r\n");
            lines.map(|line| line.strip_prefix('.').unwrap_or(line)).collect::<String>()
        };
        prop_assert_eq!(&read(client.say(&mut world, "RETR 1\r\n")), &message);
        for count in 0..=lines.len() {
            let top: String = lines.iter().take(count).map(|line| format!("{line}\r\n")).collect();
            let expected = format!("A: b\r\n\r\n{top}");
            prop_assert_eq!(read(client.say(&mut world, &format!("TOP 1 {count}\r\n"))), expected);
        }
    }
}

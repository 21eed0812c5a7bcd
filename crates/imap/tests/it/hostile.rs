//! Hostile input: nothing panics, nothing grows, and a refused message is never executed.

use std::sync::Arc;

use proptest::prelude::*;
use scrinium_imap::{Peer, ServerOptions, ServerSession, SystemFlags};

use crate::client::Connection;
use crate::world::{NOW_MS, World};

fn world() -> World {
    let mut world = World::new();
    world.add("INBOX", b"Subject: x\r\n\r\nhi\r\n", SystemFlags::default());
    world
}

#[test]
fn a_message_that_is_refused_is_not_executed_as_commands() {
    for mailbox in ["INBOX", "nowhere"] {
        let mut options = ServerOptions::new("imap.test");
        options.limits.message_bytes = 10;
        let mut world = world();
        let mut client = Connection::with(options, 0);
        client.say(&mut world, "");
        client.say(&mut world, "x LOGIN ada secret\r\n");
        let message = "a DELETE INBOX\r\n".repeat(10);
        let text = format!("b APPEND {mailbox} {{{}+}}\r\n{message}\r\nc NOOP\r\n", message.len());
        let answer = client.say(&mut world, &text);
        assert!(answer.contains("b NO [TOOBIG]") && answer.contains("c OK"), "{answer}");
        assert!(world.folders.contains_key("INBOX"));
    }
    let mut world = world();
    let mut client = Connection::logged_in(&mut world, 0);
    let answer = client
        .say(&mut world, "b APPEND nowhere {15+}\r\na DELETE INBOX\n\r\nc APPEND nowhere {5}\r\nd NOOP\r\n");
    assert!(answer.contains("b NO [TRYCREATE]") && answer.contains("c NO [TRYCREATE]"), "{answer}");
    assert!(answer.contains("d OK") && !answer.contains("+ "), "{answer}");
}

#[test]
fn limits_before_log_in_are_narrow() {
    let fresh = || Connection::with(ServerOptions::new("imap.test"), 0);
    let mut world = World::new();
    for text in [
        format!("a LOGIN {}\r\n", "x".repeat(9000)),
        format!("a LOGIN {{9000+}}\r\n{}\r\n", "x".repeat(9000)),
        format!("a LOGIN {{5000+}}\r\n{}\r\n", "x".repeat(5000)),
        "a LOGIN {9000}\r\n".to_owned(),
        format!("a LOGIN {}\r\n", "(".repeat(3000)),
        format!("a {}\r\n", "( ".repeat(3000)),
    ] {
        let mut client = fresh();
        client.say(&mut world, "");
        let answer = client.say(&mut world, &text);
        assert!(
            answer.contains("BAD") || answer.contains("NO") || answer.contains("BYE"),
            "{text}: {answer}"
        );
        assert!(client.session.held_bytes() < 20_000);
    }
    let mut client = fresh();
    client.say(&mut world, "");
    let answer = client.say(&mut world, "a SELECT INBOX\r\nb FETCH 1 FLAGS\r\nc XYZZY\r\nd NOOP\r\n");
    assert!(answer.contains("a BAD") && answer.contains("* BYE") && !answer.contains("d OK"), "{answer}");
}

#[test]
fn what_is_said_behind_starttls_in_the_open_ends_the_connection() {
    let mut options = ServerOptions::new("imap.test");
    options.has_certificate = true;
    let mut world = World::new();
    let mut session = ServerSession::new(Arc::new(options), Peer::default(), None, NOW_MS);
    let mut out = Vec::new();
    session.receive(b"a STARTTLS\r\nb LOGIN ada secret\r\n", NOW_MS);
    while let Some(request) = session.next(NOW_MS) {
        session.answer(world.answer(0, request), NOW_MS);
        out.extend(session.take_output());
    }
    out.extend(session.take_output());
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("* BYE") && session.is_closed() && session.person().is_none(), "{text}");
}

#[test]
fn passwords_are_not_taken_in_the_open() {
    let mut world = World::new();
    let mut session =
        ServerSession::new(Arc::new(ServerOptions::new("imap.test")), Peer::default(), None, NOW_MS);
    session.receive(b"a LOGIN ada secret\r\n", NOW_MS);
    let mut text = String::new();
    while let Some(request) = session.next(NOW_MS) {
        session.answer(world.answer(0, request), NOW_MS);
    }
    text.push_str(&String::from_utf8(session.take_output()).unwrap());
    assert!(text.contains("LOGINDISABLED") && text.contains("a NO [PRIVACYREQUIRED]"), "{text}");
}

#[test]
fn a_client_that_does_not_read_stops_the_work() {
    let mut world = World::new();
    for _ in 0..500 {
        world.add("INBOX", &b"Subject: x\r\n\r\n0123456789\r\n".repeat(50), SystemFlags::default());
    }
    let mut client = Connection::selected(&mut world, 0);
    client.session.receive(b"a FETCH 1:* (BODY.PEEK[])\r\nb FETCH 1:* (BODY.PEEK[])\r\n", NOW_MS);
    let mut asked = 0;
    while let Some(request) = client.session.next(NOW_MS) {
        asked += 1;
        client.session.answer(world.answer(0, request), NOW_MS);
    }
    assert!(asked < 10, "{asked} questions, and nobody reads the answers");
    assert!(client.session.held_bytes() < 3 << 20, "{}", client.session.held_bytes());
}

#[test]
fn a_bomb_is_inflated_no_further_than_there_is_room() {
    use flate2_test::deflated;
    let mut world = World::new();
    let mut client = Connection::logged_in(&mut world, 0);
    let answer = client.say(&mut world, "a COMPRESS DEFLATE\r\n");
    assert!(answer.contains("a OK"), "{answer}");
    let bomb = deflated(&vec![b' '; 50 << 20]);
    let mut rest = bomb.as_slice();
    for _ in 0..10_000 {
        let _ = client.session.next(NOW_MS);
        let taken = client.session.receive(rest, NOW_MS);
        rest = &rest[taken..];
        assert!(client.session.held_bytes() < 2 << 20);
        if client.session.is_closed() {
            return;
        }
    }
    assert!(client.session.is_closed(), "a line of 50 MB is no command");
}

mod flate2_test {
    pub(super) fn deflated(bytes: &[u8]) -> Vec<u8> {
        use std::io::Write as _;
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }
}

#[test]
fn what_is_compressed_means_the_same() {
    let mut world = world();
    let mut plain = Connection::selected(&mut world, 0);
    let mut packed = Connection::logged_in(&mut world, 1);
    packed.say(&mut world, "a COMPRESS DEFLATE\r\n");
    let commands = "x SELECT INBOX\r\nb FETCH 1 (BODY.PEEK[] FLAGS)\r\nc COMPRESS DEFLATE\r\n";
    let answer = packed.send(&mut world, &flate2_test::deflated(commands.as_bytes())[..]);
    let mut text = Vec::new();
    let mut inflate = flate2::Decompress::new(false);
    text.reserve(1 << 16);
    inflate.decompress_vec(&answer, &mut text, flate2::FlushDecompress::Sync).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(&plain.say(&mut world, "b FETCH 1 (BODY.PEEK[] FLAGS)\r\n")), "{text}");
    assert!(text.contains("c NO [COMPRESSIONACTIVE]"), "{text}");
}

const WORDS: [&str; 60] = [
    "a",
    "LOGIN",
    "ada",
    "secret",
    "\r\n",
    "\r\n",
    "\r\n",
    " ",
    "(",
    ")",
    "\"",
    "{3}",
    "{3+}",
    "{9999999999}",
    "~{2+}",
    "SELECT",
    "INBOX",
    "FETCH",
    "1:*",
    "BODY[]",
    "BODY[1.MIME]<0.5>",
    "UID",
    "STORE",
    "+FLAGS",
    "\\Deleted",
    "EXPUNGE",
    "SEARCH",
    "RETURN",
    "SAVE",
    "NOT",
    "OR",
    "ALL",
    "$",
    "SORT",
    "THREAD",
    "REFERENCES",
    "APPEND",
    "IDLE",
    "DONE",
    "NOTIFY",
    "SET",
    "LIST",
    "*",
    "%",
    "STATUS",
    "MESSAGES",
    "ENABLE",
    "QRESYNC",
    "UTF8=ACCEPT",
    "IMAP4rev2",
    "COMPRESS",
    "DEFLATE",
    "AUTHENTICATE",
    "PLAIN",
    "AGFkYQBzZWNyZXQ=",
    "MOVE",
    "COPY",
    "Trash",
    "NOOP",
    "LOGOUT",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_in_any_pieces_mean_the_same(
        words in prop::collection::vec((prop::sample::select(WORDS.to_vec()), any::<bool>()), 0..80),
        noise in prop::collection::vec(any::<u8>(), 0..20),
        is_in in any::<bool>(),
        piece in 1_usize..30,
    ) {
        let mut text: Vec<u8> = Vec::new();
        for (word, spaced) in words {
            text.extend_from_slice(word.as_bytes());
            if spaced {
                text.push(b' ');
            }
        }
        text.extend(noise);
        text.extend_from_slice(b"\r\nz NOOP\r\n");
        let mut answers = Vec::new();
        for piece in [usize::MAX, piece] {
            let mut world = world();
            let mut client = Connection::with(ServerOptions::new("imap.test"), 0);
            client.say(&mut world, "");
            if is_in {
                client.say(&mut world, "x LOGIN ada secret\r\nx SELECT INBOX\r\n");
            }
            client.piece = piece;
            let answer = client.send(&mut world, &text);
            prop_assert!(client.session.held_bytes() < 2 << 20);
            client.session.disconnected();
            while let Some(request) = client.session.next(NOW_MS) {
                let answer = world.answer(0, request);
                client.session.answer(answer, NOW_MS);
            }
            answers.push(answer);
        }
        let is_compressed = answers[0].windows(10).any(|part| part == b"Compressed");
        if !is_compressed {
            prop_assert_eq!(String::from_utf8_lossy(&answers[0]), String::from_utf8_lossy(&answers[1]));
        }
    }
}

#[test]
fn deadlines_are_kept() {
    let mut world = World::new();
    let options = ServerOptions::new("imap.test");
    let times = options.times;
    let mut client = Connection::with(options, 0);
    client.say(&mut world, "");
    assert_eq!(client.session.deadline_ms(), NOW_MS + times.login_ms);
    client.say(&mut world, "x LOGIN ada secret\r\n");
    assert_eq!(client.session.deadline_ms(), NOW_MS + times.idle_ms);
    client.say(&mut world, "a IDLE\r\n");
    assert_eq!(client.session.deadline_ms(), NOW_MS + times.keep_alive_ms);
    client.session.time_passed(NOW_MS + times.keep_alive_ms);
    assert_eq!(client.session.take_output(), b"* OK Still here\r\n");
    client.session.time_passed(NOW_MS + times.idle_ms + 1);
    assert!(client.session.is_closed());
}

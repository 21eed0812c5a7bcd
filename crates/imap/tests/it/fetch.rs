//! FETCH: bytes as they are, in every piece.

use proptest::prelude::*;
use scrinium_imap::{ServerOptions, SystemFlags};
use scrinium_imap_wire::{FetchItem, MessageData, Response};

use crate::client::{Connection, responses};
use crate::world::World;

const MESSAGE: &[u8] = b"From: Ada <ada@x.test>\r\nSubject: Hello\r\nX-Long: a\r\n  b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nFirst part.\r\nwith two lines\r\n--b\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\nAAECAwQF\r\nBgcICQ==\r\n--b--\r\n";

fn data(answer: &[u8]) -> Vec<u8> {
    for response in responses(answer) {
        if let Response::Fetch { items, .. } = response {
            for item in items {
                match item {
                    FetchItem::Section(_, _, data)
                    | FetchItem::Binary(_, _, data)
                    | FetchItem::Rfc822(data) => {
                        return match data {
                            MessageData::Bytes(bytes) | MessageData::Binary(bytes) => bytes,
                            other => panic!("{other:?}"),
                        };
                    }
                    _ => {}
                }
            }
        }
    }
    panic!("no section in {}", String::from_utf8_lossy(answer))
}

fn fetched(world: &mut World, client: &mut Connection, item: &str) -> Vec<u8> {
    data(&client.send(world, format!("a FETCH 1 {item}\r\n").as_bytes()))
}

/// Everything in small pieces, so that each border is crossed.
fn small_pieces() -> ServerOptions {
    let mut options = ServerOptions::new("imap.test");
    options.limits.piece_bytes = 7;
    options.limits.output_bytes = 50;
    options
}

fn small_client(world: &mut World) -> Connection {
    let mut client = Connection::with(small_pieces(), 9);
    client.say(world, "");
    client.say(world, "x LOGIN ada secret\r\nx SELECT INBOX\r\n");
    client
}

#[test]
fn every_partial_fetch_is_a_slice() {
    let mut world = World::new();
    world.add("INBOX", MESSAGE, SystemFlags::default());
    let mut small = small_client(&mut world);
    let mut large = Connection::selected(&mut world, 1);
    let sections = [
        "",
        "HEADER",
        "TEXT",
        "1",
        "1.MIME",
        "2",
        "2.MIME",
        "HEADER.FIELDS (subject \"X-Long\")",
        "HEADER.FIELDS.NOT (From)",
    ];
    for section in sections {
        let whole = fetched(&mut world, &mut large, &format!("BODY.PEEK[{section}]"));
        assert_eq!(fetched(&mut world, &mut small, &format!("BODY.PEEK[{section}]")), whole, "{section}");
        for offset in (0..whole.len() + 3).step_by(5) {
            for count in [1, 2, 9, 1000] {
                let item = format!("BODY.PEEK[{section}]<{offset}.{count}>");
                let from = offset.min(whole.len());
                let to = (offset + count).min(whole.len());
                assert_eq!(fetched(&mut world, &mut small, &item), &whole[from..to], "{item}");
            }
        }
    }
    assert_eq!(fetched(&mut world, &mut small, "BODY.PEEK[]"), MESSAGE);
    assert_eq!(fetched(&mut world, &mut small, "RFC822"), MESSAGE);
    assert_eq!(
        fetched(&mut world, &mut small, "BODY.PEEK[HEADER.FIELDS (subject \"X-Long\")]"),
        b"Subject: Hello\r\nX-Long: a\r\n  b\r\n\r\n"
    );
}

#[test]
fn binary_is_decoded_in_every_piece() {
    let mut world = World::new();
    world.add("INBOX", MESSAGE, SystemFlags::default());
    let mut small = small_client(&mut world);
    let whole: Vec<u8> = (0..10).collect();
    assert_eq!(fetched(&mut world, &mut small, "BINARY.PEEK[2]"), whole);
    for offset in 0..12 {
        for count in [1, 3, 100] {
            let item = format!("BINARY.PEEK[2]<{offset}.{count}>");
            let slice = &whole[offset.min(10)..(offset + count).min(10)];
            assert_eq!(fetched(&mut world, &mut small, &item), slice, "{item}");
        }
    }
    let sizes = small.say(&mut world, "a FETCH 1 (BINARY.SIZE[1] BINARY.SIZE[2])\r\n");
    assert!(sizes.contains("BINARY.SIZE[1] 27 BINARY.SIZE[2] 10"), "{sizes}");
}

#[test]
fn an_item_is_answered_once_and_reading_marks_as_seen() {
    let mut world = World::new();
    world.add("INBOX", MESSAGE, SystemFlags::default());
    let mut client = Connection::selected(&mut world, 0);
    let answer = client.say(&mut world, "a FETCH 1 (UID FLAGS UID BODY[1])\r\n");
    assert!(answer.starts_with("* 1 FETCH (UID 1 FLAGS (\\Seen) BODY[1] {27}\r\nFirst part."), "{answer}");
    let answer = client.say(&mut world, "b UID FETCH 1 BODY.PEEK[9]\r\n");
    assert_eq!(answer, "* 1 FETCH (UID 1 BODY[9] NIL)\r\nb OK Fetched\r\n");
    let mut reader = Connection::logged_in(&mut world, 1);
    world.add("INBOX", MESSAGE, SystemFlags::default());
    let answer = reader.say(&mut world, "a EXAMINE INBOX\r\nb FETCH 2 RFC822.TEXT\r\nc FETCH 2 FLAGS\r\n");
    assert!(answer.contains("a OK [READ-ONLY]") && answer.contains("* 2 FETCH (FLAGS ())"), "{answer}");
}

#[test]
fn macros_and_lists_of_items_are_answered_in_order() {
    let mut world = World::new();
    world.add("INBOX", b"Subject: x\r\n\r\nhi\r\n", SystemFlags::default());
    let mut client = Connection::selected(&mut world, 0);
    assert_eq!(
        client.say(&mut world, "a FETCH 1 FULL\r\n"),
        "* 1 FETCH (FLAGS () INTERNALDATE \"26-Nov-2026 10:20:51 +0100\" RFC822.SIZE 18 ENVELOPE (NIL \"x\" NIL NIL NIL NIL NIL NIL NIL NIL) BODY (\"text\" \"plain\" (\"charset\" \"us-ascii\") NIL NIL \"7bit\" 4 1))\r\na OK Fetched\r\n"
    );
    assert_eq!(
        client.say(&mut world, "a FETCH 1 (EMAILID THREADID SAVEDATE PREVIEW (LAZY) MODSEQ)\r\n"),
        "* 1 FETCH (EMAILID (E1) THREADID (T1) SAVEDATE \"26-Nov-2026 10:20:51 +0100\" PREVIEW \"hi\" MODSEQ (15))\r\na OK Fetched\r\n"
    );
}

#[test]
fn partial_counts_from_both_ends() {
    let mut world = World::new();
    (0..10).for_each(|_| {
        world.add("INBOX", b"\r\n", SystemFlags::default());
    });
    let mut client = Connection::selected(&mut world, 0);
    let uids = |answer: String| -> Vec<String> {
        let lines = answer.lines().filter(|line| line.contains("FETCH"));
        lines.map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(uids(client.say(&mut world, "a UID FETCH 3:* (UID) (PARTIAL 1:2)\r\n")), ["3", "4"]);
    assert_eq!(uids(client.say(&mut world, "a UID FETCH 3:* (UID) (PARTIAL -1:-2)\r\n")), ["9", "10"]);
    assert_eq!(uids(client.say(&mut world, "a UID FETCH 3:* (UID) (PARTIAL 9:20)\r\n")), [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_message_comes_out_as_it_came_in(body in prop::collection::vec(any::<u8>(), 1..600), piece in 1_usize..50) {
        let mut world = World::new();
        let mut client = Connection::logged_in(&mut world, 0);
        client.piece = piece;
        let mut command = format!("a APPEND INBOX {{{}+}}\r\n", body.len()).into_bytes();
        command.extend_from_slice(&body);
        command.extend_from_slice(b"\r\nb SELECT INBOX\r\n");
        let answer = client.send(&mut world, &command);
        let answer = String::from_utf8_lossy(&answer);
        prop_assert!(answer.contains("a OK [APPENDUID 1001 1]"), "{}", answer);
        let mut small = small_client(&mut world);
        prop_assert_eq!(fetched(&mut world, &mut small, "BODY.PEEK[]"), body.clone());
        let size = client.say(&mut world, "c FETCH 1 RFC822.SIZE\r\n");
        let expected = format!("RFC822.SIZE {})", body.len());
        prop_assert!(size.contains(&expected));
    }
}

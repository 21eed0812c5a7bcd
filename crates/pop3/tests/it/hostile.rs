//! Hostile input.

use proptest::prelude::*;
use scrinium_pop3::ServerOptions;

use crate::world::{Connection, NOW_MS, World};

const WORDS: [&str; 26] = [
    "USER ada\r\n",
    "PASS se cret\r\n",
    "STAT\r\n",
    "LIST\r\n",
    "LIST 1\r\n",
    "UIDL\r\n",
    "RETR 1\r\n",
    "TOP 1 1\r\n",
    "DELE 1\r\n",
    "RSET\r\n",
    "QUIT\r\n",
    "CAPA\r\n",
    "AUTH\r\n",
    "AUTH PLAIN\r\n",
    "AGFkYQBzZSBjcmV0\r\n",
    "*\r\n",
    "STLS\r\n",
    "UTF8\r\n",
    "NOOP\r\n",
    "APOP a b\r\n",
    "LANG\r\n",
    "RETR 99999999999\r\n",
    "\r\n",
    "\n",
    "AUTH SCRAM-SHA-256\r\n",
    "x",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_in_any_pieces_mean_the_same(
        words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..30),
        noise in prop::collection::vec(any::<u8>(), 0..20),
        piece in 1_usize..30,
    ) {
        let mut text = words.concat().into_bytes();
        text.extend(noise);
        let mut answers = Vec::new();
        for piece in [usize::MAX, piece] {
            let mut world = World::with(&[b"A: b\r\n\r\nc\r\n"]);
            let mut client = Connection::with(ServerOptions::new("pop.test"));
            client.say(&mut world, "");
            client.piece = piece;
            let answer = client.send(&mut world, &text);
            prop_assert!(client.session.held_bytes() < 1 << 20);
            client.session.disconnected();
            while let Some(request) = client.session.next(NOW_MS) {
                let answer = world.answer(request);
                client.session.answer(answer, NOW_MS);
            }
            prop_assert!(!world.in_use, "the maildrop is not released");
            answers.push(String::from_utf8_lossy(&answer).into_owned());
        }
        prop_assert_eq!(&answers[0], &answers[1]);
    }
}

//! Whatever a stranger sends, nothing panics, and nothing grows past a limit.

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_smtp_wire::{
    Capabilities, ChunkReader, Command, CommandError, Domain, LineEnds, LineScanner, Mailbox, ReplyError,
    ReplyLimits, ReplyReader,
};

use crate::arbitrary::command;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_line_is_a_command_that_is_read_back_or_an_error(line in vec(any::<u8>(), 0..200)) {
        if let Ok(command) = Command::parse(&line) {
            let written = command.to_string();
            prop_assert_eq!(Command::parse(written.as_bytes()), Ok(command));
        }
    }

    #[test]
    fn a_command_with_another_byte_is_read_back_or_an_error(
        command in command(),
        at in any::<prop::sample::Index>(),
        byte in prop::sample::select(b"<>@\"\\\r\n\0 =:;,.+[]\xc3\xff\x7f".to_vec()),
        insert in any::<bool>(),
    ) {
        let mut line = command.to_string().into_bytes();
        let at = at.index(line.len());
        if insert { line.insert(at, byte) } else { line[at] = byte }
        if let Ok(command) = Command::parse(&line) {
            let written = command.to_string();
            prop_assert!(!written.contains(['\r', '\n']));
            prop_assert_eq!(Command::parse(written.as_bytes()), Ok(command));
        }
    }

    #[test]
    fn any_lines_are_replies_or_an_error(lines in vec(vec(prop::sample::select(b"250- 4\xff.".to_vec()), 0..12), 0..20)) {
        let limits = ReplyLimits { lines: 4, text_bytes: 20 };
        let mut reader = ReplyReader::new(limits);
        for line in lines {
            let Ok(reply) = reader.line(&line) else { break };
            if let Some(reply) = reply {
                prop_assert!(reply.lines().len() <= limits.lines);
                let _ = (reply.enhanced(), reply.text(), Capabilities::of(&reply));
            }
        }
    }
}

#[test]
fn a_line_has_no_second_command() {
    for line in [b"RSET\rQUIT".as_slice(), b"RSET\nQUIT", b"NOOP \0", b"MAIL FROM:<a@b>\rRCPT", b"\xff\xfe"] {
        assert!(Command::parse(line).is_err(), "{line:?}");
    }
    assert_eq!(LineScanner::new(99, LineEnds::Strict).find(b"RSET\nQUIT\r\n").ok(), None);
}

#[test]
fn addresses_beyond_their_limits_are_refused() {
    let long = |count: usize| "a".repeat(count);
    assert!(Mailbox::parse(format!("{}@b.test", long(256)).as_bytes()).is_ok());
    assert!(Mailbox::parse(format!("{}@b.test", long(257)).as_bytes()).is_err());
    assert!(Mailbox::parse(format!("\"{}\"@b.test", long(257)).as_bytes()).is_err());
    assert!(Domain::parse(long(64).as_bytes()).is_err());
    assert!(Domain::parse([long(63), long(63), long(63), long(63), long(9)].join(".").as_bytes()).is_err());
    for wrong in
        ["", "@b", "a@", "a", "a@b..c", "a@[1.2.3]", "a@[IPv6:zz]", "a@[x", "\"a@b", "a b@c", "a@b c", "a@b>"]
    {
        assert!(Mailbox::parse(wrong.as_bytes()).is_err(), "{wrong}");
    }
    let route = format!("MAIL FROM:<{}:a@b.test>", vec!["@h.test"; 17].join(","));
    assert!(matches!(Command::parse(route.as_bytes()), Err(CommandError::Address(_))));
}

#[test]
fn parameters_beyond_their_limits_are_refused() {
    let many = format!("MAIL FROM:<>{}", " X=1".repeat(33));
    assert_eq!(Command::parse(many.as_bytes()), Err(CommandError::Parameter));
    for wrong in [
        "SIZE=1 SIZE=2",
        "SIZE",
        "SIZE=-1",
        "SIZE=99999999999999999999",
        "SMTPUTF8=1",
        "SMTPUTF8 SMTPUTF8",
        "BODY=9BIT",
        "RET=ALL",
        "ENVID=+",
        "ENVID=+0G",
        "ENVID=a+0A",
        "AUTH=x",
        "MT-PRIORITY=10",
        "HOLDFOR=1 HOLDFOR=2",
        "X=",
        "=1",
    ] {
        let line = format!("MAIL FROM:<a@b.test> {wrong}");
        assert_eq!(Command::parse(line.as_bytes()), Err(CommandError::Parameter), "{wrong}");
    }
    for wrong in
        ["NOTIFY=NEVER,SUCCESS", "NOTIFY=", "NOTIFY=DELAY NOTIFY=DELAY", "ORCPT=rfc822", "ORCPT=rfc822;a+0D"]
    {
        let line = format!("RCPT TO:<a@b.test> {wrong}");
        assert_eq!(Command::parse(line.as_bytes()), Err(CommandError::Parameter), "{wrong}");
    }
}

#[test]
fn a_chunk_ends_where_it_was_announced() {
    let mut chunk = ChunkReader::new(5);
    assert_eq!(chunk.take(b"abc"), b"abc");
    assert_eq!(chunk.take(b"deQUIT\r\n"), b"de");
    assert_eq!((chunk.missing(), chunk.take(b"QUIT\r\n")), (0, b"".as_slice()));
}

#[test]
fn an_endless_reply_is_refused() {
    let mut reader = ReplyReader::new(ReplyLimits { lines: 2, text_bytes: 100 });
    assert_eq!(reader.line(b"250-a"), Ok(None));
    assert_eq!(reader.line(b"250-b"), Ok(None));
    assert_eq!(reader.line(b"250-c"), Err(ReplyError::TooManyLines(2)));
    let mut reader = ReplyReader::new(ReplyLimits { lines: 9, text_bytes: 3 });
    assert_eq!(reader.line(b"250-abcd"), Err(ReplyError::TooLong(3)));
}

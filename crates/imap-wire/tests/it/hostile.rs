//! Whatever a stranger sends, nothing panics, and nothing grows past a limit.

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_imap_wire::{
    CommandFault, CommandOptions, Decision, FrameReader, FrameStep, NameEncoding, Part, Response, Speaker,
    TaggedCommand, ValueError, ValueLimits, WriteOptions, joined, parse_values,
};

use crate::arbitrary::{LIMITS, command, frames, response, tag};

/// Reads bytes as a server or a client would, until they break the connection.
fn all(bytes: &[u8], speaker: Speaker) -> Vec<Vec<Part>> {
    let mut reader = FrameReader::new(LIMITS, speaker);
    let (mut rest, mut frames, mut steps) = (bytes, Vec::new(), 0);
    while let Ok((consumed, step)) = reader.read(rest) {
        steps += 1;
        assert!(steps <= 4 * bytes.len() + 4, "it goes on");
        rest = &rest[consumed..];
        match step {
            FrameStep::More => break,
            FrameStep::Announced(_) if reader.decide(Decision::Keep).is_err() => break,
            FrameStep::Frame(parts) => frames.push(parts),
            _ => {}
        }
    }
    frames
}

fn check(frame: &[Part]) {
    let options = CommandOptions::default();
    if let Ok(read) = TaggedCommand::parse(frame, options) {
        let segments = read.command.write(&read.tag, options.names, WriteOptions::CLIENT);
        let again = frames(&joined(&segments), 99, Speaker::Client);
        assert_eq!(again.len(), 1, "{:?}", read.command);
        assert_eq!(TaggedCommand::parse(&again[0], options), Ok(read));
    }
    if let Ok(read) = Response::parse(frame, NameEncoding::Utf7, options.limits) {
        let segments = read.write(NameEncoding::Utf7, WriteOptions::SERVER);
        assert_eq!(frames(&joined(&segments), 99, Speaker::Server).len(), 1, "{read:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_bytes_are_frames_or_an_error(bytes in vec(prop::sample::select(b"a1 *()[]{}<>\"\\+,:.\r\n\0\xc3\xa9&-NIL".to_vec()), 0..80)) {
        for speaker in [Speaker::Client, Speaker::Server] {
            all(&bytes, speaker).iter().for_each(|frame| check(frame));
        }
    }

    #[test]
    fn a_command_with_another_byte_is_read_back_or_an_error(
        tag in tag(),
        command in command(),
        at in any::<prop::sample::Index>(),
        byte in prop::sample::select(b" ()[]{}<>\"\\+,:.*\r\n\0\xff&$-".to_vec()),
        insert in any::<bool>(),
    ) {
        let mut bytes = joined(&command.write(&tag, NameEncoding::Utf7, WriteOptions::CLIENT));
        let at = at.index(bytes.len());
        if insert { bytes.insert(at, byte) } else { bytes[at] = byte }
        all(&bytes, Speaker::Client).iter().for_each(|frame| check(frame));
    }

    #[test]
    fn a_response_with_another_byte_is_read_or_an_error(
        response in response(),
        at in any::<prop::sample::Index>(),
        byte in prop::sample::select(b" ()[]{}<>\"\\+,:.*\r\n\0\xff&$-".to_vec()),
    ) {
        let mut bytes = joined(&response.write(NameEncoding::Utf7, WriteOptions::SERVER));
        let at = at.index(bytes.len());
        bytes[at] = byte;
        all(&bytes, Speaker::Server).iter().for_each(|frame| check(frame));
    }
}

fn fault(line: &str) -> CommandFault {
    let parts = [Part::Text(line.as_bytes().to_vec())];
    TaggedCommand::parse(&parts, CommandOptions::default()).expect_err(line).fault
}

#[test]
fn depth_and_number_are_bounded() {
    let deep = |open: &str, inside: &str, close: &str| {
        format!("a SEARCH {}{inside}{}", open.repeat(50_000), close.repeat(50_000))
    };
    assert_eq!(fault(&deep("(", "ALL", ")")), CommandFault::Value(ValueError::TooDeep));
    assert_eq!(fault(&deep("NOT ", "ALL", "")), CommandFault::TooDeep);
    assert_eq!(fault(&deep("OR ALL ", "ALL", "")), CommandFault::TooDeep);
    assert_eq!(
        fault(&format!("a FETCH 1 ({})", "UID ".repeat(200_000))),
        CommandFault::Value(ValueError::TooMany)
    );
    assert_eq!(fault(&format!("a FETCH 1 BODY[{}]", "1.".repeat(40))), CommandFault::Section);
    assert_eq!(fault(&format!("a FETCH {}1 UID", "1,".repeat(40_000))), CommandFault::Set);
    let body = format!("* 1 FETCH (BODY {}\"a\"{})", "(".repeat(31), ")".repeat(31));
    let parts = [Part::Text(body.into_bytes())];
    assert!(Response::parse(&parts, NameEncoding::Utf7, ValueLimits::default()).is_err());
    let limits = ValueLimits { depth: 1, values: 3 };
    assert_eq!(parse_values(&[Part::Text(b"a b c d".to_vec())], limits), Err(ValueError::TooMany));
}

#[test]
fn wrong_commands_say_why() {
    for (line, why) in [
        ("", CommandFault::Tag),
        ("+a NOOP", CommandFault::Tag),
        ("a", CommandFault::Missing),
        ("a FOO", CommandFault::Unknown),
        ("a UID NOOP", CommandFault::Unknown),
        ("a NOOP 1", CommandFault::TooMany),
        ("a SELECT", CommandFault::Missing),
        ("a SELECT &2D0-", CommandFault::Mailbox),
        ("a FETCH 0 UID", CommandFault::Set),
        ("a FETCH 1 ()", CommandFault::Missing),
        ("a FETCH 1 BODY[0]", CommandFault::Section),
        ("a FETCH 1 BODY[]<0.0>", CommandFault::Section),
        ("a FETCH 1 BODY[MIME]", CommandFault::Section),
        ("a FETCH 1 BODY[HEADER.FIELDS ()]", CommandFault::Section),
        ("a FETCH 1 BODY[1", CommandFault::Value(ValueError::OpenSection)),
        ("a SEARCH CHARSET KOI8-R ALL", CommandFault::Charset),
        ("a SEARCH SINCE 31-Feb-2024", CommandFault::Date),
        ("a SEARCH RETURN (PARTIAL 0:5) ALL", CommandFault::Number),
        ("a STORE 1 FLAGS (\\Se(en)", CommandFault::Value(ValueError::OpenList)),
        ("a STORE 1 FLAGS \"x\"", CommandFault::Flag),
        ("a LOGIN ada \"open", CommandFault::Value(ValueError::OpenString)),
        ("a AUTHENTICATE PLAIN !", CommandFault::Sasl),
        ("a NOOP)", CommandFault::Value(ValueError::Closed)),
    ] {
        assert_eq!(fault(line), why, "{line}");
    }
}

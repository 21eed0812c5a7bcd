//! Literals: announced before they come, kept, handed on, or left out.

use scrinium_imap_wire::{
    Decision, FrameError, FrameLimits, FrameReader, FrameStep, Literal, Part, Speaker, TaggedCommand,
};

use crate::arbitrary::LIMITS;

/// What a session of these bytes does, if the caller decides so about each literal.
fn run(bytes: &[u8], piece: usize, decision: Decision) -> Result<Vec<String>, FrameError> {
    let mut reader = FrameReader::new(LIMITS, Speaker::Client);
    let mut seen: Vec<String> = Vec::new();
    let mut data = String::new();
    for piece in bytes.chunks(piece) {
        let mut rest = piece;
        loop {
            let (consumed, step) = reader.read(rest)?;
            rest = &rest[consumed..];
            match step {
                FrameStep::More => break,
                FrameStep::Announced(Literal { bytes, waits, .. }) => {
                    seen.push(format!("{bytes}{}", if waits { " waits" } else { "" }));
                    if let Some(parts) = reader.decide(decision)? {
                        seen.push(format!("refused {}", TaggedCommand::tag_of(&parts).unwrap()));
                    }
                }
                FrameStep::Data(bytes) => data.push_str(std::str::from_utf8(bytes).unwrap()),
                FrameStep::Frame(parts) => seen.push(format!("frame of {} {data}", parts.len())),
                FrameStep::Refused(parts) => {
                    seen.push(format!("refused {}", TaggedCommand::tag_of(&parts).unwrap()));
                }
            }
        }
    }
    Ok(seen)
}

const MESSAGE: &[u8] = b"a APPEND x {12+}\r\nb LOGOUT {9}\r\nc NOOP\r\n";

#[test]
fn a_message_that_is_refused_is_not_taken_for_commands() {
    for piece in 1..40 {
        let seen = run(b"a APPEND x {12+}\r\nb DELETE y\r\n\r\nc NOOP\r\n", piece, Decision::Refuse).unwrap();
        assert_eq!(seen, ["12", "refused a", "frame of 1 "], "in pieces of {piece}");
        // A second message, for which the client waits, is not sent.
        let seen = run(b"a APPEND x {2+}\r\nhi {5}\r\nc NOOP\r\n", piece, Decision::Refuse).unwrap();
        assert_eq!(seen, ["2", "refused a", "frame of 1 "]);
        // The client waited for the first: it continues another command.
        let seen = run(b"a APPEND x {5}\r\nc NOOP\r\n", piece, Decision::Refuse).unwrap();
        assert_eq!(seen, ["5 waits", "refused a", "frame of 1 "]);
    }
}

#[test]
fn a_message_is_handed_on_while_it_comes() {
    for piece in 1..40 {
        let seen =
            run(b"a APPEND x {12}\r\nb DELETE {9} (\\Seen)\r\nc NOOP\r\n", piece, Decision::Stream).unwrap();
        assert_eq!(seen, ["12 waits", "frame of 3 b DELETE {9}", "frame of 1 b DELETE {9}"]);
    }
    assert_eq!(run(MESSAGE, 7, Decision::Keep).unwrap(), ["12", "frame of 3 ", "frame of 1 "]);
}

#[test]
fn nothing_is_kept_beyond_the_limits() {
    let limits = FrameLimits { bytes: 20, literals: 2, bare_line_feed: false };
    let mut reader = FrameReader::new(limits, Speaker::Client);
    assert_eq!(reader.read(&[b'a'; 21]), Err(FrameError::TooLong(20)));
    let mut reader = FrameReader::new(limits, Speaker::Client);
    let announced = b"a {99999999999}\r\n";
    let (_, step) = reader.read(announced).unwrap();
    assert_eq!(step, FrameStep::Announced(Literal { bytes: 99_999_999_999, waits: true, binary: false }));
    assert_eq!(reader.read(b"x"), Err(FrameError::Undecided));
    assert_eq!(reader.decide(Decision::Keep), Err(FrameError::TooLong(20)));
    let mut reader = FrameReader::new(limits, Speaker::Client);
    let mut rest = b"a {0+}\r\n {0+}\r\n {0+}\r\n".as_slice();
    let outcome = loop {
        match reader.read(rest) {
            Ok((consumed, FrameStep::Announced(_))) => {
                reader.decide(Decision::Keep).unwrap();
                rest = &rest[consumed..];
            }
            outcome => break outcome,
        }
    };
    assert_eq!(outcome, Err(FrameError::TooManyLiterals(2)));
    assert_eq!(FrameReader::new(LIMITS, Speaker::Client).read(b"a NOOP\n"), Err(FrameError::BareLineFeed));
}

#[test]
fn text_for_people_that_ends_like_a_literal_is_text() {
    let mut reader = FrameReader::new(LIMITS, Speaker::Server);
    for line in ["* OK see {12}", "a1 NO no more than {5}", "+ go on {3}"] {
        let bytes = format!("{line}\r\n");
        let (consumed, step) = reader.read(bytes.as_bytes()).unwrap();
        assert_eq!(
            (consumed, step),
            (bytes.len(), FrameStep::Frame(vec![Part::Text(line.as_bytes().to_vec())]))
        );
    }
}

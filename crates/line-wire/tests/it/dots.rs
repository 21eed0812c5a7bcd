//! Texts with dots: what is written is read, and only one thing ends a text.

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_line_wire::{BareEnds, DotLimits, DotReader, DotWriter, LineEndCheck, TextFault};

const LIMITS: DotLimits = DotLimits { text_bytes: 1 << 20, line_bytes: 1 << 16 };

struct Outcome {
    text: Vec<u8>,
    consumed: usize,
    finished: bool,
    fault: Option<TextFault>,
}

fn read(bytes: &[u8], piece: usize, limits: DotLimits, bare_ends: BareEnds) -> Outcome {
    let mut reader = DotReader::new(limits, bare_ends);
    let (mut text, mut consumed, mut finished) = (Vec::new(), 0, false);
    for piece in bytes.chunks(piece) {
        let progress = reader.read(piece, |bytes| text.extend_from_slice(bytes));
        consumed += progress.consumed;
        finished = progress.finished;
        if finished {
            break;
        }
    }
    assert_eq!(reader.text_bytes(), text.len() as u64);
    Outcome { text, consumed, finished, fault: reader.fault() }
}

fn write(text: &[u8], piece: usize, bare_ends: BareEnds) -> Result<Vec<u8>, TextFault> {
    let mut writer = DotWriter::new(bare_ends);
    let mut out = Vec::new();
    for piece in text.chunks(piece) {
        writer.write(piece, &mut out)?;
    }
    writer.finish(&mut out)?;
    Ok(out)
}

/// Bytes of which line ends and dots are made.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop::sample::select(b"a..\r\n\r\n\0\xff".to_vec()), 0..40)
}

/// Lines with proper ends.
fn text() -> impl Strategy<Value = Vec<u8>> {
    vec(vec(prop::sample::select(b"a.\0\xff ".to_vec()), 0..5), 0..8)
        .prop_map(|lines| lines.iter().flat_map(|line| line.iter().copied().chain(*b"\r\n")).collect())
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(text in text(), pieces in (1_usize..9, 1_usize..9)) {
        let mut sent = write(&text, pieces.0, BareEnds::Refuse).unwrap();
        let end = sent.len();
        sent.extend_from_slice(b"NOOP\r\n");
        let outcome = read(&sent, pieces.1, LIMITS, BareEnds::Refuse);
        prop_assert_eq!(outcome.text, text);
        prop_assert_eq!((outcome.consumed, outcome.finished, outcome.fault), (end, true, None));
    }

    #[test]
    fn the_end_is_where_five_bytes_stand(bytes in bytes(), piece in 1_usize..9) {
        // The simple model: with a CR LF before it, the text ends at the first CR LF . CR LF.
        let framed = [b"\r\n".as_slice(), &bytes].concat();
        let end = framed.windows(5).position(|window| window == b"\r\n.\r\n").map(|at| at + 3);
        for bare_ends in [BareEnds::Refuse, BareEnds::Normalise] {
            let outcome = read(&bytes, piece, LIMITS, bare_ends);
            prop_assert_eq!(outcome.finished.then_some(outcome.consumed), end);
        }
    }

    #[test]
    fn what_is_given_out_has_proper_line_ends(bytes in bytes(), piece in 1_usize..9) {
        let outcome = read(&bytes, piece, LIMITS, BareEnds::Normalise);
        let mut check = LineEndCheck::default();
        check.read(&outcome.text);
        prop_assert_eq!(check.finish(), None);
        // Written again it ends nowhere but at its end.
        let sent = write(&outcome.text, piece, BareEnds::Refuse).unwrap();
        prop_assert_eq!(read(&sent, 3, LIMITS, BareEnds::Refuse).consumed, sent.len());
    }

    #[test]
    fn any_text_can_be_sent_normalised(bytes in bytes(), pieces in (1_usize..9, 1_usize..9)) {
        let sent = write(&bytes, pieces.0, BareEnds::Normalise).unwrap();
        let outcome = read(&sent, pieces.1, LIMITS, BareEnds::Refuse);
        prop_assert_eq!((outcome.consumed, outcome.finished, outcome.fault), (sent.len(), true, None));
        let mut check = LineEndCheck::default();
        check.read(&bytes);
        prop_assert_eq!(write(&bytes, pieces.0, BareEnds::Refuse).is_ok(), check.finish().is_none());
    }
}

/// Ends that some server takes for the end of a message, with what stands behind the message.
const SMUGGLED: &[&[u8]] = &[
    b"\n.\n",
    b"\n.\r\n",
    b"\r\n.\n",
    b"\r.\r",
    b"\r\n.\r",
    b"\r.\r\n",
    b"\r\n.\r\r\n",
    b"\n\n.\r\n",
    b"\r\n\0.\r\n",
    b"\r\n.\0\r\n",
];

#[test]
fn no_other_end_smuggles_a_second_message() {
    for end in SMUGGLED {
        for piece in 1..20 {
            let mut bytes = b"Subject: one".to_vec();
            bytes.extend_from_slice(end);
            bytes.extend_from_slice(b"MAIL FROM:<a@b.test>\r\n.\r\n");
            let outcome = read(&bytes, piece, LIMITS, BareEnds::Refuse);
            assert_eq!(outcome.consumed, bytes.len(), "{:?}", String::from_utf8_lossy(end));
            assert!(outcome.finished);
            let has_nul = end.contains(&0);
            assert_eq!(outcome.fault.is_some(), !has_nul, "{:?}", String::from_utf8_lossy(end));
        }
    }
}

#[test]
fn an_empty_text_ends_at_once_and_a_first_dot_is_taken_away() {
    let empty = read(b".\r\nQUIT\r\n", 99, LIMITS, BareEnds::Refuse);
    assert_eq!((empty.text.as_slice(), empty.consumed, empty.finished), (b"".as_slice(), 3, true));
    assert_eq!(write(b"", 1, BareEnds::Refuse).unwrap(), b".\r\n");
    let stuffed = read(b"..first\r\n.second\r\n.\r\n", 1, LIMITS, BareEnds::Refuse);
    assert_eq!(stuffed.text, b".first\r\nsecond\r\n");
    assert_eq!(write(b"no end", 9, BareEnds::Refuse).unwrap(), b"no end\r\n.\r\n");
}

#[test]
fn a_text_beyond_its_limits_is_read_to_its_end_and_not_given_out() {
    let limits = DotLimits { text_bytes: 10, line_bytes: 6 };
    let long = read(b"12345\r\n12345\r\n12345\r\n.\r\n", 4, limits, BareEnds::Refuse);
    assert_eq!(long.fault, Some(TextFault::TooLong { limit_bytes: 10 }));
    assert!(long.finished && long.text.len() <= 10);
    let wide = read(b"1234567\r\n.\r\n", 1, limits, BareEnds::Refuse);
    assert_eq!(wide.fault, Some(TextFault::LineTooLong { limit_bytes: 6 }));
    assert!(wide.finished);
}

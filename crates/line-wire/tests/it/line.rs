//! Where lines end.

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_line_wire::{LineEnds, LineError, LineScanner, LineSkipper};

/// All lines of `bytes`, which come in pieces of `piece` bytes.
fn lines(bytes: &[u8], piece: usize, ends: LineEnds, limit: usize) -> Result<Vec<Vec<u8>>, LineError> {
    let mut scanner = LineScanner::new(limit, ends);
    let (mut buffer, mut lines) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        while let Some(line) = scanner.find(&buffer)? {
            let (text, consumed) = (line.text.to_vec(), line.consumed);
            lines.push(text);
            buffer.drain(..consumed);
        }
        assert!(buffer.len() <= limit + 1, "no more than a line waits");
    }
    Ok(lines)
}

proptest! {
    #[test]
    fn the_pieces_do_not_matter(bytes in vec(prop::sample::select(b"ab.\r\n\0\xff".to_vec()), 0..60), piece in 1_usize..9) {
        for ends in [LineEnds::Strict, LineEnds::Lenient] {
            let whole = lines(&bytes, 60, ends, 60);
            let pieces = lines(&bytes, piece, ends, 60);
            prop_assert_eq!(whole.is_ok(), pieces.is_ok());
            if let (Ok(whole), Ok(pieces)) = (whole, pieces) {
                prop_assert_eq!(whole, pieces);
            }
        }
    }

    #[test]
    fn strict_lines_put_together_are_the_bytes(texts in vec(vec(prop::sample::select(b"a .\0\xff".to_vec()), 0..9), 0..9), piece in 1_usize..9) {
        let mut bytes = Vec::new();
        for text in &texts {
            bytes.extend_from_slice(text);
            bytes.extend_from_slice(b"\r\n");
        }
        prop_assert_eq!(lines(&bytes, piece, LineEnds::Strict, 9), Ok(texts));
    }
}

#[test]
fn a_line_end_of_one_byte_is_an_error_where_lines_are_strict() {
    for piece in 1..8 {
        assert_eq!(lines(b"QUIT\n", piece, LineEnds::Strict, 99), Err(LineError::BareLineFeed));
        assert_eq!(lines(b"QU\rIT\r\n", piece, LineEnds::Strict, 99), Err(LineError::BareCarriageReturn));
        assert_eq!(lines(b"QUIT\r\r\n", piece, LineEnds::Strict, 99), Err(LineError::BareCarriageReturn));
        assert_eq!(lines(b"QUIT\n", piece, LineEnds::Lenient, 99), Ok(vec![b"QUIT".to_vec()]));
    }
}

#[test]
fn a_long_line_is_refused_before_its_end_comes_and_can_be_skipped() {
    let exact = [b"12345678\r\n".as_slice()].concat();
    assert_eq!(lines(&exact, 1, LineEnds::Strict, 8), Ok(vec![b"12345678".to_vec()]));
    let mut scanner = LineScanner::new(8, LineEnds::Strict);
    assert_eq!(scanner.find(b"123456789"), Err(LineError::TooLong { limit_bytes: 8 }));
    let mut skipper = LineSkipper::default();
    assert_eq!(skipper.skip(b"123456789\r"), None);
    assert_eq!(skipper.skip(b"\nNOOP\r\n"), Some(1));
    assert_eq!(scanner.find(b"NOOP\r\n").unwrap().unwrap().text, b"NOOP");
}

//! Any bytes as lines, as a text with dots and as an exchange of SASL, in pieces of any size: no panic, the same whatever
//! the pieces, and what is read is written so that it is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_line_wire::{
    BareEnds, DotLimits, DotReader, DotWriter, InitialResponse, LineEndCheck, LineEnds, LineScanner, Mechanism, client_line,
};

const LIMITS: DotLimits = DotLimits { text_bytes: 1 << 20, line_bytes: 1000 };

/// What a reader gives out of `bytes` in pieces of a size, and how much of it is the text.
fn read(bytes: &[u8], piece: usize, bare_ends: BareEnds) -> (Vec<u8>, usize, bool) {
    let (mut reader, mut text, mut consumed) = (DotReader::new(LIMITS, bare_ends), Vec::new(), 0);
    for piece in bytes.chunks(piece) {
        let progress = reader.read(piece, |bytes| text.extend_from_slice(bytes));
        consumed += progress.consumed;
        if progress.finished {
            return (text, consumed, reader.fault().is_some());
        }
    }
    (text, consumed, reader.fault().is_some())
}

fuzz_target!(|bytes: &[u8]| {
    for ends in [LineEnds::Strict, LineEnds::Lenient] {
        let (mut scanner, mut rest) = (LineScanner::new(4096, ends), bytes);
        while let Ok(Some(line)) = scanner.find(rest) {
            assert!(!line.text.contains(&b'\n'));
            if let Ok(answer) = client_line(line.text) {
                assert_eq!(client_line(answer.encode().as_bytes()), Ok(answer));
            }
            if let Ok(response) = InitialResponse::decode(line.text) {
                assert_eq!(InitialResponse::decode(response.encode().as_bytes()), Ok(response));
            }
            let _ = Mechanism::parse(line.text);
            rest = &rest[line.consumed..];
        }
    }
    let piece = 1 + usize::from(bytes.first().copied().unwrap_or_default() % 7);
    for bare_ends in [BareEnds::Refuse, BareEnds::Normalise] {
        let (whole, end, faulty) = read(bytes, bytes.len().max(1), bare_ends);
        let (text, end_in_pieces, faulty_in_pieces) = read(bytes, piece, bare_ends);
        assert_eq!((end, faulty), (end_in_pieces, faulty_in_pieces));
        // Of a line that is too long more or less may have been given out before that was seen.
        assert!(faulty || text == whole);
    }
    let (text, ..) = read(bytes, piece, BareEnds::Normalise);
    let (mut writer, mut sent) = (DotWriter::new(BareEnds::Normalise), Vec::new());
    writer.write(&text, &mut sent).expect("line ends are normalised");
    writer.finish(&mut sent).expect("line ends are normalised");
    let mut check = LineEndCheck::default();
    check.read(&sent);
    assert_eq!(check.finish(), None);
    let (again, consumed, _) = read(&sent, sent.len(), BareEnds::Refuse);
    assert!(consumed == sent.len() && again.starts_with(text.strip_suffix(b"\r\n").unwrap_or(&text)));
});

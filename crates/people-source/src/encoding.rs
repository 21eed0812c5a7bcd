//! The text of a file whose encoding nobody says.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// The text of a file: by the mark at its beginning; as UTF-16 if every other byte of its beginning is zero, as Windows
/// writes it without a mark; as UTF-8 if it is; and else as Windows-1252, which Excel writes.
#[must_use]
pub fn decode(bytes: &[u8]) -> String {
    let (encoding, mark_bytes) = Encoding::for_bom(bytes).unwrap_or_else(|| (guessed(bytes), 0));
    let text = bytes.get(mark_bytes..).unwrap_or_default();
    encoding.decode_without_bom_handling(text).0.into_owned()
}

fn guessed(bytes: &[u8]) -> &'static Encoding {
    const LOOKED_AT: usize = 1024;
    let beginning = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    let zeros = |odd: usize| beginning.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let pairs = beginning.len() / 2;
    if pairs > 0 && zeros(1) * 4 > pairs * 3 {
        UTF_16LE
    } else if pairs > 0 && zeros(0) * 4 > pairs * 3 {
        UTF_16BE
    } else if std::str::from_utf8(bytes).is_ok() {
        UTF_8
    } else {
        WINDOWS_1252
    }
}

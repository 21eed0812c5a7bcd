//! What calendars 1.0 and cards 2.1 have besides: values that are quoted-printable or in a character set of their own, and
//! parameters without a name. Address books still export them.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

pub(super) const QUOTED_PRINTABLE: &str = "QUOTED-PRINTABLE";

/// The parameter that a value without a name belongs to.
pub(super) fn parameter_of(value: &str) -> &'static str {
    match value.to_ascii_uppercase().as_str() {
        "7BIT" | "8BIT" | "BASE64" | QUOTED_PRINTABLE => "ENCODING",
        "INLINE" | "CONTENT-ID" | "CID" | "URL" => "VALUE",
        _ => "TYPE",
    }
}

/// Whether a line may go on behind a `=` at its end.
pub(super) fn may_break_softly(line: &[u8]) -> bool {
    let head = line.split(|byte| *byte == b':').next().unwrap_or_default();
    let name = QUOTED_PRINTABLE.as_bytes();
    head.len() < line.len() && head.windows(name.len()).any(|window| window.eq_ignore_ascii_case(name))
}

/// A quoted-printable value, whose soft line breaks are gone already.
pub(super) fn decoded(value: &str, charset: Option<&str>) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'=').then(|| after.first_chunk::<2>().and_then(hexadecimal)).flatten();
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    decoded_bytes(&bytes, charset)
}

fn hexadecimal(digits: &[u8; 2]) -> Option<u8> {
    let [high, low] =
        digits.map(|digit| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok()));
    Some(high? << 4 | low?)
}

/// The text of bytes: in the character set that is named, else UTF-8, else what Windows wrote in the West.
fn decoded_bytes(bytes: &[u8], charset: Option<&str>) -> String {
    let named = charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = named.filter(|encoding| encoding.is_ascii_compatible()).unwrap_or(UTF_8);
    if encoding == UTF_8 {
        match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
        }
    } else {
        encoding.decode_without_bom_handling(bytes).0.into_owned()
    }
}

/// The text of a line that is not UTF-8, by the character set that it names.
pub(super) fn decoded_line(line: &[u8]) -> String {
    let head = line.split(|byte| *byte == b':').next().unwrap_or_default();
    let head = String::from_utf8_lossy(head).to_ascii_uppercase();
    let charset = head.split(';').find_map(|part| part.trim().strip_prefix("CHARSET="));
    decoded_bytes(line, charset.map(|charset| charset.trim_matches('"')))
}

/// Writes a quoted-printable line of at most `most` bytes, and what does not fit behind soft breaks. No escape is cut.
pub(super) fn fold(line: &str, most: usize, out: &mut Vec<u8>) {
    let mut length = 0;
    let mut rest = line;
    while let Some(character) = rest.chars().next() {
        let is_escape = character == '=' && rest.len() >= 3 && rest.is_char_boundary(3);
        let (unit, after) = rest.split_at(if is_escape { 3 } else { character.len_utf8() });
        // One byte is left for the `=` of the break.
        if length + unit.len() + 1 > most {
            out.extend_from_slice(b"=\r\n");
            length = 0;
        }
        length += unit.len();
        out.extend_from_slice(unit.as_bytes());
        rest = after;
    }
    out.extend_from_slice(b"\r\n");
}

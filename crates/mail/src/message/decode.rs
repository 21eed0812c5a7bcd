//! Transfer encodings (RFC 2045 §6), decoded so that damage loses as little as possible, and text as documents keep it.

use super::parameters::after_comment;
use crate::notes::Notes;

/// How a part's bytes are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferEncoding {
    /// 7bit, 8bit, binary, and whatever is not known.
    Plain,
    Base64,
    QuotedPrintable,
    /// Of the time before MIME, and never standardised.
    Uuencode,
}

impl TransferEncoding {
    /// The encoding that a field names. A comment may stand on either side, and quotes that none should.
    pub(super) fn named(field: &[u8], notes: &mut Notes) -> Self {
        let mut rest = field.trim_ascii_start();
        while let Some(after) = after_comment(rest) {
            rest = after.trim_ascii_start();
        }
        let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"(;,\"".contains(byte);
        let end = rest.iter().position(ends).unwrap_or(rest.len());
        match rest.get(..end).unwrap_or_default().to_ascii_lowercase().as_slice() {
            b"" | b"7bit" | b"8bit" | b"binary" | b"7-bit" | b"8-bit" | b"none" | b"7" | b"8" => {}
            b"base64" => return Self::Base64,
            b"quoted-printable" => return Self::QuotedPrintable,
            b"x-uuencode" | b"x-uue" | b"uuencode" | b"uue" => return Self::Uuencode,
            _ => notes.add("a part has an unknown transfer encoding"),
        }
        Self::Plain
    }
}

/// Base64 without regard for line ends and stray characters; each padding ends a piece, as in mail that was
/// encoded in pieces.
pub(super) fn base64(bytes: &[u8], notes: &mut Notes) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len() / 4 * 3);
    let (mut held, mut held_bits) = (0_u32, 0_u32);
    let mut stray = false;
    for &byte in bytes {
        let Some(six_bits) = base64_value(byte) else {
            stray |= !byte.is_ascii_whitespace() && byte != b'=';
            if byte == b'=' {
                held_bits = 0;
            }
            continue;
        };
        held = (held << 6) | u32::from(six_bits);
        held_bits += 6;
        if held_bits >= 8 {
            held_bits -= 8;
            decoded.extend(u8::try_from((held >> held_bits) & 0xff));
        }
    }
    if stray {
        notes.add("a part's base64 holds invalid characters");
    }
    decoded
}

/// How many bytes the base64 text stands for, without decoding it.
pub(super) fn base64_length(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| base64_value(byte).is_some()).count() * 3 / 4
}

/// What a character of base64 stands for.
pub(super) fn base64_value(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Quoted-printable; what is not an escape stays as it stands (RFC 2045 §6.7, robust implementation).
pub(super) fn quoted_printable(bytes: &[u8], notes: &mut Notes) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let text = line.trim_ascii_end();
        let (text, soft) = match text.strip_suffix(b"=") {
            Some(text) => (text, true),
            None => (text, false),
        };
        unescape(text, &mut decoded, notes);
        if !soft && line.ends_with(b"\n") {
            decoded.push(b'\n');
        }
    }
    decoded
}

fn unescape(text: &[u8], decoded: &mut Vec<u8>, notes: &mut Notes) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'=') {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        decoded.extend_from_slice(before);
        match from.get(1..).and_then(hex_byte) {
            Some(byte) => {
                decoded.push(byte);
                rest = from.get(3..).unwrap_or_default();
            }
            None => {
                notes.add("a part's quoted-printable holds invalid escapes");
                decoded.push(b'=');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    decoded.extend_from_slice(rest);
}

/// The byte that two hexadecimal digits at the beginning of `digits` stand for.
pub(super) fn hex_byte(digits: &[u8]) -> Option<u8> {
    let value = |digit: &u8| char::from(*digit).to_digit(16);
    let byte = value(digits.first()?)? * 16 + value(digits.get(1)?)?;
    u8::try_from(byte).ok()
}

/// A number of a few decimal digits and nothing else.
pub(super) fn number(digits: &[u8]) -> Option<u32> {
    let is_number = !digits.is_empty() && digits.len() <= 9 && digits.iter().all(u8::is_ascii_digit);
    if is_number { std::str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

/// The beginning of encoded text that is decoded whole: an escape that is cut in its middle is left out.
pub(super) fn without_cut_escape(encoded: &[u8]) -> &[u8] {
    let tail = encoded.len().saturating_sub(2);
    let cut = encoded.get(tail..).and_then(|last| last.iter().position(|&byte| byte == b'='));
    cut.and_then(|cut| encoded.get(..tail + cut)).unwrap_or(encoded)
}

/// Text as a document keeps it: line feeds as line ends, no other control characters than tabs.
pub(super) fn clean_lines(text: &str, notes: &mut Notes) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut nulls = false;
    let mut characters = text.strip_prefix('\u{feff}').unwrap_or(text).chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' if characters.peek() == Some(&'\n') => {}
            '\r' | '\n' => cleaned.push('\n'),
            '\t' => cleaned.push('\t'),
            '\u{c}' => cleaned.push('\n'),
            '\0' => nulls = true,
            other if other.is_control() => {}
            other => cleaned.push(other),
        }
    }
    if nulls {
        notes.add("NUL characters were left out of the text");
    }
    cleaned
}

/// One line of text for a field: control characters and line ends become single spaces, cut at
/// `most_characters`.
pub(super) fn clean_field(text: &str, most_characters: usize, notes: &mut Notes) -> String {
    let mut cleaned = String::with_capacity(text.len().min(most_characters));
    let mut count = 0;
    for character in text.trim().chars() {
        let character = if character.is_control() || character.is_whitespace() { ' ' } else { character };
        if character == ' ' && cleaned.ends_with(' ') {
            continue;
        }
        if count == most_characters {
            notes.add("a header field was too long and was cut");
            break;
        }
        cleaned.push(character);
        count += 1;
    }
    if text.contains('\0') {
        notes.add("NUL characters were left out of the header");
    }
    cleaned.truncate(cleaned.trim_end().len());
    cleaned
}

/// Cuts `text` to at most `most_bytes`, between characters; whether anything was cut.
pub(super) fn cut(text: &mut String, most_bytes: usize) -> bool {
    if text.len() <= most_bytes {
        return false;
    }
    let end = (0..=most_bytes).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.truncate(end);
    true
}

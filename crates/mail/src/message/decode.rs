//! Transfer encodings (RFC 2045 §6) and character sets, decoded so that damage loses as little as possible.

use mail_parser::decoders::charsets::map::charset_decoder;

use crate::notes::Notes;

/// How a part's bytes are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferEncoding {
    /// 7bit, 8bit, binary, and whatever is not known.
    Plain,
    Base64,
    QuotedPrintable,
}

impl TransferEncoding {
    pub(super) fn named(name: &str, notes: &mut Notes) -> Self {
        let name = name.trim().trim_end_matches(';').trim();
        if name.eq_ignore_ascii_case("base64") {
            return Self::Base64;
        }
        if name.eq_ignore_ascii_case("quoted-printable") {
            return Self::QuotedPrintable;
        }
        if !["", "7bit", "8bit", "binary"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
            notes.add("a part has an unknown transfer encoding");
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
        notes.add("a part's base64 holds characters that are none of it");
    }
    decoded
}

/// How many bytes the base64 text stands for, without decoding it.
pub(super) fn base64_length(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| base64_value(byte).is_some()).count() * 3 / 4
}

fn base64_value(byte: u8) -> Option<u8> {
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
        let escape = from.get(1..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                rest = from.get(3..).unwrap_or_default();
            }
            None => {
                notes.add("a part's quoted-printable holds escapes that are none");
                decoded.push(b'=');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    decoded.extend_from_slice(rest);
}

/// Text in the character set that it claims, or in the likeliest one.
pub(super) fn text(bytes: &[u8], charset: Option<&str>, notes: &mut Notes) -> String {
    let label = charset.map(|label| label.trim_matches(|c: char| c.is_whitespace() || "\"'".contains(c)));
    match label {
        // Many senders write one of these over text that is in another set.
        None => {}
        Some(label)
            if ["", "us-ascii", "ascii", "utf-8", "utf8"].iter().any(|l| label.eq_ignore_ascii_case(l)) => {}
        Some(label) => match charset_decoder(label.as_bytes()) {
            Some(decode) => return decode(bytes),
            None => notes.add("a part has an unknown character set"),
        },
    }
    undeclared_text(bytes, notes)
}

/// Text of an undeclared set: UTF-8 if it is that, else Windows-1252, in which every byte means something.
pub(super) fn undeclared_text(bytes: &[u8], notes: &mut Notes) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    notes.add("text of an undeclared character set was read as Windows-1252");
    match charset_decoder(b"windows-1252") {
        Some(decode) => decode(bytes),
        None => String::from_utf8_lossy(bytes).into_owned(),
    }
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

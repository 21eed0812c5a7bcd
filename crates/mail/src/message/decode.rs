//! Transfer encodings (RFC 2045 §6), decoded so that damage loses as little as possible, and text as documents keep it.

use super::parameters::after_comment;
use crate::notes::Notes;

/// A line of base64 that stands among others has no fewer characters; a footer's words may be shorter.
const SHORTEST_LINE: usize = 40;

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
/// encoded in pieces. The footer that a mailing list has put after it stays as it is.
pub(super) fn base64(bytes: &[u8], notes: &mut Notes) -> Vec<u8> {
    if is_text(bytes) {
        notes.add("a part says that it is base64, and is plain text");
        return bytes.to_vec();
    }
    let (encoded, footer) = bytes.split_at_checked(footer_start(bytes)).unwrap_or((bytes, &[]));
    let mut decoded = Vec::with_capacity(encoded.len() / 4 * 3);
    let stray = base64_alone(encoded, |byte| decoded.push(byte));
    if stray {
        notes.add("a part's base64 holds invalid characters");
    }
    if !footer.is_empty() {
        notes.add("text that is not encoded stands after a part's base64");
        if !decoded.ends_with(b"\n") {
            decoded.push(b'\n');
        }
        decoded.extend_from_slice(footer);
    }
    decoded
}

/// Whether most lines have blanks between their words, as no line of base64 has.
fn is_text(bytes: &[u8]) -> bool {
    let (mut with_blanks, mut without) = (0_usize, 0_usize);
    for line in bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
        if line.iter().filter(|&&byte| byte == b' ').count() > 1 {
            with_blanks += 1;
        } else {
            without += 1;
        }
    }
    with_blanks > without
}

/// Where base64 ends and text begins: at a line with blanks or rules in it, after a whole group of four and before which
/// there is base64, and behind which there is none.
fn footer_start(bytes: &[u8]) -> usize {
    let (mut start, mut characters, mut position) = (bytes.len(), 0_usize, 0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let text = line.trim_ascii();
        if start < bytes.len() {
            if text.len() >= SHORTEST_LINE && text.iter().all(|&byte| is_base64(byte)) {
                start = bytes.len();
            }
        } else if (is_rule(text) || text.contains(&b' ')) && characters > 0 && characters.is_multiple_of(4) {
            start = position;
        }
        characters += text.iter().filter(|&&byte| is_base64(byte)).count();
        position += line.len();
    }
    start
}

/// Gives the bytes that base64 stands for to `take`; whether characters that are none of it stand in it.
fn base64_alone(bytes: &[u8], mut take: impl FnMut(u8)) -> bool {
    let mut reader = Base64Reader::default();
    for &byte in bytes {
        reader.next(byte).into_iter().for_each(&mut take);
    }
    reader.has_stray
}

/// Base64 read one character at a time.
#[derive(Debug, Default)]
struct Base64Reader {
    held: u32,
    held_bits: u32,
    is_padded: bool,
    /// What stands behind padding and a blank in the same line belongs to nothing.
    is_over: bool,
    /// Whether characters came that are none of base64.
    has_stray: bool,
}

impl Base64Reader {
    /// The byte that is whole with this character.
    fn next(&mut self, byte: u8) -> Option<u8> {
        self.is_over = byte != b'\n' && (self.is_over || (self.is_padded && matches!(byte, b' ' | b'\t')));
        let Some(six_bits) = base64_value(byte).filter(|_| !self.is_over) else {
            self.has_stray |= !byte.is_ascii_whitespace() && byte != b'=';
            self.is_padded = byte == b'=';
            if self.is_padded {
                self.held_bits = 0;
            }
            return None;
        };
        self.is_padded = false;
        self.held = (self.held << 6) | u32::from(six_bits);
        self.held_bits += 6;
        if self.held_bits < 8 {
            return None;
        }
        self.held_bits -= 8;
        u8::try_from((self.held >> self.held_bits) & 0xff).ok()
    }
}

/// How many bytes base64 stands for that comes line by line, without the footer after it.
#[derive(Debug, Default)]
pub(super) struct Base64Length {
    reader: Base64Reader,
    bytes: usize,
    /// Characters of base64 in the lines that are over.
    characters: usize,
    /// The bytes before what may be a footer.
    before_footer: Option<usize>,
    line: Base64Line,
}

/// What is known of the line that is being read.
#[derive(Debug, Default)]
struct Base64Line {
    /// The bytes before it.
    bytes: usize,
    length: usize,
    characters: usize,
    has_blank: bool,
    is_rule: bool,
}

impl Base64Length {
    /// Takes a line without its end, or a piece of a long one.
    pub(super) fn text(&mut self, piece: &[u8]) {
        let text = piece.trim_ascii();
        self.line.is_rule |= self.line.length == 0 && is_rule(text);
        self.line.has_blank |= text.contains(&b' ');
        self.line.length += text.len();
        self.line.characters += text.iter().filter(|&&byte| is_base64(byte)).count();
        for &byte in piece {
            self.bytes += usize::from(self.reader.next(byte).is_some());
        }
    }

    /// A line is over.
    pub(super) fn line_end(&mut self) {
        self.reader.next(b'\n');
        self.close_line();
    }

    fn close_line(&mut self) {
        let Base64Line { bytes, length, characters, has_blank, is_rule } = std::mem::take(&mut self.line);
        if self.before_footer.is_some() {
            if length >= SHORTEST_LINE && characters == length {
                self.before_footer = None;
            }
        } else if (is_rule || has_blank) && self.characters > 0 && self.characters.is_multiple_of(4) {
            self.before_footer = Some(bytes);
        }
        self.characters += characters;
        self.line.bytes = self.bytes;
    }

    pub(super) fn finish(mut self) -> usize {
        self.close_line();
        self.before_footer.unwrap_or(self.bytes)
    }
}

/// How many bytes quoted-printable stands for that comes line by line.
#[derive(Debug, Default)]
pub(super) struct QuotedLength {
    bytes: usize,
    /// Whether the last line goes on with the next one.
    is_soft: bool,
    is_damaged: bool,
}

impl QuotedLength {
    /// Takes a line without its end, or a piece of one that is too long to be any.
    pub(super) fn text(&mut self, line: &[u8]) {
        let text = line.trim_ascii_end();
        let soft = text.strip_suffix(b"=");
        self.is_soft = soft.is_some();
        let mut rest = soft.unwrap_or(text);
        self.bytes += rest.len();
        while let Some(at) = rest.iter().position(|&byte| byte == b'=') {
            rest = rest.get(at + 1..).unwrap_or_default();
            if hex_byte(rest).is_some() {
                self.bytes -= 2;
                rest = rest.get(2..).unwrap_or_default();
            } else {
                self.is_damaged = true;
            }
        }
    }

    /// Takes the end of a line.
    pub(super) fn line_end(&mut self, end: &[u8]) {
        if !std::mem::take(&mut self.is_soft) {
            self.bytes += end.len();
        }
    }

    /// The length, and whether there were escapes that are none.
    pub(super) fn finish(self) -> (usize, bool) {
        (self.bytes, self.is_damaged)
    }
}

fn is_base64(byte: u8) -> bool {
    base64_value(byte).is_some() || byte == b'='
}

fn is_rule(line: &[u8]) -> bool {
    [&b"--"[..], b"__", b"=="].iter().any(|rule| line.starts_with(rule))
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
            let end: &[u8] = if line.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
            decoded.extend_from_slice(end);
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

#[cfg(test)]
mod tests {
    use super::{Base64Length, QuotedLength, TransferEncoding, base64, quoted_printable};
    use crate::notes::Notes;

    /// Gives the lines of `encoded` and their ends to two functions.
    fn by_lines(encoded: &[u8], counted: &mut impl FnMut(&[u8], Option<&[u8]>)) {
        for line in encoded.split_inclusive(|&byte| byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            counted(text, line.ends_with(b"\n").then(|| &line[text.len()..]));
        }
    }

    fn base64_length(encoded: &[u8]) -> usize {
        let mut length = Base64Length::default();
        by_lines(encoded, &mut |text, end| {
            length.text(text);
            if end.is_some() {
                length.line_end();
            }
        });
        length.finish()
    }

    #[test]
    fn a_length_that_is_counted_line_by_line_is_that_of_what_is_decoded() {
        for encoded in ["a=20b=\r\nc\r\n", "=C3=BC \nx=\n", "a==41=4\n", "=", "a=\n\nb", "", "x \t\r\n"] {
            let mut length = QuotedLength::default();
            by_lines(encoded.as_bytes(), &mut |text, end| {
                length.text(text);
                end.into_iter().for_each(|end| length.line_end(end));
            });
            let notes = &mut Notes::default();
            assert_eq!(length.finish().0, quoted_printable(encoded.as_bytes(), notes).len(), "{encoded:?}");
        }
    }

    #[test]
    fn base64_is_read_with_what_was_put_after_it() {
        let whole = "VGhpcyBsaW5lIGlzIG9mIGEgdXN1YWwgbGVuZ3RoLCBhbmQgaXQgaXMgd2hvbGUu\n";
        let text = "This line is of a usual length, and it is whole.";
        for (encoded, decoded) in [
            ("SGVsbG8=".to_owned(), "Hello".to_owned()),
            ("SGVsbG8".to_owned(), "Hello".to_owned()),
            ("SGVs*bG8=".to_owned(), "Hello".to_owned()),
            ("SGVs bG8=".to_owned(), "Hello".to_owned()),
            ("SGVsbG8= what stands here\nSGVsbG8=".to_owned(), "HelloHello".to_owned()),
            ("Not encoded at all\nin any way".to_owned(), "Not encoded at all\nin any way".to_owned()),
            ("SGVsbG8=\n____\nList of us\n".to_owned(), "Hello\n____\nList of us\n".to_owned()),
            (format!("{whole}--\nUnsubscribe here\n"), format!("{text}\n--\nUnsubscribe here\n")),
            (format!("SGVsbG8=\n{whole}"), format!("Hello{text}")),
        ] {
            let found = base64(encoded.as_bytes(), &mut Notes::default());
            assert_eq!(String::from_utf8_lossy(&found), decoded, "{encoded}");
            let is_all = !decoded.contains(char::is_whitespace) || decoded == text;
            assert!(!is_all || base64_length(encoded.as_bytes()) == decoded.len(), "{encoded}");
        }
        let damaged = base64(format!("{whole}a stray line\n{whole}").as_bytes(), &mut Notes::default());
        assert!(!String::from_utf8_lossy(&damaged).contains("stray"), "damage in the middle is no footer");
    }

    #[test]
    fn transfer_encodings_are_known_with_what_stands_around_them() {
        for (written, encoding) in [
            (&b"base64"[..], TransferEncoding::Base64),
            (b" BASE64 (as it were)", TransferEncoding::Base64),
            (b"(a (nested) comment) base64", TransferEncoding::Base64),
            (b"base64; charset=utf-8", TransferEncoding::Base64),
            (b"\"quoted-printable\"", TransferEncoding::QuotedPrintable),
            (b"quoted-printable trailing words", TransferEncoding::QuotedPrintable),
            (b"x-uuencode", TransferEncoding::Uuencode),
            (b"8bit", TransferEncoding::Plain),
            (b"no-such", TransferEncoding::Plain),
            (b"(base64", TransferEncoding::Plain),
            (b"", TransferEncoding::Plain),
        ] {
            let found = TransferEncoding::named(written, &mut Notes::default());
            assert_eq!(found, encoding, "{}", String::from_utf8_lossy(written));
        }
    }
}

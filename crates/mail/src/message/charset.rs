//! Character sets. Damage costs the characters that it is in, and never the text around them.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::code_pages::code_page;
use super::guess;
use super::seven_bit::{decode_hz, decode_iso_2022_kr, decode_utf7};
use super::structure::without_cut_character;
use crate::notes::Notes;

/// What shows that bytes belong to a character set that switches by escape sequences (ISO 2022), declared or not.
const JAPANESE_ESCAPES: [&[u8]; 3] = [b"\x1b$B", b"\x1b$@", b"\x1b(I"];

/// How bytes become characters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CharacterSet {
    /// None was named, or one that says nothing of bytes from 128 on.
    Undeclared,
    Utf8,
    /// One that browsers know (WHATWG Encoding Standard), read as they do.
    Standard(&'static Encoding),
    /// None was named, and the bytes look like this one.
    Guessed(&'static Encoding),
    /// A code page of DOS: the characters of the bytes from 128 on.
    CodePage(&'static str),
    /// RFC 2152.
    Utf7,
    /// RFC 1843.
    Hz,
    /// RFC 1557.
    Iso2022Kr,
    /// Its name means nothing to us.
    Unknown,
}

impl CharacterSet {
    /// The set of a label as mail writes it.
    pub(super) fn named(label: &str) -> Self {
        let label = label.trim_matches(|c: char| c.is_whitespace() || "\"'".contains(c)).to_ascii_lowercase();
        match label.as_str() {
            "" | "us-ascii" | "ascii" | "ansi_x3.4-1968" | "7bit" | "8bit" | "unknown-8bit" | "x-unknown"
            | "unknown" | "default" | "default_charset" | "none" | "iso-ir-6" | "binary" => {
                return Self::Undeclared;
            }
            "utf-7" | "utf7" | "csutf7" | "unicode-1-1-utf-7" | "x-unicode-2-0-utf-7" => return Self::Utf7,
            "hz-gb-2312" | "hz" => return Self::Hz,
            "iso-2022-kr" | "csiso2022kr" => return Self::Iso2022Kr,
            "utf-8" | "utf8" => return Self::Utf8,
            _ => {}
        }
        if let Some(number) = label
            .strip_prefix("ibm-")
            .or_else(|| label.strip_prefix("ibm"))
            .or_else(|| label.strip_prefix("cp"))
            && let Some(half) = code_page(number.trim_start_matches('0'))
        {
            return Self::CodePage(half);
        }
        if let Some(half) = code_page(&label) {
            return Self::CodePage(half);
        }
        match Encoding::for_label_no_replacement(label.as_bytes()).or_else(|| alias(&label)) {
            Some(encoding) if encoding == encoding_rs::UTF_8 => Self::Utf8,
            Some(encoding) => Self::Standard(encoding),
            None => Self::Unknown,
        }
    }

    /// Whether it says what bytes from 128 on mean, other than as UTF-8.
    pub(super) fn is_other_than_utf8(self) -> bool {
        !matches!(self, Self::Undeclared | Self::Unknown | Self::Utf8)
    }

    /// The text that `bytes` stand for. Of text that `is_cut`, a character that is not whole at the end is left out.
    pub(super) fn decode(self, bytes: &[u8], is_cut: bool, notes: &mut Notes) -> String {
        match self {
            Self::Undeclared => undeclared(bytes, is_cut, notes),
            Self::Unknown => {
                notes.add("a part has an unknown character set");
                undeclared(bytes, is_cut, notes)
            }
            Self::Utf8 => utf8(bytes, is_cut, notes),
            Self::Standard(encoding) => standard(encoding, bytes, is_cut, notes),
            Self::Guessed(encoding) => guessed(encoding, bytes, is_cut, notes),
            Self::CodePage(half) => bytes.iter().map(|&byte| of_code_page(half, byte)).collect(),
            Self::Utf7 => decode_utf7(bytes, is_cut),
            Self::Hz => decode_hz(bytes),
            Self::Iso2022Kr => decode_iso_2022_kr(bytes),
        }
    }
}

/// Labels that mail has and the Encoding Standard has not.
fn alias(label: &str) -> Option<&'static Encoding> {
    let standard =
        match label {
            "cp932" | "cswindows31j" | "ms-kanji" | "x-ms-cp932" | "shift_jisx0213" => "shift_jis",
            "cp936" | "ms936" | "windows-936" | "gb18030-2000" | "euc-cn" | "x-euc-cn" | "gb-2312"
            | "gb2312-80" => "gb18030",
            "cp949" | "ms949" | "windows-949" | "uhc" | "ks_c_5601" | "ksc-5601" | "ks-c-5601-1987"
            | "euckr" => "euc-kr",
            "cp950" | "ms950" | "windows-950" | "big-5" | "chinesebig5" | "x-big5" => "big5",
            "eucjp" | "ujis" => "euc-jp",
            "iso-2022-jp-1" | "iso-2022-jp-2" | "iso-2022-jp-3" | "iso-2022-jp-ms" | "cp50220"
            | "cp50221" => "iso-2022-jp",
            "koi8-ru" | "koi8u" => "koi8-u",
            "koi8r" => "koi8-r",
            "cp874" | "tis620" => "windows-874",
            "latin-1"
            | "iso-latin-1"
            | "iso8859_1"
            | "iso_8859_1"
            | "8859-1"
            | "iso8859"
            | "iso-8859"
            | "ansi"
            | "cp-1252"
            | "windows1252"
            | "iso-8859-1-windows-3.0-latin-1"
            | "iso-8859-1-windows-3.1-latin-1" => "windows-1252",
            "latin-2" | "iso8859_2" => "iso-8859-2",
            "latin-9" | "iso8859_15" | "latin9" => "iso-8859-15",
            "macroman" | "x-macroman" | "mac-roman" => "macintosh",
            "win-1250" | "windows1250" | "cp-1250" => "windows-1250",
            "win-1251" | "windows1251" | "win1251" | "cp-1251" => "windows-1251",
            "ucs-2" | "iso-10646-ucs-2" | "unicode" => "utf-16le",
            "cp65001" | "utf_8" | "unicode-2-0-utf-8" | "utf-8n" | "utf8mb4" => "utf-8",
            _ => return None,
        };
    Encoding::for_label(standard.as_bytes())
}

/// Text of no declared set: UTF-8 where most of it is that, else of the set that it looks like.
pub(super) fn undeclared(bytes: &[u8], is_cut: bool, notes: &mut Notes) -> String {
    if JAPANESE_ESCAPES.iter().any(|escape| contains(bytes, escape)) {
        return standard(encoding_rs::ISO_2022_JP, bytes, is_cut, notes);
    }
    let bytes = if is_cut { without_cut_character(bytes) } else { bytes };
    match guess::likely_set(&[bytes], "") {
        Some(encoding) => guessed(encoding, bytes, is_cut, notes),
        None => utf8(bytes, is_cut, notes),
    }
}

fn guessed(encoding: &'static Encoding, bytes: &[u8], is_cut: bool, notes: &mut Notes) -> String {
    if bytes.is_ascii() {
        return undeclared(bytes, is_cut, notes);
    }
    notes.add(&format!("text of an undeclared character set was read as {}", encoding.name()));
    if encoding == WINDOWS_1252 {
        return bytes.iter().map(|&byte| windows_1252(byte)).collect();
    }
    standard(encoding, bytes, is_cut, notes)
}

/// UTF-8; a byte that does not belong to it is taken for Windows-1252, and the beginning of a character for U+FFFD.
fn utf8(bytes: &[u8], is_cut: bool, notes: &mut Notes) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    let mut position = 0;
    let mut damaged = false;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        position += chunk.valid().len() + chunk.invalid().len();
        let is_end = position == bytes.len();
        match chunk.invalid() {
            [] => {}
            [first, ..] if is_cut && is_end && *first >= 0xc2 => {}
            [byte] => {
                damaged = true;
                text.push(windows_1252(*byte));
            }
            _ => {
                damaged = true;
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
    if damaged {
        notes.add("single bytes are not UTF-8 as the text around them is");
    }
    text
}

fn standard(encoding: &'static Encoding, bytes: &[u8], is_cut: bool, notes: &mut Notes) -> String {
    let is_utf16 = encoding == UTF_16LE || encoding == UTF_16BE;
    if is_utf16 && !bytes.contains(&0) && bytes.is_ascii() {
        // Anyone who converted the text left the old label on it.
        return undeclared(bytes, is_cut, notes);
    }
    let (encoding, bytes) = match Encoding::for_bom(bytes) {
        Some((marked, length)) if is_utf16 && marked != encoding_rs::UTF_8 => {
            (marked, bytes.get(length..).unwrap_or_default())
        }
        _ => (encoding, bytes),
    };
    let joined;
    let bytes = if encoding == encoding_rs::ISO_2022_JP {
        joined = without_idle_escapes(bytes);
        &joined
    } else {
        bytes
    };
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let room = decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(0);
    let mut text = String::with_capacity(room);
    let (_, _, damaged) = decoder.decode_to_string(bytes, &mut text, !is_cut);
    if damaged {
        notes.add("single bytes do not belong to the text's character set");
    }
    text
}

/// ISO-2022-JP without escapes that another one follows at once: text put together of pieces has them, and decoders that
/// follow the standard take them for damage.
fn without_idle_escapes(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        if matches!(rest, [0x1b, b'(' | b'$', _, 0x1b, ..]) {
            rest = rest.get(3..).unwrap_or_default();
        } else {
            kept.push(byte);
            rest = after;
        }
    }
    kept
}

/// The character of a byte in Windows-1252.
fn windows_1252(byte: u8) -> char {
    match byte {
        ..=0x7f => char::from(byte),
        0x81 | 0x8d | 0x8f | 0x90 | 0x9d => char::REPLACEMENT_CHARACTER,
        _ => {
            let mut text = [0; 4];
            let mut decoder = WINDOWS_1252.new_decoder_without_bom_handling();
            let (_, _, written, _) = decoder.decode_to_utf8(&[byte], &mut text, true);
            let text = text.get(..written).and_then(|text| std::str::from_utf8(text).ok());
            text.and_then(|text| text.chars().next()).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
    }
}

fn of_code_page(half: &str, byte: u8) -> char {
    match byte.checked_sub(0x80) {
        None => char::from(byte),
        Some(place) => half.chars().nth(usize::from(place)).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    wanted.first().is_some_and(|first| {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| byte == first) {
            rest = rest.get(at..).unwrap_or_default();
            if rest.starts_with(wanted) {
                return true;
            }
            rest = rest.get(1..).unwrap_or_default();
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::CharacterSet;
    use crate::notes::Notes;

    fn read(label: &str, bytes: &[u8]) -> String {
        CharacterSet::named(label).decode(bytes, false, &mut Notes::default())
    }

    #[test]
    fn a_byte_that_is_none_of_the_set_costs_its_character_alone() {
        let mixed = b"\xd0\x94\xd0\xb0 caf\xe9 \x96 Gr\xc3\xbc\xc3\x9fe \xe2\x82 end \x81";
        for label in ["utf-8", "UTF8", "", "us-ascii", "no-such-set", "unknown-8bit"] {
            assert_eq!(read(label, mixed), "Да café – Grüße \u{fffd} end \u{fffd}", "{label}");
        }
        assert_eq!(read("", b"na\xefve \xabd\xe9j\xe0\xbb"), "naïve «déjà»");
        assert_eq!(read("gb2312", b"\xc4\xe3\xff\xba\xc3"), "你\u{fffd}好");
        assert_eq!(read("euc-kr", b"\xb0\xa1 \xff b"), "가 \u{fffd} b");
        assert_eq!(read("shift_jis", b"\x93\xfa\x96{"), "日本");
    }

    #[test]
    fn text_that_is_cut_ends_with_a_whole_character() {
        for (label, bytes, whole) in [
            ("utf-8", &b"\xd0\x94\xd0"[..], "Д"),
            ("", b"ab\xe2\x82", "ab"),
            ("gbk", b"\xc4\xe3\xba", "你"),
            ("utf-16le", b"a\0b", "a"),
            ("iso-2022-jp", b"\x1b$BF|K", "日"),
            ("utf-7", b"a+AOQ", "aä"),
        ] {
            assert_eq!(
                CharacterSet::named(label).decode(bytes, true, &mut Notes::default()),
                whole,
                "{label}"
            );
        }
    }

    #[test]
    fn sets_have_the_names_that_mail_gives_them() {
        assert_eq!(read("cp437", b"\x84\xe1"), "äß");
        assert_eq!(read("IBM850", b"\xe1\x9b"), "ßø");
        assert_eq!(read("850", b"\xe1"), "ß");
        assert_eq!(read("\"ISO-8859-1\"", b"\xe4\x93"), "ä“");
        assert_eq!(read("cp932", b"\x93\xfa"), "日");
        assert_eq!(read("ks_c_5601-1987", b"\xb0\xa1"), "가");
        assert_eq!(read("hz-gb-2312", b"a ~{VPND~} ~~"), "a 中文 ~");
        assert_eq!(read("iso-2022-kr", b"\x1b$)C\x0e0!\x0f b"), "가 b");
        assert_eq!(read("utf-16", b"\xfe\xff\0a"), "a");
        assert_eq!(read("utf-16", b"plain"), "plain");
        assert_eq!(read("", b"\x1b$BF|K\\\x1b(B x"), "日本 x");
        assert_eq!(read("iso-2022-jp", b"\x1b$BF|\x1b(B\x1b$BK\\\x1b(B x"), "日本 x");
        assert_eq!(CharacterSet::named("x-no-such-set"), CharacterSet::Unknown);
    }
}

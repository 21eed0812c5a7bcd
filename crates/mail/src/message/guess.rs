//! Which character set text is of that declares none, as browsers guess it: by how often the characters that it would
//! hold follow each other in the languages of that set.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, WINDOWS_1252};

/// Fewer 8-bit characters than this do not tell languages apart.
const FEWEST_CHARACTERS: usize = 6;

/// More of a text than this is not looked at.
const MOST_BYTES: usize = 64 * 1024;

/// The set that undeclared texts of one message are most likely of; `None` where they are UTF-8 or ASCII. The sender's
/// top-level domain, in small letters or empty, decides where the bytes alone do not.
pub(super) fn likely_set(texts: &[&[u8]], top_level_domain: &str) -> Option<&'static Encoding> {
    if texts.iter().all(|text| is_mostly_utf8(text)) {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    for text in texts {
        let mut room = MOST_BYTES;
        // Lines without 8-bit characters say nothing of the set.
        for line in text.split_inclusive(|&byte| byte == b'\n').filter(|line| !line.is_ascii()) {
            let line = line.get(..room).unwrap_or(line);
            detector.feed(line, false);
            room -= line.len();
        }
        detector.feed(b"\n", false);
    }
    detector.feed(b"", true);
    let is_label = !top_level_domain.is_empty()
        && top_level_domain.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let domain = is_label.then_some(top_level_domain.as_bytes());
    let likely = detector.guess(domain, Utf8Detection::Deny);
    Some(if likely.is_single_byte() && says_too_little(texts) { WINDOWS_1252 } else { likely })
}

/// Whether there are too few 8-bit characters to tell languages apart, or none that is a letter in Windows-1252: quotes,
/// dashes and pounds stand in text of any language.
fn says_too_little(texts: &[&[u8]]) -> bool {
    let mut characters = texts.iter().flat_map(|text| text.iter()).filter(|byte| !byte.is_ascii());
    let is_sign = |byte: &u8| {
        matches!(byte, 0x80..=0xbf) && !b"\x8a\x8c\x8e\x9a\x9c\x9e\x9f\xaa\xb5\xba".contains(byte)
    };
    let few = characters.clone().nth(FEWEST_CHARACTERS - 1).is_none();
    few || characters.all(is_sign)
}

/// Whether no more bytes are broken than belong to characters of UTF-8. Text of two bytes a character has some by chance,
/// and UTF-8 that was cut or put together of pieces has some that are broken.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut whole, mut broken) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        whole += chunk.valid().bytes().filter(|byte| !byte.is_ascii()).count();
        broken += chunk.invalid().len();
    }
    whole >= broken
}

#[cfg(test)]
mod tests {
    use encoding_rs::Encoding;

    use super::likely_set;

    #[test]
    fn text_that_declares_no_set_is_of_the_one_that_it_looks_like() {
        for (label, domain, text) in [
            ("Big5", "tw", "這封信沒有說明它用的是哪一種編碼"),
            ("GBK", "cn", "这封信没有说明它用的是哪一种编码"),
            ("Shift_JIS", "jp", "この手紙は文字コードを書いていません"),
            ("EUC-KR", "kr", "이 편지는 문자 집합을 말하지 않습니다"),
            ("KOI8-U", "ru", "Это письмо не говорит, в какой кодировке"),
            ("windows-1251", "com", "Это письмо не говорит, в какой кодировке"),
            ("windows-1250", "cz", "Příliš žluťoučký kůň úpěl ďábelské ódy"),
            ("windows-1254", "tr", "Bu mektupta hangi karakter kümesinin kullanıldığı söylenmiyor"),
            ("windows-1252", "com", "Grüße aus Köln, und für £7,000"),
            ("windows-1252", "", "£7,000"),
            ("windows-1252", "pl", "“£7,000” – it’s £1 a day… £2 today"),
        ] {
            let bytes = Encoding::for_label(label.as_bytes()).unwrap().encode(text).0;
            let found = likely_set(&[b"Subject: ", &bytes], domain).map(Encoding::name);
            assert_eq!(found, Some(label), "{text}");
        }
        assert_eq!(likely_set(&[b"", b"plain", "Grüße".as_bytes()], "de"), None);
        let mixed = likely_set(&[b"ab\xe4", "Grüße".as_bytes()], "not a label");
        assert_eq!(mixed.map(Encoding::name), Some("windows-1252"));
    }

    #[test]
    fn hostile_bytes_are_guessed_in_a_time_that_grows_with_their_length_alone() {
        for piece in [&b"\xff"[..], b"\xa1\xa1\n", b"\x81\x30", b"a\xe4"] {
            likely_set(&[&piece.repeat(400_000 / piece.len())], "jp");
        }
    }
}

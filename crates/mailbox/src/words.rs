//! Encoded words (RFC 2047).

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use encoding_rs::{Encoding, WINDOWS_1252};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The most of a word that is written, so that a line has 76 characters at most (RFC 2047, section 2).
const PIECE_BYTES: usize = 45;

/// The text of a field. Spaces between encoded words go; what is no encoded word, or has a character set that nobody
/// knows, stays as it is; bytes beyond ASCII are UTF-8, or else what Windows has in Western Europe.
#[must_use]
pub fn decode_words(text: &[u8]) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    let mut after_word = false;
    while let Some(at) = memchr::memmem::find(rest, b"=?") {
        let (plain, word) = rest.split_at(at);
        let Some((words, length)) = encoded_word(word) else {
            decoded.push_str(&plain_text(plain));
            decoded.push_str("=?");
            rest = word.get(2..).unwrap_or_default();
            after_word = false;
            continue;
        };
        if !(after_word && plain.iter().all(|byte| matches!(byte, b' ' | b'\t'))) {
            decoded.push_str(&plain_text(plain));
        }
        decoded.push_str(&words);
        after_word = true;
        rest = word.get(length..).unwrap_or_default();
    }
    decoded.push_str(&plain_text(rest));
    decoded
}

fn plain_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0,
    }
}

/// Text of a field as UTF-8.
pub(crate) fn utf8_text(bytes: &[u8]) -> Vec<u8> {
    plain_text(bytes).into_owned().into_bytes()
}

/// The encoded word that a text begins with, and its length.
fn encoded_word(text: &[u8]) -> Option<(String, usize)> {
    let mut parts = text.get(2..)?.splitn(3, |byte| *byte == b'?');
    let (set, encoding, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let end = memchr::memmem::find(rest, b"?=")?;
    let encoded = rest.get(..end)?;
    let length = "=?".len() + set.len() + "?".len() + encoding.len() + "?".len() + end + "?=".len();
    // A language may follow the set (RFC 2231, section 5).
    let set = set.split(|byte| *byte == b'*').next().unwrap_or(set);
    let bytes = match encoding {
        b"B" | b"b" => {
            let is_base64 = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
            LENIENT.decode(encoded.iter().copied().filter(is_base64).collect::<Vec<u8>>()).ok()?
        }
        b"Q" | b"q" => quoted(encoded),
        _ => return None,
    };
    let (text, _) = Encoding::for_label(set)?.decode_without_bom_handling(&bytes);
    let text = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    Some((text, length))
}

/// RFC 2047, section 4.2.
fn quoted(encoded: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut at = 0;
    while let Some(byte) = encoded.get(at) {
        let pair = (digit(encoded.get(at + 1)), digit(encoded.get(at + 2)));
        at += 1;
        match (byte, pair) {
            (b'_', _) => bytes.push(b' '),
            (b'=', (Some(high), Some(low))) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                at += 2;
            }
            (byte, _) => bytes.push(*byte),
        }
    }
    bytes
}

/// Text of a field in ASCII: what goes beyond is written as encoded words, all of the text, since a word is never cut.
#[must_use]
pub fn encode_words(text: &[u8]) -> Vec<u8> {
    if text.is_ascii() {
        return text.to_vec();
    }
    let text = plain_text(text);
    let mut words: Vec<String> = Vec::new();
    let mut piece = String::new();
    for letter in text.chars() {
        if piece.len() + letter.len_utf8() > PIECE_BYTES {
            words.push(format!("=?UTF-8?B?{}?=", STANDARD.encode(&piece)));
            piece.clear();
        }
        piece.push(letter);
    }
    words.push(format!("=?UTF-8?B?{}?=", STANDARD.encode(&piece)));
    words.join(" ").into_bytes()
}

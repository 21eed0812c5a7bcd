//! What a person is shown of a message: its text, and the files with it.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use memchr::memmem;

use crate::decode::{Decoder, TransferEncoding};
use crate::map::{MapPart, MessageMap, PartKind, Span};
use crate::media::MediaValue;
use crate::words::decode_words;

/// Pieces of text of one message.
const TEXTS_MAX: usize = 20;
/// A longer name of a file is cut.
const NAME_MAX_CHARACTERS: usize = 255;

/// A piece of a message's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownText {
    /// HTML, and not plain text.
    pub is_html: bool,
    /// Where it is in the message, encoded.
    pub body: Span,
    encoding: TransferEncoding,
    charset: Option<String>,
}

/// A file in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFile {
    /// What its sender called it; empty if nothing.
    pub name: String,
    /// Its type, in lower case and without parameters.
    pub media_type: String,
    /// Where it is in the message, encoded.
    pub body: Span,
    /// How it is encoded.
    pub encoding: TransferEncoding,
    /// Its length when it is decoded.
    pub decoded_bytes: u64,
    /// The id by which HTML of the message names it.
    pub content_id: Option<String>,
}

impl ShownText {
    /// The text of the bytes that are in its place.
    #[must_use]
    pub fn decode(&self, bytes: &[u8]) -> String {
        let mut decoder = Decoder::new(self.encoding);
        let mut decoded = Vec::new();
        decoder.push(bytes, &mut decoded);
        decoder.finish(&mut decoded);
        let named = self.charset.as_ref().and_then(|charset| Encoding::for_label(charset.as_bytes()));
        let guessed = || if std::str::from_utf8(&decoded).is_ok() { UTF_8 } else { WINDOWS_1252 };
        named.unwrap_or_else(guessed).decode_without_bom_handling(&decoded).0.into_owned()
    }
}

impl MessageMap {
    /// The pieces of text that a person reads, in their order; of alternatives the richest that can be shown.
    #[must_use]
    pub fn shown_texts(&self) -> Vec<ShownText> {
        let mut texts = self.texts_of(0);
        texts.truncate(TEXTS_MAX);
        texts
    }

    fn texts_of(&self, place: usize) -> Vec<ShownText> {
        let Some(part) = self.parts.get(place) else { return Vec::new() };
        match part.kind {
            PartKind::Single => text_of(part).into_iter().collect(),
            PartKind::Message => Vec::new(),
            PartKind::Multipart if part.fields.is("multipart", "alternative") => {
                let mut found = part.children.iter().map(|child| self.texts_of(*child));
                let mut best = Vec::new();
                for texts in found.by_ref().filter(|texts| !texts.is_empty()) {
                    if best.is_empty() || texts.iter().any(|text| text.is_html) {
                        best = texts;
                    }
                }
                best
            }
            PartKind::Multipart => part.children.iter().flat_map(|child| self.texts_of(*child)).collect(),
        }
    }

    /// The files in the message: what is not read with it. Of a message in it, that message.
    #[must_use]
    pub fn shown_files(&self) -> Vec<ShownFile> {
        let mut files = Vec::new();
        self.add_files(0, &mut files);
        files
    }

    /// Depth and number of parts are those of the map, which are bounded.
    fn add_files(&self, place: usize, files: &mut Vec<ShownFile>) {
        let Some(part) = self.parts.get(place) else { return };
        match part.kind {
            PartKind::Multipart => part.children.iter().for_each(|child| self.add_files(*child, files)),
            PartKind::Single if text_of(part).is_some() => {}
            PartKind::Single | PartKind::Message => files.push(file_of(part)),
        }
    }
}

fn text_of(part: &MapPart) -> Option<ShownText> {
    let is_html = part.fields.is("text", "html");
    let is_text = is_html || part.fields.content_type.is_none() || part.fields.is("text", "plain");
    if !is_text || part.fields.is_attachment() || name_of(part).is_some() {
        return None;
    }
    let charset = part.fields.content_type.as_ref().and_then(|media| media.parameter("charset"));
    let charset = charset.map(|charset| String::from_utf8_lossy(charset).into_owned());
    Some(ShownText { is_html, body: part.body, encoding: part.encoding, charset })
}

fn file_of(part: &MapPart) -> ShownFile {
    let media = part.fields.content_type.as_ref();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let media_type = media.map(|media| format!("{}/{}", text(&media.value), text(&media.subtype)));
    let id = part.fields.id.as_deref().map(|id| String::from_utf8_lossy(id).trim().to_owned());
    ShownFile {
        name: name_of(part).unwrap_or_default(),
        media_type: media_type.unwrap_or_else(|| "text/plain".to_owned()),
        body: part.body,
        encoding: part.encoding,
        decoded_bytes: part.decoded_bytes,
        content_id: id.map(|id| id.trim_start_matches('<').trim_end_matches('>').to_owned()),
    }
}

fn name_of(part: &MapPart) -> Option<String> {
    let named = |media: Option<&MediaValue>, name: &str| {
        let media = media?;
        // RFC 2231: a name in another character set stands under a name with a star.
        let starred = media.parameter(&format!("{name}*")).and_then(extended_value);
        starred.or_else(|| media.parameter(name).map(decode_words))
    };
    let name = named(part.fields.disposition.as_ref(), "filename")
        .or_else(|| named(part.fields.content_type.as_ref(), "name"))?;
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(NAME_MAX_CHARACTERS).collect();
    (!name.trim().is_empty()).then_some(name)
}

/// `charset'language'percent-encoded` (RFC 2231, section 4).
fn extended_value(value: &[u8]) -> Option<String> {
    let mut quotes = memmem::find_iter(value, b"'");
    let (first, second) = (quotes.next()?, quotes.next()?);
    let (charset, rest) = (value.get(..first)?, value.get(second + 1..)?);
    let mut bytes = Vec::with_capacity(rest.len());
    let mut at = 0;
    while let Some(byte) = rest.get(at) {
        let digit = |place: usize| rest.get(place).and_then(|byte| char::from(*byte).to_digit(16));
        let escaped = digit(at + 1).zip(digit(at + 2)).filter(|_| *byte == b'%');
        match escaped.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                at += 3;
            }
            None => {
                bytes.push(*byte);
                at += 1;
            }
        }
    }
    let encoding = Encoding::for_label(charset).unwrap_or(UTF_8);
    Some(encoding.decode_without_bom_handling(&bytes).0.into_owned())
}

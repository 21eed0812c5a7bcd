//! The texts of a message that is at hand whole, for searches where no index serves.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::decode::{Decoder, TransferEncoding};
use crate::field::fields;
use crate::html::shown_text;
use crate::map::{MapPart, MessageMap, PartKind, Span};
use crate::words::decode_words;

/// Decoded text of one message that is looked through.
const TEXT_MAX_BYTES: usize = 4 << 20;

/// Encoded bytes that are decoded before the length is looked at.
const DECODED_AT_ONCE: usize = 256 << 10;

/// A message and its map.
#[derive(Clone, Copy, Debug)]
pub struct MessageText<'a> {
    /// The map of the source.
    pub map: &'a MessageMap,
    /// The whole message.
    pub source: &'a [u8],
}

/// A file in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageFile {
    /// What the sender called it; empty if nothing.
    pub name: String,
    /// Its type, with its character set.
    pub content_type: String,
    body: Span,
    encoding: TransferEncoding,
}

impl MessageText<'_> {
    /// The files in the message: parts that are no text to be read with it.
    pub fn files(&self) -> impl Iterator<Item = MessageFile> {
        self.map.parts.iter().filter(|part| part.kind == PartKind::Single).filter_map(file_of)
    }

    /// A file, decoded, up to so many bytes.
    #[must_use]
    pub fn decoded(&self, file: &MessageFile, bytes_max: usize) -> Vec<u8> {
        let mut decoder = Decoder::new(file.encoding);
        let mut decoded = Vec::new();
        for piece in self.bytes(file.body).chunks(DECODED_AT_ONCE) {
            decoder.push(piece, &mut decoded);
            if decoded.len() >= bytes_max {
                decoded.truncate(bytes_max);
                return decoded;
            }
        }
        decoder.finish(&mut decoded);
        decoded.truncate(bytes_max);
        decoded
    }

    fn bytes(&self, span: Span) -> &[u8] {
        let start = usize::try_from(span.start).unwrap_or(usize::MAX);
        let end = usize::try_from(span.end).unwrap_or(usize::MAX);
        self.source.get(start..end).unwrap_or_default()
    }

    fn header_bytes(&self) -> &[u8] {
        self.map.root().map(|root| self.bytes(root.header)).unwrap_or_default()
    }

    /// The values of all fields of this name, decoded.
    #[must_use]
    pub fn field(&self, name: &str) -> Vec<String> {
        let named = fields(self.header_bytes()).filter(|field| field.is(name));
        named.map(|field| decode_words(&field.unfolded())).collect()
    }

    /// The header, decoded.
    #[must_use]
    pub fn header(&self) -> String {
        let lines = fields(self.header_bytes()).map(|field| {
            format!("{}: {}\n", String::from_utf8_lossy(field.name), decode_words(&field.unfolded()))
        });
        lines.collect()
    }

    /// The text of the body, decoded: of all parts that are text, and of headers of messages within.
    #[must_use]
    pub fn body(&self) -> String {
        let mut text = String::new();
        for part in &self.map.parts {
            if text.len() >= TEXT_MAX_BYTES {
                break;
            }
            self.add_part(part, &mut text);
        }
        text
    }

    fn add_part(&self, part: &MapPart, text: &mut String) {
        let is_text = part.fields.content_type.is_none() || part.fields.is_type("text");
        if part.kind != PartKind::Single || !is_text {
            return;
        }
        let mut decoder = Decoder::new(part.encoding);
        let mut decoded = Vec::new();
        let body = self.bytes(part.body);
        decoder.push(body.get(..body.len().min(TEXT_MAX_BYTES)).unwrap_or_default(), &mut decoded);
        decoder.finish(&mut decoded);
        let charset = part.fields.content_type.as_ref().and_then(|media| media.parameter("charset"));
        let encoding = charset.and_then(Encoding::for_label);
        let encoding = encoding
            .unwrap_or_else(|| if std::str::from_utf8(&decoded).is_ok() { UTF_8 } else { WINDOWS_1252 });
        let (words, _) = encoding.decode_without_bom_handling(&decoded);
        if part.fields.is("text", "html") {
            text.push_str(&shown_text(&words));
        } else {
            text.push_str(&words);
        }
        text.push('\n');
    }
}

/// The file that a part is, if it is one.
fn file_of(part: &MapPart) -> Option<MessageFile> {
    let text_of = |bytes: &[u8]| decode_words(bytes);
    let disposition = part.fields.disposition.as_ref();
    let media = part.fields.content_type.as_ref();
    // RFC 2231 has names in other character sets under a name with a star; what is in ASCII tells enough of the type.
    let name = disposition.and_then(|found| found.parameter("filename")).or_else(|| media?.parameter("name"));
    let is_shown = media.is_none() || part.fields.is("text", "plain") || part.fields.is("text", "html");
    if is_shown && name.is_none() && !part.fields.is_attachment() {
        return None;
    }
    let mut content_type = match media {
        Some(media) => {
            format!("{}/{}", String::from_utf8_lossy(&media.value), String::from_utf8_lossy(&media.subtype))
        }
        None => "text/plain".to_owned(),
    };
    if let Some(set) = media.and_then(|media| media.parameter("charset")) {
        content_type.push_str(&format!("; charset={}", String::from_utf8_lossy(set)));
    }
    let name = name.map(text_of).unwrap_or_default();
    Some(MessageFile { name, content_type, body: part.body, encoding: part.encoding })
}

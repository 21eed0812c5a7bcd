//! The texts of a message that is at hand whole, for searches where no index serves.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::decode::Decoder;
use crate::field::fields;
use crate::html::shown_text;
use crate::map::{MapPart, MessageMap, PartKind, Span};
use crate::words::decode_words;

/// Decoded text of one message that is looked through.
const TEXT_MAX_BYTES: usize = 4 << 20;

/// A message and its map.
#[derive(Clone, Copy, Debug)]
pub struct MessageText<'a> {
    /// The map of the source.
    pub map: &'a MessageMap,
    /// The whole message.
    pub source: &'a [u8],
}

impl MessageText<'_> {
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

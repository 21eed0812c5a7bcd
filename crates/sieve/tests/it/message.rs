//! A message read from its source, as small as tests need it.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use scrinium_sieve::{BodyPart, HeaderField, Message, PartForm};

pub(crate) struct TestMessage {
    source: Vec<u8>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    body_start: usize,
    parts: Vec<(String, String)>,
}

impl TestMessage {
    pub(crate) fn new(source: &str) -> Self {
        Self::of_bytes(source.replace("\r\n", "\n").replace('\n', "\r\n").as_bytes())
    }

    pub(crate) fn of_bytes(source: &[u8]) -> Self {
        let (fields, body_start) = header(source);
        let mut parts = Vec::new();
        collect(&fields, &source[body_start..], 0, &mut parts);
        Self { source: source.to_vec(), fields, body_start, parts }
    }
}

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn header(source: &[u8]) -> (Fields, usize) {
    let mut fields: Fields = Vec::new();
    let mut at = 0;
    for line in source.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.is_empty() {
            break;
        }
        if text.starts_with(b" ") || text.starts_with(b"\t") {
            if let Some((_, value)) = fields.last_mut() {
                value.extend_from_slice(b"\r\n");
                value.extend_from_slice(text);
            }
        } else if let Some(colon) = text.iter().position(|byte| *byte == b':') {
            fields.push((text[..colon].to_vec(), text[colon + 1..].to_vec()));
        }
    }
    (fields, at)
}

fn field(fields: &Fields, name: &str) -> String {
    let found = fields.iter().find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()));
    found.map_or_else(String::new, |(_, value)| {
        String::from_utf8_lossy(value).replace("\r\n", "").trim().to_owned()
    })
}

fn collect(fields: &Fields, body: &[u8], depth: usize, parts: &mut Vec<(String, String)>) {
    let declared = field(fields, "content-type");
    let content_type = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let content_type = if content_type.contains('/') { content_type } else { "text/plain".to_owned() };
    let boundary = declared
        .split("boundary=")
        .nth(1)
        .map(|rest| rest.trim_start_matches('"').split(['"', ';']).next().unwrap_or_default().to_owned());
    let text = String::from_utf8_lossy(body).into_owned();
    if let (true, Some(boundary), true) = (content_type.starts_with("multipart/"), boundary, depth < 10) {
        let delimiter = format!("--{boundary}");
        let mut pieces = text.split(&delimiter);
        let prologue = pieces.next().unwrap_or_default().to_owned();
        let place = parts.len();
        parts.push((content_type, prologue));
        for piece in pieces {
            if let Some(epilogue) = piece.strip_prefix("--") {
                parts[place].1.push_str(epilogue);
                break;
            }
            let piece = piece.strip_prefix("\r\n").unwrap_or(piece);
            let (inner, start) = header(piece.as_bytes());
            let body = &piece[start..];
            let body = body.strip_suffix("\r\n").unwrap_or(body);
            collect(&inner, body.as_bytes(), depth + 1, parts);
        }
        return;
    }
    if content_type == "message/rfc822" && depth < 10 {
        let (inner, start) = header(body);
        parts.push((content_type, text[..start].to_owned()));
        collect(&inner, &body[start..], depth + 1, parts);
        return;
    }
    let decoded = match field(fields, "content-transfer-encoding").to_ascii_lowercase().as_str() {
        "base64" => {
            let clean: String = text.chars().filter(|c| !c.is_whitespace()).collect();
            STANDARD.decode(clean).unwrap_or_default()
        }
        "quoted-printable" => quoted_printable(text.replace("=\r\n", "").as_bytes(), b'='),
        _ => body.to_vec(),
    };
    let charset = declared.split("charset=").nth(1).unwrap_or("utf-8");
    let label = charset.trim_matches('"').split(['"', ';', ' ']).next().unwrap_or_default();
    let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap_or(encoding_rs::UTF_8);
    parts.push((content_type, encoding.decode_without_bom_handling(&decoded).0.into_owned()));
}

fn quoted_printable(text: &[u8], escape: u8) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let hex = text.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if text[at] == escape => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    out
}

/// Encoded words (RFC 2047); blanks between two of them go.
fn decode_words(value: &str) -> String {
    let mut out = String::new();
    let mut rest = value;
    let mut after_word = false;
    while let Some(start) = rest.find("=?") {
        let (before, from) = rest.split_at(start);
        let word = from[2..].splitn(4, '?').collect::<Vec<_>>();
        let decoded = match word.as_slice() {
            [charset, encoding, text, end] if end.starts_with('=') => {
                let bytes = match encoding.to_ascii_lowercase().as_str() {
                    "q" => Some(quoted_printable(text.replace('_', " ").as_bytes(), b'=')),
                    "b" => STANDARD.decode(text).ok(),
                    _ => None,
                };
                let encoding = encoding_rs::Encoding::for_label(charset.as_bytes());
                bytes.zip(encoding).map(|(bytes, encoding)| {
                    let consumed = 2 + charset.len() + 1 + 1 + 1 + text.len() + 2;
                    (encoding.decode_without_bom_handling(&bytes).0.into_owned(), consumed)
                })
            }
            _ => None,
        };
        match decoded {
            Some((text, consumed)) => {
                if !(after_word && before.trim().is_empty()) {
                    out.push_str(before);
                }
                out.push_str(&text);
                rest = &from[consumed..];
                after_word = true;
            }
            None => {
                out.push_str(before);
                out.push_str("=?");
                rest = &from[2..];
                after_word = false;
            }
        }
    }
    out.push_str(rest);
    out
}

impl Message for TestMessage {
    fn size_bytes(&self) -> u64 {
        self.source.len() as u64
    }

    fn field(&self, index: usize) -> Option<HeaderField<'_>> {
        self.fields.get(index).map(|(name, value)| HeaderField { name, value })
    }

    fn decode(&self, value: &[u8]) -> String {
        decode_words(&String::from_utf8_lossy(value))
    }

    fn raw_body(&self) -> &[u8] {
        &self.source[self.body_start..]
    }

    fn part(&self, index: usize, form: PartForm) -> Option<BodyPart<'_>> {
        let (content_type, text) = self.parts.get(index)?;
        let text = match form {
            PartForm::Text if content_type == "text/html" => {
                let pieces =
                    text.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
                Cow::Owned(pieces.collect())
            }
            _ => Cow::Borrowed(text.as_str()),
        };
        Some(BodyPart { content_type: Cow::Borrowed(content_type), text })
    }
}

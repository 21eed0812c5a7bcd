//! The text of a message and the list of its attachments.

use mail_parser::{ContentType, HeaderName, HeaderValue, Message};
use serde_json::{Map, Value};

use super::decode::{
    TransferEncoding, base64, base64_length, clean_field, clean_lines, cut, quoted_printable, text,
};
use super::structure::{Section, split_multipart, split_part};
use super::{header, html};
use crate::memo::{LONGEST_BODY, field};
use crate::notes::Notes;

/// Multiparts inside multiparts deeper than this are kept as attachments.
const DEEPEST: usize = 20;

/// More parts than this are not listed.
const MOST_PARTS: usize = 1_000;

const LONGEST_FILE_NAME: usize = 255;

/// Only so much of a part is decoded for the body.
const LONGEST_DECODED: usize = 4 * LONGEST_BODY;

/// A part that is not shown as text.
struct AttachedFile {
    name: String,
    content_type: String,
    bytes: usize,
}

/// Puts `Body` and the attachments' names, types and sizes into `fields`.
pub(super) fn insert_body_fields(whole: &Section<'_>, fields: &mut Map<String, Value>, notes: &mut Notes) {
    let mut reader = BodyReader { files: Vec::new(), parts_left: MOST_PARTS, notes };
    let texts = reader.read(whole, 0, Within::Message);
    let files = std::mem::take(&mut reader.files);
    let mut body = texts.shown();
    if cut(&mut body, LONGEST_BODY) {
        fields.insert(field::BODY_TRUNCATED.to_owned(), Value::Bool(true));
    }
    fields.insert(field::BODY.to_owned(), Value::from(body));
    if !files.is_empty() {
        let list = |of: fn(&AttachedFile) -> Value| Value::Array(files.iter().map(of).collect());
        fields.insert(field::FILE_NAMES.to_owned(), list(|file| Value::from(file.name.as_str())));
        fields.insert(field::FILE_TYPES.to_owned(), list(|file| Value::from(file.content_type.as_str())));
        fields.insert(field::FILE_SIZES.to_owned(), list(|file| Value::from(file.bytes)));
    }
}

/// What contains a part, as far as it matters to how the part is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Message,
    Mixed,
    Alternative,
    Digest,
}

/// The text found in a part, in the forms in which it is given.
#[derive(Default)]
struct Texts {
    plain: Option<String>,
    html: Option<String>,
}

impl Texts {
    /// The text to show: plain where there is any, else what the HTML says.
    fn shown(self) -> String {
        match self.plain {
            Some(plain) if !plain.trim().is_empty() || self.html.is_none() => plain,
            _ => self.html.unwrap_or_default(),
        }
    }

    /// Puts what follows after what is there.
    fn append(&mut self, next: &str) {
        let mut all = self.plain.take().unwrap_or_default();
        if !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        all.push_str(next);
        self.plain = Some(all);
    }
}

struct BodyReader<'n> {
    files: Vec<AttachedFile>,
    parts_left: usize,
    notes: &'n mut Notes,
}

impl BodyReader<'_> {
    fn read(&mut self, section: &Section<'_>, depth: usize, within: Within) -> Texts {
        let header_text = header::text_of(section.header, self.notes);
        let parsed = header::parse(&header_text);
        let part = Part::of(parsed.as_ref(), within);
        if part.main_type == "multipart" {
            if depth >= DEEPEST {
                self.notes.add("parts are nested too deeply; the inner ones are not listed");
            } else if let Some(texts) = self.read_multipart(section, &part, depth) {
                return texts;
            } else {
                // Without its delimiters it is one piece of text, whatever it was to be.
                return self.read_text(section, &Part::plain(&part));
            }
        }
        if part.is_shown(within) { self.read_text(section, &part) } else { self.attach(section, &part) }
    }

    /// `None` where the multipart's delimiter is nowhere to be found.
    fn read_multipart(&mut self, section: &Section<'_>, part: &Part<'_>, depth: usize) -> Option<Texts> {
        let boundary = part.parameter("boundary").map(str::trim_end).filter(|boundary| !boundary.is_empty());
        let Some(boundary) = boundary else {
            self.notes.add("a multipart names no boundary");
            return None;
        };
        let pieces = split_multipart(section.body, boundary.as_bytes(), self.parts_left);
        if pieces.parts.is_empty() && !pieces.closed {
            self.notes.add("a multipart's boundary does not occur in it");
            return None;
        }
        if pieces.more {
            self.notes.add("there are more parts than are listed");
        } else if !pieces.closed {
            self.notes.add("a multipart is not closed; the message may be cut off");
        }
        self.parts_left = self.parts_left.saturating_sub(pieces.parts.len());
        let within = match part.sub_type.as_str() {
            "alternative" => Within::Alternative,
            "digest" => Within::Digest,
            _ => Within::Mixed,
        };
        let mut all = Texts::default();
        for piece in pieces.parts {
            let inner = split_part(piece, self.notes);
            let texts = self.read(&inner, depth + 1, within);
            if within == Within::Alternative {
                all.plain = all.plain.or(texts.plain);
                all.html = all.html.or(texts.html);
            } else if texts.plain.is_some() || texts.html.is_some() {
                all.append(&texts.shown());
            }
        }
        Some(all)
    }

    fn read_text(&mut self, section: &Section<'_>, part: &Part<'_>) -> Texts {
        let encoding = TransferEncoding::named(part.encoding, self.notes);
        let encoded = section.body.get(..LONGEST_DECODED).unwrap_or(section.body);
        let decoded;
        let bytes = match encoding {
            TransferEncoding::Plain => encoded,
            TransferEncoding::Base64 => {
                decoded = base64(encoded, self.notes);
                &decoded
            }
            TransferEncoding::QuotedPrintable => {
                decoded = quoted_printable(encoded, self.notes);
                &decoded
            }
        };
        let charset = part.parameter("charset");
        if part.is_html() {
            let html = text(bytes, charset.or_else(|| html::declared_charset(bytes)), self.notes);
            return Texts { plain: None, html: Some(clean_lines(&html::shown_text(&html), self.notes)) };
        }
        Texts { plain: Some(clean_lines(&text(bytes, charset, self.notes), self.notes)), html: None }
    }

    fn attach(&mut self, section: &Section<'_>, part: &Part<'_>) -> Texts {
        let bytes = match TransferEncoding::named(part.encoding, self.notes) {
            TransferEncoding::Base64 => base64_length(section.body),
            TransferEncoding::QuotedPrintable => quoted_printable(section.body, self.notes).len(),
            TransferEncoding::Plain => section.body.len(),
        };
        let content_type = format!("{}/{}", part.main_type, part.sub_type);
        self.files.push(AttachedFile {
            name: clean_field(part.file_name().unwrap_or_default(), LONGEST_FILE_NAME, self.notes),
            content_type: clean_field(&content_type, LONGEST_FILE_NAME, self.notes),
            bytes,
        });
        Texts::default()
    }
}

/// What a part's header says of it.
struct Part<'m> {
    main_type: String,
    sub_type: String,
    content_type: Option<&'m ContentType<'m>>,
    disposition: Option<&'m ContentType<'m>>,
    encoding: &'m str,
}

impl<'m> Part<'m> {
    fn of(message: Option<&'m Message<'m>>, within: Within) -> Self {
        let value = |name: HeaderName<'static>| {
            let headers = message.map_or(&[][..], |message| message.headers());
            headers.iter().find(|header| header.name == name).map(|header| &header.value)
        };
        let content_type = value(HeaderName::ContentType).and_then(HeaderValue::as_content_type);
        // RFC 2045 §5.2, RFC 2046 §5.1.5: what a part is that does not say.
        let (main_type, sub_type) = match (content_type, within) {
            (Some(content_type), _) => (content_type.ctype(), content_type.subtype().unwrap_or_default()),
            (None, Within::Digest) => ("message", "rfc822"),
            (None, _) => ("text", "plain"),
        };
        Self {
            main_type: main_type.trim().to_ascii_lowercase(),
            sub_type: sub_type.trim().to_ascii_lowercase(),
            content_type,
            disposition: value(HeaderName::ContentDisposition).and_then(HeaderValue::as_content_type),
            encoding: value(HeaderName::ContentTransferEncoding).and_then(HeaderValue::as_text).unwrap_or(""),
        }
    }

    /// The same part taken for plain text.
    fn plain(part: &Self) -> Self {
        Self {
            main_type: "text".to_owned(),
            sub_type: "plain".to_owned(),
            content_type: part.content_type,
            disposition: None,
            encoding: part.encoding,
        }
    }

    fn parameter(&self, name: &str) -> Option<&'m str> {
        self.content_type.and_then(|content_type| content_type.attribute(name))
    }

    fn file_name(&self) -> Option<&'m str> {
        let of_disposition = self.disposition.and_then(|disposition| disposition.attribute("filename"));
        of_disposition.or_else(|| self.parameter("name"))
    }

    fn is_html(&self) -> bool {
        self.main_type == "text" && self.sub_type == "html"
    }

    /// Whether the part is text to show, not a file.
    fn is_shown(&self, within: Within) -> bool {
        let is_text = self.main_type == "text" && ["plain", "html", ""].contains(&self.sub_type.as_str());
        // A message that is one part of no sensible type ("Content-Type: text") is read as text.
        let is_senseless =
            within == Within::Message && (self.main_type.is_empty() || self.main_type == "text");
        if !is_text && !is_senseless {
            return false;
        }
        match self.disposition {
            Some(disposition) if disposition.ctype().eq_ignore_ascii_case("attachment") => false,
            Some(_) => true,
            None => within != Within::Mixed || self.file_name().is_none(),
        }
    }
}

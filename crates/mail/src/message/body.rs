//! The text of a message and the list of its attachments.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::charset::CharacterSet;
use super::decode::{
    TransferEncoding, base64, base64_length, clean_field, clean_lines, cut, quoted_printable,
    without_cut_escape,
};
use super::embedded::{self, EmbeddedFile};
use super::fields::HeaderFields;
use super::part::{Part, Within};
use super::structure::{Section, split_multipart, split_part};
use super::{flowed, html};
use crate::memo::{LONGEST_BODY, field};
use crate::notes::Notes;

/// Multiparts inside multiparts deeper than this are kept as attachments.
const DEEPEST: usize = 20;

/// More parts than this are not listed, and as many files inside of text.
const MOST_PARTS: usize = 1_000;

const LONGEST_FILE_NAME: usize = 255;

/// Parts of a multipart that are looked at for the character set of the header.
const MOST_TOLD: usize = 4;

/// Only so much of a part is decoded for the body.
const LONGEST_DECODED: usize = 4 * LONGEST_BODY;

/// A part that is listed as a file.
struct AttachedFile {
    name: String,
    content_type: String,
    bytes: usize,
}

/// Puts `Body` and the attachments' names, types and sizes into `fields`.
pub(super) fn insert_body_fields(
    whole: &Section<'_>,
    header: &HeaderFields<'_>,
    fields: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let mut reader = BodyReader {
        files: Vec::new(),
        parts_left: MOST_PARTS,
        alone: None,
        set: None,
        whole: header,
        notes,
    };
    let texts = reader.read(whole, header, 0, Within::Message);
    let mut body = texts.shown();
    if body.trim().is_empty()
        && let Some((section, part)) = reader.alone.take()
    {
        body = reader.read_text(&section, &part).shown();
    }
    let files = std::mem::take(&mut reader.files);
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

/// The character set that the first part declares which declares one, looking into multiparts; for what stands undeclared
/// in the header.
pub(super) fn declared_set(section: &Section<'_>, header: &HeaderFields<'_>) -> Option<CharacterSet> {
    let notes = &mut Notes::default();
    let mut waiting = vec![(*section, header.clone(), 0)];
    while let Some((section, header, depth)) = waiting.pop() {
        let part = Part::of(&header, Within::Mixed, notes);
        let declared = part.charset().filter(|set| set.is_other_than_utf8());
        if declared.is_some() || part.main_type != "multipart" || depth == DEEPEST {
            if declared.is_some() {
                return declared;
            }
            continue;
        }
        let pieces = part.boundary().map(|boundary| split_multipart(section.body, boundary, MOST_TOLD));
        for piece in pieces.into_iter().flat_map(|pieces| pieces.parts).rev() {
            let inner = split_part(piece, notes);
            waiting.push((inner, HeaderFields::read(inner.header, notes), depth + 1));
        }
    }
    None
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

struct BodyReader<'a, 'n> {
    files: Vec<AttachedFile>,
    parts_left: usize,
    /// The first part that is shown if there is no other text.
    alone: Option<(Section<'a>, Part)>,
    /// The character set that a part before declared.
    set: Option<CharacterSet>,
    /// The message's header.
    whole: &'n HeaderFields<'a>,
    notes: &'n mut Notes,
}

impl<'a> BodyReader<'a, '_> {
    fn read(
        &mut self,
        section: &Section<'a>,
        header: &HeaderFields<'a>,
        depth: usize,
        within: Within,
    ) -> Texts {
        let part = Part::of(header, within, self.notes);
        self.set = self.set.or_else(|| part.charset().filter(|set| set.is_other_than_utf8()));
        if part.main_type == "multipart" {
            if depth >= DEEPEST {
                self.notes.add("parts are nested too deeply; the inner ones are not listed");
            } else if let Some(texts) = self.read_multipart(section, &part, depth) {
                return texts;
            } else {
                // Without its delimiters it is one piece of text, whatever it was to be.
                return self.read_text(section, &part.into_plain());
            }
        }
        let is_shown = part.is_shown(within);
        if !is_shown || part.file_name.is_some() {
            self.attach(section, &part);
        }
        if is_shown {
            return self.read_text(section, &part);
        }
        if self.alone.is_none() && part.is_shown_alone(within) {
            self.alone = Some((*section, part));
        }
        Texts::default()
    }

    /// `None` where the multipart's delimiter is nowhere to be found.
    fn read_multipart(&mut self, section: &Section<'a>, part: &Part, depth: usize) -> Option<Texts> {
        let Some(boundary) = part.boundary() else {
            self.notes.add("a multipart names no boundary");
            return None;
        };
        let pieces = split_multipart(section.body, boundary, self.parts_left);
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
            let header = HeaderFields::read(inner.header, self.notes)
                .with_raw_set(|header| self.set.or_else(|| header.likely_set(b"")));
            let texts = self.read(&inner, &header, depth + 1, within);
            if within == Within::Alternative {
                all.plain = all.plain.or(texts.plain);
                all.html = all.html.or(texts.html);
            } else if texts.plain.is_some() || texts.html.is_some() {
                all.append(&texts.shown());
            }
        }
        Some(all)
    }

    fn read_text(&mut self, section: &Section<'_>, part: &Part) -> Texts {
        let (bytes, is_cut) = self.text_bytes(section, part);
        if part.is_html() {
            let says_nothing =
                |set: &CharacterSet| matches!(set, CharacterSet::Undeclared | CharacterSet::Unknown);
            let declared = part.charset().filter(|set| !says_nothing(set));
            let declared = declared.or_else(|| html::declared_charset(&bytes).map(CharacterSet::named));
            let html = self.set_of(declared, &bytes).decode(&bytes, is_cut, self.notes);
            let html = if is_cut { html::without_cut_entity(&html) } else { html.as_str() };
            return Texts { plain: None, html: Some(clean_lines(&html::shown_text(html), self.notes)) };
        }
        let set = self.set_of(part.charset(), &bytes);
        let mut text = clean_lines(&set.decode(&bytes, is_cut, self.notes), self.notes);
        if let Some(deletes_blanks) = part.flowed() {
            text = flowed::unwrapped(&text, deletes_blanks);
        }
        Texts { plain: Some(text), html: None }
    }

    /// The set of a text: the one that is declared, else what its bytes look like.
    fn set_of(&mut self, declared: Option<CharacterSet>, bytes: &[u8]) -> CharacterSet {
        if declared == Some(CharacterSet::Unknown) {
            self.notes.add("a part has an unknown character set");
        }
        let declared =
            declared.filter(|set| !matches!(set, CharacterSet::Undeclared | CharacterSet::Unknown));
        declared.or_else(|| self.whole.likely_set(bytes)).unwrap_or(CharacterSet::Undeclared)
    }

    /// The decoded beginning of a text without the files in it, and whether there is more of it.
    fn text_bytes<'s>(&mut self, section: &Section<'s>, part: &Part) -> (Cow<'s, [u8]>, bool) {
        if matches!(part.encoding, TransferEncoding::Plain | TransferEncoding::Uuencode) {
            if part.is_html() {
                return beginning(Cow::Borrowed(section.body));
            }
            let (rest, files) = embedded::take_out(section.body, MOST_PARTS);
            self.list_embedded(files);
            return beginning(rest);
        }
        let (encoded, is_cut) = beginning(Cow::Borrowed(section.body));
        let decoded = if part.encoding == TransferEncoding::Base64 {
            base64(&encoded, self.notes)
        } else {
            quoted_printable(if is_cut { without_cut_escape(&encoded) } else { &encoded }, self.notes)
        };
        if part.is_html() {
            return (Cow::Owned(decoded), is_cut);
        }
        let (rest, files) = embedded::take_out(&decoded, MOST_PARTS);
        self.list_embedded(files);
        (Cow::Owned(rest.into_owned()), is_cut)
    }

    fn list_embedded(&mut self, files: Vec<EmbeddedFile>) {
        for file in files.into_iter().take(self.parts_left) {
            self.parts_left -= 1;
            let name = CharacterSet::Undeclared.decode(&file.name, false, self.notes);
            self.list(&name, "application/octet-stream", file.bytes);
        }
    }

    fn attach(&mut self, section: &Section<'_>, part: &Part) {
        let bytes = match part.encoding {
            TransferEncoding::Base64 => base64_length(section.body),
            TransferEncoding::QuotedPrintable => quoted_printable(section.body, self.notes).len(),
            TransferEncoding::Uuencode => {
                embedded::uuencoded_length(section.body).unwrap_or(section.body.len())
            }
            TransferEncoding::Plain => section.body.len(),
        };
        let content_type = format!("{}/{}", part.main_type, part.sub_type);
        self.list(part.file_name.as_deref().unwrap_or_default(), &content_type, bytes);
    }

    fn list(&mut self, name: &str, content_type: &str, bytes: usize) {
        self.files.push(AttachedFile {
            name: clean_field(name, LONGEST_FILE_NAME, self.notes),
            content_type: clean_field(content_type, LONGEST_FILE_NAME, self.notes),
            bytes,
        });
    }
}

/// As much of a text as is decoded, and whether that is not all.
fn beginning(bytes: Cow<'_, [u8]>) -> (Cow<'_, [u8]>, bool) {
    if bytes.len() <= LONGEST_DECODED {
        return (bytes, false);
    }
    let beginning = match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(..LONGEST_DECODED).unwrap_or(bytes)),
        Cow::Owned(mut bytes) => {
            bytes.truncate(LONGEST_DECODED);
            Cow::Owned(bytes)
        }
    };
    (beginning, true)
}

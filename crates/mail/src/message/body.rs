//! The text of a message and the list of its attachments.

use std::io::{self, Read};

use serde_json::{Map, Value};

use super::charset::CharacterSet;
use super::decode::{
    TransferEncoding, base64, clean_field, clean_lines, cut, quoted_printable, without_cut_escape,
};
use super::embedded::{self, EmbeddedFile};
use super::fields::HeaderFields;
use super::leaf::{Leaf, LeafText};
use super::lines::{Next, PartLines, Stop};
use super::part::{Part, Within};
use super::structure::read_header;
use super::{flowed, html};
use crate::memo::{LONGEST_BODY, field};
use crate::notes::Notes;

/// Multiparts inside multiparts deeper than this are kept as attachments.
const DEEPEST: usize = 20;

/// More parts than this are not listed, and as many files inside of text.
const MOST_PARTS: usize = 1_000;

const LONGEST_FILE_NAME: usize = 255;

/// A part that is listed as a file.
struct AttachedFile {
    name: String,
    content_type: String,
    bytes: usize,
}

/// What a message's body says.
pub(super) struct BodyOfMessage {
    text: String,
    files: Vec<AttachedFile>,
    /// The character set that the first part declares which declares one; for what stands undeclared in the header.
    pub(super) declared: Option<CharacterSet>,
    /// Lines with 8-bit characters, where the header has some of which nothing is declared.
    pub(super) sample: Vec<u8>,
}

/// Reads the body of the message with this header.
///
/// # Errors
/// What reading it says.
pub(super) fn read<R: Read>(
    lines: &mut PartLines<R>,
    header: &HeaderFields<'_>,
    notes: &mut Notes,
) -> io::Result<BodyOfMessage> {
    if header.is_undeclared() {
        lines.keep_sample();
    }
    let mut reader = BodyReader {
        lines,
        files: Vec::new(),
        parts_left: MOST_PARTS,
        alone: None,
        set: None,
        whole: header,
        notes,
    };
    let guessed = header.clone().with_raw_set(|header| header.likely_set(b""));
    let (texts, _) = reader.read(&guessed, 0, Within::Message)?;
    let mut text = texts.shown();
    if text.trim().is_empty()
        && let Some((alone, part)) = reader.alone.take()
    {
        text = reader.read_text(alone, &part).shown();
    }
    let BodyReader { lines, files, set, .. } = reader;
    Ok(BodyOfMessage { text, files, declared: set, sample: lines.take_sample() })
}

impl BodyOfMessage {
    /// Puts `Body` and the attachments' names, types and sizes into `fields`.
    pub(super) fn insert(self, fields: &mut Map<String, Value>) {
        let Self { mut text, files, .. } = self;
        if cut(&mut text, LONGEST_BODY) {
            fields.insert(field::BODY_TRUNCATED.to_owned(), Value::Bool(true));
        }
        fields.insert(field::BODY.to_owned(), Value::from(text));
        if !files.is_empty() {
            let list = |of: fn(&AttachedFile) -> Value| Value::Array(files.iter().map(of).collect());
            fields.insert(field::FILE_NAMES.to_owned(), list(|file| Value::from(file.name.as_str())));
            fields.insert(field::FILE_TYPES.to_owned(), list(|file| Value::from(file.content_type.as_str())));
            fields.insert(field::FILE_SIZES.to_owned(), list(|file| Value::from(file.bytes)));
        }
    }
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
        // More is not kept, and one character more shows that there was some.
        cut(&mut all, LONGEST_BODY + char::MAX_LEN_UTF8);
        self.plain = Some(all);
    }
}

struct BodyReader<'l, 'h, R> {
    lines: &'l mut PartLines<R>,
    files: Vec<AttachedFile>,
    parts_left: usize,
    /// The first part that is shown if there is no other text.
    alone: Option<(LeafText, Part)>,
    /// The character set that a part before declared.
    set: Option<CharacterSet>,
    /// The message's header.
    whole: &'h HeaderFields<'h>,
    notes: &'l mut Notes,
}

impl<R: Read> BodyReader<'_, '_, R> {
    /// Reads a part, which stands behind its header, and what ended it.
    fn read(&mut self, header: &HeaderFields<'_>, depth: usize, within: Within) -> io::Result<(Texts, Stop)> {
        let part = Part::of(header, within, self.notes);
        self.set = self.set.or_else(|| part.charset().filter(|set| set.is_other_than_utf8()));
        if part.main_type == "multipart" {
            if depth < DEEPEST {
                return self.read_multipart(part, depth);
            }
            self.notes.add("parts are nested too deeply; the inner ones are not listed");
        }
        let is_shown = part.is_shown(within);
        let is_alone = !is_shown && self.alone.is_none() && part.is_shown_alone(within);
        let is_file = !is_shown || part.file_name.is_some();
        let leaf = Leaf::of(&part, is_shown || is_alone, is_file);
        let (leaf, stop) = self.read_leaf(leaf)?;
        if let Some(length) = leaf.length {
            let (bytes, is_damaged) = length.finish();
            if is_damaged {
                self.notes.add("a part's quoted-printable holds invalid escapes");
            }
            let content_type = format!("{}/{}", part.main_type, part.sub_type);
            self.list(part.file_name.as_deref().unwrap_or_default(), &content_type, bytes);
        }
        match leaf.text {
            Some(text) if is_shown => return Ok((self.read_text(text, &part), stop)),
            Some(text) => self.alone = Some((text, part)),
            None => {}
        }
        Ok((Texts::default(), stop))
    }

    fn read_leaf(&mut self, mut leaf: Leaf) -> io::Result<(Leaf, Stop)> {
        loop {
            match self.lines.next()? {
                Next::Line { length, .. } => {
                    leaf.take(self.lines.input.next(length));
                    self.lines.input.pass(length);
                }
                Next::Stop(stop) => {
                    if stop == Stop::End {
                        leaf.release();
                    }
                    return Ok((leaf, stop));
                }
            }
        }
    }

    /// Without its delimiters a multipart is one piece of text, whatever it was to be.
    fn read_multipart(&mut self, part: Part, depth: usize) -> io::Result<(Texts, Stop)> {
        let within = match part.sub_type.as_str() {
            "alternative" => Within::Alternative,
            "digest" => Within::Digest,
            _ => Within::Mixed,
        };
        let boundary = part.boundary().map(<[u8]>::to_vec);
        let part = part.into_plain();
        let preamble = Leaf::of(&part, true, false);
        let Some(boundary) = boundary else {
            self.notes.add("a multipart names no boundary");
            let (text, stop) = self.read_leaf(preamble)?;
            return Ok((self.read_leaf_text(text, &part), stop));
        };
        let level = self.lines.open(&boundary);
        let (preamble, stop) = self.read_leaf(preamble)?;
        match stop {
            Stop::Delimiter { level: found, is_closing } if found == level => {
                drop(preamble);
                self.read_parts(within, level, is_closing, depth)
            }
            stop => {
                self.lines.close();
                self.notes.add("a multipart's boundary does not occur in it");
                Ok((self.read_leaf_text(preamble, &part), stop))
            }
        }
    }

    /// Reads the parts of the multipart that was opened last, behind its first delimiter.
    fn read_parts(
        &mut self,
        within: Within,
        level: usize,
        mut is_closing: bool,
        depth: usize,
    ) -> io::Result<(Texts, Stop)> {
        let mut all = Texts::default();
        let outer = loop {
            if is_closing {
                break None;
            }
            if self.parts_left == 0 {
                self.notes.add("there are more parts than are listed");
                break None;
            }
            self.parts_left -= 1;
            let (texts, stop) = self.read_part(within, depth)?;
            if within == Within::Alternative {
                all.plain = all.plain.or(texts.plain);
                all.html = all.html.or(texts.html);
            } else if texts.plain.is_some() || texts.html.is_some() {
                all.append(&texts.shown());
            }
            match stop {
                Stop::Delimiter { level: found, is_closing: closes } if found == level => is_closing = closes,
                stop => break Some(stop),
            }
        };
        self.lines.close();
        let stop = match outer {
            Some(stop) => {
                self.notes.add("a multipart is not closed; the message may be cut off");
                stop
            }
            None => self.lines.skip()?,
        };
        Ok((all, stop))
    }

    fn read_part(&mut self, within: Within, depth: usize) -> io::Result<(Texts, Stop)> {
        let (bytes, stop) = read_header(self.lines, self.notes)?;
        let header = HeaderFields::read(&bytes, self.notes)
            .with_raw_set(|header| self.set.or_else(|| header.likely_set(b"")));
        if let Some(stop) = stop {
            self.lines.end_part_with(stop);
        }
        self.read(&header, depth + 1, within)
    }

    fn read_leaf_text(&mut self, leaf: Leaf, part: &Part) -> Texts {
        leaf.text.map(|text| self.read_text(text, part)).unwrap_or_default()
    }

    fn read_text(&mut self, text: LeafText, part: &Part) -> Texts {
        let (bytes, is_cut) = self.text_bytes(text, part);
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
    fn text_bytes(&mut self, text: LeafText, part: &Part) -> (Vec<u8>, bool) {
        let (bytes, is_cut, files) = text.finish();
        self.list_embedded(files);
        let decoded = match part.encoding {
            TransferEncoding::Plain | TransferEncoding::Uuencode => return (bytes, is_cut),
            TransferEncoding::Base64 => base64(&bytes, self.notes),
            TransferEncoding::QuotedPrintable => {
                quoted_printable(if is_cut { without_cut_escape(&bytes) } else { &bytes }, self.notes)
            }
        };
        if part.is_html() {
            return (decoded, is_cut);
        }
        let (rest, files) = embedded::take_out(&decoded, MOST_PARTS);
        self.list_embedded(files);
        (rest, is_cut)
    }

    fn list_embedded(&mut self, files: Vec<EmbeddedFile>) {
        for file in files.into_iter().take(self.parts_left) {
            self.parts_left -= 1;
            let name = CharacterSet::Undeclared.decode(&file.name, false, self.notes);
            self.list(&name, "application/octet-stream", file.bytes);
        }
    }

    fn list(&mut self, name: &str, content_type: &str, bytes: usize) {
        self.files.push(AttachedFile {
            name: clean_field(name, LONGEST_FILE_NAME, self.notes),
            content_type: clean_field(content_type, LONGEST_FILE_NAME, self.notes),
            bytes,
        });
    }
}

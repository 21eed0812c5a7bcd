//! Contents of attachments, taken out of a JSON text while it comes, so that they are not held with it.
//!
//! What stands as `data` in a document's `_attachments` and is long is decoded and handed out piece by piece. In the text
//! that is left `"follows":true` stands in its place, as in a document whose contents come next to it. Nothing else of the
//! text is changed or checked: anyone who parses what is left does that.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::{Buf, Bytes};

use super::{NESTING_MAX, string};
use crate::DocumentError;
use crate::attachment::BASE64;

/// Shorter `data` stays where it is.
const LONG_BYTES: usize = 64 << 10;

/// Unless the text that is held has become this long, or a quarter of what it may become; then what is longer than
/// [`SHORT_BYTES`] is taken out too.
const MUCH_BYTES: usize = 4 << 20;
const SHORT_BYTES: usize = 1 << 10;

/// Documents lie as deep as this in the text of a request.
const AROUND: usize = 2;

/// Stands where a content was taken out.
const TAKEN_OUT: &[u8] = b"\"follows\":true";

/// What is not the end of a content has no padding.
const UNPADDED: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

const IN_DOCUMENT: &[PathStep] = &[PathStep::Name("_attachments"), PathStep::AnyName, PathStep::Name("data")];
const IN_DOCUMENTS: &[PathStep] = &[
    PathStep::Name("docs"),
    PathStep::Element,
    PathStep::Name("_attachments"),
    PathStep::AnyName,
    PathStep::Name("data"),
];

/// One step from the whole text to a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathStep {
    Name(&'static str),
    AnyName,
    Element,
}

/// What a [`ContentSeparator`] has found next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Separated {
    /// The next bytes of a content.
    Data(Vec<u8>),
    /// The content has ended.
    End(ContentPlace),
    /// All that was pushed has been looked at.
    Starved,
}

/// Where a content stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentPlace {
    /// Which of the documents, counted from 0.
    pub document: usize,
    /// The attachment's name.
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Between,
    /// In a string that is kept; `escaped` behind a backslash.
    Kept {
        kind: Kind,
        escaped: bool,
    },
    /// In a string that is a content.
    Content(Escape),
    /// Behind it.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Name,
    Value,
    /// What will be a content if it is long.
    Data,
}

/// How much of an escape has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    /// Digits of `\uXXXX`, and what they stand for.
    Unicode(u8, u32),
}

/// Takes long contents of attachments out of a JSON text. Bytes go in by [`push`](Self::push), contents come out by
/// [`next_piece`](Self::next_piece); what is left is [`into_text`](Self::into_text).
pub struct ContentSeparator {
    steps: &'static [PathStep],
    much_bytes: usize,
    input: Bytes,
    text: Vec<u8>,
    mode: Mode,
    /// Of what is open around the place, whether it is an object.
    open: Vec<bool>,
    /// This many of these, from the outermost on, lead to contents.
    on_way: usize,
    /// Whether the value of the name that was read last does too.
    leads: bool,
    expects_name: bool,
    /// Where the present string, the name `data` and the name of the attachment begin in the text.
    string_at: usize,
    data_at: usize,
    attachment: (usize, usize),
    document: usize,
    /// Base64 that is not decoded yet.
    encoded: Vec<u8>,
}

impl ContentSeparator {
    /// For the text of one document.
    #[must_use]
    pub fn of_document() -> Self {
        Self::new(IN_DOCUMENT)
    }

    /// For a text with documents in its member `docs`.
    #[must_use]
    pub fn of_documents() -> Self {
        Self::new(IN_DOCUMENTS)
    }

    fn new(steps: &'static [PathStep]) -> Self {
        Self {
            steps,
            much_bytes: MUCH_BYTES,
            input: Bytes::new(),
            text: Vec::new(),
            mode: Mode::Between,
            open: Vec::new(),
            on_way: 0,
            leads: false,
            expects_name: false,
            string_at: 0,
            data_at: 0,
            attachment: (0, 0),
            document: 0,
            encoded: Vec::new(),
        }
    }

    /// The same, where no more than this many bytes of text may be left.
    #[must_use]
    pub fn for_text_of(mut self, bytes: usize) -> Self {
        self.much_bytes = MUCH_BYTES.min(bytes / 4);
        self
    }

    /// Adds bytes to be looked at.
    pub fn push(&mut self, bytes: Bytes) {
        if self.input.is_empty() {
            self.input = bytes;
        } else {
            self.input = [&self.input[..], &bytes[..]].concat().into();
        }
    }

    /// Bytes that are held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.text.len() + self.input.len() + self.encoded.len()
    }

    /// The text without its contents.
    #[must_use]
    pub fn into_text(self) -> Vec<u8> {
        self.text
    }

    /// What comes next.
    ///
    /// # Errors
    /// [`DocumentError::BadRequest`] for a content that is no base64, and for a text that is nested too deep.
    pub fn next_piece(&mut self) -> Result<Separated, DocumentError> {
        loop {
            match self.mode {
                Mode::Ended => {
                    self.mode = Mode::Between;
                    let name = self.attachment_name();
                    return Ok(Separated::End(ContentPlace { document: self.document, name }));
                }
                _ if self.input.is_empty() => return Ok(Separated::Starved),
                Mode::Between => self.read_between()?,
                Mode::Kept { kind, escaped } => self.read_kept(kind, escaped),
                Mode::Content(escape) => {
                    let bytes = self.read_content(escape)?;
                    if !bytes.is_empty() {
                        return Ok(Separated::Data(bytes));
                    }
                }
            }
        }
    }

    /// Reads up to the next string.
    fn read_between(&mut self) -> Result<(), DocumentError> {
        let input = std::mem::take(&mut self.input);
        let mut read = 0;
        for byte in &input {
            read += 1;
            match byte {
                b'"' => {
                    self.begin_string(read, &input);
                    break;
                }
                b'{' | b'[' => self.open(*byte == b'{')?,
                b'}' | b']' => self.close(),
                b',' => self.separate(),
                b':' => self.expects_name = false,
                _ => {}
            }
        }
        if self.mode == Mode::Between {
            self.text.extend_from_slice(&input);
        } else {
            self.input = input.slice(read..);
        }
        Ok(())
    }

    fn begin_string(&mut self, read: usize, input: &Bytes) {
        self.text.extend_from_slice(input.get(..read).unwrap_or_default());
        self.string_at = self.text.len().saturating_sub(1);
        let kind = if self.expects_name {
            Kind::Name
        } else if self.value_leads() && self.open.len() == self.steps.len() {
            Kind::Data
        } else {
            Kind::Value
        };
        self.mode = Mode::Kept { kind, escaped: false };
    }

    /// The step that leads from the innermost open array or object on, if that is on the way.
    fn step(&self) -> Option<PathStep> {
        let is_on_way = self.on_way == self.open.len();
        self.open.len().checked_sub(1).filter(|_| is_on_way).and_then(|depth| self.steps.get(depth)).copied()
    }

    /// Whether the value that begins here is on the way to contents.
    fn value_leads(&self) -> bool {
        match self.open.last() {
            None => true,
            Some(true) => self.leads && self.step().is_some(),
            Some(false) => self.step() == Some(PathStep::Element),
        }
    }

    fn open(&mut self, is_object: bool) -> Result<(), DocumentError> {
        if self.open.len() >= NESTING_MAX + AROUND {
            let reason = format!("JSON nested deeper than {NESTING_MAX} levels");
            return Err(DocumentError::BadRequest(reason.into()));
        }
        let leads = self.value_leads() && self.open.len() < self.steps.len();
        self.open.push(is_object);
        self.on_way += usize::from(leads);
        if self.step() == Some(PathStep::Element) {
            self.document = 0;
        }
        (self.leads, self.expects_name) = (false, is_object);
        Ok(())
    }

    fn close(&mut self) {
        self.open.pop();
        self.on_way = self.on_way.min(self.open.len());
        (self.leads, self.expects_name) = (false, false);
    }

    fn separate(&mut self) {
        let is_object = self.open.last() == Some(&true);
        if !is_object && self.step() == Some(PathStep::Element) {
            self.document += 1;
        }
        (self.leads, self.expects_name) = (false, is_object);
    }

    /// Reads a string that stays in the text, or more of one that may become too long for that.
    fn read_kept(&mut self, kind: Kind, mut escaped: bool) {
        let mut input = std::mem::take(&mut self.input);
        let (mut read, mut ended) = (0, false);
        for byte in &input {
            read += 1;
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    ended = true;
                    break;
                }
                _ => {}
            }
        }
        self.text.extend_from_slice(input.get(..read).unwrap_or_default());
        input.advance(read);
        self.input = input;
        self.mode = if ended { Mode::Between } else { Mode::Kept { kind, escaped } };
        let long = if self.text.len() > self.much_bytes { SHORT_BYTES } else { LONG_BYTES };
        match kind {
            Kind::Data if self.text.len() - self.string_at > long => self.take_out(),
            Kind::Name if ended => self.end_name(),
            _ => {}
        }
    }

    fn end_name(&mut self) {
        self.expects_name = false;
        let raw = self.text.get(self.string_at..).unwrap_or_default();
        self.leads = match self.step() {
            None | Some(PathStep::Element) => false,
            Some(PathStep::AnyName) => {
                self.attachment = (self.string_at, self.text.len());
                true
            }
            // Each character may be written as an escape of six.
            Some(PathStep::Name(name)) => {
                raw.len() <= 6 * name.len() + 2
                    && std::str::from_utf8(raw).ok().and_then(string).is_some_and(|read| read == name)
            }
        };
        if self.leads && self.open.len() == self.steps.len() {
            self.data_at = self.string_at;
        }
    }

    /// What has arrived of a content is read once more, as one.
    fn take_out(&mut self) {
        let began = self.text.get(self.string_at + 1..).unwrap_or_default();
        self.input = [began, &self.input].concat().into();
        self.text.truncate(self.data_at);
        self.text.extend_from_slice(TAKEN_OUT);
        self.encoded.clear();
        self.mode = Mode::Content(Escape::None);
    }

    /// Decodes all of the input that is a content.
    fn read_content(&mut self, mut escape: Escape) -> Result<Vec<u8>, DocumentError> {
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        let mut ended = false;
        while let Some((first, behind)) = rest.split_first() {
            if escape != Escape::None {
                escape = self.unescape(escape, *first)?;
                rest = behind;
                continue;
            }
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            let (plain, behind) = rest.split_at(plain.unwrap_or(rest.len()));
            self.encoded.extend(plain.iter().filter(|byte| **byte != b' '));
            match behind.split_first() {
                None => rest = behind,
                Some((b'\\', behind)) => (escape, rest) = (Escape::Begun, behind),
                Some((b'"', behind)) => {
                    (ended, rest) = (true, behind);
                    break;
                }
                Some(_) => return Err(DocumentError::InvalidJson),
            }
        }
        self.input = input.slice_ref(rest);
        self.mode = if ended { Mode::Ended } else { Mode::Content(escape) };
        self.decode(ended)
    }

    fn unescape(&mut self, escape: Escape, byte: u8) -> Result<Escape, DocumentError> {
        let character = match (escape, byte) {
            (Escape::Unicode(digits, value), _) => {
                let digit = char::from(byte).to_digit(16).ok_or(DocumentError::InvalidJson)?;
                let value = value * 16 + digit;
                if digits < 3 {
                    return Ok(Escape::Unicode(digits + 1, value));
                }
                u8::try_from(value).map_err(|_| self.invalid())?
            }
            (_, b'u') => return Ok(Escape::Unicode(0, 0)),
            (_, b'n' | b'r' | b't' | b'f') => b' ',
            (_, b'/') => b'/',
            _ => return Err(self.invalid()),
        };
        if !character.is_ascii_whitespace() {
            self.encoded.push(character);
        }
        Ok(Escape::None)
    }

    /// Decodes what has arrived, but for what may be the end.
    fn decode(&mut self, ended: bool) -> Result<Vec<u8>, DocumentError> {
        let decoded = if ended {
            BASE64.decode(std::mem::take(&mut self.encoded))
        } else {
            let whole = self.encoded.len().saturating_sub(4) / 4 * 4;
            let end = self.encoded.split_off(whole);
            UNPADDED.decode(std::mem::replace(&mut self.encoded, end))
        };
        decoded.map_err(|_| self.invalid())
    }

    fn attachment_name(&self) -> String {
        let (from, to) = self.attachment;
        let raw = self.text.get(from..to).and_then(|raw| std::str::from_utf8(raw).ok());
        raw.and_then(string).unwrap_or_default().into_owned()
    }

    fn invalid(&self) -> DocumentError {
        DocumentError::BadRequest(format!("Invalid attachment data for {}", self.attachment_name()).into())
    }
}

//! Makes the map of a message while its bytes come.

use scrinium_imap_wire::Envelope;

use crate::decode::{Decoder, TransferEncoding};
use crate::map::{MapPart, MessageMap, PartKind, Span};
use crate::media::MediaValue;
use crate::part::{PartHeader, message_header};
use crate::preview::preview;
use crate::sent::SentDate;
use crate::structure::is_message_type;

/// Limits of what is kept of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapLimits {
    /// Parts in parts. What lies deeper is not taken apart.
    pub depth: usize,
    /// Parts in all. What comes behind them belongs to none.
    pub parts: usize,
    /// What is read of one header.
    pub header_bytes: usize,
    /// What is read of all headers.
    pub headers_bytes: usize,
}

impl Default for MapLimits {
    fn default() -> Self {
        Self { depth: 32, parts: 1000, header_bytes: 1 << 18, headers_bytes: 1 << 21 }
    }
}

/// A line is looked at in pieces of this length; only the first one may be a boundary, or the empty line.
const LINE_PIECE_BYTES: usize = 8 * 1024;

/// Decoded text that is kept for the first words.
const PREVIEW_BYTES: usize = 8 * 1024;

/// References of a message (RFC 5256 names no limit).
const REFERENCES_MAX: usize = 20;

#[derive(Debug)]
enum Stage {
    Header,
    Leaf(Box<Leaf>),
    Multipart { boundary: Vec<u8>, is_over: bool },
    Message,
}

/// A part that is no other part's frame.
#[derive(Debug)]
struct Leaf {
    decoder: Decoder,
    decoded: Vec<u8>,
    decoded_bytes: u64,
    /// The line end that may belong to a boundary.
    held: Vec<u8>,
    /// The beginning of its text, where it may be the first words.
    text: Option<Vec<u8>>,
}

impl Leaf {
    fn push(&mut self, bytes: &[u8]) {
        self.decoder.push(bytes, &mut self.decoded);
        self.decoded_bytes += self.decoded.len() as u64;
        if let Some(text) = &mut self.text {
            let room = PREVIEW_BYTES.saturating_sub(text.len());
            text.extend(self.decoded.iter().take(room));
        }
        self.decoded.clear();
    }

    fn finish(&mut self) {
        self.decoder.finish(&mut self.decoded);
        self.push(&[]);
    }
}

#[derive(Debug)]
struct Open {
    /// In the list of parts.
    part: usize,
    stage: Stage,
    /// Line ends of the message before the body.
    lines_before: u64,
    /// Parts without a type are messages (RFC 2046, section 5.1.5).
    is_digest: bool,
    is_message: bool,
}

/// Reads a message. Its lines should end with CR LF, since clients get it so.
#[derive(Debug)]
pub struct MapBuilder {
    limits: MapLimits,
    /// A line that has not ended.
    line: Vec<u8>,
    /// Whether it is the beginning of a line.
    at_start: bool,
    /// Bytes before it.
    offset: u64,
    lines: u64,
    /// The length of the line end before it.
    last_end: u64,
    header: Vec<u8>,
    headers_bytes: usize,
    parts: Vec<MapPart>,
    open: Vec<Open>,
    preview: Option<String>,
    sent: Option<SentDate>,
    references: Vec<String>,
}

impl MapBuilder {
    /// Nothing has arrived yet.
    #[must_use]
    pub fn new(limits: MapLimits) -> Self {
        let mut builder = Self {
            limits,
            line: Vec::new(),
            at_start: true,
            offset: 0,
            lines: 0,
            last_end: 0,
            header: Vec::new(),
            headers_bytes: 0,
            parts: Vec::new(),
            open: Vec::new(),
            preview: None,
            sent: None,
            references: Vec::new(),
        };
        builder.begin(true, None);
        builder
    }

    /// The map of a message that is there whole.
    #[must_use]
    pub fn map(message: &[u8]) -> MessageMap {
        let mut builder = Self::new(MapLimits::default());
        builder.push(message);
        builder.finish()
    }

    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).map(|end| end + 1);
            let room = LINE_PIECE_BYTES.saturating_sub(self.line.len()).max(1);
            let taken = end.unwrap_or(rest.len()).min(room);
            let (piece, after) = rest.split_at(taken);
            rest = after;
            let is_end = end == Some(taken);
            if self.line.is_empty() && is_end {
                self.piece(piece, true);
                continue;
            }
            self.line.extend_from_slice(piece);
            if is_end || self.line.len() >= LINE_PIECE_BYTES {
                // A CR at the cut may be half of a line end.
                let cut_end = !is_end && self.line.last() == Some(&b'\r');
                if cut_end {
                    self.line.pop();
                }
                let mut line = std::mem::take(&mut self.line);
                self.piece(&line, is_end);
                line.clear();
                if cut_end {
                    line.push(b'\r');
                }
                self.line = line;
            }
        }
    }

    /// The message is whole.
    #[must_use]
    pub fn finish(mut self) -> MessageMap {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.piece(&line, false);
        }
        if matches!(self.open.last(), Some(Open { stage: Stage::Header, .. })) {
            self.header_ended();
        }
        self.last_end = 0;
        self.close_to(0);
        MessageMap {
            bytes: self.offset,
            parts: self.parts,
            preview: self.preview,
            sent: self.sent,
            references: self.references,
        }
    }

    /// Bytes that are held at this moment.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.line.len() + self.header.len() + self.headers_bytes
    }

    fn begin(&mut self, is_message: bool, parent: Option<usize>) {
        let part = self.parts.len();
        let is_digest = parent.and_then(|parent| self.parts.get(parent)).is_some_and(|parent| {
            parent.kind == PartKind::Multipart && parent.fields.is("multipart", "digest")
        });
        let start = Span { start: self.offset, end: self.offset };
        self.parts.push(MapPart {
            kind: PartKind::Single,
            header: start,
            body: start,
            lines: 0,
            children: Vec::new(),
            encoding: TransferEncoding::Identity,
            decoded_bytes: 0,
            fields: PartHeader::default(),
            envelope: None,
        });
        if let Some(parent) = parent.and_then(|parent| self.parts.get_mut(parent)) {
            parent.children.push(part);
        }
        self.header.clear();
        self.open.push(Open { part, stage: Stage::Header, lines_before: self.lines, is_digest, is_message });
    }

    /// A line, or a piece of one.
    fn piece(&mut self, line: &[u8], is_end: bool) {
        let is_start = std::mem::replace(&mut self.at_start, is_end);
        let boundary = if is_start && line.starts_with(b"--") { self.boundary(line) } else { None };
        if let Some((open, closes)) = boundary {
            self.close_to(open + 1);
            self.passed(line, is_end);
            self.at_boundary(open, closes);
            return;
        }
        let end_bytes = line_end(line);
        let is_empty = is_start && is_end && line.len() == end_bytes;
        let Some(open) = self.open.last_mut() else { return self.passed(line, is_end) };
        match &mut open.stage {
            Stage::Header => {
                let room = self.limits.header_bytes.saturating_sub(self.header.len());
                let room = room.min(self.limits.headers_bytes.saturating_sub(self.headers_bytes));
                let taken = line.get(..line.len().min(room)).unwrap_or_default();
                self.header.extend_from_slice(taken);
                self.headers_bytes += taken.len();
                self.passed(line, is_end);
                if is_empty {
                    self.header_ended();
                }
            }
            Stage::Leaf(leaf) => {
                let held = std::mem::take(&mut leaf.held);
                leaf.push(&held);
                let (text, end) = line.split_at(line.len() - end_bytes);
                leaf.push(text);
                leaf.held = end.to_vec();
                self.passed(line, is_end);
            }
            Stage::Multipart { .. } | Stage::Message => self.passed(line, is_end),
        }
    }

    fn passed(&mut self, line: &[u8], is_end: bool) {
        self.offset += line.len() as u64;
        self.lines += u64::from(is_end);
        self.last_end = if is_end { line_end(line) as u64 } else { 0 };
    }

    /// The open multipart whose boundary a line is, and whether it is the last one. The longest that fits counts, and of equals the
    /// innermost.
    fn boundary(&self, line: &[u8]) -> Option<(usize, bool)> {
        let text = line.get(2..)?;
        let mut found: Option<(usize, usize)> = None;
        for (index, open) in self.open.iter().enumerate() {
            if let Stage::Multipart { boundary, is_over: false } = &open.stage
                && text.starts_with(boundary)
                && found.is_none_or(|(_, length)| boundary.len() >= length)
            {
                found = Some((index, boundary.len()));
            }
        }
        let (index, length) = found?;
        Some((index, text.get(length..)?.starts_with(b"--")))
    }

    fn at_boundary(&mut self, open: usize, closes: bool) {
        let is_full = self.parts.len() >= self.limits.parts;
        let Some(Open { part, stage: Stage::Multipart { is_over, .. }, .. }) = self.open.get_mut(open) else {
            return;
        };
        let parent = *part;
        if closes || is_full {
            *is_over = true;
        } else {
            self.begin(false, Some(parent));
        }
    }

    /// Closes what is open from this place on. The line end before it belongs to the boundary (RFC 2046, section 5.1.1).
    fn close_to(&mut self, keep: usize) {
        let end = self.offset.saturating_sub(self.last_end);
        let cut_lines = u64::from(self.last_end > 0);
        while self.open.len() > keep {
            let Some(mut open) = self.open.pop() else { return };
            if matches!(open.stage, Stage::Header) {
                self.end_header(&mut open);
            }
            let mut text = None;
            if let Stage::Leaf(leaf) = &mut open.stage {
                if self.last_end == 0 {
                    let held = std::mem::take(&mut leaf.held);
                    leaf.push(&held);
                }
                leaf.finish();
                text = leaf.text.take();
            }
            let Some(part) = self.parts.get_mut(open.part) else { continue };
            part.body.end = end.max(part.body.start);
            let lines = self.lines.saturating_sub(open.lines_before);
            part.lines = if part.body.end < self.offset { lines.saturating_sub(cut_lines) } else { lines };
            part.decoded_bytes = match &open.stage {
                Stage::Leaf(leaf) => leaf.decoded_bytes,
                _ => part.body.bytes(),
            };
            if let Some(text) = text.filter(|_| self.preview.is_none()) {
                let charset = part.fields.content_type.as_ref().and_then(|media| media.parameter("charset"));
                self.preview = preview(&text, charset, part.fields.is("text", "html"));
            }
        }
    }

    fn header_ended(&mut self) {
        let Some(mut open) = self.open.pop() else { return };
        self.end_header(&mut open);
        let is_message = matches!(open.stage, Stage::Message);
        let part = open.part;
        self.open.push(open);
        if is_message {
            self.begin(true, Some(part));
        }
    }

    /// Reads a header, and decides what follows it.
    fn end_header(&mut self, open: &mut Open) {
        let header = std::mem::take(&mut self.header);
        let may_nest = self.open.len() + 1 < self.limits.depth && self.parts.len() < self.limits.parts;
        let (mut fields, found) = if open.is_message {
            let (fields, envelope) = message_header(&header);
            (fields, Some(envelope))
        } else {
            (PartHeader::read(&header), None)
        };
        if open.is_digest && fields.content_type.is_none() {
            fields.content_type = Some(MediaValue {
                value: b"message".to_vec(),
                subtype: b"rfc822".to_vec(),
                parameters: Vec::new(),
            });
        }
        if open.part == 0 {
            self.note_root(&header, found.as_ref());
        }
        let boundary = fields.content_type.as_ref().and_then(|media| media.parameter("boundary"));
        let boundary = boundary.map(<[u8]>::trim_ascii_end).filter(|boundary| !boundary.is_empty());
        let boundary = boundary.map(<[u8]>::to_vec);
        let kind = if fields.is_type("multipart") && may_nest {
            // Without a boundary nothing separates parts: it is a multipart without any.
            let boundary = boundary.unwrap_or_default();
            let is_over = boundary.is_empty();
            open.stage = Stage::Multipart { boundary, is_over };
            PartKind::Multipart
        } else if is_message_type(&fields) && may_nest {
            open.stage = Stage::Message;
            PartKind::Message
        } else {
            open.stage = Stage::Leaf(Box::new(self.leaf(&fields)));
            PartKind::Single
        };
        open.lines_before = self.lines;
        let offset = self.offset;
        let Some(part) = self.parts.get_mut(open.part) else { return };
        part.header.end = offset;
        part.body = Span { start: offset, end: offset };
        part.encoding = fields.transfer_encoding();
        part.envelope = found.map(Box::new);
        part.fields = fields;
        part.kind = kind;
    }

    fn leaf(&self, fields: &PartHeader) -> Leaf {
        let is_text =
            fields.content_type.is_none() || fields.is("text", "plain") || fields.is("text", "html");
        let is_shown = is_text && !fields.is_attachment() && self.preview.is_none();
        Leaf {
            decoder: Decoder::new(fields.transfer_encoding()),
            decoded: Vec::new(),
            decoded_bytes: 0,
            held: Vec::new(),
            text: is_shown.then(Vec::new),
        }
    }

    fn note_root(&mut self, header: &[u8], envelope: Option<&Envelope>) {
        self.sent = envelope.and_then(|envelope| SentDate::parse(envelope.date.as_deref()?));
        let references = crate::field::fields(header).find(|field| field.is("References"));
        let mut ids = references.map(|field| message_ids(&field.unfolded())).unwrap_or_default();
        let parent = envelope.and_then(|envelope| envelope.in_reply_to.as_deref()).map(message_ids);
        // RFC 5256, section 3: In-Reply-To counts where there is nothing else.
        if ids.is_empty() {
            ids.extend(parent.unwrap_or_default().into_iter().take(1));
        }
        // The last ones say most about where a message belongs; the first one is its thread's.
        while ids.len() > REFERENCES_MAX {
            ids.remove(1);
        }
        self.references = ids;
    }
}

/// Message ids in a field, without their brackets.
pub(crate) fn message_ids(value: &[u8]) -> Vec<String> {
    let mut ids = Vec::new();
    let mut rest = value;
    while let Some(start) = memchr::memchr(b'<', rest)
        && ids.len() < 1000
    {
        rest = rest.get(start + 1..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'>', rest) else { break };
        let id = rest.get(..end).unwrap_or_default();
        if !id.is_empty() && id.len() < 1000 {
            ids.push(String::from_utf8_lossy(id).split_ascii_whitespace().collect());
        }
        rest = rest.get(end..).unwrap_or_default();
    }
    ids
}

fn line_end(line: &[u8]) -> usize {
    match line {
        [.., b'\r', b'\n'] => 2,
        [.., b'\n'] => 1,
        _ => 0,
    }
}

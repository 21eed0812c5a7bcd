//! A text that comes in: what is counted, looked at and handed on of it.

use ring::digest::{Context, SHA256};
use scrinium_smtp_wire::{DotLimits, DotReader, TextFault};

use crate::chunk_text::ChunkText;
use crate::head::{HeadChanges, HeadFields, HeadReader, SenderField};
use crate::server::options::{ServerLimits, ServerOptions, Service};
use crate::server::request::Refusal;

/// Bytes beyond the limit that are read over before the connection is closed.
const EXCESS_MAX_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug)]
enum Reader {
    Dots(DotReader),
    Chunks(ChunkText),
}

/// What is to be done next for a text.
pub(crate) enum Flow {
    /// This piece is handed on.
    Piece(Vec<u8>),
    /// The head is over and must be looked at.
    Head,
    /// More is needed.
    Starved,
}

pub(crate) struct Incoming {
    limits: ServerLimits,
    reader: Reader,
    head: HeadReader,
    digest: Context,
    /// Without the dots, and not yet through the head's reader.
    unread: Vec<u8>,
    piece: Vec<u8>,
    text_bytes: u64,
    wire_bytes: u64,
    line_bytes: usize,
    longest_line_bytes: usize,
    has_eight_bit: bool,
    /// What is wrong behind the bytes that are unread.
    fault: Option<Refusal>,
    refusal: Option<Refusal>,
    /// It has a CR or LF by itself: another server may see its end elsewhere.
    is_unclear: bool,
    is_whole: bool,
    pub(crate) id: String,
    pub(crate) began_ms: u64,
}

impl Incoming {
    /// `first` stands before the text.
    pub(crate) fn new(
        options: &ServerOptions,
        in_chunks: bool,
        id: String,
        first: Vec<u8>,
        began_ms: u64,
    ) -> Self {
        let limits = options.limits;
        let dots = DotLimits { text_bytes: limits.message_bytes, line_bytes: limits.text_line_bytes };
        let reader = if in_chunks {
            Reader::Chunks(ChunkText::new(options.bare_ends))
        } else {
            Reader::Dots(DotReader::new(dots, options.bare_ends))
        };
        let changes = match options.service {
            Service::Submission => HeadChanges::Submission,
            Service::Relay | Service::Lmtp => HeadChanges::None,
        };
        Self {
            limits,
            reader,
            head: HeadReader::new(changes),
            digest: Context::new(&SHA256),
            unread: Vec::new(),
            piece: first,
            text_bytes: 0,
            wire_bytes: 0,
            line_bytes: 0,
            longest_line_bytes: 0,
            has_eight_bit: false,
            fault: None,
            refusal: None,
            is_unclear: false,
            is_whole: false,
            id,
            began_ms,
        }
    }

    /// Takes bytes of a text with dots. How many, and whether it is over.
    pub(crate) fn read_dots(&mut self, bytes: &[u8]) -> (usize, bool) {
        let Reader::Dots(reader) = &mut self.reader else { return (bytes.len(), true) };
        let mut text = std::mem::take(&mut self.unread);
        let already = text.len();
        let progress = reader.read(bytes, |piece| text.extend_from_slice(piece));
        let fault = reader.fault();
        self.took(text, already, progress.consumed, fault);
        (progress.consumed, progress.finished)
    }

    /// Takes bytes of a chunk.
    pub(crate) fn read_chunk(&mut self, bytes: &[u8]) {
        let Reader::Chunks(reader) = &mut self.reader else { return };
        let mut text = std::mem::take(&mut self.unread);
        let already = text.len();
        reader.read(bytes, &mut text);
        let fault = reader.fault();
        self.took(text, already, bytes.len(), fault);
    }

    /// The text is over.
    pub(crate) fn end(&mut self) {
        if std::mem::replace(&mut self.is_whole, true) {
            return;
        }
        if let Reader::Chunks(reader) = &mut self.reader {
            let mut text = std::mem::take(&mut self.unread);
            let already = text.len();
            reader.finish(&mut text);
            let fault = reader.fault();
            self.took(text, already, 0, fault);
        }
    }

    fn took(&mut self, text: Vec<u8>, already: usize, wire_bytes: usize, fault: Option<TextFault>) {
        self.unread = text;
        let fresh = self.unread.get(already..).unwrap_or_default();
        self.digest.update(fresh);
        self.text_bytes = self.text_bytes.saturating_add(fresh.len() as u64);
        self.wire_bytes = self.wire_bytes.saturating_add(wire_bytes as u64);
        self.has_eight_bit = self.has_eight_bit || !fresh.is_ascii();
        for line in fresh.split_inclusive(|byte| *byte == b'\n') {
            let length = line.trim_ascii_end_of_line().len();
            self.line_bytes = self.line_bytes.saturating_add(length);
            self.longest_line_bytes = self.longest_line_bytes.max(self.line_bytes);
            if line.ends_with(b"\n") {
                self.line_bytes = 0;
            }
        }
        let limits = &self.limits;
        let own = if self.text_bytes > limits.message_bytes {
            Some(TextFault::TooLong { limit_bytes: limits.message_bytes })
        } else if self.longest_line_bytes > limits.text_line_bytes {
            Some(TextFault::LineTooLong { limit_bytes: limits.text_line_bytes })
        } else {
            None
        };
        self.is_unclear |= matches!(fault, Some(TextFault::BareCarriageReturn | TextFault::BareLineFeed));
        if let Some(fault) = fault.or(own) {
            self.fault.get_or_insert_with(|| fault_refusal(fault));
        }
    }

    /// Nothing more of it is handed on; it is read to its end.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.refusal.get_or_insert(refusal);
        self.unread = Vec::new();
        self.piece = Vec::new();
    }

    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// Whether another server may see the end of the text elsewhere.
    pub(crate) fn is_unclear(&self) -> bool {
        self.is_unclear
    }

    /// Whether more was sent than anybody by mistake would.
    pub(crate) fn is_endless(&self) -> bool {
        self.wire_bytes > self.limits.message_bytes.saturating_mul(2).saturating_add(EXCESS_MAX_BYTES)
    }

    /// What a chunk of this length would make the whole.
    pub(crate) fn would_be_too_long(&self, chunk_bytes: u64) -> bool {
        self.text_bytes.saturating_add(chunk_bytes) > self.limits.message_bytes
    }

    /// What is to be done with what came.
    pub(crate) fn flow(&mut self) -> Flow {
        if self.refusal.is_some() {
            return Flow::Starved;
        }
        if self.head.is_waiting() {
            return Flow::Head;
        }
        let unread = std::mem::take(&mut self.unread);
        let taken = self.head.read(&unread, &mut self.piece);
        self.unread = unread.get(taken..).unwrap_or_default().to_vec();
        let is_read = self.unread.is_empty() && !self.head.is_waiting();
        if is_read && self.is_whole && self.fault.is_none() {
            self.head.finish(&mut self.piece);
        }
        self.check_hops();
        // What comes first in the text counts, however it is cut into pieces.
        if let Some(fault) = self.fault.take_if(|_| is_read) {
            self.refuse(fault);
        }
        if self.refusal.is_some() {
            return Flow::Starved;
        }
        if self.head.is_waiting() {
            return Flow::Head;
        }
        let is_due = self.piece.len() >= self.limits.piece_bytes || (self.is_whole && !self.piece.is_empty());
        if is_due { Flow::Piece(std::mem::take(&mut self.piece)) } else { Flow::Starved }
    }

    /// RFC 5321, section 6.3.
    fn check_hops(&mut self) {
        if self.head.fields().received > self.limits.hops {
            let text = "The message goes in a circle: it has gone through too many servers. Look for forwarding that leads back";
            self.refuse(Refusal::new(554, 4, 6, text));
        }
    }

    pub(crate) fn head_fields(&self) -> &HeadFields {
        self.head.fields()
    }

    /// The head was looked at.
    pub(crate) fn close_head(&mut self, sender: &SenderField, now_ms: u64, host: &str) {
        self.head.close(sender, now_ms, &self.id, host, &mut self.piece);
    }

    pub(crate) fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    /// Length, longest line, whether there are bytes beyond ASCII, and the digest.
    pub(crate) fn counts(&self) -> (u64, usize, bool, [u8; 32]) {
        let digest = self.digest.clone().finish();
        let digest = digest.as_ref().first_chunk().copied().unwrap_or([0; 32]);
        (self.text_bytes, self.longest_line_bytes, self.has_eight_bit, digest)
    }

    /// How many bytes are held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.unread.len() + self.piece.len()
    }
}

/// A line without its end.
trait LineEnd {
    fn trim_ascii_end_of_line(&self) -> &[u8];
}

impl LineEnd for [u8] {
    fn trim_ascii_end_of_line(&self) -> &[u8] {
        let text = self.strip_suffix(b"\n").unwrap_or(self);
        text.strip_suffix(b"\r").unwrap_or(text)
    }
}

fn fault_refusal(fault: TextFault) -> Refusal {
    match fault {
        TextFault::BareLineFeed | TextFault::BareCarriageReturn => {
            // RFC 5321, section 2.3.8: what one server takes for the end of a line and another does not can hide a second message.
            Refusal::new(
                550,
                6,
                11,
                &format!(
                    "The message was not taken: {fault}. Lines must end with CR LF; send it from a program that does so"
                ),
            )
        }
        TextFault::TooLong { .. } => {
            Refusal::new(552, 3, 4, &format!("The message was not taken: {fault}. Send a shorter one"))
        }
        TextFault::LineTooLong { .. } => {
            Refusal::new(550, 6, 0, &format!("The message was not taken: {fault}. Send it encoded"))
        }
    }
}

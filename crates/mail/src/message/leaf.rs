//! A part that has no parts, taken line by line: the beginning of its text, and how long it is as a file.

use super::decode::{Base64Length, QuotedLength, TransferEncoding};
use super::embedded::{EmbeddedFile, TextScanner};
use super::part::Part;
use super::structure::split_end;
use crate::memo::LONGEST_BODY;

/// Only so much of a part is decoded for the body.
pub(super) const LONGEST_DECODED: usize = 4 * LONGEST_BODY;

/// Files that are listed of those that stand in one text.
const MOST_FILES: usize = 1_000;

/// A part that is being read.
pub(super) struct Leaf {
    pub(super) text: Option<LeafText>,
    pub(super) length: Option<LeafLength>,
    /// The end of the last line: before a delimiter it belongs to that (RFC 2046 §5.1.1).
    held: &'static [u8],
}

impl Leaf {
    /// A part that is shown, listed as a file, or both.
    pub(super) fn of(part: &Part, is_text: bool, is_file: bool) -> Self {
        Self {
            text: is_text.then(|| LeafText::of(part)),
            length: is_file.then(|| LeafLength::of(part.encoding)),
            held: b"",
        }
    }

    /// Takes a line with its end, or a piece of a long one.
    pub(super) fn take(&mut self, line: &[u8]) {
        self.release();
        let (text, end) = split_end(line);
        if let Some(kept) = &mut self.text {
            kept.text(text);
        }
        if let Some(length) = &mut self.length {
            length.text(text);
        }
        self.held = end;
    }

    /// The part ends with the end of what is around it, and not before a delimiter: the end of its last line is its own.
    pub(super) fn release(&mut self) {
        let end = std::mem::take(&mut self.held);
        if end.is_empty() {
            return;
        }
        if let Some(kept) = &mut self.text {
            kept.line_end(end);
        }
        if let Some(length) = &mut self.length {
            length.line_end(end);
        }
    }
}

/// The beginning of a part's text, still encoded.
pub(super) enum LeafText {
    /// As it came.
    Raw(Vec<u8>),
    /// Without the files that stand in it.
    Scanned(TextScanner),
}

impl LeafText {
    pub(super) fn of(part: &Part) -> Self {
        let is_plain = matches!(part.encoding, TransferEncoding::Plain | TransferEncoding::Uuencode);
        if is_plain && !part.is_html() {
            Self::Scanned(TextScanner::new(MOST_FILES, LONGEST_DECODED + 1))
        } else {
            Self::Raw(Vec::new())
        }
    }

    fn text(&mut self, text: &[u8]) {
        match self {
            Self::Raw(kept) => push_some(kept, text, LONGEST_DECODED + 1),
            Self::Scanned(scanner) => scanner.text(text),
        }
    }

    fn line_end(&mut self, end: &[u8]) {
        match self {
            Self::Raw(kept) => push_some(kept, end, LONGEST_DECODED + 1),
            Self::Scanned(scanner) => scanner.line_end(end),
        }
    }

    /// The bytes, whether there are more, and the files that stood in them.
    pub(super) fn finish(self) -> (Vec<u8>, bool, Vec<EmbeddedFile>) {
        let (mut bytes, files) = match self {
            Self::Raw(kept) => (kept, Vec::new()),
            Self::Scanned(scanner) => scanner.finish(),
        };
        let is_cut = bytes.len() > LONGEST_DECODED;
        bytes.truncate(LONGEST_DECODED);
        (bytes, is_cut, files)
    }
}

/// Adds bytes up to a limit.
pub(super) fn push_some(kept: &mut Vec<u8>, bytes: &[u8], most_bytes: usize) {
    let room = most_bytes.saturating_sub(kept.len());
    kept.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
}

/// How many bytes a part has, decoded.
pub(super) enum LeafLength {
    Plain(usize),
    Base64(Base64Length),
    QuotedPrintable(QuotedLength),
    /// The length of the file that stands in it, else its own.
    Uuencode(TextScanner, usize),
}

impl LeafLength {
    fn of(encoding: TransferEncoding) -> Self {
        match encoding {
            TransferEncoding::Plain => Self::Plain(0),
            TransferEncoding::Base64 => Self::Base64(Base64Length::default()),
            TransferEncoding::QuotedPrintable => Self::QuotedPrintable(QuotedLength::default()),
            TransferEncoding::Uuencode => Self::Uuencode(TextScanner::new(1, 0), 0),
        }
    }

    fn text(&mut self, text: &[u8]) {
        match self {
            Self::Plain(bytes) => *bytes += text.len(),
            Self::Base64(length) => length.text(text),
            Self::QuotedPrintable(length) => length.text(text),
            Self::Uuencode(scanner, bytes) => {
                scanner.text(text);
                *bytes += text.len();
            }
        }
    }

    fn line_end(&mut self, end: &[u8]) {
        match self {
            Self::Plain(bytes) => *bytes += end.len(),
            Self::Base64(length) => length.line_end(),
            Self::QuotedPrintable(length) => length.line_end(end),
            Self::Uuencode(scanner, bytes) => {
                scanner.line_end(end);
                *bytes += end.len();
            }
        }
    }

    /// The length, and whether what is encoded was damaged.
    pub(super) fn finish(self) -> (usize, bool) {
        match self {
            Self::Plain(bytes) => (bytes, false),
            Self::Base64(length) => (length.finish(), false),
            Self::QuotedPrintable(length) => length.finish(),
            Self::Uuencode(scanner, bytes) => {
                (scanner.finish().1.first().map_or(bytes, |file| file.bytes), false)
            }
        }
    }
}

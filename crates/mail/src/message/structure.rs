//! Where a message's header and body lie, and the parts of a MIME body (RFC 2045, RFC 2046), as ranges of its
//! bytes. Bounded in depth and number, whatever a message claims.

use std::borrow::Cow;

use crate::notes::Notes;

/// A header of more bytes than this is read to here only.
const LONGEST_HEADER: usize = 1 << 20;

/// A part of a message, or a whole one: header and body as they stand in the source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section<'a> {
    /// Where it begins in the source: after an mbox line, blank lines or a byte order mark.
    pub(super) start: usize,
    /// The line that an mbox puts before a message, `From ada@acme.example Thu Aug 22 13:17:22 2002`.
    pub(super) mbox_line: Option<&'a [u8]>,
    /// Header lines, without the empty line that ends them.
    pub(super) header: &'a [u8],
    /// What follows that empty line.
    pub(super) body: &'a [u8],
}

/// The source with line feeds as line ends: old Macintosh mail has carriage returns alone.
pub(super) fn with_line_feeds<'a>(source: &'a [u8], notes: &mut Notes) -> Cow<'a, [u8]> {
    if source.contains(&b'\n') || !source.contains(&b'\r') {
        return Cow::Borrowed(source);
    }
    notes.add("lines end with carriage returns alone");
    Cow::Owned(source.iter().map(|&byte| if byte == b'\r' { b'\n' } else { byte }).collect())
}

/// Finds header and body of a whole message.
pub(super) fn split<'a>(source: &'a [u8], notes: &mut Notes) -> Section<'a> {
    let mut rest = source.strip_prefix(b"\xef\xbb\xbf").unwrap_or(source);
    let mut mbox_line = None;
    let mut blank_lines = false;
    loop {
        let (line, after) = first_line(rest);
        let text = trim_line(line);
        if !line.is_empty() && text.is_empty() {
            blank_lines = true;
        } else if mbox_line.is_none() && (text.starts_with(b"From ") || text.starts_with(b">From ")) {
            mbox_line = Some(text);
        } else {
            break;
        }
        rest = after;
    }
    if blank_lines {
        notes.add("blank lines stand before the header");
    }
    let mut section = split_part(rest, notes);
    section.start = source.len() - rest.len();
    section.mbox_line = mbox_line;
    section
}

/// Finds header and body of a part.
pub(super) fn split_part<'a>(part: &'a [u8], notes: &mut Notes) -> Section<'a> {
    let mut rest = part;
    let section = |header_bytes: usize, body: &'a [u8]| Section {
        start: 0,
        mbox_line: None,
        header: match part.get(..LONGEST_HEADER) {
            Some(beginning) if header_bytes >= LONGEST_HEADER => without_cut_character(beginning),
            _ => part.get(..header_bytes).unwrap_or_default(),
        },
        body,
    };
    loop {
        let (line, after) = first_line(rest);
        let position = part.len() - rest.len();
        if line.is_empty() || trim_line(line).is_empty() {
            return section(position.min(LONGEST_HEADER), after);
        }
        if !belongs_to_header(line, position) && !is_field(first_line(after).0) {
            notes.add("no empty line stands between header and body");
            return section(position.min(LONGEST_HEADER), rest);
        }
        if position < LONGEST_HEADER && part.len() - after.len() >= LONGEST_HEADER {
            notes.add("the header is longer than 1 MB; the rest of it was not read");
        }
        rest = after;
    }
}

/// The first line of a header with the lines that are folded to it, and what follows.
pub(super) fn first_unfolded(header: &[u8]) -> (&[u8], &[u8]) {
    let (_, mut rest) = first_line(header);
    while rest.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
        rest = first_line(rest).1;
    }
    header.split_at_checked(header.len() - rest.len()).unwrap_or((header, &[]))
}

/// A field's name and what follows its colon; `None` for a line that is no field.
pub(super) fn name_and_value(field: &[u8]) -> Option<(&[u8], &[u8])> {
    if !is_field(field) {
        return None;
    }
    let colon = field.iter().position(|&byte| byte == b':')?;
    let (name, value) = field.split_at_checked(colon)?;
    Some((name.trim_ascii_end(), value.get(1..)?))
}

fn belongs_to_header(line: &[u8], position: usize) -> bool {
    is_field(line)
        || (position > 0 && line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')))
        || line.starts_with(b">From ")
}

/// Whether a line begins a header field: a name of printable characters (RFC 5322 §3.6.8), a colon. Spaces
/// before the colon are obsolete (§4.5), and allowed.
fn is_field(line: &[u8]) -> bool {
    let Some(colon) = line.iter().position(|&byte| byte == b':') else { return false };
    let name = line.get(..colon).unwrap_or_default().trim_ascii_end();
    !name.is_empty() && name.iter().all(u8::is_ascii_graphic)
}

/// Bytes that were cut at some place, without a UTF-8 character that is not whole at their end.
pub(super) fn without_cut_character(bytes: &[u8]) -> &[u8] {
    let longest = 3.min(bytes.len());
    let starts = (1..=longest).find(|back| bytes.get(bytes.len() - back).is_some_and(|byte| *byte >= 0xc0));
    let Some(back) = starts else { return bytes };
    let (whole, last) = bytes.split_at_checked(bytes.len() - back).unwrap_or((bytes, &[]));
    let is_cut = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    if is_cut { whole } else { bytes }
}

/// The pieces between a multipart's delimiter lines (RFC 2046 §5.1.1).
#[derive(Debug)]
pub(super) struct Pieces<'a> {
    /// What stands between the delimiters; the text before the first and after the last is left out.
    pub(super) parts: Vec<&'a [u8]>,
    /// Whether the closing delimiter was there.
    pub(super) closed: bool,
    /// Whether there were more than the limit.
    pub(super) more: bool,
}

/// Splits a multipart's body at its delimiters, into at most `limit` parts.
pub(super) fn split_multipart<'a>(body: &'a [u8], boundary: &[u8], limit: usize) -> Pieces<'a> {
    let mut pieces = Pieces { parts: Vec::new(), closed: false, more: false };
    let mut part_start = None;
    let mut position = 0;
    for line in body.split_inclusive(|&byte| byte == b'\n') {
        let line_start = position;
        position += line.len();
        let Some(closing) = delimiter(line, boundary) else { continue };
        if let Some(start) = part_start.take() {
            // The line end before a delimiter belongs to the delimiter.
            pieces.parts.push(without_last_line_end(body.get(start..line_start).unwrap_or_default()));
        }
        if closing {
            pieces.closed = true;
            return pieces;
        }
        if pieces.parts.len() >= limit {
            pieces.more = true;
            return pieces;
        }
        part_start = Some(position);
    }
    if let Some(start) = part_start {
        pieces.parts.push(body.get(start..).unwrap_or_default());
    }
    pieces
}

/// Whether `line` is a delimiter of `boundary`; `Some(true)` for the closing one.
fn delimiter(line: &[u8], boundary: &[u8]) -> Option<bool> {
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary)?;
    if rest.trim_ascii().is_empty() {
        return Some(false);
    }
    let rest = rest.strip_prefix(b"--")?;
    rest.trim_ascii().is_empty().then_some(true)
}

fn without_last_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// The first line with its end, and what follows.
fn first_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| at + 1);
    bytes.split_at_checked(end).unwrap_or((bytes, &[]))
}

fn trim_line(line: &[u8]) -> &[u8] {
    without_last_line_end(line)
}

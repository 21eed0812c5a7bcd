//! Where a message's header ends, and what delimits the parts of a MIME body (RFC 2045, RFC 2046).

use std::io::{self, Read};

use super::lines::{Next, PartLines, Stop};
use crate::notes::Notes;

/// A header of more bytes than this is read to here only.
const LONGEST_HEADER: usize = 1 << 20;

/// Looked through at a time for the ends of lines.
const LOOKED_AT_BYTES: usize = 64 * 1024;

/// What stands before a message's header.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    /// Where the header begins in the source: after an mbox line, blank lines or a byte order mark.
    pub(super) start_bytes: u64,
    /// The line that an mbox puts before a message, `From ada@acme.example Thu Aug 22 13:17:22 2002`.
    pub(super) mbox_line: Option<Vec<u8>>,
}

/// Whether all lines of what `reader` gives end with carriage returns alone, as in old Macintosh mail.
pub(super) fn has_lone_returns(mut reader: impl Read) -> io::Result<bool> {
    let mut piece = vec![0; LOOKED_AT_BYTES];
    let mut returns = false;
    loop {
        let read = match reader.read(&mut piece) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = piece.get(..read).unwrap_or_default();
        if read == 0 || memchr::memchr(b'\n', bytes).is_some() {
            return Ok(read == 0 && returns);
        }
        returns |= memchr::memchr(b'\r', bytes).is_some();
    }
}

/// What a reader gives, with line feeds where it has carriage returns.
pub(super) struct WithLineFeeds<R>(pub(super) R);

impl<R: Read> Read for WithLineFeeds<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(into)?;
        for byte in into.iter_mut().take(read).filter(|byte| **byte == b'\r') {
            *byte = b'\n';
        }
        Ok(read)
    }
}

/// Passes what stands before a message's header.
pub(super) fn pass_beginning<R: Read>(lines: &mut PartLines<R>, notes: &mut Notes) -> io::Result<Beginning> {
    let mut beginning = Beginning::default();
    let mut blank_lines = false;
    if lines.input.fill(3)?.starts_with(b"\xef\xbb\xbf") {
        lines.input.pass(3);
    }
    loop {
        let length = lines.input.line_length()?;
        let text = trim_line(lines.input.next(length));
        if length > 0 && text.is_empty() {
            blank_lines = true;
        } else if beginning.mbox_line.is_none() && (text.starts_with(b"From ") || text.starts_with(b">From "))
        {
            beginning.mbox_line = Some(text.to_vec());
        } else {
            break;
        }
        lines.input.pass(length);
    }
    if blank_lines {
        notes.add("blank lines stand before the header");
    }
    beginning.start_bytes = lines.input.offset();
    Ok(beginning)
}

/// Reads the header of a message or a part: its lines, without the empty one that ends them. Also gives what ended the part
/// within its header, if anything did.
pub(super) fn read_header<R: Read>(
    lines: &mut PartLines<R>,
    notes: &mut Notes,
) -> io::Result<(Vec<u8>, Option<Stop>)> {
    let mut header = Vec::new();
    let mut position = 0;
    let stop = loop {
        let (length, is_start) = match lines.next()? {
            Next::Line { length, is_start } => (length, is_start),
            Next::Stop(stop) => break Some(stop),
        };
        let line = lines.input.next(length);
        if is_start && trim_line(line).is_empty() {
            lines.input.pass(length);
            break None;
        }
        if is_start && !belongs_to_header(line, position) && !is_field(lines.line_behind(length)?) {
            notes.add("no empty line stands between header and body");
            lines.stay();
            break None;
        }
        if position < LONGEST_HEADER && position + length >= LONGEST_HEADER {
            notes.add("the header is longer than 1 MB; the rest of it was not read");
        }
        let line = lines.input.next(length);
        header.extend_from_slice(line.get(..LONGEST_HEADER.saturating_sub(position)).unwrap_or(line));
        position += length;
        lines.input.pass(length);
    };
    if position >= LONGEST_HEADER {
        header.truncate(without_cut_character(&header).len());
    }
    Ok((header, stop))
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

/// Whether `line` is a delimiter of `boundary` (RFC 2046 §5.1.1); `Some(true)` for the closing one.
pub(super) fn delimiter(line: &[u8], boundary: &[u8]) -> Option<bool> {
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary)?;
    if rest.trim_ascii().is_empty() {
        return Some(false);
    }
    let rest = rest.strip_prefix(b"--")?;
    rest.trim_ascii().is_empty().then_some(true)
}

/// A line without its end, and the end.
pub(super) fn split_end(line: &[u8]) -> (&[u8], &'static [u8]) {
    match line {
        [text @ .., b'\r', b'\n'] => (text, b"\r\n"),
        [text @ .., b'\n'] => (text, b"\n"),
        text => (text, b""),
    }
}

/// The first line with its end, and what follows.
pub(super) fn first_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| at + 1);
    bytes.split_at_checked(end).unwrap_or((bytes, &[]))
}

fn trim_line(line: &[u8]) -> &[u8] {
    let text = split_end(line).0;
    text.strip_suffix(b"\r").unwrap_or(text)
}

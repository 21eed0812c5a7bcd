//! Messages in one file, each after a line `From sender date` (RFC 4155 and its mboxrd quoting).

use std::io::{self, BufRead, Read};

use bytes::Bytes;

use crate::message::mbox_line_date;

/// A line of more bytes than this is taken in pieces; no separator is that long.
const LINE_PIECE: u64 = 64 * 1024;

/// What comes out of an mbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MboxItem {
    /// A whole message.
    Message {
        /// Its bytes, unquoted.
        source: Bytes,
        /// The date of its separator.
        delivered_s: Option<i64>,
    },
    /// A message beyond the limit, passed over.
    TooLarge {
        /// Where it begins, in bytes.
        offset: u64,
    },
}

/// Reads an mbox message by message, with any line ends; memory is bounded by one message.
pub struct MboxReader<R> {
    input: R,
    /// Bytes of the file that were read, pushed-back ones included.
    read_bytes: u64,
    message_limit: u64,
    /// A line that was read and not used yet.
    pushed_back: Option<Vec<u8>>,
    /// Whether separators of this file carry a date, as they should: then a line without one is text.
    dated: Option<bool>,
}

impl<R: BufRead> MboxReader<R> {
    /// Reads from `input`, which stands `offset` bytes into the file, before a separator. A message of more
    /// than `message_limit` bytes is passed over.
    pub fn new(input: R, offset: u64, message_limit: u64) -> Self {
        Self { input, read_bytes: offset, message_limit, pushed_back: None, dated: None }
    }

    /// Where the next message begins, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.read_bytes - self.pushed_back.as_ref().map_or(0, |line| line.len() as u64)
    }

    /// The next message; `None` at the end.
    ///
    /// # Errors
    /// What reading the file says.
    pub fn next_message(&mut self) -> io::Result<Option<MboxItem>> {
        let Some((offset, separator)) = self.separator()? else { return Ok(None) };
        let mut source = Vec::new();
        let mut too_large = false;
        let (mut blank_before, mut at_line_start) = (false, true);
        loop {
            let line = self.next_line()?;
            if line.is_empty() {
                break;
            }
            if blank_before && at_line_start && self.separates(&line) {
                self.pushed_back = Some(line);
                break;
            }
            blank_before = at_line_start && matches!(line.as_slice(), b"\n" | b"\r\n");
            let text = if at_line_start { unquote(&line) } else { &line };
            at_line_start = line.ends_with(b"\n");
            too_large |= source.len() as u64 + text.len() as u64 > self.message_limit;
            if too_large {
                source = Vec::new();
            } else {
                source.extend_from_slice(text);
            }
        }
        if too_large {
            return Ok(Some(MboxItem::TooLarge { offset }));
        }
        if blank_before {
            // The empty line before the next separator, or at the end, is the mbox's own.
            let end = if source.ends_with(b"\r\n") { 2 } else { 1 };
            source.truncate(source.len().saturating_sub(end));
        }
        let delivered_s = mbox_line_date(separator.trim_ascii_end());
        Ok(Some(MboxItem::Message { source: Bytes::from(source), delivered_s }))
    }

    /// The line before the next message and where it begins; blank lines before it are passed over. A file that
    /// begins with other text gives this as its first message, after an empty separator, so that nothing is
    /// lost.
    fn separator(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        loop {
            let offset = self.offset();
            let line = self.next_line()?;
            if line.is_empty() {
                return Ok(None);
            }
            if line.starts_with(b"From ") {
                self.dated.get_or_insert_with(|| has_date(&line));
                return Ok(Some((offset, line)));
            }
            if !line.trim_ascii().is_empty() {
                self.pushed_back = Some(line);
                return Ok(Some((offset, Vec::new())));
            }
        }
    }

    fn separates(&self, line: &[u8]) -> bool {
        line.starts_with(b"From ") && (self.dated == Some(false) || has_date(line))
    }

    /// The next line, or a piece of a long one; empty at the end.
    fn next_line(&mut self) -> io::Result<Vec<u8>> {
        if let Some(line) = self.pushed_back.take() {
            return Ok(line);
        }
        let mut line = Vec::new();
        let read = (&mut self.input).take(LINE_PIECE).read_until(b'\n', &mut line)?;
        self.read_bytes += read as u64;
        Ok(line)
    }
}

/// Whether a line `From …` holds a time and a year, whatever their order.
fn has_date(line: &[u8]) -> bool {
    let is_time =
        |word: &[u8]| word.contains(&b':') && word.iter().all(|byte| byte.is_ascii_digit() || *byte == b':');
    let is_year = |word: &[u8]| word.len() == 4 && word.iter().all(u8::is_ascii_digit);
    let words = || line.split(u8::is_ascii_whitespace).skip(1);
    words().any(is_time) && words().any(is_year)
}

/// A line `>From `, with any number of `>`, loses the first one.
fn unquote(line: &[u8]) -> &[u8] {
    match line.strip_prefix(b">") {
        Some(rest) if needs_quoting(rest) => rest,
        _ => line,
    }
}

fn needs_quoting(line: &[u8]) -> bool {
    let arrows = line.iter().take_while(|&&byte| byte == b'>').count();
    line.get(arrows..).is_some_and(|rest| rest.starts_with(b"From "))
}

/// A message as it stands in an mbox (mboxrd): its separator for `sender` and `date` (C's form,
/// `Thu Aug 22 13:17:22 2002`), its lines quoted, an empty line.
#[must_use]
pub fn quote_mbox(source: &[u8], sender: &str, date: &str) -> Vec<u8> {
    let mut quoted = format!("From {sender} {date}\n").into_bytes();
    for line in source.split_inclusive(|&byte| byte == b'\n') {
        if needs_quoting(line) {
            quoted.push(b'>');
        }
        quoted.extend_from_slice(line);
    }
    if !source.ends_with(b"\n") {
        quoted.push(b'\n');
    }
    quoted.push(b'\n');
    quoted
}

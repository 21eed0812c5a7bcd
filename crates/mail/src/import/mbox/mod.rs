//! Messages in one file, each after a line `From sender date`.
//!
//! RFC 4155 says what an mbox is; there are several dialects of it:
//!
//! | dialect | lines `From ` in a message |
//! |---|---|
//! | mboxo | get a `>` in front |
//! | mboxrd | so do those that have one already, so that it can be taken away again |
//! | mboxcl, mboxcl2 | as mboxo, or not at all: the header field `Content-Length` says where a message ends |
//!
//! None says which it is. A `Content-Length` is believed if another message begins, or the file ends, where it says.
//! Elsewhere a message begins at a line `From …` as [`separator`] tells. One `>` is taken away before `From `, but not
//! from messages whose length holds once such a message was found to hold a bare `From `.

mod separator;

use std::io::{self, Read};

use separator::{Behind, Separator};

use super::EXPORT_MARK;
use super::ahead::ReadAhead;
use crate::message::input::Input;
use crate::source::{MEMORY_BYTES, MessageSource, SourceWriter};

/// So much is looked at behind a line that may be a separator.
const LOOKAHEAD_BYTES: usize = 4 * 1024;

/// Between the end of a message by its length and the next separator stand no more empty lines.
const MOST_BLANK_LINES: usize = 3;

/// What pine and IMAP servers write as the first message of a folder, for themselves.
const FOLDER_DATA: &str = "FOLDER INTERNAL DATA";

/// A program's own data is looked for in the beginning of a message.
const BEGINNING_BYTES: usize = 16 * 1024;

/// What comes out of an mbox.
#[derive(Debug, Clone)]
pub enum MboxItem {
    /// A whole message.
    Message {
        /// Its bytes, unquoted.
        source: MessageSource,
        /// The date of its separator.
        delivered_s: Option<i64>,
    },
    /// A message beyond the limit, passed over.
    TooLarge {
        /// Where it begins, in bytes.
        offset: u64,
    },
    /// No message, but what a program has written into the folder for itself.
    FolderData {
        /// Where it begins, in bytes.
        offset: u64,
    },
}

/// Reads an mbox message by message, with any line ends. Memory is bounded whatever the size of a message: of a large one
/// the bytes are in a temporary file.
pub struct MboxReader<R> {
    input: Input<ReadAhead<R>>,
    message_limit: u64,
    /// The form of the file's first separator.
    first: Option<Separator>,
    /// Whether messages whose length holds have their lines `From ` quoted.
    quotes: bool,
}

/// A message that was read, and how many bytes at its end are the mbox's own.
struct Gathered {
    source: SourceWriter,
    end_bytes: usize,
}

/// What is known of a message's header while it is read.
#[derive(Clone, Copy)]
enum Header {
    /// Its fields are being read; the body's length, if one of them said it.
    Open(Option<usize>),
    /// It is over, or there is none.
    Over,
}

/// What stands before a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The separator.
    Separator,
    /// An empty line, or one of blanks.
    Blank,
    /// Text.
    Text,
}

impl<R: Read> MboxReader<R> {
    /// Reads from `input`, which stands `offset` bytes into the file, before a separator. A message of more
    /// than `message_limit` bytes is passed over.
    pub fn new(input: R, offset: u64, message_limit: u64) -> Self {
        Self { input: Input::new(ReadAhead::new(input), offset), message_limit, first: None, quotes: true }
    }

    /// Reads the rest of a file that begins with these bytes: its first separator says something of the others.
    #[must_use]
    pub fn in_file(mut self, beginning: &[u8]) -> Self {
        self.first = Separator::read(first_line(beginning));
        self
    }

    /// Where the next message begins, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// The next message; `None` at the end.
    ///
    /// # Errors
    /// What reading the file says.
    pub fn next_message(&mut self) -> io::Result<Option<MboxItem>> {
        while let Some((offset, delivered_s)) = self.separator()? {
            let Gathered { source, end_bytes } = self.gather()?;
            if source.is_too_large() {
                return Ok(Some(MboxItem::TooLarge { offset }));
            }
            let source = source.finish(end_bytes)?;
            // Separators with nothing between them are no message.
            if source.is_empty() {
                continue;
            }
            if is_folder_data(&source.piece(0, BEGINNING_BYTES)?) {
                return Ok(Some(MboxItem::FolderData { offset }));
            }
            return Ok(Some(MboxItem::Message { source, delivered_s }));
        }
        Ok(None)
    }

    /// Passes the line before the next message; where it begins, and its date. Blank lines before it are passed over. A
    /// file that begins with other text gives this as its first message, so that nothing is lost.
    fn separator(&mut self) -> io::Result<Option<(u64, Option<i64>)>> {
        if self.input.offset() == 0 && self.input.fill(3)?.starts_with(b"\xef\xbb\xbf") {
            self.input.pass(3);
        }
        loop {
            let offset = self.input.offset();
            let length = self.input.line_length()?;
            if length == 0 {
                return Ok(None);
            }
            let line = self.input.next(length);
            if line.starts_with(b"From ") {
                let date = separator::date_of(line);
                self.first = self.first.or_else(|| Separator::read(line));
                self.input.pass(length);
                return Ok(Some((offset, date)));
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some((offset, None)));
            }
            self.input.pass(length);
        }
    }

    /// Reads a message up to the next separator or the end that its length gives.
    fn gather(&mut self) -> io::Result<Gathered> {
        let mut source = SourceWriter::new(self.message_limit);
        let mut header = Header::Open(None);
        let (mut before, mut is_line_start, mut end_bytes) = (Before::Separator, true, 0);
        loop {
            let length = self.input.line_length()?;
            if length == 0 || (is_line_start && self.begins_message(length, before)?) {
                break;
            }
            let line = self.input.next(length);
            let is_blank = is_line_start && matches!(line, b"\n" | b"\r\n");
            if let Header::Open(body_bytes) = header {
                header = open_header(line, is_line_start, body_bytes, source.is_empty());
                if let (Header::Over, true, Some(bytes)) = (header, is_blank, body_bytes) {
                    source.push(line)?;
                    self.input.pass(length);
                    if self.take_body(bytes, &mut source)? {
                        return Ok(Gathered { source, end_bytes: 0 });
                    }
                    (before, end_bytes) = (Before::Blank, length);
                    continue;
                }
            }
            // The empty line before the next separator, or at the end, is the mbox's own.
            end_bytes = if is_blank { length } else { 0 };
            before = if is_line_start && line.trim_ascii().is_empty() { Before::Blank } else { Before::Text };
            source.push(if is_line_start { unquote(line) } else { line })?;
            is_line_start = line.ends_with(b"\n");
            self.input.pass(length);
        }
        Ok(Gathered { source, end_bytes })
    }

    /// Whether the next line, of `length` bytes, is a separator.
    fn begins_message(&mut self, length: usize, before: Before) -> io::Result<bool> {
        let line = self.input.next(length);
        if before == Before::Separator || !line.starts_with(b"From ") {
            return Ok(false);
        }
        let Some(separator) = Separator::read(line) else { return Ok(false) };
        let ready = self.input.fill(length + LOOKAHEAD_BYTES)?;
        let behind = Behind::of(look(ready, length));
        Ok(self.separates(separator, before == Before::Blank, behind))
    }

    fn separates(&self, separator: Separator, after_blank: bool, behind: Behind) -> bool {
        match separator {
            // A patch in a message's text looks the same; only git's own files have such separators.
            Separator::Commit => self.first == Some(Separator::Commit) && after_blank,
            Separator::Dated => after_blank || behind >= Behind::Field,
            Separator::LooselyDated => behind >= if after_blank { Behind::Field } else { Behind::Fields },
            Separator::Name | Separator::Address
                if after_blank && self.first == Some(separator) && behind == Behind::Blank =>
            {
                true
            }
            Separator::Empty | Separator::Dash | Separator::Name | Separator::Address => {
                behind >= if after_blank { Behind::Field } else { Behind::Fields }
            }
        }
    }

    /// Takes a body of this many bytes, if it ends where a message can end; else nothing is taken.
    fn take_body(&mut self, bytes: usize, source: &mut SourceWriter) -> io::Result<bool> {
        let is_too_large = (bytes as u64).saturating_add(source.len()) > self.message_limit;
        if source.is_too_large() || is_too_large {
            return Ok(false);
        }
        if bytes > MEMORY_BYTES {
            return self.take_large_body(bytes, source);
        }
        self.input.fill(bytes.saturating_add(LOOKAHEAD_BYTES))?;
        let ready = self.input.ready();
        let Some(body) = ready.get(..bytes) else { return Ok(false) };
        let is_whole =
            bytes == 0 || body.ends_with(b"\n") || (self.input.has_ended() && ready.len() == bytes);
        if !is_whole || !stands_before_message(look(ready, bytes), self.input.has_ended()) {
            return Ok(false);
        }
        self.quotes &= !lines_of(body).any(|line| line.starts_with(b"From "));
        if self.quotes {
            lines_of(body).try_for_each(|line| source.push(unquote(line)))?;
        } else {
            source.push(body)?;
        }
        self.input.pass(bytes);
        Ok(true)
    }

    /// As [`MboxReader::take_body`], of a body that does not come into memory.
    fn take_large_body(&mut self, bytes: usize, source: &mut SourceWriter) -> io::Result<bool> {
        let looked_at = self.look_ahead(bytes - 1, 1 + LOOKAHEAD_BYTES)?;
        let has_ended = looked_at.len() <= LOOKAHEAD_BYTES;
        let Some((last, behind)) = looked_at.split_first() else { return Ok(false) };
        let is_whole = *last == b'\n' || (has_ended && behind.is_empty());
        if !is_whole || !stands_before_message(behind, has_ended) {
            return Ok(false);
        }
        let mut body = SourceWriter::new(u64::MAX);
        let (mut left, mut is_line_start) = (bytes, true);
        while left > 0 {
            let length = self.input.line_length()?.min(left);
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = self.input.next(length);
            self.quotes &= !(is_line_start && line.starts_with(b"From "));
            is_line_start = line.ends_with(b"\n");
            body.push(line)?;
            self.input.pass(length);
            left -= length;
        }
        // Whether its lines are quoted is known now.
        let mut body = Input::new(body.finish(0)?.reader(), 0);
        let mut is_line_start = true;
        loop {
            let length = body.line_length()?;
            if length == 0 {
                return Ok(true);
            }
            let line = body.next(length);
            source.push(if is_line_start && self.quotes { unquote(line) } else { line })?;
            is_line_start = line.ends_with(b"\n");
            body.pass(length);
        }
    }

    /// The bytes that come after the next `distance`, at most the number asked for.
    fn look_ahead(&mut self, distance: usize, most_bytes: usize) -> io::Result<Vec<u8>> {
        let ready = self.input.ready();
        let mut found = ready.get(distance..).unwrap_or_default().to_vec();
        found.truncate(most_bytes);
        let missing = most_bytes - found.len();
        if missing > 0 {
            let beyond = distance.saturating_sub(ready.len()) as u64;
            found.extend(self.input.reader().look_at(beyond, missing)?);
        }
        Ok(found)
    }
}

/// What is looked at behind a place.
fn look(ready: &[u8], from: usize) -> &[u8] {
    let behind = ready.get(from..).unwrap_or_default();
    behind.get(..LOOKAHEAD_BYTES).unwrap_or(behind)
}

/// The header after one more line of it.
fn open_header(line: &[u8], is_line_start: bool, body_bytes: Option<usize>, is_first: bool) -> Header {
    if !is_line_start {
        return Header::Open(body_bytes);
    }
    let continues = !is_first && (line.starts_with(b" ") || line.starts_with(b"\t"));
    match separator::field_name(line) {
        Some(name) if name.eq_ignore_ascii_case(b"Content-Length") && body_bytes.is_none() => {
            let value = line.get(name.len() + 1..).unwrap_or_default().trim_ascii();
            let bytes = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
            Header::Open(bytes)
        }
        // Of what we have written ourselves the lines are quoted, whatever length the message claims.
        Some(name) if name == EXPORT_MARK.as_bytes() => Header::Over,
        Some(_) => Header::Open(body_bytes),
        None if continues || line.starts_with(b">From ") || line.starts_with(b"From ") => {
            Header::Open(body_bytes)
        }
        None => Header::Over,
    }
}

/// Whether what follows is the end, or a separator behind no more than a few empty lines.
fn stands_before_message(mut rest: &[u8], has_ended: bool) -> bool {
    for _ in 0..=MOST_BLANK_LINES {
        let line = first_line(rest);
        if line.is_empty() {
            return has_ended;
        }
        if !line.trim_ascii().is_empty() {
            let behind = || Behind::of(rest.get(line.len()..).unwrap_or_default());
            return match Separator::read(line) {
                Some(Separator::Dated | Separator::LooselyDated | Separator::Commit) => true,
                Some(_) => behind() >= Behind::Field,
                None => false,
            };
        }
        rest = rest.get(line.len()..).unwrap_or_default();
    }
    false
}

/// Whether a message is not mail, but the place where pine or an IMAP server keeps what it knows of the folder.
fn is_folder_data(source: &[u8]) -> bool {
    lines_of(source).take(40).take_while(|line| !line.trim_ascii().is_empty()).any(|line| {
        line.get(..8).is_some_and(|name| name.eq_ignore_ascii_case(b"Subject:"))
            && String::from_utf8_lossy(line).contains(FOLDER_DATA)
    })
}

/// Whether a file that begins with these bytes is an mbox, going by its first line and what follows.
pub(super) fn begins_mbox(beginning: &[u8]) -> bool {
    let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
    let line = first_line(beginning);
    let behind = || Behind::of(beginning.get(line.len()..).unwrap_or_default());
    match Separator::read(line) {
        Some(Separator::Dated | Separator::Commit) => true,
        Some(_) => behind() >= Behind::Field,
        // The sender may be anything, if a message follows.
        None => line.starts_with(b"From ") && behind() == Behind::Fields,
    }
}

fn lines_of(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n')
}

fn first_line(bytes: &[u8]) -> &[u8] {
    lines_of(bytes).next().unwrap_or_default()
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

const FROM: &[u8] = b"From ";

/// The lines of a message as they stand in an mbox (`mboxrd`), written as its bytes come. Of a line no more is held than `From `.
#[derive(Default)]
pub(crate) struct QuotedLines {
    at: Place,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Start,
    /// Behind arrows and this number of bytes of `From `, which are not written yet. It does not matter where among arrows one more stands.
    Matched(usize),
    Within,
}

impl QuotedLines {
    /// Writes more of a message.
    ///
    /// # Errors
    /// Those of `sink`.
    pub(crate) fn write(
        &mut self,
        mut rest: &[u8],
        mut sink: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        while let Some((byte, behind)) = rest.split_first() {
            match self.at {
                Place::Start | Place::Matched(0) if *byte == b'>' => {
                    sink(b">")?;
                    (self.at, rest) = (Place::Matched(0), behind);
                }
                Place::Start => self.at = Place::Matched(0),
                Place::Matched(count) if FROM.get(count) == Some(byte) => {
                    let is_whole = count + 1 == FROM.len();
                    if is_whole {
                        sink(b">From ")?;
                    }
                    self.at = if is_whole { Place::Within } else { Place::Matched(count + 1) };
                    rest = behind;
                }
                Place::Matched(count) => {
                    sink(FROM.get(..count).unwrap_or_default())?;
                    self.at = Place::Within;
                }
                Place::Within => {
                    let end = memchr::memchr(b'\n', rest);
                    let (line, behind) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
                    sink(line)?;
                    if end.is_some() {
                        self.at = Place::Start;
                    }
                    rest = behind;
                }
            }
        }
        Ok(())
    }

    /// Ends the message: with its line, and the empty line that an mbox has between messages.
    ///
    /// # Errors
    /// Those of `sink`.
    pub(crate) fn finish(self, mut sink: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match self.at {
            Place::Start => sink(b"\n"),
            Place::Matched(count) => {
                sink(FROM.get(..count).unwrap_or_default())?;
                sink(b"\n\n")
            }
            Place::Within => sink(b"\n\n"),
        }
    }
}

/// A message as it stands in an mbox (mboxrd): its separator for `sender` and `date` (C's form,
/// `Thu Aug 22 13:17:22 2002`), its lines quoted, an empty line.
#[must_use]
pub fn quote_mbox(source: &[u8], sender: &str, date: &str) -> Vec<u8> {
    let mut quoted = format!("From {sender} {date}\n").into_bytes();
    let mut lines = QuotedLines::default();
    let mut push = |bytes: &[u8]| {
        quoted.extend_from_slice(bytes);
        Ok(())
    };
    // Memory takes everything.
    drop(lines.write(source, &mut push).and_then(|()| lines.finish(&mut push)));
    quoted
}

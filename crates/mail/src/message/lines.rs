//! The lines of a message, with the delimiters of the multiparts that are open (RFC 2046 §5.1.1).

use std::io::{self, Read};

use super::input::{Input, LINE_PIECE_BYTES};
use super::structure::{delimiter, first_line};

/// Of the lines with 8-bit characters so much is kept as a sample.
const SAMPLE_BYTES: usize = 64 * 1024;

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    /// A line with its end, or a piece of a long one: the number of bytes that are ready, and stay until they are passed.
    Line { length: usize, is_start: bool },
    /// The part that is being read is over.
    Stop(Stop),
}

/// Why a part is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The message is.
    End,
    /// A delimiter of an open multipart, the outermost having the level 0. It has been passed.
    Delimiter { level: usize, is_closing: bool },
}

/// Lines to be read one after the other. Memory is bounded by a few pieces of the message, whatever its length.
pub(super) struct PartLines<R> {
    pub(super) input: Input<R>,
    /// Boundaries of the multiparts that are open, the outermost first.
    boundaries: Vec<Vec<u8>>,
    is_line_start: bool,
    was_line_start: bool,
    /// The first lines with 8-bit characters, where somebody wants them.
    sample: Option<Vec<u8>>,
    /// What ended a part within its header, and is to end its empty body.
    pending: Option<Stop>,
}

impl<R: Read> PartLines<R> {
    pub(super) fn new(input: Input<R>) -> Self {
        Self {
            input,
            boundaries: Vec::new(),
            is_line_start: true,
            was_line_start: true,
            sample: None,
            pending: None,
        }
    }

    /// The next line, or what ends the part.
    pub(super) fn next(&mut self) -> io::Result<Next> {
        if let Some(stop) = self.pending.take() {
            return Ok(Next::Stop(stop));
        }
        let length = self.input.line_length()?;
        if length == 0 {
            return Ok(Next::Stop(Stop::End));
        }
        let line = self.input.next(length);
        let is_start = self.is_line_start;
        (self.was_line_start, self.is_line_start) = (is_start, line.ends_with(b"\n"));
        if let Some(sample) = self.sample.as_mut().filter(|sample| sample.len() < SAMPLE_BYTES)
            && !line.is_ascii()
        {
            sample.extend_from_slice(line);
        }
        if is_start && let Some((level, is_closing)) = delimiter_of(&self.boundaries, line) {
            self.input.pass(length);
            return Ok(Next::Stop(Stop::Delimiter { level, is_closing }));
        }
        Ok(Next::Line { length, is_start })
    }

    /// The line that [`PartLines::next`] gave, and that was not passed, is to come again.
    pub(super) fn stay(&mut self) {
        self.is_line_start = self.was_line_start;
    }

    /// A part that ended within its header has an empty body.
    pub(super) fn end_part_with(&mut self, stop: Stop) {
        self.pending = Some(stop);
    }

    /// The beginning of the line behind the next `length` bytes, if it belongs to the same part.
    pub(super) fn line_behind(&mut self, length: usize) -> io::Result<&[u8]> {
        let ready = self.input.fill(length + LINE_PIECE_BYTES)?;
        let line = first_line(ready.get(length..).unwrap_or_default()).0;
        Ok(if delimiter_of(&self.boundaries, line).is_some() { &[] } else { line })
    }

    /// Opens a multipart; gives its level.
    pub(super) fn open(&mut self, boundary: &[u8]) -> usize {
        self.boundaries.push(boundary.to_vec());
        self.boundaries.len() - 1
    }

    /// The multipart that was opened last is over, whatever delimiters of it follow.
    pub(super) fn close(&mut self) {
        self.boundaries.pop();
    }

    /// Passes the rest of the part that is being read.
    pub(super) fn skip(&mut self) -> io::Result<Stop> {
        loop {
            match self.next()? {
                Next::Line { length, .. } => self.input.pass(length),
                Next::Stop(stop) => return Ok(stop),
            }
        }
    }

    /// From here on lines with 8-bit characters are kept as a sample.
    pub(super) fn keep_sample(&mut self) {
        self.sample = Some(Vec::new());
    }

    /// The sample that was kept.
    pub(super) fn take_sample(&mut self) -> Vec<u8> {
        self.sample.take().unwrap_or_default()
    }
}

/// The level of the outermost multipart whose delimiter a line is, and whether it closes it.
fn delimiter_of(boundaries: &[Vec<u8>], line: &[u8]) -> Option<(usize, bool)> {
    if !line.starts_with(b"--") {
        return None;
    }
    let found = |(level, boundary): (usize, &Vec<u8>)| Some((level, delimiter(line, boundary)?));
    boundaries.iter().enumerate().find_map(found)
}

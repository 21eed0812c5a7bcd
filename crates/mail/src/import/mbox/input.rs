//! The bytes of an mbox, read ahead as far as somebody has to look.

use std::io::{self, Read};

use memchr::memchr;

/// Read at a time.
const PIECE_BYTES: u64 = 256 * 1024;

/// A line of more bytes than this is taken in pieces; no separator is that long.
const LINE_PIECE_BYTES: usize = 64 * 1024;

/// A buffer that has grown beyond this, for one long message, is given back.
const KEPT_BYTES: usize = 8 << 20;

/// Bytes in order, of which those that were read and not yet passed can be looked at.
pub(super) struct Input<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where in the buffer the first byte lies that was not passed.
    start: usize,
    ended: bool,
    offset: u64,
}

impl<R: Read> Input<R> {
    /// `reader` stands `offset` bytes into the file.
    pub(super) fn new(reader: R, offset: u64) -> Self {
        Self { reader, buffer: Vec::new(), start: 0, ended: false, offset }
    }

    /// Bytes of the file that were passed.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// What was read and not passed.
    pub(super) fn ready(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// Whether nothing comes after what is ready.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Reads until this many bytes are ready, or there are no more.
    pub(super) fn fill(&mut self, wanted: usize) -> io::Result<&[u8]> {
        while !self.ended && self.ready().len() < wanted {
            if self.start >= self.buffer.len() / 2 {
                self.buffer.drain(..self.start);
                self.start = 0;
                if self.buffer.len() < KEPT_BYTES && self.buffer.capacity() > 2 * KEPT_BYTES {
                    self.buffer.shrink_to(KEPT_BYTES);
                }
            }
            let read = (&mut self.reader).take(PIECE_BYTES).read_to_end(&mut self.buffer)?;
            self.ended = read == 0;
        }
        Ok(self.ready())
    }

    /// Bytes of the next line with its end, or of a piece of a long one; 0 at the end.
    pub(super) fn line_length(&mut self) -> io::Result<usize> {
        let mut searched = 0;
        loop {
            let ready = self.ready();
            if let Some(at) = memchr(b'\n', ready.get(searched..).unwrap_or_default()) {
                return Ok((searched + at + 1).min(LINE_PIECE_BYTES));
            }
            if self.ended || ready.len() >= LINE_PIECE_BYTES {
                return Ok(ready.len().min(LINE_PIECE_BYTES));
            }
            searched = ready.len();
            self.fill(searched + 1)?;
        }
    }

    /// The next bytes, of which this many must be ready.
    pub(super) fn next(&self, bytes: usize) -> &[u8] {
        self.ready().get(..bytes).unwrap_or_default()
    }

    /// Passes this many bytes of those that are ready.
    pub(super) fn pass(&mut self, bytes: usize) {
        let bytes = bytes.min(self.ready().len());
        self.start += bytes;
        self.offset += bytes as u64;
    }
}

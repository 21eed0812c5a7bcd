//! Bytes that come in order, an mbox or a message, read ahead as far as somebody has to look.

use std::io::{self, Read};

use memchr::memchr;

/// Read at a time.
const PIECE_BYTES: u64 = 256 * 1024;

/// A line of more bytes than this is taken in pieces; neither a separator of an mbox nor a delimiter of a multipart is
/// that long.
pub(crate) const LINE_PIECE_BYTES: usize = 64 * 1024;

/// A buffer that has grown beyond this, for one long message, is given back.
const KEPT_BYTES: usize = 8 << 20;

/// Bytes in order, of which those that were read and not yet passed can be looked at.
pub(crate) struct Input<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where in the buffer the first byte lies that was not passed.
    start: usize,
    ended: bool,
    offset: u64,
}

impl<R: Read> Input<R> {
    /// `reader` stands `offset` bytes into the file.
    pub(crate) fn new(reader: R, offset: u64) -> Self {
        Self { reader, buffer: Vec::new(), start: 0, ended: false, offset }
    }

    /// As [`Input::new`], of a reader that has about `bytes`.
    pub(crate) fn of_length(reader: R, bytes: u64) -> Self {
        let room = usize::try_from(bytes.min(PIECE_BYTES)).unwrap_or_default();
        Self { buffer: Vec::with_capacity(room), ..Self::new(reader, 0) }
    }

    /// What the bytes come from, which stands behind those that are ready.
    pub(crate) fn reader(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Bytes of the file that were passed.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// What was read and not passed.
    pub(crate) fn ready(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// Whether nothing comes after what is ready.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Reads until this many bytes are ready, or there are no more.
    pub(crate) fn fill(&mut self, wanted: usize) -> io::Result<&[u8]> {
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
    pub(crate) fn line_length(&mut self) -> io::Result<usize> {
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
    pub(crate) fn next(&self, bytes: usize) -> &[u8] {
        self.ready().get(..bytes).unwrap_or_default()
    }

    /// Passes this many bytes of those that are ready.
    pub(crate) fn pass(&mut self, bytes: usize) {
        let bytes = bytes.min(self.ready().len());
        self.start += bytes;
        self.offset += bytes as u64;
    }
}

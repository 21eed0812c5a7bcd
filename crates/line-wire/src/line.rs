//! Lines: where one ends, and what is wrong with it.

use thiserror::Error;

/// Which bytes end a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnds {
    /// CR LF alone; a CR or LF by itself is an error. This is what a server asks for: bytes that one program takes
    /// for the end of a line and another does not can smuggle commands past the first (RFC 5321, section 2.3.8).
    Strict,
    /// LF, with or without a CR before it: for a client that reads what a server says wrongly.
    Lenient,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// The line, without its end, is longer than the limit.
    #[error("the line is longer than {limit_bytes} bytes")]
    TooLong {
        /// The limit.
        limit_bytes: usize,
    },
    /// An LF without a CR before it.
    #[error("a line feed stands alone; lines end with CR LF")]
    BareLineFeed,
    /// A CR without an LF behind it.
    #[error("a carriage return stands alone; lines end with CR LF")]
    BareCarriageReturn,
}

/// A line that was found at the beginning of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The line without its end.
    pub text: &'a [u8],
    /// Bytes of the buffer that the line and its end take.
    pub consumed: usize,
}

/// Looks for the end of a line in a buffer that grows.
#[derive(Clone, Debug)]
pub struct LineScanner {
    ends: LineEnds,
    limit_bytes: usize,
    /// Bytes of the buffer that were looked at.
    searched: usize,
}

impl LineScanner {
    /// Lines have at most `limit_bytes` bytes without their end.
    #[must_use]
    pub fn new(limit_bytes: usize, ends: LineEnds) -> Self {
        Self { ends, limit_bytes, searched: 0 }
    }

    /// The line that `buffer` begins with; `None` if its end has not come. The buffer must be the one of the call
    /// before with more behind it, or begin behind the line that was found.
    ///
    /// # Errors
    /// [`LineError`]; the buffer can then be read on with a [`LineSkipper`].
    pub fn find<'a>(&mut self, buffer: &'a [u8]) -> Result<Option<Line<'a>>, LineError> {
        let unseen = buffer.get(self.searched..).unwrap_or_default();
        let Some(at) = unseen.iter().position(|byte| *byte == b'\n') else {
            // A CR at the end may still get its LF.
            let settled = buffer.strip_suffix(b"\r").unwrap_or(buffer);
            self.check(settled, self.searched)?;
            self.searched = settled.len();
            return Ok(None);
        };
        let end = self.searched + at;
        let before = buffer.get(..end).unwrap_or_default();
        let text = match before.strip_suffix(b"\r") {
            Some(text) => text,
            None if self.ends == LineEnds::Strict => {
                self.check(before, self.searched)?;
                return Err(self.failed(LineError::BareLineFeed));
            }
            None => before,
        };
        self.check(text, self.searched)?;
        self.searched = 0;
        Ok(Some(Line { text, consumed: end + 1 }))
    }

    fn check(&mut self, text: &[u8], from: usize) -> Result<(), LineError> {
        // The first fault counts, so that a line that comes in pieces has the same one.
        let unseen = text.get(from..self.limit_bytes.min(text.len())).unwrap_or_default();
        if self.ends == LineEnds::Strict && unseen.contains(&b'\r') {
            return Err(self.failed(LineError::BareCarriageReturn));
        }
        if text.len() > self.limit_bytes {
            return Err(self.failed(LineError::TooLong { limit_bytes: self.limit_bytes }));
        }
        Ok(())
    }

    fn failed(&mut self, error: LineError) -> LineError {
        self.searched = 0;
        error
    }
}

/// Reads over the rest of a line that was refused.
#[derive(Clone, Debug, Default)]
pub struct LineSkipper {
    after_carriage_return: bool,
}

impl LineSkipper {
    /// How many bytes belong to the line, if its end (CR LF) is among these; all of them belong to it otherwise.
    pub fn skip(&mut self, bytes: &[u8]) -> Option<usize> {
        for (index, byte) in bytes.iter().enumerate() {
            if *byte == b'\n' && self.after_carriage_return {
                self.after_carriage_return = false;
                return Some(index + 1);
            }
            self.after_carriage_return = *byte == b'\r';
        }
        None
    }
}

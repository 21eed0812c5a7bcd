//! A place in a text, and values that are escaped in one.

use std::fmt;

/// Reads a text from its beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    all_bytes: usize,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { all_bytes: text.len(), rest: text }
    }

    /// Bytes before this place.
    pub(crate) fn at(&self) -> usize {
        self.all_bytes - self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub(crate) fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Takes this byte, if it is the next.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.next();
        }
        is_next
    }

    pub(crate) fn take_while(&mut self, takes: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| !takes(*byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, &[]));
        self.rest = rest;
        taken
    }

    pub(crate) fn skip_spaces(&mut self) {
        self.take_while(|byte| byte == b' ');
    }

    /// A byte as two hexadecimal digits.
    pub(crate) fn hex_byte(&mut self) -> Option<u8> {
        let (high, low) = (digit(self.next()?)?, digit(self.next()?)?);
        Some((high << 4) | low)
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Writes bytes as text: UTF-8 as it is, but for characters that `is_special`; those, and bytes that are no UTF-8, become
/// hexadecimal digits behind `mark`.
pub(crate) fn write_escaped(
    output: &mut impl fmt::Write,
    bytes: &[u8],
    mark: char,
    is_special: impl Fn(char) -> bool,
) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_special(character) {
                let mut encoded = [0; 4];
                write_hex(output, character.encode_utf8(&mut encoded).as_bytes(), mark)?;
            } else {
                output.write_char(character)?;
            }
        }
        write_hex(output, chunk.invalid(), mark)?;
    }
    Ok(())
}

fn write_hex(output: &mut impl fmt::Write, bytes: &[u8], mark: char) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(output, "{mark}{byte:02x}"))
}

/// [`write_escaped`] into a text of its own.
pub(crate) fn escaped(bytes: &[u8], mark: char, is_special: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    // Writing into a text never fails.
    let _ = write_escaped(&mut text, bytes, mark, is_special);
    text
}

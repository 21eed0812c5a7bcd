//! A place in a line.

/// Reads a line from its beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
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

    /// Takes these words, in any case.
    pub(crate) fn take_ignore_case(&mut self, words: &str) -> bool {
        match self.rest.split_at_checked(words.len()) {
            Some((first, rest)) if first.eq_ignore_ascii_case(words.as_bytes()) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    pub(crate) fn take_while(&mut self, takes: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| !takes(*byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    pub(crate) fn skip_spaces(&mut self) -> usize {
        self.take_while(|byte| byte == b' ' || byte == b'\t').len()
    }
}

/// A number in decimal digits, at most 20 of them.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    let valid = (1..=20).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    if !valid {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Text without control characters.
pub(crate) fn is_printable(text: &str) -> bool {
    !text.chars().any(|character| character.is_control())
}

//! A place in a text.

/// Reads a text of bytes from its beginning. A copy is another place in the same text.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    all_bytes: usize,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// At the beginning of `text`.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        Self { all_bytes: text.len(), rest: text }
    }

    /// Bytes before this place.
    #[must_use]
    pub fn at(&self) -> usize {
        self.all_bytes - self.rest.len()
    }

    /// What has not been read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all has been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte, which stays unread.
    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Reads a byte.
    #[allow(
        clippy::should_implement_trait,
        reason = "a reader that is copied would be a treacherous iterator"
    )]
    pub fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Reads this byte, if it is the next. Whether it was.
    pub fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.next();
        }
        is_next
    }

    /// Reads these words, if they are next, in any case of ASCII. Whether they were.
    pub fn take_ignore_case(&mut self, words: &str) -> bool {
        match self.rest.split_at_checked(words.len()) {
            Some((first, rest)) if first.eq_ignore_ascii_case(words.as_bytes()) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Reads bytes as far as they are of a kind.
    pub fn take_while(&mut self, takes: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| !takes(*byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, &[]));
        self.rest = rest;
        taken
    }
}

//! Contents that stand in a JSON text as base64, and are read when the text is sent: an attachment may be longer than
//! there is memory for.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt::{self, Debug};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use scrinium_assertion::never;

use super::writer::{JsonText, JsonWriter};

/// Read of a content at once: a multiple of three, which base64 takes at a time.
const READ_BYTES: usize = 48 << 10;

/// Why a content could not be read.
pub type ContentError = Box<dyn Error + Send + Sync>;

/// Bytes that are read in pieces.
pub trait InlineContent: Send + Sync {
    /// How many there are.
    fn length(&self) -> u64;

    /// At most `max_bytes` from `offset`.
    ///
    /// # Errors
    /// What keeps them says.
    fn read(&self, offset: u64, max_bytes: usize) -> Result<Bytes, ContentError>;
}

/// A content, and the place in a text where its base64 belongs.
#[derive(Clone)]
pub(super) struct Insertion {
    pub(super) offset: usize,
    pub(super) content: Arc<dyn InlineContent>,
}

impl Debug for Insertion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes at {}", self.content.length(), self.offset)
    }
}

impl PartialEq for Insertion {
    fn eq(&self, other: &Self) -> bool {
        self.offset == other.offset && Arc::ptr_eq(&self.content, &other.content)
    }
}

impl Eq for Insertion {}

/// A text on its way out, with its contents filled in piece by piece.
#[derive(Debug)]
pub struct FilledText {
    text: Bytes,
    /// What of the text has been given.
    given: usize,
    insertions: VecDeque<Insertion>,
    /// What of the first content has been read.
    read: u64,
    carried: Vec<u8>,
}

impl FilledText {
    /// Text without contents.
    #[must_use]
    pub fn of_bytes(text: Bytes) -> Self {
        Self { text, given: 0, insertions: VecDeque::new(), read: 0, carried: Vec::new() }
    }

    pub(super) fn new(text: Bytes, insertions: Vec<Insertion>) -> Self {
        Self { insertions: insertions.into(), ..Self::of_bytes(text) }
    }

    /// Whether contents are still to be read.
    #[must_use]
    pub fn has_contents(&self) -> bool {
        !self.insertions.is_empty()
    }

    /// Whether text is still to be given.
    #[must_use]
    pub fn has_text(&self) -> bool {
        self.given < self.text.len()
    }

    /// Bytes of text that stay in memory for further pieces; contents are read when they are given.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        if self.has_contents() || self.has_text() { self.text.len() } else { 0 }
    }

    /// Bytes of the whole, with all contents.
    #[must_use]
    pub fn length(&self) -> u64 {
        let encoded = |insertion: &Insertion| insertion.content.length().div_ceil(3).saturating_mul(4);
        self.insertions.iter().map(encoded).fold(self.text.len() as u64, u64::saturating_add)
    }

    /// The next piece, of about `bytes` where there are contents, else all that is left; `None` at the end. May wait for
    /// the disk.
    ///
    /// # Errors
    /// A content that cannot be read, or is shorter than it says.
    pub fn next_piece(&mut self, bytes: usize) -> Result<Option<Bytes>, ContentError> {
        let mut piece = String::new();
        while piece.len() < bytes {
            let Some(offset) = self.insertions.front().map(|insertion| insertion.offset) else {
                if !piece.is_empty() {
                    break;
                }
                let rest = self.text.slice(self.given.min(self.text.len())..);
                self.given = self.text.len();
                return Ok(Some(rest).filter(|rest| !rest.is_empty()));
            };
            if self.given < offset {
                let until = offset.min(self.given.saturating_add(bytes));
                let plain = self.text.get(self.given..until);
                let plain = plain.ok_or_else(|| never!("a content lies within its text", "{offset}"))?;
                if piece.is_empty() {
                    let plain = self.text.slice(self.given..until);
                    self.given = until;
                    return Ok(Some(plain));
                }
                piece.push_str(std::str::from_utf8(plain)?);
                self.given = until;
            } else {
                self.read_content(&mut piece)?;
            }
        }
        Ok(Some(piece.into()))
    }

    fn read_content(&mut self, piece: &mut String) -> Result<(), ContentError> {
        let Some(insertion) = self.insertions.front() else {
            return Err(never!("a content that is read comes next").into());
        };
        let left = insertion.content.length().saturating_sub(self.read);
        if left == 0 {
            STANDARD.encode_string(&self.carried, piece);
            self.carried.clear();
            self.read = 0;
            self.insertions.pop_front();
            return Ok(());
        }
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(READ_BYTES);
        let bytes = insertion.content.read(self.read, wanted)?;
        if bytes.is_empty() {
            return Err("a content is shorter than it says".into());
        }
        self.read += bytes.len() as u64;
        self.carried.extend_from_slice(&bytes);
        let rest = self.carried.split_off(self.carried.len() - self.carried.len() % 3);
        STANDARD.encode_string(&self.carried, piece);
        self.carried = rest;
        Ok(())
    }
}

impl From<JsonWriter> for FilledText {
    fn from(writer: JsonWriter) -> Self {
        writer.into_filled()
    }
}

impl JsonText {
    /// The same with its contents in memory.
    ///
    /// # Errors
    /// As [`FilledText::next_piece`].
    pub fn filled(self) -> Result<Self, ContentError> {
        let mut filled = JsonWriter::from(self).into_filled();
        let mut text = String::new();
        while let Some(piece) = filled.next_piece(READ_BYTES)? {
            text.push_str(std::str::from_utf8(&piece)?);
        }
        let mut whole = JsonWriter::with_capacity(text.len());
        whole.stored(&text);
        Ok(whole.into_text())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A content that gives at most a few bytes at once.
    struct Drops(Vec<u8>, usize);

    impl InlineContent for Drops {
        fn length(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&self, offset: u64, max_bytes: usize) -> Result<Bytes, ContentError> {
            let rest = self.0.get(usize::try_from(offset)?..).unwrap_or_default();
            Ok(Bytes::copy_from_slice(&rest[..rest.len().min(max_bytes).min(self.1)]))
        }
    }

    proptest! {
        #[test]
        fn contents_are_filled_in_where_they_belong(
            contents in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..200), 1_usize..40), 0..5),
            bytes in 1_usize..300,
        ) {
            let mut inner = JsonWriter::new();
            let mut expected = String::from("[");
            inner.literal("[");
            for (content, at_once) in &contents {
                inner.string("before").literal(",").content(Arc::new(Drops(content.clone(), *at_once))).literal(",");
                expected.extend(["\"before\",\"", &STANDARD.encode(content), "\","]);
            }
            inner.literal("0]");
            expected.push_str("0]");
            let inner = inner.into_text();
            let whole = inner.clone().filled().unwrap();
            prop_assert_eq!(whole.as_str(), &expected);
            // A text within another one keeps its contents.
            let mut outer = JsonWriter::new();
            outer.literal("{\"a\":").json(&inner).literal(",\"b\":").json(&inner).literal("}");
            let mut filled = FilledText::from(outer);
            let (length, mut text) = (filled.length(), Vec::new());
            while let Some(piece) = filled.next_piece(bytes).unwrap() {
                text.extend_from_slice(&piece);
            }
            let whole = ["{\"a\":", &expected, ",\"b\":", &expected, "}"].concat();
            prop_assert_eq!(String::from_utf8(text).unwrap(), whole);
            prop_assert_eq!(length, 2 * expected.len() as u64 + 11);
        }
    }
}

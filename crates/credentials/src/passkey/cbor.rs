//! As much of CBOR (RFC 8949) as authenticators write: maps of definite length whose values are picked, the rest passed over.

use cbor4ii::core::dec::{Decode, IgnoredAny, Read, Reference};
use cbor4ii::core::types::{Bytes, Map};

/// How deep values may lie in each other. CTAP allows four levels.
const DEEPEST: usize = 8;

/// The most entries of a map that is read here.
const MOST_ENTRIES: usize = 32;

/// Bytes that are read from the front.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    levels: usize,
}

impl<'a> Read<'a> for Reader<'a> {
    type Error = std::convert::Infallible;

    fn fill<'short>(&'short mut self, want: usize) -> Result<Reference<'a, 'short>, Self::Error> {
        Ok(Reference::Long(self.rest.get(..want).unwrap_or(self.rest)))
    }

    fn advance(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    fn step_in(&mut self) -> bool {
        let may = self.levels > 0;
        self.levels = self.levels.saturating_sub(1);
        may
    }

    fn step_out(&mut self) {
        self.levels += 1;
    }
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, levels: DEEPEST }
    }

    /// What was not read.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// How many entries the map has that comes next; they follow.
    pub(super) fn map(&mut self) -> Option<usize> {
        Map::<()>::len(self).ok().flatten().filter(|entries| *entries <= MOST_ENTRIES)
    }

    pub(super) fn integer(&mut self) -> Option<i64> {
        i64::decode(self).ok()
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        <&str>::decode(self).ok()
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        Bytes::<&[u8]>::decode(self).ok().map(|Bytes(bytes)| bytes)
    }

    pub(super) fn skip(&mut self) -> Option<()> {
        // Each value takes a byte at least, so that the work is bounded by the bytes.
        IgnoredAny::decode(self).ok().map(|_| ())
    }
}

/// Reads a map whose keys are texts; `take` is given each key and reads its value.
pub(super) fn map_of_texts<'a>(
    reader: &mut Reader<'a>,
    mut take: impl FnMut(&'a str, &mut Reader<'a>) -> Option<()>,
) -> Option<()> {
    let mut seen: Vec<&str> = Vec::new();
    for _ in 0..reader.map()? {
        let key = reader.text()?;
        if seen.contains(&key) {
            return None;
        }
        seen.push(key);
        take(key, reader)?;
    }
    Some(())
}

/// Reads a map whose keys are numbers; alike.
pub(super) fn map_of_integers<'a>(
    reader: &mut Reader<'a>,
    mut take: impl FnMut(i64, &mut Reader<'a>) -> Option<()>,
) -> Option<()> {
    let mut seen: Vec<i64> = Vec::new();
    for _ in 0..reader.map()? {
        let key = reader.integer()?;
        if seen.contains(&key) {
            return None;
        }
        seen.push(key);
        take(key, reader)?;
    }
    Some(())
}

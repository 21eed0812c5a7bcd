//! Walking the entries of an index.

use scrinium_store::Direction;

use crate::IndexError;
use crate::format::{ENTRIES, key_range, read_sums};
use crate::reader::Contents;
use crate::tree::Chunk;

/// One entry, lent until the cursor's next step.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its place in the order.
    pub key: &'a [u8],
    /// What is kept with it.
    pub value: &'a [u8],
    sums: &'a [u8],
}

impl<'a> Entry<'a> {
    /// What it adds to the sums, column by column.
    pub fn sums(&self) -> impl Iterator<Item = f64> + use<'a> {
        read_sums(self.sums)
    }
}

/// Walks the entries of a range of a [`Reader`](crate::Reader) in one direction.
#[derive(Debug)]
pub struct Cursor<'reader> {
    contents: &'reader Contents,
    direction: Direction,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    chunk: Option<Open<'reader>>,
    /// The entry given out last.
    key: Vec<u8>,
    value: Vec<u8>,
}

/// The chunk that is being walked.
#[derive(Debug)]
struct Open<'reader> {
    fence: &'reader [u8],
    next: Option<&'reader [u8]>,
    entries: scrinium_store::Cursor<'reader>,
}

impl<'reader> Cursor<'reader> {
    /// A cursor before the first entry of the range in the given direction.
    pub(crate) fn new(
        contents: &'reader Contents,
        from: &[u8],
        to: Option<&[u8]>,
        direction: Direction,
    ) -> Self {
        let mut cursor = Self::ended(contents, direction);
        cursor.from = from.to_vec();
        cursor.to = to.map(<[u8]>::to_vec);
        if to.is_none_or(|to| from < to) {
            let chunk = match (direction, to) {
                (Direction::Forward, _) => contents.tree.chunk_of(from),
                (Direction::Backward, Some(to)) => contents.tree.chunk_of(to),
                (Direction::Backward, None) => {
                    contents.tree.chunk_with(contents.tree.count().saturating_sub(1))
                }
            };
            cursor.chunk = chunk.map(|chunk| cursor.open(&chunk));
        }
        cursor
    }

    /// A cursor over nothing.
    pub(crate) fn ended(contents: &'reader Contents, direction: Direction) -> Self {
        let (from, key, value) = (Vec::new(), Vec::new(), Vec::new());
        Self { contents, direction, from, to: None, chunk: None, key, value }
    }

    /// Moves the beginning of the range, which must not be behind the next entry.
    pub(crate) fn begin_at(&mut self, from: &[u8]) {
        from.clone_into(&mut self.from);
    }

    fn open(&self, chunk: &Chunk<'reader>) -> Open<'reader> {
        let range = self.contents.layout.entry_range(chunk.place.number, &self.from, self.to.as_deref());
        let entries = self.contents.snapshot.cursor(ENTRIES, key_range(&range), self.direction);
        Open { fence: chunk.fence, next: chunk.next, entries }
    }

    /// The next entry, `None` at the end of the range.
    ///
    /// # Errors
    /// [`IndexError::Store`], [`IndexError::Damaged`].
    #[allow(clippy::should_implement_trait, reason = "what it lends lives only until the next call")]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, IndexError> {
        if !self.step()? {
            return Ok(None);
        }
        self.entry().map(Some)
    }

    /// The entry that [`next`](Self::next) gave last; nothing else than that one's call may have come between.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn entry(&self) -> Result<Entry<'_>, IndexError> {
        let (sums, value) = self.contents.layout.split_entry(&self.value)?;
        Ok(Entry { key: &self.key, value, sums })
    }

    /// Goes on to the next entry; `false` at the end.
    pub(crate) fn step(&mut self) -> Result<bool, IndexError> {
        while let Some(open) = &mut self.chunk {
            if let Some((key, value)) = open.entries.next()? {
                self.key.clear();
                self.key.extend_from_slice(self.contents.layout.strip(key));
                self.value.clear();
                self.value.extend_from_slice(value);
                return Ok(true);
            }
            let following = self.following();
            self.chunk = following.map(|chunk| self.open(&chunk));
        }
        Ok(false)
    }

    /// The chunk after the one that is being walked, if the range reaches so far.
    fn following(&self) -> Option<Chunk<'reader>> {
        let open = self.chunk.as_ref()?;
        let tree = &self.contents.tree;
        match self.direction {
            Direction::Forward => {
                let next =
                    open.next.filter(|next| self.to.as_ref().is_none_or(|to| *next < to.as_slice()))?;
                tree.chunk_of(next)
            }
            Direction::Backward if open.fence <= self.from.as_slice() => None,
            Direction::Backward => tree.chunk_before(open.fence),
        }
    }

    /// Jumps so that the next entry is the one at `key`, or the nearest one after it in the cursor's direction. A key
    /// outside the range counts as that end of the range.
    pub fn seek(&mut self, key: &[u8]) {
        if self.to.as_ref().is_some_and(|to| *to <= self.from) {
            return;
        }
        let key = key.max(&self.from);
        let outside = self.to.as_ref().filter(|to| key >= to.as_slice());
        let chunk = self.contents.tree.chunk_of(outside.map_or(key, Vec::as_slice));
        let (place, inside) = (chunk.as_ref().map(|chunk| chunk.place.number), outside.is_none());
        self.chunk = chunk.map(|chunk| self.open(&chunk));
        if let (Some(open), Some(place)) = (&mut self.chunk, place)
            && (inside || self.direction == Direction::Forward)
        {
            open.entries.seek(&self.contents.layout.entry_key(place, key));
        }
    }
}

//! Walking a range of keys.

use rocksdb::{DB, DBRawIteratorWithThreadMode};
use scrinium_assertion::never;

use crate::account::Reading;
use crate::tree::Tree;
use crate::{Direction, Reservation, StoreError};

/// A key and its value.
pub type Entry<'a> = (&'a [u8], &'a [u8]);

/// Walks the keys of a range of a [`Snapshot`](crate::Snapshot) in one direction.
///
/// Keys and values are lent where they lie, until the next call.
pub struct Cursor<'snapshot> {
    tree: &'snapshot Tree,
    iterator: DBRawIteratorWithThreadMode<'snapshot, DB>,
    direction: Direction,
    place: CursorPlace,
    reading: Reading<'snapshot>,
    /// What it reads ahead.
    _memory: Option<Reservation>,
}

/// Where the cursor is.
enum CursorPlace {
    /// Before the first key of the range.
    Start,
    /// At a key that has not been given out.
    Before,
    /// At the key that was given out last.
    At,
    /// Past the last key.
    End,
    /// Within a range that holds no key by its bounds.
    Nowhere,
}

impl<'snapshot> Cursor<'snapshot> {
    pub(crate) fn new(
        tree: &'snapshot Tree,
        iterator: DBRawIteratorWithThreadMode<'snapshot, DB>,
        is_empty: bool,
        direction: Direction,
        reading: Reading<'snapshot>,
        memory: Option<Reservation>,
    ) -> Self {
        let place = if is_empty { CursorPlace::Nowhere } else { CursorPlace::Start };
        Self { tree, iterator, direction, place, reading, _memory: memory }
    }

    /// Jumps so that the next key given out is `key`, or the nearest one after it in the cursor's
    /// direction. Jumps either way; a `key` outside the range counts as that end of the range.
    pub fn seek(&mut self, key: &[u8]) {
        if matches!(self.place, CursorPlace::Nowhere) {
            return;
        }
        match self.direction {
            Direction::Forward => self.iterator.seek(key),
            Direction::Backward => self.iterator.seek_for_prev(key),
        }
        self.place = CursorPlace::Before;
    }

    /// The next key and its value, `None` at the end of the range.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a damaged block, [`StoreError::Tree`] when a file cannot be read; the
    /// cursor then stays at the end until a call of [`seek`](Cursor::seek).
    #[allow(clippy::should_implement_trait, reason = "what it lends lives only until the next call")]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, StoreError> {
        match (&self.place, self.direction) {
            (CursorPlace::Start, Direction::Forward) => self.iterator.seek_to_first(),
            (CursorPlace::Start, Direction::Backward) => self.iterator.seek_to_last(),
            (CursorPlace::At, Direction::Forward) => self.iterator.next(),
            (CursorPlace::At, Direction::Backward) => self.iterator.prev(),
            (CursorPlace::Before, _) => {}
            (CursorPlace::End | CursorPlace::Nowhere, _) => return Ok(None),
        }
        if self.iterator.valid() {
            self.place = CursorPlace::At;
            self.reading.count();
            let entry = self.iterator.item();
            return Ok(Some(entry.ok_or_else(|| never!("a cursor that stands at a key has an entry"))?));
        }
        self.place = CursorPlace::End;
        self.iterator.status().map_err(|error| self.tree.error("read", &error))?;
        Ok(None)
    }
}

impl Cursor<'_> {
    /// The key that was given out last, and its value.
    pub(crate) fn current(&self) -> Option<Entry<'_>> {
        if matches!(self.place, CursorPlace::At) { self.iterator.item() } else { None }
    }
}

impl std::fmt::Debug for Cursor<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cursor").field("direction", &self.direction).finish_non_exhaustive()
    }
}

//! A view's entries as one reader sees them.

use scrinium_index::{Cursor, Reader, Reduce};
use scrinium_store::Direction;

use super::View;
use crate::error::{DatabaseError, Result};

/// A view's entries as one reader sees them, as they stood at one moment. Counting costs O(log n). Clones share it.
#[derive(Clone)]
pub(crate) struct Collection {
    reader: Reader,
}

impl Collection {
    pub(crate) fn open(view: &View) -> Result<Self> {
        view.index.usage.note_read();
        Ok(Self { reader: view.index.index.reader()? })
    }

    /// The number of the last change that it holds.
    pub(crate) fn reached(&self) -> u64 {
        self.reader.reached()
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> Result<u64> {
        Ok(self.reader.len())
    }

    /// The sums of all entries, column by column.
    pub(crate) fn sums(&self) -> Result<Vec<f64>> {
        Ok(self.reader.sums())
    }

    /// Number of entries before `key`, whether or not there is an entry at `key`.
    pub(crate) fn position(&self, key: &[u8]) -> Result<u64> {
        Ok(self.reader.position(key)?)
    }

    /// Number of entries from `from` up to, not including, `to`.
    pub(crate) fn count_range(&self, from: &[u8], to: &[u8]) -> Result<u64> {
        Ok(self.reader.count_range(from, Some(to))?)
    }

    /// Sums of the entries from `from` up to, not including, `to`, column by column.
    pub(crate) fn sums_range(&self, from: &[u8], to: &[u8]) -> Result<Vec<f64>> {
        Ok(self.reader.sums_range(from, Some(to))?)
    }

    /// The entries from `from` up to, not including, `to`, in either direction, without the first `skip` on the way.
    pub(crate) fn cursor(
        &self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        skip: u64,
    ) -> Result<Cursor<'_>> {
        Ok(self.reader.cursor(from, Some(to), direction, skip)?)
    }

    /// What a function makes of the entries from `from` up to, not including, `to`; `None` if there are none.
    pub(crate) fn reduce_range<R: Reduce<Error = DatabaseError>>(
        &self,
        from: &[u8],
        to: &[u8],
        reduce: &mut R,
    ) -> Result<Option<std::sync::Arc<[u8]>>> {
        self.reader.reduce_range(from, Some(to), reduce)
    }
}

//! Walking the entries of an index.

use crate::IndexError;
use crate::format::{Layout, read_sums};

/// One entry, lent until the cursor's next step.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its place.
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
    layout: Layout,
    /// `None` when there is nothing to walk.
    cursor: Option<scrinium_store::Cursor<'reader>>,
}

impl<'reader> Cursor<'reader> {
    pub(crate) fn new(layout: Layout, cursor: Option<scrinium_store::Cursor<'reader>>) -> Self {
        Self { layout, cursor }
    }

    /// The next entry, `None` at the end of the range.
    ///
    /// # Errors
    /// [`IndexError::Store`], [`IndexError::Damaged`].
    #[allow(clippy::should_implement_trait, reason = "what it lends lives only until the next call")]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, IndexError> {
        let Some(cursor) = &mut self.cursor else { return Ok(None) };
        let Some((key, value)) = cursor.next()? else { return Ok(None) };
        let (sums, value) = self.layout.split_entry(value)?;
        Ok(Some(Entry { key: self.layout.strip(key), value, sums }))
    }

    /// Jumps so that the next entry is the one at `key`, or the nearest one after it in the cursor's direction. A key
    /// outside the range counts as that end of the range.
    pub fn seek(&mut self, key: &[u8]) {
        if let Some(cursor) = &mut self.cursor {
            cursor.seek(&self.layout.key(key));
        }
    }
}

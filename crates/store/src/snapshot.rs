//! The store as it stood at one moment.

use std::sync::Arc;

use rocksdb::ReadOptions;
use self_cell::self_cell;

use crate::account::Reading;
use crate::tree::{Tree, read_options};
use crate::{
    Cursor, Direction, Family, KeyRange, Purpose, Reservation, ScanOptions, Slice, StoreError, slice,
};

struct View<'a> {
    snapshot: rocksdb::Snapshot<'a>,
    /// Options of a read in this snapshot, made once.
    reads: ReadOptions,
}

self_cell!(
    struct SnapshotCell {
        owner: Arc<Tree>,
        #[covariant]
        dependent: View,
    }
);

/// All families as they stood at one moment, between two batches. Clones share it.
///
/// It may outlive the [`Store`](crate::Store), whose folder then stays locked. While it lives, what was
/// overwritten or deleted since cannot be cleared away, so it should not be kept for hours.
#[derive(Clone)]
pub struct Snapshot {
    cell: Arc<SnapshotCell>,
}

impl Snapshot {
    pub(crate) fn take(tree: &Arc<Tree>) -> Self {
        let cell = SnapshotCell::new(Arc::clone(tree), |tree| {
            let snapshot = tree.db().snapshot();
            let mut reads = read_options();
            reads.set_snapshot(&snapshot);
            View { snapshot, reads }
        });
        Self { cell: Arc::new(cell) }
    }

    /// The value of `key`, if it is there.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a damaged block, [`StoreError::Tree`] when a file cannot be read.
    pub fn get(&self, family: Family, key: &[u8]) -> Result<Option<Slice>, StoreError> {
        slice::get(self.cell.borrow_owner(), &self.cell.borrow_dependent().reads, family, key)
    }

    /// The values of `keys` in their order, `None` for one that is not there. Faster than one by one.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        family: Family,
        keys: &[K],
    ) -> Result<Vec<Option<Slice>>, StoreError> {
        slice::multi_get(self.cell.borrow_owner(), &self.cell.borrow_dependent().reads, family, keys)
    }

    /// Whether `key` is there.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn contains(&self, family: Family, key: &[u8]) -> Result<bool, StoreError> {
        slice::contains(self.cell.borrow_owner(), &self.cell.borrow_dependent().reads, family, key)
    }

    /// A cursor before the first key of `range` in the given direction.
    #[must_use]
    pub fn cursor(&self, family: Family, range: KeyRange<'_>, direction: Direction) -> Cursor<'_> {
        self.cursor_with(family, range, ScanOptions { direction, ..ScanOptions::default() })
    }

    /// As [`Snapshot::cursor`], with all options.
    #[must_use]
    pub fn cursor_with(&self, family: Family, range: KeyRange<'_>, options: ScanOptions) -> Cursor<'_> {
        let tree = self.cell.borrow_owner();
        let mut reads = read_options();
        reads.set_iterate_lower_bound(range.from);
        if let Some(to) = range.to {
            reads.set_iterate_upper_bound(to);
        }
        let read_ahead_bytes = options.read_ahead_bytes.min(tree.budget.read_ahead_bytes());
        reads.set_readahead_size(read_ahead_bytes);
        reads.fill_cache(options.fill_cache);
        let iterator = self.cell.borrow_dependent().snapshot.raw_iterator_cf_opt(tree.family(family), reads);
        let reading = Reading::new(tree.accounts.of(family, range.from));
        let memory = (read_ahead_bytes > 0)
            .then(|| Reservation::new(&tree.budget, Purpose::Scans, read_ahead_bytes as u64));
        Cursor::new(tree, iterator, range.is_empty(), options.direction, reading, memory)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = self.cell.borrow_dependent().snapshot.sequence_number();
        formatter.debug_struct("Snapshot").field("number", &number).finish()
    }
}

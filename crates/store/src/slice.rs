//! A value as read, without copying it.

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use rocksdb::DBPinnableSlice;
use scrinium_assertion::{always, never};
use self_cell::self_cell;

use crate::tree::Tree;
use crate::{Family, StoreError};

type FoundSlices<'a> = Vec<Option<DBPinnableSlice<'a>>>;

self_cell!(
    struct OneCell {
        owner: Arc<Tree>,
        #[covariant]
        dependent: DBPinnableSlice,
    }
);

self_cell!(
    struct ManyCell {
        owner: Arc<Tree>,
        #[covariant]
        dependent: FoundSlices,
    }
);

/// A value as it lay in memory, held there until this is dropped. It may outlive the [`Store`](crate::Store),
/// whose folder then stays locked.
pub struct Slice(Repr);

enum Repr {
    One(OneCell),
    OfMany(Arc<ManyCell>, usize),
}

impl Deref for Slice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::One(cell) => cell.borrow_dependent(),
            Repr::OfMany(cell, index) => {
                let found = cell.borrow_dependent().get(*index).and_then(Option::as_deref);
                found.unwrap_or_else(|| {
                    never!("a slice is of a value that was found", "value {index}");
                    &[]
                })
            }
        }
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for Slice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.deref().fmt(formatter)
    }
}

impl PartialEq<[u8]> for Slice {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl From<Slice> for Bytes {
    /// Shares the value; nothing is copied.
    fn from(slice: Slice) -> Self {
        Self::from_owner(slice)
    }
}

/// Why there is no slice.
enum Missing {
    Absent,
    Failed(StoreError),
}

/// Reads one key, with the options of the newest state or of a snapshot.
pub(crate) fn get(
    tree: &Arc<Tree>,
    reads: &rocksdb::ReadOptions,
    family: Family,
    key: &[u8],
) -> Result<Option<Slice>, StoreError> {
    let cell = OneCell::try_new(Arc::clone(tree), |tree| {
        let get = || tree.db().get_pinned_cf_opt(tree.family(family), key, reads);
        let found = tree.accounts.of(family, key).reading(1, get);
        found.map_err(|error| Missing::Failed(tree.error("read", &error)))?.ok_or(Missing::Absent)
    });
    match cell {
        Ok(cell) => Ok(Some(Slice(Repr::One(cell)))),
        Err(Missing::Absent) => Ok(None),
        Err(Missing::Failed(error)) => Err(error),
    }
}

/// Whether a key is there.
pub(crate) fn contains(
    tree: &Tree,
    reads: &rocksdb::ReadOptions,
    family: Family,
    key: &[u8],
) -> Result<bool, StoreError> {
    let get = || tree.db().get_pinned_cf_opt(tree.family(family), key, reads);
    let found = tree.accounts.of(family, key).reading(1, get);
    Ok(found.map_err(|error| tree.error("read", &error))?.is_some())
}

/// Reads many keys of one family, blocks that several of them share once.
pub(crate) fn multi_get<K: AsRef<[u8]>>(
    tree: &Arc<Tree>,
    reads: &rocksdb::ReadOptions,
    family: Family,
    keys: &[K],
) -> Result<Vec<Option<Slice>>, StoreError> {
    let cell = ManyCell::try_new(Arc::clone(tree), |tree| {
        // Anyone who reads several keys at once is one user of the store.
        let first = keys.first().map(AsRef::as_ref).unwrap_or_default();
        let get = || tree.db().batched_multi_get_cf_opt(tree.family(family), keys, false, reads);
        let found = tree.accounts.of(family, first).reading(keys.len(), get);
        found.into_iter().map(|one| one.map_err(|error| tree.error("read", &error))).collect()
    })?;
    let cell = Arc::new(cell);
    let count = cell.borrow_dependent().len();
    always!(count == keys.len(), "each key has an answer", "{count} of {}", keys.len())?;
    let found = cell.borrow_dependent().iter().enumerate();
    Ok(found
        .map(|(index, one)| one.as_ref().map(|_| Slice(Repr::OfMany(Arc::clone(&cell), index))))
        .collect())
}

//! What several tests of the store need.

pub(crate) mod writers;

use std::path::Path;

pub(crate) use scrinium_fault::{noise, quick_folder};
use scrinium_statistics::Registry;
use scrinium_store::{Cursor, Family, Snapshot, Store, StoreError, StoreOptions};

/// Options that make a store small and quick, and its log roll over often.
pub(crate) fn small_options(dir: &Path) -> StoreOptions {
    let mut options = StoreOptions::new(dir);
    options.budget_bytes = Some(32 << 20);
    options.log_extent_bytes = 1 << 20;
    options.log_spare_extents = 1;
    options.reserve_bytes = 0;
    options
}

pub(crate) fn open_small(dir: &Path) -> Store {
    Store::open(small_options(dir), &Registry::new()).unwrap()
}

/// Brings sorted entries into a derived family at once. Tells how many they are.
pub(crate) fn ingest(
    store: &Store,
    family: Family,
    sorted: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
) -> Result<u64, StoreError> {
    let files = store.derived().sort(family, sorted)?;
    let entries = files.entries();
    store.derived().bring_in(vec![files])?;
    Ok(entries)
}

/// All that a cursor still gives.
pub(crate) fn collect(mut cursor: Cursor<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        found.push((key.to_vec(), value.to_vec()));
    }
    found
}

/// All keys and values of a family, ascending.
pub(crate) fn all(snapshot: &Snapshot, family: Family) -> Vec<(Vec<u8>, Vec<u8>)> {
    collect(snapshot.cursor(family, scrinium_store::KeyRange::ALL, scrinium_store::Direction::Forward))
}

//! What lies in a store, whatever the catalogue says.

use std::collections::BTreeSet;

use scrinium_store::{Direction, Family, KeyRange, Store};

/// The databases that have keys in a store.
pub fn numbers(store: &Store) -> BTreeSet<u32> {
    let snapshot = store.snapshot();
    let mut found = BTreeSet::new();
    for family in [Family::Point, Family::Scan, Family::Churn, Family::DerivedScan] {
        let mut cursor = snapshot.cursor(family, KeyRange::ALL, Direction::Forward);
        while let Some((key, _)) = cursor.next().unwrap() {
            found.extend(key.first_chunk().copied().map(u32::from_be_bytes));
        }
    }
    found.retain(|number| *number != 0 && *number != u32::MAX);
    found
}

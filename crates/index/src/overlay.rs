//! Entries as they will be: a snapshot, and over it what the batch under way changes.

use std::collections::BTreeMap;

use scrinium_store::{Batch, Direction, Snapshot};

use crate::IndexError;
use crate::format::{ENTRIES, Layout, key_range};

/// A snapshot's entries and the changes to them that have not been written yet.
pub(crate) struct Overlay<'a> {
    layout: Layout,
    snapshot: &'a Snapshot,
    /// By the store's keys; `None` removes.
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

/// An entry as it will be.
pub(crate) struct OverlaidEntry {
    pub(crate) key: Vec<u8>,
    /// The whole value, sums included.
    pub(crate) value: Vec<u8>,
    /// Whether the store has it, so that moving it must remove it there.
    stored: bool,
}

impl<'a> Overlay<'a> {
    pub(crate) fn new(layout: Layout, snapshot: &'a Snapshot) -> Self {
        Self { layout, snapshot, changes: BTreeMap::new() }
    }

    pub(crate) fn snapshot(&self) -> &'a Snapshot {
        self.snapshot
    }

    pub(crate) fn put(&mut self, place: u32, key: &[u8], value: Vec<u8>) {
        self.changes.insert(self.layout.entry_key(place, key), Some(value));
    }

    pub(crate) fn delete(&mut self, place: u32, key: &[u8]) {
        self.changes.insert(self.layout.entry_key(place, key), None);
    }

    pub(crate) fn move_to(&mut self, from: u32, to: u32, found: &OverlaidEntry) {
        if found.stored {
            self.delete(from, &found.key);
        } else {
            self.changes.remove(&self.layout.entry_key(from, &found.key));
        }
        self.put(to, &found.key, found.value.clone());
    }

    /// The entries of a place, in order.
    pub(crate) fn of_place(&self, place: u32) -> Result<Vec<OverlaidEntry>, IndexError> {
        let range = self.layout.entry_range(place, &[], None);
        let mut changes = self.changes.range(range.0.clone()..range.1.clone()).peekable();
        let mut found = Vec::new();
        let mut take = |full_key: &[u8], value: &Option<Vec<u8>>, stored| {
            if let Some(value) = value {
                found.push(OverlaidEntry {
                    key: self.layout.strip(full_key).to_vec(),
                    value: value.clone(),
                    stored,
                });
            }
        };
        let mut cursor = self.snapshot.cursor(ENTRIES, key_range(&range), Direction::Forward);
        while let Some((full_key, value)) = cursor.next()? {
            while let Some((key, value)) = changes.next_if(|(key, _)| key.as_slice() < full_key) {
                take(key, value, false);
            }
            match changes.next_if(|(key, _)| key.as_slice() == full_key) {
                Some((key, value)) => take(key, value, true),
                None => take(full_key, &Some(value.to_vec()), true),
            }
        }
        changes.for_each(|(key, value)| take(key, value, false));
        Ok(found)
    }

    pub(crate) fn write(&self, batch: &mut Batch) {
        for (key, value) in &self.changes {
            match value {
                Some(value) => batch.put(ENTRIES, key, value),
                None => batch.delete(ENTRIES, key),
            }
        }
    }
}

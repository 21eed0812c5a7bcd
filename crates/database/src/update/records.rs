//! Small records that an update reads before it writes them, while earlier updates are still on their way.
//!
//! They are in [`Family::Point`], and those of members of folders in [`Family::Scan`]; no key is in both. An update finds a record as it wrote it itself, else as an earlier update left it
//! that is not visible yet, else as the store shows it.

use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use scrinium_store::{Batch, Direction, Family, KeyRange, Snapshot, Store};

use crate::error::Result;
use crate::keys;

/// Records by their key; `None` is one that was removed.
type Written = BTreeMap<Vec<u8>, Option<Bytes>>;

/// Records whose last update may not be visible yet.
#[derive(Default)]
pub(crate) struct Staged {
    records: BTreeMap<Vec<u8>, (u64, Option<Bytes>)>,
    /// Changes of `records`, in their order.
    waiting: VecDeque<(u64, Vec<u8>)>,
}

impl Staged {
    /// Notes what an update wrote, whose last change is `change_number`.
    pub(crate) fn add(&mut self, change_number: u64, written: Written) {
        for (key, record) in written {
            self.waiting.push_back((change_number, key.clone()));
            self.records.insert(key, (change_number, record));
        }
    }

    /// Forgets what the store shows.
    pub(crate) fn forget_visible(&mut self, visible: u64) {
        while let Some((number, key)) = self.waiting.pop_front_if(|(number, _)| *number <= visible) {
            // A later update of the same record has put a later entry in its place.
            if self.records.get(&key).is_some_and(|(of, _)| *of == number) {
                self.records.remove(&key);
            }
        }
    }

    fn beginning_with<'a>(
        &'a self,
        prefix: &'a [u8],
    ) -> impl Iterator<Item = (&'a Vec<u8>, &'a Option<Bytes>)> {
        let from = self.records.range(prefix.to_vec()..);
        from.take_while(move |(key, _)| key.starts_with(prefix)).map(|(key, (_, record))| (key, record))
    }
}

/// The records as one update finds and changes them.
pub(super) struct Records<'a> {
    store: &'a Store,
    staged: &'a Staged,
    /// Taken when the first record is read, and so after everything that `staged` has forgotten became visible.
    snapshot: OnceCell<Snapshot>,
    written: Written,
}

impl<'a> Records<'a> {
    pub(super) const fn new(store: &'a Store, staged: &'a Staged) -> Self {
        Self { store, staged, snapshot: OnceCell::new(), written: BTreeMap::new() }
    }

    fn snapshot(&self) -> &Snapshot {
        self.snapshot.get_or_init(|| self.store.snapshot())
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.get_in(Family::Point, key)
    }

    /// The record of a member of a folder.
    pub(super) fn get_member(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.get_in(Family::Scan, key)
    }

    fn get_in(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(record) = self.written.get(key) {
            return Ok(record.clone());
        }
        if let Some((_, record)) = self.staged.records.get(key) {
            return Ok(record.clone());
        }
        let stored = self.snapshot().get(family, key)?;
        Ok(stored.map(|stored| Bytes::copy_from_slice(&stored)))
    }

    /// All records whose keys begin with `prefix`, in the order of the keys.
    pub(super) fn beginning_with(&self, prefix: &[u8]) -> Result<BTreeMap<Vec<u8>, Bytes>> {
        let mut found = BTreeMap::new();
        let to = keys::successor(prefix);
        let range = KeyRange { from: prefix, to: Some(&to) };
        let mut cursor = self.snapshot().cursor(Family::Point, range, Direction::Forward);
        while let Some((key, value)) = cursor.next()? {
            found.insert(key.to_vec(), Bytes::copy_from_slice(value));
        }
        let own = self.written.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(prefix));
        for (key, record) in self.staged.beginning_with(prefix).chain(own) {
            match record {
                Some(record) => drop(found.insert(key.clone(), record.clone())),
                None => drop(found.remove(key)),
            }
        }
        Ok(found)
    }

    pub(super) fn put(&mut self, batch: &mut Batch, key: Vec<u8>, record: Vec<u8>) {
        batch.put(Family::Point, &key, &record);
        self.written.insert(key, Some(record.into()));
    }

    pub(super) fn delete(&mut self, batch: &mut Batch, key: Vec<u8>) {
        batch.delete(Family::Point, &key);
        self.written.insert(key, None);
    }

    /// Writes the record of a member of a folder.
    pub(super) fn put_member(&mut self, batch: &mut Batch, key: Vec<u8>, record: Vec<u8>) {
        batch.put(Family::Scan, &key, &record);
        self.written.insert(key, Some(record.into()));
    }

    pub(super) fn delete_member(&mut self, batch: &mut Batch, key: Vec<u8>) {
        batch.delete(Family::Scan, &key);
        self.written.insert(key, None);
    }

    pub(super) fn is_unchanged(&self) -> bool {
        self.written.is_empty()
    }

    pub(super) fn into_written(self) -> Written {
        self.written
    }
}

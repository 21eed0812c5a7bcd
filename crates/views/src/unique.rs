//! Views that show one entry for each key: the first of those with equal sort keys, in the order of the index, which
//! is that of the documents' ids.
//!
//! The others are *candidates*. They lie in the same index behind all entries that are shown: at their key behind a
//! byte that no sort key begins with, without sums, their totals before their value. So whatever is read, counted or
//! added up of the entries shown costs what it costs in any view, and when one goes, the next of its candidates
//! takes its place in the batch of that change, found by one look behind. Each stream of entries that not everybody
//! may read has its own.

use std::collections::BTreeMap;

use scrinium_contents::wire::Input;
use scrinium_database::keys::successor;
use scrinium_database::{DatabaseError, Result};
use scrinium_index::{Change, Direction, Reader};

use crate::entries::{END_OF_KEY, Entry, sort_keys_end};
use crate::error::OrDatabaseError as _;
use crate::group::View;
use crate::streams::{END, stream_of};

/// Begins the keys of candidates, which lie behind those of all entries and streams.
const CANDIDATES: [u8; 2] = [END, 2];

/// What is kept of an entry besides its key: its value and its totals.
type Kept = (Vec<u8>, Vec<f64>);

/// An entry as a candidate.
pub(super) fn candidate(entry: &Entry) -> Entry {
    let mut value = Vec::with_capacity(entry.totals.len() * 8 + entry.value.len());
    entry.totals.iter().for_each(|total| value.extend_from_slice(&total.to_be_bytes()));
    value.extend_from_slice(&entry.value);
    Entry { key: candidate_key(&entry.key), value, totals: Vec::new() }
}

fn candidate_key(key: &[u8]) -> Vec<u8> {
    [&CANDIDATES, key].concat()
}

/// The key, the totals and the value that a candidate has where it is shown; `None`: it is no candidate, or damaged.
pub(super) fn candidate_parts<'a>(
    key: &'a [u8],
    value: &'a [u8],
    totals: usize,
) -> Option<(&'a [u8], Vec<f64>, &'a [u8])> {
    let key = key.strip_prefix(&CANDIDATES)?;
    let mut input = Input::new(value);
    let totals = (0..totals).map(|_| input.array().map(f64::from_be_bytes)).collect::<Option<_>>()?;
    Some((key, totals, input.rest()))
}

/// What all entries of an entry's key begin with. `None`: damaged.
pub(super) fn group_of(entry: &Entry) -> Option<&[u8]> {
    entry.key.get(..=stream_of(&entry.key).len() + sort_keys_end(&entry.value)?)
}

/// The changes that a batch makes to a view with unique keys.
#[derive(Default)]
pub(super) struct UniqueChanges {
    /// By what all entries of a key begin with.
    groups: BTreeMap<Vec<u8>, GroupChanges>,
}

#[derive(Default)]
struct GroupChanges {
    /// Keys and totals.
    removed: BTreeMap<Vec<u8>, Vec<f64>>,
    inserted: BTreeMap<Vec<u8>, Kept>,
}

impl UniqueChanges {
    /// The document's entries become `new`. A document comes once in a batch.
    pub(super) fn replace(&mut self, id: &str, old: Vec<(Vec<u8>, Vec<f64>)>, new: Vec<Entry>) {
        for (key, totals) in old {
            self.group(&key, id).removed.insert(key, totals);
        }
        for Entry { key, value, totals } in new {
            self.group(&key, id).inserted.insert(key, (value, totals));
        }
    }

    fn group(&mut self, key: &[u8], id: &str) -> &mut GroupChanges {
        // Behind it come the id and two bytes.
        let end = key.len().saturating_sub(id.len() + 2);
        let group = key.get(..end).unwrap_or_default();
        debug_assert_eq!(group.last(), Some(&END_OF_KEY));
        self.groups.entry(group.to_vec()).or_default()
    }

    /// The changes that this makes to the index. Two look-ups for each key, whatever there is of it.
    pub(super) fn settle(self, view: &View) -> Result<Vec<Change>> {
        if self.groups.is_empty() {
            return Ok(Vec::new());
        }
        // Candidates are for nobody who reads, so that this is not read through a collection.
        let reader = view.index.index.reader();
        let totals = view.definition.totals().count();
        let mut changes = Vec::new();
        for (group, of_group) in self.groups {
            of_group.settle(&Group { reader: &reader, prefix: &group, totals }, &mut changes)?;
        }
        Ok(changes)
    }
}

impl GroupChanges {
    fn settle(self, group: &Group<'_>, changes: &mut Vec<Change>) -> Result<()> {
        let shown = group.shown()?;
        let is_shown = |key: &Vec<u8>| shown.as_ref().is_some_and(|shown| shown.key == *key);
        let goes = self.removed.keys().any(is_shown);
        changes.extend(self.removed.iter().map(|(key, sums)| match is_shown(key) {
            true => Change::Remove { key: key.clone(), sums: sums.clone() },
            false => Change::Remove { key: candidate_key(key), sums: Vec::new() },
        }));
        let next = if goes { group.first_candidate(&self.removed)? } else { shown };
        let new_is_first = match (&next, self.inserted.first_key_value()) {
            (Some(next), Some((new, _))) => *new < next.key,
            (None, _) => true,
            (Some(_), None) => false,
        };
        match next {
            Some(next) if goes && !new_is_first => {
                changes.push(Change::Remove { key: candidate_key(&next.key), sums: Vec::new() });
                changes.push(insert(next));
            }
            Some(next) if !goes && new_is_first => {
                changes.push(Change::Remove { key: next.key.clone(), sums: next.totals.clone() });
                changes.push(insert(candidate(&next)));
            }
            _ => {}
        }
        for (place, (key, (value, totals))) in self.inserted.into_iter().enumerate() {
            let entry = Entry { key, value, totals };
            changes.push(insert(if place == 0 && new_is_first { entry } else { candidate(&entry) }));
        }
        Ok(())
    }
}

fn insert(Entry { key, value, totals }: Entry) -> Change {
    Change::Insert { key, value, sums: totals }
}

/// The entries of one key, as they stand.
struct Group<'a> {
    reader: &'a Reader,
    /// What their keys begin with.
    prefix: &'a [u8],
    /// Totals of each entry.
    totals: usize,
}

impl Group<'_> {
    /// The entry that is shown; without one there are no candidates either.
    fn shown(&self) -> Result<Option<Entry>> {
        let to = successor(self.prefix);
        let mut cursor =
            self.reader.cursor(self.prefix, Some(&to), Direction::Forward, 0).or_database_error()?;
        Ok(cursor.next().or_database_error()?.map(|entry| Entry {
            key: entry.key.to_vec(),
            value: entry.value.to_vec(),
            totals: entry.sums().collect(),
        }))
    }

    /// The first candidate whose key is not in `removed`, as it is shown. Passes none but those.
    fn first_candidate(&self, removed: &BTreeMap<Vec<u8>, Vec<f64>>) -> Result<Option<Entry>> {
        let from = candidate_key(self.prefix);
        let to = successor(&from);
        let mut cursor = self.reader.cursor(&from, Some(&to), Direction::Forward, 0).or_database_error()?;
        while let Some(entry) = cursor.next().or_database_error()? {
            let key = entry.key.get(CANDIDATES.len()..).unwrap_or_default();
            if removed.contains_key(key) {
                continue;
            }
            let mut input = Input::new(entry.value);
            let totals = (0..self.totals).map(|_| input.array().map(f64::from_be_bytes)).collect();
            let damaged = || DatabaseError::damaged("candidate of a view", "an index with unique keys");
            let totals: Option<Vec<f64>> = totals;
            let (key, value) = (key.to_vec(), input.rest().to_vec());
            return Ok(Some(Entry { key, value, totals: totals.ok_or_else(damaged)? }));
        }
        Ok(None)
    }
}

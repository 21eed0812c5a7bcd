//! What one batch changes in the indexes of some views.

use std::collections::BTreeMap;

use scrinium_assertion::{always, never};
use scrinium_database::{DatabaseError, Result};
use scrinium_index::{Change, Update};
use scrinium_store::{Batch, Family};

use crate::entries::{Entry, decode_list, encode_list};
use crate::error::OrDatabaseError as _;
use crate::evaluate::Evaluated;
use crate::gone;
use crate::group::View;
use crate::lists::{Lists, list_key};
use crate::open::OpenDatabase;
use crate::registry::numbers_of;
use crate::unique::UniqueChanges;

/// A document that changed.
pub(super) struct Changed {
    pub(super) id: String,
    /// The number of the change.
    pub(super) number: u64,
    /// Its entries in each of the views; nothing if it is gone.
    pub(super) entries: Evaluated,
}

/// What changes in one index.
struct ViewUpdate<'a> {
    view: &'a View,
    /// The last change that its entries hold.
    since: u64,
    changes: Vec<Change>,
    /// The changes of a view that shows one entry for each key.
    unique: UniqueChanges,
}

/// Takes changed documents, each of which comes once, into the indexes of views, each of which holds the changes up to
/// the one next to it; all of it is one batch, after which they stand at change `reached`.
pub(super) fn write(
    database: &OpenDatabase,
    views: &[(&View, u64)],
    mut changed: Vec<Changed>,
    reached: u64,
) -> Result<()> {
    let _held = database.views.homes.hold(views.iter().map(|(view, _)| view.index.home()));
    let mut lists = Batch::new();
    let mut updates: Vec<ViewUpdate<'_>> =
        views.iter().map(|(view, since)| ViewUpdate::new(view, *since)).collect();
    let mut homes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (place, (view, _)) in views.iter().enumerate() {
        homes.entry(view.index.home()).or_default().push(place);
    }
    for (home, places) in homes {
        let mut keys: Vec<Vec<u8>> = changed.iter().map(|document| list_key(home, &document.id)).collect();
        keys.push(gone::key(database.number(), numbers_of(home).1));
        let mut stored = database.store().multi_get(Family::DerivedPoint, &keys)?;
        always!(
            stored.len() == keys.len(),
            "the store answers each key",
            "{} of {}",
            stored.len(),
            keys.len()
        )?;
        let gone = gone::decode(stored.pop().flatten().as_deref());
        for ((key, stored), document) in keys.iter().zip(stored).zip(&mut changed) {
            let stored = stored.as_deref().unwrap_or_default();
            let damaged = || DatabaseError::damaged("list of entries", &document.id);
            let known = Lists::decode(stored).ok_or_else(damaged)?;
            let mut new_lists = Vec::with_capacity(places.len());
            for place in &places {
                let update = updates.get_mut(*place);
                let update = update.ok_or_else(|| never!("each view that is written has its update"))?;
                if update.since >= document.number {
                    continue;
                }
                let index = update.view.index.number();
                // Of a document that is gone there is nothing.
                let new = document.entries.get_mut(*place).map(std::mem::take).unwrap_or_default();
                new_lists.push((index, update.replace(&document.id, known.of(index), new)?));
            }
            match known.with(&new_lists, &gone) {
                Some(record) if record == stored => {}
                Some(record) => lists.put(Family::DerivedPoint, key, &record),
                None if stored.is_empty() => {}
                None => lists.delete(Family::DerivedPoint, key),
            }
        }
    }
    let updates = updates.into_iter().map(|update| update.settled(reached)).collect::<Result<Vec<_>>>()?;
    Update::all(updates.into_iter().flatten().collect(), lists).or_database_error()
}

impl<'a> ViewUpdate<'a> {
    fn new(view: &'a View, since: u64) -> Self {
        Self { view, since, changes: Vec::new(), unique: UniqueChanges::default() }
    }

    /// The document's entries become `new`. Returns its new list; empty: it has no entries.
    fn replace(&mut self, id: &str, list: Option<&[u8]>, new: Vec<Entry>) -> Result<Vec<u8>> {
        let totals = self.view.definition.totals().count();
        let damaged = || DatabaseError::damaged("list of entries", id);
        let old = list.map_or(Some(Vec::new()), |list| decode_list(id, totals, list)).ok_or_else(damaged)?;
        let list = if new.is_empty() { Vec::new() } else { encode_list(id, &new) };
        if self.view.definition.keys.is_unique {
            self.unique.replace(id, old, new);
            return Ok(list);
        }
        self.changes.extend(old.into_iter().map(|(key, sums)| Change::Remove { key, sums }));
        self.changes.extend(new.into_iter().map(|entry| Change::Insert {
            key: entry.key,
            value: entry.value,
            sums: entry.totals,
        }));
        Ok(list)
    }

    /// `None`: nothing changes in the index.
    fn settled(mut self, reached: u64) -> Result<Option<Update<'a>>> {
        self.changes.extend(self.unique.settle(self.view)?);
        let index = &self.view.index.index;
        let reached = reached.max(index.reached());
        let changes = self.changes;
        Ok((reached > index.reached() || !changes.is_empty()).then_some(Update { index, changes, reached }))
    }
}

//! Bringing indexes up to date from the change feed.
//!
//! The views of a design document are updated together, so that a document is read once for all of
//! them. A new index of a large database is built in bulk where the memory suffices.

mod build;
mod folder;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use scrinium_formula::Environment;
use scrinium_index::Change;
use scrinium_store::{Batch, Direction, Family, KeyRange, Snapshot};

use super::entries::{Entry, entries};
use super::registry::entries_key;
use super::{Group, View};
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::head::ChangeRecord;
use crate::keys;
use crate::leaf::Leaf;
use crate::wire::{Input, put_bytes, put_number};

/// Changes taken into an index by one batch.
const CHANGES_AT_ONCE: usize = 500;

/// A new index of a database with more changes than this is built in bulk.
const BUILD_FROM_CHANGES: u64 = 2000;

impl Database {
    /// Brings the views of a design document up to the last visible change.
    pub(super) fn update_views(self: &Arc<Self>, group: &Group) -> Result<()> {
        let wanted = self.visible_change_number();
        if group.views.iter().all(|view| view.index.reached() >= wanted) {
            return Ok(());
        }
        // In the order of the indexes' numbers, so that two design documents that share some do not wait
        // for each other.
        let mut views: Vec<&View> = group.views.iter().collect();
        views.sort_by_key(|view| view.index.id);
        views.dedup_by_key(|view| view.index.id);
        let updating: Vec<_> = views.iter().map(|view| view.index.updater.lock()).collect();
        views.retain(|view| view.index.reached() < wanted);
        views.iter().for_each(|view| view.index.updating.store(true, Ordering::Relaxed));
        let result = match group.folder {
            None => self.follow(&views),
            Some(folder) => views.iter().try_for_each(|view| self.follow_folder(view, folder)),
        };
        views.iter().for_each(|view| view.index.updating.store(false, Ordering::Relaxed));
        drop(updating);
        result
    }

    fn follow(self: &Arc<Self>, views: &[&View]) -> Result<()> {
        let last = self.visible_change_number();
        let snapshot = self.store().snapshot();
        let environment = environment(self);
        let (new, old): (Vec<&View>, Vec<&View>) =
            views.iter().partition(|view| view.index.reached() == 0 && last > BUILD_FROM_CHANGES);
        let built = new.is_empty() || build::build(self, &snapshot, &new, &environment, last)?;
        let rest = if built { old.as_slice() } else { views };
        if rest.is_empty() { Ok(()) } else { self.follow_changes(&snapshot, rest, &environment, last) }
    }

    fn follow_changes(
        self: &Arc<Self>,
        snapshot: &Snapshot,
        views: &[&View],
        environment: &Environment,
        last: u64,
    ) -> Result<()> {
        let since = views.iter().map(|view| view.index.reached()).min().unwrap_or(last);
        let from = keys::change(self.number(), since + 1);
        let (_, to) = keys::change_range(self.number());
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Forward);
        loop {
            let mut updates: Vec<ViewUpdate> = views.iter().map(|view| ViewUpdate::new(view)).collect();
            let mut reached = None;
            for _ in 0..CHANGES_AT_ONCE {
                let Some((key, stored)) = cursor.next()? else { break };
                let damaged = || DatabaseError::damaged("change", self.name());
                let number = keys::change_number_of(key).ok_or_else(damaged)?;
                let change = ChangeRecord::decode(stored).ok_or_else(damaged)?;
                self.take_change(snapshot, &mut updates, &change, number, environment)?;
                reached = Some(number);
            }
            let at_end = reached.is_none();
            // The snapshot holds all changes up to `last`, so that an index has reached it at the end even
            // if the documents changed last were changed again later.
            let reached = reached.unwrap_or(last);
            for update in updates {
                update.write(reached)?;
            }
            if at_end {
                return Ok(());
            }
        }
    }

    fn take_change(
        self: &Arc<Self>,
        snapshot: &Snapshot,
        updates: &mut [ViewUpdate<'_>],
        change: &ChangeRecord,
        number: u64,
        environment: &Environment,
    ) -> Result<()> {
        let id = change.id.as_str();
        let record = if change.deleted || scrinium_document::is_design(id) {
            None
        } else {
            let stored = snapshot.get(Family::Scan, &keys::winner(self.number(), id))?;
            Some(stored.ok_or_else(|| DatabaseError::damaged("document", id))?)
        };
        let leaf = record.as_ref().map(|record| Leaf::decode(id, record)).transpose()?;
        for update in updates {
            if update.view.index.reached() >= number {
                continue;
            }
            let new = match &leaf {
                Some(leaf) => entries(&update.view.definition, self, id, leaf, environment)?,
                None => Vec::new(),
            };
            update.replace(self, id, new)?;
        }
        Ok(())
    }
}

fn environment(database: &Database) -> Environment {
    let mut environment = Environment::new(jiff::Timestamp::now(), jiff::tz::TimeZone::UTC);
    environment.database_name = Some(database.name().to_owned());
    environment
}

/// What one batch changes in one index.
struct ViewUpdate<'a> {
    view: &'a View,
    changes: Vec<Change>,
    lists: Batch,
}

impl<'a> ViewUpdate<'a> {
    fn new(view: &'a View) -> Self {
        Self { view, changes: Vec::new(), lists: Batch::new() }
    }

    /// The document's entries become `new`.
    fn replace(&mut self, database: &Database, id: &str, new: Vec<Entry>) -> Result<()> {
        let key = entries_key(self.view.index.id, id);
        let stored = database.store().get(Family::DerivedPoint, &key)?;
        let old = match &stored {
            None => Vec::new(),
            Some(stored) => {
                decode_list(stored).ok_or_else(|| DatabaseError::damaged("list of entries", id))?
            }
        };
        if old.is_empty() && new.is_empty() {
            return Ok(());
        }
        if new.is_empty() {
            self.lists.delete(Family::DerivedPoint, &key);
        } else {
            self.lists.put(Family::DerivedPoint, &key, &encode_list(&new));
        }
        self.changes.extend(old.into_iter().map(|(key, sums)| Change::Remove { key, sums }));
        self.changes.extend(new.into_iter().map(|entry| Change::Insert {
            key: entry.key,
            value: entry.value,
            sums: entry.totals,
        }));
        Ok(())
    }

    fn write(self, reached: u64) -> Result<()> {
        if reached > self.view.index.reached() {
            self.view.index.index.update(self.changes, self.lists, reached)?;
        }
        Ok(())
    }
}

/// Keys and totals of a document's entries, so that they can be taken out again.
pub(super) fn encode_list(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(entries.iter().map(|entry| entry.key.len() + 12).sum());
    for entry in entries {
        put_bytes(&mut out, &entry.key);
        put_number(&mut out, entry.totals.len() as u64);
        entry.totals.iter().for_each(|total| out.extend_from_slice(&total.to_be_bytes()));
    }
    out
}

fn decode_list(bytes: &[u8]) -> Option<Vec<(Vec<u8>, Vec<f64>)>> {
    let mut input = Input::new(bytes);
    let mut entries = Vec::new();
    while !input.rest().is_empty() {
        let key = input.bytes()?.to_vec();
        let count = input.number()?;
        let mut totals = Vec::new();
        for _ in 0..count {
            totals.push(f64::from_be_bytes(input.array()?));
        }
        entries.push((key, totals));
    }
    Some(entries)
}

//! Bringing a view with responses up to date, and building it: documents are placed one after the other, each with
//! what responds to it (see [`walk`]).
//!
//! An index that is built is not sorted, as others are, since where a response is follows from where its parent is: it
//! grows aside, and takes the place of the one before when it is complete.
//! That goes at some 26,000 documents a second on two cores, with ids in no order
//! (`cargo run --release -p scrinium-database --example measure_responses`).

mod judge;
mod walk;

use scrinium_database::head::ChangeRecord;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_document::collation::COLLATION_VERSION;
use scrinium_formula::Environment;
use scrinium_index::{Entry, Index};
use scrinium_store::{Direction, Family, KeyRange, Snapshot};

use super::View;
use super::builder::empty;
use super::following::Following;
use crate::error::OrDatabaseError as _;
use crate::hierarchy::record::aside;
use crate::open::OpenDatabase;
use crate::registry::{forget_leftovers, note_leftovers};
use walk::Walk;

/// Changes read and evaluated at once.
const CHANGES_AT_ONCE: usize = 1000;

impl OpenDatabase {
    /// Brings a view with responses up to `last`, the last change of the snapshot; from the first change on if
    /// `whole`.
    pub(super) fn follow_hierarchy(
        &self,
        view: &View,
        snapshot: &Snapshot,
        environment: &Environment,
        last: u64,
        whole: bool,
    ) -> Result<()> {
        let index = &view.index.index;
        if index.reached() > 0 {
            let since = if whole { 0 } else { index.reached() };
            return Following::run(self, vec![view], last, |following| {
                let mut walk = Walk::new(self, view, index, snapshot, environment)?;
                self.place_changes(&mut walk, snapshot, (since, last), following)
            });
        }
        self.build_hierarchy(view, snapshot, environment, last)
    }

    /// Builds a view with responses from all documents, whatever its index holds; its lists must be empty. Readers have
    /// the old entries meanwhile.
    pub(super) fn build_hierarchy(
        &self,
        view: &View,
        snapshot: &Snapshot,
        environment: &Environment,
        last: u64,
    ) -> Result<()> {
        let built = Following::run(self, vec![view], last, |following| {
            self.build_aside(view, snapshot, environment, last, following)
        });
        if built.is_err() {
            empty(view);
        }
        built
    }

    /// In another index, from which the entries are then taken in their order.
    fn build_aside(
        &self,
        view: &View,
        snapshot: &Snapshot,
        environment: &Environment,
        last: u64,
        following: &mut Following<'_>,
    ) -> Result<()> {
        let (store, id) = (self.store(), aside(view.index.id));
        // From here to the end, a crash or a failure leaves an index that starts over.
        note_leftovers(store, view.index.id)?;
        Index::drop_index(store, id).or_database_error()?;
        let index = Index::open(store, id, view.definition.totals().count(), COLLATION_VERSION)
            .or_database_error()?;
        let mut walk = Walk::new(self, view, &index, snapshot, environment)?;
        self.place_changes(&mut walk, snapshot, (0, last), following)?;
        let reader = index.reader();
        let mut cursor = reader.cursor(&[], None, Direction::Forward, 0).or_database_error()?;
        let entries = std::iter::from_fn(|| {
            let parts = |entry: Entry<'_>| (entry.key.to_vec(), entry.value.to_vec(), entry.sums().collect());
            cursor.next().map(|entry| entry.map(parts)).transpose()
        });
        view.index.index.rebuild(entries, index.reached()).or_database_error()?;
        Index::drop_index(store, id).or_database_error()?;
        forget_leftovers(store, view.index.id)
    }

    /// Places all documents that changed after the first of the two changes.
    fn place_changes(
        &self,
        walk: &mut Walk<'_>,
        snapshot: &Snapshot,
        (since, last): (u64, u64),
        following: &mut Following<'_>,
    ) -> Result<()> {
        let from = keys::change(self.number(), since + 1);
        let (_, to) = keys::change_range(self.number());
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Forward);
        let judge = walk.judge();
        walk.go_on()?;
        let mut reached = since;
        loop {
            let mut changed = Vec::new();
            while changed.len() < CHANGES_AT_ONCE
                && let Some((key, stored)) = cursor.next()?
            {
                let change = keys::change_number_of(key).zip(ChangeRecord::decode(stored));
                let (number, change) = change.ok_or_else(|| DatabaseError::damaged("change", self.name()))?;
                changed.push((number, change.id));
            }
            if changed.is_empty() {
                // The snapshot holds all changes up to `last`.
                return walk.write(reached.max(last));
            }
            self.check_there()?;
            let ids: Vec<&str> = changed.iter().map(|(_, id)| id.as_str()).collect();
            let judged = judge.judge_many(&ids)?;
            for ((number, id), judged) in changed.iter().zip(judged) {
                walk.place(id, judged, reached)?;
                reached = *number;
                walk.write_if_full(reached)?;
            }
            following.reached(reached)?;
        }
    }
}

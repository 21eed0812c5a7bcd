//! Bringing a folder's collection up to date: from the feed of documents and from what came into the folder and left
//! it.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use scrinium_assertion::never;
use scrinium_database::head::ChangeRecord;
use scrinium_database::leaf::Leaf;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_store::{Direction, Family, KeyRange, Snapshot};

use super::together::{self, Changed};
use super::{CHANGES_AT_ONCE, Following, View, environment};
use crate::entries::Entry;
use crate::evaluate::Evaluator;
use crate::open::OpenDatabase;
use crate::registry::clear_leftovers;

/// Documents to look at, and up to which change these are all.
struct FolderStep {
    ids: BTreeSet<String>,
    reached: u64,
    is_last: bool,
}

impl OpenDatabase {
    /// Brings the collection of a folder up to the last visible change.
    pub(super) fn follow_folder(&self, view: &View) -> Result<()> {
        let folder = view.folder.ok_or_else(|| never!("the collection of a folder names it"))?;
        let last = self.visible_change_number();
        let snapshot = self.store().snapshot();
        let environment = environment(self);
        let is_new = view.index.reached() == 0;
        if is_new {
            clear_leftovers(self.store(), view.index.id)?;
            view.index.usage.note_built();
        }
        // Whatever is in a folder entered it by a change, so going through all of these need not look at the
        // documents' feed: it sees every document as the snapshot has it.
        let whole = is_new || self.is_out_of_date(view);
        let mut since = if whole { 0 } else { view.index.reached() };
        let mut evaluator = Evaluator::new(self, vec![view], &environment);
        Following::run(self, vec![view], last, |following| {
            loop {
                let step = self.step(&snapshot, folder, since, last, whole)?;
                let mut changed = Vec::with_capacity(step.ids.len());
                for id in step.ids {
                    let entries = vec![self.entries_in_folder(&snapshot, &mut evaluator, folder, &id)?];
                    // Those that were there before may have come into the folder only now.
                    changed.push(Changed { id, number: u64::MAX, entries });
                }
                together::write(self, &[(view, since)], changed, step.reached)?;
                since = step.reached;
                if step.is_last {
                    return Ok(());
                }
                following.reached(since)?;
            }
        })?;
        view.index.evaluated_s.store(environment.now.as_second(), Ordering::Relaxed);
        Ok(())
    }

    fn step(
        &self,
        snapshot: &Snapshot,
        folder: u32,
        since: u64,
        last: u64,
        whole: bool,
    ) -> Result<FolderStep> {
        let placed: Vec<(u64, String)> = self
            .member_changes_at(snapshot, folder, since, CHANGES_AT_ONCE)?
            .into_iter()
            .map(|change| (change.change_number, change.id))
            .collect();
        let edited = if whole { Vec::new() } else { self.edited(snapshot, since)? };
        // Where one of the lists was cut, the other counts only as far.
        let ends = [&placed, &edited].into_iter().filter(|list| list.len() >= CHANGES_AT_ONCE);
        let end = ends.filter_map(|list| list.last()).map(|(number, _)| *number).min();
        let highest =
            [&placed, &edited].into_iter().filter_map(|list| list.last()).map(|(number, _)| *number);
        let reached = end.or_else(|| highest.max()).unwrap_or(last);
        let ids = placed.into_iter().chain(edited).filter(|(number, _)| *number <= reached);
        Ok(FolderStep {
            ids: ids.map(|(_, id)| id).collect(),
            reached: if end.is_some() { reached } else { reached.max(last) },
            is_last: end.is_none(),
        })
    }

    /// The next documents that changed after `since`.
    fn edited(&self, snapshot: &Snapshot, since: u64) -> Result<Vec<(u64, String)>> {
        let from = keys::change(self.number(), since.saturating_add(1));
        let (_, to) = keys::change_range(self.number());
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Forward);
        let mut edited = Vec::new();
        while edited.len() < CHANGES_AT_ONCE
            && let Some((key, stored)) = cursor.next()?
        {
            let change = keys::change_number_of(key).zip(ChangeRecord::decode(stored));
            let (number, change) = change.ok_or_else(|| DatabaseError::damaged("change", self.name()))?;
            edited.push((number, change.id));
        }
        Ok(edited)
    }

    fn entries_in_folder(
        &self,
        snapshot: &Snapshot,
        evaluator: &mut Evaluator<'_>,
        folder: u32,
        id: &str,
    ) -> Result<Vec<Entry>> {
        if self.uid_at(snapshot, folder, id)?.is_none() {
            return Ok(Vec::new());
        }
        // A document that is gone has left its folders in the same batch.
        let stored = snapshot.get(Family::Scan, &keys::winner(self.number(), id))?;
        let stored = stored.ok_or_else(|| DatabaseError::damaged("document", id))?;
        // What cannot be read is in no collection.
        let Some(leaf) = self.pass_over(id, Leaf::decode(id, &stored))? else { return Ok(Vec::new()) };
        let entries = evaluator.entries(id, &leaf)?.pop();
        entries.ok_or_else(|| never!("a folder is evaluated as one view", "{id}").into())
    }
}

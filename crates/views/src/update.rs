//! Bringing indexes up to date from the change feed.
//!
//! The views of a design document are updated together, so that a document is read once for all of
//! them. A new index of a large database is built in bulk where the memory suffices.

mod builder;
mod folder;
mod following;
mod hierarchy;
mod together;

use std::sync::atomic::Ordering;
use std::time::Instant;

use scrinium_assertion::always;
use scrinium_database::head::ChangeRecord;
use scrinium_database::leaf::Leaf;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_formula::Environment;
use scrinium_store::{Direction, Family, KeyRange, Slice, Snapshot};

use crate::counts::Waiting;
use crate::definition::{Definition, Source};
pub(crate) use crate::environment::environment;
use crate::evaluate::{Evaluated, Evaluator};
use crate::group::{Group, View};
use crate::open::OpenDatabase;
use crate::registry::{assign_home, clear_leftovers, note_leftovers, remove_former_lists, remove_lists};
use crate::waiting::{Patience, ViewUpdate, Work};
use following::Following;
use together::Changed;

pub use builder::remove_left_builds;
pub(super) use builder::unfinished_build;

/// Changes taken into an index by one batch.
const CHANGES_AT_ONCE: usize = 500;
/// A thread that serves requests follows this many changes at most.
const SHORT_CHANGES: u64 = 200;
/// A batch takes no more when the documents' records have this many bytes together.
const BYTES_AT_ONCE: usize = 4 << 20;

/// A new index of a database with more changes than this is built in bulk.
pub(super) const BUILD_FROM_CHANGES: u64 = 2000;

/// At most this many threads work on a build.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// When an update began: to measure how long it takes, and by the clock that ages of views go by.
#[derive(Clone, Copy)]
struct UpdateStart {
    measured: Instant,
    moment: Instant,
}

impl OpenDatabase {
    /// Brings the views of a design document up to the last visible change for a reader of this one of them, whatever its
    /// policy. Those that are not built come last and by themselves, so that nobody waits for them who reads another.
    pub(crate) fn update_views_for(
        &self,
        group: &Group,
        read: &View,
        patience: Patience,
    ) -> Result<Option<ViewUpdate>> {
        self.update_for_reader(group, patience, |view| {
            view.index.id == read.index.id || group.follows_reads(view)
        })
    }

    /// As [`update_views_for`](Self::update_views_for), without others that are not built.
    pub(super) fn update_built_views_for(
        &self,
        group: &Group,
        read: &View,
        patience: Patience,
    ) -> Result<Option<ViewUpdate>> {
        let is_other = |view: &View| view.is_built() && group.follows_reads(view);
        self.update_for_reader(group, patience, |view| view.index.id == read.index.id || is_other(view))
    }

    /// Brings views up to date for a reader: on the reader's thread if that waits here; else what is short is done at once
    /// where nobody else is at it, and of the rest the update to wait for is given.
    fn update_for_reader(
        &self,
        group: &Group,
        patience: Patience,
        is_chosen: impl Fn(&View) -> bool,
    ) -> Result<Option<ViewUpdate>> {
        let Patience::Elsewhere(asked) = patience else {
            return self.update_chosen(group, Waiting::Reader, is_chosen).map(|()| None);
        };
        let (begun, wanted) = (self.begin_update(), asked.unwrap_or_else(|| self.visible_change_number()));
        let chosen: Vec<&View> = group.kept().filter(|view| is_chosen(view)).collect();
        // A caller that has waited is not sent away again because time passes.
        let is_behind = |view: &View| match asked {
            Some(wanted) => view.index.reached() < wanted,
            None => self.is_behind(view, wanted),
        };
        let behind: Vec<&View> = chosen.iter().copied().filter(|view| is_behind(view)).collect();
        if behind.is_empty() {
            if asked.is_none() {
                chosen.iter().for_each(|view| view.index.note_current(begun.moment));
            }
            return Ok(None);
        }
        let is_short = behind.iter().all(|view| self.is_short_work(view, wanted));
        if is_short && self.try_update_together(behind.clone(), wanted)? {
            return Ok(None);
        }
        self.update_elsewhere(Work::Views(behind.into_iter().cloned().collect()), wanted).map(Some)
    }

    /// Whether a view has so little to follow that a thread that serves requests may do it.
    fn is_short_work(&self, view: &View, wanted: u64) -> bool {
        let Definition { source, responses, .. } = view.definition.as_ref();
        // A function may take its whole time for each document, and a response move all that is beneath it.
        let is_bounded = !matches!(source, Source::Script(_)) && responses.is_none();
        let is_near = wanted.saturating_sub(view.index.reached()) <= SHORT_CHANGES;
        is_bounded && is_near && view.is_built() && !self.is_out_of_date(view)
    }

    /// Brings views up to date unless somebody else is at one of them; false then.
    fn try_update_together(&self, mut views: Vec<&View>, wanted: u64) -> Result<bool> {
        let begun = self.begin_update();
        put_in_order(&mut views);
        let mut updating = Vec::with_capacity(views.len());
        for view in &views {
            let Some(held) = view.index.updater.try_lock() else { return Ok(false) };
            updating.push(held);
        }
        self.update_held(views, Waiting::Reader, wanted, begun).map(|()| true)
    }

    /// Brings views up to date that readers wait for elsewhere.
    pub(super) fn update_views_of(&self, views: &[View]) -> Result<()> {
        let (built, new): (Vec<&View>, Vec<&View>) = views.iter().partition(|view| view.is_built());
        self.update_together(built, Waiting::Reader)?;
        self.update_together(new, Waiting::Reader)
    }

    /// Brings those views up to date that `is_chosen` says, in the order of [`update_views_for`](Self::update_views_for).
    pub(super) fn update_chosen(
        &self,
        group: &Group,
        waiting: Waiting,
        is_chosen: impl Fn(&View) -> bool,
    ) -> Result<()> {
        let chosen = group.kept().filter(|view| is_chosen(view));
        let (built, new): (Vec<&View>, Vec<&View>) = chosen.partition(|view| view.is_built());
        self.update_together(built, waiting)?;
        self.update_together(new, waiting)
    }

    /// Brings one view up to date that nobody waits for, whatever its policy.
    pub(super) fn update_chosen_view(&self, view: &View) -> Result<()> {
        self.update_together(vec![view], Waiting::Nobody)
    }

    fn update_together(&self, mut views: Vec<&View>, waiting: Waiting) -> Result<()> {
        let (begun, wanted) = (self.begin_update(), self.visible_change_number());
        if !views.iter().any(|view| self.is_behind(view, wanted)) {
            views.iter().for_each(|view| view.index.note_current(begun.moment));
            return Ok(());
        }
        put_in_order(&mut views);
        let updating: Vec<_> = views.iter().map(|view| view.index.updater.lock()).collect();
        let result = self.update_held(views, waiting, wanted, begun);
        drop(updating);
        result
    }

    fn begin_update(&self) -> UpdateStart {
        UpdateStart { measured: Instant::now(), moment: self.store().clock().instant() }
    }

    /// Brings views up to date whose updaters are held.
    fn update_held(
        &self,
        mut views: Vec<&View>,
        waiting: Waiting,
        wanted: u64,
        begun: UpdateStart,
    ) -> Result<()> {
        let all = views.clone();
        // A build is counted elsewhere.
        let were_built = views.iter().all(|view| view.index.reached() > 0);
        views.retain(|view| self.is_behind(view, wanted));
        views.iter().for_each(|view| view.index.updating.store(true, Ordering::Relaxed));
        views.iter().for_each(|view| view.index.failures.begin_update());
        let reached = views.iter().map(|view| view.index.reached()).filter(|reached| *reached > 0);
        let behind = reached.map(|reached| wanted.saturating_sub(reached)).max().unwrap_or(0);
        // A folder's collection is alone in its group.
        let result = match views.as_slice() {
            [view] if view.folder.is_some() => self.follow_folder(view),
            views => self.follow(views),
        };
        views.iter().for_each(|view| view.index.updating.store(false, Ordering::Relaxed));
        self.end_failures(&views);
        if result.is_ok() {
            all.iter().for_each(|view| view.index.note_current(begun.moment));
            if were_built {
                self.server.view_counts.updated(waiting, behind, begun.measured.elapsed());
            }
        }
        result
    }

    /// Builds views again from all documents, whatever their indexes hold. Readers have the old entries meanwhile.
    pub(super) fn rebuild_views(&self, mut views: Vec<&View>) -> Result<()> {
        views.sort_by_key(|view| view.index.id);
        views.dedup_by_key(|view| view.index.id);
        let updating: Vec<_> = views.iter().map(|view| view.index.updater.lock()).collect();
        let (last, snapshot) = (self.visible_change_number(), self.store().snapshot());
        for view in &views {
            // From here to the end of the build, a crash leaves indexes that start over.
            note_leftovers(self.store(), view.index.id)?;
            view.index.usage.note_built();
            view.index.failures.begin_build();
        }
        let (trees, views): (Vec<&View>, Vec<&View>) = split(&views);
        if !views.is_empty() {
            assign_home(self, &views)?;
            builder::build(self, &snapshot, &views, &environment(self), last)?;
            remove_former_lists(self.store(), self.number())?;
        }
        for view in &trees {
            remove_lists(self.store(), view.index.id)?;
            self.build_hierarchy(view, &snapshot, &environment(self), last)?;
        }
        self.end_failures(&views);
        drop(updating);
        Ok(())
    }

    /// Keeps what is known of documents that functions failed on. It is derived as the indexes are, which hold without it.
    fn end_failures(&self, views: &[&View]) {
        for view in views {
            if let Err(error) = view.index.failures.end(self, &view.index.identity) {
                tracing::warn!(view = view.definition.name, %error, "a failure in a view could not be recorded");
            }
        }
    }

    /// Whether there is something to do for an index to hold what it should at change `wanted`.
    fn is_behind(&self, view: &View, wanted: u64) -> bool {
        view.index.reached() < wanted || self.is_out_of_date(view)
    }

    /// Whether entries may hold no more because time has passed.
    fn is_out_of_date(&self, view: &View) -> bool {
        let now_s = || self.store().clock().timestamp().as_second();
        // A time to come is wrong too: the clock was set back since.
        let age_s =
            || now_s().saturating_sub(view.index.evaluated_s.load(Ordering::Relaxed)).saturating_abs();
        view.definition.is_time_variant && age_s() >= self.context.options().time_variant_seconds
    }

    fn follow(&self, views: &[&View]) -> Result<()> {
        let last = self.visible_change_number();
        let snapshot = self.store().snapshot();
        let environment = environment(self);
        for view in views.iter().filter(|view| view.index.reached() == 0) {
            clear_leftovers(self.store(), view.index.id)?;
            view.index.usage.note_built();
            view.index.failures.begin_build();
        }
        let (trees, views) = split(views);
        self.follow_hierarchies(&trees, &snapshot, &environment, last)?;
        let is_new = |view: &&View| view.index.reached() == 0;
        let new: Vec<&View> = views.iter().copied().filter(is_new).collect();
        if !new.is_empty() {
            assign_home(self, &new)?;
        }
        if !new.is_empty() && last > BUILD_FROM_CHANGES {
            builder::build(self, &snapshot, &new, &environment, last)?;
        }
        // What was built just now holds; of the others, those that depend on the time are gone through whole.
        let since = |view: &View| {
            let is_new = new.iter().any(|new| new.index.id == view.index.id);
            if self.is_out_of_date(view) && !is_new { 0 } else { view.index.reached() }
        };
        let rest: Vec<(&View, u64)> =
            views.iter().map(|view| (*view, since(view))).filter(|(_, since)| *since < last).collect();
        if !rest.is_empty() {
            let behind = rest.iter().map(|(view, _)| *view).collect();
            let is_refreshed = rest.iter().any(|(view, since)| *since == 0 && !is_new(view));
            let begun = Instant::now();
            Following::run(self, behind, last, |following| {
                self.follow_changes(&snapshot, &rest, &environment, last, following)
            })?;
            if is_refreshed {
                self.server.view_counts.refreshed(begun.elapsed());
            }
        }
        let now_s = environment.now.as_second();
        views.iter().for_each(|view| view.index.evaluated_s.store(now_s, Ordering::Relaxed));
        Ok(())
    }

    /// Views with responses.
    fn follow_hierarchies(
        &self,
        views: &[&View],
        snapshot: &Snapshot,
        environment: &Environment,
        last: u64,
    ) -> Result<()> {
        for view in views {
            let (whole, is_new, begun) =
                (self.is_out_of_date(view), view.index.reached() == 0, Instant::now());
            self.follow_hierarchy(view, snapshot, environment, last, whole)?;
            if whole && !is_new {
                self.server.view_counts.refreshed(begun.elapsed());
            }
            view.index.evaluated_s.store(environment.now.as_second(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn follow_changes(
        &self,
        snapshot: &Snapshot,
        views: &[(&View, u64)],
        environment: &Environment,
        last: u64,
        following: &mut Following<'_>,
    ) -> Result<()> {
        let since = views.iter().map(|(_, since)| *since).min().unwrap_or(last);
        let from = keys::change(self.number(), since + 1);
        let (_, to) = keys::change_range(self.number());
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Churn, range, Direction::Forward);
        let mut evaluator = Evaluator::new(self, views.iter().map(|(view, _)| *view).collect(), environment);
        let with_designs = evaluator.includes_designs();
        loop {
            let (mut read, mut bytes, mut at_end) = (Vec::new(), 0, false);
            while read.len() < CHANGES_AT_ONCE && bytes < BYTES_AT_ONCE && !at_end {
                let Some((key, stored)) = cursor.next()? else {
                    at_end = true;
                    continue;
                };
                let damaged = || DatabaseError::damaged("change", self.name());
                let number = keys::change_number_of(key).ok_or_else(damaged)?;
                let change = ChangeRecord::decode(stored).ok_or_else(damaged)?;
                let record = self.record_at(snapshot, &change, with_designs)?;
                bytes += record.as_ref().map_or(0, |record| record.len());
                read.push((number, change.id, record));
            }
            // The snapshot holds all changes up to `last`, so that an index has reached it at the end even
            // if the documents changed last were changed again later.
            let reached = if at_end { last } else { read.last().map_or(last, |(number, ..)| *number) };
            together::write(self, views, evaluated(&mut evaluator, read)?, reached)?;
            if at_end {
                return Ok(());
            }
            following.reached(reached)?;
        }
    }

    /// The record of a changed document; `None` for one that no view has.
    pub(crate) fn record_at(
        &self,
        snapshot: &Snapshot,
        change: &ChangeRecord,
        with_designs: bool,
    ) -> Result<Option<Slice>> {
        let id = change.id.as_str();
        if change.deleted || !with_designs && scrinium_document::is_design(id) {
            return Ok(None);
        }
        let stored = snapshot.get(Family::Scan, &keys::winner(self.number(), id))?;
        self.pass_over(id, stored.ok_or_else(|| DatabaseError::damaged("document", id)))
    }
}

/// Evaluates changed documents, given with the numbers of their changes and their records.
fn evaluated(evaluator: &mut Evaluator<'_>, read: Vec<(u64, String, Option<Slice>)>) -> Result<Vec<Changed>> {
    let mut leaves = Vec::with_capacity(read.len());
    for (_, id, record) in &read {
        leaves.push(match record {
            Some(record) => evaluator.leaf(id, record)?,
            None => None,
        });
    }
    let ids = read.iter().map(|(_, id, _)| id.as_str());
    let there: Vec<(&str, &Leaf<'_>)> =
        ids.zip(&leaves).filter_map(|(id, leaf)| Some((id, leaf.as_ref()?))).collect();
    let all = evaluator.entries_of_many(&there)?;
    always!(all.len() == there.len(), "each document that is evaluated has its entries")?;
    let mut all = all.into_iter();
    // A document that is gone has none.
    let entries: Vec<Evaluated> =
        leaves.iter().map(|leaf| leaf.as_ref().and_then(|_| all.next()).unwrap_or_default()).collect();
    drop(leaves);
    let changed = read.into_iter().zip(entries);
    Ok(changed.map(|((number, id, _), entries)| Changed { id, number, entries }).collect())
}

/// In the order of the indexes' numbers, so that two design documents that share some do not wait for each other.
fn put_in_order(views: &mut Vec<&View>) {
    views.sort_by_key(|view| view.index.id);
    views.dedup_by_key(|view| view.index.id);
}

/// Views with responses, and the others.
fn split<'a>(views: &[&'a View]) -> (Vec<&'a View>, Vec<&'a View>) {
    views.iter().copied().partition(|view| view.definition.responses.is_some())
}

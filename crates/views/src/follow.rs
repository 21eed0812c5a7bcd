//! What is brought up to date in the background: what a reader wants so, and views whose policy says so.
//!
//! A database announces itself when there may be something to do; the update task takes those that did, and looks at
//! no other. Whether a change concerns a view is known by generation of design documents, so that a database
//! without such views announces itself once.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use scrinium_database::{Properties, Result, RowQuery};
use scrinium_document::json::stored_value;

use crate::counts::Waiting;
use crate::group::{DESIGNS_AT_ONCE, View};
use crate::open::OpenDatabase;
use crate::policy::{Policies, UpdatePolicy};

/// Databases that may wait to be looked at. One that finds no place announces itself with its next change.
const ANNOUNCED_MAX: usize = 100_000;

/// A view that is to be brought up to date every N seconds is, as long as somebody has read it within this many times N,
/// or within ten minutes.
const READ_WITHIN: u32 = 10;
const READ_WITHIN_MIN: Duration = Duration::from_mins(10);

/// Names of databases in which something is to be brought up to date.
#[derive(Default)]
pub struct UpdateQueue(Mutex<HashSet<String>>);

/// Tells the update task of a database where there may be something to do.
pub(crate) struct Notices {
    name: OnceLock<String>,
    /// The update task will look at the database.
    announced: AtomicBool,
    /// One more than the last generation of design documents of which it is known that no view follows by itself.
    pub(crate) unfollowed: AtomicU64,
    queue: Arc<UpdateQueue>,
}

impl Notices {
    pub(crate) fn new(queue: Arc<UpdateQueue>) -> Self {
        let (announced, unfollowed) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { name: OnceLock::new(), announced, unfollowed, queue }
    }

    /// Whose they are; nothing is told before.
    pub(crate) fn name(&self, database: &str) {
        let _: &String = self.name.get_or_init(|| database.to_owned());
    }

    /// Documents have changed, and a reader can see it, while design documents are those of this generation.
    pub(crate) fn note_change(&self, designs: u64) {
        if self.unfollowed.load(Ordering::Acquire) != designs + 1 {
            self.announce();
        }
    }

    /// What follows by itself may be other than it was, although no design document has changed.
    fn look_again(&self) {
        self.unfollowed.store(0, Ordering::Release);
        self.announce();
    }

    pub(crate) fn announce(&self) {
        let Some(name) = self.name.get() else { return };
        if self.announced.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut announced = self.queue.0.lock();
        if announced.len() < ANNOUNCED_MAX {
            announced.insert(name.clone());
        } else {
            self.announced.store(false, Ordering::Release);
        }
    }
}

impl OpenDatabase {
    /// Sets what is set for the database as a whole, and has its full text followed from now on, or no more.
    ///
    /// # Errors
    /// As [`Database::set_properties`](scrinium_database::Database::set_properties).
    pub fn change_properties(&self, properties: Properties) -> Result<()> {
        self.set_properties(properties)?;
        self.views.notices.look_again();
        Ok(())
    }

    /// A reader wants the views of this design document brought up to date soon.
    pub(crate) fn want_views(&self, design: &str) {
        self.views.wanted.lock().insert(design.to_owned());
        self.announce();
    }

    pub(super) fn announce(&self) {
        self.views.notices.announce();
    }

    /// Brings the views up to date that follow the documents by themselves: the `automatic` ones, and those of
    /// `every_seconds` that are due and that somebody reads. Returns when there is to be looked again although no document
    /// changes.
    ///
    /// # Errors
    /// What the store reports, and [`scrinium_database::DatabaseError::Unavailable`] if a build was told to stop.
    pub fn update_followed_views(&self) -> Result<Option<Duration>> {
        self.check_there()?;
        self.update_followed_text()?;
        let mut again: Option<Duration> = None;
        for design in self.followed_designs()?.iter() {
            let Some(group) = self.sound_group(design)? else { continue };
            let mut chosen = HashSet::new();
            for view in group.kept() {
                match self.due_in(view, group.policies.get(&view.definition.name)) {
                    Some(Duration::ZERO) => drop(chosen.insert(view.index.id)),
                    Some(wait) => again = Some(again.map_or(wait, |again| again.min(wait))),
                    None => {}
                }
            }
            self.update_chosen(&group, Waiting::Nobody, |view| chosen.contains(&view.index.id))?;
            self.settle(design, &group)?;
        }
        Ok(again)
    }

    /// When the update task is to bring a view up to date; `None`: there is no need.
    fn due_in(&self, view: &View, policy: UpdatePolicy) -> Option<Duration> {
        let is_behind = view.index.reached() < self.visible_change_number();
        match policy {
            _ if !is_behind || view.index.usage.is_discarded() => None,
            UpdatePolicy::Automatic => Some(Duration::ZERO),
            UpdatePolicy::Every(age) => {
                let recently = age.saturating_mul(READ_WITHIN).max(READ_WITHIN_MIN);
                let is_read = view.index.usage.was_read_within(recently);
                is_read.then(|| age.saturating_sub(view.index.age().unwrap_or(age)))
            }
            UpdatePolicy::OnRead | UpdatePolicy::Manual => None,
        }
    }

    /// Design documents with views that the update task follows.
    fn followed_designs(&self) -> Result<Arc<[String]>> {
        let generation = self.design_generation();
        if let Some((of, designs)) = &*self.views.followed.lock()
            && *of == generation
        {
            return Ok(Arc::clone(designs));
        }
        let query = RowQuery { include_documents: true, ..RowQuery::default() };
        let mut rows = self.design_documents(query, &crate::group::access_for_designs())?;
        let mut designs = Vec::new();
        loop {
            let some = rows.next_rows(DESIGNS_AT_ONCE)?;
            if some.is_empty() {
                break;
            }
            for (id, document) in some.into_iter().filter_map(|row| row.id.zip(row.document)) {
                if stored_value(&document).is_some_and(|design| Policies::of(&design).are_followed()) {
                    designs.push(id.trim_start_matches(scrinium_document::DESIGN_PREFIX).to_owned());
                }
            }
        }
        let designs: Arc<[String]> = designs.into();
        *self.views.followed.lock() = Some((generation, Arc::clone(&designs)));
        if designs.is_empty() && !self.follows_text() {
            self.views.notices.unfollowed.store(generation + 1, Ordering::Release);
        }
        Ok(designs)
    }
}

impl OpenDatabase {
    /// What has announced itself was taken: the next change announces it again.
    pub fn forget_announcement(&self) {
        self.views.notices.announced.store(false, Ordering::Release);
    }
}

impl UpdateQueue {
    /// Whether [`take`](Self::take) gives none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// The names of databases in which something is to be brought up to date, at most `max`; they are forgotten.
    #[must_use]
    pub fn take(&self, max: usize) -> Vec<String> {
        let mut announced = self.0.lock();
        let names: Vec<String> = announced.iter().take(max).cloned().collect();
        for name in &names {
            announced.remove(name);
        }
        names
    }
}

//! What `_info` tells of the indexes of a design document besides how far they are: how long they will take, and how
//! large they are.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use scrinium_database::{Access, Result};
use scrinium_statistics::Task;
use serde_json::{Value, json};

use crate::collection::Collection;
use crate::group::{Group, View};
use crate::lists;
use crate::open::OpenDatabase;
use crate::registry::ViewIndex;

/// Entries looked at to tell how large one is.
const SAMPLE: u64 = 1000;
/// Places of the index that they come from.
const SAMPLE_PLACES: u64 = 10;

/// The number of the task that works on an index; none has this number.
const NO_TASK: u64 = 0;

/// Which task works on an index.
#[derive(Default)]
pub(super) struct Working(AtomicU64);

/// While it lives, a task is known to work on some indexes.
pub(super) struct Known<'a>(Vec<&'a ViewIndex>);

impl<'a> Known<'a> {
    pub(super) fn new(views: &[&'a View], task: &Task) -> Self {
        let indexes: Vec<&ViewIndex> = views.iter().map(|view| view.index.as_ref()).collect();
        indexes.iter().for_each(|index| index.working.0.store(task.id(), Ordering::Relaxed));
        Self(indexes)
    }
}

impl Drop for Known<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|index| index.working.0.store(NO_TASK, Ordering::Relaxed));
    }
}

/// How far the work on a design document's indexes is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Percent; `None`: nobody works on what is to be done, or not for long enough to tell.
    pub(super) percent: Option<u64>,
    /// Seconds to the end; `None`: unknown.
    pub(super) eta_s: Option<u64>,
}

/// How far the tasks are that work on a group's indexes, going by the one that takes longest.
pub(super) fn progress(database: &OpenDatabase, group: &Group, is_behind: bool) -> Progress {
    let numbers: Vec<u64> = group.kept().map(|view| view.index.working.0.load(Ordering::Relaxed)).collect();
    let running = database.context.tasks().map(|tasks| tasks.running()).unwrap_or_default();
    let tasks: Vec<_> = running.into_iter().filter(|task| numbers.contains(&task.id)).collect();
    if tasks.is_empty() {
        let known = |value: u64| (!is_behind).then_some(value);
        return Progress { percent: known(100), eta_s: known(0) };
    }
    // All documents or changes were read, but it runs: the indexes are being written.
    let left = tasks.iter().map(|task| task.remaining.filter(|left| !left.is_zero()));
    let left = left.collect::<Option<Vec<_>>>().and_then(|left| left.into_iter().max());
    Progress {
        percent: tasks.iter().map(|task| task.percent().map(|percent| percent.min(99))).min().flatten(),
        eta_s: left.map(|left| left.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)),
    }
}

/// `sizes` of `_info`: bytes on disk, those of entries that are there, and those of the entries as they are when they
/// are not compressed. The lists of the documents' entries count as bytes on disk.
pub(super) fn sizes(database: &OpenDatabase, group: &Group) -> Result<Value> {
    let (mut file, mut active, mut external) = (0, 0, 0);
    let homes: BTreeSet<u64> = group.kept().map(|view| view.index.home_of(&view.definition)).collect();
    for home in homes {
        let bytes = lists::size_bytes(database.store(), home);
        file += bytes;
        active += bytes;
    }
    for view in group.kept() {
        let bytes = view.index.size_bytes(database.store());
        let (entries, debris) = (view.index.index.len(), view.index.index.debris());
        file += bytes;
        active += share(bytes, entries, entries + debris);
        external += external_bytes(view)?;
    }
    Ok(json!({"file": file, "active": active, "external": external}))
}

/// `part / whole` of some bytes; nothing of nothing.
fn share(bytes: u64, part: u64, whole: u64) -> u64 {
    let bytes = u128::from(bytes) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Keys, values and totals of all entries, going by a sample of a large view.
fn external_bytes(view: &View) -> Result<u64> {
    let collection = Collection::open(view, &Access::of_the_server("weighing indexes"))?;
    let entries = collection.len()?;
    let places = if entries > SAMPLE { SAMPLE_PLACES } else { 1 };
    let (mut bytes, mut seen) = (0, 0);
    for place in 0..places {
        let skip = share(entries, place, places);
        let mut cursor = collection.cursor(&[], &[u8::MAX], scrinium_store::Direction::Forward, skip)?;
        for _ in 0..SAMPLE / places {
            let Some(entry) = cursor.next()? else { break };
            bytes += (entry.key.len() + entry.value.len() + entry.sums().count() * 8) as u64;
            seen += 1;
        }
    }
    // Of all, also those that are there once more for each name that may read them.
    Ok(share(bytes, view.index.index.len(), seen))
}

//! Building new indexes from all documents of a database, in bulk.
//!
//! The documents are read once for all the views, in the order of their ids, and evaluated on all cores. The entries
//! are sorted in memory; where there are more than it may hold, sorted runs are spilled to files and merged. Then
//! each index is written as sorted files, and the documents' lists as well.

mod claim;
mod run;
mod segment;
mod shown;
#[cfg(test)]
mod tests;
mod workplace;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use scrinium_assertion::never;
use scrinium_database::{DatabaseError, Result};
use scrinium_formula::Environment;
use scrinium_index::Rebuild;
use scrinium_statistics::Task;
use scrinium_store::{Family, Purpose, Snapshot, SortedFiles, Store};

use crate::entries::Entry;
use crate::error::OrDatabaseError as _;
use crate::group::View;
use crate::info::Known;
use crate::lists::list_key;
use crate::open::OpenDatabase;
use crate::registry::{forget_leftovers, note_leftovers};
use crate::update::cores;
use crate::yielding;
use run::Run;
use segment::{Evaluation, Segment};
use shown::Shown;
use workplace::Workplace;

pub use workplace::remove_left_builds;
pub(crate) use workplace::unfinished_build;

/// A build holds at most so much in memory, however large the budget is.
const LIMIT_BYTES_MAX: u64 = 1 << 30;

/// Builds the indexes of `views`, which are empty, as of `snapshot`, whose last change is `last`. They may
/// stand at an earlier change afterwards, if an earlier build was resumed.
pub(super) fn build(
    database: &OpenDatabase,
    snapshot: &Snapshot,
    views: &[&View],
    environment: &Environment,
    last: u64,
) -> Result<()> {
    let documents = database.info().ok().map(|info| info.document_count + info.deleted_count);
    // They are read, and then as much is written.
    let task = task(database, views, documents.map(|documents| 2 * documents));
    let _known = task.as_ref().map(|task| Known::new(views, task));
    let memory = &database.store().admin().reserve(Purpose::ViewBuilds, 0);
    let limit_bytes = limit_bytes(database.store());
    let (task_of_it, documents) = (task.as_ref(), documents.unwrap_or_default());
    let evaluation = Evaluation {
        database,
        views,
        snapshot,
        environment,
        task: task_of_it,
        documents,
        limit_bytes,
        memory,
    };
    let begun = Instant::now();
    let mut workplace = Workplace::open(database, views, last, limit_bytes);
    let mut built = build_once(&mut workplace, &evaluation);
    if let Err(error) = &built
        && workplace.is_resumed()
        && !evaluation.is_cancelled()
    {
        tracing::warn!(%error, "cannot resume the interrupted view build; starting over");
        workplace.remove();
        workplace = Workplace::open(database, views, last, limit_bytes);
        built = build_once(&mut workplace, &evaluation);
    }
    database.server.view_counts.built(begun.elapsed(), workplace.spilled_bytes());
    // What a failure leaves may be its cause; only a crash is gone on from.
    workplace.remove();
    if built.is_err() {
        views.iter().for_each(|view| empty(view));
    }
    if let Some(task) = task {
        match &built {
            Ok(()) => task.finish(),
            Err(_) if task.is_cancelled() => drop(task),
            Err(error) => task.fail(error.to_string()),
        }
    }
    built
}

/// A quarter of the budget for all builds together, and some of it even where others have all of that.
fn limit_bytes(store: &Store) -> usize {
    let budget = store.admin().budget();
    let left = (budget / 4).saturating_sub(store.admin().reserved(Purpose::ViewBuilds)).max(budget / 16);
    usize::try_from(left.min(LIMIT_BYTES_MAX)).unwrap_or(usize::MAX)
}

/// Does the work on a thread that yields the processor, with the threads that it begins, to those who answer somebody.
fn in_the_background<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            scrinium_store::come_after_others();
            yielding::begin();
            work()
        });
        thread.join().unwrap_or_else(|_| Err(panicked("a build of views")))
    })
}

fn panicked(what: &str) -> DatabaseError {
    DatabaseError::Internal { reason: format!("{what} panicked") }
}

/// What was written of an index is no whole without the lists, so nobody may read it or go on from there.
pub(super) fn empty(view: &View) {
    let nothing = std::iter::empty::<Result<(Vec<u8>, Vec<u8>, Vec<f64>)>>();
    if let Err(error) = view.index.index.rebuild(nothing, 0) {
        tracing::warn!(view = view.definition.name, %error, "an index that was not completed is still in the store");
    }
}

/// Shows work on views, with the units it has to do.
pub(super) fn task(database: &OpenDatabase, views: &[&View], total: Option<u64>) -> Option<Task> {
    let task = database.context.tasks()?.start("indexer", Some(database.name()), total);
    let names: Vec<&str> = views.iter().map(|view| view.definition.name.as_str()).collect();
    task.detail("views", names.join(", "));
    Some(task)
}

/// Only what nobody can wait for is done in the background: a thread that comes after all others must not be the one that
/// writes for them.
fn build_once(workplace: &mut Workplace, evaluation: &Evaluation<'_>) -> Result<()> {
    let made = in_the_background(|| make(workplace, evaluation))?;
    let store = evaluation.database.store();
    for view in evaluation.views {
        note_leftovers(store, view.index.id)?;
    }
    Rebuild::all(store, made.rebuilds, made.lists, workplace.reached()).or_database_error()?;
    for view in evaluation.views {
        forget_leftovers(store, view.index.id)?;
    }
    Ok(())
}

fn make<'a>(workplace: &mut Workplace, evaluation: &Evaluation<'a>) -> Result<Made<'a>> {
    let totals: Vec<usize> = evaluation.views.iter().map(|view| view.definition.totals().count()).collect();
    let rest = loop {
        let segment = evaluation.segment(workplace.after())?;
        if segment.last_id.is_none() {
            break segment;
        }
        workplace.spill(segment, &totals)?;
    };
    if evaluation.views.iter().any(|view| view.definition.keys.is_unique) {
        workplace.make()?;
    }
    write(workplace, evaluation, rest, &totals)
}

/// How much of the entries and lists is in sorted files, which is the second half of the work.
struct Written<'a> {
    evaluation: &'a Evaluation<'a>,
    /// Entries and, about, lists.
    total: u64,
    done: AtomicU64,
}

impl<'a> Written<'a> {
    /// Says how far it is after this many.
    const TOLD_EVERY: u64 = 1024;

    fn new(evaluation: &'a Evaluation<'a>, entries: u64) -> Self {
        let this = Self { evaluation, total: entries + evaluation.documents, done: AtomicU64::new(0) };
        this.tell(0);
        this
    }

    fn tell(&self, done: u64) {
        let documents = self.evaluation.documents;
        let share = u128::from(documents) * u128::from(done.min(self.total)) / u128::from(self.total.max(1));
        if let Some(task) = self.evaluation.task {
            task.progress(documents + u64::try_from(share).unwrap_or(documents));
        }
    }

    fn one_more(&self) -> Result<()> {
        yielding::give_way();
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(Self::TOLD_EVERY) {
            self.tell(done);
            self.evaluation.check_wanted()?;
        }
        Ok(())
    }
}

/// One part of the writing, which does not depend on the others.
enum Job {
    Lists(Vec<Vec<u8>>),
    View(usize, Vec<Run>),
}

/// What the parts of the writing have made; none of it is in the store yet.
#[derive(Default)]
struct Made<'a> {
    rebuilds: Vec<Rebuild<'a>>,
    lists: Vec<SortedFiles>,
}

/// Writes sorted files of the lists and the indexes, several at once.
fn write<'a>(
    workplace: &Workplace,
    evaluation: &Evaluation<'a>,
    rest: Segment,
    totals: &[usize],
) -> Result<Made<'a>> {
    let entries = workplace.entries() + rest.entries();
    let mut jobs: Vec<Job> =
        rest.runs.into_iter().enumerate().map(|(view, runs)| Job::View(view, runs)).collect();
    // The last is taken first, and the lists are the largest part.
    jobs.push(Job::Lists(rest.lists));
    let (jobs, made) = (Mutex::new(jobs), Mutex::new(Made::default()));
    let written = &Written::new(evaluation, entries);
    let work = || {
        yielding::begin();
        loop {
            let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(job) = job else { return Ok(()) };
            let done = carry_out(job, workplace, (evaluation, written), totals, &made);
            if done.is_err() {
                jobs.lock().unwrap_or_else(PoisonError::into_inner).clear();
                return done;
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores()).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(panicked("writing the index of a view")))
        })
    })?;
    Ok(made.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn carry_out<'a>(
    job: Job,
    workplace: &Workplace,
    (evaluation, written): (&Evaluation<'a>, &Written<'_>),
    totals: &[usize],
    made: &Mutex<Made<'a>>,
) -> Result<()> {
    match job {
        Job::Lists(lists) => {
            let lists = sorted_lists(workplace, (evaluation, written), lists)?;
            made.lock().unwrap_or_else(PoisonError::into_inner).lists.push(lists);
        }
        Job::View(number, runs) => {
            let view = evaluation.views.get(number).copied().zip(totals.get(number).copied());
            let (view, totals) =
                view.ok_or_else(|| never!("the entries of a build are those of its views", "view {number}"))?;
            let merged = workplace.merged(number, runs, totals)?;
            let parts = |entry: Result<Entry>| {
                written.one_more()?;
                entry.map(|Entry { key, value, totals }| (key, value, totals))
            };
            let index = &view.index.index;
            let rebuild = if view.definition.keys.is_unique {
                let path = workplace.aside(number);
                index
                    .prepare_rebuild(Shown::new(merged, &path, evaluation.limit_bytes).map(parts))
                    .or_database_error()?
            } else {
                index.prepare_rebuild(merged.map(parts)).or_database_error()?
            };
            made.lock().unwrap_or_else(PoisonError::into_inner).rebuilds.push(rebuild);
        }
    }
    Ok(())
}

fn sorted_lists(
    workplace: &Workplace,
    (evaluation, written): (&Evaluation<'_>, &Written<'_>),
    lists: Vec<Vec<u8>>,
) -> Result<SortedFiles> {
    // The views that are built together have one home, which a build that continues may have again.
    let home = evaluation.views.first().map_or(0, |view| view.index.home());
    let keyed = |(id, list): (Vec<u8>, Vec<u8>)| {
        written.one_more()?;
        let id = std::str::from_utf8(&id).map_err(|_| DatabaseError::damaged("id", "a list of entries"))?;
        Ok((list_key(home, id), list))
    };
    let mut failed = None;
    let lists = workplace.lists(lists).map(|list| list.and_then(keyed));
    let lists = lists.map_while(|list| list.map_err(|error| failed = Some(error)).ok());
    let sorted = evaluation.database.store().derived().sort(Family::DerivedPoint, lists);
    failed.map_or(Ok(()), Err)?;
    Ok(sorted?)
}

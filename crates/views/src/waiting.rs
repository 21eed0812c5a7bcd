//! Updates of views that readers wait for without holding a thread.
//!
//! A reader who finds a view behind gets a [`ViewUpdate`], which is done when the view has reached what was visible when
//! they asked. The work is done by threads of its own, a few for each database, so that neither one slow view nor one
//! database keeps the threads that serve requests, or those that update the views of others. Readers of the same views wait
//! for the same work.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use scrinium_database::{DatabaseError, Result};
use tokio::sync::watch;

use crate::context::ViewsContext;
use crate::group::View;
use crate::open::OpenDatabase;
use crate::text::TextIndex;

/// Threads that update views of one database at once.
const THREADS_OF_DATABASE: usize = 2;

/// Updates that wait for a thread, of all databases.
const QUEUE_MAX: usize = 10_000;

/// Readers that wait for views of one database.
const READERS_OF_DATABASE: usize = 2000;

/// A refused caller may come back after this time.
const RETRY_AFTER_S: u64 = 5;

/// Threads that update views for readers, of all databases.
fn threads_max() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).saturating_mul(4).max(8)
}

/// What a reader gets: what they asked for, or an update to wait for first.
pub enum Reading<T> {
    /// What was asked for.
    Ready(T),
    /// Views must be brought up to date first; the reader asks again afterwards.
    Behind(ViewUpdate),
}

impl<T> Reading<T> {
    /// What was asked for, if nothing was to be waited for.
    pub(crate) fn ready(self) -> Result<T> {
        match self {
            Self::Ready(ready) => Ok(ready),
            // Only readers that wait elsewhere are told to.
            Self::Behind(_) => Err(busy("the view is being updated")),
        }
    }
}

/// How a reader waits for views to be brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// On the reader's own thread.
    Here,
    /// Without a thread. After a wait, the change that the views must have reached is known.
    Elsewhere(Option<u64>),
}

/// An update that is under way, or will be.
pub struct ViewUpdate {
    wanted: u64,
    done: watch::Receiver<Option<Result<()>>>,
    _place: WaitingPlace,
}

impl ViewUpdate {
    /// Waits for it. Gives the change that the views have reached, with which the reader asks again.
    ///
    /// # Errors
    /// Why the views could not be updated.
    pub async fn done(mut self) -> Result<u64> {
        let stopped = || busy("the update was abandoned");
        let done = self.done.wait_for(Option::is_some).await.map_err(|_| stopped())?;
        done.clone().unwrap_or_else(|| Err(stopped())).map(|()| self.wanted)
    }
}

/// A reader's place among those who wait for a database.
struct WaitingPlace(Arc<AtomicUsize>);

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The indexes of a database that are updated together.
#[derive(Clone, PartialEq, Eq)]
struct Subject {
    database: u32,
    indexes: Vec<u64>,
}

/// What is to be brought up to date.
pub(crate) enum Work {
    /// Views, together.
    Views(Vec<View>),
    /// An index of words.
    Text(Arc<TextIndex>),
}

impl Work {
    fn indexes(&self) -> Vec<u64> {
        match self {
            Self::Views(views) => views.iter().map(|view| view.index.id).collect(),
            Self::Text(text) => vec![text.id],
        }
    }
}

/// Work that is to be done, or is being done.
struct Job {
    subject: Subject,
    database: OpenDatabase,
    work: Work,
    done: watch::Sender<Option<Result<()>>>,
}

/// A job that a thread has begun.
struct Running {
    subject: Subject,
    /// The change that it certainly reaches.
    covers: u64,
    done: watch::Receiver<Option<Result<()>>>,
}

#[derive(Default)]
struct UpdatesState {
    queue: VecDeque<Job>,
    running: Vec<Running>,
    threads: usize,
}

/// The updates that readers wait for, of all databases.
#[derive(Default)]
pub(crate) struct Updates {
    state: Mutex<UpdatesState>,
}

impl OpenDatabase {
    /// Brings indexes up to date that are behind change `wanted`.
    ///
    /// # Errors
    /// [`DatabaseError::Busy`] if too many wait already.
    pub(super) fn update_elsewhere(&self, work: Work, wanted: u64) -> Result<ViewUpdate> {
        let place = self.wait_for_views()?;
        let mut indexes = work.indexes();
        indexes.sort_unstable();
        indexes.dedup();
        let subject = Subject { database: self.number(), indexes };
        let updates = &self.server.updates;
        let mut state = updates.state.lock();
        let done = match state.underway(&subject, wanted) {
            Some(done) => done,
            None => {
                if state.queue.len() >= QUEUE_MAX {
                    return Err(busy("too many views are to be updated"));
                }
                let (done, receiver) = watch::channel(None);
                state.queue.push_back(Job { subject, database: self.clone(), work, done });
                begin_thread(&self.server, &mut state)?;
                receiver
            }
        };
        drop(state);
        Ok(ViewUpdate { wanted, done, _place: place })
    }

    /// A place among those who wait for views of this database.
    fn wait_for_views(&self) -> Result<WaitingPlace> {
        let waiting = &self.views.waiting;
        let entered = waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |readers| {
            (readers < READERS_OF_DATABASE).then_some(readers + 1)
        });
        match entered {
            Ok(_) => Ok(WaitingPlace(Arc::clone(waiting))),
            Err(_) => {
                Err(busy(&format!("{READERS_OF_DATABASE} readers wait for views of `{}`", self.name())))
            }
        }
    }

    /// Readers that wait just now for views of this database to be brought up to date.
    #[must_use]
    pub fn waiting_readers(&self) -> usize {
        self.views.waiting.load(Ordering::Relaxed)
    }
}

impl UpdatesState {
    /// The update that a reader can wait for: one that has not begun reaches all there is, one that has what was there then.
    fn underway(&self, subject: &Subject, wanted: u64) -> Option<watch::Receiver<Option<Result<()>>>> {
        let running = self.running.iter().find(|job| job.subject == *subject && job.covers >= wanted);
        let waiting =
            || self.queue.iter().find(|job| job.subject == *subject).map(|job| job.done.subscribe());
        running.map(|job| job.done.clone()).or_else(waiting)
    }

    /// The next job of a database that has a thread to spare.
    fn take(&mut self) -> Option<Job> {
        let mut threads: HashMap<u32, usize> = HashMap::new();
        for job in &self.running {
            *threads.entry(job.subject.database).or_default() += 1;
        }
        let is_free = |job: &Job| {
            threads.get(&job.subject.database).is_none_or(|threads| *threads < THREADS_OF_DATABASE)
                && self.running.iter().all(|running| running.subject != job.subject)
        };
        let place = self.queue.iter().position(is_free)?;
        let job = self.queue.remove(place)?;
        self.running.push(Running {
            subject: job.subject.clone(),
            covers: job.database.visible_change_number(),
            done: job.done.subscribe(),
        });
        Some(job)
    }
}

/// Begins another thread, if there may be more. A thread looks for work until there is none that may be done.
fn begin_thread(server: &Arc<ViewsContext>, state: &mut UpdatesState) -> Result<()> {
    if state.threads >= threads_max() {
        return Ok(());
    }
    let of_thread = Arc::clone(server);
    let begun = std::thread::Builder::new().name("view update".to_owned()).spawn(move || work(&of_thread));
    match begun {
        Ok(_) => state.threads += 1,
        Err(error) if state.threads == 0 => {
            state.queue.clear();
            return Err(busy(&format!("no thread can be started ({error})")));
        }
        // Those that are there come to it.
        Err(_) => {}
    }
    Ok(())
}

fn work(server: &ViewsContext) {
    loop {
        let mut state = server.updates.state.lock();
        let Some(Job { subject, database, work, done }) = state.take() else {
            state.threads -= 1;
            return;
        };
        drop(state);
        let update = || match &work {
            Work::Views(views) => database.update_views_of(views),
            Work::Text(text) => database.update_text(text),
        };
        let result = catch_unwind(AssertUnwindSafe(update)).unwrap_or_else(|_| {
            Err(DatabaseError::Internal { reason: "updating a view panicked".to_owned() })
        });
        server.updates.state.lock().running.retain(|running| running.subject != subject);
        // Nobody may wait any more.
        done.send_replace(Some(result));
    }
}

fn busy(what: &str) -> DatabaseError {
    DatabaseError::Busy { reason: format!("{what}; try again later"), retry_after_s: RETRY_AFTER_S }
}

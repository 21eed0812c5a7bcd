//! Requests carried out, one after the other.

mod carry;
mod orders;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use scrinium_catalog::Databases;
use scrinium_directory::Directory;
use scrinium_statistics::Tasks;
use scrinium_store::IoClass;

use crate::error::RequestError;
use crate::keeper::{LegalHolds, NameKeeper};
use crate::keepers;
use crate::records::Records;
use crate::request::{Request, RequestState};

/// What cannot be done just now is tried again after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// It is looked so often whether a domain has begun to show others less, or more.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Requests that may wait at once.
const WAITING_MAX: usize = 1000;

/// The requests of a server: they are taken, and carried out on one thread.
pub struct Requests {
    directory: Arc<Directory>,
    records: Records,
    tasks: Tasks,
    keepers: Vec<Arc<dyn NameKeeper>>,
    holds: Vec<Arc<dyn LegalHolds>>,
    /// One request is taken at a time, so that two for the same person do not pass each other.
    taking: Mutex<()>,
    is_stopping: AtomicBool,
    /// Whether there is something to do.
    has_work: Mutex<bool>,
    work: Condvar,
}

impl Requests {
    /// Requests about the people and groups of a directory, in all databases of its server. `tasks` shows how far they are.
    #[must_use]
    pub fn new(directory: &Arc<Directory>, tasks: &Tasks) -> Self {
        Self {
            directory: Arc::clone(directory),
            records: Records::new(directory.databases()),
            tasks: tasks.clone(),
            keepers: keepers::all(),
            holds: Vec::new(),
            taking: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            has_work: Mutex::new(true),
            work: Condvar::new(),
        }
    }

    /// The same with somebody else who keeps something by name. All must be there before the first request is carried out.
    #[must_use]
    pub fn with_keeper(mut self, keeper: Arc<dyn NameKeeper>) -> Self {
        self.keepers.push(keeper);
        self
    }

    /// The same with somebody who knows what must be kept: who is held is not erased.
    #[must_use]
    pub fn with_holds(mut self, holds: Arc<dyn LegalHolds>) -> Self {
        self.holds.push(holds);
        self
    }

    /// The people and groups that requests are about.
    #[must_use]
    pub const fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// All requests, the oldest first; of those that are over, the last thousand.
    ///
    /// # Errors
    /// What the database reports.
    pub fn list(&self) -> Result<Vec<Request>, RequestError> {
        Ok(self.records.all()?)
    }

    /// Carries out what waits, until nothing does or the work is to stop. A request that fails is left as failed.
    ///
    /// # Errors
    /// What keeps all work from going on for now: the disk is full, for one.
    pub fn carry_out_all(&self) -> Result<(), RequestError> {
        while let Some(request) = self.records.all()?.into_iter().find(|request| !request.is_over()) {
            if self.is_stopping() {
                return Ok(());
            }
            if !self.carry_out(request)? {
                return Ok(());
            }
        }
        self.records.prune()?;
        Ok(())
    }

    /// Carries out requests on a thread of its own, also those that an earlier process left. The same thread hides the people of domains
    /// that show others nothing.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(self: &Arc<Self>) -> std::io::Result<RequestsHandle> {
        let requests = Arc::clone(self);
        let thread = std::thread::Builder::new().name("requests".to_owned()).spawn(move || requests.run())?;
        Ok(RequestsHandle { requests: Arc::clone(self), thread: Some(thread) })
    }

    fn run(&self) {
        let mut settles_from = Instant::now();
        while !self.is_stopping() {
            let mut has_work = self.has_work.lock();
            if !*has_work {
                self.work.wait_for(&mut has_work, LOOK_EVERY);
            }
            let is_called = std::mem::take(&mut *has_work);
            drop(has_work);
            if Instant::now() >= settles_from
                && let Err(error) = self.directory.settle_readers(&|bytes, took| self.goes_on(bytes, took))
            {
                tracing::warn!(%error, "what others see of a domain cannot be changed now; it is tried again");
                settles_from = Instant::now() + AGAIN_AFTER;
            }
            if self.is_stopping() {
                return;
            }
            if is_called && let Err(error) = self.carry_out_all() {
                tracing::warn!(%error, "a request cannot be carried out now; it is tried again");
                let mut has_work = self.has_work.lock();
                if !self.is_stopping() {
                    self.work.wait_for(&mut has_work, AGAIN_AFTER);
                }
                *has_work = true;
            }
        }
    }

    fn wake(&self) {
        *self.has_work.lock() = true;
        self.work.notify_all();
    }

    /// Leaves time to others after a piece of work. Whether to go on.
    fn goes_on(&self, bytes: u64, took: Duration) -> bool {
        self.databases().io_limits().pace(IoClass::Names, bytes, took, || !self.is_stopping())
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    fn databases(&self) -> &Databases {
        self.directory.databases()
    }

    /// Ends a request.
    fn end(&self, request: &mut Request, state: RequestState) -> Result<(), RequestError> {
        request.state = state;
        request.ended = Some(self.databases().clock().timestamp().to_string());
        Ok(self.records.put(request)?)
    }
}

/// The thread that carries requests out.
pub struct RequestsHandle {
    requests: Arc<Requests>,
    thread: Option<JoinHandle<()>>,
}

impl RequestsHandle {
    /// Stops after the piece that is under way, and waits for it; the next process goes on there.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.requests.is_stopping.store(true, Ordering::Relaxed);
        self.requests.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of requests ended by a fault of the program");
        }
    }
}

impl Drop for RequestsHandle {
    fn drop(&mut self) {
        self.end();
    }
}

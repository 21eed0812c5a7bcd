//! The limit on transactions that are begun and not ended, with a bounded line in front of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use scrinium_statistics::{Counter, Rate, Registry};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::WorkerError;
use crate::pool::Inner;

/// A refused caller may come back after this time.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The gate that transactions pass.
pub(crate) struct Gate {
    places: Arc<Semaphore>,
    limit: Mutex<Limit>,
    admitted: AtomicUsize,
    waiting: AtomicUsize,
    waiting_limit: AtomicUsize,
    wait: Duration,
    transactions: Rate,
    refused: Counter,
}

/// The number of places; a place that is taken away while it is used goes when it is given back.
struct Limit {
    places: usize,
    owed: usize,
}

impl Gate {
    pub(crate) fn new(admitted: usize, waiting: usize, wait: Duration, statistics: &Registry) -> Self {
        let places = within_semaphore(admitted);
        Self {
            places: Arc::new(Semaphore::new(places)),
            limit: Mutex::new(Limit { places, owed: 0 }),
            admitted: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            waiting_limit: AtomicUsize::new(waiting),
            wait,
            transactions: Rate::register(statistics, "Server.Trans"),
            refused: statistics.counter("Server.Trans.Refused"),
        }
    }

    pub(crate) fn admitted(&self) -> usize {
        self.admitted.load(Ordering::Relaxed)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Places and the line in front of them: as many jobs as there can be at once.
    pub(crate) fn jobs_limit(&self) -> usize {
        self.limit.lock().places.saturating_add(self.waiting_limit.load(Ordering::Relaxed))
    }

    /// Waits for a place, in order of asking.
    pub(crate) async fn enter(&self) -> Result<OwnedSemaphorePermit, WorkerError> {
        if let Ok(permit) = self.places.clone().try_acquire_owned() {
            self.count_in();
            return Ok(permit);
        }
        if self.places.is_closed() {
            return Err(WorkerError::Closed);
        }
        let Some(_in_line) = InLine::join(self) else { return Err(self.refuse()) };
        match tokio::time::timeout(self.wait, self.places.clone().acquire_owned()).await {
            Ok(Ok(permit)) => {
                self.count_in();
                Ok(permit)
            }
            Ok(Err(_closed)) => Err(WorkerError::Closed),
            Err(_too_long) => Err(self.refuse()),
        }
    }

    fn count_in(&self) {
        self.admitted.fetch_add(1, Ordering::Relaxed);
        self.transactions.record();
    }

    pub(crate) fn refuse(&self) -> WorkerError {
        self.refused.add(1);
        WorkerError::Busy { running: self.admitted(), waiting: self.waiting(), retry_after: RETRY_AFTER }
    }

    fn leave(&self, permit: OwnedSemaphorePermit) {
        self.admitted.fetch_sub(1, Ordering::Relaxed);
        let mut limit = self.limit.lock();
        if limit.owed > 0 {
            limit.owed -= 1;
            permit.forget();
        }
    }

    pub(crate) fn set_limit(&self, admitted: usize) {
        let wanted = within_semaphore(admitted);
        let mut limit = self.limit.lock();
        if wanted >= limit.places {
            let mut more = wanted - limit.places;
            let forgiven = more.min(limit.owed);
            limit.owed -= forgiven;
            more -= forgiven;
            self.places.add_permits(more);
        } else {
            let fewer = limit.places - wanted;
            limit.owed += fewer - self.places.forget_permits(fewer);
        }
        limit.places = wanted;
    }

    pub(crate) fn set_waiting_limit(&self, waiting: usize) {
        self.waiting_limit.store(waiting, Ordering::Relaxed);
    }

    pub(crate) fn close(&self) {
        self.places.close();
    }
}

fn within_semaphore(places: usize) -> usize {
    places.clamp(1, Semaphore::MAX_PERMITS)
}

/// A place in the line before the gate, left when dropped.
struct InLine<'a> {
    gate: &'a Gate,
}

impl<'a> InLine<'a> {
    fn join(gate: &'a Gate) -> Option<Self> {
        let limit = gate.waiting_limit.load(Ordering::Relaxed);
        let joined = gate.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            (waiting < limit).then_some(waiting + 1)
        });
        joined.ok().map(|_| Self { gate })
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.gate.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One admitted transaction. Hold it from the beginning of a request to its answer, across the waits for
/// the log; its jobs run by [`Admission::run`]. The place is free again when the last of the admission and
/// its running jobs has ended.
#[derive(Clone)]
pub struct Admission {
    held: Arc<Held>,
}

struct Held {
    inner: Arc<Inner>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Admission {
    pub(crate) fn new(inner: Arc<Inner>, permit: OwnedSemaphorePermit) -> Self {
        Self { held: Arc::new(Held { inner, permit: Mutex::new(Some(permit)) }) }
    }

    /// Runs `job` on a thread of the pool and gives its result.
    ///
    /// If the future is dropped, a job that has not begun is not done; one that has runs to its end.
    ///
    /// # Errors
    /// [`WorkerError::Panicked`] if the job panicked; [`WorkerError::Busy`] if no thread can be had.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkerError> {
        let held = self.clone();
        self.held.inner.run(held, job).await
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.get_mut().take() {
            self.inner.gate.leave(permit);
        }
    }
}

//! The pool as its users see it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use scrinium_statistics::{Counter, Operation, Registry};
use tokio::sync::oneshot;

use crate::admission::Gate;
use crate::threads::Threads;
use crate::{Admission, WorkerError};

/// Time between two looks at whether all work has ended.
const DRAIN_LOOKS_EVERY: Duration = Duration::from_millis(5);

/// Limits of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerOptions {
    /// Jobs that run at once, each on a thread (SERVER_POOL_TASKS); at least 1.
    pub threads: usize,
    /// Transactions admitted at once (SERVER_MAX_CONCURRENT_TRANS); at least 1.
    pub admitted: usize,
    /// Transactions that may wait for admission.
    pub waiting: usize,
    /// The longest that one waits for admission.
    pub wait: Duration,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self { threads: 100, admitted: 1000, waiting: 4000, wait: Duration::from_secs(10) }
    }
}

/// Threads for database work with an admission limit in front. Clones share them.
#[derive(Clone)]
pub struct WorkerPool {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) gate: Gate,
    threads: Threads,
    queue_wait: Operation,
    panics: Counter,
    processors: usize,
    jobs: AtomicU64,
}

impl WorkerPool {
    /// A pool that counts into `statistics` under `Server.Pool` and `Server.Trans`, and the time that jobs
    /// wait for a thread as operation POOL_WAIT. Threads start when they are first needed.
    #[must_use]
    pub fn new(options: &WorkerOptions, statistics: &Registry) -> Self {
        let inner = Arc::new(Inner {
            gate: Gate::new(options.admitted, options.waiting, options.wait, statistics),
            threads: Threads::new(options.threads),
            queue_wait: statistics.operation("POOL_WAIT"),
            panics: statistics.counter("Server.Pool.Panics"),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            jobs: AtomicU64::new(0),
        });
        register_gauges(&inner, statistics);
        Self { inner }
    }

    /// Admits one transaction, waiting for a place if need be, in order of asking.
    ///
    /// # Errors
    /// [`WorkerError::Busy`] if the line is full or the wait too long; [`WorkerError::Closed`] after
    /// [`WorkerPool::close`].
    pub async fn admit(&self) -> Result<Admission, WorkerError> {
        let permit = self.inner.gate.enter().await?;
        Ok(Admission::new(self.inner.clone(), permit))
    }

    /// Admits a transaction that is this one job, runs it on a thread and gives its result.
    ///
    /// # Errors
    /// As [`WorkerPool::admit`] and [`Admission::run`].
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkerError> {
        self.admit().await?.run(job).await
    }

    /// Changes how many jobs run at once. Too many running ones end first.
    pub fn set_threads(&self, threads: usize) {
        self.inner.threads.set_limit(threads);
    }

    /// Changes how many transactions are admitted at once. Those admitted stay so.
    pub fn set_admitted(&self, admitted: usize) {
        self.inner.gate.set_limit(admitted);
    }

    /// Changes how many transactions may wait for admission. Those in line stay there.
    pub fn set_waiting(&self, waiting: usize) {
        self.inner.gate.set_waiting_limit(waiting);
    }

    /// Whether somebody waits: for admission, for a thread, or, with more jobs that run than there are processors, for one
    /// of these or the disk.
    #[must_use]
    pub fn is_pressed(&self) -> bool {
        let counts = self.inner.threads.counts();
        self.inner.gate.waiting() > 0 || counts.queued > 0 || counts.running > self.inner.processors
    }

    /// How many jobs have been given to the pool so far: who looks twice sees whether anybody works.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.inner.jobs.load(Ordering::Relaxed)
    }

    /// Admits nobody from now on; what was admitted continues.
    pub fn close(&self) {
        self.inner.gate.close();
    }

    /// Waits until every admitted transaction has ended, at most for `limit`; whether they all did.
    pub async fn drained(&self, limit: Duration) -> bool {
        let started = Instant::now();
        while self.inner.gate.admitted() > 0 {
            if started.elapsed() >= limit {
                return false;
            }
            tokio::time::sleep(DRAIN_LOOKS_EVERY).await;
        }
        true
    }
}

impl Inner {
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        admission: Admission,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkerError> {
        self.jobs.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let queued = Instant::now();
        let queue_wait = self.queue_wait.clone();
        let panics = self.panics.clone();
        let queued_job = move || {
            queue_wait.record(queued.elapsed());
            if answer.is_closed() {
                return;
            }
            let result = catch_unwind(AssertUnwindSafe(job)).map_err(|panic| {
                panics.add(1);
                WorkerError::Panicked { message: panic_message(panic.as_ref()) }
            });
            // The place is free before the answer is read, so that a client's next request finds it.
            drop(admission);
            drop(answer.send(result));
        };
        if !self.threads.submit(Box::new(queued_job), self.gate.jobs_limit()) {
            return Err(self.gate.refuse());
        }
        // The sender goes without an answer only if the process is ending.
        answered.await.unwrap_or(Err(WorkerError::Closed))
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown cause".to_owned())
}

/// The gauges hold the pool weakly, or its threads would never end.
#[allow(clippy::cast_precision_loss, reason = "a gauge needs no more than 53 bits")]
fn register_gauges(inner: &Arc<Inner>, statistics: &Registry) {
    let gauge = |name: &str, read: fn(&Inner) -> usize| {
        let inner = Arc::downgrade(inner);
        statistics.gauge(name, move || inner.upgrade().map_or(0.0, |inner| read(&inner) as f64));
    };
    gauge("Server.Pool.Threads", |inner| inner.threads.counts().threads);
    gauge("Server.Pool.Running", |inner| inner.threads.counts().running);
    gauge("Server.Pool.Running.Peak", |inner| inner.threads.counts().running_peak);
    gauge("Server.Pool.Queued", |inner| inner.threads.counts().queued);
    gauge("Server.Trans.Admitted", |inner| inner.gate.admitted());
    gauge("Server.Trans.Waiting", |inner| inner.gate.waiting());
}

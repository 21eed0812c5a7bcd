//! Threads that take jobs from one queue: started when needed, at most this many, gone when long idle.
//!
//! Tokio's blocking pool would do the same with one limit fixed for the life of the runtime and shared
//! with file and name look-ups; these threads are counted, named, and their number changes while running.
//!
//! Of the threads that wait, the one that began last is woken first: what it works with is still in the processor's
//! caches and in its own heap, and those that the load does not need end and give their memory back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// An idle thread ends after this time.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// How the threads stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadCounts {
    pub(crate) threads: usize,
    pub(crate) running: usize,
    pub(crate) running_peak: usize,
    pub(crate) queued: usize,
}

/// The handle; when it is dropped the threads finish what is queued and end.
pub(crate) struct Threads {
    shared: Arc<SharedThreads>,
}

struct SharedThreads {
    state: Mutex<ThreadsState>,
}

#[derive(Default)]
struct ThreadsState {
    queue: VecDeque<Job>,
    limit: usize,
    threads: usize,
    running: usize,
    running_peak: usize,
    /// Where threads wait for a job, in the order in which they began to.
    waiting: Vec<Arc<Condvar>>,
    /// Threads that wait for a job, or were woken and are not awake yet.
    idle: usize,
    /// A thread was woken and has not taken a job yet. It wakes the next one if jobs are left then: so a burst of
    /// jobs wakes as many threads as there are cores to run them, and not all at once.
    waking: bool,
    closed: bool,
}

impl Threads {
    pub(crate) fn new(limit: usize) -> Self {
        let state = ThreadsState { limit: limit.max(1), ..ThreadsState::default() };
        Self { shared: Arc::new(SharedThreads { state: Mutex::new(state) }) }
    }

    /// Queues a job. False, and the job is dropped, if `queue_limit` jobs wait already or there is no
    /// thread and none can be started.
    pub(crate) fn submit(&self, job: Job, queue_limit: usize) -> bool {
        let mut state = self.shared.state.lock();
        if state.closed || state.queue.len() >= queue_limit {
            return false;
        }
        // A thread that was woken and is not awake yet still counts as idle; its job is still queued.
        if state.queue.len() >= state.idle {
            self.start_thread(&mut state);
        }
        if state.threads == 0 {
            return false;
        }
        state.queue.push_back(job);
        self.shared.wake_one(state);
        true
    }

    /// Changes the number of threads; those too many end with the job they are at.
    pub(crate) fn set_limit(&self, limit: usize) {
        let mut state = self.shared.state.lock();
        state.limit = limit.max(1);
        for _ in state.idle..state.queue.len() {
            self.start_thread(&mut state);
        }
        self.shared.wake_all(state);
    }

    /// Starts one more thread if the limit allows it. The lock stays held: this is rare and short.
    fn start_thread(&self, state: &mut ThreadsState) {
        if state.threads >= state.limit {
            return;
        }
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name("worker".to_owned());
        match thread.spawn(move || shared.work()) {
            Ok(_) => state.threads += 1,
            Err(error) => {
                tracing::error!(%error, threads = state.threads, "cannot start another worker thread");
            }
        }
    }

    pub(crate) fn counts(&self) -> ThreadCounts {
        let state = self.shared.state.lock();
        ThreadCounts {
            threads: state.threads,
            running: state.running,
            running_peak: state.running_peak,
            queued: state.queue.len(),
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        self.shared.wake_all(state);
    }
}

impl SharedThreads {
    /// Wakes a thread, unless one is on its way already.
    fn wake_one(&self, mut state: MutexGuard<'_, ThreadsState>) {
        let last = if state.waking { None } else { state.waiting.pop() };
        state.waking |= last.is_some();
        drop(state);
        if let Some(last) = last {
            last.notify_one();
        }
    }

    fn wake_all(&self, mut state: MutexGuard<'_, ThreadsState>) {
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for thread in waiting {
            thread.notify_one();
        }
    }

    fn work(&self) {
        let work = Arc::new(Condvar::new());
        let mut state = self.state.lock();
        loop {
            if state.threads > state.limit {
                break;
            }
            if let Some(job) = state.queue.pop_front() {
                state.running += 1;
                state.running_peak = state.running_peak.max(state.running);
                if state.queue.is_empty() {
                    drop(state);
                } else {
                    self.wake_one(state);
                }
                job();
                state = self.state.lock();
                state.running -= 1;
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            state.waiting.push(work.clone());
            let timed_out = work.wait_for(&mut state, KEEP_ALIVE).timed_out();
            state.idle -= 1;
            // Anyone who wakes a thread has taken it from the list, so that only one that was not looks for itself.
            let is_own = |waiting: &Arc<Condvar>| Arc::ptr_eq(waiting, &work);
            if timed_out && let Some(place) = state.waiting.iter().position(is_own) {
                state.waiting.remove(place);
            } else {
                state.waking = false;
            }
            if timed_out && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        if !state.queue.is_empty() {
            self.wake_one(state);
        }
    }
}

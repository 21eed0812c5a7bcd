//! Threads on which passwords are hashed, and the short queue in front of them.
//!
//! Hashing is slow on purpose, so it has threads of its own: whatever number of people or strangers log in, nothing else
//! waits for it. The queue is short, since a log-in that waits for long is given up anyhow: what finds no place is
//! refused at once. Those who have logged in from where they are before come first, those whose network has failed lately
//! last; among the same, networks take turns, so that one which sends many log-ins delays its own.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use scrinium_accounting::{Network, Standing};
use thiserror::Error;

/// Why a hashing could not begin.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum HashingError {
    /// Too many are waiting, or the wait was too long.
    #[error("too many passwords are being checked")]
    Busy,
}

/// How many hashings there may be.
#[derive(Clone, Copy, Debug)]
pub struct HashingOptions {
    /// How many at once, each on a thread and with 19 MiB.
    pub threads: usize,
    /// Of how many networks hashings may wait, of those that are known. Strangers get three quarters of that, and networks that
    /// have failed lately half. As networks take turns, it is what bounds the wait of one who is alone in theirs.
    pub waiting: usize,
    /// The longest such wait.
    pub longest_wait: Duration,
    /// Called by each thread as it begins.
    pub on_start: fn(),
}

impl Default for HashingOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let threads = (cores / 2).max(1);
        // About a second's work.
        Self { threads, waiting: threads * 40, longest_wait: Duration::from_secs(10), on_start: || () }
    }
}

/// Hashings that may wait in all, for each network that may: a company behind one address comes to work at one time.
const JOBS_OF_PLACE: usize = 10;

/// What is to be done on a hashing thread; `false`: it has waited for too long, and is only to say so.
type Work = Box<dyn FnOnce(bool) + Send>;

struct Job {
    work: Work,
    since: Instant,
}

/// The threads. When this is dropped, they end with what they are at; what waits learns that it is too late.
pub struct HashingThreads {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    options: HashingOptions,
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    /// By standing: the first is served first.
    lanes: [Lane; 3],
    waiting: usize,
    stopping: bool,
}

/// Jobs of networks that take turns.
#[derive(Default)]
struct Lane {
    jobs: HashMap<Network, VecDeque<Job>>,
    turns: VecDeque<Network>,
}

impl Lane {
    fn push(&mut self, network: Network, job: Job) {
        let jobs = self.jobs.entry(network).or_default();
        if jobs.is_empty() {
            self.turns.push_back(network);
        }
        jobs.push_back(job);
    }

    /// Whether one more of `network` may wait, where this many networks may.
    fn has_place(&self, network: Network, networks: usize) -> bool {
        self.turns.len() < networks || self.jobs.contains_key(&network)
    }

    fn pop(&mut self) -> Option<Job> {
        let network = self.turns.pop_front()?;
        let jobs = self.jobs.get_mut(&network)?;
        let job = jobs.pop_front();
        if jobs.is_empty() {
            self.jobs.remove(&network);
        } else {
            self.turns.push_back(network);
        }
        job
    }
}

impl Queue {
    fn lane(&mut self, standing: Standing) -> &mut Lane {
        let [known, fresh, suspect] = &mut self.lanes;
        match standing {
            Standing::Known => known,
            Standing::Fresh => fresh,
            Standing::Suspect => suspect,
        }
    }

    fn pop(&mut self) -> Option<Job> {
        let job = self.lanes.iter_mut().find_map(Lane::pop)?;
        self.waiting -= 1;
        Some(job)
    }
}

impl HashingThreads {
    /// Begins the threads.
    ///
    /// # Errors
    /// The system's, where it gives no thread at all.
    pub fn begin(options: HashingOptions) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { options, queue: Mutex::default(), wake: Condvar::new() });
        let mut threads = Vec::new();
        for _ in 0..options.threads.max(1) {
            let of_thread = Arc::clone(&shared);
            match std::thread::Builder::new().name("hashing".to_owned()).spawn(move || of_thread.run()) {
                Ok(thread) => threads.push(thread),
                Err(error) if threads.is_empty() => return Err(error),
                // Fewer do as well.
                Err(_) => break,
            }
        }
        Ok(Self { shared, threads })
    }

    /// Does `work` on one of the threads, in its turn. It learns whether it came in time.
    ///
    /// # Errors
    /// [`HashingError::Busy`] where too many wait; then `work` is not called.
    pub fn submit(
        &self,
        standing: Standing,
        network: Network,
        work: impl FnOnce(bool) + Send + 'static,
    ) -> Result<(), HashingError> {
        let most = self.shared.options.waiting;
        let share = match standing {
            Standing::Known => most,
            Standing::Fresh => most - most / 4,
            Standing::Suspect => most / 2,
        };
        let mut queue = self.shared.queue.lock();
        let is_full = queue.waiting >= most.saturating_mul(JOBS_OF_PLACE);
        if is_full || !queue.lane(standing).has_place(network, share.max(1)) {
            return Err(HashingError::Busy);
        }
        queue.waiting += 1;
        queue.lane(standing).push(network, Job { work: Box::new(work), since: Instant::now() });
        drop(queue);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.queue.lock().waiting
    }
}

impl Shared {
    fn run(&self) {
        (self.options.on_start)();
        loop {
            let mut queue = self.queue.lock();
            let job = loop {
                if queue.stopping {
                    return;
                }
                match queue.pop() {
                    Some(job) => break job,
                    None => self.wake.wait(&mut queue),
                }
            };
            drop(queue);
            (job.work)(job.since.elapsed() < self.options.longest_wait);
        }
    }
}

impl Drop for HashingThreads {
    fn drop(&mut self) {
        let left = {
            let mut queue = self.shared.queue.lock();
            queue.stopping = true;
            std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>()
        };
        self.shared.wake.notify_all();
        for job in left {
            (job.work)(false);
        }
        for thread in self.threads.drain(..) {
            // A panic was told by the thread itself.
            drop(thread.join());
        }
    }
}

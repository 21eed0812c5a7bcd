//! The processes that run functions: how many there are, whose they are, and who may have one.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};
use scrinium_confinement::{NO_CALLS, NO_FILES};

use crate::conduct::Conduct;
use crate::error::ScriptError;
use crate::limits::Limits;
use crate::process::{Lost, Process};
use crate::wire::{Program, Request};

/// Whose functions a process runs: a database. No two of them ever use the same process.
pub type Owner = [u8; 16];

/// So long one that waits for a process waits.
const WAIT: Duration = Duration::from_secs(10);

/// A process that nobody used for so long is ended when the next one is asked for.
const IDLE: Duration = Duration::from_mins(5);

/// How reductions behave is remembered for so long, of this many functions.
const REMEMBERED: Duration = Duration::from_mins(10);
const REMEMBERED_MAX: usize = 1000;

/// What the processes of a pool may use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PoolOptions {
    /// At most this many processes, at work or waiting for it. One database has half of them at most.
    pub processes_max: usize,
    /// At most this many threads may wait for a process, and half of them for one of the same database. Further ones are told at once
    /// that there is none, so that those who wait do not take what others could work with.
    pub waiting_max: usize,
    /// What each of them may use.
    pub limits: Limits,
}

impl Default for PoolOptions {
    /// Two for each processor, and four at least; 32 threads that wait.
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let processes_max = processors.saturating_mul(2).max(4);
        Self { processes_max, waiting_max: 32, limits: Limits::default() }
    }
}

/// What there is of a pool's processes, and what became of those that were.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PoolFigures {
    /// Processes now.
    pub processes: u64,
    /// Of these, how many have something to do.
    pub busy: u64,
    /// Processes started since the server was.
    pub started: u64,
    /// Of these, how many ended otherwise than because nobody needed them.
    pub lost: u64,
}

/// Processes that run functions. Clones share them.
#[derive(Clone, Default)]
pub struct Pool {
    shared: Arc<SharedPool>,
}

/// How functions behave, by whose they are and their program, and since when that is remembered.
type Conducts = HashMap<(Owner, u128), (Arc<Conduct>, Instant)>;

#[derive(Default)]
struct SharedPool {
    options: RwLock<PoolOptions>,
    state: Mutex<PoolState>,
    returned: Condvar,
    started: AtomicU64,
    lost: AtomicU64,
    /// It was said which of the kernel's walls are missing.
    told: AtomicBool,
    conducts: Mutex<Conducts>,
}

#[derive(Default)]
struct PoolState {
    /// Those used last are at the back.
    idle: VecDeque<(Key, Ready, Instant)>,
    /// Processes at work, or being started, by whose they are.
    busy: HashMap<Owner, usize>,
    /// Those who wait for one.
    waiting: HashMap<Owner, usize>,
}

impl PoolState {
    fn busy(&self) -> usize {
        self.busy.values().sum()
    }

    fn busy_of(&self, owner: &Owner) -> usize {
        self.busy.get(owner).copied().unwrap_or(0)
    }

    /// Whether nobody more may wait for a process of `owner`'s.
    fn is_crowded(&self, owner: &Owner, waiting_max: usize) -> bool {
        let of_owner = self.waiting.get(owner).copied().unwrap_or(0);
        of_owner >= waiting_max.div_ceil(2) || self.waiting.values().sum::<usize>() >= waiting_max
    }

    fn wait(&mut self, owner: Owner) {
        *self.waiting.entry(owner).or_insert(0) += 1;
    }

    fn has_waited(&mut self, owner: &Owner) {
        less(&mut self.waiting, owner);
    }
}

/// One less of an owner's.
fn less(of: &mut HashMap<Owner, usize>, owner: &Owner) {
    if let Some(count) = of.get_mut(owner) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            of.remove(owner);
        }
    }
}

/// Which requests a process can answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Key {
    owner: Owner,
    program: u128,
    /// Whether it comes after all others, as do those that a build begins.
    is_behind: bool,
}

/// A process with its engine.
pub(crate) struct Ready {
    pub(crate) process: Process,
    /// Which of its sources can be used.
    pub(crate) sources: Vec<Result<(), ScriptError>>,
}

/// A process, given back when dropped, unless it was taken out of here.
pub(crate) struct Lease {
    pub(crate) ready: Option<Ready>,
    key: Key,
    shared: Arc<SharedPool>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        less(&mut state.busy, &self.key.owner);
        match self.ready.take() {
            Some(ready) => state.idle.push_back((self.key, ready, Instant::now())),
            None => {
                self.shared.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
        drop(state);
        self.shared.returned.notify_all();
    }
}

impl Pool {
    /// A pool without processes: they are started when they are needed.
    #[must_use]
    pub fn new(options: PoolOptions) -> Self {
        let pool = Self::default();
        pool.set_options(options);
        pool
    }

    /// Sets what processes may use that are started from now on.
    pub fn set_options(&self, options: PoolOptions) {
        *self.shared.options.write() = options;
    }

    /// What its processes may use.
    #[must_use]
    pub fn options(&self) -> PoolOptions {
        self.shared.options.read().clone()
    }

    /// What there is of its processes.
    #[must_use]
    pub fn figures(&self) -> PoolFigures {
        let state = self.shared.state.lock();
        let busy = state.busy();
        PoolFigures {
            processes: (busy + state.idle.len()) as u64,
            busy: busy as u64,
            started: self.shared.started.load(Ordering::Relaxed),
            lost: self.shared.lost.load(Ordering::Relaxed),
        }
    }

    /// How a function of reductions behaves.
    pub(crate) fn conduct(&self, owner: Owner, program: u128) -> Arc<Conduct> {
        let mut conducts = self.shared.conducts.lock();
        if conducts.len() >= REMEMBERED_MAX {
            conducts.retain(|_, (_, since)| since.elapsed() < REMEMBERED / 2);
        }
        if conducts.len() >= REMEMBERED_MAX {
            conducts.clear();
        }
        let (conduct, since) =
            conducts.entry((owner, program)).or_insert_with(|| (Arc::default(), Instant::now()));
        if since.elapsed() >= REMEMBERED {
            (*conduct, *since) = (Arc::default(), Instant::now());
        }
        Arc::clone(conduct)
    }

    /// A process with the engine of this program, of which `left_out` are functions that ended one.
    pub(crate) fn lend(
        &self,
        owner: Owner,
        program: &Program,
        digest: u128,
        left_out: &[bool],
    ) -> Result<Lease, Lost> {
        let key = Key { owner, program: digest, is_behind: is_in_the_background() };
        let mut lease = self.place(key)?;
        if lease.ready.is_none() {
            lease.ready = Some(self.start(program, left_out)?);
        }
        Ok(lease)
    }

    /// A place among the processes, with one that is ready, or to be started.
    fn place(&self, key: Key) -> Result<Lease, Lost> {
        let until = Instant::now() + WAIT;
        let (processes_max, waiting_max) = {
            let options = self.shared.options.read();
            (options.processes_max.max(1), options.waiting_max)
        };
        let mut gone = Vec::new();
        let mut state = self.shared.state.lock();
        let ready = loop {
            while let Some((_, ready, _)) = state.idle.pop_front_if(|(_, _, since)| since.elapsed() > IDLE) {
                gone.push(ready);
            }
            let of_owner = state.busy_of(&key.owner);
            if of_owner < processes_max.div_ceil(2) {
                if let Some(place) = state.idle.iter().rposition(|(of, ..)| *of == key) {
                    break state.idle.remove(place).map(|(_, ready, _)| ready);
                }
                if state.busy() < processes_max {
                    let others = processes_max - state.busy() - 1;
                    while state.idle.len() > others {
                        gone.extend(state.idle.pop_front().map(|(_, ready, _)| ready));
                    }
                    break None;
                }
            }
            let is_crowded = state.is_crowded(&key.owner, waiting_max);
            if !is_crowded {
                state.wait(key.owner);
            }
            if is_crowded || self.shared.returned.wait_until(&mut state, until).timed_out() {
                if !is_crowded {
                    state.has_waited(&key.owner);
                }
                let reason = format!(
                    "all {processes_max} processes have something to do, {of_owner} of them for this database; try again, \
                     or raise javascript.processes_max"
                );
                return Err(Lost::Busy(ScriptError::Unavailable { reason }));
            }
            state.has_waited(&key.owner);
        };
        *state.busy.entry(key.owner).or_insert(0) += 1;
        drop(state);
        // Each is waited for, so not under the lock.
        drop(gone);
        Ok(Lease { ready, key, shared: Arc::clone(&self.shared) })
    }

    fn start(&self, program: &Program, left_out: &[bool]) -> Result<Ready, Lost> {
        let mut process = Process::start(&program.limits)?;
        self.shared.started.fetch_add(1, Ordering::Relaxed);
        self.tell(process.walls);
        let request = Request::Prepare { program: program.clone(), left_out: left_out.to_vec() };
        let answer = process.ask(&request, program.sources.len())?;
        if answer.is_stuck || answer.outcomes.len() < program.sources.len() {
            return Err(Lost::Ended { how: "a source that does not end".to_owned() });
        }
        let sources = answer.outcomes.into_iter().map(|outcome| outcome.result.map(drop)).collect();
        Ok(Ready { process, sources })
    }

    /// Says once what the kernel does not offer.
    fn tell(&self, walls: u8) {
        if walls == NO_FILES | NO_CALLS || self.shared.told.swap(true, Ordering::Relaxed) {
            return;
        }
        tracing::warn!(
            landlock = walls & NO_FILES != 0,
            seccomp = walls & NO_CALLS != 0,
            "the kernel does not offer all that keeps JavaScript from files and network; limits of resources hold in any case"
        );
    }
}

/// Whether processes that this thread begins come after those of the process as a whole.
fn is_in_the_background() -> bool {
    use rustix::process::{getpid, getpriority_process};
    let niceness = |thread| getpriority_process(Some(thread)).unwrap_or(0);
    niceness(rustix::thread::gettid()) > niceness(getpid())
}

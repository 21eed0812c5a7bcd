//! Commits held at one moment, for a snapshot that somebody else takes of the disks.
//!
//! While a store is frozen its log takes nothing, and its tree's files hold all that was answered. Who commits waits, for a
//! bounded time and not too many at once, and is refused then. A freeze ends by itself, whatever became of who began it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLockReadGuard};
use scrinium_log::Committer;

use crate::admin::Admin;
use crate::keeper::Core;
use crate::{Store, StoreError};

/// How often it is looked whether what was submitted before is done.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// How long commits are held, and what becomes of who makes one meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreezeOptions {
    /// The freeze ends by itself after this time.
    pub limit: Duration,
    /// From this time after its beginning on commits are refused at once; until then they wait.
    pub patience: Duration,
    /// At most this many threads may wait at once; more are refused.
    pub waiting_max: usize,
}

/// Whether commits are held.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    /// As the state says, for anyone who commits while nothing is held.
    on: AtomicBool,
    state: Mutex<FreezeState>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct FreezeState {
    held: Option<Held>,
    waiting: usize,
    /// Of the last freeze that began.
    number: u64,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    until: Instant,
    refused_from: Instant,
    waiting_max: usize,
}

impl Hold {
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::SeqCst)
    }

    /// Waits until commits are taken again.
    ///
    /// # Errors
    /// [`StoreError::Frozen`] where that takes longer than it may, or too many wait.
    pub(crate) fn wait(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        let Some(held) = state.held else { return Ok(()) };
        let wait_until = held.refused_from.min(held.until);
        if state.waiting < held.waiting_max {
            state.waiting += 1;
            while state.held.is_some() && !self.ended.wait_until(&mut state, wait_until).timed_out() {}
            state.waiting -= 1;
        }
        let Some(held) = state.held else { return Ok(()) };
        match held.until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Err(StoreError::Frozen { left }),
            _ => {
                self.end(&mut state);
                Ok(())
            }
        }
    }

    fn begin(&self, options: &FreezeOptions) -> Result<u64, StoreError> {
        let mut state = self.state.lock();
        let now = Instant::now();
        if let Some(left) = state.held.and_then(|held| held.until.checked_duration_since(now)) {
            return Err(StoreError::Frozen { left });
        }
        state.held = Some(Held {
            until: now + options.limit,
            refused_from: now + options.patience,
            waiting_max: options.waiting_max,
        });
        state.number += 1;
        self.on.store(true, Ordering::SeqCst);
        Ok(state.number)
    }

    /// Ends the freeze of this number. Whether it had held until now.
    fn finish(&self, number: u64) -> bool {
        let mut state = self.state.lock();
        let held = state.held.filter(|_| state.number == number);
        let has_held = held.is_some_and(|held| held.until > Instant::now());
        if held.is_some() {
            self.end(&mut state);
        }
        has_held
    }

    fn end(&self, state: &mut FreezeState) {
        state.held = None;
        self.on.store(false, Ordering::SeqCst);
        self.ended.notify_all();
    }
}

impl Core {
    /// The committer, while commits are not held. A freeze waits until what was handed over under this lock is done.
    ///
    /// # Errors
    /// [`StoreError::Frozen`].
    pub(crate) fn open_committer(&self) -> Result<RwLockReadGuard<'_, Option<Committer>>, StoreError> {
        loop {
            let committer = self.committer.read();
            if !self.hold.is_on() {
                return Ok(committer);
            }
            drop(committer);
            self.hold.wait()?;
        }
    }
}

impl Admin<'_> {
    /// Holds commits at a moment of which the tree's files hold everything that was answered, so that a snapshot of the
    /// disks by somebody else is of that moment, also where it is of several disks, one after the other. Reading continues,
    /// and so does what is derived.
    ///
    /// # Errors
    /// [`StoreError::Frozen`] if it is frozen, or what was under way took longer than `options.limit`; and as
    /// [`Admin::checkpoint`]. Commits go on then.
    pub fn freeze(&self, options: &FreezeOptions) -> Result<Freeze, StoreError> {
        let core = self.store.core();
        // Most of it while commits go on.
        core.checkpoint()?;
        let deadline = Instant::now() + options.limit;
        let freeze = Freeze { number: core.hold.begin(options)?, store: self.store.clone() };
        // Who saw no freeze has submitted when this is had; who comes later sees it.
        drop(core.committer.write());
        while !core.committer.read().as_ref().ok_or(StoreError::Closed)?.is_idle() {
            if Instant::now() >= deadline {
                return Err(StoreError::Frozen { left: Duration::ZERO });
            }
            std::thread::sleep(LOOK_EVERY);
        }
        core.checkpoint()?;
        Ok(freeze)
    }
}

/// A store whose commits are held. They go on when this is ended or dropped, and after [`FreezeOptions::limit`] in any
/// case.
#[derive(Debug)]
pub struct Freeze {
    store: Store,
    number: u64,
}

impl Freeze {
    /// Takes commits again. `false`: the freeze had ended by itself before.
    #[must_use = "what was copied meanwhile is of one moment only if the freeze held until now"]
    pub fn thaw(self) -> bool {
        self.store.core().hold.finish(self.number)
    }
}

impl Drop for Freeze {
    fn drop(&mut self) {
        let _held = self.store.core().hold.finish(self.number);
    }
}

//! How many passwords may be hashed at once.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use thiserror::Error;

/// Why a hashing could not begin.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum HashingError {
    /// Too many are waiting, or the wait was too long.
    #[error("too many passwords are being checked")]
    Busy,
}

/// Lets a bounded number of hashings run at once and a bounded number wait, so that a flood of logins costs
/// a bounded amount of memory.
#[derive(Debug)]
pub struct HashingGate {
    running_limit: usize,
    waiting_limit: usize,
    longest_wait: Duration,
    state: Mutex<GateState>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    running: usize,
    waiting: usize,
}

impl HashingGate {
    /// A gate for `running_limit` hashings at once (at least one) and `waiting_limit` more waiting, none
    /// longer than `longest_wait`.
    #[must_use]
    pub fn new(running_limit: usize, waiting_limit: usize, longest_wait: Duration) -> Self {
        Self {
            running_limit: running_limit.max(1),
            waiting_limit,
            longest_wait,
            state: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    /// Runs `hash` when there is room for it.
    ///
    /// # Errors
    /// [`HashingError::Busy`] where too many wait or the wait was too long.
    pub fn run<T>(&self, hash: impl FnOnce() -> T) -> Result<T, HashingError> {
        self.enter()?;
        let _leave = Leave(self);
        Ok(hash())
    }

    fn enter(&self) -> Result<(), HashingError> {
        let mut state = self.state.lock();
        if state.running >= self.running_limit {
            if state.waiting >= self.waiting_limit {
                return Err(HashingError::Busy);
            }
            state.waiting += 1;
            let deadline = Instant::now() + self.longest_wait;
            while state.running >= self.running_limit {
                if self.freed.wait_until(&mut state, deadline).timed_out() {
                    break;
                }
            }
            state.waiting -= 1;
            if state.running >= self.running_limit {
                return Err(HashingError::Busy);
            }
        }
        state.running += 1;
        Ok(())
    }
}

struct Leave<'a>(&'a HashingGate);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.state.lock().running -= 1;
        self.0.freed.notify_one();
    }
}

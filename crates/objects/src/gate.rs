//! How many may do something at once, and how many may wait for it.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use scrinium_assertion::never;

/// How many may be inside, how many may wait for it, and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateLimits {
    pub(crate) at_once: usize,
    pub(crate) waiting_max: usize,
    pub(crate) within: Duration,
}

/// Anyone who waits holds a thread that others could use, so that the line is short.
pub(crate) struct Gate {
    limits: GateLimits,
    state: Mutex<GateState>,
    left: Condvar,
}

#[derive(Default)]
struct GateState {
    inside: usize,
    waiting: usize,
}

/// Somebody is inside until this is dropped.
pub(crate) struct Inside<'a>(&'a Gate);

impl Gate {
    pub(crate) fn new(limits: GateLimits) -> Self {
        Self { limits, state: Mutex::default(), left: Condvar::new() }
    }

    /// `None`: too many wait already, or it took too long.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        let GateLimits { at_once, waiting_max, within } = self.limits;
        let until = Instant::now() + within;
        let mut state = self.state.lock();
        if state.inside >= at_once {
            if state.waiting >= waiting_max {
                return None;
            }
            state.waiting += 1;
            while state.inside >= at_once {
                if self.left.wait_until(&mut state, until).timed_out() && state.inside >= at_once {
                    state.waiting -= 1;
                    return None;
                }
            }
            state.waiting -= 1;
        }
        state.inside += 1;
        Some(Inside(self))
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.inside = state.inside.checked_sub(1).unwrap_or_else(|| {
            never!("who leaves was inside");
            0
        });
        drop(state);
        self.0.left.notify_one();
    }
}

//! How many may do something at once, and how many may wait for it.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Whoever waits holds a thread that others could use, so that the line is short.
pub(crate) struct Gate {
    at_once: usize,
    waiting_max: usize,
    within: Duration,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    inside: usize,
    waiting: usize,
}

/// Somebody is inside until this is dropped.
pub(crate) struct Inside<'a>(&'a Gate);

impl Gate {
    pub(crate) fn new(at_once: usize, waiting_max: usize, within: Duration) -> Self {
        Self { at_once, waiting_max, within, state: Mutex::default(), left: Condvar::new() }
    }

    /// `None`: too many wait already, or it took too long.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        let until = Instant::now() + self.within;
        let mut state = self.state.lock();
        if state.inside >= self.at_once {
            if state.waiting >= self.waiting_max {
                return None;
            }
            state.waiting += 1;
            while state.inside >= self.at_once {
                if self.left.wait_until(&mut state, until).timed_out() && state.inside >= self.at_once {
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
        self.0.state.lock().inside -= 1;
        self.0.left.notify_one();
    }
}

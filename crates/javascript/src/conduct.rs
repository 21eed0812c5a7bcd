//! How a function has behaved, and when it is not called any more.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::error::ScriptError;

/// Calls in a row that had to be stopped, after which a function is switched off.
pub const STOPPED_MAX: u32 = 3;

/// Processor time of a call that counts as slow only beyond this.
const SLOW_US: u64 = 100_000;

/// Slow time after which a function is switched off.
pub const SLOW_MAX_S: u64 = 120;

/// How one function behaves in one build of its view. Shared by all who run it there.
#[derive(Debug, Default)]
pub struct Conduct {
    stopped_in_a_row: AtomicU32,
    slow_us: AtomicU64,
    was_run: AtomicBool,
    off: OnceLock<ScriptError>,
}

impl Conduct {
    /// Of a function that was switched off the last time, and has one call to show that it is better.
    #[must_use]
    pub fn on_probation() -> Self {
        Self { stopped_in_a_row: AtomicU32::new(STOPPED_MAX - 1), ..Self::default() }
    }

    /// Why the function is not called any more, if it is not.
    pub fn switched_off(&self) -> Option<&ScriptError> {
        self.off.get()
    }

    /// Whether the function was called at all.
    pub fn was_run(&self) -> bool {
        self.was_run.load(Ordering::Relaxed)
    }

    /// A call ended, which took so long if it was slow.
    pub(crate) fn note(&self, result: &Result<impl Sized, ScriptError>, slow_us: u32) {
        self.was_run.store(true, Ordering::Relaxed);
        let slow_us = u64::from(slow_us).saturating_sub(SLOW_US);
        if slow_us > 0 {
            let all = self.slow_us.fetch_add(slow_us, Ordering::Relaxed).saturating_add(slow_us);
            if all > SLOW_MAX_S * 1_000_000 {
                self.switch_off(format!("it has taken {SLOW_MAX_S} s more than it should"));
            }
        }
        if !matches!(result, Err(error) if error.is_stop()) {
            self.stopped_in_a_row.store(0, Ordering::Relaxed);
        } else if self.stopped_in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= STOPPED_MAX {
            self.switch_off(format!("it had to be stopped {STOPPED_MAX} times in a row"));
        }
    }

    fn switch_off(&self, why: String) {
        self.off.get_or_init(|| ScriptError::SwitchedOff { why });
    }
}

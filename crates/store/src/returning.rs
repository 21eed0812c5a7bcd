//! When free memory goes back to the system: the heap is the process's, so that all its stores decide together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::memory;

/// Where all budgets together are below this, what is free is given back again and again: it is much compared with them, and
/// little to look through.
const BELOW_BYTES: u64 = 256 << 20;

const EVERY: Duration = Duration::from_secs(2);

/// Of the process.
static RETURNING: Returning = Returning::new();

/// The budgets of a process, and when memory was given back last.
struct Returning {
    budgets_bytes: AtomicU64,
    last: Mutex<Option<Instant>>,
}

impl Returning {
    const fn new() -> Self {
        Self { budgets_bytes: AtomicU64::new(0), last: Mutex::new(None) }
    }

    /// Budgets whose sum was `old_bytes` are `new_bytes` now.
    fn replace(&self, old_bytes: u64, new_bytes: u64) {
        self.budgets_bytes.fetch_add(new_bytes, Ordering::Relaxed);
        self.budgets_bytes.fetch_sub(old_bytes, Ordering::Relaxed);
    }

    /// Whether the one who asks is to give memory back now: nobody else is asked for a while.
    fn is_due(&self, now: Instant) -> bool {
        if self.budgets_bytes.load(Ordering::Relaxed) >= BELOW_BYTES {
            return false;
        }
        let mut last = self.last.lock();
        let due = last.is_none_or(|last| now.saturating_duration_since(last) >= EVERY);
        if due {
            *last = Some(now);
        }
        due
    }
}

/// A budget of the process has `new_bytes` in place of `old_bytes`; 0: there is none.
pub(crate) fn budget_changed(old_bytes: u64, new_bytes: u64) {
    RETURNING.replace(old_bytes, new_bytes);
}

/// Gives free memory back, where budgets are small and nobody has for a while. Each store calls it every second.
pub(crate) fn give_back_if_due() {
    if RETURNING.is_due(Instant::now()) {
        memory::give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_store_beside_a_large_one_gives_nothing_back_and_many_small_ones_give_back_once() {
        let process = Returning::new();
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        process.replace(0, 64 << 20);
        process.replace(0, 64 << 20);
        assert!(process.is_due(after(1)));
        assert!(!process.is_due(after(2)));
        assert!(process.is_due(after(3)));
        process.replace(0, 8 << 30);
        assert!(!process.is_due(after(9)));
        process.replace(8 << 30, 128 << 20);
        assert!(!process.is_due(after(9)));
        process.replace(128 << 20, 0);
        assert!(process.is_due(after(9)));
    }
}

//! Giving way: a thread in the background offers its processor to others every so often.
//!
//! The scheduler lets a thread of low priority finish its slice of some milliseconds although one that answers somebody
//! has woken; most answers take a tenth of that.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A look at the clock and a yield that nobody waits for cost less than a hundredth of this.
const EVERY: Duration = Duration::from_micros(100);

thread_local! {
    /// When this thread gives way next; nothing if it does not.
    static DUE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// From now on this thread gives way; not so those that it begins.
pub(super) fn begin() {
    DUE.set(Some(Instant::now() + EVERY));
}

/// Whether this thread gives way: nobody waits for it.
pub(super) fn is_begun() -> bool {
    DUE.get().is_some()
}

/// To be called often by work that may run in the background.
pub(super) fn give_way() {
    let Some(due) = DUE.get() else { return };
    if Instant::now() >= due {
        std::thread::yield_now();
        DUE.set(Some(Instant::now() + EVERY));
    }
}

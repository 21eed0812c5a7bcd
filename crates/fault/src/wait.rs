//! Waiting for what another thread or process does.

use std::time::{Duration, Instant};

/// How long nothing is looked at in between.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks again and again until `look` finds something, which may take until `within` is over.
///
/// # Panics
/// If nothing was found in that time; the message names `what`.
#[track_caller]
pub fn wait_for<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < within, "within {within:?} there was no {what}");
        std::thread::sleep(PAUSE);
    }
}

/// As [`wait_for`] what is so or not.
///
/// # Panics
/// As there.
#[track_caller]
pub fn wait_until(what: &str, within: Duration, mut is_so: impl FnMut() -> bool) {
    wait_for(what, within, || is_so().then_some(()));
}

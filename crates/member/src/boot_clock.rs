//! The time since the machine was started. It never jumps, however somebody sets the clock of the day, and goes on while the machine is
//! suspended: a leader that was asleep must not take its lease for valid.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since the machine was started.
pub(crate) fn boot_ms() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(time.tv_sec).saturating_mul(1_000).saturating_add(part(time.tv_nsec) / 1_000_000)
}

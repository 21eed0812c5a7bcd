//! The clock that a server's parts are handed, and that a test can move.
//!
//! Whatever depends on the time of day, or waits for an age to be reached (retention, expiry, lock-outs, retries),
//! asks a [`Clock`] that came with its options. The server makes one when it starts; a test makes a manual one
//! and moves it, so that a week passes in no time:
//!
//! ```
//! use std::time::Duration;
//! use scrinium_clock::Clock;
//!
//! let manual = Clock::manual(1_700_000_000_000);
//! let clock = manual.clock(); // What goes into the options of the thing under test.
//! let locked_until = clock.instant() + Duration::from_mins(10);
//! assert!(clock.instant() < locked_until);
//! manual.advance(Duration::from_mins(10));
//! assert!(clock.instant() >= locked_until);
//! assert_eq!(clock.now_ms(), 1_700_000_600_000);
//! ```
//!
//! Two times are told. The *time of day* counts from 1970 in UTC and can jump in both directions, as somebody sets
//! it. The *monotonic* time only grows: a wait within one process is measured by it. Whatever merely measures how
//! long work took needs no clock and uses [`Instant`] by itself.

mod manual;
mod units;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;

pub use manual::ManualClock;
pub use units::{from_unix_ms, milliseconds, unix_ms, unix_s};

use manual::Moved;

/// Where the time comes from: the system, or a test that moves it. Cloning costs a reference, and clones tell the
/// same time.
#[derive(Clone, Default)]
pub struct Clock {
    /// `None` is the system's.
    moved: Option<Arc<Moved>>,
}

impl Clock {
    /// The system's clock. Made once, where the server starts; parts take theirs from their options.
    #[must_use]
    pub const fn system() -> Self {
        Self { moved: None }
    }

    /// A clock that stands at `start_ms`, in milliseconds since 1970, until it is moved.
    #[must_use]
    pub fn manual(start_ms: u64) -> ManualClock {
        ManualClock::new(start_ms)
    }

    /// The time of day.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        match &self.moved {
            None => SystemTime::now(),
            Some(moved) => moved.now(),
        }
    }

    /// The time of day in milliseconds since 1970; 0 where the system's clock stands before that.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        unix_ms(self.now())
    }

    /// The time of day in whole seconds since 1970; 0 where the system's clock stands before that.
    #[must_use]
    pub fn now_s(&self) -> u64 {
        unix_s(self.now())
    }

    /// The time of day as a timestamp of the calendar's library.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        // A clock set beyond the year 9999 stands at that year's end.
        Timestamp::try_from(self.now()).unwrap_or(Timestamp::MAX)
    }

    /// The monotonic time, to be compared with others of the same clock only.
    #[must_use]
    pub fn instant(&self) -> Instant {
        match &self.moved {
            None => Instant::now(),
            Some(moved) => moved.instant(),
        }
    }

    /// How much monotonic time has passed since `earlier`; nothing if that is still to come.
    #[must_use]
    pub fn elapsed(&self, earlier: Instant) -> Duration {
        self.instant().saturating_duration_since(earlier)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.moved {
            None => formatter.write_str("Clock::system"),
            Some(_) => write!(formatter, "Clock::manual({})", self.now_ms()),
        }
    }
}

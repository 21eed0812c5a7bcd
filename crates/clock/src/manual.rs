//! A clock that stands still until a test moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::{Clock, from_unix_ms, milliseconds};

/// The hand of a clock that [`Clock::manual`] made. Clones move the same clock.
#[derive(Clone, Debug)]
pub struct ManualClock {
    moved: Arc<Moved>,
}

impl ManualClock {
    pub(crate) fn new(start_ms: u64) -> Self {
        let (wall_ms, passed_ms) = (AtomicU64::new(start_ms), AtomicU64::new(0));
        Self { moved: Arc::new(Moved { wall_ms, passed_ms, origin: Instant::now() }) }
    }

    /// The clock itself, to be handed to what is tested.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock { moved: Some(Arc::clone(&self.moved)) }
    }

    /// Lets time pass, of the day and monotonic, in whole milliseconds.
    pub fn advance(&self, by: Duration) {
        self.moved.wall_ms.fetch_add(milliseconds(by), Ordering::SeqCst);
        self.moved.passed_ms.fetch_add(milliseconds(by), Ordering::SeqCst);
    }

    /// Sets the time of day, as an administrator or a time server does: it may jump back, and the monotonic time
    /// stays where it is.
    pub fn set_ms(&self, now_ms: u64) {
        self.moved.wall_ms.store(now_ms, Ordering::SeqCst);
    }
}

/// How far a manual clock was moved.
#[derive(Debug)]
pub(crate) struct Moved {
    /// The time of day in milliseconds since 1970.
    wall_ms: AtomicU64,
    /// The monotonic time since `origin`.
    passed_ms: AtomicU64,
    origin: Instant,
}

impl Moved {
    pub(crate) fn now(&self) -> SystemTime {
        from_unix_ms(self.wall_ms.load(Ordering::SeqCst))
    }

    pub(crate) fn instant(&self) -> Instant {
        self.origin + Duration::from_millis(self.passed_ms.load(Ordering::SeqCst))
    }
}

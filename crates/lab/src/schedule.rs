//! When a user's next operation is due, and from when its latency counts.
//!
//! In the **open model** think times run from when the operation before them was *due*, not from when it
//! was answered: however slow the server is, the user's timetable stands. Operations without a pause
//! between them are a burst; the first is due at the time of the timetable, each other one as soon as the
//! one before it is answered. A user whom a slow server has made late carries the delay through the burst:
//! every operation in it counts as begun that much earlier. So a stall shows in full in the latency of
//! everything that it has held up ("coordinated omission" is the name of the mistake of leaving it out).
//!
//! A timer that wakes a user late is the driver's fault, not the server's. That lag is returned, so that
//! a run with much of it can be called invalid, and it is not part of any latency, neither of the burst
//! that it delays nor of those after it.
//!
//! In the **closed model** think times run from the answer, and latency counts from the sending.

use std::time::{Duration, Instant};

/// How a user's next operation becomes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the module describes both")]
pub enum Model {
    Open,
    Closed,
}

/// The timetable of one user.
#[derive(Clone, Debug)]
pub struct Schedule {
    model: Model,
    /// When the burst's first operation is, or was, due.
    due: Instant,
    /// How late the user began the burst because the server had held it up.
    behind: Duration,
    /// How late the user is because the driver woke it late; the server is not blamed for it.
    driver_late: Duration,
    first_of_burst: bool,
}

/// From when an operation's latency counts, and how late the driver woke up for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Begin {
    pub due: Instant,
    /// `None` when the user did not have to be woken.
    pub lag: Option<Duration>,
}

impl Schedule {
    /// The first operation is due at `start`.
    #[must_use]
    pub fn new(model: Model, start: Instant) -> Self {
        Self { model, due: start, behind: Duration::ZERO, driver_late: Duration::ZERO, first_of_burst: true }
    }

    /// Thinks for `time`, at `now`.
    pub fn think(&mut self, time: Duration, now: Instant) {
        let from = match self.model {
            Model::Open => self.due,
            Model::Closed => now,
        };
        self.due = from + time;
        self.first_of_burst = true;
    }

    /// Moves the timetable by a wait that is nobody's fault: for a critical region, or after an error.
    pub fn shift(&mut self, time: Duration) {
        self.due += time;
    }

    /// When to wake up for the next operation; `None` when it is due already.
    #[must_use]
    pub fn wake_at(&self, now: Instant) -> Option<Instant> {
        (self.first_of_burst && self.due > now).then_some(self.due)
    }

    /// The next operation begins at `now`, after a sleep until [`Self::wake_at`] if `woken`.
    pub fn begin(&mut self, now: Instant, woken: bool) -> Begin {
        let late = now.saturating_duration_since(self.due);
        let mut lag = None;
        if self.first_of_burst {
            self.first_of_burst = false;
            if woken {
                lag = Some(late);
                self.driver_late = late;
            }
            self.driver_late = self.driver_late.min(late);
            self.behind = match self.model {
                Model::Open => late - self.driver_late,
                Model::Closed => Duration::ZERO,
            };
        }
        Begin { due: now.checked_sub(self.behind).unwrap_or(now), lag }
    }

    /// How far the user is behind the timetable at `now`.
    #[must_use]
    pub fn behind(&self, now: Instant) -> Duration {
        match self.model {
            Model::Open if self.first_of_burst => now.saturating_duration_since(self.due),
            Model::Open => self.behind,
            Model::Closed => Duration::ZERO,
        }
    }
}

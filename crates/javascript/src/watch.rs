//! When a call has to end.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use rquickjs::{Persistent, String as ScriptString};
use rustix::time::{ClockId, clock_gettime};

/// The engine is asked this often to end a call before it is clear that it does not. Ending takes once, except
/// where the script catches what nobody should be able to catch; the engine lets it, here and there.
const REFUSALS_MAX: u32 = 100;

/// Memory that is given back when time is up.
pub(crate) type Ballast = Persistent<ScriptString<'static>>;

/// Watches over the calls of one engine, which asks every 10,000 of its steps whether to go on.
pub(crate) struct Watch {
    limit: Cell<Duration>,
    /// The thread's processor time when the call was first seen; calls that end sooner read no clock.
    began: Cell<Option<Duration>>,
    expired: Cell<bool>,
    refusals: Cell<u32>,
    /// Without any memory the engine cannot make the error that ends a script, and throws one that the script
    /// can catch.
    ballast: RefCell<Option<Ballast>>,
    /// Called once for a script that cannot be ended.
    given_up: Box<dyn Fn()>,
}

impl Watch {
    pub(crate) fn new(given_up: Box<dyn Fn()>) -> Self {
        Self {
            limit: Cell::new(Duration::ZERO),
            began: Cell::new(None),
            expired: Cell::new(false),
            refusals: Cell::new(0),
            ballast: RefCell::new(None),
            given_up,
        }
    }

    /// A call begins that may take so much processor time.
    pub(crate) fn begin(&self, limit: Duration) {
        self.limit.set(limit);
        self.began.set(None);
        self.expired.set(false);
        self.refusals.set(0);
    }

    /// Whether the call that began last was told to end.
    pub(crate) fn has_expired(&self) -> bool {
        self.expired.get()
    }

    /// Holds this until time is up, instead of what was held.
    pub(crate) fn hold(&self, ballast: Option<Ballast>) {
        if let Ok(mut held) = self.ballast.try_borrow_mut() {
            *held = ballast;
        }
    }

    /// Processor time of the call that began last, in microseconds; 0 for one that ended soon.
    pub(crate) fn slow_us(&self) -> u32 {
        let took = self.began.get().map(|began| processor_time().saturating_sub(began));
        took.map_or(0, |took| u32::try_from(took.as_micros()).unwrap_or(u32::MAX).max(1))
    }

    /// Asked by the engine in the middle of a call: whether to end it.
    pub(crate) fn is_over(&self) -> bool {
        if self.expired.get() {
            self.refusals.set(self.refusals.get() + 1);
            if self.refusals.get() > REFUSALS_MAX {
                self.give_up();
            }
            return true;
        }
        let now = processor_time();
        match self.began.get() {
            None => self.began.set(Some(now)),
            Some(began) if now.saturating_sub(began) >= self.limit.get() => {
                self.expired.set(true);
                self.hold(None);
            }
            Some(_) => {}
        }
        self.expired.get()
    }

    /// The engine can be left only by returning to it, so the process ends.
    fn give_up(&self) -> ! {
        (self.given_up)();
        std::process::exit(0)
    }
}

/// Processor time that this thread has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

//! What all users of a run share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

use scrinium_lab_script::{MessageSize, Script};
use tokio::sync::watch;

use super::critical::CriticalRegion;
use crate::measure::Recorder;
use crate::schedule::Model;

/// When users stop: the first at `from`, the last after `spread`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) from: Instant,
    pub(crate) spread: Duration,
}

pub(super) struct Context {
    pub(super) script: Arc<Script>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) model: Model,
    pub(super) speedup: f64,
    pub(super) keep_alive: Option<Duration>,
    pub(super) seed: u64,
    /// Part of the ids of all documents that this run makes.
    pub(super) run: u32,
    /// Short names of all users.
    pub(super) people: Vec<String>,
    pub(super) normal_message_size: MessageSize,
    /// This part of the people gets that part of all messages.
    pub(super) recipient_skew: Option<(f64, f64)>,
    /// Documents that a replica of a user's brings at a time.
    pub(super) replicated_documents: u64,
    /// One user at a time between BeginCrit and EndCrit.
    pub(super) critical: CriticalRegion,
    /// Users that have done a first round.
    pub(super) first_rounds: AtomicU64,
    /// Users that have begun and not ended.
    pub(super) active: AtomicUsize,
    pub(super) stop: watch::Sender<Option<Stop>>,
}

impl Context {
    /// When this user stops, if that is known yet.
    pub(super) fn stop_of(&self, number: usize) -> Option<Instant> {
        let stop = *self.stop.borrow();
        stop.map(|stop| stop.of(number, self.people.len()))
    }

    /// Sleeps until then, or until the user has to stop.
    pub(super) async fn sleep_until(&self, until: Instant, number: usize) {
        let mut changes = self.stop.subscribe();
        loop {
            let until = self.stop_of(number).map_or(until, |stop| stop.min(until));
            tokio::select! {
                () = tokio::time::sleep_until(until.into()) => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
        }
    }
}

impl Stop {
    fn of(&self, number: usize, users: usize) -> Instant {
        #[allow(clippy::cast_precision_loss, reason = "users are few")]
        let fraction = number as f64 / users.max(1) as f64;
        self.from + self.spread.mul_f64(fraction.clamp(0.0, 1.0))
    }
}

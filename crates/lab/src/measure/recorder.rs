//! Where all simulated users record what they have measured.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_lab_script::Operation;
use serde::{Deserialize, Serialize};

use super::histogram::{SparseTimes, Times};
use super::recorded::{Recorded, RecordedFailure, RecordedOperation};
use crate::driver::{Failure, FailureKind};

/// At most this many failures of one operation and kind are kept word for word.
const KEPT_FAILURES: usize = 3;

/// One operation of one user, done.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Sample {
    pub operation: Operation,
    /// From when its latency counts.
    pub due: Instant,
    pub sent: Instant,
    pub answered: Instant,
}

/// Times of one operation in the hold phase.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct OperationTimes {
    /// From when it was due. Operations that ran into a time-out are in it.
    pub latency: Times,
    /// From when it was sent.
    pub service: Times,
    /// Right answers.
    pub answered: u64,
    pub failed: u64,
}

/// Failures of one operation and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FailureLog {
    pub count: u64,
    /// The first few, word for word.
    pub first: Vec<String>,
}

/// What happened in one second.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Second {
    pub answered: u64,
    pub failed: u64,
    pub time_outs: u64,
    pub latency: Times,
    pub lag_max: Duration,
}

/// What happened in one second, small enough to keep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct KeptSecond {
    pub answered: u64,
    pub failed: u64,
    pub time_outs: u64,
    pub latency: SparseTimes,
    pub mean_ms: f64,
    pub lag_max: Duration,
}

/// Shared by all users of a run.
pub struct Recorder {
    origin: Instant,
    operations: Vec<Mutex<OperationTimes>>,
    second: Mutex<Second>,
    lag: Mutex<Times>,
    beat: Mutex<Times>,
    failures: Mutex<BTreeMap<(Operation, FailureKind), FailureLog>>,
    /// The hold phase, in microseconds after `origin`; none yet: `u64::MAX`.
    hold_from_us: AtomicU64,
    hold_to_us: AtomicU64,
    answered_in_hold: AtomicU64,
    conflicts: AtomicU64,
    time_outs: AtomicU64,
    requests: AtomicU64,
    failed: AtomicU64,
}

impl Recorder {
    /// A recorder whose time begins now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
            operations: Operation::ALL.iter().map(|_| Mutex::default()).collect(),
            second: Mutex::default(),
            lag: Mutex::default(),
            beat: Mutex::default(),
            failures: Mutex::default(),
            hold_from_us: AtomicU64::new(u64::MAX),
            hold_to_us: AtomicU64::new(u64::MAX),
            answered_in_hold: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            time_outs: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// When its time began.
    #[must_use]
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// From then on operations count for the report.
    pub fn begin_hold(&self, from: Instant) {
        self.hold_from_us.store(self.us(from), Ordering::Relaxed);
    }

    /// Operations that are due from then on no longer count for the report.
    pub fn end_hold(&self, to: Instant) {
        self.hold_to_us.store(self.us(to), Ordering::Relaxed);
    }

    /// An operation was answered rightly.
    pub fn answered(&self, sample: &Sample) {
        let latency = sample.answered.saturating_duration_since(sample.due);
        self.requests.fetch_add(1, Ordering::Relaxed);
        if self.in_hold(sample.due)
            && let Some(times) = self.operations.get(sample.operation.index())
        {
            let mut times = times.lock();
            times.answered += 1;
            times.latency.record(latency);
            times.service.record(sample.answered.saturating_duration_since(sample.sent));
        }
        if self.in_hold(sample.answered) {
            self.answered_in_hold.fetch_add(1, Ordering::Relaxed);
        }
        let mut second = self.second.lock();
        second.answered += 1;
        second.latency.record(latency);
    }

    /// An operation failed. A time-out counts among the latencies with the time it took, which is the least
    /// that it would have taken; other failures have no latency.
    pub fn failed(&self, sample: &Sample, failure: &Failure) {
        let latency = sample.answered.saturating_duration_since(sample.due);
        let timed_out = failure.kind == FailureKind::TimeOut;
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.time_outs.fetch_add(u64::from(timed_out), Ordering::Relaxed);
        if self.in_hold(sample.due)
            && let Some(times) = self.operations.get(sample.operation.index())
        {
            let mut times = times.lock();
            times.failed += 1;
            if timed_out {
                times.latency.record(latency);
            }
        }
        let mut failures = self.failures.lock();
        let log = failures.entry((sample.operation, failure.kind)).or_default();
        log.count += 1;
        if log.first.len() < KEPT_FAILURES {
            log.first.push(failure.detail.clone());
        }
        drop(failures);
        let mut second = self.second.lock();
        second.failed += 1;
        second.time_outs += u64::from(timed_out);
        if timed_out {
            second.latency.record(latency);
        }
    }

    /// A document had been changed by someone else; the user reads it again.
    pub fn conflict(&self) {
        self.conflicts.fetch_add(1, Ordering::Relaxed);
    }

    /// A timer woke a user so much too late.
    pub fn lag(&self, lag: Duration, now: Instant) {
        if self.in_hold(now) {
            self.lag.lock().record(lag);
        }
        let mut second = self.second.lock();
        second.lag_max = second.lag_max.max(lag);
    }

    /// The heart of the driver beat so much too late.
    pub fn beat(&self, late: Duration, now: Instant) {
        if self.in_hold(now) {
            self.beat.lock().record(late);
        }
        let mut second = self.second.lock();
        second.lag_max = second.lag_max.max(late);
    }

    /// What happened since the last call.
    pub fn take_second(&self) -> KeptSecond {
        let mut second = self.second.lock();
        let kept = KeptSecond {
            answered: second.answered,
            failed: second.failed,
            time_outs: second.time_outs,
            latency: second.latency.sparse(),
            mean_ms: second.latency.summary().mean_ms,
            lag_max: second.lag_max,
        };
        second.latency.clear();
        (second.answered, second.failed, second.time_outs) = (0, 0, 0);
        second.lag_max = Duration::ZERO;
        kept
    }

    /// The times of each operation that was used in the hold phase.
    #[must_use]
    pub fn operations(&self) -> Vec<(Operation, OperationTimes)> {
        let all = Operation::ALL.iter().zip(&self.operations);
        all.map(|(operation, times)| (*operation, times.lock().clone()))
            .filter(|(_, times)| times.answered + times.failed > 0)
            .collect()
    }

    /// All failures of the run.
    #[must_use]
    pub fn failures(&self) -> Vec<(Operation, FailureKind, FailureLog)> {
        let failures = self.failures.lock();
        failures.iter().map(|((operation, kind), log)| (*operation, *kind, log.clone())).collect()
    }

    /// How late timers woke users in the hold phase.
    #[must_use]
    pub fn lag_times(&self) -> Times {
        self.lag.lock().clone()
    }

    /// How late the driver's heart beat in the hold phase, whether users were woken or not.
    #[must_use]
    pub fn beat_times(&self) -> Times {
        self.beat.lock().clone()
    }

    /// Everything, for a wire.
    #[must_use]
    pub fn recorded(&self) -> Recorded {
        let operations = self.operations().into_iter().map(|(operation, times)| RecordedOperation {
            operation: operation.index(),
            latency: times.latency.packed(),
            service: times.service.packed(),
            answered: times.answered,
            failed: times.failed,
        });
        let failures = self.failures().into_iter().map(|(operation, kind, log)| RecordedFailure {
            operation: operation.index(),
            kind,
            log,
        });
        Recorded {
            operations: operations.collect(),
            failures: failures.collect(),
            lag: self.lag_times().packed(),
            beat: self.beat_times().packed(),
            answered_in_hold: self.answered_in_hold(),
            totals: self.totals(),
        }
    }

    /// Adds what another process has recorded. Operations that this version does not know are passed over;
    /// processes of different versions do not come together.
    pub fn add(&self, other: &Recorded) {
        for from in &other.operations {
            let Some(into) = self.operations.get(from.operation) else { continue };
            let mut into = into.lock();
            into.answered += from.answered;
            into.failed += from.failed;
            from.latency.add_to(&mut into.latency);
            from.service.add_to(&mut into.service);
        }
        for from in &other.failures {
            let Some(operation) = Operation::ALL.get(from.operation) else { continue };
            let mut failures = self.failures.lock();
            let into = failures.entry((*operation, from.kind)).or_default();
            into.count += from.log.count;
            let space = KEPT_FAILURES.saturating_sub(into.first.len());
            into.first.extend(from.log.first.iter().take(space).cloned());
        }
        other.lag.add_to(&mut self.lag.lock());
        other.beat.add_to(&mut self.beat.lock());
        self.answered_in_hold.fetch_add(other.answered_in_hold, Ordering::Relaxed);
        self.conflicts.fetch_add(other.totals.conflicts, Ordering::Relaxed);
        self.time_outs.fetch_add(other.totals.time_outs, Ordering::Relaxed);
        self.requests.fetch_add(other.totals.requests, Ordering::Relaxed);
        self.failed.fetch_add(other.totals.failed, Ordering::Relaxed);
    }

    /// Right answers that came in the hold phase.
    #[must_use]
    pub fn answered_in_hold(&self) -> u64 {
        self.answered_in_hold.load(Ordering::Relaxed)
    }

    /// Conflicts, time-outs, requests and failures of the whole run.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            conflicts: self.conflicts.load(Ordering::Relaxed),
            time_outs: self.time_outs.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    fn us(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.origin).as_micros()).unwrap_or(u64::MAX)
    }

    fn in_hold(&self, at: Instant) -> bool {
        let at = self.us(at);
        at >= self.hold_from_us.load(Ordering::Relaxed) && at < self.hold_to_us.load(Ordering::Relaxed)
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl KeptSecond {
    /// Adds what another driver did in the same second.
    pub fn merge(&mut self, other: &Self) {
        let answered = self.answered + other.answered;
        if answered > 0 {
            #[allow(clippy::cast_precision_loss, reason = "answers of a second are few")]
            let share = other.answered as f64 / answered as f64;
            self.mean_ms += (other.mean_ms - self.mean_ms) * share;
        }
        self.answered = answered;
        self.failed += other.failed;
        self.time_outs += other.time_outs;
        self.latency.merge(&other.latency);
        self.lag_max = self.lag_max.max(other.lag_max);
    }
}

/// Counts of a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Totals {
    pub conflicts: u64,
    pub time_outs: u64,
    pub requests: u64,
    pub failed: u64,
}

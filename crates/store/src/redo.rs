//! What a restart would have to do again, how long that would take, and how much of it there may be.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{LogFavor, StoreOptions};

/// Taken where nothing was measured yet, in bytes a second.
const ASSUMED_SPEED: u64 = 64 << 20;

/// Less than this says nothing about speed.
const MEASURABLE_BYTES: u64 = 16 << 20;

/// What a restart has done again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Replayed {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) elapsed: Duration,
}

impl Replayed {
    /// Bytes a second, if it was enough to tell.
    pub(crate) fn speed(&self) -> Option<u64> {
        let elapsed_us = u64::try_from(self.elapsed.as_micros()).unwrap_or(u64::MAX).max(1);
        (self.bytes >= MEASURABLE_BYTES).then(|| {
            u64::try_from(u128::from(self.bytes) * 1_000_000 / u128::from(elapsed_us)).unwrap_or(u64::MAX)
        })
    }
}

/// The bound, and what is known of this machine's speed.
#[derive(Debug)]
pub(crate) struct ReplayEstimate {
    /// A bound that was set as a number; 0 if what is favored says it.
    chosen_bytes: u64,
    /// The largest size of the log.
    log_max_bytes: Option<u64>,
    limit_bytes: AtomicU64,
    /// Bytes a second of this restart, or else of an earlier one; 0 if nothing was measured.
    replay_speed: AtomicU64,
    applied_bytes: AtomicU64,
    applied_us: AtomicU64,
    pub(crate) restart: Replayed,
}

impl ReplayEstimate {
    pub(crate) fn new(options: &StoreOptions, restart: Replayed, earlier_speed: Option<u64>) -> Self {
        let this = Self {
            chosen_bytes: options.checkpoint_log_bytes,
            log_max_bytes: options.log_max_bytes,
            limit_bytes: AtomicU64::new(0),
            replay_speed: AtomicU64::new(restart.speed().or(earlier_speed).unwrap_or(0)),
            applied_bytes: AtomicU64::new(0),
            applied_us: AtomicU64::new(0),
            restart,
        };
        this.favor(options.log_favor);
        this
    }

    /// Sets another bound from now on, unless it was set as a number. A log of limited size is half full at most.
    pub(crate) fn favor(&self, favor: LogFavor) {
        let wanted = if self.chosen_bytes > 0 { self.chosen_bytes } else { favor.redo_bytes() };
        let limit = self.log_max_bytes.map_or(wanted, |max_bytes| wanted.min(max_bytes / 2));
        self.limit_bytes.store(limit, Ordering::Relaxed);
    }

    /// With this many bytes to be done again, a checkpoint is made.
    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Notes how long applying took while running, which is all that is known before the first restart.
    pub(crate) fn applied(&self, bytes: u64, elapsed: Duration) {
        self.applied_bytes.fetch_add(bytes, Ordering::Relaxed);
        let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        self.applied_us.fetch_add(elapsed_us, Ordering::Relaxed);
    }

    /// Bytes that a restart does again in a second.
    pub(crate) fn speed(&self) -> u64 {
        match self.replay_speed.load(Ordering::Relaxed) {
            0 => self.applying_speed().unwrap_or(ASSUMED_SPEED),
            speed => speed,
        }
    }

    fn applying_speed(&self) -> Option<u64> {
        let bytes = self.applied_bytes.load(Ordering::Relaxed);
        let elapsed = Duration::from_micros(self.applied_us.load(Ordering::Relaxed));
        Replayed { records: 0, bytes, elapsed }.speed()
    }
}

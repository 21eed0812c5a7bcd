//! How often something happens: in the last minute, and in the busiest minute so far.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::{Counter, Registry};

/// Seconds that the rate looks back.
const WINDOW_SECONDS: u64 = 60;

/// More slots than seconds looked back, so that a slot is never read while it is taken again.
const SLOTS: usize = 64;

/// A slot holds the number of its second in the upper bits and its events in the lower ones.
const COUNT_BITS: u32 = 32;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// Events per minute over a sliding window, and the highest value that it had. Clones share it.
#[derive(Clone, Debug)]
pub struct Rate {
    shared: Arc<SharedRate>,
}

#[derive(Debug)]
struct SharedRate {
    started: Instant,
    slots: [AtomicU64; SLOTS],
    total: Counter,
    peak: AtomicU64,
}

impl Rate {
    /// Registers `NAME.Total`, `NAME.PerMinute` and `NAME.PerMinute.Peak`, and counts into them.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a gauge needs no more than 53 bits")]
    pub fn register(registry: &Registry, name: &str) -> Self {
        let shared = SharedRate {
            started: Instant::now(),
            slots: std::array::from_fn(|_| AtomicU64::new(0)),
            total: registry.counter(&format!("{name}.Total")),
            peak: AtomicU64::new(0),
        };
        let rate = Self { shared: Arc::new(shared) };
        let of_gauge = rate.clone();
        registry.gauge(&format!("{name}.PerMinute"), move || of_gauge.per_minute() as f64);
        let of_gauge = rate.clone();
        registry.gauge(&format!("{name}.PerMinute.Peak"), move || of_gauge.peak() as f64);
        rate
    }

    /// Counts one event now.
    pub fn record(&self) {
        self.record_at(self.now_second());
    }

    /// Events of the last 60 seconds, the second that is running included.
    #[must_use]
    pub fn per_minute(&self) -> u64 {
        self.per_minute_at(self.now_second())
    }

    /// The highest number of events in any 60 seconds so far.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.per_minute().max(self.shared.peak.load(Ordering::Relaxed))
    }

    /// Seconds since the start, from 1, so that an empty slot belongs to no second.
    fn now_second(&self) -> u64 {
        self.shared.started.elapsed().as_secs() + 1
    }

    fn record_at(&self, second: u64) {
        self.shared.total.add(1);
        let Some(slot) = self.shared.slots.get(slot_of(second)) else { return };
        let mut current = slot.load(Ordering::Relaxed);
        loop {
            let first_of_second = current >> COUNT_BITS != second;
            let next = if first_of_second {
                self.note_peak_before(second);
                second << COUNT_BITS | 1
            } else {
                current + 1
            };
            match slot.compare_exchange_weak(current, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => current = other,
            }
        }
    }

    /// A window is fullest when it ends with an event, so it is enough to look when a new second begins
    /// at the one that ended with the latest event before, while its slots are still there.
    fn note_peak_before(&self, second: u64) {
        let seconds = self.shared.slots.iter().map(|slot| slot.load(Ordering::Relaxed) >> COUNT_BITS);
        let latest = seconds.filter(|other| *other < second).max().unwrap_or_default();
        self.shared.peak.fetch_max(self.per_minute_at(latest), Ordering::Relaxed);
    }

    fn per_minute_at(&self, second: u64) -> u64 {
        let counted = |slot: &AtomicU64| {
            let value = slot.load(Ordering::Relaxed);
            let of = value >> COUNT_BITS;
            let within = of <= second && of + WINDOW_SECONDS > second;
            if within { value & COUNT_MASK } else { 0 }
        };
        self.shared.slots.iter().map(counted).sum()
    }
}

#[allow(clippy::cast_possible_truncation, reason = "only the lowest bits count")]
fn slot_of(second: u64) -> usize {
    second as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_counting_by_hand(steps in prop::collection::vec((0_u64..40, 1_usize..5), 1..60)) {
            let rate = Rate::register(&Registry::new(), "Server.Trans");
            let mut second = 1;
            let mut events: Vec<u64> = Vec::new();
            let in_window = |events: &[u64], at: u64| {
                events.iter().filter(|event| **event <= at && **event + WINDOW_SECONDS > at).count() as u64
            };
            for (wait, count) in steps {
                second += wait;
                for _ in 0..count {
                    rate.record_at(second);
                    events.push(second);
                }
                prop_assert_eq!(rate.per_minute_at(second), in_window(&events, second));
            }
            let highest = events.iter().map(|at| in_window(&events, *at)).max().unwrap_or_default();
            let seen = rate.shared.peak.load(Ordering::Relaxed).max(rate.per_minute_at(second));
            prop_assert_eq!(seen, highest);
            prop_assert_eq!(rate.shared.total.value(), events.len() as u64);
        }
    }
}

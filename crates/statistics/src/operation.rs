//! Latency of one kind of operation, as a histogram of microseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::Mutex;

/// Threads record into different shards, so that they rarely wait for each other.
const SHARDS: usize = 4;

/// One hour; anything longer is counted as this.
const HIGHEST_MICROSECONDS: u64 = 3_600_000_000;

/// Two digits keep a histogram at some 30 KB and its percentiles within 1 %.
const SIGNIFICANT_DIGITS: u8 = 2;

/// The histogram of one operation's latency. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    shards: Arc<[Mutex<Shard>; SHARDS]>,
}

#[derive(Debug, Default)]
struct Shard {
    /// Made at the first record, since most operations of most servers never run.
    histogram: Option<Histogram<u32>>,
    total_us: u64,
}

impl Operation {
    /// Starts a timer that records when it is dropped.
    #[must_use]
    pub fn start(&self) -> Timer {
        Timer { operation: self.clone(), started: Instant::now() }
    }

    /// Records one operation that took `elapsed`.
    pub fn record(&self, elapsed: Duration) {
        let microseconds = u64::try_from(elapsed.as_micros()).unwrap_or(HIGHEST_MICROSECONDS);
        let microseconds = microseconds.clamp(1, HIGHEST_MICROSECONDS);
        let Some(shard) = self.shards.get(thread_shard()) else { return };
        let mut shard = shard.lock();
        shard.total_us = shard.total_us.saturating_add(microseconds);
        if shard.histogram.is_none() {
            shard.histogram = Histogram::new_with_max(HIGHEST_MICROSECONDS, SIGNIFICANT_DIGITS).ok();
        }
        if let Some(histogram) = &mut shard.histogram {
            histogram.saturating_record(microseconds);
        }
    }

    /// Count, times and percentiles of everything recorded so far.
    #[must_use]
    pub fn summary(&self) -> OperationSummary {
        let mut merged: Option<Histogram<u32>> = None;
        let mut total_us = 0_u64;
        for shard in self.shards.iter() {
            let shard = shard.lock();
            total_us = total_us.saturating_add(shard.total_us);
            let Some(histogram) = &shard.histogram else { continue };
            match &mut merged {
                None => merged = Some(histogram.clone()),
                // Both have the same bounds, so that adding cannot fail.
                Some(sum) => drop(sum.add(histogram)),
            }
        }
        merged.map_or_else(OperationSummary::default, |histogram| OperationSummary::of(&histogram, total_us))
    }
}

/// What an operation's histogram says, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct OperationSummary {
    pub count: u64,
    pub total_us: u64,
    pub min_us: u64,
    pub average_us: f64,
    pub p50_us: u64,
    pub p95_us: u64,
    pub p99_us: u64,
    pub max_us: u64,
}

impl OperationSummary {
    #[allow(clippy::cast_precision_loss, reason = "an average needs no more than 53 bits")]
    fn of(histogram: &Histogram<u32>, total_us: u64) -> Self {
        let count = histogram.len();
        Self {
            count,
            total_us,
            min_us: histogram.min(),
            average_us: if count == 0 { 0.0 } else { total_us as f64 / count as f64 },
            p50_us: histogram.value_at_quantile(0.50),
            p95_us: histogram.value_at_quantile(0.95),
            p99_us: histogram.value_at_quantile(0.99),
            max_us: histogram.max(),
        }
    }
}

/// Measures from its making until it is dropped.
#[derive(Debug)]
pub struct Timer {
    operation: Operation,
    started: Instant,
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.operation.record(self.started.elapsed());
    }
}

fn thread_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    SHARD.with(|shard| *shard)
}

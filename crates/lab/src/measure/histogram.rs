//! Histograms of times, in microseconds.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use scrinium_lab_report::TimesSummary;
use serde::{Deserialize, Serialize};

/// One hour; anything longer is counted as this.
const HIGHEST_US: u64 = 3_600_000_000;

/// Percentiles are within 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram of times that takes no memory until it is used.
#[derive(Clone, Debug, Default)]
pub struct Times {
    histogram: Option<Histogram<u64>>,
    total_us: u64,
}

impl Times {
    /// Adds one time.
    pub fn record(&mut self, time: Duration) {
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(HIGHEST_US).clamp(1, HIGHEST_US);
        self.add(microseconds, 1);
    }

    fn add(&mut self, microseconds: u64, count: u64) {
        if self.histogram.is_none() {
            self.histogram = Histogram::new_with_max(HIGHEST_US, SIGNIFICANT_DIGITS).ok();
        }
        self.total_us = self.total_us.saturating_add(microseconds.saturating_mul(count));
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record_n(microseconds, count);
        }
    }

    /// Adds all times of another histogram.
    pub fn merge(&mut self, other: &Self) {
        let Some(from) = &other.histogram else { return };
        self.total_us = self.total_us.saturating_add(other.total_us);
        match &mut self.histogram {
            None => self.histogram = Some(from.clone()),
            // Both have the same bounds, so that adding cannot fail.
            Some(into) => drop(into.add(from)),
        }
    }

    /// Forgets all times, and keeps the memory.
    pub fn clear(&mut self) {
        self.total_us = 0;
        if let Some(histogram) = &mut self.histogram {
            histogram.reset();
        }
    }

    /// The times that were recorded, as few pairs of time and count.
    #[must_use]
    pub fn sparse(&self) -> SparseTimes {
        let pairs = self.histogram.iter().flat_map(|histogram| {
            histogram.iter_recorded().map(|step| {
                let time = u32::try_from(step.value_iterated_to()).unwrap_or(u32::MAX);
                (time, u32::try_from(step.count_at_value()).unwrap_or(u32::MAX))
            })
        });
        SparseTimes(pairs.collect())
    }

    /// All of it, for a wire.
    #[must_use]
    pub fn packed(&self) -> PackedTimes {
        PackedTimes { times: self.sparse(), total_us: self.total_us }
    }

    /// What the histogram says.
    #[must_use]
    pub fn summary(&self) -> TimesSummary {
        let Some(histogram) = self.histogram.as_ref().filter(|histogram| !histogram.is_empty()) else {
            return TimesSummary::default();
        };
        let at = |quantile| milliseconds(histogram.value_at_quantile(quantile));
        let count = histogram.len();
        TimesSummary {
            count,
            mean_ms: milliseconds(self.total_us) / float(count),
            min_ms: milliseconds(histogram.min()),
            p50_ms: at(0.50),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            max_ms: milliseconds(histogram.max()),
        }
    }
}

/// A histogram of one second, small enough to keep thousands of them: pairs of microseconds and count. Both
/// ends of a wire take them as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SparseTimes(Vec<(u32, u32)>);

/// A histogram as it goes over a wire. The total is next to the pairs, so that the mean stays exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PackedTimes {
    pub times: SparseTimes,
    pub total_us: u64,
}

impl PackedTimes {
    /// What the histogram says.
    #[must_use]
    pub fn summary(&self) -> TimesSummary {
        let mut times = Times::default();
        self.add_to(&mut times);
        times.summary()
    }

    /// Adds its times to a histogram.
    pub fn add_to(&self, times: &mut Times) {
        let total_us = times.total_us.saturating_add(self.total_us);
        self.times.add_to(times);
        times.total_us = total_us;
    }
}

impl SparseTimes {
    /// Adds all times of another one.
    pub fn merge(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        let mut sum: BTreeMap<u32, u32> = self.0.iter().copied().collect();
        for (microseconds, count) in &other.0 {
            let here = sum.entry(*microseconds).or_default();
            *here = here.saturating_add(*count);
        }
        self.0 = sum.into_iter().collect();
    }

    /// Adds its times to a histogram.
    pub fn add_to(&self, times: &mut Times) {
        for (microseconds, count) in &self.0 {
            times.add(u64::from(*microseconds), u64::from(*count));
        }
    }
}

fn milliseconds(microseconds: u64) -> f64 {
    float(microseconds) / 1000.0
}

#[allow(clippy::cast_precision_loss, reason = "times and counts need no more than 53 bits")]
fn float(value: u64) -> f64 {
    value as f64
}

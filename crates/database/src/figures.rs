//! Numbers of statistics.

/// A count as statistics have it.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "a statistic needs no more than 53 bits")]
pub const fn float(value: u64) -> f64 {
    value as f64
}

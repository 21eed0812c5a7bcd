//! A value and between what it lies.

use serde::{Deserialize, Serialize};

/// Which end of a range is asked for. `Low` is the lower number, whether that is the better one or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Case {
    Low,
    Expected,
    High,
}

impl Case {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Low, Self::Expected, Self::High];
}

/// A value with the lowest and the highest that it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Range {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Range {
    /// A value that is known.
    #[must_use]
    pub const fn exactly(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// Ordered, whatever order the three come in.
    #[must_use]
    pub fn of(low: f64, value: f64, high: f64) -> Self {
        Self { value, low: low.min(value).min(high), high: high.max(value).max(low) }
    }

    /// A value that may be wrong by a part of itself: 0.1 for 10 %.
    #[must_use]
    pub fn within(value: f64, part: f64) -> Self {
        Self::of(value / (1.0 + part), value, value * (1.0 + part))
    }

    /// Mean, least and most of some values; `None` of none.
    #[must_use]
    pub fn over(values: &[f64]) -> Option<Self> {
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        #[allow(clippy::cast_precision_loss, reason = "a few values")]
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(Self { value: mean, low, high })
    }

    /// One of the three.
    #[must_use]
    pub fn at(&self, case: Case) -> f64 {
        match case {
            Case::Low => self.low,
            Case::Expected => self.value,
            Case::High => self.high,
        }
    }

    /// Each of the three through a function.
    #[must_use]
    pub fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        Self::of(change(self.low), change(self.value), change(self.high))
    }
}

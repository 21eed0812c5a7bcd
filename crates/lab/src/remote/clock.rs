//! How far two clocks are apart: a question and its answer bound it from both sides.

use serde::{Deserialize, Serialize};

/// One question and its answer, in microseconds: asked and answered on one clock, read on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Exchange {
    pub asked_us: u64,
    pub there_us: u64,
    pub answered_us: u64,
}

/// What the other clock shows more than ours, and by how much that may be wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ClockReading {
    pub offset_us: i64,
    pub uncertainty_us: u64,
}

impl ClockReading {
    /// The reading of the quickest of some exchanges: it leaves the least room. `None` of none.
    #[must_use]
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let quickest =
            exchanges.iter().min_by_key(|exchange| exchange.answered_us.saturating_sub(exchange.asked_us))?;
        let took_us = quickest.answered_us.saturating_sub(quickest.asked_us);
        let middle_us = quickest.asked_us + took_us / 2;
        Some(Self {
            offset_us: quickest.there_us.cast_signed().wrapping_sub(middle_us.cast_signed()),
            uncertainty_us: took_us.div_ceil(2),
        })
    }

    /// What the other clock shows when ours shows this.
    #[must_use]
    pub fn there_us(&self, here_us: u64) -> u64 {
        here_us.saturating_add_signed(self.offset_us)
    }
}

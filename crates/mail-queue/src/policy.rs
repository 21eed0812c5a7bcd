//! When an entry is tried again, and when its sender hears of it.

use crate::random::Random;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// The times of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePolicy {
    /// The waits after the first attempt, the second and so on; the last one goes on. RFC 5321, section 4.5.4.1 asks
    /// for half an hour in the long run; the first is short, because greylisting wants to see a second attempt.
    pub retries_ms: Vec<u64>,
    /// A wait is up to this much shorter or longer, so that what failed together does not return together.
    pub jitter_percent: u64,
    /// A message is given up after this (RFC 5321, section 4.5.4.1: 4 to 5 days).
    pub lifetime_ms: u64,
    /// A message from the null sender is given up after this.
    pub report_lifetime_ms: u64,
    /// A sender hears once that a message is delayed, after this.
    pub delay_notice_ms: u64,
    /// An entry whose destination is closed gets no attempt at the end of its lifetime. After this much more it is
    /// given up without one.
    pub expiry_grace_ms: u64,
    /// A dead entry is removed after this.
    pub dead_ms: u64,
    /// When the router began. After a long stop each entry gets an attempt before it is given up.
    pub serving_since_ms: u64,
}

impl Default for QueuePolicy {
    fn default() -> Self {
        Self {
            retries_ms: [5, 10, 20, 40, 60, 120, 240].map(|minutes| minutes * MINUTE_MS).to_vec(),
            jitter_percent: 10,
            lifetime_ms: 5 * DAY_MS,
            report_lifetime_ms: 2 * DAY_MS,
            delay_notice_ms: 4 * HOUR_MS,
            expiry_grace_ms: HOUR_MS,
            dead_ms: 30 * DAY_MS,
            serving_since_ms: 0,
        }
    }
}

impl QueuePolicy {
    /// When an entry that was tried `attempts` times is due again.
    pub fn next_due_ms(&self, attempts: u32, now_ms: u64, random: &mut Random) -> u64 {
        let number = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX);
        let wait =
            self.retries_ms.get(number).or_else(|| self.retries_ms.last()).copied().unwrap_or(30 * MINUTE_MS);
        now_ms.saturating_add(random.jittered(wait.max(1), self.jitter_percent))
    }

    /// When an attempt that the server's end cut off is repeated: at once, and later if it is cut off again and again,
    /// because the entry may be the reason.
    #[must_use]
    pub fn interrupted_due_ms(interruptions: u32, now_ms: u64) -> u64 {
        let wait = match interruptions {
            0 | 1 => 0,
            number => 1_000_u64.saturating_mul(1 << (2 * (number - 2)).min(20)).min(5 * MINUTE_MS),
        };
        now_ms.saturating_add(wait)
    }

    /// How long a message from this kind of sender is tried.
    #[must_use]
    pub fn lifetime_of(&self, is_report: bool) -> u64 {
        if is_report { self.report_lifetime_ms } else { self.lifetime_ms }
    }
}

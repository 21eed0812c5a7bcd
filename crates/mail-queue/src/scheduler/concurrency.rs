//! How many attempts at once a destination bears, as it turns out.

/// What an attempt tells of its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It took the message.
    Delivered,
    /// It was reached and answered; what it refused was a recipient or a message.
    Reached,
    /// It was reached, and asks for patience or broke off.
    Throttled,
    /// It was not reached, or takes no mail.
    Unreachable,
    /// Nothing: the trouble was ours, or no connection was needed.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Not reached yet, or not the last time: one attempt finds out.
    Probing,
    Open,
    ClosedUntil(u64),
}

/// The places of a destination. A delivery adds a part of one, so that a full round adds one; a refusal halves them, once for
/// all attempts that were under way together; a destination that is not reached is closed, and then probed by one attempt.
#[derive(Clone, Debug)]
pub struct Concurrency {
    access: Access,
    limit: u32,
    first: u32,
    most: u32,
    /// Deliveries since the limit grew.
    credit: u32,
    /// Attempts that began before this have been answered for.
    decreased_ms: Option<u64>,
    /// Attempts in a row that did not reach it, and how many close it.
    failed: u32,
    cohort: u32,
    unreached: u32,
}

impl Concurrency {
    /// Of a destination that was never reached.
    #[must_use]
    pub fn new(first: u32, most: u32) -> Self {
        let most = most.max(1);
        let first = first.clamp(1, most);
        Self {
            access: Access::Probing,
            limit: first,
            first,
            most,
            credit: 0,
            decreased_ms: None,
            failed: 0,
            cohort: 1,
            unreached: 0,
        }
    }

    /// Attempts that may be under way at once.
    #[must_use]
    pub fn limit(&self) -> u32 {
        match self.access {
            Access::Probing => 1,
            Access::Open => self.limit,
            Access::ClosedUntil(_) => 0,
        }
    }

    pub(super) fn is_probing(&self) -> bool {
        self.access == Access::Probing
    }

    pub(super) fn closed_until_ms(&self) -> Option<u64> {
        match self.access {
            Access::ClosedUntil(until_ms) => Some(until_ms),
            _ => None,
        }
    }

    /// Times in a row that it was not reached.
    #[must_use]
    pub fn unreached(&self) -> u32 {
        self.unreached
    }

    /// It has answered.
    pub fn reached(&mut self) {
        self.failed = 0;
        if self.access != Access::Open {
            self.access = Access::Open;
            self.credit = 0;
            if self.unreached > 0 {
                // It comes back, and everybody who waited for it.
                self.limit = self.first.min(self.limit.max(1));
            }
            self.unreached = 0;
        }
    }

    /// Learns from an attempt that began at `started_ms`. If the destination is to be closed, gives how many times in a row it
    /// was not reached.
    pub fn learn(&mut self, effect: Effect, started_ms: u64, now_ms: u64) -> Option<u32> {
        match effect {
            Effect::Nothing => {}
            Effect::Reached => self.reached(),
            Effect::Delivered => {
                self.reached();
                self.credit += 1;
                if self.credit >= self.limit {
                    self.credit = 0;
                    self.limit = (self.limit + 1).min(self.most);
                }
            }
            Effect::Throttled | Effect::Unreachable if self.closed_until_ms().is_some() => {}
            Effect::Throttled if self.is_answered_for(started_ms) => {}
            Effect::Throttled => {
                self.reached();
                self.halve(now_ms);
            }
            Effect::Unreachable => return self.miss(started_ms, now_ms),
        }
        None
    }

    /// Of several attempts one that is not reached may be chance. When all that were under way together fail, it is not.
    fn miss(&mut self, started_ms: u64, now_ms: u64) -> Option<u32> {
        if self.failed == 0 {
            self.cohort = self.limit().max(1);
        }
        self.failed = self.failed.saturating_add(1);
        if self.failed < self.cohort {
            if !self.is_answered_for(started_ms) {
                self.halve(now_ms);
            }
            return None;
        }
        self.failed = 0;
        self.decreased_ms = Some(now_ms);
        self.unreached = self.unreached.saturating_add(1);
        Some(self.unreached)
    }

    fn halve(&mut self, now_ms: u64) {
        self.limit = (self.limit / 2).max(1);
        self.credit = 0;
        self.decreased_ms = Some(now_ms);
    }

    fn is_answered_for(&self, started_ms: u64) -> bool {
        self.decreased_ms.is_some_and(|decreased_ms| started_ms < decreased_ms)
    }

    pub(super) fn close(&mut self, until_ms: u64) {
        self.access = Access::ClosedUntil(until_ms);
    }

    /// Its pause is over.
    pub(super) fn open(&mut self, now_ms: u64) {
        if let Access::ClosedUntil(_) = self.access {
            self.access = Access::Probing;
            self.limit = self.first;
            self.decreased_ms = Some(now_ms);
        }
    }
}

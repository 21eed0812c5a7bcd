//! How long members wait for what, in milliseconds of each member's own clock that never jumps.

/// All waits of a group. Every member of a group has the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// How often the leader shows that it is there.
    pub beat_ms: u64,
    /// How long after an accepted beat was sent the leader may answer from its own store.
    pub lease_ms: u64,
    /// How long a member must have seen the same beat before it claims.
    pub claim_after_ms: u64,
    /// How much longer at most, by chance, so that two seldom claim at once.
    pub claim_spread_ms: u64,
    /// How often a follower looks whether there is something new, if nothing wakes it.
    pub look_ms: u64,
    /// When a call of the engine counts as not answered.
    pub call_ms: u64,
    /// The pause before an append without an answer is tried again.
    pub retry_ms: u64,
    /// When those who wait for an append without an answer hear that nobody knows.
    pub unknown_after_ms: u64,
    /// How long a reader waits until it is refused.
    pub read_ms: u64,
    /// How often a member says how far it is, and the leader lets go of entries.
    pub report_ms: u64,
    /// A member that has said nothing for so long is not waited for when entries are let go of.
    pub absent_after_ms: u64,
    /// Whether leases are used. Without them each reader that wants the latest asks the engine.
    pub leases: bool,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            beat_ms: 1_000,
            lease_ms: 3_000,
            claim_after_ms: 4_000,
            claim_spread_ms: 500,
            look_ms: 500,
            call_ms: 1_500,
            retry_ms: 200,
            unknown_after_ms: 30_000,
            read_ms: 5_000,
            report_ms: 2_000,
            absent_after_ms: 60_000,
            leases: true,
        }
    }
}

/// Waits that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cluster's times contradict each other: {0}")]
pub struct TimingError(&'static str);

impl Timing {
    /// Whether leases end before claims begin, with clocks that run within a tenth of each other.
    ///
    /// # Errors
    /// [`TimingError`]: what is wrong.
    pub fn check(&self) -> Result<(), TimingError> {
        let periods = [self.beat_ms, self.look_ms, self.call_ms, self.retry_ms, self.report_ms];
        if periods.contains(&0) {
            return Err(TimingError("each period must be at least a millisecond"));
        }
        if self.beat_ms.saturating_mul(2) > self.lease_ms {
            return Err(TimingError("a lease must last for two beats at least"));
        }
        // The holder's clock may run slow by a tenth while a claimant's runs fast by one.
        if self.leases && self.lease_ms.saturating_mul(11) >= self.claim_after_ms.saturating_mul(9) {
            return Err(TimingError("claims must begin later than leases end, by a fifth and more"));
        }
        Ok(())
    }
}

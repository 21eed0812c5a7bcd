//! From one occurrence to the next.

use super::period::Batch;
use super::{Rule, STEPS_MAX, WALK_MAX};
use crate::civil::CivilTime;

/// Occurrences of a rule, in order.
#[derive(Clone, Debug)]
pub struct RuleWalk<'a> {
    rule: &'a Rule,
    /// Nothing before this is given.
    from: i64,
    /// The next period to look at; `None` when there are no more.
    period: Option<i64>,
    batch: Batch,
    index: usize,
    /// Days that may still be looked at.
    left: i64,
}

impl<'a> RuleWalk<'a> {
    pub(super) fn new(rule: &'a Rule, from: CivilTime) -> Self {
        let is_possible = !rule.never && from <= CivilTime::MAX;
        let period = is_possible.then(|| rule.period_of(from).max(0));
        Self { rule, from: from.0, period, batch: Batch::default(), index: 0, left: WALK_MAX }
    }
}

impl Iterator for RuleWalk<'_> {
    type Item = CivilTime;

    fn next(&mut self) -> Option<CivilTime> {
        let mut steps = STEPS_MAX.min(self.left);
        loop {
            if let Some(time) = self.batch.get(self.rule, self.index) {
                self.index += 1;
                if time > CivilTime::MAX.0 {
                    self.period = None;
                    self.batch = Batch::default();
                    return None;
                }
                return Some(CivilTime(time));
            }
            self.batch = Batch::default();
            let (found, taken) = self.rule.next_period(self.period?, steps);
            let looked_at = taken + self.rule.period_days();
            (steps, self.left) = (steps - looked_at, self.left - looked_at);
            let Some(period) = found.filter(|_| steps > 0) else {
                self.period = None;
                return None;
            };
            self.batch = self.rule.batch(period);
            self.index = self.batch.index_from(self.rule, self.from);
            self.period = Some(period + 1);
        }
    }
}

//! What members say of themselves, and what of the entries is still needed.

use std::collections::{BTreeMap, VecDeque};

use scrinium_log::{Chain, Sequence};

use super::{Group, Kind, Part};
use crate::value::MOST_MEMBERS;
use crate::{
    Compare, MemberId, Operation, Output, Reply, Report, Revision, Rules, StopReason, StoredKey, Transaction,
};

/// As many of the newest entries are known by their digests, and at least half as many stay in the engine.
const MOST_BOUNDARIES: usize = 1024;
const KEPT_ENTRIES: usize = MOST_BOUNDARIES / 2;

/// Entries are let go of only while at least this many members are there.
const FEWEST_PRESENT: usize = 2;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reports {
    /// The newest entries, as boundaries between records: what another member's report is compared with.
    boundaries: VecDeque<(Sequence, Chain)>,
    /// When a member's report was changed last, and when that was seen.
    seen: BTreeMap<MemberId, (Revision, u64)>,
    next_ms: u64,
    /// Which entries were let go of.
    trimmed: Sequence,
}

impl Reports {
    pub(super) fn note_boundary(&mut self, first: Sequence, chain: Chain) {
        if self.boundaries.back().is_some_and(|(_, newest)| newest.last() >= chain.last()) {
            return;
        }
        if self.boundaries.len() >= MOST_BOUNDARIES {
            self.boundaries.pop_front();
        }
        self.boundaries.push_back((first, chain));
    }
}

impl<R: Rules> Group<R> {
    pub(super) fn report_if_due(&mut self, out: &mut Vec<Output>) {
        if self.now_ms < self.reports.next_ms || !self.is_settled() || !self.is_member() {
            return;
        }
        self.reports.next_ms = self.now_ms.saturating_add(self.timing.report_ms);
        if !self.calls.has(Kind::Report) {
            let value = Report { applied: self.position }.encode();
            let put = Operation::Put { key: self.keys.report(self.me), value };
            self.call(Kind::Report, Transaction { then: vec![put], ..Transaction::default() }, out);
        }
        if matches!(self.role, Part::Leader(_))
            && !self.calls.has(Kind::Reports)
            && !self.calls.has(Kind::Trim)
        {
            let range = Operation::Range {
                from: self.keys.before_reports(),
                to: self.keys.after_reports(),
                limit: MOST_MEMBERS * 2,
                descending: false,
            };
            self.call(Kind::Reports, Transaction { then: vec![range], ..Transaction::default() }, out);
        }
    }

    pub(super) fn reported(&mut self, reply: Reply, out: &mut Vec<Output>) -> Result<(), StopReason> {
        let Part::Leader(leading) = &self.role else { return Ok(()) };
        let (epoch_revision, me) = (leading.revision, self.me);
        let stored = reply.found.into_iter().next().unwrap_or_default();
        let mut present = Vec::new();
        for membership in self.view.members.iter().flat_map(|(members, _)| members) {
            let member = membership.member;
            let Some(found) = stored.iter().find(|stored| stored.key == self.keys.report(member)) else {
                continue;
            };
            let report = read_report(found)?;
            if member != me && self.reports.contradicts(report.applied) {
                out.push(Output::MemberDiffers { member, at: report.applied.last() });
            }
            let seen = self.reports.seen.entry(member).or_insert((found.revision, self.now_ms));
            if seen.0 != found.revision {
                *seen = (found.revision, self.now_ms);
            }
            if self.now_ms.saturating_sub(seen.1) < self.timing.absent_after_ms {
                present.push(report.applied.last());
            }
        }
        let before = self.reports.can_go(&present);
        if let Some(before) = before {
            self.reports.trimmed = before;
            let transaction = Transaction {
                compares: vec![Compare::Unchanged { key: self.keys.epoch(), since: epoch_revision }],
                then: vec![Operation::Delete {
                    from: self.keys.entry(Sequence(0)),
                    to: self.keys.entry(before),
                }],
                otherwise: Vec::new(),
            };
            self.call(Kind::Trim, transaction, out);
        }
        Ok(())
    }
}

impl Reports {
    /// Whether a member has other records than were agreed on, as far as this one knows.
    fn contradicts(&self, applied: Chain) -> bool {
        let at = self.boundaries.partition_point(|(_, chain)| chain.last() < applied.last());
        let found = self.boundaries.get(at).map(|(_, chain)| *chain);
        found.is_some_and(|chain| chain.last() == applied.last() && chain != applied)
    }

    /// All present members have the entries before this one, and the one that begins here, which stays as the parent of the
    /// next.
    fn can_go(&self, present: &[Sequence]) -> Option<Sequence> {
        if present.len() < FEWEST_PRESENT {
            return None;
        }
        let slowest = present.iter().min()?;
        let applied = self.boundaries.partition_point(|(_, chain)| chain.last() <= *slowest);
        let spare = self.boundaries.len().saturating_sub(KEPT_ENTRIES);
        let last = applied.min(spare).checked_sub(1)?;
        let (first, _) = self.boundaries.get(last)?;
        (*first > self.trimmed).then_some(*first)
    }
}

fn read_report(stored: &StoredKey) -> Result<Report, StopReason> {
    Report::decode(&stored.value).ok_or(StopReason::Damaged { key: "report" })
}

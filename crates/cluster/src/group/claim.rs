//! Becoming the leader: after silence, or because the leader has handed over.

use super::{Call, ClaimMade, Group, Kind, Leading, Part};
use crate::{
    Compare, Control, Entry, EntryKind, Epoch, Leadership, Operation, Output, Reply, Rules, StopReason,
    Transaction,
};

impl<R: Rules> Group<R> {
    pub(super) fn claim_if_due(&mut self, out: &mut Vec<Output>) {
        let is_able = matches!(self.role, Part::Follower)
            && self.may_claim
            && !self.sealed
            && !self.behind
            && self.pending.is_none()
            && self.is_settled()
            && self.view.to_the_end
            && self.previous.is_some()
            && !self.calls.has(Kind::Claim)
            && !self.calls.has(Kind::Look)
            && self.is_member();
        if !is_able {
            return;
        }
        let Some((leadership, _)) = self.view.leadership else { return };
        let silent_ms = self.now_ms.saturating_sub(self.view.since_ms);
        if !self.view.handed_to_me && silent_ms < self.patience_ms(leadership.epoch) {
            return;
        }
        // What the next look brings decides whether it is tried again.
        self.view.to_the_end = false;
        if let Some((claim, transaction)) = self.claim_after(leadership.epoch) {
            self.claim = Some(claim);
            self.call(Kind::Claim, transaction, out);
        }
    }

    /// How long the leader must have been silent: longer for those with a lower priority, and a bit by chance.
    fn patience_ms(&self, epoch: Epoch) -> u64 {
        let mine = self.membership(self.me).map_or(0, |found| found.priority);
        let before = self.members().iter().filter(|membership| membership.priority > mine).count();
        let before = u64::try_from(before).unwrap_or(u64::MAX);
        let spread_ms = self.timing.claim_spread_ms;
        let chance_ms = mixed(self.seed ^ epoch.0.rotate_left(32)) % spread_ms.saturating_add(1);
        self.timing.claim_after_ms.saturating_add(before.saturating_mul(spread_ms)).saturating_add(chance_ms)
    }

    fn claim_after(&self, former: Epoch) -> Option<(ClaimMade, Transaction)> {
        let epoch = Epoch(former.0.checked_add(1)?);
        let leader = self.me;
        let record = R::record(Control::Claim { leader, epoch });
        let entry = Entry::new(EntryKind::Claim(leader), epoch, self.position, vec![record]).ok()?;
        let (_, epoch_revision) = self.view.leadership?;
        let (_, group_revision) = self.view.members.as_ref()?;
        let keys = &self.keys;
        let key = keys.entry(entry.first());
        let unchanged = |key, since| Compare::Unchanged { key, since };
        let mut compares =
            vec![unchanged(keys.epoch(), epoch_revision), unchanged(keys.group(), *group_revision)];
        if R::CLAIM_TESTS_BEAT {
            compares.push(match self.view.beat {
                Some(since) => unchanged(keys.beat(), since),
                None => Compare::Absent { key: keys.beat() },
            });
        }
        compares.extend(self.parent_unchanged());
        compares.push(Compare::Absent { key: key.clone() });
        let bytes = entry.encode();
        let put = |key, value| Operation::Put { key, value };
        let then = vec![put(key, bytes.clone()), put(keys.epoch(), Leadership { epoch, leader }.encode())];
        Some((ClaimMade { entry, bytes }, Transaction { compares, then, otherwise: Vec::new() }))
    }

    pub(super) fn claimed(
        &mut self,
        call: &Call,
        reply: &Reply,
        out: &mut Vec<Output>,
    ) -> Result<(), StopReason> {
        self.view.next_look_ms = self.now_ms;
        if !reply.succeeded {
            // An earlier try may have succeeded: then a look finds its entry.
            return Ok(());
        }
        let Some(claim) = &self.claim else { return Ok(()) };
        if call.at != self.position || reply.revision < self.view.at {
            // A look has found it meanwhile, or will.
            return Ok(());
        }
        let entry = claim.entry.clone();
        let leadership = Leadership { epoch: entry.epoch(), leader: self.me };
        self.view.leadership = Some((leadership, reply.revision));
        self.view.at = reply.revision;
        self.take(&entry, reply.revision);
        Self::apply(entry, out);
        self.take_up_lead(Some(call.sent_ms), out);
        Ok(())
    }

    /// The claim has succeeded, and nothing was written since. If it is known when it was sent, it counts as a beat: a claimant
    /// must have seen it, and waits from then.
    pub(super) fn take_up_lead(&mut self, sent_ms: Option<u64>, out: &mut Vec<Output>) {
        let Some(claim) = self.claim.take() else { return };
        let Some((leadership, revision)) = self.view.leadership else { return };
        let epoch = claim.entry.epoch();
        if leadership.epoch != epoch || leadership.leader != self.me {
            return;
        }
        let lease_until_ms = sent_ms.map(|sent_ms| sent_ms.saturating_add(self.timing.lease_ms));
        let leading =
            Leading { epoch, revision, lease_until_ms, next_beat_ms: self.now_ms, beats: 0, resigning: None };
        self.set_role(Part::Leader(leading), out);
    }
}

/// A number that looks random.
pub(crate) const fn mixed(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

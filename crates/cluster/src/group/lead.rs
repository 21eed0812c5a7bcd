//! What the leader does: append one entry after the other, show that it is there, give up.

use bytes::Bytes;

use super::{Call, Group, Kind, Leading, Part, Pending};
use crate::value::encode_beat;
use crate::{
    Compare, Control, Entry, EntryError, EntryKind, Leadership, Operation, Output, Refusal, Reply, Revision,
    Rules, StopReason, StoredKey, SubmissionId, SubmissionOutcome, Transaction,
};

impl<R: Rules> Group<R> {
    pub(super) fn submit(&mut self, submission: SubmissionId, records: Vec<Bytes>, out: &mut Vec<Output>) {
        if let Err(refusal) = self.try_submit(submission, records) {
            out.push(Output::Submitted { submission, outcome: SubmissionOutcome::Refused(refusal) });
        }
    }

    fn try_submit(&mut self, submission: SubmissionId, records: Vec<Bytes>) -> Result<(), Refusal> {
        let leading = match &self.role {
            Part::Leader(leading) if leading.resigning.is_none() => leading,
            Part::Stopped(reason) => return Err(Refusal::Stopped(reason.clone())),
            Part::Removed => return Err(Refusal::Removed),
            _ if self.sealed => return Err(Refusal::Sealed),
            _ => return Err(Refusal::NotLeader { leader: self.other_leader() }),
        };
        if self.pending.is_some() || !self.is_settled() {
            return Err(Refusal::Busy);
        }
        let entry = Entry::new(EntryKind::Records, leading.epoch, self.position, records);
        let entry = entry.map_err(|error| match error {
            EntryError::TooLarge { bytes } => Refusal::TooLarge { bytes },
            _ => Refusal::TooLarge { bytes: 0 },
        })?;
        self.pending = Some(self.pend(Some(submission), entry, leading));
        Ok(())
    }

    fn pend(&self, submission: Option<SubmissionId>, entry: Entry, leading: &Leading) -> Pending {
        Pending {
            submission,
            bytes: entry.encode(),
            entry,
            epoch_revision: leading.revision,
            since_ms: self.now_ms,
            next_try_ms: self.now_ms,
            given_up: false,
        }
    }

    /// The leader will write this last. Its lease ends before anybody can learn of it.
    pub(super) fn resign(&mut self, last: EntryKind) {
        if let EntryKind::HandOver(to) = last
            && (to == self.me || self.membership(to).is_none())
        {
            return;
        }
        if let Part::Leader(leading) = &mut self.role
            && leading.resigning.is_none()
        {
            leading.resigning = Some(last);
            leading.lease_until_ms = None;
        }
    }

    /// Beats and appends that are due.
    pub(super) fn lead_on(&mut self, out: &mut Vec<Output>) {
        self.pend_last_entry();
        let due = self.pending.as_ref().filter(|pending| self.now_ms >= pending.next_try_ms);
        if let Some(pending) = due
            && !self.calls.has(Kind::Append)
            && matches!(&self.role, Part::Leader(leading) if leading.epoch == pending.entry.epoch())
        {
            let transaction = self.append_of(pending);
            self.call(Kind::Append, transaction, out);
        }
        if self.pending.as_ref().is_some_and(|pending| {
            self.now_ms >= pending.since_ms.saturating_add(self.timing.unknown_after_ms)
        }) {
            self.give_up_pending(out);
        }
        let Part::Leader(leading) = &mut self.role else { return };
        if leading.resigning.is_none() && self.now_ms >= leading.next_beat_ms && !self.calls.has(Kind::Beat) {
            leading.next_beat_ms = self.now_ms.saturating_add(self.timing.beat_ms);
            leading.beats = leading.beats.saturating_add(1);
            let (epoch, since, count) = (leading.epoch, leading.revision, leading.beats);
            let transaction = Transaction {
                compares: vec![Compare::Unchanged { key: self.keys.epoch(), since }],
                then: vec![
                    Operation::Put { key: self.keys.beat(), value: encode_beat(epoch, count) },
                    Operation::Get { key: self.keys.group() },
                ],
                otherwise: vec![Operation::Get { key: self.keys.epoch() }],
            };
            self.call(Kind::Beat, transaction, out);
        }
    }

    /// A leader that resigns writes the last entry once everything before it is settled.
    fn pend_last_entry(&mut self) {
        let Part::Leader(leading) = &self.role else { return };
        let Some(last) = leading.resigning else { return };
        if self.pending.is_some() || !self.is_settled() {
            return;
        }
        let epoch = leading.epoch;
        let control = match last {
            EntryKind::HandOver(to) => Control::HandOver { to, epoch },
            _ => Control::Seal { epoch },
        };
        if let Ok(entry) = Entry::new(last, epoch, self.position, vec![R::record(control)]) {
            self.pending = Some(self.pend(None, entry, leading));
        }
    }

    fn append_of(&self, pending: &Pending) -> Transaction {
        let key = self.keys.entry(pending.entry.first());
        let epoch = self.keys.epoch();
        let mut compares = vec![Compare::Unchanged { key: epoch.clone(), since: pending.epoch_revision }];
        compares.extend(self.parent_unchanged());
        compares.push(Compare::Absent { key: key.clone() });
        Transaction {
            compares,
            then: vec![Operation::Put { key: key.clone(), value: pending.bytes.clone() }],
            otherwise: vec![Operation::Get { key: epoch }, Operation::Get { key }],
        }
    }

    /// The entry that this member holds is still the one before.
    pub(super) fn parent_unchanged(&self) -> Option<Compare> {
        let (first, since) = self.previous.filter(|_| R::TESTS_PARENT)?;
        Some(Compare::Unchanged { key: self.keys.entry(first), since })
    }

    pub(super) fn appended(&mut self, reply: Reply, out: &mut Vec<Output>) -> Result<(), StopReason> {
        let at = reply.revision;
        if reply.succeeded {
            self.settle_agreed(at, out);
            return Ok(());
        }
        let Some(pending) = &self.pending else { return Ok(()) };
        let mut found = reply.found.into_iter();
        let epoch = found.next().and_then(|found| found.into_iter().next());
        let there = found.next().and_then(|found| found.into_iter().next());
        let same_epoch = epoch.as_ref().is_some_and(|stored| stored.revision == pending.epoch_revision);
        match there {
            // An earlier try was not answered, but done.
            Some(stored) if stored.value == pending.bytes => self.settle_agreed(stored.revision, out),
            Some(_) if same_epoch => return Err(StopReason::Differs { at: pending.entry.first() }),
            Some(_) => {
                self.settle_refused(out);
                self.note_epoch(epoch.as_ref(), at)?;
                self.step_down(out);
            }
            // With the same epoch the entry before is not the one that was there: a look says which. With another one, whether
            // this one was there before is seen from what follows.
            None => {
                self.note_epoch(epoch.as_ref(), at)?;
                if same_epoch {
                    let next_try_ms = self.now_ms.saturating_add(self.timing.retry_ms);
                    self.pending.iter_mut().for_each(|pending| pending.next_try_ms = next_try_ms);
                    self.view.next_look_ms = self.now_ms;
                } else {
                    self.step_down(out);
                }
            }
        }
        Ok(())
    }

    pub(super) fn settle_agreed(&mut self, revision: Revision, out: &mut Vec<Output>) {
        let Some(pending) = self.pending.take() else { return };
        // An answer that is still on its way is about this entry, and not about the next one.
        self.calls.give_up(Kind::Append);
        self.take(&pending.entry, revision);
        match pending.submission.filter(|_| !pending.given_up) {
            Some(submission) => {
                let outcome = SubmissionOutcome::Agreed { chain: pending.entry.chain() };
                out.push(Output::Submitted { submission, outcome });
            }
            None => Self::apply(pending.entry.clone(), out),
        }
        if matches!(pending.entry.kind(), EntryKind::HandOver(_) | EntryKind::Seal) {
            self.step_down(out);
        }
    }

    pub(super) fn beaten(
        &mut self,
        call: &Call,
        reply: &Reply,
        out: &mut Vec<Output>,
    ) -> Result<(), StopReason> {
        let Part::Leader(leading) = &mut self.role else { return Ok(()) };
        if !reply.succeeded {
            let epoch = reply.found.first().and_then(|found| found.first()).cloned();
            self.note_epoch(epoch.as_ref(), reply.revision)?;
            self.step_down(out);
            return Ok(());
        }
        if leading.resigning.is_none() {
            let until_ms = call.sent_ms.saturating_add(self.timing.lease_ms);
            leading.lease_until_ms = leading.lease_until_ms.max(Some(until_ms));
        }
        self.view.beat = self.view.beat.max(Some(reply.revision));
        self.note_members(reply.found.first().map_or(&[], Vec::as_slice), out)
    }

    /// The leadership as the engine had it in some state. An older state than the one that is known says nothing new.
    pub(super) fn note_epoch(&mut self, stored: Option<&StoredKey>, at: Revision) -> Result<(), StopReason> {
        if at < self.view.at {
            return Ok(());
        }
        self.view.at = at;
        let Some(stored) = stored else {
            return if self.view.leadership.is_some() { Err(StopReason::OtherEngine) } else { Ok(()) };
        };
        let found = Leadership::decode(&stored.value).ok_or(StopReason::Damaged { key: "epoch" })?;
        let new = Some((found, stored.revision));
        if let Some((seen, _)) = self.view.leadership
            && found.epoch < seen.epoch
        {
            return Err(StopReason::EpochWentBack { seen: seen.epoch, found: found.epoch });
        }
        if self.view.leadership != new {
            self.view.leadership = new;
            self.view.since_ms = self.now_ms;
        }
        Ok(())
    }

    /// Whether the leader may answer from a snapshot that was taken before now, and not before its reader began.
    pub(super) fn holds_lease(&self) -> bool {
        let Part::Leader(leading) = &self.role else { return false };
        let lasts = |until_ms: u64| self.now_ms < until_ms || !R::LEASES_END;
        self.timing.leases && leading.lease_until_ms.is_some_and(lasts)
    }
}

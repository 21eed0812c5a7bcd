//! Who may answer a reader, and when.
//!
//! Snapshot and lease are both looked at after the reader began: at that moment all that was answered is in the store of the
//! member that leads. A verdict or a snapshot from before may lack what another leader has answered since. Without a lease
//! the engine is asked, once for all that wait: if this member still leads at a moment after the readers began, all that was
//! answered before they began is in its store.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use scrinium_log::Sequence;

use super::{Group, MOST_READS, Part};
use crate::{Freshness, Output, ReadId, Refusal, Revision, Rules};

/// The readers that wait, and for what. All of them are gone through where the member's role changes, and once in thousands that
/// have begun; no other step does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reads {
    pending: BTreeMap<ReadId, PendingRead>,
    /// When each is refused, in order; also of some that were answered meanwhile.
    deadlines: VecDeque<(u64, ReadId)>,
    for_record: BTreeSet<(Sequence, ReadId)>,
    /// For a look that is sent from now on.
    for_look: BTreeSet<ReadId>,
    /// For the look that is under way.
    in_look: BTreeSet<ReadId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PendingRead {
    freshness: Freshness,
    until_ms: u64,
}

impl<R: Rules> Group<R> {
    pub(super) fn begin_read(&mut self, read: ReadId, freshness: Freshness, out: &mut Vec<Output>) {
        if let Err(refusal) = self.admit(read, freshness) {
            out.push(Output::RefuseRead { read, refusal });
            return;
        }
        let until_ms = self.now_ms.saturating_add(self.timing.read_ms);
        self.reads.insert(read, PendingRead { freshness, until_ms });
        match freshness {
            Freshness::Session(wanted) if wanted > self.applied => {
                self.reads.for_record.insert((wanted, read));
            }
            _ => out.push(Output::TakeSnapshot { read }),
        }
    }

    fn admit(&self, read: ReadId, freshness: Freshness) -> Result<(), Refusal> {
        match (&self.role, freshness) {
            _ if self.reads.pending.len() >= MOST_READS || self.reads.pending.contains_key(&read) => {
                Err(Refusal::Busy)
            }
            (_, Freshness::Stale) => Ok(()),
            (Part::Stopped(reason), _) => Err(Refusal::Stopped(reason.clone())),
            (Part::Removed, _) => Err(Refusal::Removed),
            (Part::Follower, Freshness::Latest) => Err(Refusal::NotLeader { leader: self.other_leader() }),
            _ => Ok(()),
        }
    }

    pub(super) fn snapshot_taken(&mut self, read: ReadId, out: &mut Vec<Output>) {
        let leased = self.holds_lease();
        let Some(pending) = self.reads.pending.get(&read) else { return };
        if pending.freshness == Freshness::Latest && !leased {
            self.reads.for_look.insert(read);
            return;
        }
        self.reads.pending.remove(&read);
        out.push(Output::AnswerRead { read });
    }

    pub(super) fn has_reads_to_confirm(&self) -> bool {
        matches!(self.role, Part::Leader(_)) && !self.reads.for_look.is_empty()
    }

    /// All that wait are answered by the look that was just sent.
    pub(super) fn confirm_by_this_look(&mut self) {
        let waiting = std::mem::take(&mut self.reads.for_look);
        self.reads.in_look.extend(waiting);
    }

    /// The look was not answered: those readers need another one.
    pub(super) fn confirm_by_another_look(&mut self) {
        let waiting = std::mem::take(&mut self.reads.in_look);
        self.reads.for_look.extend(waiting);
    }

    /// The look found who led at one moment after these readers had begun.
    pub(super) fn confirm_reads(&mut self, epoch: Option<Revision>, out: &mut Vec<Output>) {
        let leads = matches!(&self.role, Part::Leader(leading) if Some(leading.revision) == epoch);
        let leader = self.other_leader();
        for read in std::mem::take(&mut self.reads.in_look) {
            if self.reads.pending.remove(&read).is_none() {
                continue;
            }
            out.push(if leads {
                Output::AnswerRead { read }
            } else {
                Output::RefuseRead { read, refusal: Refusal::NotLeader { leader } }
            });
        }
    }

    /// Readers whose record has come, and those who have waited long enough.
    pub(super) fn expire_reads(&mut self, out: &mut Vec<Output>) {
        let (now_ms, applied) = (self.now_ms, self.applied);
        while let Some((wanted, read)) = self.reads.for_record.first().copied()
            && wanted <= applied
        {
            self.reads.for_record.pop_first();
            if self.reads.pending.contains_key(&read) {
                out.push(Output::TakeSnapshot { read });
            }
        }
        for (read, pending) in self.reads.take_late(now_ms) {
            let refusal = match pending.freshness {
                Freshness::Session(wanted) if wanted > applied => Refusal::Behind { applied, wanted },
                _ => Refusal::NotConfirmed,
            };
            out.push(Output::RefuseRead { read, refusal });
        }
    }

    /// Readers of the latest are refused: this member does not lead any more.
    pub(super) fn refuse_latest(&mut self, refusal: &Refusal, out: &mut Vec<Output>) {
        self.refuse_some(|pending| pending.freshness == Freshness::Latest, refusal, out);
    }

    /// All are refused but those who take what there is.
    pub(super) fn refuse_reads(&mut self, refusal: &Refusal, out: &mut Vec<Output>) {
        self.refuse_some(|pending| pending.freshness != Freshness::Stale, refusal, out);
    }

    fn refuse_some(&mut self, whom: impl Fn(&PendingRead) -> bool, refusal: &Refusal, out: &mut Vec<Output>) {
        let refused = self.reads.pending.extract_if(.., |_, pending| whom(pending));
        out.extend(refused.map(|(read, _)| Output::RefuseRead { read, refusal: refusal.clone() }));
        self.reads.forget_gone();
    }
}

impl Reads {
    fn insert(&mut self, read: ReadId, pending: PendingRead) {
        if self.deadlines.len() >= 2 * MOST_READS {
            self.forget_gone();
        }
        self.deadlines.push_back((pending.until_ms, read));
        self.pending.insert(read, pending);
    }

    /// Those whose time is over.
    fn take_late(&mut self, now_ms: u64) -> Vec<(ReadId, PendingRead)> {
        let mut late = Vec::new();
        while let Some((until_ms, read)) = self.deadlines.front().copied() {
            match self.pending.get(&read) {
                Some(pending) if pending.until_ms == until_ms && until_ms > now_ms => break,
                Some(pending) if pending.until_ms == until_ms => {
                    late.extend(self.remove(read).map(|pending| (read, pending)));
                }
                // Answered, and perhaps begun again under the same number.
                _ => {}
            }
            self.deadlines.pop_front();
        }
        late
    }

    /// Takes one out, whatever it waits for.
    fn remove(&mut self, read: ReadId) -> Option<PendingRead> {
        let pending = self.pending.remove(&read)?;
        if let Freshness::Session(wanted) = pending.freshness {
            self.for_record.remove(&(wanted, read));
        }
        self.for_look.remove(&read);
        self.in_look.remove(&read);
        Some(pending)
    }

    /// Lets go of what is known of readers that wait no more.
    fn forget_gone(&mut self) {
        let pending = &self.pending;
        self.deadlines
            .retain(|(until_ms, read)| pending.get(read).is_some_and(|found| found.until_ms == *until_ms));
        self.for_record.retain(|(_, read)| pending.contains_key(read));
        self.for_look.retain(|read| pending.contains_key(read));
        self.in_look.retain(|read| pending.contains_key(read));
    }
}

//! Reading what the engine has: who leads, who beats, and the entries that come next. It is one transaction, so all of it
//! is of one moment.

use super::{Call, Group, Kind, Part};
use crate::value::decode_incarnation;
use crate::{
    Compare, Entry, EntryError, Operation, Output, Reply, Role, Rules, StopReason, StoredKey, Transaction,
};
use scrinium_log::Sequence;

/// The most entries that one look brings.
const ENTRIES_AT_ONCE: usize = 64;

impl<R: Rules> Group<R> {
    pub(super) fn look_if_due(&mut self, out: &mut Vec<Output>) {
        let confirms = self.has_reads_to_confirm();
        let follows = !matches!(self.role, Part::Leader(_)) && self.now_ms >= self.view.next_look_ms;
        // A leader whose append went wrong looks too.
        let unsettled =
            self.pending.is_some() && self.now_ms >= self.view.next_look_ms && !self.calls.has(Kind::Append);
        if self.calls.has(Kind::Look) || !(confirms || unsettled || follows && self.is_settled()) {
            return;
        }
        self.view.next_look_ms = self.now_ms.saturating_add(self.timing.look_ms);
        let transaction = self.look();
        self.call(Kind::Look, transaction, out);
        self.confirm_by_this_look();
    }

    /// The value of the entry before is left out where the member knows it already.
    fn look(&self) -> Transaction {
        let keys = &self.keys;
        let next = keys.entry(self.position.next());
        let gets = [keys.epoch(), keys.beat(), keys.group(), keys.incarnation()];
        let mut known: Vec<Operation> = gets.into_iter().map(|key| Operation::Get { key }).collect();
        known.push(Operation::Range {
            from: next.clone(),
            to: keys.after_entries(),
            limit: ENTRIES_AT_ONCE,
            descending: false,
        });
        let mut unknown = known.clone();
        unknown.push(Operation::Range {
            from: keys.entry(Sequence(0)),
            to: next,
            limit: 1,
            descending: true,
        });
        match self.previous {
            Some((first, since)) => Transaction {
                compares: vec![Compare::Unchanged { key: keys.entry(first), since }],
                then: known,
                otherwise: unknown,
            },
            None => Transaction { compares: Vec::new(), then: unknown, otherwise: Vec::new() },
        }
    }

    pub(super) fn looked(
        &mut self,
        call: &Call,
        reply: Reply,
        out: &mut Vec<Output>,
    ) -> Result<(), StopReason> {
        let mut found = reply.found.into_iter();
        let mut next = || found.next().ok_or(StopReason::Contradiction("an answer lacks a part"));
        let (epoch, beat, group, incarnation, entries) = (next()?, next()?, next()?, next()?, next()?);
        let before = found.next();
        self.note_incarnation(&incarnation)?;
        let is_newest = reply.revision >= self.view.at;
        self.note_epoch(epoch.first(), reply.revision)?;
        let beat = beat.first().map(|stored| stored.revision);
        if is_newest && beat != self.view.beat {
            self.view.beat = beat;
            self.view.since_ms = self.now_ms;
        }
        self.note_members(&group, out)?;
        self.follow_epoch(out);
        if call.at == self.position {
            self.note_before(before.as_deref(), entries.first())?;
            if !self.behind {
                self.read_entries(&entries, out)?;
            }
            self.view.to_the_end = is_newest && entries.len() < ENTRIES_AT_ONCE && !self.behind;
            // What was absent in an older state may have come since.
            if self.view.to_the_end {
                self.settle_by_absence(out);
            }
            if !entries.is_empty() {
                self.view.next_look_ms = self.now_ms;
            }
        }
        self.confirm_reads(epoch.first().map(|stored| stored.revision), out);
        Ok(())
    }

    fn note_incarnation(&mut self, found: &[StoredKey]) -> Result<(), StopReason> {
        let found = found.first().map(|stored| {
            decode_incarnation(&stored.value).ok_or(StopReason::Damaged { key: "incarnation" })
        });
        match (self.incarnation, found.transpose()?) {
            (None, found) => self.incarnation = found,
            (Some(mine), Some(found)) if mine == found => {}
            (Some(_), _) => return Err(StopReason::OtherEngine),
        }
        Ok(())
    }

    /// Steps down where another one leads.
    fn follow_epoch(&mut self, out: &mut Vec<Output>) {
        if let Part::Leader(leading) = &self.role
            && self.leader().is_some_and(|found| found.epoch != leading.epoch)
        {
            self.step_down(out);
        }
    }

    /// `before` is the entry before the one that is read next, if the member did not know it, or not as it is.
    fn note_before(
        &mut self,
        before: Option<&[StoredKey]>,
        next: Option<&StoredKey>,
    ) -> Result<(), StopReason> {
        let Some(before) = before else { return Ok(()) };
        let mine = self.position.last();
        self.previous = None;
        let Some(stored) = before.first() else {
            // Let go of, if something later is there.
            return match next {
                Some(_) => Ok(()),
                None if self.leader().is_none() => Ok(()),
                None if !R::TESTS_PARENT => Ok(()),
                None => Err(StopReason::EngineLost { mine, newest: Sequence(0) }),
            };
        };
        let entry = self.decode(stored)?;
        if !R::TESTS_PARENT {
            return Ok(());
        }
        let newest = entry.chain();
        if newest.last() < mine {
            return Err(StopReason::EngineLost { mine, newest: newest.last() });
        }
        if newest != self.position {
            return Err(StopReason::Differs { at: entry.first() });
        }
        self.previous = Some((entry.first(), stored.revision));
        self.reports.note_boundary(entry.first(), newest);
        self.sealed |= entry.kind() == crate::EntryKind::Seal;
        Ok(())
    }

    fn read_entries(&mut self, entries: &[StoredKey], out: &mut Vec<Output>) -> Result<(), StopReason> {
        for stored in entries {
            let entry = self.decode(stored)?;
            let (first, next) = (entry.first(), self.position.next());
            if first > next {
                if self.previous.is_some() && R::TESTS_PARENT {
                    return Err(StopReason::Gap { from: next, before: first });
                }
                self.behind = true;
                out.push(Output::Behind { next, oldest: first });
                return Ok(());
            }
            if R::TESTS_PARENT && entry.parent() != self.position {
                return Err(StopReason::Differs { at: first });
            }
            self.read_entry(entry, stored, out)?;
        }
        Ok(())
    }

    fn read_entry(
        &mut self,
        entry: Entry,
        stored: &StoredKey,
        out: &mut Vec<Output>,
    ) -> Result<(), StopReason> {
        if let Some(pending) = &self.pending
            && pending.entry.first() == entry.first()
        {
            if pending.bytes == stored.value {
                self.settle_agreed(stored.revision, out);
                return Ok(());
            }
            self.settle_refused(out);
        }
        if matches!(self.role(), Role::Leader(epoch) if epoch >= entry.epoch()) {
            return Err(StopReason::Contradiction(
                "there are entries that this member, who leads, did not write",
            ));
        }
        let mine = self.claim.as_ref().is_some_and(|claim| claim.bytes == stored.value);
        self.take(&entry, stored.revision);
        Self::apply(entry, out);
        if mine {
            self.take_up_lead(None, out);
        }
        Ok(())
    }

    /// Nothing stands where the entry was to be, and its leadership is over: it never will.
    fn settle_by_absence(&mut self, out: &mut Vec<Output>) {
        let epoch = self.leader().map(|leadership| leadership.epoch);
        let is_over = |pending: &super::Pending| {
            pending.entry.first() == self.position.next()
                && epoch.is_some_and(|epoch| epoch > pending.entry.epoch())
        };
        if self.pending.as_ref().is_some_and(is_over) {
            self.settle_refused(out);
        }
    }

    fn decode(&self, stored: &StoredKey) -> Result<Entry, StopReason> {
        let at = self.position.next();
        let entry = Entry::decode(&stored.value).map_err(|error| StopReason::Entry { at, error })?;
        if self.keys.entry(entry.first()) == stored.key {
            Ok(entry)
        } else {
            Err(StopReason::Entry { at, error: EntryError::Damaged })
        }
    }
}

//! One member's part in one group.

mod claim;
mod lead;
mod look;
mod read;
mod report;

use std::collections::BTreeMap;
use std::marker::PhantomData;

use bytes::Bytes;
use scrinium_log::{Chain, Sequence};

use crate::value::{decode_members, encode_incarnation};
use crate::{
    CallId, Compare, Control, Entry, EntryError, EntryKind, Epoch, Incarnation, Input, Keys, Leadership,
    MemberId, Membership, NoAnswer, Operation, Output, Refusal, Reply, Revision, Role, Rules, StopReason,
    SubmissionId, SubmissionOutcome, Timing, Transaction, encode_members,
};
use read::Reads;
use report::Reports;

/// The most readers that wait in one group at a member.
pub const MOST_READS: usize = 4096;

/// How a member takes part in a group.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// Who it is.
    pub me: MemberId,
    /// Of which group.
    pub keys: Keys,
    /// The waits, the same for all members.
    pub timing: Timing,
    /// What its random waits come from.
    pub seed: u64,
    /// The engine that the member has belonged to; `None` for a new member, which takes what it finds.
    pub incarnation: Option<Incarnation>,
    /// All records that the member's log and store hold.
    pub applied: Chain,
}

/// One member's part in one group. See the crate's documentation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group<R: Rules> {
    me: MemberId,
    keys: Keys,
    timing: Timing,
    seed: u64,
    now_ms: u64,
    incarnation: Option<Incarnation>,
    /// What was handed out for application.
    position: Chain,
    applied: Sequence,
    /// The entry that ends with `position`, and when it was written.
    previous: Option<(Sequence, Revision)>,
    view: View,
    role: Part,
    may_claim: bool,
    sealed: bool,
    behind: bool,
    pending: Option<Pending>,
    claim: Option<ClaimMade>,
    calls: Calls,
    reads: Reads,
    reports: Reports,
    rules: PhantomData<fn() -> R>,
}

/// What the engine said last of everything but the entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct View {
    leadership: Option<(Leadership, Revision)>,
    beat: Option<Revision>,
    members: Option<(Vec<Membership>, Revision)>,
    /// The newest state that any answer told of.
    revision: Revision,
    /// Of which state leadership and beat are. Answers overtake each other, so one may tell of an older state.
    at: Revision,
    /// Since when leadership and beat are the same, for this member.
    since_ms: u64,
    /// Whether the last look went to the end of the entries. Only then may the member claim.
    to_the_end: bool,
    /// The leader has handed over to this member.
    handed_to_me: bool,
    next_look_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    Follower,
    Leader(Leading),
    Removed,
    Stopped(StopReason),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Leading {
    epoch: Epoch,
    /// When the epoch's key was written: what each append compares.
    revision: Revision,
    lease_until_ms: Option<u64>,
    next_beat_ms: u64,
    beats: u64,
    /// It will write this and give up. It has no lease any more, and never gets one again.
    resigning: Option<EntryKind>,
}

/// An entry whose outcome is not known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pending {
    /// `None`: the cluster's own.
    submission: Option<SubmissionId>,
    entry: Entry,
    bytes: Bytes,
    epoch_revision: Revision,
    since_ms: u64,
    next_try_ms: u64,
    /// The submitter knows that nobody knows.
    given_up: bool,
}

/// A claim whose outcome is not known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ClaimMade {
    entry: Entry,
    bytes: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Call {
    id: CallId,
    sent_ms: u64,
    /// What was known when it was sent: no answer is older.
    seen: Revision,
    /// Where the member was.
    at: Chain,
}

/// At most one call of each kind is under way. An answer to one that was given up is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Calls {
    made: u64,
    under_way: BTreeMap<Kind, Call>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Look,
    Append,
    Claim,
    Beat,
    Report,
    Reports,
    Trim,
}

impl Calls {
    fn has(&self, kind: Kind) -> bool {
        self.under_way.contains_key(&kind)
    }

    /// Its answer is not looked at any more.
    fn give_up(&mut self, kind: Kind) {
        self.under_way.remove(&kind);
    }
}

/// What begins a group in an engine that has none of that name: the members, an incarnation, and the first entry after the
/// records that the first leader's store holds already. It succeeds once.
///
/// # Errors
/// [`EntryError::TooLarge`] if the first record does not fit; [`EntryError::Empty`] if no member or too many are named.
pub fn begin<R: Rules>(
    keys: &Keys,
    leader: MemberId,
    members: &[Membership],
    incarnation: Incarnation,
    holds: Chain,
) -> Result<Transaction, EntryError> {
    let epoch = Epoch(1);
    let record = R::record(Control::Begin { leader });
    let entry = Entry::new(EntryKind::Begin(leader), epoch, holds, vec![record])?;
    let members = encode_members(members).ok_or(EntryError::Empty)?;
    let absent = [keys.incarnation(), keys.group(), keys.epoch()];
    let put = |key, value| Operation::Put { key, value };
    Ok(Transaction {
        compares: absent.into_iter().map(|key| Compare::Absent { key }).collect(),
        then: vec![
            put(keys.incarnation(), encode_incarnation(incarnation)),
            put(keys.group(), members),
            put(keys.epoch(), Leadership { epoch, leader }.encode()),
            put(keys.entry(entry.first()), entry.encode()),
        ],
        otherwise: Vec::new(),
    })
}

impl<R: Rules> Group<R> {
    /// A member that has just been started, at `now_ms` of its clock.
    #[must_use]
    pub fn new(options: GroupOptions, now_ms: u64) -> Self {
        let GroupOptions { me, keys, timing, seed, incarnation, applied } = options;
        Self {
            me,
            keys,
            timing,
            seed,
            now_ms,
            incarnation,
            position: applied,
            applied: applied.last(),
            previous: None,
            view: View { since_ms: now_ms, next_look_ms: now_ms, ..View::default() },
            role: Part::Follower,
            may_claim: true,
            sealed: false,
            behind: false,
            pending: None,
            claim: None,
            calls: Calls::default(),
            reads: Reads::default(),
            reports: Reports::default(),
            rules: PhantomData,
        }
    }

    /// What the member does about something that happened, at `now_ms` of its clock that does not jump.
    #[must_use]
    pub fn step(&mut self, now_ms: u64, input: Input) -> Vec<Output> {
        self.now_ms = self.now_ms.max(now_ms);
        let mut out = Vec::new();
        match input {
            Input::Tick => {}
            Input::Wake => self.view.next_look_ms = self.now_ms,
            Input::Answered { call, reply } => self.answered(call, reply, &mut out),
            Input::Submit { submission, records } => self.submit(submission, records, &mut out),
            Input::Applied { through } => self.note_applied(through),
            Input::ReadBegun { read, freshness } => self.begin_read(read, freshness, &mut out),
            Input::SnapshotTaken { read } => self.snapshot_taken(read, &mut out),
            Input::HandOver { to } => self.resign(EntryKind::HandOver(to)),
            Input::Seal => self.resign(EntryKind::Seal),
            Input::AllowClaims(allowed) => self.may_claim = allowed,
            Input::Restored { applied } => self.restored(applied),
        }
        self.advance(&mut out);
        out
    }

    /// What the member is to the group.
    #[must_use]
    pub const fn role(&self) -> Role {
        match &self.role {
            Part::Follower => Role::Follower,
            Part::Leader(leading) => Role::Leader(leading.epoch),
            Part::Removed => Role::Removed,
            Part::Stopped(_) => Role::Stopped,
        }
    }

    /// Who leads, as far as this member knows.
    #[must_use]
    pub fn leader(&self) -> Option<Leadership> {
        self.view.leadership.map(|(leadership, _)| leadership)
    }

    /// All records that were handed out for application.
    #[must_use]
    pub const fn position(&self) -> Chain {
        self.position
    }

    /// The last record that is applied.
    #[must_use]
    pub const fn applied(&self) -> Sequence {
        self.applied
    }

    /// Until when it may answer from its store, in milliseconds of its clock, if it leads and has a lease.
    #[must_use]
    pub const fn lease_until_ms(&self) -> Option<u64> {
        if let Part::Leader(leading) = &self.role { leading.lease_until_ms } else { None }
    }

    /// Why it has stopped, if it has.
    #[must_use]
    pub const fn stop_reason(&self) -> Option<&StopReason> {
        if let Part::Stopped(reason) = &self.role { Some(reason) } else { None }
    }

    /// The engine that the member belongs to, to be kept with its store.
    #[must_use]
    pub const fn incarnation(&self) -> Option<Incarnation> {
        self.incarnation
    }

    /// Whether nothing more is written to the group in this engine.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// What changes who belongs to the group. A leader is handed over from before it is removed. `None` if the present members
    /// are not known, the leader would be removed, or there would be none or too many.
    #[must_use]
    pub fn change_members(&self, members: &[Membership]) -> Option<Transaction> {
        let (leadership, epoch_revision) = self.view.leadership?;
        let (_, since) = self.view.members.as_ref()?;
        members.iter().find(|membership| membership.member == leadership.leader)?;
        let value = encode_members(members)?;
        Some(Transaction {
            compares: vec![
                Compare::Unchanged { key: self.keys.group(), since: *since },
                Compare::Unchanged { key: self.keys.epoch(), since: epoch_revision },
            ],
            then: vec![Operation::Put { key: self.keys.group(), value }],
            otherwise: Vec::new(),
        })
    }

    /// All that time and circumstances call for.
    fn advance(&mut self, out: &mut Vec<Output>) {
        let is_late = |call: &Call| self.now_ms >= call.sent_ms.saturating_add(self.timing.call_ms);
        let late = self.calls.under_way.iter().filter(|(_, call)| is_late(call));
        let late: Vec<Kind> = late.map(|(kind, _)| *kind).collect();
        for kind in late {
            self.calls.give_up(kind);
            self.no_answer(kind, out);
        }
        self.expire_reads(out);
        if matches!(self.role, Part::Stopped(_)) {
            return;
        }
        self.lead_on(out);
        self.look_if_due(out);
        self.claim_if_due(out);
        self.report_if_due(out);
    }

    fn answered(&mut self, id: CallId, reply: Result<Reply, NoAnswer>, out: &mut Vec<Output>) {
        let found = self.calls.under_way.iter().find(|(_, call)| call.id == id);
        let Some(kind) = found.map(|(kind, _)| *kind) else { return };
        let Some(call) = self.calls.under_way.remove(&kind) else { return };
        if matches!(self.role, Part::Stopped(_)) {
            return;
        }
        let Ok(reply) = reply else { return self.no_answer(kind, out) };
        if reply.revision < call.seen {
            return self.stop(StopReason::WentBack { seen: call.seen, found: reply.revision }, out);
        }
        self.view.revision = self.view.revision.max(reply.revision);
        let done = match kind {
            Kind::Look => self.looked(&call, reply, out),
            Kind::Append => self.appended(reply, out),
            Kind::Claim => self.claimed(&call, &reply, out),
            Kind::Beat => self.beaten(&call, &reply, out),
            Kind::Reports => self.reported(reply, out),
            Kind::Report | Kind::Trim => Ok(()),
        };
        if let Err(reason) = done {
            self.stop(reason, out);
        }
    }

    fn no_answer(&mut self, kind: Kind, out: &mut Vec<Output>) {
        let now_ms = self.now_ms;
        match kind {
            Kind::Append if R::RETRIES_SAME_BYTES => {
                let next_try_ms = now_ms.saturating_add(self.timing.retry_ms);
                self.pending.iter_mut().for_each(|pending| pending.next_try_ms = next_try_ms);
            }
            Kind::Append => self.settle_refused(out),
            Kind::Look => {
                self.view.next_look_ms = now_ms.saturating_add(self.timing.retry_ms);
                self.confirm_by_another_look();
            }
            // Whether it took effect is seen by looking.
            Kind::Claim => self.view.next_look_ms = now_ms,
            Kind::Beat | Kind::Report | Kind::Reports | Kind::Trim => {}
        }
    }

    fn call(&mut self, kind: Kind, transaction: Transaction, out: &mut Vec<Output>) {
        self.calls.made = self.calls.made.saturating_add(1);
        let id = CallId(self.calls.made);
        let call = Call { id, sent_ms: self.now_ms, seen: self.view.revision, at: self.position };
        self.calls.under_way.insert(kind, call);
        out.push(Output::Call { call: id, transaction });
    }

    fn stop(&mut self, reason: StopReason, out: &mut Vec<Output>) {
        if matches!(self.role, Part::Stopped(_)) {
            return;
        }
        self.give_up_pending(out);
        self.role = Part::Stopped(reason.clone());
        self.calls = Calls { made: self.calls.made, ..Calls::default() };
        self.refuse_reads(&Refusal::Stopped(reason.clone()), out);
        out.push(Output::Stopped(reason));
        out.push(Output::Role(Role::Stopped));
    }

    fn set_role(&mut self, role: Part, out: &mut Vec<Output>) {
        let former = self.role();
        self.role = role;
        if self.role() != former {
            out.push(Output::Role(self.role()));
        }
    }

    /// Another member leads, or may: nothing more is written, and nobody answered as the leader does.
    fn step_down(&mut self, out: &mut Vec<Output>) {
        if matches!(self.role, Part::Leader(_)) {
            self.set_role(Part::Follower, out);
            self.view.since_ms = self.now_ms;
            self.view.next_look_ms = self.now_ms;
            self.calls.give_up(Kind::Beat);
            let leader = self.other_leader();
            self.refuse_latest(&Refusal::NotLeader { leader }, out);
        }
    }

    fn other_leader(&self) -> Option<MemberId> {
        self.leader().map(|leadership| leadership.leader).filter(|leader| *leader != self.me)
    }

    /// Who belongs to the group, as far as this member knows.
    fn members(&self) -> &[Membership] {
        self.view.members.as_ref().map_or(&[], |(members, _)| members)
    }

    fn membership(&self, member: MemberId) -> Option<&Membership> {
        self.members().iter().find(|membership| membership.member == member)
    }

    fn is_member(&self) -> bool {
        self.membership(self.me).is_some()
    }

    /// All that was handed out is applied.
    fn is_settled(&self) -> bool {
        self.applied == self.position.last()
    }

    fn note_applied(&mut self, through: Sequence) {
        self.applied = self.applied.max(through.min(self.position.last()));
    }

    fn restored(&mut self, applied: Chain) {
        if self.behind && applied.last() > self.position.last() {
            self.position = applied;
            self.applied = applied.last();
            self.previous = None;
            self.behind = false;
            self.view.next_look_ms = self.now_ms;
        }
    }

    /// The entry is this member's newest from here on.
    fn take(&mut self, entry: &Entry, revision: Revision) {
        self.position = entry.chain();
        self.previous = Some((entry.first(), revision));
        self.reports.note_boundary(entry.first(), entry.chain());
        self.view.handed_to_me = entry.kind() == EntryKind::HandOver(self.me);
        self.sealed |= entry.kind() == EntryKind::Seal;
    }

    fn apply(entry: Entry, out: &mut Vec<Output>) {
        let (first, chain) = (entry.first(), entry.chain());
        out.push(Output::Apply { first, records: entry.into_records(), chain });
    }

    fn note_members(&mut self, found: &[crate::StoredKey], out: &mut Vec<Output>) -> Result<(), StopReason> {
        let Some(stored) = found.first() else {
            return if self.view.members.is_some() { Err(StopReason::OtherEngine) } else { Ok(()) };
        };
        let members = decode_members(&stored.value).ok_or(StopReason::Damaged { key: "group" })?;
        if self.view.members.as_ref().is_some_and(|(_, known)| *known > stored.revision) {
            return Ok(());
        }
        self.view.members = Some((members, stored.revision));
        match (self.is_member(), &self.role) {
            (false, Part::Follower | Part::Leader(_)) => {
                self.give_up_pending(out);
                self.set_role(Part::Removed, out);
                self.refuse_reads(&Refusal::Removed, out);
            }
            (true, Part::Removed) => self.set_role(Part::Follower, out),
            _ => {}
        }
        Ok(())
    }

    /// The submitter of what is not known yet hears that nobody knows.
    fn give_up_pending(&mut self, out: &mut Vec<Output>) {
        if let Some(pending) = &mut self.pending
            && !std::mem::replace(&mut pending.given_up, true)
            && let Some(submission) = pending.submission
        {
            out.push(Output::Submitted { submission, outcome: SubmissionOutcome::Unknown });
        }
    }

    fn settle_refused(&mut self, out: &mut Vec<Output>) {
        let Some(pending) = self.pending.take() else { return };
        self.calls.give_up(Kind::Append);
        if let (Some(submission), false) = (pending.submission, pending.given_up) {
            let refusal = Refusal::NotLeader { leader: self.other_leader() };
            out.push(Output::Submitted { submission, outcome: SubmissionOutcome::Refused(refusal) });
        }
    }
}

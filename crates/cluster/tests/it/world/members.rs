//! A member's process: its group, its log and store, and what connects them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use scrinium_cluster::{
    CallId, Freshness, Group, GroupOptions, Incarnation, Input, MemberId, NoAnswer, Output, ReadId, Role,
    Rules, SubmissionId, SubmissionOutcome, Timing, Transaction,
};
use scrinium_log::{Chain, Sequence};

use super::clients::{Answer, Wish, Wishes};
use super::{Event, Failure, Heard, Plan, Random, World, keys};

/// What survives a crash: records, and what they make.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    pub(crate) records: Vec<Bytes>,
    pub(crate) chains: Vec<Chain>,
    pub(crate) lists: BTreeMap<u64, Vec<u64>>,
    pub(crate) incarnation: Option<Incarnation>,
}

impl Disk {
    pub(crate) fn chain(&self) -> Chain {
        self.chains.last().copied().unwrap_or(Chain::EMPTY)
    }

    pub(crate) fn last(&self) -> Sequence {
        self.chain().last()
    }

    fn write(&mut self, record: &Bytes) {
        self.chains.push(self.chain().with(record));
        self.records.push(record.clone());
        if let Some((key, value)) = parse(record) {
            self.lists.entry(key).or_default().push(value);
        }
    }
}

/// The record of a client that appends a value to a list.
pub(crate) fn record(key: u64, value: u64) -> Bytes {
    format!("append {key} {value}").into()
}

pub(crate) fn parse(record: &Bytes) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(record).ok()?.strip_prefix("append ")?;
    let (key, value) = text.split_once(' ')?;
    Some((key.parse().ok()?, value.parse().ok()?))
}

/// Records on their way into a member's log and store, and who waits for them.
#[derive(Debug)]
pub(crate) struct Writing {
    first: Sequence,
    records: Vec<Bytes>,
    chain: Chain,
    wishes: Vec<Wish>,
}

pub(crate) struct Member<R: Rules> {
    pub(crate) id: MemberId,
    pub(crate) disk: Disk,
    pub(crate) group: Option<Group<R>>,
    /// Counts starts.
    pub(crate) process: u64,
    pub(crate) paused_until_us: u64,
    pub(crate) cut_off: bool,
    options_timing: Timing,
    seed: u64,
    /// How fast its clock runs, in thousandths, and what it says at time 0.
    clock_rate: u64,
    clock_start_ms: u64,
    /// When the last write into log and store is done: one follows the other.
    disk_free_us: u64,
    queued: VecDeque<Wish>,
    submitted: Option<(SubmissionId, Vec<Wish>)>,
    submissions: u64,
    reads: BTreeMap<ReadId, (Wish, Option<Answer>)>,
    read_count: u64,
}

impl<R: Rules> Member<R> {
    pub(super) fn new(id: u32, plan: &Plan, timing: &Timing, random: &mut Random) -> Self {
        let drift = plan.drift_percent * 10;
        Self {
            id: MemberId(id),
            disk: Disk::default(),
            group: None,
            process: 0,
            paused_until_us: 0,
            cut_off: false,
            options_timing: timing.clone(),
            seed: random.next(),
            clock_rate: random.within(1_000 - drift, 1_000 + drift),
            clock_start_ms: random.within(0, 1_000_000),
            disk_free_us: 0,
            queued: VecDeque::new(),
            submitted: None,
            submissions: 0,
            reads: BTreeMap::new(),
            read_count: 0,
        }
    }

    pub(super) fn has_started(&self) -> bool {
        self.group.is_some()
    }

    pub(super) fn is_up(&self, now_us: u64) -> bool {
        self.has_started() && self.paused_until_us <= now_us
    }

    pub(crate) fn leads(&self) -> bool {
        self.group.as_ref().is_some_and(|group| matches!(group.role(), Role::Leader(_)))
    }

    fn clock_ms(&self, now_us: u64) -> u64 {
        self.clock_start_ms + now_us / 1_000 * self.clock_rate / 1_000
    }
}

impl<R: Rules> World<R> {
    pub(crate) fn start(&mut self, member: usize) {
        let now_us = self.now_us;
        let at = &mut self.members[member];
        if at.group.is_some() {
            return;
        }
        at.process += 1;
        at.paused_until_us = 0;
        at.disk_free_us = now_us;
        let options = GroupOptions {
            me: at.id,
            keys: keys(),
            timing: at.options_timing.clone(),
            seed: at.seed ^ at.process,
            incarnation: at.disk.incarnation,
            applied: at.disk.chain(),
        };
        at.group = Some(Group::new(options, at.clock_ms(now_us)));
        if at.process == 1 {
            self.after_ms(1, Event::Tick(member));
        }
    }

    /// Clients whose wishes were there see a closed connection.
    pub(crate) fn crash(&mut self, member: usize) {
        let at = &mut self.members[member];
        at.group = None;
        at.process += 1;
        let mut wishes: Vec<Wish> = at.queued.drain(..).collect();
        wishes.extend(at.submitted.take().into_iter().flat_map(|(_, wishes)| wishes));
        wishes.extend(std::mem::take(&mut at.reads).into_values().map(|(wish, _)| wish));
        wishes.into_iter().for_each(|wish| self.answer(wish, Answer::Unknown));
    }

    pub(super) fn hear(&mut self, member: usize, what: Heard) -> Result<(), Failure> {
        match what {
            Heard::Input(input) => self.step(member, input)?,
            Heard::Written(writing) => self.written(member, writing)?,
            Heard::Wish(wish) => self.wished(member, wish)?,
            Heard::Snapshot(read) => {
                let at = &mut self.members[member];
                let last = at.disk.last();
                if let Some((wish, answer)) = at.reads.get_mut(&read) {
                    let list = at.disk.lists.get(&wish.key).cloned().unwrap_or_default();
                    *answer = Some(Answer::Read { number: last, list });
                    let us = self.random.within(100, 5_000);
                    self.tell(member, us, Heard::Input(Input::SnapshotTaken { read }));
                }
            }
            Heard::CopyFromPeer => self.copy_from_peer(member)?,
        }
        self.submit_next(member)
    }

    fn step(&mut self, member: usize, input: Input) -> Result<(), Failure> {
        let now_us = self.now_us;
        let at = &mut self.members[member];
        let now_ms = at.clock_ms(now_us);
        let Some(group) = &mut at.group else { return Ok(()) };
        let outputs = group.step(now_ms, input);
        at.disk.incarnation = group.incarnation();
        for output in outputs {
            self.obey(member, output)?;
        }
        Ok(())
    }

    fn obey(&mut self, member: usize, output: Output) -> Result<(), Failure> {
        match output {
            Output::Call { call, transaction } => self.send(member, call, transaction),
            Output::Apply { first, records, chain } => {
                self.write(member, Writing { first, records, chain, wishes: Vec::new() });
            }
            Output::Submitted { submission, outcome } => self.submitted(member, submission, &outcome),
            Output::TakeSnapshot { read } => {
                let us = self.random.within(100, 20_000);
                self.tell(member, us, Heard::Snapshot(read));
            }
            Output::AnswerRead { read } => {
                if let Some((wish, Some(answer))) = self.members[member].reads.remove(&read) {
                    self.answer(wish, answer);
                }
            }
            Output::RefuseRead { read, .. } => {
                if let Some((wish, _)) = self.members[member].reads.remove(&read) {
                    self.answer(wish, Answer::Refused);
                }
            }
            Output::Behind { .. } => self.tell(member, 50_000, Heard::CopyFromPeer),
            Output::MemberDiffers { member, at } => self.tally.warnings.push(format!("{member:?} at {at:?}")),
            Output::Role(role) => self.tally.note_role(self.members[member].id, role),
            Output::Stopped(reason) => {
                let id = self.members[member].id;
                self.tally.stopped.insert(id, reason.clone());
                if self.plan.is_honest() {
                    return Err(self.failed(format!("{id:?} stopped, though the engine is honest: {reason}")));
                }
            }
        }
        Ok(())
    }

    /// One write into log and store follows the other.
    fn write(&mut self, member: usize, writing: Writing) {
        let us = self.random.within(200, 4_000);
        let at = &mut self.members[member];
        at.disk_free_us = at.disk_free_us.max(self.now_us) + us;
        let us = at.disk_free_us - self.now_us;
        self.tell(member, us, Heard::Written(writing));
    }

    fn written(&mut self, member: usize, writing: Writing) -> Result<(), Failure> {
        let at = &mut self.members[member];
        if at.disk.chain().next() != writing.first {
            let (id, last) = (at.id, at.disk.last());
            return Err(
                self.failed(format!("{id:?} holds {last:?} and was to write from {:?} on", writing.first))
            );
        }
        writing.records.iter().for_each(|record| at.disk.write(record));
        let (id, chain) = (at.id, at.disk.chain());
        if R::TESTS_PARENT && chain != writing.chain {
            return Err(self.failed(format!("{id:?} has {chain:?}, and was to have {:?}", writing.chain)));
        }
        self.check_agreement(member, writing.first, &writing.records)?;
        for (index, wish) in (0..).zip(writing.wishes) {
            self.answer(wish, Answer::Wrote { number: Sequence(writing.first.0 + index) });
        }
        self.step(member, Input::Applied { through: chain.last() })
    }

    /// The process has ended before the records were in its log.
    pub(super) fn lost(&mut self, writing: Writing) {
        writing.wishes.into_iter().for_each(|wish| self.answer(wish, Answer::Unknown));
    }

    fn copy_from_peer(&mut self, member: usize) -> Result<(), Failure> {
        let mine = self.members[member].disk.chain();
        let longest =
            self.members.iter().filter(|peer| peer.has_started()).max_by_key(|peer| peer.disk.last());
        let Some(peer) = longest.filter(|peer| peer.disk.last() > mine.last()) else {
            self.tell(member, 500_000, Heard::CopyFromPeer);
            return Ok(());
        };
        let at = mine.last().0 as usize;
        if at > 0 && peer.disk.chains[at - 1] != mine {
            // A person has to look at it.
            return Ok(());
        }
        let records = peer.disk.records[at..].to_vec();
        let disk = &mut self.members[member].disk;
        records.iter().for_each(|record| disk.write(record));
        let applied = disk.chain();
        self.tally.copies += 1;
        self.check_agreement(member, mine.next(), &records)?;
        self.step(member, Input::Restored { applied })
    }

    fn send(&mut self, member: usize, call: CallId, transaction: Transaction) {
        let at = &self.members[member];
        let (process, lost) = (at.process, at.cut_off || self.stormy && self.random.chance(2));
        if lost {
            if self.random.chance(50) {
                let reply = Err(NoAnswer);
                self.tell(member, 300_000, Heard::Input(Input::Answered { call, reply }));
            }
            return;
        }
        if self.stormy && self.random.chance(3) {
            let us = self.random.within(1_000, 6_000_000);
            let transaction = transaction.clone();
            self.after_us(us, Event::Called { member, process, call, transaction, ghost: true });
        }
        let us = self.delay_us();
        self.after_us(us, Event::Called { member, process, call, transaction, ghost: false });
    }

    fn wished(&mut self, member: usize, wish: Wish) -> Result<(), Failure> {
        let at = &mut self.members[member];
        let freshness = match wish.what {
            Wishes::Append(_) if at.queued.len() < 64 => {
                at.queued.push_back(wish);
                return Ok(());
            }
            Wishes::Append(_) => {
                self.answer(wish, Answer::Refused);
                return Ok(());
            }
            Wishes::Latest => Freshness::Latest,
            Wishes::Session(token) => Freshness::Session(token),
        };
        at.read_count += 1;
        let read = ReadId(at.read_count);
        at.reads.insert(read, (wish, None));
        self.step(member, Input::ReadBegun { read, freshness })
    }

    /// All that wait become one submission.
    fn submit_next(&mut self, member: usize) -> Result<(), Failure> {
        let at = &mut self.members[member];
        let Some(group) = &at.group else { return Ok(()) };
        let settled = group.applied() == group.position().last();
        if at.submitted.is_some() || at.queued.is_empty() || !settled {
            return Ok(());
        }
        let count = at.queued.len().min(self.random.within(1, 8) as usize);
        let wishes: Vec<Wish> = at.queued.drain(..count).collect();
        let records = wishes.iter().map(Wish::record).collect();
        at.submissions += 1;
        let submission = SubmissionId(at.submissions);
        at.submitted = Some((submission, wishes));
        self.step(member, Input::Submit { submission, records })
    }

    fn submitted(&mut self, member: usize, submission: SubmissionId, outcome: &SubmissionOutcome) {
        let Some((under_way, wishes)) = self.members[member].submitted.take() else { return };
        assert_eq!(under_way, submission, "one submission is under way at a time");
        match outcome {
            SubmissionOutcome::Agreed { chain } => {
                let records: Vec<Bytes> = wishes.iter().map(Wish::record).collect();
                let first = Sequence(chain.last().0 + 1 - records.len() as u64);
                self.write(member, Writing { first, records, chain: *chain, wishes });
            }
            SubmissionOutcome::Refused(_) => {
                wishes.into_iter().for_each(|wish| self.answer(wish, Answer::Refused));
            }
            SubmissionOutcome::Unknown => {
                wishes.into_iter().for_each(|wish| self.answer(wish, Answer::Unknown));
            }
        }
    }
}

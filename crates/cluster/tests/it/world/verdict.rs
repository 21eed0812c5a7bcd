//! What must hold at every moment, and at the end.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use scrinium_cluster::history::{
    AppendList, ListAnswer, ListOperation, Recorded, Verdict, Witnessed, check_linearizable, check_order,
};
use scrinium_cluster::simulated::Lie;
use scrinium_cluster::{Epoch, MemberId, Role, Rules, StopReason};
use scrinium_log::Sequence;

use super::clients::{Answer, Seen, Wishes};
use super::{World, members};

/// What was seen in a run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The record of each number, as the first member that wrote it has it.
    pub(crate) agreed: BTreeMap<u64, Bytes>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) authors: BTreeMap<Epoch, MemberId>,
    pub(crate) leaders: BTreeMap<Epoch, MemberId>,
    pub(crate) stopped: BTreeMap<MemberId, StopReason>,
    pub(crate) warnings: Vec<String>,
    pub(crate) lie: Option<Lie>,
    pub(crate) false_answers: u64,
    pub(crate) entries: u64,
    pub(crate) copies: u64,
    /// Numbers of which two members have different records, while the engine lies.
    pub(crate) differing: BTreeSet<u64>,
}

/// What does not hold, with what repeats it.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

/// Enough for the histories of these runs; more would be a search without an end.
const MOST_STEPS: usize = 300_000;

impl Tally {
    pub(super) fn note_role(&mut self, member: MemberId, role: Role) {
        if let Role::Leader(epoch) = role {
            self.leaders.insert(epoch, member);
        }
    }

    pub(crate) fn count(&self, what: impl Fn(&Answer) -> bool) -> usize {
        self.seen.iter().filter(|seen| what(&seen.answer)).count()
    }
}

impl<R: Rules> World<R> {
    pub(super) fn failed(&self, what: impl std::fmt::Display) -> Failure {
        let lie = self.tally.lie.map_or(String::new(), |lie| format!(", {lie:?}"));
        Failure(format!("SCRINIUM_SEED={}{lie}, after {} ms: {what}", self.plan.seed, self.now_us / 1_000))
    }

    /// Each number has one record.
    pub(super) fn check_agreement(
        &mut self,
        member: usize,
        first: Sequence,
        records: &[Bytes],
    ) -> Result<(), Failure> {
        for (number, record) in (first.0..).zip(records) {
            let agreed = self.tally.agreed.entry(number).or_insert_with(|| record.clone()).clone();
            if agreed != *record {
                self.tally.differing.insert(number);
                if self.plan.is_honest() {
                    let id = self.members[member].id;
                    return Err(
                        self.failed(format!("{id:?} has {record:?} at {number}, another one {agreed:?}"))
                    );
                }
            }
        }
        Ok(())
    }

    /// The end, after some time without faults.
    pub(super) fn judge(mut self) -> Result<Tally, Failure> {
        self.judge_stores()?;
        self.judge_answers()?;
        if self.plan.is_honest() {
            self.judge_progress()?;
        }
        let fresh = self.plan.drift_percent <= 10 || !self.plan.leases;
        if self.plan.is_honest() && fresh {
            self.judge_order()?;
            self.judge_linearizable()?;
        }
        Ok(std::mem::take(&mut self.tally))
    }

    fn running(&self) -> impl Iterator<Item = &super::Member<R>> {
        self.members.iter().filter(|member| !self.tally.stopped.contains_key(&member.id))
    }

    /// Stores that are still in use are beginnings of one another.
    fn judge_stores(&self) -> Result<(), Failure> {
        let longest = self.running().max_by_key(|member| member.disk.last());
        let Some(longest) = longest else { return Ok(()) };
        for member in self.running() {
            let common = member.disk.chains.len();
            if member.disk.chains != longest.disk.chains[..common] {
                let first = (0..common).find(|at| member.disk.chains[*at] != longest.disk.chains[*at]);
                return Err(self.failed(format!(
                    "{:?} and {:?} differ from record {:?} on, and nobody has noticed",
                    member.id,
                    longest.id,
                    first.map(|at| at + 1)
                )));
            }
        }
        Ok(())
    }

    /// What was answered is there, what was refused is not.
    fn judge_answers(&self) -> Result<(), Failure> {
        // Where a member has stopped, somebody looks into it: its log has what is missing.
        let noticed = !self.tally.stopped.is_empty() || !self.tally.warnings.is_empty();
        let there: BTreeSet<Bytes> =
            self.members.iter().flat_map(|member| member.disk.records.iter().cloned()).collect();
        for Seen { wish, answer, .. } in &self.tally.seen {
            let Wishes::Append(_) = wish.what else { continue };
            match answer {
                Answer::Wrote { number } => {
                    let held = |member: &super::Member<R>| {
                        member.disk.records.get(number.0 as usize - 1) == Some(&wish.record())
                    };
                    let lacks = |member: &super::Member<R>| member.disk.last() >= *number && !held(member);
                    if !self.members.iter().any(held) || !noticed && self.running().any(lacks) {
                        return Err(self.failed(format!("{wish:?} was answered with {number:?} and is lost")));
                    }
                }
                Answer::Refused if there.contains(&wish.record()) => {
                    return Err(self.failed(format!("{wish:?} was refused, and is there")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// All members are there, equal, and one leads.
    fn judge_progress(&self) -> Result<(), Failure> {
        let leaders = self.members.iter().filter(|member| member.leads()).count();
        if leaders != 1 {
            return Err(self.failed(format!("{leaders} members lead after all was mended")));
        }
        let calm_us = (self.plan.stormy_ms + 15_000) * 1_000;
        let wrote = |seen: &&Seen| seen.begun_us > calm_us && matches!(seen.answer, Answer::Wrote { .. });
        if self.tally.seen.iter().filter(wrote).count() < 10 {
            return Err(self.failed("nothing is written after all was mended"));
        }
        let lasts: Vec<u64> = self.members.iter().map(|member| member.disk.last().0).collect();
        let (least, most) = (lasts.iter().min().unwrap(), lasts.iter().max().unwrap());
        if most - least > 60 {
            return Err(self.failed(format!("a member is left behind: {lasts:?}")));
        }
        Ok(())
    }

    /// Numbers follow time, and a read shows what the records up to its number make.
    fn judge_order(&self) -> Result<(), Failure> {
        let mut lists: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        for (number, record) in &self.tally.agreed {
            if let Some((key, value)) = members::parse(record) {
                lists.entry(key).or_default().push((*number, value));
            }
        }
        let mut witnessed = Vec::new();
        for Seen { begun_us, ended_us, wish, answer } in &self.tally.seen {
            let (number, wrote) = match answer {
                Answer::Wrote { number } => (*number, true),
                Answer::Read { number, list } => {
                    let all = lists.get(&wish.key).map_or(&[][..], Vec::as_slice);
                    let count = all.partition_point(|(at, _)| *at <= number.0);
                    if !list.iter().eq(all[..count].iter().map(|(_, value)| value)) {
                        return Err(self.failed(format!("{wish:?} saw {list:?} at {number:?}")));
                    }
                    if let Wishes::Session(token) = wish.what {
                        if *number < token {
                            return Err(self.failed(format!("{wish:?} saw {number:?}")));
                        }
                        continue;
                    }
                    (*number, false)
                }
                Answer::Refused | Answer::Unknown => continue,
            };
            witnessed.push(Witnessed { begun: *begun_us, ended: *ended_us, number, wrote });
        }
        check_order(&witnessed).map_err(|violation| self.failed(violation))
    }

    /// Without believing any number: key by key.
    fn judge_linearizable(&self) -> Result<(), Failure> {
        let mut histories: BTreeMap<u64, Vec<Recorded<AppendList>>> = BTreeMap::new();
        for Seen { begun_us, ended_us, wish, answer } in &self.tally.seen {
            let (operation, answer) = match (&wish.what, answer) {
                (Wishes::Append(value), Answer::Wrote { .. }) => {
                    (ListOperation::Append { value: *value, place: None }, Some(ListAnswer::Done))
                }
                (Wishes::Append(value), Answer::Unknown) => {
                    (ListOperation::Append { value: *value, place: None }, None)
                }
                (Wishes::Latest, Answer::Read { list, .. }) => {
                    (ListOperation::Read, Some(ListAnswer::Values(list.clone())))
                }
                _ => continue,
            };
            let answer = answer.map(|answer| (*ended_us, answer));
            histories.entry(wish.key).or_default().push(Recorded { begun: *begun_us, operation, answer });
        }
        for (key, history) in histories {
            let history = AppendList::with_places(history);
            match check_linearizable(&history, MOST_STEPS) {
                Verdict::Linearizable => {}
                Verdict::TooLong => panic!("SCRINIUM_SEED={}: the history is too long", self.plan.seed),
                verdict => return Err(self.failed(format!("list {key}: {verdict:?} of {}", history.len()))),
            }
        }
        Ok(())
    }
}

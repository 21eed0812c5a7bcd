//! What goes wrong, and how long.

use scrinium_cluster::{CallId, Entry, Input, MemberId, Operation, Rules, Transaction};

use super::{Event, Failure, Heard, Only, World, keys};

/// What is mended later.
#[derive(Clone, Copy, Debug)]
pub(super) enum Broken {
    Member(usize),
    Engine,
}

const ENTRIES: &[u8] = b"s/test/log/main/";

impl<R: Rules> World<R> {
    pub(super) fn fault(&mut self) {
        if !self.stormy {
            return;
        }
        let pause_ms = self.random.within(1, self.plan.fault_every_ms * 2);
        self.after_ms(pause_ms, Event::Fault);
        let anybody = self.random.next() as usize % self.members.len();
        let leader = self.members.iter().position(super::Member::leads);
        let victim = leader.filter(|_| self.random.chance(60)).unwrap_or(anybody);
        if let Some(only) = self.plan.only {
            let ms = self.random.within(3_500, 7_000);
            match only {
                Only::CutOff => self.cut_off(victim, ms),
                Only::Pause => self.members[victim].paused_until_us = self.now_us + ms * 1_000,
            }
            return;
        }
        match self.random.within(0, 11) {
            0..=2 => {
                self.crash(victim);
                let ms = self.random.within(10, 12_000);
                self.after_ms(ms, Event::Restart(victim));
            }
            3..=5 => {
                let us = self.random.within(20_000, 7_000_000);
                self.members[victim].paused_until_us = self.now_us + us;
            }
            6..=8 => {
                let ms = self.random.within(100, 9_000);
                self.cut_off(victim, ms);
            }
            9 => {
                self.engine_is_down = true;
                let ms = self.random.within(100, 6_000);
                self.after_ms(ms, Event::Mend(Broken::Engine));
            }
            10 if self.plan.hands_over => {
                if let Some(leader) = leader {
                    let to = MemberId(self.random.within(1, u64::from(self.plan.members)) as u32);
                    self.tell(leader, 0, Heard::Input(Input::HandOver { to }));
                }
            }
            _ => self.lie(),
        }
    }

    /// The engine and the member do not hear each other.
    fn cut_off(&mut self, member: usize, ms: u64) {
        self.members[member].cut_off = true;
        self.after_ms(ms, Event::Mend(Broken::Member(member)));
    }

    /// One lie a run, once there is something to lie about.
    fn lie(&mut self) {
        let lies = self.plan.lies;
        if lies.is_empty() || self.tally.lie.is_some() || self.engine.count(ENTRIES) < 20 {
            return;
        }
        let lie = lies[self.random.next() as usize % lies.len()];
        let chance = self.random.next();
        let former = self.formers[chance as usize % self.formers.len()].clone();
        if self.engine.lie(lie, ENTRIES, &former, chance) {
            self.tally.lie = Some(lie);
        }
    }

    pub(super) fn mend(&mut self, broken: Broken) {
        match broken {
            Broken::Member(member) => self.members[member].cut_off = false,
            Broken::Engine => self.engine_is_down = false,
        }
    }

    pub(super) fn calm_down(&mut self) {
        self.stormy = false;
        self.engine_is_down = false;
        for member in 0..self.members.len() {
            self.members[member].cut_off = false;
            self.start(member);
        }
    }

    /// Most calls are quick; a few take so long that the member has given them up.
    pub(super) fn delay_us(&mut self) -> u64 {
        let slow = self.stormy && self.random.chance(self.plan.slow_percent);
        if slow { self.random.within(4_000, 2_500_000) } else { self.random.within(200, 4_000) }
    }

    pub(super) fn called(
        &mut self,
        member: usize,
        process: u64,
        call: CallId,
        transaction: &Transaction,
        ghost: bool,
    ) -> Result<(), Failure> {
        if self.engine_is_down {
            return Ok(());
        }
        let writes = transaction
            .then
            .iter()
            .any(|operation| !matches!(operation, Operation::Get { .. } | Operation::Range { .. }));
        let lies = self.stormy && self.random.chance(self.plan.false_answers_percent);
        let reply = if lies && self.formers.len() > 3 {
            // An old answer, or one about a change that is forgotten at once.
            self.tally.false_answers += 1;
            let old = self.random.within(1, 3.min(self.formers.len() as u64)) as usize;
            let from =
                if writes { self.engine.clone() } else { self.formers[self.formers.len() - old].clone() };
            let mut from = from;
            from.transact(transaction)
        } else {
            let reply = self.engine.transact(transaction);
            if writes && reply.succeeded {
                self.note_entries(member, transaction)?;
                self.wake_others(member);
                if self.formers.len() > 40 {
                    self.formers.remove(0);
                }
                if !self.plan.is_honest() {
                    self.formers.push(self.engine.clone());
                }
            }
            reply
        };
        let at = &self.members[member];
        if ghost || at.process != process || at.cut_off || self.stormy && self.random.chance(3) {
            return Ok(());
        }
        let us = self.delay_us();
        self.tell(member, us, Heard::Input(Input::Answered { call, reply: Ok(reply) }));
        Ok(())
    }

    /// Who has written which entries, in which epoch.
    fn note_entries(&mut self, member: usize, transaction: &Transaction) -> Result<(), Failure> {
        let author = self.members[member].id;
        for operation in &transaction.then {
            let Operation::Put { key, value } = operation else { continue };
            if !key.starts_with(ENTRIES) {
                continue;
            }
            let entry = Entry::decode(value).unwrap();
            assert_eq!(keys().entry(entry.first()), *key);
            let first = self.tally.authors.entry(entry.epoch()).or_insert(author);
            if *first != author && self.plan.is_honest() {
                let (first, epoch) = (*first, entry.epoch());
                return Err(self.failed(format!("{first:?} and {author:?} have both written in {epoch:?}")));
            }
            self.tally.entries += 1;
        }
        Ok(())
    }

    /// Wake-ups are late, lost, in vain and twice.
    fn wake_others(&mut self, member: usize) {
        for other in (0..self.members.len()).filter(|other| *other != member) {
            for _ in 0..2 {
                if self.random.chance(45) {
                    let us = self.random.within(100, 50_000);
                    self.tell(other, us, Heard::Input(Input::Wake));
                }
            }
        }
    }
}

//! Several members, an engine, clients and faults in one thread, in a time of its own. A seed repeats a run exactly.

mod clients;
mod faults;
mod members;
mod verdict;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use bytes::Bytes;
use scrinium_cluster::simulated::{Lie, SimulatedEngine};
use scrinium_cluster::{
    CallId, Control, Incarnation, Input, Keys, MemberId, Membership, Rules, Timing, Transaction, begin,
};
use scrinium_log::Chain;

pub(crate) use clients::{Answer, Client};
pub(crate) use members::Member;
pub(crate) use verdict::{Failure, Tally};

/// The rules as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sound;

impl Rules for Sound {
    fn record(control: Control) -> Bytes {
        control_record(control)
    }
}

pub(crate) fn control_record(control: Control) -> Bytes {
    format!("control {control:?}").into()
}

pub(crate) fn keys() -> Keys {
    Keys::new("test", "main").unwrap()
}

/// Random numbers that a seed repeats.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `low` to `high`, both possible.
    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// What goes wrong in a run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) members: u32,
    pub(crate) clients: usize,
    /// How long faults happen; then all is well for `calm_ms`.
    pub(crate) stormy_ms: u64,
    pub(crate) calm_ms: u64,
    /// The average pause between two faults.
    pub(crate) fault_every_ms: u64,
    /// Clocks run at most this much faster or slower, in percent.
    pub(crate) drift_percent: u64,
    pub(crate) leases: bool,
    /// Lies of the engine's own, one of them in a run.
    pub(crate) lies: &'static [Lie],
    /// Old answers and forgotten changes, in percent of calls, while faults happen.
    pub(crate) false_answers_percent: u64,
    /// How many calls and answers are slow, in percent.
    pub(crate) slow_percent: u64,
    /// Whether the leader hands over now and then.
    pub(crate) hands_over: bool,
    /// Nothing but this, and for about as long as others wait until they claim.
    pub(crate) only: Option<Only>,
    /// Of ten operations these many write.
    pub(crate) writes_of_ten: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Only {
    CutOff,
    Pause,
}

impl Plan {
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            seed,
            members: 3,
            clients: 4,
            stormy_ms: 60_000,
            calm_ms: 30_000,
            fault_every_ms: 2_500,
            drift_percent: 8,
            leases: true,
            lies: &[],
            false_answers_percent: 0,
            slow_percent: 3,
            hands_over: true,
            only: None,
            writes_of_ten: 5,
        }
    }

    /// Nothing goes wrong but what a test does.
    pub(crate) const fn calm(seed: u64) -> Self {
        Self {
            fault_every_ms: u64::MAX / 4_000,
            stormy_ms: 0,
            calm_ms: 3_600_000,
            slow_percent: 0,
            drift_percent: 1,
            ..Self::new(seed)
        }
    }

    pub(crate) const fn is_honest(&self) -> bool {
        self.lies.is_empty() && self.false_answers_percent == 0
    }
}

#[derive(Debug)]
enum Event {
    Tick(usize),
    /// Something for a process of a member; not for the one that was started after a crash.
    Hear {
        member: usize,
        process: u64,
        what: Heard,
    },
    /// A call has reached the engine. A `ghost` is one that was sent twice, and whose answer goes nowhere.
    Called {
        member: usize,
        process: u64,
        call: CallId,
        transaction: Transaction,
        ghost: bool,
    },
    Client(usize),
    Fault,
    Restart(usize),
    Mend(faults::Broken),
    Calm,
}

#[derive(Debug)]
enum Heard {
    Input(Input),
    /// Records are in its log and store.
    Written(members::Writing),
    /// A client's wish.
    Wish(clients::Wish),
    Snapshot(scrinium_cluster::ReadId),
    CopyFromPeer,
}

pub(crate) struct World<R: Rules> {
    pub(crate) plan: Plan,
    pub(crate) random: Random,
    now_us: u64,
    order: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Slot)>>,
    events: BTreeMap<u64, Event>,
    pub(crate) engine: SimulatedEngine,
    /// Former states of the engine.
    formers: Vec<SimulatedEngine>,
    engine_is_down: bool,
    stormy: bool,
    pub(crate) members: Vec<Member<R>>,
    pub(crate) clients: Vec<Client>,
    pub(crate) tally: Tally,
}

/// The place of an event, which itself cannot be compared.
type Slot = u64;

impl<R: Rules> World<R> {
    pub(crate) fn new(plan: Plan) -> Self {
        let mut random = Random::new(plan.seed);
        // Readers wait longer than a pause after which another member leads.
        let timing = Timing { leases: plan.leases, read_ms: 7_500, ..Timing::default() };
        timing.check().unwrap();
        let mut engine = SimulatedEngine::new();
        let memberships: Vec<Membership> = (1..=plan.members)
            .map(|id| Membership { member: MemberId(id), priority: u8::from(id == 1) })
            .collect();
        let first =
            begin::<R>(&keys(), MemberId(1), &memberships, Incarnation([7; 16]), Chain::EMPTY).unwrap();
        assert!(engine.transact(&first).succeeded && !engine.transact(&first).succeeded);
        let members = (1..=plan.members).map(|id| Member::new(id, &plan, &timing, &mut random)).collect();
        let clients = (0..plan.clients).map(Client::new).collect();
        let mut world = Self {
            plan,
            random,
            now_us: 0,
            order: 0,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            engine,
            formers: Vec::new(),
            engine_is_down: false,
            stormy: true,
            members,
            clients,
            tally: Tally::default(),
        };
        for member in 0..world.members.len() {
            world.start(member);
        }
        for client in 0..world.clients.len() {
            world.after_ms(10, Event::Client(client));
        }
        world.after_ms(5_000, Event::Fault);
        world.after_ms(world.plan.stormy_ms, Event::Calm);
        world
    }

    /// Runs to the end, and says what does not hold.
    pub(crate) fn run(mut self) -> Result<Tally, Failure> {
        self.run_until_us((self.plan.stormy_ms + self.plan.calm_ms) * 1_000)?;
        self.judge()
    }

    /// Runs for some time more.
    pub(crate) fn run_for_ms(&mut self, ms: u64) {
        self.run_until_us(self.now_us + ms * 1_000).unwrap_or_else(|failure| panic!("{}", failure.0));
    }

    fn run_until_us(&mut self, end_us: u64) -> Result<(), Failure> {
        while let Some(Reverse((at_us, _, _))) = self.queue.peek()
            && *at_us <= end_us
            && let Some(Reverse((at_us, _, slot))) = self.queue.pop()
        {
            self.now_us = at_us;
            let event = self.events.remove(&slot).unwrap();
            self.happen(event)?;
        }
        self.now_us = end_us;
        Ok(())
    }

    /// Who leads, if one does.
    pub(crate) fn leader(&self) -> Option<usize> {
        let leaders: Vec<usize> =
            (0..self.members.len()).filter(|member| self.members[*member].leads()).collect();
        if let [leader] = leaders[..] { Some(leader) } else { None }
    }

    /// A member hears something now.
    pub(crate) fn input(&mut self, member: usize, input: Input) {
        self.tell(member, 0, Heard::Input(input));
    }

    /// The longest time without an answered write since then.
    pub(crate) fn longest_gap_ms(&self, since_us: u64) -> u64 {
        let wrote = self.tally.seen.iter().filter(|seen| matches!(seen.answer, Answer::Wrote { .. }));
        let mut times: Vec<u64> =
            wrote.map(|seen| seen.ended_us).filter(|ended_us| *ended_us >= since_us).collect();
        times.extend([since_us, self.now_us]);
        times.sort_unstable();
        times.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000).max().unwrap()
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.now_us
    }

    fn after_us(&mut self, us: u64, event: Event) {
        self.order += 1;
        self.events.insert(self.order, event);
        self.queue.push(Reverse((self.now_us + us, self.order, self.order)));
    }

    fn after_ms(&mut self, ms: u64, event: Event) {
        self.after_us(ms * 1_000, event);
    }

    fn happen(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Tick(member) => {
                let pause_us = self.random.within(40_000, 60_000);
                self.after_us(pause_us, Event::Tick(member));
                if self.members[member].is_up(self.now_us) {
                    self.hear(member, Heard::Input(Input::Tick))?;
                }
            }
            Event::Hear { member, process, what } => {
                let at = &self.members[member];
                if at.process != process || !at.has_started() {
                    match what {
                        // It was never taken.
                        Heard::Wish(wish) => self.answer(wish, Answer::Refused),
                        Heard::Written(writing) => self.lost(writing),
                        _ => {}
                    }
                    return Ok(());
                }
                if at.paused_until_us > self.now_us {
                    // It hears so when it goes on, in the same order.
                    let us = at.paused_until_us - self.now_us;
                    self.after_us(us, Event::Hear { member, process, what });
                    return Ok(());
                }
                self.hear(member, what)?;
            }
            Event::Called { member, process, call, transaction, ghost } => {
                self.called(member, process, call, &transaction, ghost)?;
            }
            Event::Client(client) => self.client_acts(client),
            Event::Fault => self.fault(),
            Event::Restart(member) => self.start(member),
            Event::Mend(broken) => self.mend(broken),
            Event::Calm => self.calm_down(),
        }
        Ok(())
    }

    /// Carries something to a process of a member.
    fn tell(&mut self, member: usize, us: u64, what: Heard) {
        let process = self.members[member].process;
        self.after_us(us, Event::Hear { member, process, what });
    }
}

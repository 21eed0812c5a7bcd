//! The same core in every order of a few events: calls and answers late, lost or never made, crashes, and clocks that run apart.

use bytes::Bytes;
use scrinium_cluster::simulated::SimulatedEngine;
use scrinium_cluster::{
    CallId, Freshness, Group, GroupOptions, Incarnation, Input, MemberId, Membership, Output, ReadId, Reply,
    Role, SubmissionId, SubmissionOutcome, Timing, Transaction, begin,
};
use scrinium_fault::cases;
use scrinium_log::{Chain, Sequence};
use stateright::{Checker, Model, Property};

use crate::world::{Sound, keys};

const MEMBERS: usize = 3;
const TICK_MS: u64 = 1_000;

/// Waits of one or two ticks. The lease ends a tick before a claim begins, and a member's clock is at most a tick ahead.
fn timing() -> Timing {
    Timing {
        beat_ms: TICK_MS,
        lease_ms: TICK_MS / 2,
        claim_after_ms: 2 * TICK_MS,
        claim_spread_ms: 0,
        look_ms: TICK_MS,
        call_ms: 2 * TICK_MS,
        retry_ms: 1,
        unknown_after_ms: 100 * TICK_MS,
        read_ms: 100 * TICK_MS,
        report_ms: u64::MAX / 2,
        absent_after_ms: u64::MAX / 2,
        leases: true,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    group: Group<Sound>,
    now_ms: u64,
    process: u8,
    records: Vec<Bytes>,
    chain: Chain,
    submitted: Option<Bytes>,
}

/// A call on its way to the engine, or its answer on the way back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Message {
    Call { node: usize, process: u8, call: CallId, transaction: Transaction },
    Answer { node: usize, process: u8, call: CallId, reply: Reply },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    nodes: Vec<Node>,
    engine: SimulatedEngine,
    messages: Vec<Message>,
    /// Records that were answered, with their numbers.
    answered: Vec<(Sequence, Bytes)>,
    refused: Vec<Bytes>,
    ticks: u8,
    losses: u8,
    crashes: u8,
    submissions: u8,
    hand_overs: u8,
    looks: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Tick(usize),
    Look(usize),
    Carry(usize),
    Lose(usize),
    Submit(usize),
    Crash(usize),
    HandOver(usize),
}

struct Protocol {
    /// Whether the leader has been silent for nearly as long as the others wait.
    silent: bool,
    most_looks: u8,
    most_ticks: u8,
    most_losses: u8,
    most_crashes: u8,
    most_submissions: u8,
    most_hand_overs: u8,
}

impl Node {
    fn new(place: usize, process: u8, now_ms: u64, records: Vec<Bytes>, chain: Chain) -> Self {
        let options = GroupOptions {
            me: MemberId(place as u32 + 1),
            keys: keys(),
            timing: timing(),
            seed: 0,
            incarnation: Some(Incarnation([7; 16])),
            applied: chain,
        };
        Self { group: Group::new(options, now_ms), now_ms, process, records, chain, submitted: None }
    }

    fn leads(&self) -> bool {
        matches!(self.group.role(), Role::Leader(_))
    }

    /// Whether a reader of the latest would be answered now, from what is here.
    fn answers_readers(&self) -> bool {
        let mut group = self.group.clone();
        let read = ReadId(0);
        let begun = group.step(self.now_ms, Input::ReadBegun { read, freshness: Freshness::Latest });
        begun.contains(&Output::TakeSnapshot { read })
            && group.step(self.now_ms, Input::SnapshotTaken { read }).contains(&Output::AnswerRead { read })
    }
}

impl State {
    fn hear(&mut self, place: usize, input: Input) {
        let node = &mut self.nodes[place];
        let outputs = node.group.step(node.now_ms, input);
        for output in outputs {
            self.obey(place, output);
        }
    }

    fn obey(&mut self, place: usize, output: Output) {
        let node = &mut self.nodes[place];
        match output {
            Output::Call { call, transaction } => {
                let process = node.process;
                self.messages.push(Message::Call { node: place, process, call, transaction });
            }
            Output::Apply { first, records, .. } => {
                assert_eq!(first, node.chain.next());
                self.write(place, records);
            }
            Output::Submitted { outcome: SubmissionOutcome::Agreed { .. }, .. } => {
                let record = node.submitted.take().unwrap();
                let number = node.chain.next();
                self.write(place, vec![record.clone()]);
                self.answered.push((number, record));
            }
            Output::Submitted { outcome: SubmissionOutcome::Refused(_), .. } => {
                self.refused.extend(node.submitted.take());
            }
            Output::Submitted { outcome: SubmissionOutcome::Unknown, .. } => node.submitted = None,
            Output::Stopped(reason) => panic!("the engine is honest: {reason}"),
            _ => {}
        }
    }

    fn write(&mut self, place: usize, records: Vec<Bytes>) {
        let node = &mut self.nodes[place];
        node.chain = node.chain.with_all(&records);
        node.records.extend(records);
        let through = node.chain.last();
        self.hear(place, Input::Applied { through });
    }

    fn tick(&mut self, place: usize) {
        self.nodes[place].now_ms += TICK_MS;
        self.hear(place, Input::Tick);
    }

    fn carry(&mut self, at: usize) {
        match self.messages.remove(at) {
            Message::Call { node, process, call, transaction } => {
                let reply = self.engine.transact(&transaction);
                if self.nodes[node].process == process {
                    self.messages.push(Message::Answer { node, process, call, reply });
                }
            }
            Message::Answer { node, process, call, reply } => {
                if self.nodes[node].process == process {
                    self.hear(node, Input::Answered { call, reply: Ok(reply) });
                }
            }
        }
    }

    fn crash(&mut self, place: usize) {
        let node = &self.nodes[place];
        self.nodes[place] = Node::new(place, node.process + 1, node.now_ms, node.records.clone(), node.chain);
    }

    /// Three members that hold the first records, of which the first leads.
    fn settled() -> Self {
        let mut engine = SimulatedEngine::new();
        let members: Vec<Membership> =
            (1..=MEMBERS).map(|id| Membership { member: MemberId(id as u32), priority: 0 }).collect();
        let first =
            begin::<Sound>(&keys(), MemberId(1), &members, Incarnation([7; 16]), Chain::EMPTY).unwrap();
        assert!(engine.transact(&first).succeeded);
        let nodes = (0..MEMBERS).map(|place| Node::new(place, 0, 0, Vec::new(), Chain::EMPTY)).collect();
        let mut state = Self {
            nodes,
            engine,
            messages: Vec::new(),
            answered: Vec::new(),
            refused: Vec::new(),
            ticks: 0,
            losses: 0,
            crashes: 0,
            submissions: 0,
            hand_overs: 0,
            looks: 0,
        };
        let allow = |state: &mut Self, allowed| {
            (1..MEMBERS).for_each(|place| state.hear(place, Input::AllowClaims(allowed)));
        };
        allow(&mut state, false);
        for _ in 0..8 {
            (0..MEMBERS).for_each(|place| state.tick(place));
            while !state.messages.is_empty() {
                state.carry(0);
            }
        }
        assert!(
            state.nodes[0].leads() && state.nodes.iter().all(|node| node.records == state.nodes[0].records)
        );
        allow(&mut state, true);
        state
    }
}

impl State {
    /// The others have seen no beat for a tick less than they wait. The leader's last beat is on its way.
    fn silent() -> Self {
        let mut state = Self::settled();
        let of_leader = |message: &Message| matches!(message, Message::Call { node: 0, .. });
        (0..MEMBERS).for_each(|place| state.tick(place));
        while let Some(at) = state.messages.iter().position(|message| !of_leader(message)) {
            state.carry(at);
        }
        assert!(state.nodes[0].leads() && !state.messages.is_empty());
        state
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![if self.silent { State::silent() } else { State::settled() }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (place, node) in state.nodes.iter().enumerate() {
            let slowest = state.nodes.iter().map(|node| node.now_ms).min().unwrap();
            if state.ticks < self.most_ticks && node.now_ms <= slowest {
                actions.push(Action::Tick(place));
            }
            if !node.leads() && state.looks < self.most_looks {
                actions.push(Action::Look(place));
            }
            if node.leads() && node.submitted.is_none() && state.submissions < self.most_submissions {
                actions.push(Action::Submit(place));
            }
            if node.leads() && state.hand_overs < self.most_hand_overs {
                actions.push(Action::HandOver(place));
            }
            if state.crashes < self.most_crashes && (node.leads() || node.submitted.is_some()) {
                actions.push(Action::Crash(place));
            }
        }
        for at in 0..state.messages.len() {
            actions.push(Action::Carry(at));
            if state.losses < self.most_losses {
                actions.push(Action::Lose(at));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Tick(place) => {
                state.ticks += 1;
                state.tick(place);
            }
            Action::Look(place) => {
                state.looks += 1;
                state.hear(place, Input::Wake);
            }
            Action::Carry(at) => state.carry(at),
            Action::Lose(at) => {
                state.losses += 1;
                state.messages.remove(at);
            }
            Action::Submit(place) => {
                state.submissions += 1;
                let record = Bytes::from(format!("record {}", state.submissions));
                state.nodes[place].submitted = Some(record.clone());
                let submission = SubmissionId(u64::from(state.submissions));
                state.hear(place, Input::Submit { submission, records: vec![record] });
            }
            Action::Crash(place) => {
                state.crashes += 1;
                state.crash(place);
            }
            Action::HandOver(place) => {
                state.hand_overs += 1;
                let to = MemberId((place as u32 + 1) % MEMBERS as u32 + 1);
                state.hear(place, Input::HandOver { to });
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("each number has one record", |_, state: &State| {
                let longest = state.nodes.iter().max_by_key(|node| node.records.len()).unwrap();
                state.nodes.iter().all(|node| longest.records.starts_with(&node.records))
            }),
            Property::always("what was answered is in every later leader's store", |_, state: &State| {
                let newest = state.nodes.iter().filter_map(|node| match node.group.role() {
                    Role::Leader(epoch) => Some((epoch, node)),
                    _ => None,
                });
                let newest = newest.max_by_key(|(epoch, _)| *epoch);
                newest.is_none_or(|(_, node)| holds_all(node, &state.answered))
            }),
            Property::always("a leased read is not older than an answered write", |_, state: &State| {
                state.nodes.iter().all(|node| !node.answers_readers() || holds_all(node, &state.answered))
            }),
            Property::always("what was refused is nowhere", |_, state: &State| {
                state
                    .nodes
                    .iter()
                    .all(|node| state.refused.iter().all(|record| !node.records.contains(record)))
            }),
            Property::sometimes("something is answered", |_, state: &State| !state.answered.is_empty()),
            Property::sometimes("another member leads", |_, state: &State| {
                state.nodes.iter().skip(1).any(Node::leads)
            }),
        ]
    }
}

fn holds_all(node: &Node, answered: &[(Sequence, Bytes)]) -> bool {
    answered.iter().all(|(number, record)| node.records.get(number.0 as usize - 1) == Some(record))
}

/// As many states as there is time for, nearest first; every one of them in the long form, if it is given enough of it.
fn check(protocol: Protocol, states: u32) {
    let states = cases(states) as usize;
    let checker = protocol.checker().threads(1).target_state_count(states).spawn_bfs().join();
    println!("{} states, {} of them different", checker.state_count(), checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn claims_and_appends_in_every_order() {
    let protocol = Protocol {
        silent: true,
        most_looks: 0,
        most_ticks: 5,
        most_losses: 1,
        most_crashes: 1,
        most_submissions: 1,
        most_hand_overs: 0,
    };
    check(protocol, 20_000);
}

#[test]
fn handing_over_in_every_order() {
    let protocol = Protocol {
        silent: false,
        most_looks: 2,
        most_ticks: 0,
        most_losses: 1,
        most_crashes: 0,
        most_submissions: 1,
        most_hand_overs: 1,
    };
    check(protocol, 60_000);
}

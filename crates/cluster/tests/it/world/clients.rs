//! Clients that append to lists and read them, and what they saw.

use bytes::Bytes;
use scrinium_cluster::Rules;
use scrinium_log::Sequence;

use super::{Event, Heard, World, members};

/// What a client wants of a member.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) client: usize,
    pub(crate) number: u64,
    pub(crate) key: u64,
    pub(crate) what: Wishes,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Wishes {
    Append(u64),
    Latest,
    Session(Sequence),
}

impl Wish {
    pub(crate) fn record(&self) -> Bytes {
        let Wishes::Append(value) = self.what else { panic!("a read has no record") };
        members::record(self.key, value)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Wrote { number: Sequence },
    Read { number: Sequence, list: Vec<u64> },
    Refused,
    Unknown,
}

/// One operation as its client saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) begun_us: u64,
    pub(crate) ended_us: u64,
    pub(crate) wish: Wish,
    pub(crate) answer: Answer,
}

#[derive(Debug)]
pub(crate) struct Client {
    place: usize,
    asked: u64,
    waits: Option<(u64, Wish)>,
    /// What it has seen or written last.
    token: Sequence,
    member: usize,
}

/// Some clients give up soon and ask another member, the others wait for long.
const PATIENCE_US: [u64; 2] = [700_000, 8_000_000];
/// At most this many keys, so that histories of one are dense.
const KEYS: u64 = 3;

impl Client {
    pub(super) const fn new(place: usize) -> Self {
        Self { place, asked: 0, waits: None, token: Sequence(0), member: place }
    }
}

impl<R: Rules> World<R> {
    pub(super) fn client_acts(&mut self, client: usize) {
        let now_us = self.now_us;
        let again_us = self.random.within(2_000, 120_000);
        self.after_us(again_us, Event::Client(client));
        let at = &mut self.clients[client];
        if let Some((begun_us, wish)) = &at.waits {
            if now_us - begun_us < PATIENCE_US[client % 2] {
                return;
            }
            let (begun_us, wish) = (*begun_us, wish.clone());
            at.waits = None;
            self.tally.seen.push(Seen { begun_us, ended_us: now_us, wish, answer: Answer::Unknown });
        }
        at.asked += 1;
        let (number, token) = (at.asked, at.token);
        let key = self.random.within(1, KEYS);
        let what = match self.random.within(1, 10) {
            chance if chance <= self.plan.writes_of_ten => {
                Wishes::Append((client as u64 + 1) * 1_000_000 + number)
            }
            10 => Wishes::Session(token),
            _ => Wishes::Latest,
        };
        // Most of the time it knows who leads; now and then it asks anybody, also one who thinks that it leads still.
        let leaders: Vec<usize> =
            (0..self.members.len()).filter(|member| self.members[*member].leads()).collect();
        let anybody = self.random.next() as usize % self.members.len();
        let member = match leaders.len() {
            0 => anybody,
            _ if self.random.chance(10) => anybody,
            count => leaders[self.random.next() as usize % count],
        };
        let wish = Wish { client, number, key, what };
        let at = &mut self.clients[client];
        at.member = member;
        at.waits = Some((now_us, wish.clone()));
        let us = self.random.within(50, 1_000);
        self.tell(member, us, Heard::Wish(wish));
    }

    /// The answer reaches its client, if that still waits.
    pub(super) fn answer(&mut self, wish: Wish, answer: Answer) {
        let at = &mut self.clients[wish.client];
        let Some((begun_us, waits)) = &at.waits else { return };
        if waits.number != wish.number {
            return;
        }
        let begun_us = *begun_us;
        at.waits = None;
        if let Answer::Wrote { number } | Answer::Read { number, .. } = &answer {
            at.token = at.token.max(*number);
        }
        debug_assert_eq!(at.place, wish.client);
        self.tally.seen.push(Seen { begun_us, ended_us: self.now_us, wish, answer });
    }
}

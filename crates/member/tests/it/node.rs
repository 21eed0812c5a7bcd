//! A member with a log of its own, and what its clients were told.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use scrinium_cluster::{
    Control, Engine, GroupOptions, Incarnation, Keys, MemberId, Membership, Rules, Timing, Transaction, begin,
};
use scrinium_log::{Apply, Chain, Committer, Log, LogError, LogOptions, Sequence};
use scrinium_member::{Member, MemberStatus, Seat};
use scrinium_statistics::Registry;

/// How long is waited for what must come, on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sound;

impl Rules for Sound {
    fn record(control: Control) -> Bytes {
        format!("control {control:?}").into()
    }
}

pub(crate) fn keys() -> Keys {
    Keys::new("test", "main").unwrap()
}

/// Shorter waits than in use, in the same proportions.
pub(crate) fn timing() -> Timing {
    let timing = Timing {
        beat_ms: 250,
        lease_ms: 750,
        claim_after_ms: 1_200,
        claim_spread_ms: 200,
        look_ms: 100,
        call_ms: 800,
        retry_ms: 50,
        unknown_after_ms: 10_000,
        read_ms: 5_000,
        report_ms: 400,
        absent_after_ms: 5_000,
        leases: true,
    };
    timing.check().unwrap();
    timing
}

/// The transaction that begins a group of three.
pub(crate) fn beginning() -> Transaction {
    let members: Vec<Membership> =
        (1..=3).map(|id| Membership { member: MemberId(id), priority: u8::from(id == 1) }).collect();
    begin::<Sound>(&keys(), MemberId(1), &members, Incarnation([7; 16]), Chain::EMPTY).unwrap()
}

/// A store that keeps nothing: these tests look at logs.
struct Nothing;

impl Apply for Nothing {
    type Error = std::io::Error;

    fn apply(&mut self, _: Sequence, _: &[Bytes]) -> std::io::Result<()> {
        Ok(())
    }

    fn make_durable(&mut self) -> std::io::Result<Sequence> {
        Err(std::io::Error::other("nothing but the log makes records durable"))
    }

    fn apply_unlogged(&mut self, _: &mut dyn Iterator<Item = &Bytes>) -> std::io::Result<()> {
        Err(std::io::Error::other("nothing stays out of the log"))
    }
}

fn options(dir: &Path) -> LogOptions {
    let mut options = LogOptions::new(dir);
    options.extent_bytes = 1 << 20;
    options.max_record_bytes = 256 << 10;
    options.spare_extents = 1;
    options
}

fn all_records(log: &Log, first: Sequence) -> Vec<Bytes> {
    log.read_from(first).unwrap().map(|record| record.unwrap().bytes).collect()
}

/// All records of the log of a member that does not run.
pub(crate) fn records(dir: &Path) -> Vec<Bytes> {
    let (log, recovery) = Log::open(options(dir)).unwrap();
    all_records(&log, recovery.first)
}

pub(crate) struct Node {
    pub(crate) id: MemberId,
    pub(crate) member: Member,
    pub(crate) committer: Arc<Committer>,
}

impl Node {
    /// Opens the log in `dir`, or makes one, and takes part.
    pub(crate) fn start(dir: &Path, id: u32, engine: Arc<impl Engine>) -> Self {
        let (log, recovery) = Log::open(options(dir)).unwrap();
        let applied = Chain::EMPTY.with_all(&all_records(&log, recovery.first));
        let me = MemberId(id);
        let incarnation = (applied != Chain::EMPTY).then_some(Incarnation([7; 16]));
        let seed = u64::from(id) ^ u64::from(std::process::id());
        let options = GroupOptions { me, keys: keys(), timing: timing(), seed, incarnation, applied };
        let seat = Seat::new(options).unwrap();
        let apply = seat.announcing(Nothing);
        let committer = Committer::start_agreed(log, apply, seat.agreement(), &Registry::new());
        let committer = Arc::new(committer);
        let member = seat.take::<Sound>(engine, Arc::clone(&committer)).unwrap();
        Self { id: me, member, committer }
    }

    pub(crate) fn wait(&self, what: &str, holds: impl Fn(&MemberStatus) -> bool) -> MemberStatus {
        wait_for(&format!("{what}, by {:?}", self.id), || {
            let status = self.member.status();
            assert_eq!(status.stop_reason, None, "the engine is honest");
            holds(&status).then_some(status)
        })
    }

    /// Everything ends: member first, since the log's thread may wait for it.
    pub(crate) fn stop(self) {
        self.member.stop();
        Arc::into_inner(self.committer).unwrap().stop();
    }
}

pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What clients were told of their records.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) stored: Vec<(Sequence, Bytes)>,
    pub(crate) refused: Vec<Bytes>,
    pub(crate) unknown: usize,
}

impl Told {
    pub(crate) fn note(&mut self, record: Bytes, outcome: Result<Sequence, LogError>) {
        match outcome {
            Ok(number) => self.stored.push((number, record)),
            Err(LogError::Refused { .. }) => self.refused.push(record),
            Err(LogError::Unknown { .. }) => self.unknown += 1,
            Err(other) => panic!("{other}"),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.stored.extend(other.stored);
        self.refused.extend(other.refused);
        self.unknown += other.unknown;
    }

    /// Against the logs of all members, which have stopped.
    pub(crate) fn check(&self, logs: &[Vec<Bytes>]) {
        let longest = logs.iter().max_by_key(|log| log.len()).unwrap();
        for log in logs {
            let same = log.iter().zip(longest).take_while(|(one, other)| one == other).count();
            assert_eq!(same, log.len(), "two logs differ from record {} on", same + 1);
        }
        for (number, record) in &self.stored {
            let at = number.0 as usize - 1;
            assert_eq!(longest.get(at), Some(record), "what was acknowledged as record {} is lost", number.0);
        }
        let all: std::collections::HashSet<&Bytes> = longest.iter().collect();
        assert_eq!(all.len(), longest.len(), "a record is there twice");
        for record in &self.refused {
            assert!(!all.contains(record), "{record:?} was refused, and is there");
        }
    }
}

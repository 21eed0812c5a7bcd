//! The log against a plain list: random appends, releases, closings, kills, power cuts and failing
//! disks, with the rule that what was acknowledged, or once handed out after an opening, is there.

use crate::common::{Disk, Fault, open, read_all, record};
use bytes::Bytes;
use proptest::prelude::*;
use scrinium_log::{Log, LogError, Recovery, Sequence};

#[derive(Clone, Debug)]
enum Step {
    /// Lengths of the group's records.
    Append(Vec<usize>),
    /// Release up to that share of what is there, in 1/255.
    Release(u8),
    Close,
    Kill,
    CutPower(u64),
    /// A fault after some more operations.
    Fail(u64, Fault),
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![3 => 0_usize..200, 2 => 200_usize..3000, 1 => 3000_usize..=8192];
    let fault = prop_oneof![Just(Fault::Stop), Just(Fault::Write), Just(Fault::Sync)];
    prop_oneof![
        12 => prop::collection::vec(length, 1..5)
            .prop_filter("fits an extent", |lengths| lengths.iter().sum::<usize>() < 12_000)
            .prop_map(Step::Append),
        2 => any::<u8>().prop_map(Step::Release),
        1 => Just(Step::Close),
        1 => Just(Step::Kill),
        2 => any::<u64>().prop_map(Step::CutPower),
        2 => (0_u64..12, fault).prop_map(|(operations, fault)| Step::Fail(operations, fault)),
    ]
}

/// What must be there, and what may be.
#[derive(Default)]
struct Model {
    /// All records ever; index 0 is sequence 1.
    records: Vec<Bytes>,
    /// This many of them are certain.
    certain: usize,
    /// Records before this sequence may be gone.
    released: u64,
}

struct World {
    disk: Disk,
    log: Option<Log>,
    model: Model,
    short_writes: bool,
}

impl World {
    fn new(short_writes: bool) -> Self {
        let disk = Disk::new();
        if short_writes {
            disk.write_short(1);
        }
        let (log, _) = open(&disk).unwrap();
        Self { disk, log: Some(log), model: Model { released: 1, ..Model::default() }, short_writes }
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Append(lengths) => self.append(lengths),
            Step::Release(share) => {
                let sequence = 1 + self.model.certain as u64 * u64::from(*share) / 255;
                if self.log.as_mut().unwrap().release_before(Sequence(sequence)).is_ok() {
                    self.model.released = self.model.released.max(sequence);
                }
            }
            Step::Close => {
                drop(self.log.take());
                self.disk = self.disk.kill();
                self.open();
            }
            Step::Kill => self.restart(self.disk.kill()),
            Step::CutPower(seed) => self.restart(self.disk.cut_power(*seed)),
            Step::Fail(operations, fault) => self.disk.fail_after(*operations, *fault),
        }
    }

    fn append(&mut self, lengths: &[usize]) {
        let model = &mut self.model;
        let first = model.records.len() as u64 + 1;
        let group: Vec<Bytes> =
            (first..).zip(lengths).map(|(number, length)| record(number, *length)).collect();
        model.records.extend(group.iter().cloned());
        match self.log.as_mut().unwrap().append(&group) {
            Ok(last) => {
                assert_eq!(last.0, model.records.len() as u64);
                model.certain = model.records.len();
            }
            Err(_) => {
                let refused = self.log.as_mut().unwrap().append(&group);
                assert!(matches!(refused, Err(LogError::Failed { .. })), "after a failure: {refused:?}");
                let seed = first.wrapping_mul(31);
                let cut = seed.is_multiple_of(2);
                self.restart(if cut { self.disk.cut_power(seed) } else { self.disk.kill() });
            }
        }
    }

    fn restart(&mut self, disk: Disk) {
        drop(self.log.take());
        self.disk = disk;
        if self.short_writes {
            self.disk.write_short(self.model.records.len() as u64);
        }
        self.open();
    }

    /// Opens, with a power cut in the middle of it now and then.
    fn open(&mut self) {
        let seed = self.model.records.len() as u64;
        if seed.is_multiple_of(3) {
            self.disk.fail_after(seed % 7, Fault::Stop);
            drop(open(&self.disk));
            self.disk = self.disk.cut_power(seed);
        }
        let (log, recovery) = open(&self.disk).unwrap();
        self.check(&log, &recovery);
        if seed.is_multiple_of(2) {
            self.log = Some(log);
            return;
        }
        // What an opening hands out stays, whatever happens next.
        drop(log);
        self.disk = self.disk.cut_power(seed);
        let (log, recovery) = open(&self.disk).unwrap();
        assert_eq!(recovery.next.0, self.model.certain as u64 + 1);
        self.check(&log, &recovery);
        self.log = Some(log);
    }

    fn check(&mut self, log: &Log, recovery: &Recovery) {
        let next = usize::try_from(recovery.next.0).unwrap();
        let model = &mut self.model;
        assert!(next > model.certain, "{next} is next, {} were certain", model.certain);
        assert!(next <= model.records.len() + 1, "more than was ever appended");
        assert!(recovery.first.0 <= model.released.max(1), "{:?} was not released", recovery.first);
        // The group that failed is there as a whole or not at all; either way its fate is settled now.
        assert!(next == model.certain + 1 || next == model.records.len() + 1, "part of a group");
        model.records.truncate(next - 1);
        model.certain = next - 1;
        let read = read_all(log, recovery.first).unwrap();
        let expected: Vec<(u64, Bytes)> =
            (1..).zip(model.records.iter().cloned()).skip(recovery.first.0 as usize - 1).collect();
        assert!(read == expected, "read {} records, expected {}", read.len(), expected.len());
        let extents = self.disk.names().iter().filter(|name| name.ends_with(".TXN")).count() as u64;
        let live: u64 = read.iter().map(|(_, bytes)| bytes.len() as u64 + 64).sum::<u64>() / 3000 + 6;
        assert!(extents <= live, "{extents} extents for {} records", read.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(1000), max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn keeps_what_was_acknowledged(short: bool, steps in prop::collection::vec(step(), 1..40)) {
        let mut world = World::new(short);
        for step in &steps {
            world.run(step);
        }
        world.run(&Step::CutPower(1));
    }
}

fn group(lengths: &[usize]) -> Step {
    Step::Append(lengths.to_vec())
}

/// A prepared extent whose entry in the control file failed stays as a leftover with the next number.
#[test]
fn a_leftover_of_the_next_number_is_not_listed_twice() {
    let full = || group(&[6000]);
    let steps =
        [full(), full(), Step::Fail(1, Fault::Sync), full(), Step::Release(255), full(), full(), full()];
    let mut world = World::new(false);
    steps.iter().for_each(|step| world.run(step));
    world.run(&Step::CutPower(1));
}

/// An extent whose sync failed looks whole until the power goes.
#[test]
fn an_extent_whose_sync_failed_is_made_anew() {
    for failing in 0..3 {
        for records_before in 1..4 {
            let mut world = World::new(false);
            (0..records_before).for_each(|_| world.run(&group(&[0])));
            world.run(&group(&[8000]));
            world.run(&Step::Fail(failing, Fault::Sync));
            (0..3).for_each(|_| world.run(&group(&[8000])));
            world.run(&Step::CutPower(1));
        }
    }
}

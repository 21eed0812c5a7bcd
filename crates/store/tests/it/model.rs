//! The store does what ordered maps do, across snapshots, reopening and crashes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::common::{all, collect, ingest, open_small, quick_folder};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use scrinium_fault::crash_image;
use scrinium_store::{Batch, Direction, Durability, Family, KeyRange, ScanOptions, Snapshot, Store};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// One map for each family, by its code.
type Maps = [Map; Family::ALL.len()];

#[derive(Clone, Debug)]
enum Change {
    Put(Family, Vec<u8>, Vec<u8>),
    Delete(Family, Vec<u8>),
    DeleteRange(Family, Vec<u8>, Vec<u8>),
}

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<Change>),
    /// Handed over together, then waited for in this order.
    CommitSeveral(Vec<Vec<Change>>),
    Derive(Vec<Change>),
    Ingest(Family, Map),
    Checkpoint,
    Reopen,
    /// The last clone is dropped without closing.
    Drop,
    Crash,
    Snapshot,
    Scan(Scan),
    Get(Family, Vec<Vec<u8>>),
}

#[derive(Clone, Debug)]
struct Scan {
    /// Chosen among the snapshots there are; past them, the newest state.
    snapshot: usize,
    family: Family,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    direction: Direction,
    /// Jumps after this many entries.
    seeks: Vec<(usize, Vec<u8>)>,
    long: bool,
}

fn family() -> impl Strategy<Value = Family> {
    proptest::sample::select(Family::ALL.to_vec())
}

fn derived() -> impl Strategy<Value = Family> + Clone {
    proptest::sample::select(Family::ALL.into_iter().filter(|family| family.is_derived()).collect::<Vec<_>>())
}

fn logged() -> impl Strategy<Value = Family> + Clone {
    proptest::sample::select(
        Family::ALL.into_iter().filter(|family| !family.is_derived()).collect::<Vec<_>>(),
    )
}

/// Few and short keys, so that they meet often; the bytes are those that prefixes and bounds stumble over.
fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(proptest::sample::select(vec![0_u8, 1, 0x7f, 0xff]), 0..4)
}

/// Some values are long enough for files of their own.
fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => vec(any::<u8>(), 0..20),
        1 => (any::<u8>(), 4000..9000_usize).prop_map(|(byte, length)| vec![byte; length]),
    ]
}

fn changes(family: impl Strategy<Value = Family> + Clone + 'static) -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        5 => (family.clone(), key(), value()).prop_map(|(family, key, value)| Change::Put(family, key, value)),
        2 => (family.clone(), key()).prop_map(|(family, key)| Change::Delete(family, key)),
        1 => (family, key(), key()).prop_map(|(family, from, to)| Change::DeleteRange(family, from, to)),
    ];
    vec(change, 0..12)
}

fn scan() -> impl Strategy<Value = Scan> {
    let direction = proptest::sample::select(vec![Direction::Forward, Direction::Backward]);
    let seeks = vec((0..6_usize, key()), 0..4);
    (0..4_usize, family(), key(), proptest::option::of(key()), direction, seeks, any::<bool>()).prop_map(
        |(snapshot, family, from, to, direction, seeks, long)| Scan {
            snapshot,
            family,
            from,
            to,
            direction,
            seeks,
            long,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => changes(logged()).prop_map(Step::Commit),
        2 => vec(changes(logged()), 2..8).prop_map(Step::CommitSeveral),
        6 => changes(derived()).prop_map(Step::Derive),
        1 => (derived(), btree_map(key(), value(), 0..20)).prop_map(|(family, map)| Step::Ingest(family, map)),
        2 => Just(Step::Checkpoint),
        1 => Just(Step::Reopen),
        1 => Just(Step::Drop),
        2 => Just(Step::Crash),
        3 => Just(Step::Snapshot),
        12 => scan().prop_map(Step::Scan),
        3 => (family(), vec(key(), 0..5)).prop_map(|(family, keys)| Step::Get(family, keys)),
    ]
}

fn batch_of(changes: &[Change]) -> Batch {
    let mut batch = Batch::new();
    for change in changes {
        match change {
            Change::Put(family, key, value) => batch.put(*family, key, value),
            Change::Delete(family, key) => batch.delete(*family, key),
            Change::DeleteRange(family, from, to) => batch.delete_range(*family, from, to),
        }
    }
    batch
}

fn apply(maps: &mut Maps, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Put(family, key, value) => {
                maps[usize::from(family.code())].insert(key.clone(), value.clone());
            }
            Change::Delete(family, key) => {
                maps[usize::from(family.code())].remove(key);
            }
            Change::DeleteRange(family, from, to) => {
                maps[usize::from(family.code())].retain(|key, _| key < from || key >= to);
            }
        }
    }
}

/// The store under test and what it should hold.
struct Pair {
    store: Option<Store>,
    maps: Maps,
    /// The derived families after every change since they were last known to be on disk.
    derived_past: Vec<Maps>,
    snapshots: Vec<(Snapshot, Maps)>,
    /// Where the store lies, and where it lay before crashes. Removed last.
    folders: Vec<tempfile::TempDir>,
}

impl Pair {
    fn new() -> Self {
        let folder = quick_folder();
        let store = open_small(&folder.path().join("store"));
        Self {
            folders: vec![folder],
            store: Some(store),
            maps: Maps::default(),
            derived_past: vec![Maps::default()],
            snapshots: Vec::new(),
        }
    }

    fn dir(&self) -> PathBuf {
        self.folders.last().unwrap().path().join("store")
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Commit(changes) => {
                self.store().commit(batch_of(changes)).unwrap();
                apply(&mut self.maps, changes);
            }
            Step::CommitSeveral(batches) => {
                let commits: Vec<_> = batches
                    .iter()
                    .map(|changes| self.store().write(batch_of(changes), Durability::Logged, None).unwrap())
                    .collect();
                commits.into_iter().for_each(|commit| commit.wait().unwrap());
                batches.iter().for_each(|changes| apply(&mut self.maps, changes));
            }
            Step::Derive(changes) => {
                self.store().derived().write(batch_of(changes)).unwrap();
                apply(&mut self.maps, changes);
                self.derived_past.push(self.maps.clone());
            }
            Step::Ingest(family, map) => {
                let entries = ingest(self.store(), *family, map.clone().into_iter()).unwrap();
                assert_eq!(entries, map.len() as u64);
                self.maps[usize::from(family.code())].extend(map.clone());
                if !map.is_empty() {
                    self.derived_past = vec![self.maps.clone()];
                }
            }
            Step::Checkpoint => {
                self.store().admin().checkpoint().unwrap();
                self.derived_past = vec![self.maps.clone()];
            }
            Step::Reopen => {
                self.snapshots.clear();
                self.store.take().unwrap().close().unwrap();
                self.open_last();
                self.derived_past = vec![self.maps.clone()];
            }
            Step::Drop => {
                self.snapshots.clear();
                self.store = None;
                self.open_last();
                self.fall_back();
            }
            Step::Crash => {
                let folder = quick_folder();
                crash_image(&self.dir(), &folder.path().join("store"));
                self.snapshots.clear();
                self.store = None;
                self.folders.push(folder);
                self.open_last();
                self.fall_back();
            }
            Step::Snapshot => self.snapshots.push((self.store().snapshot(), self.maps.clone())),
            Step::Scan(scan) => self.scan(scan),
            Step::Get(family, keys) => self.get(*family, keys),
        }
    }

    fn open_last(&mut self) {
        self.store = Some(open_small(&self.dir()));
        self.check_all();
    }

    /// After a crash the derived families are as they stood after some change, all earlier ones included.
    fn fall_back(&mut self) {
        let snapshot = self.store().snapshot();
        let found: Vec<Map> =
            Family::ALL.into_iter().map(|family| all(&snapshot, family).into_iter().collect()).collect();
        let matching = self.derived_past.iter().rfind(|maps| maps[5..] == found[5..]);
        let Some(past) = matching else { panic!("the derived families were torn: {found:?}") };
        let past = past[5..].to_vec();
        self.maps[5..].clone_from_slice(&past);
        self.derived_past = vec![self.maps.clone()];
    }

    /// Compares the logged families, as far as they are all that must have survived.
    fn check_all(&self) {
        let snapshot = self.store().snapshot();
        for family in Family::ALL.into_iter().filter(|family| !family.is_derived()) {
            let found: Map = all(&snapshot, family).into_iter().collect();
            assert_eq!(found, self.maps[usize::from(family.code())], "{family}");
        }
    }

    fn scan(&self, scan: &Scan) {
        let (snapshot, maps) = match self.snapshots.get(scan.snapshot) {
            Some((snapshot, maps)) => (snapshot.clone(), maps),
            None => (self.store().snapshot(), &self.maps),
        };
        let map = &maps[usize::from(scan.family.code())];
        let inside = |key: &Vec<u8>| *key >= scan.from && scan.to.as_ref().is_none_or(|to| key < to);
        let mut expected: Vec<_> = map.iter().filter(|(key, _)| inside(key)).collect();
        if scan.direction == Direction::Backward {
            expected.reverse();
        }
        let range = KeyRange { from: &scan.from, to: scan.to.as_deref() };
        let options = if scan.long {
            ScanOptions::long(scan.direction)
        } else {
            ScanOptions { direction: scan.direction, ..ScanOptions::default() }
        };
        let mut cursor = snapshot.cursor_with(scan.family, range, options);
        let mut rest = expected.as_slice();
        for (steps, target) in &scan.seeks {
            for _ in 0..*steps {
                let found = cursor.next().unwrap().map(|(key, value)| (key.to_vec(), value.to_vec()));
                let wanted = rest.split_first().map(|(first, others)| {
                    rest = others;
                    (first.0.clone(), first.1.clone())
                });
                assert_eq!(found, wanted);
            }
            cursor.seek(target);
            let skipped = expected.iter().take_while(|(key, _)| match scan.direction {
                Direction::Forward => *key < target,
                Direction::Backward => *key > target,
            });
            rest = &expected[skipped.count()..];
        }
        let rest: Vec<_> = rest.iter().map(|(key, value)| ((*key).clone(), (*value).clone())).collect();
        assert_eq!(collect(cursor), rest);
    }

    fn get(&self, family: Family, keys: &[Vec<u8>]) {
        let map = &self.maps[usize::from(family.code())];
        for key in keys {
            assert_eq!(self.store().get(family, key).unwrap().as_deref(), map.get(key).map(Vec::as_slice));
            assert_eq!(self.store().contains(family, key).unwrap(), map.contains_key(key));
        }
        let found = self.store().multi_get(family, keys).unwrap();
        let wanted = keys.iter().map(|key| map.get(key).map(Vec::as_slice));
        assert!(found.iter().map(Option::as_deref).eq(wanted));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(96), max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_store_does_what_ordered_maps_do(steps in vec(step(), 1..60)) {
        let mut pair = Pair::new();
        steps.iter().for_each(|step| pair.run(step));
        pair.run(&Step::Crash);
        let scan = Scan { snapshot: 9, family: Family::Scan, from: vec![], to: None, direction: Direction::Backward, seeks: vec![], long: false };
        Family::ALL.into_iter().for_each(|family| pair.scan(&Scan { family, ..scan.clone() }));
    }
}

//! A plain model of an index, and the comparison with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_index::{Change, Cursor, Direction, Index, IndexError, Reader, Reduce, Sums};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};

pub(crate) const COLUMNS: usize = 2;

/// The version of the order that the keys are made for.
pub(crate) const COLLATION: u32 = 1;

pub(crate) type Key = Vec<u8>;
pub(crate) type Model = BTreeMap<Key, (Vec<u8>, Sums)>;

pub(crate) fn open_store(dir: &Path) -> Store {
    let mut options = StoreOptions::new(dir);
    options.budget_bytes = Some(32 << 20);
    options.log_extent_bytes = 1 << 20;
    options.log_spare_extents = 1;
    options.reserve_bytes = 0;
    Store::open(options, &Registry::new()).unwrap()
}

/// Removes what is there, puts what is not, or replaces.
pub(crate) fn toggle(model: &mut Model, key: &Key, number: u64, replace: bool) -> Vec<Change> {
    let mut changes = Vec::new();
    let old = model.remove(key);
    if let Some((_, sums)) = &old {
        changes.push(Change::Remove { key: key.clone(), sums: sums.clone() });
    }
    if old.is_none() || replace {
        let (value, sums) = (number.to_string().into_bytes(), vec![number as f64 / 7.0, 1.0]);
        changes.push(Change::Insert { key: key.clone(), value: value.clone(), sums: sums.clone() });
        model.insert(key.clone(), (value, sums));
    }
    changes
}

pub(crate) fn collect(mut cursor: Cursor<'_>, limit: usize) -> Vec<(Key, (Vec<u8>, Sums))> {
    let mut entries = Vec::new();
    while let Some(entry) = cursor.next().unwrap() {
        entries.push((entry.key.to_vec(), (entry.value.to_vec(), entry.sums().collect())));
        if entries.len() == limit {
            break;
        }
    }
    entries
}

/// Joins keys and values in their order, and counts how often it was asked.
#[derive(Default)]
pub(crate) struct Joining {
    pub(crate) calls: usize,
}

impl Reduce for Joining {
    type Error = IndexError;

    fn reduce(&mut self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<u8>, IndexError> {
        self.calls += 1;
        assert!((1..=400).contains(&entries.len()));
        Ok(entries.iter().flat_map(|(key, value)| [key.as_slice(), b"=", value, b";"].concat()).collect())
    }

    fn rereduce(&mut self, reductions: &[Arc<[u8]>]) -> Result<Vec<u8>, IndexError> {
        self.calls += 1;
        assert!((2..=400).contains(&reductions.len()));
        Ok(reductions.concat())
    }
}

fn joined<'a>(entries: impl Iterator<Item = (&'a Key, &'a (Vec<u8>, Sums))>) -> Option<Vec<u8>> {
    let parts: Vec<Vec<u8>> =
        entries.map(|(key, (value, _))| [key.as_slice(), b"=", value, b";"].concat()).collect();
    if parts.is_empty() { None } else { Some(parts.concat()) }
}

fn sums_of<'a>(entries: impl Iterator<Item = (&'a Key, &'a (Vec<u8>, Sums))>) -> Sums {
    entries.fold(vec![0.0; COLUMNS], |mut sums, (_, (_, of_entry))| {
        sums.iter_mut().zip(of_entry).for_each(|(sum, value)| *sum += value);
        sums
    })
}

#[track_caller]
fn close(ours: &[f64], theirs: &[f64]) {
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!((ours - theirs).abs() <= 1e-9 * (theirs.abs() + 1.0), "{ours} against {theirs}");
    }
}

/// Compares everything that a reader answers, ranges by way of example.
#[track_caller]
pub(crate) fn compare(reader: &Reader, model: &Model, seed: u64, samples: usize) {
    let all: Vec<(Key, (Vec<u8>, Sums))> = model.clone().into_iter().collect();
    assert_eq!(reader.len(), all.len() as u64);
    assert_eq!(reader.is_empty(), all.is_empty());
    assert_eq!(reader.check().unwrap().entries, all.len() as u64);
    close(&reader.sums(), &sums_of(model.iter()));
    assert_eq!(collect(reader.cursor(&[], None, Direction::Forward, 0).unwrap(), usize::MAX), all);
    let mut backward = collect(reader.cursor(&[], None, Direction::Backward, 0).unwrap(), usize::MAX);
    backward.reverse();
    assert_eq!(backward, all);

    let mut random = StdRng::seed_from_u64(seed);
    let key = |random: &mut StdRng| match all.len() {
        0 => vec![random.random()],
        length => {
            let mut key = all[random.random_range(0..length)].0.clone();
            match random.random_range(0..4) {
                0 => key.push(0),
                1 => drop(key.pop()),
                _ => {}
            }
            key
        }
    };
    for _ in 0..samples {
        let n = random.random_range(0..all.len() as u64 + 3);
        let expected: Vec<_> = all.iter().skip(n as usize).take(5).cloned().collect();
        assert_eq!(collect(reader.nth(n).unwrap(), 5), expected, "entry {n}");

        let (from, to) = (key(&mut random), key(&mut random));
        let place = |key: &Key| all.partition_point(|(other, _)| other < key);
        assert_eq!(reader.position(&from).unwrap(), place(&from) as u64, "position of {from:?}");
        let end = (random.random_range(0..4) > 0).then_some(to.as_slice());
        let until = end.map_or(all.len(), |_| place(&to));
        let range = &all[place(&from).min(until)..until];
        assert_eq!(reader.count_range(&from, end).unwrap(), range.len() as u64);
        close(&reader.sums_range(&from, end).unwrap(), &sums_of(range.iter().map(|(key, rest)| (key, rest))));
        let mut reducer = Joining::default();
        let reduction = reader.reduce_range(&from, end, &mut reducer).unwrap();
        assert_eq!(reduction.as_deref(), joined(range.iter().map(|(key, rest)| (key, rest))).as_deref());
        let skip = random.random_range(0..range.len() + 3);
        let forward = collect(reader.cursor(&from, end, Direction::Forward, skip as u64).unwrap(), 30);
        assert_eq!(forward, range.iter().skip(skip).take(30).cloned().collect::<Vec<_>>());
        let backward = collect(reader.cursor(&from, end, Direction::Backward, skip as u64).unwrap(), 30);
        assert_eq!(backward, range.iter().rev().skip(skip).take(30).cloned().collect::<Vec<_>>());
    }
}

/// All entries as a rebuild takes them.
pub(crate) fn sorted(model: &Model) -> impl Iterator<Item = Result<(Key, Vec<u8>, Sums), String>> {
    model.iter().map(|(key, (value, sums))| Ok((key.clone(), value.clone(), sums.clone())))
}

pub(crate) fn open_index(store: &Store, id: u64) -> Index {
    Index::open(store, id, COLUMNS, COLLATION).unwrap()
}

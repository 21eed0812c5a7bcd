//! The index against an ordered map, through changes, floods, droughts, reopening and rebuilding.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{COLLATION, COLUMNS, Key, Model, compare, open_index, open_store, sorted, toggle};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_index::{Change, Index, IndexError, Rebuild};
use scrinium_store::{Batch, Family, Store};

/// One store for all cases, each with an index of its own number: neighbours must not disturb each other.
fn shared_store() -> &'static Store {
    static STORE: OnceLock<(tempfile::TempDir, Store)> = OnceLock::new();
    let (_, store) = STORE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let store = open_store(dir.path());
        (dir, store)
    });
    store
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[derive(Debug, Clone)]
enum Step {
    /// One batch of single changes.
    Toggle(Vec<(u16, bool)>),
    /// One batch that puts or takes a run of neighbouring keys.
    Run {
        from: u16,
        length: u16,
        step: u8,
        put: bool,
    },
    Reopen,
    Rebuild,
    KeepReader,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let run = (any::<u16>(), 1..1500u16, 1..40u8, any::<bool>());
    let step = prop_oneof![
        4 => vec((any::<u16>(), any::<bool>()), 0..60).prop_map(Step::Toggle),
        4 => run.prop_map(|(from, length, step, put)| Step::Run { from, length, step, put }),
        1 => Just(Step::Reopen),
        1 => Just(Step::Rebuild),
        2 => Just(Step::KeepReader),
    ];
    vec(step, 1..12)
}

/// Keys of different lengths, with common beginnings, zeros, and the empty one among them.
fn key(number: u16) -> Key {
    match number % 4 {
        0 => number.to_be_bytes()[..usize::from(number > 3) * 2].to_vec(),
        1 => [&b"subject: "[..], &number.to_be_bytes()].concat(),
        2 => format!("{number:x}").into_bytes(),
        _ => [&number.to_be_bytes()[..1], &[0], &number.to_be_bytes()[1..]].concat(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(40), max_shrink_iters: 200, ..ProptestConfig::default() })]
    #[test]
    fn answers_as_an_ordered_map_does(steps in steps(), seed: u64) {
        let (store, id) = (shared_store(), next_id());
        let mut index = open_index(store, id);
        let mut model = Model::new();
        let mut kept = Vec::new();
        for (step, reached) in steps.iter().zip(1..) {
            let mut changes = Vec::new();
            match step {
                Step::Toggle(keys) => {
                    for (number, replace) in keys {
                        changes.extend(toggle(&mut model, &key(*number), reached, *replace));
                    }
                }
                Step::Run { from, length, step, put } => {
                    for at in 0..*length {
                        let key = key(from.wrapping_add(at * u16::from(*step)));
                        if model.contains_key(&key) != *put {
                            changes.extend(toggle(&mut model, &key, u64::from(at), false));
                        }
                    }
                }
                Step::Reopen => {
                    drop(index);
                    index = open_index(store, id);
                    prop_assert!(reached == 1 || index.reached() == reached - 1);
                }
                Step::Rebuild => index.rebuild(sorted(&model), reached).unwrap(),
                Step::KeepReader => kept.push((index.reader(), model.clone())),
            }
            let marker = [[0xff; 8], id.to_be_bytes()].concat();
            let mut extra = Batch::new();
            extra.put(Family::DerivedPoint, &marker, &reached.to_be_bytes());
            index.update(changes, extra, reached).unwrap();
            prop_assert_eq!(index.reached(), reached);
            prop_assert_eq!(&*store.get(Family::DerivedPoint, &marker).unwrap().unwrap(), &reached.to_be_bytes()[..]);
            compare(&index.reader(), &model, seed, 4);
        }
        for (reader, model) in kept {
            compare(&reader, &model, seed, 2);
        }
        drop(index);
        compare(&open_index(store, id).reader(), &model, seed, 4);
        Index::drop_index(store, id).unwrap();
        prop_assert!(open_index(store, id).reader().is_empty());
    }
}

/// Enough entries for three levels of nodes, moved about, drained and filled again.
#[test]
fn a_large_index_through_growth_and_drought() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let (store, id) = (shared_store(), next_id());
    let mut index = open_index(store, id);
    let mut model = Model::new();
    let key = |number: u32| number.to_be_bytes().to_vec();
    for round in 0..40u64 {
        let mut changes = Vec::new();
        let growing = round % 20 < 14;
        for _ in 0..if growing { 1500 } else { 5000 } {
            let new = key(random.random_range(0..40_000));
            if model.contains_key(&new) != growing {
                changes.extend(toggle(&mut model, &new, round, false));
            }
        }
        index.update(changes, Batch::new(), round).unwrap();
        if round % 8 == 7 {
            compare(&index.reader(), &model, seed, 30);
            drop(index);
            index = open_index(store, id);
            compare(&index.reader(), &model, seed, 30);
        }
    }
    let chunks = index.reader().check().unwrap().chunks;
    assert!(chunks <= model.len() as u64 / 16 + 2, "{chunks} chunks for {} entries", model.len());

    let reader = index.reader();
    let other = open_index(store, next_id());
    other.rebuild(sorted(&model), 7).unwrap();
    let rebuilt = other.reader();
    compare(&rebuilt, &model, seed, 30);
    assert_eq!(rebuilt.sums(), reader.sums(), "adding up afresh gives the very same sums");
    assert!(index.memory_bytes() < model.len() * 4 + 4096, "{} bytes", index.memory_bytes());
}

/// However often entries come and go, reads pass few marks of removed ones.
#[test]
fn debris_stays_bounded() {
    let (store, id) = (shared_store(), next_id());
    let index = open_index(store, id);
    let mut model = Model::new();
    let mut random = StdRng::seed_from_u64(5);
    for round in 0..300u64 {
        let mut changes = Vec::new();
        for _ in 0..100 {
            // Half of the keys are a queue's: they come at one end and go at the other.
            let number: u32 = random.random_range(0..600);
            let key = if number < 300 { number } else { 1000 + round as u32 * 100 + number };
            changes.extend(toggle(&mut model, &key.to_be_bytes().to_vec(), round, number.is_multiple_of(2)));
        }
        if let Some(done) = round.checked_sub(3) {
            let done = 1000 + done as u32 * 100 + 600;
            let old: Vec<Key> = model
                .range(1000u32.to_be_bytes().to_vec()..done.to_be_bytes().to_vec())
                .map(|(key, _)| key.clone())
                .collect();
            old.iter().for_each(|key| changes.extend(toggle(&mut model, key, round, false)));
        }
        index.update(changes, Batch::new(), round).unwrap();
        let checked = index.reader().check().unwrap();
        assert_eq!(index.debris(), checked.debris);
        assert!(checked.debris <= checked.entries + 64 * checked.chunks, "{checked:?}");
        assert!(checked.chunks <= checked.entries / 16 + 2, "{checked:?}");
    }
    compare(&index.reader(), &model, 5, 10);
}

/// More updates than the packs of chunk records that are kept, in an index of more chunks than these hold at the end.
#[test]
fn chunk_records_outlive_their_packs() {
    const ROUNDS: u64 = 4600;
    let (store, id) = (shared_store(), next_id());
    let mut index = open_index(store, id);
    let mut model = Model::new();
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..ROUNDS {
        let keys = if round < 20 { 1000 } else { 1 };
        let mut changes = Vec::new();
        for _ in 0..keys {
            let key = random.random_range(0..30_000u32).to_be_bytes().to_vec();
            changes.extend(toggle(&mut model, &key, round, round % 3 == 0));
        }
        index.update(changes, Batch::new(), round).unwrap();
        if round % 1500 == 1499 {
            drop(index);
            index = open_index(store, id);
            compare(&index.reader(), &model, seed, 10);
        }
    }
    // A pack that is not there is found out, and the index started over by who opens it.
    drop(index);
    let mut batch = Batch::new();
    batch.delete(Family::DerivedPoint, &[id.to_be_bytes(), (ROUNDS - 1).to_be_bytes()].concat());
    store.derived().write(batch).unwrap();
    assert!(matches!(Index::open(store, id, COLUMNS, COLLATION), Err(IndexError::Damaged { .. })));
}

/// A rebuild large enough to go in as sorted files, over an index that was there.
#[test]
fn a_large_rebuild_replaces_what_was_there() {
    let (store, id) = (shared_store(), next_id());
    let index = open_index(store, id);
    let old = Change::Insert { key: b"zzz".to_vec(), value: Vec::new(), sums: vec![1.0] };
    index.update(vec![old], Batch::new(), 3).unwrap();
    let value = vec![b'v'; 200];
    let model: Model = (0..30_000u32)
        .map(|number| (number.to_be_bytes().to_vec(), (value.clone(), vec![f64::from(number), 1.0])))
        .collect();
    let before = index.reader();
    index.rebuild(sorted(&model), 9).unwrap();
    assert_eq!((before.len(), index.reached(), index.len()), (1, 9, 30_000));
    compare(&index.reader(), &model, 1, 10);
    drop(index);
    compare(&open_index(store, id).reader(), &model, 2, 10);
}

#[test]
fn a_rebuild_without_all_entries_leaves_the_index_as_it_was() {
    let (store, id) = (shared_store(), next_id());
    let index = open_index(store, id);
    let entry = |number: u32| (number.to_be_bytes().to_vec(), vec![0; 400], Vec::new());
    let failing = |at: u32| {
        (0..30_000).map(move |number| if number == at { Err("broke off") } else { Ok(entry(number)) })
    };
    for at in [0, 5, 29_000] {
        index.rebuild((0..10).map(|number| Ok::<_, String>(entry(number))), 1).unwrap();
        let failed = index.rebuild(failing(at), 2).unwrap_err();
        assert!(
            matches!(&failed, IndexError::Source(source) if source.to_string() == "broke off"),
            "{failed}"
        );
        assert_eq!((index.len(), index.reached()), (10, 1));
        assert_eq!(index.reader().check().unwrap().entries, 10);
    }
    let unsorted = [entry(2), entry(1)].into_iter().map(Ok::<_, String>);
    assert!(matches!(index.rebuild(unsorted, 2), Err(IndexError::Unsorted { entry: 1 })));
    assert_eq!(open_index(store, id).len(), 10);
    // What was prepared is no longer what the index is to become when it has changed since.
    let prepared = index.prepare_rebuild((0..10).map(|number| Ok::<_, String>(entry(number)))).unwrap();
    index.rebuild((0..20).map(|number| Ok::<_, String>(entry(number))), 3).unwrap();
    let failed = Rebuild::all(store, vec![prepared], Vec::new(), 4);
    assert!(matches!(failed, Err(IndexError::Unsupported { .. })));
    assert_eq!((index.len(), index.reached()), (20, 3));
}

#[test]
fn sums_do_not_drift() {
    let (store, id) = (shared_store(), next_id());
    let index = open_index(store, id);
    let put = |key: u8, value: f64| Change::Insert {
        key: vec![key],
        value: Vec::new(),
        sums: vec![value, f64::NAN],
    };
    let take = |key: u8, value: f64| Change::Remove { key: vec![key], sums: vec![value] };
    index.update(vec![put(0, 0.1), put(1, 0.2), put(2, 0.3)], Batch::new(), 1).unwrap();
    for huge in [1e20, 1e300, f64::MAX, -1e18] {
        for step in 0..20u8 {
            index.update(vec![put(100 + step, huge), put(200 + step, huge / 3.0)], Batch::new(), 2).unwrap();
        }
        for step in 0..20u8 {
            index
                .update(vec![take(200 + step, huge / 3.0), take(100 + step, huge)], Batch::new(), 2)
                .unwrap();
        }
        assert_eq!(index.reader().sums(), [0.6, 0.0]);
    }
    assert_eq!(index.reader().sums_range(&[1], Some(&[2])).unwrap(), [0.2, 0.0]);
}

/// A crash within a rebuild leaves entries or chunk records without a state: there is no index then.
#[test]
fn what_a_broken_off_rebuild_left_is_cleared_away() {
    let store = shared_store();
    for family in [Family::DerivedScan, Family::DerivedChurn] {
        let (id, neighbour) = (next_id(), next_id());
        let other = open_index(store, neighbour);
        let entry = Change::Insert { key: Vec::new(), value: b"v".to_vec(), sums: Vec::new() };
        other.update(vec![entry], Batch::new(), 1).unwrap();
        let mut left = Batch::new();
        left.put(family, &[&id.to_be_bytes()[..], b"\0\0\0\0stray"].concat(), b"left over");
        store.derived().write(left).unwrap();
        compare(&open_index(store, id).reader(), &Model::new(), 1, 1);
        assert_eq!(other.reader().check().unwrap().entries, 1);
    }
}

#[test]
fn what_cannot_be_opened_is_named() {
    let (store, id) = (shared_store(), next_id());
    let index = open_index(store, id);
    index.update(Vec::new(), Batch::new(), 1).unwrap();
    let long = Change::Insert { key: vec![0; 65_536], value: Vec::new(), sums: Vec::new() };
    assert!(matches!(
        index.update(vec![long], Batch::new(), 2),
        Err(IndexError::KeyTooLong { bytes: 65_536 })
    ));
    let mut logged = Batch::new();
    logged.put(Family::Meta, b"x", b"");
    assert!(matches!(index.update(Vec::new(), logged, 2), Err(IndexError::Store(_))));
    assert_eq!(index.reached(), 1);
    drop(index);
    assert!(matches!(
        Index::open(store, id, COLUMNS + 1, COLLATION),
        Err(IndexError::Outdated { what: "number of sums", .. })
    ));
    assert!(matches!(Index::open(store, id, 17, COLLATION), Err(IndexError::Unsupported { .. })));
    assert!(matches!(Index::open(store, u64::MAX, 0, COLLATION), Err(IndexError::Unsupported { .. })));
    let state = |change: fn(&mut Vec<u8>)| {
        let mut batch = Batch::new();
        let mut state = store.get(Family::DerivedPoint, &id.to_be_bytes()).unwrap().unwrap().to_vec();
        change(&mut state);
        batch.put(Family::DerivedPoint, &id.to_be_bytes(), &state);
        store.derived().write(batch).unwrap();
        Index::open(store, id, COLUMNS, COLLATION)
    };
    assert_eq!(Index::stored_reached(store, id).unwrap(), Some(1));
    assert!(matches!(state(|state| state[0] -= 1), Err(IndexError::Outdated { what: "format", .. })));
    assert_eq!(Index::stored_reached(store, id).unwrap(), None, "it will be started over");
    assert!(state(|state| state[0] += 1).is_ok());
    assert!(matches!(state(|state| state[25] = 5), Err(IndexError::Damaged { .. })));
    assert!(matches!(state(|state| state[5] ^= 1), Err(IndexError::Outdated { what: "collation", .. })));
    assert!(matches!(state(|state| state[0] = 9), Err(IndexError::NewerFormat { found: 9, .. })));
    assert!(matches!(state(|state| state.truncate(3)), Err(IndexError::NewerFormat { .. })));
}

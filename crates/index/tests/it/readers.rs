//! Readers while updates go on, and what a crash leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{COLLATION, COLUMNS, Joining, Model, collect, compare, open_index, open_store, toggle};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_index::{Change, Direction, Index, IndexError};
use scrinium_store::{Batch, Family};

/// Every update moves one of a thousand tokens; the sum of the tokens' values never changes in a whole state.
#[test]
fn readers_see_whole_updates_only() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_store(dir.path());
    let index = open_index(&store, 1);
    let mut random = StdRng::seed_from_u64(1);
    let mut model = Model::new();
    let mut places = Vec::new();
    let mut changes = Vec::new();
    for token in 0..1000u64 {
        let place: [u8; 8] = random.random();
        changes.extend(toggle(&mut model, &place.to_vec(), token, false));
        places.push(place);
    }
    index.update(changes, Batch::new(), 1).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut reads = 0;
                while !done.load(Ordering::Relaxed) || reads < 3 {
                    let reader = index.reader();
                    assert_eq!(reader.check().unwrap().entries, 1000);
                    assert_eq!(reader.sums()[0], 999.0 * 500.0 / 7.0);
                    let last = collect(reader.nth(999).unwrap(), 2);
                    assert_eq!(last.len(), 1);
                    assert_eq!(reader.position(&last[0].0).unwrap(), 999);
                    reads += 1;
                }
            });
        }
        for round in 2..800u64 {
            let token = random.random_range(0..places.len());
            let mut changes = toggle(&mut model, &places[token].to_vec(), token as u64, false);
            places[token] = random.random();
            changes.extend(toggle(&mut model, &places[token].to_vec(), token as u64, false));
            index.update(changes, Batch::new(), round).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    compare(&index.reader(), &model, 1, 20);
}

/// After a crash the index stands at a whole earlier update, with what the caller wrote along with it.
#[test]
fn a_crash_leaves_a_whole_earlier_state() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let store = open_store(&dir.path().join("store"));
    let index = open_index(&store, 9);
    let mut model = Model::new();
    let mut states = vec![model.clone()];
    for round in 1..=60u64 {
        let mut changes = Vec::new();
        for _ in 0..random.random_range(1..200) {
            changes.extend(toggle(
                &mut model,
                &vec![random.random(), random.random()],
                round,
                random.random(),
            ));
        }
        let mut extra = Batch::new();
        extra.put(Family::DerivedPoint, b"back index", &round.to_be_bytes());
        index.update(changes, extra, round).unwrap();
        states.push(model.clone());
        if random.random_range(0..5) == 0 {
            store.admin().checkpoint().unwrap();
        }
        if round % 15 == 0 {
            let image = dir.path().join("crashed");
            let _ = fs::remove_dir_all(&image);
            copy(&dir.path().join("store"), &image);
            let crashed = open_store(&image);
            let found = open_index(&crashed, 9);
            let reached = found.reached();
            assert!(reached <= round);
            compare(&found.reader(), &states[reached as usize], seed, 10);
            let along = crashed.get(Family::DerivedPoint, b"back index").unwrap();
            assert_eq!(
                along.map(|value| value.to_vec()),
                (reached > 0).then(|| reached.to_be_bytes().to_vec())
            );
        }
    }
    assert!(collect(index.reader().cursor(&[], None, Direction::Forward, 0).unwrap(), 1).len() == 1);
}

/// Copies a folder as a crash at one moment would leave it: again, if files came or went meanwhile.
fn copy(from: &Path, to: &Path) {
    for _ in 0..100 {
        let before = listing(from);
        let _ = fs::remove_dir_all(to);
        let copied = before.iter().try_for_each(|(name, _)| {
            let target = to.join(name);
            fs::create_dir_all(target.parent().unwrap())?;
            fs::copy(from.join(name), target).map(drop)
        });
        if copied.is_ok() && listing(from) == before {
            return;
        }
    }
    panic!("{} does not come to rest", from.display());
}

/// All files below a folder with their lengths, by name.
fn listing(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => {
                    files.push((entry.path().strip_prefix(folder).unwrap().to_path_buf(), metadata.len()));
                }
                Err(_) => {}
            }
        }
    }
    files.sort();
    files
}

/// A reduction is asked for where something changed, and not of everything.
#[test]
fn a_range_is_reduced_from_what_did_not_change() {
    let dir = tempfile::tempdir().unwrap();
    let index = Index::open(&open_store(dir.path()), 1, COLUMNS, COLLATION).unwrap();
    let key = |number: u64| number.to_be_bytes().to_vec();
    let entry = |number: u64| Ok::<_, IndexError>((key(number * 2), vec![b'v'], vec![0.0; COLUMNS]));
    index.rebuild((0..100_000).map(entry), 1).unwrap();
    let calls = |index: &Index, from: u64, to: u64| {
        let mut reducer = Joining::default();
        index.reader().reduce_range(&key(from), Some(&key(to)), &mut reducer).unwrap();
        reducer.calls
    };
    assert!(calls(&index, 0, u64::MAX) > 1500);
    assert!(calls(&index, 0, u64::MAX) <= 4);
    // The two chunks at the ends, nodes that were only parts of larger ones, and what joins all of them.
    assert!(calls(&index, 12_345, 150_001) <= 8);
    let change = Change::Insert { key: key(77_777), value: vec![b'n'], sums: vec![0.0; COLUMNS] };
    index.update(vec![change], Batch::new(), 2).unwrap();
    assert!(calls(&index, 0, u64::MAX) <= 10);
}

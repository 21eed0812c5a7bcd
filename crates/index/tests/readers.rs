//! Readers while updates go on, and what a crash leaves.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

mod common;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Model, collect, compare, open_index, open_store, toggle};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_index::Direction;
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
                    let reader = index.reader().unwrap();
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
    compare(&index.reader().unwrap(), &model, 1, 20);
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
            store.checkpoint().unwrap();
        }
        if round % 15 == 0 {
            let image = dir.path().join("crashed");
            let _ = fs::remove_dir_all(&image);
            copy(&dir.path().join("store"), &image);
            let crashed = open_store(&image);
            let found = open_index(&crashed, 9);
            let reached = found.reached();
            assert!(reached <= round);
            compare(&found.reader().unwrap(), &states[reached as usize], seed, 10);
            let along = crashed.get(Family::DerivedPoint, b"back index").unwrap();
            assert_eq!(
                along.map(|value| value.to_vec()),
                (reached > 0).then(|| reached.to_be_bytes().to_vec())
            );
        }
    }
    assert!(collect(index.reader().unwrap().cursor(&[], None, Direction::Forward, 0).unwrap(), 1).len() == 1);
}

/// Copies a folder that nobody writes to at the moment; a compaction may still remove files under way.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            let _ = fs::copy(entry.path(), target);
        }
    }
}

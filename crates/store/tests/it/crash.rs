//! A process that writes is killed at random moments; what it had been promised is there afterwards.
//!
//! `SCRINIUM_SEED` repeats a run, `SCRINIUM_KILLS` makes it longer.

use std::path::Path;
use std::time::Duration;

use crate::common::small_options;
use crate::common::writers::{WRITERS, check_derived, derived, key, number, update, version_of};
use scrinium_fault::{Kills, Victim, tell};
use scrinium_statistics::Registry;
use scrinium_store::{Batch, Durability, Family, LogStyle, Snapshot, Store, StoreOptions};

/// Small memtables and frequent checkpoints in every other life, none of either in the others; no log in some.
fn options(dir: &Path, life: u64) -> StoreOptions {
    let mut options = small_options(dir);
    if life.is_multiple_of(2) {
        options.budget_bytes = Some(16 << 20);
        options.checkpoint_log_bytes = 4 << 20;
    } else {
        options.budget_bytes = Some(1 << 30);
        options.checkpoint_log_bytes = u64::MAX;
    }
    if life % 5 == 3 {
        options.log_style = LogStyle::Off;
    }
    if life % 4 == 2 {
        options.log_max_bytes = Some(4 << 20);
    }
    options
}

/// Some writers, others in each life, stay out of the log.
fn is_logged(life: u64, writer: u64) -> bool {
    !(life + writer).is_multiple_of(3)
}

fn commit(store: &Store, logged: bool, batch: Batch) {
    if logged {
        store.commit(batch).unwrap();
    } else {
        store.write(batch, Durability::Flushed, None).unwrap().wait().unwrap();
    }
}

/// Notes what is visible of every writer. Whatever a note tells of is durable before the note is.
fn bear_witness(store: &Store, logged: bool) {
    let snapshot = store.snapshot();
    let seen: Vec<_> = (0..WRITERS)
        .map(|writer| snapshot.get(Family::Point, &key(&[writer])).unwrap().map_or(0, |value| number(&value)))
        .collect();
    let mut batch = Batch::new();
    batch.put(Family::Meta, &[u8::from(logged)], &key(&seen));
    commit(store, logged, batch);
}

fn check_witnesses(snapshot: &Snapshot, versions: &[u64]) {
    for witness in [0, 1] {
        let Some(seen) = snapshot.get(Family::Meta, &[witness]).unwrap() else { continue };
        for (writer, seen) in seen.chunks(8).enumerate() {
            let (seen, version) = (number(seen), versions[writer]);
            assert!(
                version >= seen,
                "witness {witness} has seen {seen} of writer {writer}, which has {version}"
            );
        }
    }
}

/// The process that is killed. Tells of every commit that it was promised.
#[test]
#[ignore = "run by the test that kills it"]
fn child() {
    let Some((dir, life)) = Victim::order() else { return };
    let store = Store::open(options(&dir, life), &Registry::new()).unwrap();
    let start = store.snapshot();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, start) = (&store, &start);
            scope.spawn(move || {
                let first = version_of(start, writer) + 1;
                for version in first.. {
                    commit(store, is_logged(life, writer), update(writer, version));
                    tell(format_args!("{writer} {version}"));
                }
            });
        }
        for logged in [false, true] {
            let store = &store;
            scope.spawn(move || {
                loop {
                    bear_witness(store, logged);
                }
            });
        }
        scope.spawn(|| {
            let versions: Vec<_> = (0..WRITERS).map(|writer| version_of(&start, writer)).collect();
            let first = check_derived(&start, &versions) + 1;
            for round in first.. {
                store.derived().write(derived(&store, round)).unwrap();
            }
        });
    });
}

/// Lets a child write for a while and kills it. Adds what it was promised.
fn live_and_die(dir: &Path, life: u64, lifetime: Duration, promised: &mut [u64]) {
    let child = Victim::start(module_path!(), dir, life).unwrap();
    std::thread::sleep(lifetime);
    for line in child.kill().unwrap() {
        let mut words = line.split(' ').map(|word| word.parse::<u64>().unwrap());
        let (writer, version) = (words.next().unwrap(), words.next().unwrap());
        let promised = &mut promised[usize::try_from(writer).unwrap()];
        *promised = (*promised).max(version);
    }
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let kills = Kills::from_environment(10);
    println!("{kills}");
    let mut random: rand::rngs::StdRng = rand::SeedableRng::seed_from_u64(kills.seed);
    let folder = tempfile::tempdir().unwrap();
    let mut promised = vec![0; usize::try_from(WRITERS).unwrap()];
    // On a machine with other work, a few lives may be too short for all to write.
    for life in 0..4 * kills.count {
        if life >= kills.count && promised.iter().all(|version| *version > 0) {
            break;
        }
        let lifetime = Duration::from_millis(rand::Rng::random_range(&mut random, 50..900));
        live_and_die(folder.path(), life, lifetime, &mut promised);

        let statistics = Registry::new();
        let store = Store::open(options(folder.path(), life), &statistics).unwrap();
        let replayed = statistics.snapshot().gauges["Log.BytesSinceCheckpoint"];
        let snapshot = store.snapshot();
        let versions: Vec<_> = (0..WRITERS).map(|writer| version_of(&snapshot, writer)).collect();
        for (writer, (version, promised)) in versions.iter().zip(&promised).enumerate() {
            assert!(version >= promised, "writer {writer} was promised {promised} and has {version}");
            assert!(*version <= promised + 1, "writer {writer} was promised {promised} and has {version}");
        }
        check_witnesses(&snapshot, &versions);
        let round = check_derived(&snapshot, &versions);
        println!(
            "life {life} of {lifetime:?}: {} commits, {replayed} bytes read again, derived round {round}",
            versions.iter().sum::<u64>()
        );
        promised.copy_from_slice(&versions);
        drop(snapshot);
        if life.is_multiple_of(3) {
            store.close().unwrap();
        }
    }
    assert!(promised.iter().all(|version| *version > 0), "nothing was written");
}

//! A process that writes is killed at random moments; what it had been promised is there afterwards.
//!
//! `SCRINIUM_SEED` repeats a run, `SCRINIUM_CRASHES` makes it longer.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{all, small_options};
use scrinium_statistics::Registry;
use scrinium_store::{Batch, Direction, Family, KeyRange, LogStyle, Snapshot, Store, StoreOptions};

const WRITERS: u64 = 8;
const SLOTS: u64 = 16;
const ENTRIES: u64 = 4;

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
    if logged { store.commit(batch).unwrap() } else { store.commit_unlogged(batch).unwrap() }
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

fn key(parts: &[u64]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.to_be_bytes()).collect()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes[..8].try_into().unwrap())
}

/// Everything that version `version` of `writer` changes.
fn update(writer: u64, version: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put(Family::Point, &key(&[writer]), &key(&[version]));
    let document = key(&[version]).repeat(128);
    batch.put(Family::Scan, &key(&[writer, version % SLOTS]), &document);
    batch.put(Family::Blob, &key(&[writer]), &document.repeat(6));
    if version.is_multiple_of(3) {
        batch.delete_range(Family::Churn, &key(&[writer, 0]), &key(&[writer, version]));
    } else {
        (0..ENTRIES).for_each(|entry| batch.delete(Family::Churn, &key(&[writer, version - 1, entry])));
    }
    (0..ENTRIES).for_each(|entry| batch.put(Family::Churn, &key(&[writer, version, entry]), b""));
    batch
}

/// Checks that exactly the changes up to some version of `writer` are there, and tells which.
fn version_of(snapshot: &Snapshot, writer: u64) -> u64 {
    let version = snapshot.get(Family::Point, &key(&[writer])).unwrap().map_or(0, |value| number(&value));
    for slot in 0..SLOTS {
        let found = snapshot.get(Family::Scan, &key(&[writer, slot])).unwrap().map(|value| number(&value));
        let age = (version + SLOTS - slot) % SLOTS;
        let wanted = version.checked_sub(age).filter(|wanted| *wanted > 0);
        assert_eq!(found, wanted, "writer {writer}, slot {slot} of version {version}");
    }
    let (from, to) = (key(&[writer]), key(&[writer + 1]));
    let mut cursor = snapshot.cursor(Family::Churn, KeyRange::new(&from, &to), Direction::Forward);
    for entry in 0..if version == 0 { 0 } else { ENTRIES } {
        let (found, _) = cursor.next().unwrap().unwrap();
        assert_eq!(found, key(&[writer, version, entry]));
    }
    assert_eq!(cursor.next().unwrap(), None);
    let blob = snapshot.get(Family::Blob, &key(&[writer])).unwrap();
    assert_eq!(blob.map_or(0, |value| number(&value)), version);
    version
}

/// One derived batch: the same round everywhere, and the versions that it was derived from.
fn derive(store: &Store, round: u64) {
    let snapshot = store.snapshot();
    let mut batch = Batch::new();
    batch.put(Family::DerivedPoint, b"round", &key(&[round]));
    for writer in 0..WRITERS {
        let version = snapshot.get(Family::Point, &key(&[writer])).unwrap().map_or(0, |value| number(&value));
        batch.put(Family::DerivedScan, &key(&[writer]), &key(&[round, version]));
        batch.delete(Family::DerivedChurn, &key(&[round - 1, writer]));
        batch.put(Family::DerivedChurn, &key(&[round, writer]), b"");
    }
    store.write_derived(batch).unwrap();
}

/// Checks that the derived families hold one whole round, derived from what is there. Tells which.
fn check_derived(snapshot: &Snapshot, versions: &[u64]) -> u64 {
    let round = snapshot.get(Family::DerivedPoint, b"round").unwrap().map_or(0, |value| number(&value));
    let scan = all(snapshot, Family::DerivedScan);
    let churn = all(snapshot, Family::DerivedChurn);
    let expected = if round == 0 { 0 } else { versions.len() };
    assert_eq!((scan.len(), churn.len()), (expected, expected));
    for (writer, ((_, value), (churn, _))) in scan.iter().zip(&churn).enumerate() {
        assert_eq!((number(value), number(churn)), (round, round));
        assert!(number(&value[8..]) <= versions[writer], "derived from what was lost");
    }
    round
}

/// The process that is killed. Prints a line for every commit that it was promised.
#[test]
#[ignore = "run by the test that kills it"]
fn child() {
    let Some(dir) = std::env::var_os("SCRINIUM_CHILD_DIR") else { return };
    let life = std::env::var("SCRINIUM_CHILD_LIFE").unwrap().parse().unwrap();
    let store = Store::open(options(Path::new(&dir), life), &Registry::new()).unwrap();
    let start = store.snapshot();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, start) = (&store, &start);
            scope.spawn(move || {
                let first = version_of(start, writer) + 1;
                for version in first.. {
                    commit(store, is_logged(life, writer), update(writer, version));
                    std::io::stdout().write_all(format!("ack {writer} {version}\n").as_bytes()).unwrap();
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
                derive(&store, round);
            }
        });
    });
}

/// Lets a child write for a while and kills it. Adds what it was promised.
fn live_and_die(dir: &Path, life: u64, lifetime: Duration, promised: &mut [u64]) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env("SCRINIUM_CHILD_DIR", dir)
        .env("SCRINIUM_CHILD_LIFE", life.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let reading = std::thread::spawn(move || {
        output.lines().map_while(Result::ok).filter(|line| line.starts_with("ack ")).collect::<Vec<_>>()
    });
    std::thread::sleep(lifetime);
    child.kill().unwrap();
    child.wait().unwrap();
    for line in reading.join().unwrap() {
        let mut words = line.split(' ').skip(1).map(|word| word.parse::<u64>().unwrap());
        let (writer, version) = (words.next().unwrap(), words.next().unwrap());
        let promised = &mut promised[usize::try_from(writer).unwrap()];
        *promised = (*promised).max(version);
    }
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let seed = std::env::var("SCRINIUM_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    let crashes = std::env::var("SCRINIUM_CRASHES").map_or(10, |crashes| crashes.parse().unwrap());
    println!("repeat with SCRINIUM_SEED={seed} SCRINIUM_CRASHES={crashes}");
    let mut random: rand::rngs::StdRng = rand::SeedableRng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let mut promised = vec![0; usize::try_from(WRITERS).unwrap()];
    for life in 0..crashes {
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

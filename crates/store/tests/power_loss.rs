//! A store that is written to is recorded, call by call; the power goes at any of them, and what the device may hold
//! then is opened. What was acknowledged is there, what was not is there as a whole or not at all.
//!
//! `SCRINIUM_SEED` and `SCRINIUM_JOURNAL` repeat a run, with `SCRINIUM_IMAGE` one disk of it; `SCRINIUM_IMAGES` makes it
//! longer.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::writers::{WRITERS, check_derived, derive, key, number, update, version_of};
use common::{quick_folder, small_options};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_fault::{Broken, Cut, Cuts, Faults, Journal, Slowness};
use scrinium_statistics::Registry;
use scrinium_store::{Direction, Family, KeyRange, Store, StoreOptions};

/// Commits that one writer has under way at most.
const UNDER_WAY: u64 = 2;
const INGESTED: u64 = 40;

fn options(dir: &Path) -> StoreOptions {
    let mut options = small_options(dir);
    options.budget_bytes = Some(16 << 20);
    options.log_extent_bytes = 256 << 10;
    options.checkpoint_log_bytes = 1 << 20;
    options
}

/// Where the recorded process says what it was promised.
struct Marks(File);

impl Marks {
    fn open(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        Self(File::create(dir.join("marks")).unwrap())
    }

    fn say(&self, text: &str) {
        (&self.0).write_all(text.as_bytes()).unwrap();
    }
}

/// One life of the process that is recorded.
#[test]
#[ignore = "run by the tests that record it"]
fn child() {
    let Some(dir) = std::env::var_os("SCRINIUM_CHILD_DIR") else { return };
    let seed: u64 = std::env::var("SCRINIUM_CHILD_SEED").unwrap().parse().unwrap();
    let commits: u64 = std::env::var("SCRINIUM_CHILD_COMMITS").unwrap().parse().unwrap();
    let mut random = StdRng::seed_from_u64(seed);
    let marks = Marks::open(Path::new(&dir));
    let store = Store::open(options(Path::new(&dir)), &Registry::new()).unwrap();
    live(&store, &marks, commits, &mut random);
    marks.say("over\n");
    match random.random_range(0..3) {
        0 => store.close().unwrap(),
        1 => drop(store),
        // What is not written by now is not written in order.
        _ => std::process::abort(),
    }
}

fn live(store: &Store, marks: &Marks, commits: u64, random: &mut StdRng) {
    let start = store.snapshot();
    let versions: Vec<_> = (0..WRITERS).map(|writer| version_of(&start, writer)).collect();
    let first_round = check_derived(&start, &versions) + 1;
    let (round, over) = (AtomicU64::new(first_round - 1), AtomicBool::new(false));
    let seeds: [u64; 2] = random.random();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn({
                let first = versions[usize::try_from(writer).unwrap()] + 1;
                move || write(store, marks, writer, first..first + commits)
            }))
            .collect();
        scope.spawn(|| {
            for number in first_round.. {
                derive(store, number);
                round.store(number, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(1));
                if over.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        scope.spawn(|| ingest(store, marks, (&round, &over), &mut StdRng::seed_from_u64(seeds[0])));
        scope.spawn(|| {
            let mut random = StdRng::seed_from_u64(seeds[1]);
            while !over.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(random.random_range(1..40)));
                store.checkpoint().unwrap();
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        over.store(true, Ordering::SeqCst);
    });
}

fn write(store: &Store, marks: &Marks, writer: u64, mut versions: std::ops::Range<u64>) {
    while let Some(version) = versions.next() {
        if version.is_multiple_of(3)
            && let Some(next) = versions.next()
        {
            let both = [version, next].map(|version| store.submit(update(writer, version)).unwrap());
            for (version, commit) in [version, next].into_iter().zip(both) {
                commit.wait().unwrap();
                marks.say(&format!("ack {writer} {version}\n"));
            }
            continue;
        }
        store.commit(update(writer, version)).unwrap();
        marks.say(&format!("ack {writer} {version}\n"));
    }
}

fn ingested_key(batch: u64, entry: u64) -> Vec<u8> {
    [b"ingested".to_vec(), key(&[batch, entry])].concat()
}

/// Says of each batch which round of what is derived was there before it.
fn ingest(store: &Store, marks: &Marks, (round, over): (&AtomicU64, &AtomicBool), random: &mut StdRng) {
    for batch in ingested(store, &[]).. {
        std::thread::sleep(Duration::from_millis(random.random_range(1..60)));
        if over.load(Ordering::SeqCst) {
            return;
        }
        let before = round.load(Ordering::SeqCst);
        let entries = (0..INGESTED).map(|entry| (ingested_key(batch, entry), key(&[batch])));
        store.ingest_derived(Family::DerivedPoint, entries).unwrap();
        marks.say(&format!("ingested {batch} {before}\n"));
    }
}

/// How many batches were brought in, each as a whole. Those before a crash that was not told of may miss the last.
fn ingested(store: &Store, promised: &[(u64, u64)]) -> u64 {
    let snapshot = store.snapshot();
    let (from, to) = (ingested_key(0, 0), ingested_key(u64::MAX, 0));
    let mut cursor = snapshot.cursor(Family::DerivedPoint, KeyRange::new(&from, &to), Direction::Forward);
    let mut found = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        assert_eq!(key, ingested_key(number(value), found.len() as u64 % INGESTED));
        found.push(number(value));
    }
    assert_eq!(found.len() as u64 % INGESTED, 0, "a part of what was brought in");
    let batches = found.len() as u64 / INGESTED;
    assert!(found.iter().zip(0..).all(|(batch, index)| *batch == index / INGESTED));
    assert!(batches >= promised.len() as u64, "{batches} of {} batches are there", promised.len());
    batches
}

/// Holds a store against what was promised before the power went.
fn check(store: &Store, marks: &[String]) -> Vec<u64> {
    let mut promised = vec![0; usize::try_from(WRITERS).unwrap()];
    let mut brought_in = Vec::new();
    for mark in marks {
        let words: Vec<&str> = mark.split(' ').collect();
        let number = |word: usize| words[word].parse::<u64>().unwrap();
        match words[0] {
            "ack" => promised[usize::try_from(number(1)).unwrap()] = number(2),
            "ingested" => brought_in.push((number(1), number(2))),
            _ => {}
        }
    }
    let snapshot = store.snapshot();
    let versions: Vec<_> = (0..WRITERS).map(|writer| version_of(&snapshot, writer)).collect();
    for (writer, (version, promised)) in versions.iter().zip(&promised).enumerate() {
        let may_be = *promised..=promised + UNDER_WAY;
        assert!(may_be.contains(version), "writer {writer} was promised {promised} and has {version}");
    }
    let round = check_derived(&snapshot, &versions);
    ingested(store, &brought_in);
    if let Some((batch, before)) = brought_in.last() {
        assert!(round >= *before, "round {round}, which was {before} before batch {batch} was brought in");
    }
    versions
}

/// What is on the disk opens, holds what was promised, takes more, and holds that when it is opened again.
fn check_disk(cut: &Cut) {
    let store = Store::open(options(&cut.folder), &Registry::new()).unwrap();
    let versions = check(&store, &cut.marks);
    if !cut.number.is_multiple_of(4) {
        return;
    }
    for (writer, version) in (0..).zip(&versions) {
        store.commit(update(writer, version + 1)).unwrap();
    }
    if cut.number.is_multiple_of(8) {
        store.close().unwrap();
    } else {
        drop(store);
    }
    let store = Store::open(options(&cut.folder), &Registry::new()).unwrap();
    let snapshot = store.snapshot();
    for (writer, version) in (0..).zip(versions) {
        assert_eq!(version_of(&snapshot, writer), version + 1);
    }
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Runs a life below `faults` over what is in `dir`.
fn record(dir: &Path, journal: &Path, (seed, commits): (u64, u64), faults: &Faults) -> Journal {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--ignored", "--nocapture"]);
    command.env("SCRINIUM_CHILD_DIR", dir).env("SCRINIUM_CHILD_SEED", seed.to_string());
    command.env("SCRINIUM_CHILD_COMMITS", commits.to_string());
    faults.interpose(&mut command, dir, journal);
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    let journal = Journal::read(journal).unwrap();
    let over = journal.events().iter().any(|event| matches!(event, scrinium_fault::Event::Mark("over\n")));
    assert!(over, "a life ended early: {}", String::from_utf8_lossy(&output.stderr));
    journal
}

/// A folder with `store` and `journal` in it, and the journal of some lives.
fn lives(seed: u64, faults: &Faults) -> (tempfile::TempDir, Journal) {
    let folder = quick_folder();
    let (dir, journal) = (folder.path().join("store"), folder.path().join("journal"));
    std::fs::create_dir(&dir).unwrap();
    let recorded = (0..3).map(|life| record(&dir, &journal, (seed.wrapping_add(life), 25), faults)).last();
    (folder, recorded.unwrap())
}

/// Keeps the journal of a run that failed, and says how it is repeated.
fn fail(journal: &Path, seed: u64, broken: &Broken) -> ! {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("power-loss-{seed}.journal"));
    std::fs::copy(journal, &kept).unwrap();
    panic!(
        "{broken}; repeat with SCRINIUM_SEED={seed} SCRINIUM_IMAGE={} SCRINIUM_JOURNAL={}",
        broken.number,
        kept.display()
    );
}

#[test]
fn what_was_acknowledged_survives_a_power_loss() {
    let seed = from_environment("SCRINIUM_SEED").unwrap_or_else(rand::random);
    let images = from_environment("SCRINIUM_IMAGES").unwrap_or(150);
    let only = from_environment("SCRINIUM_IMAGE");
    println!("SCRINIUM_SEED={seed} SCRINIUM_IMAGES={images}");
    let slowness = Some(Slowness { seed, one_in: 8, max_us: 400 });
    let faults = Faults { slowness, ..Faults::default() };
    let (folder, path, journal) = match std::env::var_os("SCRINIUM_JOURNAL").map(PathBuf::from) {
        Some(path) => (quick_folder(), path.clone(), Journal::read(&path).unwrap()),
        None => {
            let (folder, journal) = lives(seed, &faults);
            let path = folder.path().join("journal");
            (folder, path, journal)
        }
    };
    println!("{} calls were recorded", journal.events().len());
    let cuts = Cuts { journal: &journal, before: None, seed, images, only, scratch: folder.path() };
    if let Err(broken) = cuts.check(check_disk) {
        let _ = folder.keep();
        fail(&path, seed, &broken);
    }
}

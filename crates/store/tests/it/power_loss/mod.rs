//! A store that is written to is recorded, call by call; the power goes at any of them, and what the device may hold
//! then is opened. What was acknowledged is there, what was not is there as a whole or not at all. The same where calls
//! fail.
//!
//! A failure says what repeats it. `SCRINIUM_IMAGES` makes it longer.

mod checks;
mod lives;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::quick_folder;
use crate::common::writers::version_of;
use checks::check_disk;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_fault::{
    Calls, Cut, Cuts, Disk, Event, Failure, Faults, Image, Journal, Plan, Slowness, rerun, run_bounded,
};
use scrinium_statistics::Registry;
use scrinium_store::Store;

const KEPT: &str = env!("CARGO_TARGET_TMPDIR");

/// Disks that are made of one recorded run.
const IMAGES_OF_ONE: u64 = 500;

/// A life takes a second or two; one that waits for something that does not come is ended.
const LONGEST_LIFE: Duration = Duration::from_secs(100);

/// The process that is recorded.
#[test]
#[ignore = "run by the tests that record it"]
fn child() {
    let Some(dir) = std::env::var_os("SCRINIUM_CHILD_DIR") else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (dir, seed, commits) =
        (Path::new(&dir), number("SCRINIUM_CHILD_SEED"), number("SCRINIUM_CHILD_COMMITS"));
    match std::env::var("SCRINIUM_CHILD_LIFE").unwrap().as_str() {
        "bad" => lives::live_badly(dir, seed, commits),
        "bad end" => lives::end_badly(dir),
        _ => lives::live_well(dir, seed, commits),
    }
}

/// Runs a life over what is in `dir`, and adds to the journal.
fn record(dir: &Path, journal: &Path, life: &str, (seed, commits): (u64, u64), faults: &Faults) {
    let mut command = rerun(module_path!(), "child").unwrap();
    command.env("SCRINIUM_CHILD_DIR", dir).env("SCRINIUM_CHILD_SEED", seed.to_string());
    command.env("SCRINIUM_CHILD_COMMITS", commits.to_string()).env("SCRINIUM_CHILD_LIFE", life);
    faults.interpose(&mut command, dir, journal);
    let output = run_bounded(command.stdout(Stdio::null()).stderr(Stdio::piped()), LONGEST_LIFE).unwrap();
    let read = Journal::read(journal).unwrap();
    let events = read.events();
    let life = events.rsplit(|event| *event == Event::Process).next().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let ended = output.status;
    assert!(
        life.contains(&Event::Mark("over\n")),
        "a life with {faults:?} and seed {seed}: {ended}: {errors}"
    );
}

/// Some lives in sequence, each over what the one before left.
fn record_lives(folder: &Path, seed: u64, faults: &Faults) -> Journal {
    let (dir, journal) = (folder.join("store"), folder.join("journal"));
    std::fs::create_dir(&dir).unwrap();
    let mut random = StdRng::seed_from_u64(seed);
    for life in 0..3 {
        record(&dir, &journal, "good", (seed.wrapping_add(life), random.random_range(1..50)), faults);
    }
    let journal = Journal::read(&journal).unwrap();
    check_recorded(&journal, &dir);
    journal
}

/// Nothing was written past the calls that are recorded.
fn check_recorded(journal: &Journal, dir: &Path) {
    let mut disk = Disk::new(0);
    journal.events().iter().for_each(|event| disk.play(event));
    let files = |image: Image| -> BTreeMap<PathBuf, Vec<u8>> {
        // RocksDB's messages go through the C library's streams, and the marks stay here.
        let of_no_use =
            |path: &Path| path.starts_with("marks") || path.to_string_lossy().contains("tree/LOG");
        image.files.into_iter().filter(|(path, _)| !of_no_use(path)).collect()
    };
    let (recorded, there) = (files(disk.current()), files(Disk::holding(dir, 0).unwrap().current()));
    assert!(recorded.keys().eq(there.keys()), "{:?}, {:?}", recorded.keys(), there.keys());
    for (path, content) in there {
        assert!(recorded[&path] == content, "{} was written past what is recorded", path.display());
    }
}

fn slow(seed: u64) -> Faults {
    Faults { slowness: Some(Slowness { seed, one_in: 8, max_us: 400 }), ..Faults::default() }
}

/// Of some disks, the life that follows is recorded as well, and the power goes a second time, mostly while what was in
/// the log is being read again.
fn check_twice(cut: &Cut) {
    if cut.number % 16 == 1 {
        let scratch = quick_folder();
        let (dir, journal) = (scratch.path().join("store"), scratch.path().join("journal"));
        scrinium_fault::crash_image(&cut.folder, &dir);
        record(&dir, &journal, "good", (cut.number, 2), &slow(cut.number));
        let journal = Journal::read(&journal).unwrap();
        let cuts = Cuts {
            journal: &journal,
            before: Some(&cut.folder),
            seed: cut.number,
            images: 6,
            only: None,
            scratch: scratch.path(),
        };
        let checked = cuts.check(|second| {
            let marks = [cut.marks.clone(), second.marks.clone()].concat();
            check_disk(&Cut { marks, folder: second.folder.clone(), ..*second });
        });
        checked.unwrap_or_else(|broken| panic!("after a second loss: {broken}"));
    }
    check_disk(cut);
}

#[test]
fn what_was_acknowledged_survives_a_power_loss() {
    let all = Plan::from_environment(60);
    println!("{all}");
    for run in all.runs(all.images.div_ceil(IMAGES_OF_ONE)) {
        let seed = all.seed.wrapping_add(run << 32);
        let plan = Plan { seed, images: all.images.min(IMAGES_OF_ONE), ..all.clone() };
        let folder = quick_folder();
        let path = plan.journal.clone().unwrap_or_else(|| folder.path().join("journal"));
        let journal = match &plan.journal {
            Some(path) => Journal::read(path).unwrap(),
            None => record_lives(folder.path(), seed, &slow(seed)),
        };
        let cuts = Cuts {
            journal: &journal,
            before: None,
            seed,
            images: plan.images,
            only: plan.only,
            scratch: folder.path(),
        };
        if let Err(broken) = cuts.check(check_twice) {
            let _ = folder.keep();
            panic!("{}", plan.keep(&path, Path::new(KEPT), &broken));
        }
    }
}

/// The tests above would notice: syncs of some files say that they are done and are not.
#[test]
fn a_sync_that_is_left_out_is_noticed() {
    let plan = Plan::from_environment(0);
    println!("{plan}");
    for lie in [".TXN", ".sst", "MANIFEST"] {
        let folder = quick_folder();
        let faults = Faults { lying_syncs: Some(lie.to_owned()), ..slow(plan.seed) };
        let journal = record_lives(folder.path(), plan.seed, &faults);
        let cuts = Cuts {
            journal: &journal,
            before: None,
            seed: plan.seed,
            images: 500,
            only: None,
            scratch: folder.path(),
        };
        let broken = cuts.check(check_disk).expect_err(lie);
        println!("without syncs of {lie}: {broken}");
    }
}

/// What may fail, by its path.
const PARTS: [&str; 6] = ["", "log/", "tree/", ".sst", "MANIFEST", "ingest/"];

/// Devices that are full, fail or become read-only at any call, for one call or for long; and a power loss then too.
/// A failed sync may have lost what it was to write, whatever later ones say.
#[test]
fn what_was_acknowledged_survives_a_failing_device() {
    let plan = Plan::from_environment(32);
    println!("{plan}");
    for run in plan.runs(plan.images.div_ceil(8)) {
        let seed = plan.seed.wrapping_add(run);
        let mut random = StdRng::seed_from_u64(seed);
        let faults = Faults { failure: Some(Failure::some(&mut random, &PARTS)), ..slow(seed) };
        let folder = quick_folder();
        let (dir, journal) = (folder.path().join("store"), folder.path().join("journal"));
        std::fs::create_dir(&dir).unwrap();
        let begun = Instant::now();
        record(&dir, &journal, "bad", (seed, 20), &faults);
        let read = Journal::read(&journal).unwrap();
        let is_refusal =
            |event: &&Event<'_>| matches!(event, Event::Mark(said) if said.starts_with("refused"));
        let refusals = read.events().iter().filter(is_refusal).count();
        println!("SCRINIUM_SEED={seed} {:?}: {refusals} refusals, {:?}", faults.failure, begun.elapsed());
        let cuts = Cuts { journal: &read, before: None, seed, images: 8, only: None, scratch: folder.path() };
        if let Err(broken) = cuts.check(check_disk) {
            let _ = folder.keep();
            panic!("with {faults:?}: {}", Plan { seed, ..plan }.keep(&journal, Path::new(KEPT), &broken));
        }
    }
}

/// RocksDB does not close while it tries to recover from a full disk, unless it learns that it is to end.
#[test]
fn a_store_closes_while_its_disk_is_full() {
    let folder = quick_folder();
    let (dir, journal) = (folder.path().join("store"), folder.path().join("journal"));
    std::fs::create_dir(&dir).unwrap();
    let failure = Failure {
        error: Failure::NO_SPACE,
        calls: Calls::SYNC,
        first: 0,
        count: u64::MAX,
        part: "MANIFEST".to_owned(),
    };
    record(&dir, &journal, "bad end", (0, 0), &Faults { failure: Some(failure), ..Faults::default() });
    let store = Store::open(lives::options(&dir), &Registry::new()).unwrap();
    assert_eq!(version_of(&store.snapshot(), 0), 1);
}

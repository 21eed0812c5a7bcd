//! Databases that clients write to are recorded, call by call; the power goes at any of them, or calls fail. What the
//! device may hold is opened: documents, attachments, folders, marks and databases are what their clients were
//! told, each step as a whole, and views are what the documents make of them.
//!
//! A failure says what repeats it. `SCRINIUM_IMAGES` makes it longer.

mod lives;
mod model;
mod world;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use lives::{promised, steps_taken};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_fault::{
    Cut, Cuts, Event, Failure, Faults, Journal, Plan, Slowness, quick_folder, rerun, run_bounded,
};
use world::World;

const KEPT: &str = env!("CARGO_TARGET_TMPDIR");

/// Disks that are made of one recorded run.
const IMAGES_OF_ONE: u64 = 200;

/// A life takes a second or two; one that waits for something that does not come is ended.
const LONGEST_LIFE: Duration = Duration::from_secs(100);

/// The process that is recorded.
#[test]
#[ignore = "run by the tests that record it"]
fn child() {
    let Some(dir) = std::env::var_os("SCRINIUM_CHILD_DIR") else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (dir, seed, steps) = (Path::new(&dir), number("SCRINIUM_CHILD_SEED"), number("SCRINIUM_CHILD_STEPS"));
    if std::env::var_os("SCRINIUM_FAULT_FAIL").is_some() {
        return lives::live_badly(dir, seed, steps);
    }
    let marks = std::env::var("SCRINIUM_CHILD_MARKS").unwrap();
    lives::live_well(dir, seed, promised(marks.lines()), (number("SCRINIUM_CHILD_LIFE"), steps));
}

/// Runs a life over what is in `dir`, and adds to the journal.
fn record(dir: &Path, journal: &Path, seed: u64, (life, steps): (u64, u64), faults: &Faults) {
    let earlier = Journal::read(journal).ok();
    let events = earlier.as_ref().map(Journal::events).unwrap_or_default();
    let marks: String = events
        .iter()
        .filter_map(|event| if let Event::Mark(said) = event { Some(*said) } else { None })
        .collect();
    let mut command = rerun(module_path!(), "child").unwrap();
    command.env("SCRINIUM_CHILD_DIR", dir).env("SCRINIUM_CHILD_SEED", seed.to_string());
    command.env("SCRINIUM_CHILD_STEPS", steps.to_string()).env("SCRINIUM_CHILD_LIFE", life.to_string());
    command.env("SCRINIUM_CHILD_MARKS", marks);
    faults.interpose(&mut command, dir, journal);
    let output = run_bounded(command.stdout(Stdio::null()).stderr(Stdio::piped()), LONGEST_LIFE).unwrap();
    let read = Journal::read(journal).unwrap();
    let events = read.events();
    let life = events.rsplit(|event| *event == Event::Process).next().unwrap();
    let (ended, errors) = (output.status, String::from_utf8_lossy(&output.stderr));
    assert!(
        life.contains(&Event::Mark("over\n")),
        "a life with {faults:?} and seed {seed}: {ended}: {errors}"
    );
}

fn slow(seed: u64) -> Faults {
    Faults { slowness: Some(Slowness { seed, one_in: 8, max_us: 400 }), ..Faults::default() }
}

/// What is on the disk opens, holds what was promised, and continues.
fn check_disk(cut: &Cut, seed: u64) {
    let world = World::open(&cut.folder).unwrap();
    if cut.marks.iter().any(|mark| mark == "prepared") {
        let promised = promised(cut.marks.iter().map(String::as_str));
        for (client, promised) in promised.into_iter().enumerate() {
            steps_taken(&world, seed, client, promised);
        }
    } else {
        world.prepare();
    }
    world.check_derived();
    if cut.number.is_multiple_of(4) {
        world.redesign().unwrap();
        world.databases.purge_dropped().unwrap();
        world.databases.collect_contents().unwrap();
        world.check_derived();
    }
}

fn check_disks(plan: &Plan, path: &Path, scratch: tempfile::TempDir, images: u64) {
    let (journal, seed) = (Journal::read(path).unwrap(), plan.seed);
    let cuts =
        Cuts { journal: &journal, before: None, seed, images, only: plan.only, scratch: scratch.path() };
    if let Err(broken) = cuts.check(|cut| check_disk(cut, seed)) {
        let message = plan.keep(path, Path::new(KEPT), &broken);
        let _ = scratch.keep();
        panic!("{message}");
    }
}

#[test]
fn what_clients_were_told_survives_a_power_loss() {
    let all = Plan::from_environment(40);
    println!("{all}");
    for run in all.runs(all.images.div_ceil(IMAGES_OF_ONE)) {
        let plan = Plan { seed: all.seed.wrapping_add(run << 32), ..all.clone() };
        let folder = quick_folder();
        let (dir, journal) = (folder.path().join("store"), folder.path().join("journal"));
        if plan.journal.is_none() {
            std::fs::create_dir(&dir).unwrap();
            let mut random = StdRng::seed_from_u64(plan.seed);
            for life in 0..3 {
                record(
                    &dir,
                    &journal,
                    plan.seed,
                    (life, random.random_range(1..30)),
                    &slow(plan.seed ^ life),
                );
            }
        }
        let journal = plan.journal.clone().unwrap_or(journal);
        check_disks(&plan, &journal, folder, plan.images.min(IMAGES_OF_ONE));
    }
}

/// What may fail, by its path.
const PARTS: [&str; 6] = ["", "log/", "tree/", ".sst", "ingest/", "rebuild/"];

/// As of a store alone, with views, contents and folders on it.
#[test]
fn what_clients_were_told_survives_a_failing_device() {
    let all = Plan::from_environment(16);
    println!("{all}");
    for run in all.runs(all.images.div_ceil(8)) {
        let plan = Plan { seed: all.seed.wrapping_add(run), ..all.clone() };
        let mut random = StdRng::seed_from_u64(plan.seed);
        let faults = Faults { failure: Some(Failure::some(&mut random, &PARTS)), ..slow(plan.seed) };
        println!("SCRINIUM_SEED={} {:?}", plan.seed, faults.failure);
        let folder = quick_folder();
        let (dir, journal) = (folder.path().join("store"), folder.path().join("journal"));
        std::fs::create_dir(&dir).unwrap();
        record(&dir, &journal, plan.seed, (0, 16), &faults);
        check_disks(&plan, &journal, folder, 8);
    }
}

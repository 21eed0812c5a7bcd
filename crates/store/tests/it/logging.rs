//! Styles of logging, what a restart does again, a log of limited size, and how to recover when the log is damaged or gone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{all, quick_folder, small_options};
use proptest::prelude::*;
use scrinium_fault::{crash_image, wait_until};
use scrinium_statistics::{Registry, Snapshot};
use scrinium_store::{
    Batch, Durability, Family, LogFavor, LogStyle, Missing, Sequence, Store, StoreError, StoreOptions,
    plan_salvage, salvage, survey_log,
};

/// However loaded the machine is.
const SOON: Duration = Duration::from_secs(20);

fn put(number: u32) -> Batch {
    let mut batch = Batch::new();
    batch.put(Family::Scan, &number.to_be_bytes(), &number.to_be_bytes().repeat(250));
    batch
}

fn open(options: StoreOptions) -> (Store, Registry) {
    let statistics = Registry::new();
    (Store::open(options, &statistics).unwrap(), statistics)
}

/// The numbers that are there, whose values are right.
fn numbers(store: &Store) -> Vec<u32> {
    let of = |(key, value): (Vec<u8>, Vec<u8>)| {
        let number = u32::from_be_bytes(key.try_into().unwrap());
        assert_eq!(value, number.to_be_bytes().repeat(250));
        number
    };
    all(&store.snapshot(), Family::Scan).into_iter().map(of).collect()
}

fn gauge(statistics: &Registry, name: &str) -> f64 {
    let Snapshot { gauges, counters, .. } = statistics.snapshot();
    gauges.get(name).copied().unwrap_or_else(|| f64::from(u32::try_from(counters[name]).unwrap()))
}

/// Each opening has another style, and is followed by a crash; everything stays.
#[test]
fn changing_the_style_keeps_all_data() {
    let folder = quick_folder();
    let mut dir = folder.path().join("0");
    for (life, style) in (0_u32..).zip([LogStyle::Circular, LogStyle::Off, LogStyle::Off, LogStyle::Circular])
    {
        let mut options = small_options(&dir);
        options.log_style = style;
        let (store, statistics) = open(options);
        assert_eq!(numbers(&store), (0..life * 60).collect::<Vec<_>>());
        // What stays out of the log by itself is mixed with the rest.
        for number in life * 60..(life + 1) * 60 {
            let failures = store.failures();
            match number % 3 {
                0 => store.commit(put(number)).unwrap(),
                1 => store.write(put(number), Durability::Logged, Some(failures)).unwrap().wait().unwrap(),
                _ => store.write(put(number), Durability::Flushed, Some(failures)).unwrap().wait().unwrap(),
            }
        }
        let unlogged = if style == LogStyle::Off { 60.0 } else { 20.0 };
        assert_eq!(gauge(&statistics, "Log.Unlogged.Records"), unlogged);
        assert_eq!(
            gauge(&statistics, "Database.RM.Sys.Log.Type"),
            if style == LogStyle::Off { 0.0 } else { 1.0 }
        );
        dir = folder.path().join((life + 1).to_string());
        crash_image(&folder.path().join(life.to_string()), &dir);
    }
    let (store, _) = open(small_options(&dir));
    assert_eq!(numbers(&store), (0..240).collect::<Vec<_>>());
}

#[test]
fn what_a_restart_does_again_is_bounded_and_told() {
    let folder = quick_folder();
    let mut options = small_options(&folder.path().join("store"));
    options.budget_bytes = Some(1 << 30);
    options.log_favor = LogFavor::Runtime;
    let (store, statistics) = open(options.clone());
    assert_eq!(gauge(&statistics, "Log.Redo.Limit"), f64::from(1 << 30));
    store.admin().set_log_favor(LogFavor::Restart).unwrap();
    assert_eq!(gauge(&statistics, "Log.Redo.Limit"), f64::from(64 << 20));
    (0..500).for_each(|number| store.commit(put(number)).unwrap());
    let (bytes, seconds) = (gauge(&statistics, "Log.Redo.Bytes"), gauge(&statistics, "Log.Redo.Seconds"));
    assert!(bytes > 500_000.0 && seconds > 0.0 && seconds < 60.0, "{bytes} bytes, {seconds} s");
    let image = folder.path().join("image");
    crash_image(&folder.path().join("store"), &image);
    options.dir = image;
    // A number wins over what is favored, and half of the log's size over both.
    options.checkpoint_log_bytes = 30 << 20;
    let (recovered, statistics) = open(options.clone());
    assert_eq!(numbers(&recovered).len(), 500);
    assert_eq!(gauge(&statistics, "Log.Restart.Records"), 500.0);
    assert!(gauge(&statistics, "Log.Restart.Bytes") >= bytes);
    assert!(gauge(&statistics, "Log.Restart.Seconds") > 0.0);
    assert_eq!(gauge(&statistics, "Log.Redo.Limit"), f64::from(30 << 20));
    recovered.close().unwrap();
    options.log_max_bytes = Some(8 << 20);
    let (_store, statistics) = open(options);
    assert_eq!(gauge(&statistics, "Log.Redo.Limit"), f64::from(4 << 20));
    assert_eq!(gauge(&statistics, "Log.Restart.Records"), 0.0);
}

/// More is written than the log may hold, faster than the keeper looks.
#[test]
fn a_log_of_limited_size_stays_within_it_and_refuses_nobody() {
    let folder = quick_folder();
    let mut options = small_options(folder.path());
    options.log_max_bytes = Some(3 << 20);
    options.checkpoint_log_bytes = u64::MAX;
    options.budget_bytes = Some(1 << 30);
    let (store, statistics) = open(options);
    for round in 0..20_u32 {
        let commits: Vec<_> = (0..1000)
            .map(|number| store.write(put(round * 1000 + number), Durability::Logged, None).unwrap())
            .collect();
        commits.into_iter().for_each(|commit| commit.wait().unwrap());
        assert!(gauge(&statistics, "Log.Size") <= f64::from(3 << 20));
    }
    let files = fs::read_dir(folder.path().join("log")).unwrap().flatten();
    let bytes: u64 = files.map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes < (3 << 20) + (64 << 10), "{bytes}");
    assert_eq!(numbers(&store).len(), 20_000);
}

/// The folder goes while the server runs: what is acknowledged until it notices is brought to the tree's own files.
#[test]
fn a_log_that_vanishes_is_noticed_and_loses_nothing() {
    let folder = quick_folder();
    let (dir, log) = (folder.path().join("store"), folder.path().join("log"));
    let mut options = small_options(&dir);
    options.log_dir = Some(log.clone());
    let (store, statistics) = open(options.clone());
    (0..50).for_each(|number| store.commit(put(number)).unwrap());
    let flushed_bytes = || gauge(&statistics, "Database.Flush.Bytes");
    let before = flushed_bytes();
    fs::remove_dir_all(&log).unwrap();
    let mut acknowledged = 50;
    wait_until("failure", SOON, || store.check_writable().is_err());
    while let Ok(()) = store.commit(put(acknowledged)) {
        acknowledged += 1;
    }
    let refused = store.commit(put(9999)).unwrap_err();
    assert!(matches!(refused, StoreError::Failed { .. }), "{refused}");
    assert!(refused.to_string().contains("docs/operate/logging.md"), "{refused}");
    assert_eq!(numbers(&store), (0..acknowledged).collect::<Vec<_>>());
    // The keeper looks once more, and flushes; what it has begun is awaited when the store is dropped.
    wait_until("flush", SOON, || flushed_bytes() > before);
    drop(store);
    let refused = Store::open(options.clone(), &Registry::new()).unwrap_err();
    assert!(refused.to_string().contains("scrinium log salvage"), "{refused}");
    let plan = plan_salvage(&options).unwrap();
    assert!(plan.unreadable.is_some() && plan.lost.unwrap().last.is_none());
    assert_eq!(plan.position, u64::from(acknowledged));
    assert!(salvage(&options).unwrap().next > u64::from(acknowledged) + 1);
    let (store, _) = open(options);
    assert_eq!(numbers(&store), (0..acknowledged).collect::<Vec<_>>());
    store.commit(put(acknowledged)).unwrap();
}

fn extents(log: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(log).unwrap().flatten().map(|entry| entry.path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "TXN")).collect();
    files.sort();
    files
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(12), failure_persistence: None, ..ProptestConfig::default() })]

    /// The log is damaged at some places, after a flush at some record and a crash. The server refuses to start if it
    /// needs what is damaged; a salvage brings in exactly what comes before, names the rest by number and keeps it, and the
    /// store continues numbers that were never used.
    #[test]
    fn a_damaged_log_is_salvaged_up_to_the_damage(
        flushed in 0_u32..400, written in 1_u32..400, damage in prop::collection::vec((0_usize..3, 4096_usize..1 << 20), 1..4),
    ) {
        let folder = quick_folder();
        let (dir, image) = (folder.path().join("store"), folder.path().join("image"));
        let (store, _) = open(small_options(&dir));
        (0..flushed).for_each(|number| store.commit(put(number)).unwrap());
        if flushed > 0 {
            store.admin().checkpoint().unwrap();
        }
        (flushed..flushed + written).for_each(|number| store.commit(put(number)).unwrap());
        crash_image(&dir, &image);
        drop(store);
        let (options, log, total) = (small_options(&image), image.join("log"), u64::from(flushed + written));
        for (extent, place) in damage {
            if let Some(path) = extents(&log).get(extent) {
                let mut bytes = fs::read(path).unwrap();
                bytes[place % (1 << 20)] ^= 0x20;
                fs::write(path, bytes).unwrap();
            }
        }
        let found = survey_log(&log).unwrap();
        let plan = plan_salvage(&options).unwrap();
        prop_assert_eq!(plan.position, u64::from(flushed));
        // Record n holds number n - 1. What is not found to be missing before the last record known of is there.
        let known = found.next.0 - 1;
        let is_missing = |record: u64| found.missing.iter().any(|missing| (missing.first.0..=missing.last.unwrap().0).contains(&record));
        let reached = (u64::from(flushed) + 1..=known).find(|record| is_missing(*record)).map_or_else(|| known.max(u64::from(flushed)), |record| record - 1);
        prop_assert_eq!(plan.reached, reached);
        // Where it ends before what the files hold, nobody knows what it held.
        let is_short = known < u64::from(flushed);
        let lost = (reached < known || is_short)
            .then_some(Missing { first: Sequence(reached + 1), last: (!is_short).then_some(Sequence(known)) });
        prop_assert_eq!(plan.lost, lost);
        let needed_is_damaged = lost.is_some();
        match Store::open(options.clone(), &Registry::new()) {
            Ok(store) => {
                prop_assert!(!needed_is_damaged);
                prop_assert_eq!(numbers(&store).len() as u64, reached.max(u64::from(flushed)));
                return Ok(());
            }
            Err(error) => prop_assert!(error.to_string().contains("scrinium log salvage"), "{}", error),
        }
        let done = salvage(&options).unwrap();
        prop_assert_eq!((done.reached, done.lost), (plan.reached, plan.lost));
        let aside = done.set_aside.clone().unwrap();
        prop_assert!(!extents(&aside).is_empty() && aside.join("salvage.txt").exists());
        let (store, _) = open(options.clone());
        prop_assert_eq!(numbers(&store), (0..u32::try_from(reached).unwrap()).collect::<Vec<_>>());
        prop_assert!(done.next > known && (done.next <= total + 1 || is_short));
        store.commit(put(7_000_000)).unwrap();
        store.close().unwrap();
        let found = survey_log(&log).unwrap();
        prop_assert_eq!((found.first.0, found.next.0, found.damaged_places), (done.next, done.next + 1, 0));
        prop_assert!(plan_salvage(&options).unwrap().is_whole());
    }
}

fn salvageable(dir: &Path, image: &Path) {
    let (store, _) = open(small_options(dir));
    (0..300).for_each(|number| store.commit(put(number)).unwrap());
    store.admin().checkpoint().unwrap();
    (300..400).for_each(|number| store.commit(put(number)).unwrap());
    crash_image(dir, image);
}

/// A copy of the log from before, or one that was begun by a mistake, is whole, and is not the one.
#[test]
fn a_log_that_ends_before_its_store_is_not_called_whole() {
    let folder = quick_folder();
    let (dir, older, image) =
        (folder.path().join("store"), folder.path().join("older"), folder.path().join("image"));
    let (store, _) = open(small_options(&dir));
    (0..20).for_each(|number| store.commit(put(number)).unwrap());
    crash_image(&dir.join("log"), &older);
    store.close().unwrap();
    salvageable(&dir, &image);
    fs::remove_dir_all(image.join("log")).unwrap();
    crash_image(&older, &image.join("log"));
    let options = small_options(&image);
    assert_eq!(survey_log(&image.join("log")).unwrap().damaged_places, 0);
    let refused = Store::open(options.clone(), &Registry::new()).unwrap_err();
    assert!(refused.to_string().contains("scrinium log salvage"), "{refused}");
    let plan = plan_salvage(&options).unwrap();
    assert!(!plan.is_whole());
    assert_eq!(plan.lost, Some(Missing { first: Sequence(plan.position + 1), last: None }));
    salvage(&options).unwrap();
    let (store, _) = open(options);
    assert_eq!(numbers(&store), (0..300).collect::<Vec<_>>());
}

/// Wherever it was broken off, and whether or not a server was started then, the next one ends it, and does not call lost
/// what is there.
#[test]
fn a_salvage_that_was_broken_off_is_ended_by_the_next() {
    let folder = quick_folder();
    let (image, done) = (folder.path().join("image"), folder.path().join("done"));
    salvageable(&folder.path().join("store"), &image);
    crash_image(&image, &done);
    let log = done.join("log");
    fs::write(log.join("S0000009.TXN"), b"no extent").unwrap();
    let whole = salvage(&small_options(&done)).unwrap();
    let aside = whole.set_aside.unwrap();
    for step in 0..3 {
        for server_is_started in [false, true] {
            let broken_off = folder.path().join(format!("{step}-{server_is_started}"));
            crash_image(&done, &broken_off);
            let (log, aside) = (broken_off.join("log"), broken_off.join(aside.strip_prefix(&done).unwrap()));
            extents(&log).iter().for_each(|path| fs::remove_file(path).unwrap());
            fs::remove_file(log.join("log.control")).unwrap();
            fs::rename(aside.join("salvage.txt"), log.join("salvage.txt")).unwrap();
            // Nothing was moved; the control file was; everything was.
            let is_back =
                |name: &str| name.ends_with(".TXN") && step < 2 || name == "log.control" && step == 0;
            for entry in fs::read_dir(&aside).unwrap().flatten() {
                if is_back(entry.file_name().to_str().unwrap()) {
                    fs::rename(entry.path(), log.join(entry.file_name())).unwrap();
                }
            }
            let options = small_options(&broken_off);
            if server_is_started {
                Store::open(options.clone(), &Registry::new()).unwrap_err();
            }
            let plan = plan_salvage(&options).unwrap();
            assert!(plan.interrupted && !plan.is_whole() && plan.lost.is_none(), "{step}: {plan:?}");
            assert_eq!(salvage(&options).unwrap().next, whole.next);
            let (store, _) = open(options.clone());
            assert_eq!(numbers(&store), (0..400).collect::<Vec<_>>());
            store.commit(put(400)).unwrap();
            store.close().unwrap();
            assert!(plan_salvage(&options).unwrap().is_whole());
        }
    }
}

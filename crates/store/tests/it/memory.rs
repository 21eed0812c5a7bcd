//! The memory budget: what it is spent on, that it is kept, that scans do not wash it out, who uses the store.

use std::time::Duration;

use crate::common::{ingest, noise, quick_folder, small_options};
use scrinium_statistics::Registry;
use scrinium_store::{Batch, Direction, Family, KeyRange, Purpose, ScanOptions, Store};

const MEGABYTE: u64 = 1 << 20;
const HOT: u32 = 1;
const COLD: u32 = 2;
const VALUE_BYTES: usize = 4000;
/// 2 MB and 40 MB, four in a block.
const HOT_VALUES: u32 = 500;
const COLD_VALUES: u32 = 10_000;

fn key(number: u32, at: u32) -> Vec<u8> {
    [number.to_be_bytes(), at.to_be_bytes()].concat()
}

fn put(key: &[u8], value: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.put(Family::Scan, key, value);
    batch
}

struct Open {
    store: Store,
    statistics: Registry,
}

impl Open {
    fn gauge(&self, name: &str) -> f64 {
        self.statistics.snapshot().gauges[&format!("Database.BufferPool.{name}")]
    }

    fn read(&self, number: u32, values: u32) {
        self.read_each(number, values, 1);
    }

    /// Reads one of this many values.
    fn read_each(&self, number: u32, values: u32, of: usize) {
        for at in (0..values).step_by(of) {
            assert_eq!(
                self.store.get(Family::DerivedScan, &key(number, at)).unwrap().unwrap().len(),
                VALUE_BYTES
            );
        }
    }

    /// The share of blocks that were found in memory while `work` was done.
    fn share_in_memory(&self, work: impl FnOnce()) -> f64 {
        let before = (self.gauge("Hits"), self.gauge("Misses"));
        work();
        let (hits, misses) = (self.gauge("Hits") - before.0, self.gauge("Misses") - before.1);
        hits / (hits + misses)
    }

    fn scan(&self, options: ScanOptions) {
        let snapshot = self.store.snapshot();
        let (from, to) = (COLD.to_be_bytes(), (COLD + 1).to_be_bytes());
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor_with(Family::DerivedScan, range, options);
        let mut count = 0;
        while cursor.next().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, COLD_VALUES);
    }
}

/// A store whose data is more than three times its budget, in files.
fn filled(folder: &std::path::Path) -> Open {
    let mut options = small_options(folder);
    options.budget_bytes = Some(16 * MEGABYTE);
    options.report_syncs_above = Duration::from_micros(1);
    let statistics = Registry::new();
    let store = Store::open(options, &statistics).unwrap();
    let values = [(HOT, HOT_VALUES), (COLD, COLD_VALUES)];
    let sorted = values.into_iter().flat_map(|(number, values)| (0..values).map(move |at| (number, at)));
    let sorted =
        sorted.map(|(number, at)| (key(number, at), noise(u64::from(number << 16 | at), VALUE_BYTES)));
    // So that no compaction moves blocks to other files meanwhile.
    ingest(&store, Family::DerivedScan, sorted).unwrap();
    Open { store, statistics }
}

#[test]
fn what_is_read_often_stays_whatever_is_read_once() {
    let folder = quick_folder();
    let open = filled(folder.path());
    for _ in 0..3 {
        open.read(HOT, HOT_VALUES);
    }
    let fresh = open.share_in_memory(|| open.read(HOT, HOT_VALUES));
    open.scan(ScanOptions::long(Direction::Forward));
    let after_long = open.share_in_memory(|| open.read(HOT, HOT_VALUES));
    open.scan(ScanOptions::default());
    let after_scan = open.share_in_memory(|| open.read(HOT, HOT_VALUES));
    open.read_each(COLD, COLD_VALUES, 4);
    let after_reads = open.share_in_memory(|| open.read(HOT, HOT_VALUES));
    let shares = [fresh, after_long, after_scan, after_reads];
    println!(
        "share found in memory, before and after a long scan, a scan, and reads of every block: {shares:.3?}"
    );
    assert!(shares.iter().all(|share| *share > 0.95), "{shares:?}");
}

#[test]
fn the_budget_is_kept_by_purpose_and_changes_at_once() {
    let folder = quick_folder();
    let open = filled(folder.path());
    let used = || open.gauge("Used");
    let megabytes = |count: u64| (count * MEGABYTE) as f64;

    open.store.admin().set_budget(48 * MEGABYTE);
    open.read(COLD, COLD_VALUES);
    assert!(used() > megabytes(24) && used() <= megabytes(49), "{}", used());
    let names = ["Blocks", "FileIndexes", "Memtables"].map(str::to_owned);
    let names = names.into_iter().chain(Purpose::ALL.map(|purpose| purpose.name().to_owned()));
    let sum: f64 = names.map(|name| open.gauge(&format!("ByPurpose.{name}"))).sum();
    assert!((sum - used()).abs() < 1000.0, "{sum} {}", used());
    assert!(open.gauge("ByPurpose.FileIndexes") > 0.0);
    assert!(open.gauge("ByPurpose.Blocks") > megabytes(20));

    // What is reserved is taken from the blocks.
    let reserved = open.store.admin().reserve(Purpose::ViewBuilds, 20 * MEGABYTE);
    assert_eq!(open.gauge("ByPurpose.ViewBuilds"), megabytes(20));
    assert!(used() <= megabytes(50), "{}", used());
    // More than there is takes no more than the part that blocks may lose.
    reserved.set(500 * MEGABYTE);
    assert!(open.gauge("ByPurpose.Blocks") > megabytes(8));
    drop(reserved);
    open.read(COLD, COLD_VALUES);
    assert!(open.gauge("ByPurpose.ViewBuilds") == 0.0 && open.gauge("ByPurpose.Blocks") > megabytes(20));

    open.store.admin().set_budget(16 * MEGABYTE);
    assert!(used() <= megabytes(17), "{}", used());
    assert!(open.gauge("Peak") >= megabytes(40));
    assert!(open.statistics.snapshot().counters["FileCache.Sync.Slow"] > 0);
}

#[test]
fn reads_and_writes_are_counted_for_whom_they_are() {
    let folder = quick_folder();
    let open = filled(folder.path());
    let usage = |number| open.store.admin().usage(number);
    open.store.commit(put(&key(HOT, u32::MAX), &[7; 100])).unwrap();
    open.store.commit(put(&[7], &[7; 100])).unwrap();
    assert_eq!((usage(HOT).writes, usage(HOT).written_bytes, usage(COLD).writes), (1, 108, 0));
    let before = (usage(HOT), usage(COLD));
    // A cursor of one and look-ups of the other take turns.
    let snapshot = open.store.snapshot();
    let from = COLD.to_be_bytes();
    let mut cursor =
        snapshot.cursor(Family::DerivedScan, KeyRange { from: &from, to: None }, Direction::Forward);
    for at in 0..HOT_VALUES {
        assert!(cursor.next().unwrap().is_some());
        open.store.multi_get(Family::DerivedScan, &[key(HOT, at)]).unwrap();
    }
    drop(cursor);
    let (hot, cold) = (usage(HOT), usage(COLD));
    assert_eq!((hot.reads - before.0.reads, cold.reads - before.1.reads), (500, 500));
    let blocks = (
        hot.blocks_from_files - before.0.blocks_from_files,
        cold.blocks_from_files - before.1.blocks_from_files,
    );
    // Blocks have 16 KB, so four values; their indexes come on top.
    assert!((100..250).contains(&blocks.0) && (100..250).contains(&blocks.1), "{blocks:?}");
    assert_eq!(usage(77), scrinium_store::Usage::default());
}

#[test]
fn files_are_read_past_the_systems_cache_if_they_are_large() {
    let folder = quick_folder();
    drop(filled(folder.path()));
    for (above_bytes, reads) in [(1 << 40, 0.0), (1 << 20, 1.0)] {
        let mut options = small_options(folder.path());
        options.direct_reads_above_bytes = above_bytes;
        let statistics = Registry::new();
        let open = Open { store: Store::open(options, &statistics).unwrap(), statistics };
        open.read(HOT, HOT_VALUES);
        let gauges = open.statistics.snapshot().gauges;
        // A file system in memory has no direct I/O.
        assert!([0.0, reads].contains(&gauges["FileCache.Direct"]));
    }
}

/// A sorted file is held in memory until it is closed, so what comes in is cut into many where the budget is small.
#[test]
fn what_is_brought_in_is_held_in_pieces() {
    let folder = quick_folder();
    let mut options = small_options(folder.path());
    options.budget_bytes = Some(16 * MEGABYTE);
    let statistics = Registry::new();
    let open = Open { store: Store::open(options, &statistics).unwrap(), statistics };
    let mut most: f64 = 0.0;
    let sorted = (0..5000).map(|at| {
        if at % 100 == 0 {
            most = most.max(open.gauge("Used") - open.gauge("Memtables"));
        }
        (key(HOT, at), noise(u64::from(at), VALUE_BYTES))
    });
    assert_eq!(ingest(&open.store, Family::DerivedScan, sorted).unwrap(), 5000);
    assert!(most < (4 * MEGABYTE) as f64, "{most}");
    let snapshot = open.store.snapshot();
    let mut cursor = snapshot.cursor(Family::DerivedScan, KeyRange::ALL, Direction::Forward);
    for at in 0..5000 {
        assert_eq!(
            cursor.next().unwrap(),
            Some((key(HOT, at).as_slice(), noise(u64::from(at), VALUE_BYTES).as_slice()))
        );
    }
    assert!(cursor.next().unwrap().is_none());
}

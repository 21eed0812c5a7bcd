//! A full disk: writes are refused, reads go on, and writes go on when there is space again.
//!
//! Needs the right to mount a small file system in memory; says so and skips where that is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::small_options;
use scrinium_statistics::Registry;
use scrinium_store::{Batch, Family, Store, StoreError, StoreOptions};

const DISK_MEGABYTES: u64 = 160;
const BALLAST_BYTES: usize = 90 << 20;
const VALUE_BYTES: usize = 50_000;

/// A small file system with a file in it that can be removed to make space.
struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={DISK_MEGABYTES}m");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder.path()).status();
        if !mounted.is_ok_and(|status| status.success()) {
            scrinium_fault::skip("mounting a file system in memory is not permitted here; root may");
            return None;
        }
        let disk = Self { folder };
        fs::write(disk.ballast(), vec![1; BALLAST_BYTES]).unwrap();
        Some(disk)
    }

    fn ballast(&self) -> PathBuf {
        self.folder.path().join("ballast")
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("store")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

fn options(dir: &Path, reserve_bytes: u64) -> StoreOptions {
    let mut options = small_options(dir);
    options.budget_bytes = Some(16 << 20);
    options.checkpoint_log_bytes = 4 << 20;
    options.reserve_bytes = reserve_bytes;
    options
}

fn open(disk: &Disk, reserve_bytes: u64) -> Store {
    Store::open(options(&disk.dir(), reserve_bytes), &Registry::new()).unwrap()
}

fn put(store: &Store, number: u32) -> Result<(), StoreError> {
    let mut batch = Batch::new();
    batch.put(Family::Blob, &number.to_be_bytes(), &vec![number.to_le_bytes()[0]; VALUE_BYTES]);
    batch.put(Family::Scan, &number.to_be_bytes(), b"there");
    store.commit(batch)
}

fn check(store: &Store, acknowledged: u32) {
    for number in 0..acknowledged {
        assert!(store.contains(Family::Scan, &number.to_be_bytes()).unwrap());
        let value = store.get(Family::Blob, &number.to_be_bytes()).unwrap().unwrap();
        assert_eq!((value.len(), value[0]), (VALUE_BYTES, number.to_le_bytes()[0]));
    }
}

/// Writes until that is refused, or until `enough`. Tells how many were acknowledged, and the error.
fn fill(store: &Store, enough: impl Fn() -> bool) -> (u32, Option<StoreError>) {
    for number in 0..10_000 {
        if let Err(error) = put(store, number) {
            return (number, Some(error));
        }
        if enough() {
            return (number + 1, None);
        }
    }
    panic!("the disk does not get full");
}

/// Tries again for as long as the disk is full.
fn until_taken(write: impl Fn() -> Result<(), StoreError>) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while let Err(error) = write() {
        assert!(matches!(error, StoreError::Full), "{error}");
        assert!(Instant::now() < deadline, "writes are not taken again");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn with_a_reserve_writes_are_refused_in_time_and_taken_again() {
    let Some(disk) = Disk::mount() else { return };
    let store = open(&disk, 24 << 20);
    let (acknowledged, error) = fill(&store, || false);
    assert!(matches!(error, Some(StoreError::Full)), "{error:?}");
    check(&store, acknowledged);
    // What was accepted can be flushed, and indexes follow it, although the disk is called full; at the
    // latest when merging files has given back what it took meanwhile.
    store.admin().checkpoint().unwrap();
    until_taken(|| {
        let mut derived = Batch::new();
        derived.put(Family::DerivedScan, b"index", b"entry");
        store.derived().write(derived)
    });

    fs::remove_file(disk.ballast()).unwrap();
    until_taken(|| put(&store, acknowledged));
    check(&store, acknowledged + 1);
    store.close().unwrap();
    check(&open(&disk, 24 << 20), acknowledged + 1);
}

/// Without a reserve the disk is written to the last byte. Nothing acknowledged is lost, and once there is
/// space writes go on, at the latest after opening again.
#[test]
fn without_a_reserve_nothing_is_lost() {
    let Some(disk) = Disk::mount() else { return };
    let store = open(&disk, 0);
    let (acknowledged, error) = std::thread::scope(|scope| {
        let filling = scope.spawn(|| fill(&store, || !disk.ballast().exists()));
        // Commits that are in the log may wait for space in the tree; then only more space ends this.
        let deadline = Instant::now() + Duration::from_secs(3);
        while !filling.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        if !filling.is_finished() {
            fs::remove_file(disk.ballast()).unwrap();
        }
        filling.join().unwrap()
    });
    assert!(matches!(error, None | Some(StoreError::Full | StoreError::Failed { .. })), "{error:?}");
    println!("{acknowledged} acknowledged, then {error:?}");
    check(&store, acknowledged);

    let _ = fs::remove_file(disk.ballast());
    // A store that waits for space gives up after half a minute, and then takes writes when opened again.
    let deadline = Instant::now() + Duration::from_secs(90);
    let mut store = Some(store);
    while let Err(error) = put(store.as_ref().unwrap(), acknowledged) {
        println!("still: {error}");
        assert!(Instant::now() < deadline, "writes are not taken again");
        if matches!(error, StoreError::Failed { .. }) {
            drop(store.take());
            store = Some(open(&disk, 0));
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    check(store.as_ref().unwrap(), acknowledged + 1);
}

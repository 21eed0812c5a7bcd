//! What the store refuses, and how it continues when a disk is full or fails.

use std::fs;
use std::path::Path;

use crate::common::{ingest, open_small, quick_folder, small_options};
use bytes::Bytes;
use scrinium_statistics::Registry;
use scrinium_store::{Batch, Family, Store, StoreError, StoreOptions};

fn put(family: Family, key: &[u8], value: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.put(family, key, value);
    batch
}

fn try_open(options: StoreOptions) -> Result<Store, StoreError> {
    Store::open(options, &Registry::new())
}

#[test]
fn a_second_server_is_refused_and_told_who_is_there() {
    let folder = quick_folder();
    let store = open_small(folder.path());
    match try_open(small_options(folder.path())) {
        Err(error @ StoreError::Locked { pid: Some(pid), .. }) => {
            assert_eq!(pid, std::process::id());
            assert!(error.to_string().contains(&format!("in use by process {pid}")), "{error}");
        }
        other => panic!("{other:?}"),
    }
    // A reader that outlives the store keeps the folder locked.
    store.commit(put(Family::Scan, b"key", b"value")).unwrap();
    let value = store.get(Family::Scan, b"key").unwrap().unwrap();
    store.close().unwrap();
    assert!(matches!(try_open(small_options(folder.path())), Err(StoreError::Locked { .. })));
    let value = Bytes::from(value);
    assert_eq!(value.as_ref(), b"value");
    drop(value);
    open_small(folder.path()).close().unwrap();
}

#[test]
fn a_newer_format_is_refused() {
    let folder = quick_folder();
    open_small(folder.path()).close().unwrap();
    let path = folder.path().join("store.format");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("format 3", "format 4")).unwrap();
    match try_open(small_options(folder.path())) {
        Err(StoreError::NewerFormat { found: 4, supported: 3, path: named }) => assert_eq!(named, path),
        other => panic!("{other:?}"),
    }
    // An older one is raised, so that a server of that format opens it no more.
    fs::write(&path, text.replace("format 3", "format 1")).unwrap();
    open_small(folder.path()).close().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_log_that_is_not_this_stores_is_refused() {
    let folder = quick_folder();
    let with_log = |log: &str| {
        let mut options = small_options(&folder.path().join("store"));
        options.log_dir = Some(folder.path().join(log));
        options
    };
    let store = try_open(with_log("log-1")).unwrap();
    store.commit(put(Family::Scan, b"key", b"value")).unwrap();
    store.close().unwrap();
    assert!(matches!(try_open(with_log("log-2")), Err(StoreError::ForeignLog { .. })));
    let mut other = small_options(&folder.path().join("other"));
    other.log_dir = Some(folder.path().join("log-1"));
    assert!(matches!(try_open(other), Err(StoreError::ForeignLog { .. })));
    // A log from which files were removed does not reach the store's position.
    for entry in fs::read_dir(folder.path().join("log-1")).unwrap().flatten() {
        if entry.file_name() != "store.id" {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    match try_open(with_log("log-1")) {
        Err(StoreError::ForeignLog { .. } | StoreError::DamagedLog(_)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn damage_is_named_and_never_returned_as_data() {
    let folder = quick_folder();
    let store = open_small(folder.path());
    for number in 0..100_u32 {
        store.commit(put(Family::Scan, &number.to_be_bytes(), &[7; 1000])).unwrap();
    }
    store.close().unwrap();
    let mut tables: Vec<_> =
        fs::read_dir(folder.path().join("tree")).unwrap().flatten().map(|entry| entry.path()).collect();
    tables.retain(|path| path.extension().is_some_and(|extension| extension == "sst"));
    for table in tables {
        let mut bytes = fs::read(&table).unwrap();
        bytes.iter_mut().take(40).for_each(|byte| *byte ^= 0x55);
        fs::write(&table, bytes).unwrap();
    }
    let store = match try_open(small_options(folder.path())) {
        Ok(store) => store,
        Err(StoreError::Corrupt { .. }) => return,
        Err(other) => panic!("{other:?}"),
    };
    match store.get(Family::Scan, &1_u32.to_be_bytes()) {
        Err(StoreError::Corrupt { .. }) => {}
        // How far the store had come was in a damaged file too, so that the log was read again from its beginning.
        Ok(Some(value)) if *value == [7; 1000] => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let folder = quick_folder();
    let store = open_small(folder.path());
    let mut mixed = put(Family::Scan, b"key", b"value");
    mixed.put(Family::DerivedScan, b"key", b"value");
    assert!(matches!(
        store.commit(mixed.clone()),
        Err(StoreError::WrongFamily { family: Family::DerivedScan, .. })
    ));
    assert!(matches!(
        store.derived().write(mixed),
        Err(StoreError::WrongFamily { family: Family::Scan, .. })
    ));
    let entry = |key: &[u8]| (key.to_vec(), Vec::new());
    assert!(matches!(
        ingest(&store, Family::Scan, [entry(b"a")].into_iter()),
        Err(StoreError::WrongFamily { .. })
    ));
    let unsorted = [entry(b"a"), entry(b"c"), entry(b"b")];
    assert!(matches!(
        ingest(&store, Family::DerivedScan, unsorted.into_iter()),
        Err(StoreError::Unsorted { entry: 2 })
    ));
    assert_eq!(ingest(&store, Family::DerivedScan, std::iter::empty()).unwrap(), 0);
    assert_eq!(fs::read_dir(folder.path().join("ingest")).unwrap().count(), 0);
    assert!(matches!(
        store.commit(put(Family::Scan, b"key", &[0; 40 << 20])),
        Err(StoreError::TooLarge { .. })
    ));
    store.commit(Batch::new()).unwrap();
    for family in Family::ALL {
        assert!(crate::common::all(&store.snapshot(), family).is_empty());
    }
    let clone = store.clone();
    let snapshot = store.snapshot();
    store.close().unwrap();
    assert!(matches!(clone.commit(put(Family::Scan, b"key", b"")), Err(StoreError::Closed)));
    assert!(matches!(clone.derived().write(put(Family::DerivedScan, b"key", b"")), Err(StoreError::Closed)));
    assert!(matches!(clone.get(Family::Scan, b"key"), Ok(None)));
    assert!(matches!(snapshot.get(Family::Scan, b"key"), Ok(None)));
}

/// The folder of the tree goes away, as a device that fails would: writes are refused from then on, reads
/// go on, and opening again finds everything that was acknowledged.
#[test]
fn a_failed_tree_takes_no_writes_until_it_is_opened_again() {
    let folder = quick_folder();
    let store = open_small(folder.path());
    store.commit(put(Family::Scan, b"key", b"value")).unwrap();
    let (tree, away) = (folder.path().join("tree"), folder.path().join("away"));
    fs::rename(&tree, &away).unwrap();
    store.admin().checkpoint().unwrap_err();
    assert!(matches!(store.commit(put(Family::Scan, b"other", b"")), Err(StoreError::Failed { .. })));
    assert!(matches!(store.commit(put(Family::Scan, b"third", b"")), Err(StoreError::Failed { .. })));
    assert!(matches!(
        store.derived().write(put(Family::DerivedScan, b"key", b"")),
        Err(StoreError::Failed { .. })
    ));
    assert_eq!(store.get(Family::Scan, b"key").unwrap().as_deref(), Some(b"value".as_slice()));
    fs::rename(&away, &tree).unwrap();
    assert!(matches!(store.commit(put(Family::Scan, b"third", b"")), Err(StoreError::Failed { .. })));
    drop(store);
    let store = open_small(folder.path());
    assert_eq!(store.get(Family::Scan, b"key").unwrap().as_deref(), Some(b"value".as_slice()));
    assert!(!store.contains(Family::Scan, b"third").unwrap());
    store.commit(put(Family::Scan, b"third", b"")).unwrap();
}

#[test]
fn a_store_opens_in_a_folder_with_little_memory() {
    let folder = quick_folder();
    let mut options = small_options(Path::new(folder.path()));
    options.budget_bytes = Some(1);
    let statistics = Registry::new();
    let store = Store::open(options, &statistics).unwrap();
    assert_eq!(store.admin().budget(), 16 << 20);
    for number in 0..900_u32 {
        store.commit(put(Family::Scan, &number.to_be_bytes(), &[7; 60_000])).unwrap();
    }
    store.admin().set_budget(64 << 20);
    assert_eq!(store.admin().budget(), 64 << 20);
    store.admin().checkpoint().unwrap();
    // Twice, so that something is found in the pool whatever was left there by writing.
    for number in (0..300_u32).chain(0..300) {
        assert_eq!(store.get(Family::Scan, &number.to_be_bytes()).unwrap().unwrap().len(), 60_000);
    }
    let figures = statistics.snapshot();
    assert!((figures.gauges["Database.BufferPool.Maximum.Megabytes"] - 64.0).abs() < 0.01);
    let (used, peak) =
        (figures.gauges["Database.BufferPool.Used"], figures.gauges["Database.BufferPool.Peak"]);
    assert!(used > 0.0 && used <= f64::from(70 << 20) && peak >= used, "{used} {peak}");
    assert!(figures.gauges["Database.BufferPool.Misses"] > 0.0);
    assert!(figures.gauges["Database.BufferPool.PerCentReadsInBuffer"] > 0.0);
    assert!(figures.counters["Log.Checkpoints"] > 0);
    assert!(store.admin().size_of(Family::Scan, &[0], &[0xff]) > 10_000);
    // Blocks that are too many go at once.
    store.admin().set_budget(16 << 20);
    let used = statistics.snapshot().gauges["Database.BufferPool.Used"];
    assert!(used <= f64::from(20 << 20), "{used}");
}

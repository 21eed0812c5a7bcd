//! When memory goes to files, and what of the log is then let go.

use std::fs;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::common::{all, quick_folder, small_options};
use scrinium_fault::{crash_image, wait_until};
use scrinium_statistics::Registry;
use scrinium_store::{
    Batch, Commit, Cursor, Durability, Family, Slice, Snapshot, Store, StoreError, StoreOptions,
};

/// However loaded the machine is.
const SOON: Duration = Duration::from_secs(10);

const VALUE: [u8; 4000] = [7; 4000];

fn open(options: StoreOptions) -> (Store, Registry) {
    let statistics = Registry::new();
    (Store::open(options, &statistics).unwrap(), statistics)
}

fn write(store: &Store, numbers: std::ops::Range<u32>) {
    let commits: Vec<_> = numbers
        .map(|number| {
            let mut batch = Batch::new();
            batch.put(Family::Scan, &number.to_be_bytes(), &VALUE);
            store.write(batch, Durability::Logged, None).unwrap()
        })
        .collect();
    commits.into_iter().for_each(|commit| commit.wait().unwrap());
}

/// Bytes of log that a crash would read again.
fn unflushed(statistics: &Registry) -> f64 {
    statistics.snapshot().gauges["Log.BytesSinceCheckpoint"]
}

fn log_files(dir: &Path) -> usize {
    let names = fs::read_dir(dir.join("log")).unwrap().flatten().map(|entry| entry.file_name());
    names.filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "TXN")).count()
}

#[test]
fn a_clean_close_leaves_nothing_to_read_again_and_a_crash_everything_since() {
    let folder = quick_folder();
    let (dir, image) = (folder.path().join("store"), folder.path().join("image"));
    let (store, _) = open(small_options(&dir));
    write(&store, 0..300);
    store.close().unwrap();
    let (store, statistics) = open(small_options(&dir));
    assert_eq!(unflushed(&statistics), 0.0);
    write(&store, 300..500);
    crash_image(&dir, &image);
    let (recovered, statistics) = open(small_options(&image));
    assert!(unflushed(&statistics) > 800_000.0);
    assert_eq!(all(&recovered.snapshot(), Family::Scan).len(), 500);
}

#[test]
fn enough_log_makes_a_checkpoint_while_commits_go_on() {
    let folder = quick_folder();
    let mut options = small_options(folder.path());
    options.budget_bytes = Some(1 << 30);
    options.checkpoint_log_bytes = 2 << 20;
    let (store, statistics) = open(options);
    write(&store, 0..3000);
    wait_until("checkpoint", SOON, || statistics.snapshot().counters["Log.Checkpoints"] > 0);
    wait_until("log to be let go", SOON, || {
        write(&store, 0..1);
        unflushed(&statistics) < 2e6 && log_files(folder.path()) <= 4
    });
}

/// RocksDB flushes by itself when memtables are full; that too lets go of the log.
#[test]
fn flushes_that_nobody_asked_for_let_go_of_the_log() {
    let folder = quick_folder();
    let mut options = small_options(folder.path());
    options.budget_bytes = Some(16 << 20);
    options.checkpoint_log_bytes = u64::MAX;
    let (store, statistics) = open(options);
    write(&store, 0..5000);
    wait_until("log to be let go", SOON, || unflushed(&statistics) < 8e6 && log_files(folder.path()) <= 12);
    assert_eq!(statistics.snapshot().counters["Log.Checkpoints"], 0);
    assert_eq!(all(&store.snapshot(), Family::Scan).len(), 5000);
}

#[test]
fn commits_can_be_awaited_and_answered_in_any_order() {
    let folder = quick_folder();
    let (store, _) = open(small_options(folder.path()));
    let mut waiting = Vec::new();
    for number in 0..100_u32 {
        let mut batch = Batch::new();
        batch.put(Family::Point, b"key", &number.to_be_bytes());
        waiting.push(store.write(batch, Durability::Logged, None).unwrap());
    }
    // The last one first: when it is done, so are all before it, and it is what is seen.
    block_on(waiting.pop().unwrap()).unwrap();
    assert_eq!(store.get(Family::Point, b"key").unwrap().as_deref(), Some(99_u32.to_be_bytes().as_slice()));
    waiting.into_iter().for_each(|commit| block_on(commit).unwrap());
    block_on(store.write(Batch::new(), Durability::Logged, None).unwrap()).unwrap();
}

fn block_on(commit: Commit) -> Result<(), StoreError> {
    let mut commit = pin!(commit);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match commit.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::sleep(Duration::from_micros(100)),
        }
    }
}

/// Checked by the compiler: what may go to other threads, and outlive the store's handle.
#[test]
fn snapshots_and_values_go_anywhere() {
    fn anywhere<T: Send + Sync + 'static>() {}
    fn to_threads<T: Send>() {}
    anywhere::<Store>();
    anywhere::<Snapshot>();
    anywhere::<Slice>();
    anywhere::<Commit>();
    anywhere::<StoreError>();
    to_threads::<Cursor<'_>>();
}

//! The process that is recorded: one life of it over a store's folder.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_statistics::Registry;
use scrinium_store::{Durability, Family, Store, StoreError, StoreOptions};

use super::checks::{INGESTED, ingested, ingested_key};
use crate::common::writers::{WRITERS, check_derived, derived, key, update, version_of};
use crate::common::{ingest, small_options};

pub(crate) fn options(dir: &Path) -> StoreOptions {
    let mut options = small_options(dir);
    options.budget_bytes = Some(16 << 20);
    options.log_extent_bytes = 256 << 10;
    options.checkpoint_log_bytes = 1 << 20;
    options
}

/// Where the recorded process says what it was promised.
pub(crate) struct Marks(File);

impl Marks {
    pub(crate) fn open(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        Self(File::create(dir.join("marks")).unwrap())
    }

    pub(crate) fn say(&self, text: &str) {
        (&self.0).write_all(format!("{text}\n").as_bytes()).unwrap();
    }
}

/// What the threads of a life share.
struct Life<'a> {
    store: &'a Store,
    marks: &'a Marks,
    round: AtomicU64,
    over: AtomicBool,
    /// Whether calls may fail, and writers with them.
    may_fail: bool,
}

impl Life<'_> {
    /// What was done, or `None` if it failed as it may.
    fn done<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        match result {
            Ok(done) => Some(done),
            Err(
                error @ (StoreError::Corrupt { .. }
                | StoreError::DamagedLog(_)
                | StoreError::ForeignLog { .. }
                | StoreError::WrongFamily { .. }
                | StoreError::TooLarge { .. }
                | StoreError::Unsorted { .. }),
            ) => panic!("this is not what failed: {error}"),
            Err(error) if self.may_fail => {
                self.marks.say(&format!("refused {error}").replace('\n', " "));
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn ack(&self, writer: u64, version: u64) {
        self.marks.say(&format!("ack {writer} {version}"));
    }

    fn write(&self, writer: u64, mut versions: Range<u64>) -> Option<()> {
        while let Some(version) = versions.next() {
            if version.is_multiple_of(3)
                && let Some(next) = versions.next()
            {
                let failures = self.store.failures();
                let first =
                    self.done(self.store.write(update(writer, version), Durability::Logged, Some(failures)));
                let second =
                    self.done(self.store.write(update(writer, next), Durability::Logged, Some(failures)));
                // The second is built on the first.
                self.done(first?.wait())?;
                self.ack(writer, version);
                self.done(second?.wait())?;
                self.ack(writer, next);
                continue;
            }
            let committed = self.done(self.store.commit(update(writer, version)));
            if committed.is_none() {
                self.look_after_failure(writer);
            }
            committed?;
            self.ack(writer, version);
        }
        Some(())
    }

    /// A store that refuses writes keeps reading. One that failed stays so.
    fn look_after_failure(&self, writer: u64) {
        self.store.get(Family::Point, &key(&[writer])).unwrap();
        if let Err(StoreError::Failed { .. }) = self.store.check_writable() {
            std::thread::sleep(Duration::from_millis(5));
            let again = self.store.check_writable();
            assert!(matches!(again, Err(StoreError::Failed { .. })), "it had failed: {again:?}");
        }
    }

    fn derive(&self) -> Option<()> {
        for round in self.round.load(Ordering::SeqCst) + 1.. {
            self.done(self.store.derived().write(derived(self.store, round)))?;
            self.round.store(round, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
            if self.over.load(Ordering::SeqCst) {
                break;
            }
        }
        Some(())
    }

    /// Says of each batch which round of what is derived was there before it.
    fn ingest(&self, mut random: StdRng) -> Option<()> {
        for batch in ingested(self.store).. {
            std::thread::sleep(Duration::from_millis(random.random_range(1..60)));
            if self.over.load(Ordering::SeqCst) {
                break;
            }
            let before = self.round.load(Ordering::SeqCst);
            let entries = (0..INGESTED).map(|entry| (ingested_key(batch, entry), key(&[batch])));
            self.done(ingest(self.store, Family::DerivedPoint, entries))?;
            self.marks.say(&format!("ingested {batch} {before}"));
        }
        Some(())
    }

    fn checkpoint(&self, mut random: StdRng) {
        while !self.over.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(random.random_range(1..40)));
            self.done(self.store.admin().checkpoint());
        }
    }
}

/// Everybody writes, until each has committed so often or was refused.
fn live(store: &Store, marks: &Marks, commits: u64, may_fail: bool, random: &mut StdRng) {
    let start = store.snapshot();
    let versions: Vec<_> = (0..WRITERS).map(|writer| version_of(&start, writer)).collect();
    let round = AtomicU64::new(check_derived(&start, &versions));
    let life = Life { store, marks, round, over: AtomicBool::new(false), may_fail };
    // What an opening has shown stays.
    (0..).zip(&versions).for_each(|(writer, version)| life.ack(writer, *version));
    let [for_ingest, for_checkpoints]: [u64; 2] = random.random();
    std::thread::scope(|scope| {
        let life = &life;
        let writers: Vec<_> = (0..)
            .zip(&versions)
            .map(|(writer, version)| {
                scope.spawn(move || life.write(writer, version + 1..version + 1 + commits))
            })
            .collect();
        scope.spawn(move || life.derive());
        scope.spawn(move || life.ingest(StdRng::seed_from_u64(for_ingest)));
        scope.spawn(move || life.checkpoint(StdRng::seed_from_u64(for_checkpoints)));
        for writer in writers {
            let _ = writer.join().unwrap();
        }
        life.over.store(true, Ordering::SeqCst);
    });
}

/// A life in which no call fails.
pub(crate) fn live_well(dir: &Path, seed: u64, commits: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let marks = Marks::open(dir);
    let store = Store::open(options(dir), &Registry::new()).unwrap();
    live(&store, &marks, commits, false, &mut random);
    marks.say("over");
    match random.random_range(0..3) {
        0 => store.close().unwrap(),
        1 => drop(store),
        // What is not written by now is not written in order.
        _ => std::process::abort(),
    }
}

/// A life in which calls fail for a while, from the opening on or later. Afterwards the store opens and is whole.
pub(crate) fn live_badly(dir: &Path, seed: u64, commits: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let marks = &Marks::open(dir);
    let opened = if random.random_ratio(1, 4) {
        marks.say("@fail");
        Store::open(options(dir), &Registry::new())
    } else {
        let store = Store::open(options(dir), &Registry::new()).unwrap();
        live(&store, marks, commits / 4, false, &mut random);
        marks.say("@fail");
        Ok(store)
    };
    if let Ok(store) = opened {
        std::thread::scope(|scope| {
            // Else commits would wait for space for half a minute.
            let mends_after = Duration::from_millis(random.random_range(50..500));
            scope.spawn(move || {
                std::thread::sleep(mends_after);
                marks.say("@mend");
            });
            live(&store, marks, commits, true, &mut random);
        });
        if random.random_bool(0.5) {
            drop(store.close());
        }
    }
    marks.say("@mend");
    let store = Store::open(options(dir), &Registry::new()).unwrap();
    live(&store, marks, 3, false, &mut random);
    marks.say("over");
    store.close().unwrap();
}

/// A life that ends while calls fail.
pub(crate) fn end_badly(dir: &Path) {
    let marks = Marks::open(dir);
    let store = Store::open(options(dir), &Registry::new()).unwrap();
    store.commit(update(0, 1)).unwrap();
    marks.say("@fail");
    // RocksDB looks for space every five seconds, and then tries to flush over and over.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(6) {
        assert!(matches!(store.admin().checkpoint(), Err(StoreError::Full)));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(store.close().is_err());
    marks.say("over");
}

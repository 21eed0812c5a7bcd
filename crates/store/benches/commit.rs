//! Durable commits of the store alone, compared with RocksDB with its own log.
//!
//! One commit updates one of 20,000 documents: 1 KB put, four index entries put and four deleted, synced
//! before the writer continues. Both sides do the same work on the same keys with the same options of
//! their families, in turns within one run. Standard output is one JSON object a line.
//!
//! `cargo bench -p scrinium-store --bench commit`; the folder is `SCRINIUM_BENCH_DIR`, or cargo's own.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark stops at the first error")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rocksdb::{Cache, ColumnFamilyDescriptor, DB, Options, WriteBatch, WriteBufferManager, WriteOptions};
use scrinium_bench::{Against, Line, folder, report, scatter};
use scrinium_statistics::Registry;
use scrinium_store::{Batch, Family, Store, StoreOptions};

const DOCUMENTS: u64 = 20_000;
const DOCUMENT_BYTES: usize = 1024;
const INDEXES: u8 = 4;
const WRITERS: [u64; 3] = [1, 8, 64];
const ROUNDS: usize = 5;
/// A round of one side, three seconds, is cut into slices that take turns with the other side's, so that
/// whatever else the machine does falls on both.
const SLICES: u32 = 6;
const SLICE: Duration = Duration::from_millis(500);
const BUDGET_BYTES: u64 = 1 << 30;

/// One side of the comparison.
trait Side: Sync {
    fn commit(&self, update: &Update<'_>);
}

/// One commit: document number, its new version, its new contents.
struct Update<'a> {
    number: u64,
    version: u64,
    document: &'a [u8],
}

impl Update<'_> {
    fn key(&self) -> [u8; 8] {
        self.number.to_be_bytes()
    }

    /// An index entry of a version: index, a hash that stands for the indexed value, document number.
    fn entry(&self, index: u8, version: u64) -> [u8; 25] {
        let value = scatter(self.number * 31 + version * 7 + u64::from(index));
        let mut entry = [0; 25];
        entry[0] = index;
        entry[1..9].copy_from_slice(&value.to_be_bytes());
        entry[9..17].copy_from_slice(&self.number.to_be_bytes());
        entry[17..].copy_from_slice(&version.to_be_bytes());
        entry
    }
}

impl Side for Store {
    fn commit(&self, update: &Update<'_>) {
        let mut batch = Batch::with_capacity(DOCUMENT_BYTES + 512);
        batch.put(Family::Scan, &update.key(), update.document);
        for index in 0..INDEXES {
            batch.delete(Family::Point, &update.entry(index, update.version - 1));
            batch.put(Family::Point, &update.entry(index, update.version), b"");
        }
        Self::commit(self, batch).unwrap();
    }
}

struct Plain {
    db: DB,
    synced: WriteOptions,
}

impl Side for Plain {
    fn commit(&self, update: &Update<'_>) {
        let (scan, point) = (self.db.cf_handle("scan").unwrap(), self.db.cf_handle("point").unwrap());
        let mut batch = WriteBatch::with_capacity_bytes(DOCUMENT_BYTES + 512);
        batch.put_cf(scan, update.key(), update.document);
        for index in 0..INDEXES {
            batch.delete_cf(point, update.entry(index, update.version - 1));
            batch.put_cf(point, update.entry(index, update.version), b"");
        }
        self.db.write_opt(batch, &self.synced).unwrap();
    }
}

fn open_store(dir: &Path) -> Store {
    let mut options = StoreOptions::new(dir);
    options.budget_bytes = Some(BUDGET_BYTES);
    Store::open(options, &Registry::new()).unwrap()
}

/// RocksDB with the options that the store left in its folder, but for the log.
fn open_plain(dir: &Path, store_dir: &Path) -> Plain {
    let cache = Cache::new_hyper_clock_cache(usize::try_from(BUDGET_BYTES).unwrap(), 0);
    let env = rocksdb::Env::new().unwrap();
    let (mut options, families): (Options, Vec<ColumnFamilyDescriptor>) =
        Options::load_latest(store_dir.join("tree"), env, false, cache.clone()).unwrap();
    let memtable_bytes = usize::try_from(BUDGET_BYTES / 4).unwrap();
    let memtables = WriteBufferManager::new_write_buffer_manager_with_cache(memtable_bytes, false, cache);
    options.set_write_buffer_manager(&memtables);
    options.set_atomic_flush(false);
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    let db = DB::open_cf_descriptors(&options, dir, families).unwrap();
    let mut synced = WriteOptions::default();
    synced.set_sync(true);
    Plain { db, synced }
}

/// How many commits a second `writers` threads reach on each side in one round.
fn round(sides: &[(&dyn Side, Vec<AtomicU64>); 2], writers: u64, pool: &[u8]) -> [f64; 2] {
    let mut sums = [0.0, 0.0];
    for _ in 0..SLICES {
        for (sum, (side, versions)) in sums.iter_mut().zip(sides) {
            *sum += slice(*side, writers, versions, pool);
        }
    }
    sums.map(|sum| sum / f64::from(SLICES))
}

/// How many commits a second `writers` threads reach in one slice.
fn slice(side: &dyn Side, writers: u64, versions: &[AtomicU64], pool: &[u8]) -> f64 {
    let stop = AtomicBool::new(false);
    let started = Instant::now();
    let commits: u64 = thread::scope(|scope| {
        let writing: Vec<_> = (0..writers)
            .map(|writer| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut random = scatter(writer + 1);
                    let mut commits = 0;
                    while !stop.load(Ordering::Relaxed) {
                        random = scatter(random);
                        // Each writer has documents of its own, so that versions follow each other.
                        let number = random % (DOCUMENTS / writers) * writers + writer;
                        let version =
                            versions[usize::try_from(number).unwrap()].fetch_add(1, Ordering::Relaxed) + 1;
                        let start = usize::try_from(random >> 40).unwrap() % (pool.len() - DOCUMENT_BYTES);
                        let document = &pool[start..start + DOCUMENT_BYTES];
                        side.commit(&Update { number, version, document });
                        commits += 1;
                    }
                    commits
                })
            })
            .collect();
        thread::sleep(SLICE);
        stop.store(true, Ordering::Relaxed);
        writing.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    #[allow(clippy::cast_precision_loss, reason = "a count of commits is far below 2^53")]
    let commits = commits as f64;
    commits / started.elapsed().as_secs_f64()
}

fn report_round(writers: u64, ours: &[f64], theirs: &[f64]) {
    let noun = if writers == 1 { "writer" } else { "writers" };
    report(&Line {
        name: "commit",
        case: &format!("{writers} {noun}"),
        values: ours,
        unit: "commits/s",
        against: Against::Measured("RocksDB with its own log", theirs),
    });
}

fn main() {
    let folder = folder();
    eprintln!("two stores of {DOCUMENTS} documents in {}", folder.path().display());
    let (store_dir, plain_dir) = (folder.path().join("store"), folder.path().join("plain"));
    let store = open_store(&store_dir);
    let plain = open_plain(&plain_dir, &store_dir);
    let pool: Vec<u8> = (0..1_u64 << 17).flat_map(|number| scatter(number).to_le_bytes()).collect();
    let counters = || (0..DOCUMENTS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    let sides: [(&dyn Side, Vec<AtomicU64>); 2] = [(&store, counters()), (&plain, counters())];
    round(&sides, 64, &pool);
    for writers in WRITERS {
        let mut results = [Vec::new(), Vec::new()];
        for number in 0..ROUNDS {
            let reached = round(&sides, writers, &pool);
            eprintln!("{writers} writers, round {number}: {:.0} and {:.0} commits/s", reached[0], reached[1]);
            results.iter_mut().zip(reached).for_each(|(results, reached)| results.push(reached));
        }
        report_round(writers, &results[0], &results[1]);
    }
}

//! What an index costs at a thousand and at a million entries, side by side.
//!
//! `cargo run --release -p scrinium-index --example measure_index [FOLDER]` prints one JSON object a line. Keys have
//! 40 bytes, values 60, and each entry two sums; reads are at random places, warm, by one thread.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a measurement that fails stops"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_index::{Change, Direction, Index, Reader};
use scrinium_statistics::Registry;
use scrinium_store::{Batch, Store, StoreOptions};

const READS: usize = 20_000;
const COLLATION: u32 = 1;

fn key(random: &mut StdRng) -> Vec<u8> {
    let mut key = vec![0; 40];
    random.fill(&mut key[..16]);
    key
}

fn say(entries: usize, what: &str, value: f64, unit: &str) {
    println!(
        "{{\"name\":\"index\",\"case\":\"{what}, {entries} entries\",\"value\":{value:.3},\"unit\":\"{unit}\"}}"
    );
}

/// Median and 99th percentile of many calls.
fn time(entries: usize, what: &str, mut call: impl FnMut()) {
    let mut times: Vec<Duration> = (0..READS)
        .map(|_| {
            let start = Instant::now();
            call();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    say(entries, &format!("{what} p50"), times[READS / 2].as_secs_f64() * 1e6, "us");
    say(entries, &format!("{what} p99"), times[READS * 99 / 100].as_secs_f64() * 1e6, "us");
}

fn reads(entries: usize, state: &str, reader: &Reader, keys: &[Vec<u8>], random: &mut StdRng) {
    let mut place = || random.random_range(0..entries);
    time(entries, &format!("entry N, {state}"), || {
        assert!(reader.nth(place() as u64).unwrap().next().unwrap().is_some());
    });
    let mut page = |skip: u64| {
        let mut cursor = reader.cursor(&keys[place()], None, Direction::Forward, skip).unwrap();
        let mut bytes = 0;
        for _ in 0..30 {
            let Some(entry) = cursor.next().unwrap() else { break };
            bytes += entry.value.len();
        }
        assert!(bytes > 0 || skip > 0);
    };
    time(entries, &format!("page of 30 from a key, {state}"), || page(0));
    time(entries, &format!("page of 30 from a key skipping a tenth, {state}"), || {
        page(entries as u64 / 10);
    });
    let mut place = || random.random_range(0..entries);
    time(entries, &format!("position of a key, {state}"), || {
        reader.position(&keys[place()]).unwrap();
    });
    time(entries, &format!("sums of a range, {state}"), || {
        let (from, to) = (&keys[place()], &keys[place()]);
        reader.sums_range(from.min(to), Some(from.max(to))).unwrap();
    });
}

fn moves(
    entries: usize,
    index: &Index,
    keys: &mut [Vec<u8>],
    random: &mut StdRng,
    batch: usize,
    total: usize,
) {
    let start = Instant::now();
    let before = cpu();
    for round in 0..total / batch {
        let mut changes = Vec::with_capacity(batch * 2);
        for _ in 0..batch {
            let at = random.random_range(0..keys.len());
            let new = key(random);
            let old = std::mem::replace(&mut keys[at], new.clone());
            changes.push(Change::Remove { key: old, sums: vec![1.0, 0.5] });
            changes.push(Change::Insert { key: new, value: vec![b'v'; 60], sums: vec![1.0, 0.5] });
        }
        index.update(changes, Batch::new(), round as u64).unwrap();
    }
    let each = 1e6 / total as f64;
    say(entries, &format!("move, batches of {batch}, CPU"), (cpu() - before) * each, "us");
    say(entries, &format!("move, batches of {batch}, wall"), start.elapsed().as_secs_f64() * each, "us");
}

/// CPU seconds of this process, all threads.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn measure(store: &Store, id: u64, entries: usize) {
    let mut random = StdRng::seed_from_u64(id);
    let mut keys: Vec<Vec<u8>> = (0..entries).map(|_| key(&mut random)).collect();
    keys.sort_unstable();
    let index = Index::open(store, id, 2, COLLATION).unwrap();
    let sorted = keys.iter().map(|key| Ok::<_, String>((key.clone(), vec![b'v'; 60], vec![1.0, 0.5])));
    let (start, before) = (Instant::now(), cpu());
    index.rebuild(sorted, 1).unwrap();
    say(entries, "rebuild", entries as f64 / start.elapsed().as_secs_f64(), "entries/s");
    say(entries, "rebuild CPU", cpu() - before, "s");
    say(entries, "memory of the tree", index.memory_bytes() as f64, "bytes");
    reads(entries, "as built", &index.reader(), &keys, &mut random);
    for batch in [1, 20, 500] {
        moves(entries, &index, &mut keys, &mut random, batch, 40_000);
    }
    reads(entries, "after 120,000 moves", &index.reader(), &keys, &mut random);
    say(entries, "memory of the tree after moves", index.memory_bytes() as f64, "bytes");
    drop(index);
    let start = Instant::now();
    let index = Index::open(store, id, 2, COLLATION).unwrap();
    say(entries, "open", start.elapsed().as_secs_f64() * 1e3, "ms");
    let checked = index.reader().check().unwrap();
    say(entries, "entries per chunk", checked.entries as f64 / checked.chunks as f64, "entries");
}

fn main() {
    let folder = std::env::args().nth(1);
    let temporary = tempfile::tempdir().unwrap();
    let dir = folder.as_deref().map_or_else(|| temporary.path(), Path::new);
    let store = Store::open(StoreOptions::new(dir), &Registry::new()).unwrap();
    for (id, entries) in [(1, 1_000), (2, 100_000), (3, 1_000_000)] {
        measure(&store, id, entries);
    }
    store.close().unwrap();
}

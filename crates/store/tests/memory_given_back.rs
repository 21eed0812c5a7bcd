//! A smaller budget makes the process smaller. Alone in its process, whose memory it looks at.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use common::{quick_folder, small_options};
use scrinium_statistics::Registry;
use scrinium_store::{Family, Store};

const MEGABYTE: u64 = 1 << 20;
const LARGE_BYTES: u64 = 256 * MEGABYTE;
const VALUE_BYTES: usize = 4000;
/// 160 MB, four in a block.
const VALUES: u32 = 40_000;

/// Of this process (proc(5), `statm`), in MB.
fn resident_mb() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096 / MEGABYTE
}

/// Bytes that do not compress.
fn value(seed: u32) -> Vec<u8> {
    let mut state = u64::from(seed) + 1;
    let part = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()
    };
    std::iter::repeat_with(part).flatten().take(VALUE_BYTES).collect()
}

#[test]
fn a_smaller_budget_gives_the_memory_of_blocks_back() {
    let folder = quick_folder();
    let mut options = small_options(folder.path());
    options.budget_bytes = Some(LARGE_BYTES);
    let store = Store::open(options, &Registry::new()).unwrap();
    let sorted = (0..VALUES).map(|at| (at.to_be_bytes().to_vec(), value(at)));
    store.ingest_derived(Family::DerivedScan, sorted).unwrap();
    let read = |at: u32| drop(store.get(Family::DerivedScan, &at.to_be_bytes()).unwrap().unwrap());
    (0..VALUES).for_each(read);
    // What is read once more stays, here and there among what goes.
    (0..VALUES).step_by(60).for_each(read);
    let before_mb = resident_mb();
    store.set_budget(16 * MEGABYTE).unwrap();
    let after_mb = resident_mb();
    println!("{before_mb} MB before, {after_mb} MB after");
    assert!(before_mb - after_mb > 120, "{before_mb} MB before, {after_mb} MB after");
}

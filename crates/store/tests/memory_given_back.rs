//! A smaller budget makes the process smaller. Alone in its process, whose memory it looks at.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "the other program uses all of it")]
#[path = "it/common/mod.rs"]
mod common;

use common::{noise, quick_folder, small_options};
use scrinium_bench::process::memory_bytes;
use scrinium_statistics::Registry;
use scrinium_store::{Family, Store};

const MEGABYTE: u64 = 1 << 20;
const LARGE_BYTES: u64 = 256 * MEGABYTE;
const VALUE_BYTES: usize = 4000;
/// 160 MB, four in a block.
const VALUES: u32 = 40_000;

#[test]
fn a_smaller_budget_gives_the_memory_of_blocks_back() {
    let folder = quick_folder();
    let mut options = small_options(folder.path());
    options.budget_bytes = Some(LARGE_BYTES);
    let store = Store::open(options, &Registry::new()).unwrap();
    let sorted = (0..VALUES).map(|at| (at.to_be_bytes().to_vec(), noise(u64::from(at), VALUE_BYTES)));
    let files = store.derived().sort(Family::DerivedScan, sorted).unwrap();
    store.derived().bring_in(vec![files]).unwrap();
    let read = |at: u32| drop(store.get(Family::DerivedScan, &at.to_be_bytes()).unwrap().unwrap());
    (0..VALUES).for_each(read);
    // What is read once more stays, here and there among what goes.
    (0..VALUES).step_by(60).for_each(read);
    let resident_mb = || memory_bytes(std::process::id()) / 1e6;
    let before_mb = resident_mb();
    store.admin().set_budget(16 * MEGABYTE);
    let after_mb = resident_mb();
    println!("{before_mb:.0} MB before, {after_mb:.0} MB after");
    assert!(before_mb - after_mb > 126.0, "{before_mb:.0} MB before, {after_mb:.0} MB after");
}

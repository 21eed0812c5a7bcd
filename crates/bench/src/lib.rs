//! What the benchmarks share: folders, servers, clients, repeatable random numbers, medians, and lines of results.
//!
//! A benchmark prints one JSON object a line on standard output and nothing else; talk goes to standard
//! error. Values of both sides come from alternating rounds of one run, since these machines are noisy.

pub mod client;
pub mod discussion;
pub mod process;
pub mod server;
mod sizes;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

pub use sizes::{alternate, compare_sizes};

/// As the server has it, on both sides of every comparison.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A fresh folder in `SCRINIUM_BENCH_DIR`, or else in cargo's folder for such things; removed when dropped.
///
/// # Panics
/// If there can be none.
#[must_use]
#[allow(clippy::unwrap_used, reason = "a benchmark stops at the first error")]
pub fn folder() -> TempDir {
    let parent = std::env::var_os("SCRINIUM_BENCH_DIR").map_or_else(
        || {
            let target = std::env::current_exe().ok();
            // target/release/deps/name-hash
            let target = target.as_deref().and_then(|path| path.ancestors().nth(3));
            target.map_or_else(std::env::temp_dir, |target| target.join("tmp"))
        },
        PathBuf::from,
    );
    std::fs::create_dir_all(&parent).unwrap();
    tempfile::tempdir_in(parent).unwrap()
}

/// The finalizer of splitmix64: scatters consecutive numbers.
#[must_use]
pub const fn scatter(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What an environment variable sets for the benchmark, such as `SCRINIUM_DOCUMENTS`; else `usual`.
///
/// # Panics
/// If the variable holds something else than such a value.
#[must_use]
#[allow(clippy::panic, reason = "a benchmark stops at the first error")]
pub fn setting<T: FromStr>(name: &str, usual: T) -> T {
    let text = std::env::var(name).ok();
    text.map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not understood")))
}

/// How many documents the databases have: `usual`, or what `SCRINIUM_SIZES` says, such as `1000,80000`.
///
/// # Panics
/// If that is no list of numbers.
#[must_use]
#[allow(clippy::panic, reason = "a benchmark stops at the first error")]
pub fn sizes(usual: &[u64]) -> Vec<u64> {
    let Ok(text) = std::env::var("SCRINIUM_SIZES") else { return usual.to_vec() };
    let size =
        |size: &str| size.parse().unwrap_or_else(|_| panic!("SCRINIUM_SIZES={text} is not understood"));
    text.split(',').map(size).collect()
}

/// The middle of the values; 0 of none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// The value below which `part` (0 to 1) of the values lie; 0 of none.
#[must_use]
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "lists have fewer than 2^52 values"
)]
pub fn percentile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// How far the highest value lies from the lowest, as a part of the median, or of the highest where that is 0.
#[must_use]
pub fn spread(values: &[f64]) -> f64 {
    let highest = values.iter().copied().fold(f64::MIN, f64::max);
    let lowest = values.iter().copied().fold(f64::MAX, f64::min);
    let middle = Some(median(values)).filter(|median| *median > 0.0).unwrap_or(highest);
    if middle > 0.0 { (highest - lowest) / middle } else { 0.0 }
}

/// How long `work` takes.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let made = work();
    (made, began.elapsed())
}

/// One result.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The benchmark.
    pub name: &'a str,
    /// What of it.
    pub case: &'a str,
    /// What was measured, round by round.
    pub values: &'a [f64],
    /// The unit of the values.
    pub unit: &'a str,
    /// What they are compared with, and its values in the same rounds; or a figure that is given.
    pub against: Against<'a>,
}

/// What a result is compared with.
#[derive(Clone, Copy, Debug)]
pub enum Against<'a> {
    /// Values of the same rounds.
    Measured(&'a str, &'a [f64]),
    /// A target or somebody else's figure.
    Given(&'a str, f64),
}

/// Prints a result; its ratio is value by value compared.
pub fn report(line: &Line<'_>) {
    let (against, against_value, ratio) = match line.against {
        Against::Measured(name, values) => {
            let ratios: Vec<f64> =
                line.values.iter().zip(values).map(|(ours, theirs)| ours / theirs).collect();
            (name, median(values), median(&ratios))
        }
        Against::Given(name, value) => (name, value, median(line.values) / value),
    };
    println!(
        "{}",
        json!({
            "name": line.name, "case": line.case, "value": rounded(median(line.values)), "unit": line.unit,
            "against": against, "against_value": rounded(against_value), "ratio": rounded(ratio),
            "runs": line.values.len(), "spread": rounded(spread(line.values)),
        })
    );
}

/// Three digits are all that a noisy machine can tell.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let digits = 10_f64.powf(2.0 - value.abs().log10().floor());
    (value * digits).round() / digits
}

//! What the device of the data can do, without a server on it.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Device;
use crate::range::Range;

const BLOCK_BYTES: usize = 4096;
const LARGE_BLOCK_BYTES: usize = 1 << 20;

/// What is written over, as an extent of the log.
const EXTENT_BYTES: usize = 16 << 20;

const MOST_SYNCS: usize = 1000;
const FEWEST_SYNCS: usize = 10;

/// Measures the device of `folder`: for about `length`, with files that are removed again.
///
/// # Errors
/// The folder cannot be written to, or is full.
pub fn measure(folder: &Path, length: Duration) -> io::Result<Device> {
    let path = folder.join("device.probe");
    let measured = probe(&path, length);
    // It is removed also where something failed; then that is what is reported.
    let removed = std::fs::remove_file(&path);
    let device = measured?;
    removed?;
    Ok(device)
}

fn probe(path: &Path, length: Duration) -> io::Result<Device> {
    let file = File::options().create(true).truncate(true).read(true).write(true).open(path)?;
    let write_bytes_per_s = sequential(&file, length / 2)?;
    let mut syncs_ms = overwrites(&file, length / 2)?;
    syncs_ms.sort_by(f64::total_cmp);
    let at = |tenth: usize| syncs_ms.get(syncs_ms.len() * tenth / 10).copied().unwrap_or(0.0);
    Ok(Device { sync_ms: Range::of(at(1), at(5), at(9)), write_bytes_per_s })
}

/// Bytes a second, written to the end of a file that is synced after each 16 MB.
fn sequential(mut file: &File, length: Duration) -> io::Result<Range> {
    // Not zeros, which some devices do not write.
    let block: Vec<u8> = (0..LARGE_BLOCK_BYTES as u64).map(noise).collect();
    let began = Instant::now();
    let mut speeds = Vec::new();
    while speeds.is_empty() || began.elapsed() < length && speeds.len() < 64 {
        let piece = Instant::now();
        for _ in 0..EXTENT_BYTES / LARGE_BLOCK_BYTES {
            file.write_all(&block)?;
        }
        file.sync_data()?;
        #[allow(clippy::cast_precision_loss, reason = "16 MB")]
        speeds.push(EXTENT_BYTES as f64 / piece.elapsed().as_secs_f64().max(1e-9));
    }
    speeds.sort_by(f64::total_cmp);
    let middle = speeds.get(speeds.len() / 2).copied().unwrap_or(0.0);
    Ok(Range::over(&speeds)
        .map_or_else(|| Range::exactly(middle), |range| Range::of(range.low, middle, range.high)))
}

/// Milliseconds of each write of a block and its sync, where the file has its length already.
fn overwrites(file: &File, length: Duration) -> io::Result<Vec<f64>> {
    let block: Vec<u8> = (0..BLOCK_BYTES as u64).map(noise).collect();
    let began = Instant::now();
    let mut taken_ms = Vec::new();
    while taken_ms.len() < FEWEST_SYNCS || began.elapsed() < length && taken_ms.len() < MOST_SYNCS {
        let place = (taken_ms.len() % (EXTENT_BYTES / BLOCK_BYTES)) * BLOCK_BYTES;
        let sync = Instant::now();
        file.write_all_at(&block, place as u64)?;
        file.sync_data()?;
        taken_ms.push(sync.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(taken_ms)
}

/// A byte that the next ones do not tell (a linear congruence's high bits; Knuth's MMIX).
#[allow(clippy::cast_possible_truncation, reason = "the highest eight bits")]
fn noise(index: u64) -> u8 {
    let mixed = index.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (mixed.wrapping_mul(mixed | 1) >> 56) as u8
}

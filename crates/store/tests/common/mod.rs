//! What several tests of the store need.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod writers;

use std::fs;
use std::path::Path;

use scrinium_statistics::Registry;
use scrinium_store::{Cursor, Family, Snapshot, Store, StoreOptions};

/// Options that make a store small and quick, and its log roll over often.
pub(crate) fn small_options(dir: &Path) -> StoreOptions {
    let mut options = StoreOptions::new(dir);
    options.budget_bytes = Some(32 << 20);
    options.log_extent_bytes = 1 << 20;
    options.log_spare_extents = 1;
    options.reserve_bytes = 0;
    options
}

pub(crate) fn open_small(dir: &Path) -> Store {
    Store::open(small_options(dir), &Registry::new()).unwrap()
}

/// A folder in memory where there is one, for tests that ask what is written and not whether it is synced.
pub(crate) fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Copies the folder of a store that nobody writes to: what a crash at this moment would leave.
pub(crate) fn crash_image(from: &Path, to: &Path) {
    // A compaction may remove files under way, so what was copied counts only if nothing changed.
    for _ in 0..100 {
        let before = listing(from);
        let _ = fs::remove_dir_all(to);
        if copy_folder(from, to).is_ok() && listing(from) == before {
            return;
        }
    }
    panic!("{} does not come to rest", from.display());
}

fn listing(dir: &Path) -> Vec<(std::path::PathBuf, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => found.push((entry.path(), metadata.len())),
                Err(_) => {}
            }
        }
    }
    found.sort();
    found
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// All that a cursor still gives.
pub(crate) fn collect(mut cursor: Cursor<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        found.push((key.to_vec(), value.to_vec()));
    }
    found
}

/// All keys and values of a family, ascending.
pub(crate) fn all(snapshot: &Snapshot, family: Family) -> Vec<(Vec<u8>, Vec<u8>)> {
    collect(snapshot.cursor(family, scrinium_store::KeyRange::ALL, scrinium_store::Direction::Forward))
}

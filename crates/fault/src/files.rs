//! Files that come to harm otherwise than by a loss of power: bits that flip, ends that are cut off, files that go.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rand::Rng;

/// Copies a folder with all that lies in it.
///
/// # Errors
/// Those of the operating system; a file that goes meanwhile is one.
pub fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
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

/// Copies a folder as a crash at this moment would leave it: a compaction may remove files under way, so that what was
/// copied counts only if nothing changed meanwhile.
///
/// # Panics
/// If the folder does not come to rest.
#[allow(clippy::panic, reason = "a test fails by panicking")]
pub fn crash_image(from: &Path, to: &Path) {
    for _ in 0..100 {
        let before = listing(from);
        // A copy that did not count may be there.
        drop(fs::remove_dir_all(to));
        if copy_folder(from, to).is_ok() && listing(from) == before {
            return;
        }
    }
    panic!("{} does not come to rest", from.display());
}

/// Files up to this length are compared as a whole: they are written in place, and tell what holds of the others.
const COMPARED_BYTES: u64 = 64 << 10;

/// All files below a folder, with their lengths, and the content of short ones.
fn listing(folder: &Path) -> BTreeMap<PathBuf, (u64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => {
                    let is_short = metadata.len() <= COMPARED_BYTES;
                    let content =
                        if is_short { fs::read(entry.path()).unwrap_or_default() } else { Vec::new() };
                    found.insert(entry.path(), (metadata.len(), content));
                }
                Err(_) => {}
            }
        }
    }
    found
}

/// Removes a file, cuts it, or flips a bit of it, and says which. It must not be empty.
///
/// # Errors
/// Those of the operating system.
///
/// # Panics
/// If the file is empty.
#[allow(clippy::indexing_slicing, reason = "within the length")]
pub fn harm(path: &Path, random: &mut impl Rng) -> io::Result<&'static str> {
    let mut bytes = fs::read(path)?;
    let what = match random.random_range(0..6) {
        0 => {
            fs::remove_file(path)?;
            return Ok("removed");
        }
        1 => {
            bytes.truncate(random.random_range(0..bytes.len()));
            "cut"
        }
        _ => {
            let at = random.random_range(0..bytes.len());
            bytes[at] ^= 1 << random.random_range(0..8);
            "flipped"
        }
    };
    fs::write(path, bytes)?;
    Ok(what)
}

//! Whose the folder of a build is. Several servers may have one `view.rebuild_dir`, also a server and a restored copy of
//! it, whose databases have the same names and ids. So each folder says which store's it is, and is locked while its
//! server lives.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Says which store the folder belongs to; locked by the one who works in it.
const OWNER: &str = "owner";

/// Digits of a store's identity, at which the owners begin of all that came of one store.
const IDENTITY_DIGITS: usize = 32;

/// A folder that nobody else works in while this lives.
pub(super) struct Claim {
    _owner: File,
    is_new: bool,
}

impl Claim {
    /// Claims a folder for the store of this history, and makes it if it is missing. `None`: another one works in it.
    ///
    /// # Errors
    /// Those of the file system; a folder that was made is then gone again.
    pub(super) fn take(path: &Path, history: &str) -> io::Result<Option<Self>> {
        let was_there = path.exists();
        let taken = Self::take_in(path, history);
        if taken.is_err() && !was_there {
            drop(fs::remove_dir_all(path));
        }
        taken
    }

    fn take_in(path: &Path, history: &str) -> io::Result<Option<Self>> {
        fs::create_dir_all(path)?;
        let mut options = OpenOptions::new();
        let mut owner = options.read(true).write(true).create(true).truncate(false).open(path.join(OWNER))?;
        if !lock(&owner, path)? {
            return Ok(None);
        }
        let mut former = String::new();
        owner.read_to_string(&mut former)?;
        let is_new = former != history;
        if is_new {
            owner.set_len(0)?;
            owner.rewind()?;
            owner.write_all(history.as_bytes())?;
        }
        Ok(Some(Self { _owner: owner, is_new }))
    }

    /// Whether the folder was not this store's before.
    pub(super) const fn is_new(&self) -> bool {
        self.is_new
    }
}

/// Whether nobody else has it, and it is still the folder's.
fn lock(owner: &File, path: &Path) -> io::Result<bool> {
    match owner.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let locked = owner.metadata()?;
    match fs::metadata(path.join(OWNER)) {
        Ok(found) => Ok((found.dev(), found.ino()) == (locked.dev(), locked.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a folder belongs to the store of this history.
pub(super) fn is_of(path: &Path, history: &str) -> bool {
    fs::read_to_string(path.join(OWNER)).is_ok_and(|owner| owner == history)
}

/// Removes the folders in `dir` that the store of this history has left, or one that it was once, where nobody works in
/// them and which `is_wanted` says are of no use. Returns how many.
pub(super) fn remove_left(
    dir: &Path,
    history: &str,
    mut is_wanted: impl FnMut(&Path) -> bool,
) -> io::Result<usize> {
    let found = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        found => found?,
    };
    let identity = history.get(..IDENTITY_DIGITS).unwrap_or(history);
    let mut removed = 0;
    for path in found.flatten().map(|entry| entry.path()) {
        let Some((owner, text)) = owner_of(&path) else { continue };
        let is_ours = text.starts_with(identity);
        if is_ours && lock(&owner, &path)? && !(text == history && is_wanted(&path)) {
            fs::remove_dir_all(&path)?;
            tracing::info!(path = %path.display(), "removed what an abandoned build of views had left");
            removed += 1;
        }
    }
    Ok(removed)
}

fn owner_of(path: &Path) -> Option<(File, String)> {
    let mut owner = File::open(path.join(OWNER)).ok()?;
    let mut text = String::new();
    owner.read_to_string(&mut text).ok()?;
    Some((owner, text))
}

//! What was read of objects, in files on this machine: bounded, the longest unused goes first.
//!
//! Nothing here is trusted: anyone who reads it checks it as if it came over the network. So nothing is synced, and a
//! cache that is lost or damaged is filled again.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

/// The end of the names of files that are not whole yet.
const PART: &str = "part";

pub(crate) struct Cache {
    dir: PathBuf,
    limit_bytes: AtomicU64,
    /// Parts of files have names of their own.
    next_part: AtomicU64,
    state: Mutex<CacheState>,
}

#[derive(Default)]
struct CacheState {
    files: HashMap<String, Entry>,
    /// The longest unused first.
    order: BTreeMap<u64, String>,
    bytes: u64,
    clock: u64,
    opened: bool,
}

struct Entry {
    bytes: u64,
    used: u64,
}

impl CacheState {
    fn touch(&mut self, name: &str) -> bool {
        self.clock += 1;
        let Some(entry) = self.files.get_mut(name) else { return false };
        self.order.remove(&entry.used);
        entry.used = self.clock;
        self.order.insert(self.clock, name.to_owned());
        true
    }

    fn insert(&mut self, name: String, bytes: u64) {
        self.remove(&name);
        self.clock += 1;
        self.bytes += bytes;
        self.order.insert(self.clock, name.clone());
        self.files.insert(name, Entry { bytes, used: self.clock });
    }

    fn remove(&mut self, name: &str) -> bool {
        let Some(entry) = self.files.remove(name) else { return false };
        self.order.remove(&entry.used);
        self.bytes -= entry.bytes;
        true
    }
}

impl Cache {
    /// Nothing is read or made before it is used.
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir, limit_bytes: AtomicU64::new(0), next_part: AtomicU64::new(0), state: Mutex::default() }
    }

    /// A limit of 0 empties it, and it is not used.
    pub(crate) fn set_limit(&self, limit_bytes: u64) {
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
        let mut state = self.state.lock();
        self.open(&mut state);
        self.shrink(&mut state, 0);
    }

    pub(crate) fn is_used(&self) -> bool {
        self.limit_bytes.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// Takes up what an earlier process has left, the oldest first.
    fn open(&self, state: &mut CacheState) {
        if std::mem::replace(&mut state.opened, true) {
            return;
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let (Ok(metadata), Ok(name)) = (entry.metadata(), entry.file_name().into_string()) else {
                continue;
            };
            if name.ends_with(PART) {
                drop(fs::remove_file(entry.path()));
            } else if metadata.is_file() {
                found.push((metadata.modified().ok(), name, metadata.len()));
            }
        }
        found.sort();
        found.into_iter().for_each(|(_, name, bytes)| state.insert(name, bytes));
    }

    /// Makes room for so much more.
    fn shrink(&self, state: &mut CacheState, more_bytes: u64) {
        let limit_bytes = self.limit_bytes.load(Ordering::Relaxed);
        while state.bytes.saturating_add(more_bytes) > limit_bytes
            && let Some((_, name)) = state.order.first_key_value().map(|(used, name)| (*used, name.clone()))
        {
            state.remove(&name);
            drop(fs::remove_file(self.dir.join(&name)));
        }
    }

    /// A part of a file, if it is there.
    pub(crate) fn read(&self, name: &str, (from, to): (u64, u64)) -> Option<Bytes> {
        if !self.is_used() {
            return None;
        }
        {
            let mut state = self.state.lock();
            self.open(&mut state);
            if !state.touch(name) {
                return None;
            }
        }
        let mut bytes = vec![0; usize::try_from(to.checked_sub(from)?).ok()?];
        let read = File::open(self.dir.join(name)).and_then(|file| file.read_exact_at(&mut bytes, from));
        match read {
            Ok(()) => Some(bytes.into()),
            Err(_) => {
                self.forget(name);
                None
            }
        }
    }

    /// Keeps a file; where that cannot be done, it is read from its store again.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        let length = bytes.len() as u64;
        if length > self.limit_bytes.load(Ordering::Relaxed) {
            return;
        }
        let part = self.dir.join(format!("{}.{PART}", self.next_part.fetch_add(1, Ordering::Relaxed)));
        let mut written = fs::write(&part, bytes);
        if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            written = fs::create_dir_all(&self.dir).and_then(|()| fs::write(&part, bytes));
        }
        let mut state = self.state.lock();
        self.open(&mut state);
        self.shrink(&mut state, length);
        match written.and_then(|()| fs::rename(&part, self.dir.join(name))) {
            Ok(()) => state.insert(name.to_owned(), length),
            Err(error) => {
                drop(fs::remove_file(&part));
                tracing::warn!(dir = %self.dir.display(), %error, "the cache of attachments takes nothing");
            }
        }
    }

    /// What was read there is not what should be.
    pub(crate) fn forget(&self, name: &str) {
        if self.state.lock().remove(name) {
            drop(fs::remove_file(self.dir.join(name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_goes_first_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("cache");
        let cache = Cache::new(place.clone());
        cache.set_limit(100);
        for name in ["a", "b", "c"] {
            cache.put(name, &[7; 33]);
        }
        assert_eq!(cache.read("a", (3, 6)).unwrap().as_ref(), [7; 3]);
        cache.put("d", &[8; 30]);
        assert!(cache.read("b", (0, 1)).is_none(), "it was used least");
        assert_eq!(cache.bytes(), 96);
        cache.put("large", &[0; 101]);
        assert!(cache.read("large", (0, 1)).is_none());
        // A file that was cut or taken away is not there.
        fs::write(place.join("c"), [7; 3]).unwrap();
        assert!(cache.read("c", (0, 33)).is_none());
        fs::write(place.join("9.part"), [0; 500]).unwrap();
        drop(cache);
        let cache = Cache::new(place.clone());
        cache.set_limit(1000);
        assert_eq!(cache.bytes(), 63);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 2);
        cache.set_limit(0);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
        cache.put("e", &[1]);
        assert!(cache.read("e", (0, 1)).is_none());
    }
}

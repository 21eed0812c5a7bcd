//! Which keys of one user of the store were changed, for anyone who copies them while the user continues.
//!
//! A key is noted before its change is visible. Anyone who takes the keys that were noted and then waits for a commit of his
//! own finds all their changes: commits become visible in their order.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::{Family, Operation};

/// A user whose keys are noted, by the four bytes that they begin with.
#[derive(Default)]
pub(crate) struct Watched {
    any: AtomicBool,
    users: RwLock<HashMap<u32, Arc<Mutex<Noted>>>>,
}

struct Noted {
    keys: HashSet<(Family, Vec<u8>)>,
    max: usize,
    lost_track: bool,
}

/// Notes which keys of a user change, until it is dropped. Contents and what is derived are not among them.
pub struct KeyWatch {
    watched: Arc<Watched>,
    number: u32,
    noted: Arc<Mutex<Noted>>,
}

/// What has changed since it was asked last.
#[derive(Debug, Default)]
pub struct TouchedKeys {
    /// Keys that were put or deleted.
    pub keys: Vec<(Family, Vec<u8>)>,
    /// There were too many to note, or a range was deleted: any key may have changed.
    pub lost_track: bool,
}

impl KeyWatch {
    /// At most `max` keys are kept.
    pub(crate) fn watch(watched: &Arc<Watched>, number: u32, max: usize) -> Self {
        let noted = Arc::new(Mutex::new(Noted { keys: HashSet::new(), max, lost_track: false }));
        watched.users.write().insert(number, Arc::clone(&noted));
        watched.any.store(true, Ordering::Release);
        Self { watched: Arc::clone(watched), number, noted }
    }

    /// What was noted, which is forgotten here.
    #[must_use]
    pub fn take(&self) -> TouchedKeys {
        let mut noted = self.noted.lock();
        let lost_track = std::mem::take(&mut noted.lost_track);
        TouchedKeys { keys: std::mem::take(&mut noted.keys).into_iter().collect(), lost_track }
    }

    /// How many keys are noted; `usize::MAX` if there were too many.
    #[must_use]
    pub fn count(&self) -> usize {
        let noted = self.noted.lock();
        if noted.lost_track { usize::MAX } else { noted.keys.len() }
    }

    /// Notes a key once more, which could not be dealt with.
    pub fn note(&self, family: Family, key: &[u8]) {
        self.noted.lock().add(family, key);
    }
}

impl Drop for KeyWatch {
    fn drop(&mut self) {
        let mut users = self.watched.users.write();
        users.remove(&self.number);
        self.watched.any.store(!users.is_empty(), Ordering::Release);
    }
}

impl Watched {
    /// Somebody is about to change this.
    pub(crate) fn note(&self, operation: &Operation<'_>) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let family = operation.family();
        if !matches!(family, Family::Point | Family::Scan | Family::Churn) {
            return;
        }
        let users = self.users.read();
        match operation {
            Operation::Put { key, .. } | Operation::Delete { key, .. } => {
                if let Some(noted) = number_of(key).and_then(|number| users.get(&number)) {
                    noted.lock().add(family, key);
                }
            }
            Operation::DeleteRange { from, to, .. } => {
                let first = number_of(from).unwrap_or(0);
                for (number, noted) in users.iter() {
                    if *number >= first && number.to_be_bytes().as_slice() < *to {
                        noted.lock().lose_track();
                    }
                }
            }
        }
    }
}

impl Noted {
    fn add(&mut self, family: Family, key: &[u8]) {
        if self.lost_track {
            return;
        }
        if self.keys.len() >= self.max {
            return self.lose_track();
        }
        self.keys.insert((family, key.to_vec()));
    }

    fn lose_track(&mut self) {
        self.lost_track = true;
        self.keys = HashSet::new();
    }
}

fn number_of(key: &[u8]) -> Option<u32> {
    key.first_chunk().copied().map(u32::from_be_bytes)
}

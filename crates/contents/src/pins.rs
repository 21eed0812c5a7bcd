//! Which contents are about to be referred to, so that the collector leaves them alone, and which ones the
//! collector is at.

use std::collections::{HashMap, HashSet};

use parking_lot::{Condvar, Mutex};

use crate::keys::Digest;

/// Contents are spread over this many locks by their digest.
const SHARDS: usize = 64;

/// Pins are given back by the thread that commits, which everybody waits for: nothing here holds a lock
/// while it waits for a commit.
pub(crate) struct Pins {
    shards: Vec<Shard>,
}

#[derive(Default)]
struct Shard {
    state: Mutex<PinState>,
    collected: Condvar,
}

#[derive(Default)]
struct PinState {
    pins: HashMap<Digest, usize>,
    collecting: HashSet<Digest>,
}

/// The collector is at this content; ends when dropped.
pub(crate) struct Collecting<'a> {
    shard: &'a Shard,
    digest: Digest,
}

impl Pins {
    pub(crate) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }

    fn shard(&self, digest: &Digest) -> Option<&Shard> {
        let first = digest.first().copied().unwrap_or_default();
        self.shards.get(usize::from(first) % SHARDS)
    }

    /// Waits while the collector is at this content.
    pub(crate) fn pin(&self, digest: &Digest) {
        let Some(shard) = self.shard(digest) else { return };
        let mut state = shard.state.lock();
        while state.collecting.contains(digest) {
            shard.collected.wait(&mut state);
        }
        *state.pins.entry(*digest).or_default() += 1;
    }

    pub(crate) fn unpin(&self, digest: &Digest) {
        let Some(shard) = self.shard(digest) else { return };
        let mut state = shard.state.lock();
        if let Some(count) = state.pins.get_mut(digest) {
            *count -= 1;
            if *count == 0 {
                state.pins.remove(digest);
            }
        }
    }

    /// `None` if the content is pinned, or another collector is at it.
    pub(crate) fn collect(&self, digest: &Digest) -> Option<Collecting<'_>> {
        let shard = self.shard(digest)?;
        let mut state = shard.state.lock();
        if state.pins.contains_key(digest) || !state.collecting.insert(*digest) {
            return None;
        }
        // Made only now: dropping one takes the lock and ends the collecting.
        Some(Collecting { shard, digest: *digest })
    }
}

impl Drop for Collecting<'_> {
    fn drop(&mut self) {
        self.shard.state.lock().collecting.remove(&self.digest);
        self.shard.collected.notify_all();
    }
}

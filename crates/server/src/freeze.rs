//! `freeze` and `thaw`: changes are held while somebody else takes a snapshot of the disks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use scrinium_catalog::Databases;
use scrinium_statistics::Registry;
use scrinium_store::{Freeze, FreezeOptions};
use serde_json::json;

use crate::console::Reply;

/// How long changes are held where nobody says.
pub(crate) const USUAL_LIMIT: Duration = Duration::from_secs(30);

/// How long they may be held; who needs more copies from a backup.
pub(crate) const LONGEST_LIMIT: Duration = Duration::from_secs(600);

/// Who changes something waits for so long after the freeze has begun, and is refused (503) from then on. A snapshot
/// takes a second, so that nobody notices most.
const PATIENCE: Duration = Duration::from_secs(5);

/// The freeze of a server, if there is one. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Freezes {
    shared: Arc<SharedFreeze>,
}

#[derive(Default)]
struct SharedFreeze {
    state: Mutex<FreezeState>,
    ended: Condvar,
}

#[derive(Default)]
struct FreezeState {
    current: Option<Frozen>,
    /// The last one ended by itself, and nobody was told.
    expired: bool,
    /// Of the last one that began.
    number: u64,
}

struct Frozen {
    stores: Vec<Freeze>,
    began: Instant,
    until: Instant,
}

impl Freezes {
    /// `Server.Frozen`: 1 while changes are held.
    pub(crate) fn register(statistics: &Registry) -> Self {
        let this = Self::default();
        let shown = this.clone();
        statistics.gauge("Server.Frozen", move || if shown.left().is_some() { 1.0 } else { 0.0 });
        this
    }

    /// How long changes are held from now on at most; `None`: they are not.
    pub(crate) fn left(&self) -> Option<Duration> {
        let until = self.shared.state.lock().current.as_ref()?.until;
        until.checked_duration_since(Instant::now())
    }

    /// Holds changes of all stores from one moment on, for `limit` at most; `threads` work on databases, of which half
    /// may wait for the end.
    ///
    /// # Errors
    /// Why they are not held, in words. They go on then.
    pub(crate) fn freeze(
        &self,
        databases: &Databases,
        limit: Duration,
        threads: usize,
    ) -> Result<Reply, String> {
        let mut state = self.shared.state.lock();
        if state.current.is_some() {
            return Err("changes are held already; thaw ends that".to_owned());
        }
        let began = Instant::now();
        let options = FreezeOptions { limit, patience: PATIENCE, waiting_max: (threads / 2).max(1) };
        // As for a backup, no database comes, goes or moves between the stores meanwhile, and the first store is first.
        let still = databases.still_catalog();
        let stores = databases.stores().into_iter().map(|(_, store)| store.admin().freeze(&options));
        let stores = stores.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        drop(still);
        let count = stores.len();
        state.number += 1;
        state.expired = false;
        let (number, until) = (state.number, began + limit);
        state.current = Some(Frozen { stores, began, until });
        drop(state);
        let shared = Arc::clone(&self.shared);
        let watched = std::thread::Builder::new()
            .name("thaw".to_owned())
            .spawn(move || shared.end_in_time(number, until));
        if let Err(error) = watched {
            self.end();
            return Err(format!("cannot start the thread that would end it: {error}"));
        }
        let seconds = limit.as_secs();
        tracing::warn!(seconds, stores = count, "changes are held for a snapshot of the disks");
        Ok(Reply {
            text: format!(
                "Changes are held, and everything before is on the disks: take the snapshot, then thaw. They resume by \
                 themselves in {seconds} s.\n"
            ),
            data: json!({"frozen": true, "seconds": seconds, "stores": count}),
        })
    }

    /// Takes changes again.
    ///
    /// # Errors
    /// In words, that they were not held until now.
    pub(crate) fn thaw(&self) -> Result<Reply, String> {
        let mut state = self.shared.state.lock();
        let Some(frozen) = state.current.take() else {
            let expired = std::mem::take(&mut state.expired);
            return Err(if expired {
                "the freeze had ended by itself before: a snapshot that took longer is not of one moment; take it again, \
                 with a longer time"
                    .to_owned()
            } else {
                "changes are not held".to_owned()
            });
        };
        drop(state);
        self.shared.ended.notify_all();
        let held_ms = scrinium_clock::milliseconds(frozen.began.elapsed());
        // Each of them, also after one that had ended.
        let ended: Vec<bool> = frozen.stores.into_iter().map(Freeze::thaw).collect();
        if ended.contains(&false) {
            return Err(
                "the freeze had just ended by itself: take the snapshot again, with a longer time".to_owned()
            );
        }
        tracing::info!(held_ms, "changes go on");
        Ok(Reply {
            text: format!("Changes have resumed; they were held for {held_ms} ms.\n"),
            data: json!({"frozen": false, "held_ms": held_ms}),
        })
    }

    /// Ends a freeze without a word, if there is one.
    pub(crate) fn end(&self) {
        let ended = self.shared.state.lock().current.take();
        self.shared.ended.notify_all();
        drop(ended);
    }
}

impl SharedFreeze {
    /// Waits for the end of the freeze of this number, and ends it when it is due.
    fn end_in_time(&self, number: u64, until: Instant) {
        let mut state = self.state.lock();
        while state.number == number && state.current.is_some() {
            if self.ended.wait_until(&mut state, until).timed_out() && state.number == number {
                let expired = state.current.take();
                state.expired = expired.is_some();
                drop(state);
                if expired.is_some() {
                    tracing::warn!(
                        "changes were held for as long as allowed, and resume by themselves: nobody said thaw"
                    );
                }
                return;
            }
        }
    }
}

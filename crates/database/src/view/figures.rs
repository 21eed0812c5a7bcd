//! What is counted of the views of all databases, under names in Domino's manner.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use scrinium_javascript::PoolFigures;
use scrinium_statistics::Registry;

use super::update::Waiting;
use crate::context::ServerContext;
use crate::figures::float;

/// Since the start.
#[derive(Default)]
pub struct ViewCounts {
    builds: AtomicU64,
    build_us: AtomicU64,
    spilled_bytes: AtomicU64,
    read_again: AtomicU64,
    refreshes: AtomicU64,
    refresh_us: AtomicU64,
    script_us: AtomicU64,
    script_failures: AtomicU64,
    for_readers: UpdateCounts,
    for_nobody: UpdateCounts,
}

/// Of indexes that were there.
#[derive(Default)]
struct UpdateCounts {
    updates: AtomicU64,
    changes: AtomicU64,
    took_us: AtomicU64,
}

impl ViewCounts {
    /// Indexes were built from all documents together, with this many bytes of sorted files.
    pub(super) fn built(&self, took: Duration, spilled_bytes: u64) {
        add(&self.builds, 1);
        add(&self.build_us, micros(took));
        add(&self.spilled_bytes, spilled_bytes);
    }

    /// An index that was discarded because nobody read it is read.
    pub(super) fn read_again(&self) {
        add(&self.read_again, 1);
    }

    /// A view that depends on the time was evaluated again, whole.
    pub(super) fn refreshed(&self, took: Duration) {
        add(&self.refreshes, 1);
        add(&self.refresh_us, micros(took));
    }

    /// Map functions were run.
    pub(super) fn ran_scripts(&self, took: Duration) {
        add(&self.script_us, micros(took));
    }

    /// Indexes that are updated together were this many changes behind, and that took so long. None were behind, and a
    /// reader waited all the same, where another had begun to update them.
    pub(super) fn updated(&self, waiting: Waiting, changes: u64, took: Duration) {
        let counts = match waiting {
            Waiting::Reader => &self.for_readers,
            Waiting::Nobody => &self.for_nobody,
        };
        if changes > 0 {
            add(&counts.updates, 1);
            add(&counts.changes, changes);
        }
        add(&counts.took_us, micros(took));
    }

    /// A function failed on a document, or as a whole.
    pub(super) fn script_failed(&self) {
        add(&self.script_failures, 1);
    }
}

/// `View.Builds` (from all documents), `.Milliseconds` and `.SpilledBytes` (sorted files in `view.rebuild_dir`);
/// `View.ReadAgain` (indexes that had been discarded because nobody read them); `View.Refreshes` (of views that
/// depend on the time) and `.Milliseconds`; `View.Scripts.Milliseconds` of map functions, which run on several
/// processes, and `View.Scripts.Failures`; `Javascript.Processes` that run functions now, `.Busy`, `.Started`, and `.Lost`, which did
/// not end because nobody needed them; `View.Updates` (that a reader waited for, of
/// indexes that are there; those updated together are counted once), by how many `.Changes` they were behind, and how
/// many `.Milliseconds` readers waited; `View.Updates.Background`, with the same, of updates that nobody waited for.
pub fn register_view_statistics(server: &Arc<ServerContext>, statistics: &Registry) {
    let count = |name: &str, read: fn(&ViewCounts) -> u64| {
        server.figure(statistics, name, move |server| float(read(&server.view_counts)));
    };
    count("View.Builds", |counts| value(&counts.builds));
    count("View.Builds.Milliseconds", |counts| value(&counts.build_us) / 1000);
    count("View.Builds.SpilledBytes", |counts| value(&counts.spilled_bytes));
    count("View.ReadAgain", |counts| value(&counts.read_again));
    count("View.Refreshes", |counts| value(&counts.refreshes));
    count("View.Refreshes.Milliseconds", |counts| value(&counts.refresh_us) / 1000);
    count("View.Scripts.Milliseconds", |counts| value(&counts.script_us) / 1000);
    count("View.Scripts.Failures", |counts| value(&counts.script_failures));
    let processes = |name: &str, read: fn(PoolFigures) -> u64| {
        server.figure(statistics, name, move |server| float(read(server.scripts.figures())));
    };
    processes("Javascript.Processes", |figures| figures.processes);
    processes("Javascript.Processes.Busy", |figures| figures.busy);
    processes("Javascript.Processes.Started", |figures| figures.started);
    processes("Javascript.Processes.Lost", |figures| figures.lost);
    count("View.Updates", |counts| value(&counts.for_readers.updates));
    count("View.Updates.Changes", |counts| value(&counts.for_readers.changes));
    count("View.Updates.Milliseconds", |counts| value(&counts.for_readers.took_us) / 1000);
    count("View.Updates.Background", |counts| value(&counts.for_nobody.updates));
    count("View.Updates.Background.Changes", |counts| value(&counts.for_nobody.changes));
    count("View.Updates.Background.Milliseconds", |counts| value(&counts.for_nobody.took_us) / 1000);
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

fn value(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

//! The statistics of the views of all databases, under names in Domino's manner.

use std::sync::Arc;

use scrinium_database::figures::float;
use scrinium_javascript::PoolFigures;
use scrinium_statistics::Registry;

use crate::context::ViewsContext;
use crate::counts::{ViewCounts, value};

/// `View.Builds` (from all documents), `.Milliseconds` and `.SpilledBytes` (sorted files in `view.rebuild_dir`);
/// `View.ReadAgain` (indexes that had been discarded because nobody read them); `View.Refreshes` (of views that
/// depend on the time) and `.Milliseconds`; `View.Scripts.Milliseconds` of map functions, which run on several
/// processes, and `View.Scripts.Failures`; `Javascript.Processes` that run functions now, `.Busy`, `.Started`, and `.Lost`, which did
/// not end because nobody needed them; `View.Updates` (that a reader waited for, of
/// indexes that are there; those updated together are counted once), by how many `.Changes` they were behind, and how
/// many `.Milliseconds` readers waited; `View.Updates.Background`, with the same, of updates that nobody waited for.
pub fn register_view_statistics(views: &Arc<ViewsContext>, statistics: &Registry) {
    let count = |name: &str, read: fn(&ViewCounts) -> u64| {
        views.figure(statistics, name, move |views| float(read(&views.view_counts)));
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
        views.figure(statistics, name, move |views| float(read(views.scripts.figures())));
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

//! What a server does by itself: views and folders that were asked to be brought up to date, contents that
//! nobody refers to, what dropped databases and folders have left.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use scrinium_database::{Database, DatabaseError, Databases};
use scrinium_statistics::Tasks;
use tokio::task::{JoinError, JoinSet};

use crate::shutdown::Shutdown;

/// How soon views and folders follow that a reader wanted up to date soon.
const UPDATE_EVERY: Duration = Duration::from_millis(500);

/// How often contents are collected and dropped databases cleared away.
const COLLECT_EVERY: Duration = Duration::from_secs(30);

/// Views of so many design documents are brought up to date at once; another waits rather than take more
/// processors and disk from those who work.
const UPDATES_AT_ONCE: usize = 2;

/// Runs until the server stops.
pub(crate) async fn run(databases: Databases, tasks: Tasks, shutdown: Shutdown) {
    let mut update = tokio::time::interval(UPDATE_EVERY);
    let mut collect = tokio::time::interval(COLLECT_EVERY);
    let mut updates = ViewUpdates::default();
    loop {
        let (databases, tasks) = (databases.clone(), tasks.clone());
        tokio::select! {
            () = shutdown.wait() => return,
            _ = update.tick() => updates.begin(&databases),
            Some(ended) = updates.running.join_next() => report(ended),
            _ = collect.tick() => {
                report(tokio::task::spawn_blocking(move || collect_all(&databases, &tasks)).await);
            }
        }
    }
}

fn report(done: Result<Result<(), DatabaseError>, JoinError>) {
    match done {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "upkeep was not finished; it is tried again"),
        Err(error) => tracing::error!(%error, "upkeep failed"),
    }
}

/// What readers want brought up to date in the background.
#[derive(Clone, PartialEq, Eq)]
enum Wanted {
    /// The views of a design document.
    Views(String),
    Folder(String),
}

/// Views and folders that wait for it, and those under way.
#[derive(Default)]
struct ViewUpdates {
    /// In the order of asking.
    waiting: VecDeque<(Arc<Database>, Wanted)>,
    running: JoinSet<Result<(), DatabaseError>>,
}

impl ViewUpdates {
    fn begin(&mut self, databases: &Databases) {
        for database in databases.in_use() {
            let views = database.take_wanted_views().into_iter().map(Wanted::Views);
            let folders = database.take_wanted_folders().into_iter().map(Wanted::Folder);
            for wanted in views.chain(folders) {
                let is_same = |(of, waits): &(Arc<Database>, Wanted)| {
                    of.number() == database.number() && *waits == wanted
                };
                if !self.waiting.iter().any(is_same) {
                    self.waiting.push_back((Arc::clone(&database), wanted));
                }
            }
        }
        while self.running.len() < UPDATES_AT_ONCE
            && let Some((database, wanted)) = self.waiting.pop_front()
        {
            self.running.spawn_blocking(move || {
                let updated = match &wanted {
                    Wanted::Views(design) => database.update_view_group(design),
                    Wanted::Folder(name) => database.update_folder(name),
                };
                match updated {
                    // A design document, a folder, or its database, may have gone meanwhile.
                    Ok(()) | Err(DatabaseError::NotFound { .. }) => Ok(()),
                    Err(error) => Err(error),
                }
            });
        }
    }
}

fn collect_all(databases: &Databases, tasks: &Tasks) -> Result<(), DatabaseError> {
    if databases.purge_dropped()? > 0 {
        tracing::debug!("cleared away what dropped databases held");
    }
    let mut task = None;
    loop {
        let collected = databases.collect_contents()?;
        // Contents that are held just now are looked at again the next time.
        if collected.removed == 0 {
            if let Some(task) = task {
                scrinium_statistics::Task::finish(task);
            }
            return Ok(());
        }
        let task = task.get_or_insert_with(|| tasks.start("collect_contents", None, None));
        task.advance(collected.removed);
    }
}

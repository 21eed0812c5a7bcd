//! What a server does by itself: views and folders that were asked to be brought up to date, contents that
//! nobody refers to, what dropped databases and folders have left.

use std::time::Duration;

use scrinium_database::{DatabaseError, Databases};
use scrinium_statistics::{Task, Tasks};

use crate::shutdown::Shutdown;

/// How soon views and folders follow that a reader wanted up to date soon.
const UPDATE_EVERY: Duration = Duration::from_millis(500);

/// How often contents are collected and dropped databases cleared away.
const COLLECT_EVERY: Duration = Duration::from_secs(30);

/// Runs until the server stops.
pub(crate) async fn run(databases: Databases, tasks: Tasks, shutdown: Shutdown) {
    let mut update = tokio::time::interval(UPDATE_EVERY);
    let mut collect = tokio::time::interval(COLLECT_EVERY);
    loop {
        let (databases, tasks) = (databases.clone(), tasks.clone());
        let done = tokio::select! {
            () = shutdown.wait() => return,
            _ = update.tick() => tokio::task::spawn_blocking(move || update_views(&databases, &tasks)).await,
            _ = collect.tick() => tokio::task::spawn_blocking(move || collect_all(&databases, &tasks)).await,
        };
        match done {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "upkeep was not finished; it is tried again"),
            Err(error) => tracing::error!(%error, "upkeep failed"),
        }
    }
}

fn update_views(databases: &Databases, tasks: &Tasks) -> Result<(), DatabaseError> {
    for database in databases.in_use() {
        for design in database.take_wanted_views() {
            let task = tasks.start("indexer", Some(database.name()), None);
            task.detail("design_document", format!("_design/{design}"));
            end(task, database.update_view_group(&design))?;
        }
        for folder in database.take_wanted_folders() {
            let task = tasks.start("indexer", Some(database.name()), None);
            task.detail("folder", folder.as_str());
            end(task, database.update_folder(&folder))?;
        }
    }
    Ok(())
}

fn end(task: Task, updated: Result<(), DatabaseError>) -> Result<(), DatabaseError> {
    match updated {
        // A design document, a folder, or its database, may have gone meanwhile.
        Ok(()) | Err(DatabaseError::NotFound { .. }) => {
            task.finish();
            Ok(())
        }
        Err(error) => {
            task.fail(error.to_string());
            Err(error)
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
                Task::finish(task);
            }
            return Ok(());
        }
        let task = task.get_or_insert_with(|| tasks.start("collect_contents", None, None));
        task.advance(collected.removed);
    }
}

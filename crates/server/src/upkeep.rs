//! What a server does by itself: views and folders that are brought up to date, indexes that nobody reads, contents
//! that nobody refers to, what dropped databases and folders have left.

pub(crate) mod mail;
mod views;

use std::sync::Arc;
use std::time::Duration;

use scrinium_catalog::Databases;
use scrinium_database::DatabaseError;
use scrinium_http::HttpState;
use scrinium_maintenance::Compactor;
use scrinium_statistics::{Counter, Tasks};
use scrinium_store::Reservation;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use crate::Shutdown;
use crate::compaction::{Daily, Due};
use crate::ground::Ground;
use views::ViewUpdates;

/// How soon views and folders follow that a reader wanted up to date soon, or whose policy says so; what changes within
/// this time is taken together.
const UPDATE_EVERY: Duration = Duration::from_millis(500);

/// How often indexes are looked for that nobody reads.
const DISCARD_EVERY: Duration = Duration::from_secs(3600);

/// How often it is looked whether databases are to be compacted.
const COMPACT_LOOK_EVERY: Duration = Duration::from_secs(60);

/// How often garbage is added up for the statistics.
const GARBAGE_EVERY: Duration = Duration::from_secs(3600);

/// How often deleted messages are ended where a database keeps too many.
const LOOK_AT_MAIL_EVERY: Duration = Duration::from_secs(10);

/// The bodies of requests, and the memory that they take from the databases' budget.
pub(crate) struct Bodies {
    pub(crate) state: HttpState,
    pub(crate) memory: Reservation,
}

/// Runs until the server stops.
pub(crate) async fn run(databases: Databases, bodies: Bodies, ground: Arc<Ground>) {
    let shutdown = ground.shutdown().clone();
    let discarded = ground.statistics().counter("View.Discarded");
    let mut update = tokio::time::interval(UPDATE_EVERY);
    let mut collect = tokio::time::interval(ground.settings().attachment.collect_every);
    // Not at once: after a long time at rest everything has long been unread.
    let mut look_for_unused = tokio::time::interval_at(Instant::now() + DISCARD_EVERY, DISCARD_EVERY);
    let mut updates = ViewUpdates::new(databases.clock());
    let mut look_whether_to_compact = tokio::time::interval(COMPACT_LOOK_EVERY);
    let mut add_up_garbage = tokio::time::interval_at(Instant::now() + COMPACT_LOOK_EVERY, GARBAGE_EVERY);
    let mut daily = Daily::default();
    let mut removing: Option<JoinHandle<()>> = None;
    let mut look_at_mail = tokio::time::interval(LOOK_AT_MAIL_EVERY);
    let mut mail = mail::MailUpkeep::default();
    loop {
        let (databases, tasks) = (databases.clone(), ground.tasks().clone());
        tokio::select! {
            () = shutdown.wait() => return,
            _ = update.tick() => {
                bodies.memory.set(bodies.state.body_bytes());
                if databases.has_announced() {
                    let (databases, room) = (databases.clone(), updates.room());
                    let announced = tokio::task::spawn_blocking(move || databases.take_announced(room)).await;
                    updates.take_up(announced.unwrap_or_default());
                }
                updates.begin();
                if databases.holds_too_many_trees() {
                    release(databases).await;
                }
            }
            Some(ended) = updates.ended() => {
                report(ended);
                updates.begin();
            }
            _ = collect.tick() => {
                if removing.as_ref().is_none_or(JoinHandle::is_finished) {
                    removing = Some(remove_objects(databases.clone(), shutdown.clone()));
                }
                report(tokio::task::spawn_blocking(move || collect_all(&databases, &tasks)).await);
            }
            _ = look_at_mail.tick() => mail.begin(&databases, &ground),
            _ = look_whether_to_compact.tick() => {
                if let Some(due) = daily.due(&ground.settings(), databases.clock().timestamp()) {
                    compact(databases, due);
                }
            }
            _ = add_up_garbage.tick() => {
                report(tokio::task::spawn_blocking(move || {
                    Compactor::of(&databases).with_garbage(100)?;
                    databases.count_objects()
                }).await);
            }
            _ = look_for_unused.tick() => {
                let unused_for = ground.settings().view.discard_after;
                if !unused_for.is_zero() {
                    discard(databases, unused_for, discarded.clone()).await;
                }
            }
        }
    }
}

/// Removes objects that no document needs, at the same time as everything else, which waits for no other store.
fn remove_objects(databases: Databases, shutdown: Shutdown) -> JoinHandle<()> {
    tokio::spawn(async move {
        let removed = tokio::task::spawn_blocking(move || {
            while databases.remove_objects(&|| !shutdown.is_requested())?.removed > 0 {}
            Ok(())
        });
        report(removed.await);
    })
}

/// Compacts at the same time as everything else; the server ends it by stopping its tasks.
fn compact(databases: Databases, due: Due) {
    tokio::spawn(async move {
        report(tokio::task::spawn_blocking(move || due.work(&databases)).await);
    });
}

pub(super) fn report(done: Result<Result<(), DatabaseError>, JoinError>) {
    match done {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "upkeep was not finished; it is tried again"),
        // The process ends: it was never begun.
        Err(error) if error.is_cancelled() => {}
        Err(error) => tracing::error!(%error, "upkeep failed"),
    }
}

/// Closes databases that nobody uses, so that the trees of their indexes give back memory.
async fn release(databases: Databases) {
    let done = tokio::task::spawn_blocking(move || Ok(databases.release_view_trees())).await;
    report(done.map(|done| done.map(|count| tracing::debug!(count, "closed databases that nobody uses"))));
}

/// Discards the indexes of views that nobody reads.
async fn discard(databases: Databases, unused_for: Duration, discarded: Counter) {
    let done = tokio::task::spawn_blocking(move || databases.discard_unused_views(unused_for)).await;
    report(done.map(|done| done.map(|count| discarded.add(count as u64))));
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

//! Backups and restores as tasks of a running server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scrinium_backup::{Created, Progress};
use scrinium_catalog::Databases;
use scrinium_statistics::{Counter, Registry, Task, Tasks};
use scrinium_store::Store;
use serde_json::json;

use super::protection::identities_of;
use super::show::{created_json, restored_json};
use super::targets::{archive, target};
use super::{BackupOrder, RestoreOrder, back_up, protection, restore_database, source};
use crate::config::RunningConfiguration;

/// Shows progress in the table of tasks.
pub(crate) struct TaskProgress<'a>(pub(crate) &'a Task);

impl Progress for TaskProgress<'_> {
    fn total(&self, bytes: u64) {
        self.0.set_total(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.0.advance(bytes);
    }

    fn step(&self, what: &str) {
        self.0.detail("step", what);
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// `Backup.Made`, `Backup.Failed` (cancelled ones included), `Backup.Bytes` (copied) and `Backup.LastTime` (when the
/// last one was there, in seconds since 1970), all since the start.
#[derive(Clone)]
pub(crate) struct BackupFigures {
    made: Counter,
    failed: Counter,
    bytes: Counter,
    last: Arc<AtomicU64>,
}

impl BackupFigures {
    #[allow(clippy::cast_precision_loss, reason = "a statistic needs no more than 53 bits")]
    pub(crate) fn register(statistics: &Registry) -> Self {
        let last = Arc::new(AtomicU64::new(0));
        let read = Arc::clone(&last);
        statistics.gauge("Backup.LastTime", move || read.load(Ordering::Relaxed) as f64);
        Self {
            made: statistics.counter("Backup.Made"),
            failed: statistics.counter("Backup.Failed"),
            bytes: statistics.counter("Backup.Bytes"),
            last,
        }
    }

    fn note(&self, created: &Result<Created, String>, now_s: u64) {
        let Ok(created) = created else {
            self.failed.add(1);
            return;
        };
        self.made.add(1);
        self.bytes.add(created.manifest.new_bytes);
        self.last.store(now_s, Ordering::Relaxed);
    }
}

/// Begins a backup; returns the task's number.
pub(crate) fn back_up_as_task(
    tasks: &Tasks,
    databases: Databases,
    configuration: &RunningConfiguration,
    (server, figures): (&str, BackupFigures),
    order: &BackupOrder,
) -> Result<u64, String> {
    let settings = configuration.settings();
    let bytes_per_second = order.bytes_per_second;
    let source = source(&settings, server, configuration.configuration().file(), &databases);
    let place = target(&settings, order.repository.as_deref())?;
    let repository = place.display().to_string();
    run("backup", tasks, &repository, move |task| {
        let protection = protection(&settings);
        let created = protection.and_then(|protection| {
            let order = (place.as_path(), bytes_per_second);
            back_up(&databases, &source, order, protection.as_ref(), &TaskProgress(task))
        });
        figures.note(&created, databases.clock().now_s());
        let created = created?;
        tracing::info!(
            backup = created.manifest.id,
            bytes = created.manifest.bytes,
            new_bytes = created.manifest.new_bytes,
            sequence = created.manifest.sequence,
            "a backup was made"
        );
        Ok(created_json(&created))
    })
}

/// Begins to restore one database; returns the task's number.
pub(crate) fn restore_as_task(
    tasks: &Tasks,
    (store, databases): (Store, Databases),
    configuration: &RunningConfiguration,
    order: RestoreOrder,
) -> Result<u64, String> {
    let settings = configuration.settings();
    target(&settings, Some(&order.repository))?;
    order.archive_dir.as_deref().map_or(Ok(()), |dir| archive(&settings, dir).map(drop))?;
    let repository = order.repository.display().to_string();
    run("restore", tasks, &repository, move |task| {
        let restored = restore_database(
            &settings,
            (&store, &databases),
            &order,
            identities_of(&settings)?,
            &TaskProgress(task),
        )?;
        tracing::info!(database = order.name, backup = restored.manifest.id, "a database was restored");
        Ok(restored_json(&restored))
    })
}

/// Runs `work` on a separate thread. What it answers is shown as the task's `result`.
fn run(
    kind: &'static str,
    tasks: &Tasks,
    repository: &str,
    work: impl FnOnce(&Task) -> Result<serde_json::Value, String> + Send + 'static,
) -> Result<u64, String> {
    let task = tasks.start(kind, None, None);
    task.detail("repository", repository);
    let id = task.id();
    let begun = std::thread::Builder::new().name(kind.to_owned()).spawn(move || match work(&task) {
        Ok(result) => {
            task.detail("result", result);
            task.finish();
        }
        // Its handle tells that it was cancelled.
        Err(_) if task.is_cancelled() => tracing::info!("a {kind} was cancelled; nothing was made"),
        Err(reason) => {
            tracing::error!(reason, "a {kind} failed");
            task.detail("result", json!({"ok": false}));
            task.fail(reason);
        }
    });
    begun.map(|_| id).map_err(|error| format!("cannot start a thread for it: {error}"))
}

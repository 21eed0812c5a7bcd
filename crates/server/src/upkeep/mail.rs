//! What goes of mail by itself, in the background: deleted messages, soon where a database keeps too much of them and every hour those
//! that are too old; and messages that their folders keep no longer.

use scrinium_catalog::{Databases, NameRange, is_mail_file};
use scrinium_database::DatabaseError;
use scrinium_mail::{RetentionDays, delete_outdated};
use scrinium_statistics::Tasks;
use tokio::task::JoinHandle;

use super::report;
use crate::config::Settings;
use crate::ground::Ground;

/// The task, by its kind.
const KIND: &str = "end_deleted";

/// The task that deletes what folders keep no longer.
pub(crate) const RETENTION_KIND: &str = "mail_retention";

/// How many times as seldom as databases that keep too much those are looked at whose deleted messages may be too old.
const OLD_TIMES: u32 = 360;

/// And how many times as seldom all folders of mail files are looked at; the first time when a server has run for an hour.
const RETENTION_TIMES: u32 = 2_160;

/// When deleted messages are ended, and old ones deleted.
#[derive(Default)]
pub(super) struct MailUpkeep {
    running: Option<JoinHandle<()>>,
    times: u32,
}

impl MailUpkeep {
    /// Begins, unless the last time has not ended; to be called every few seconds.
    pub(super) fn begin(&mut self, databases: &Databases, ground: &Ground) {
        if self.running.as_ref().is_some_and(|running| !running.is_finished()) {
            return;
        }
        let all = self.times.is_multiple_of(OLD_TIMES);
        let applies = self.times % RETENTION_TIMES == OLD_TIMES;
        self.times = self.times.wrapping_add(1);
        let (databases, tasks, shutdown) =
            (databases.clone(), ground.tasks().clone(), ground.shutdown().clone());
        let days = retention_days(&ground.settings());
        self.running = Some(tokio::spawn(async move {
            let work = move || {
                let stop = || shutdown.is_requested();
                end_deleted(&databases, &tasks, all, &stop)?;
                if applies {
                    apply_retention(&databases, &tasks, (days, None), &stop)?;
                }
                Ok(())
            };
            report(tokio::task::spawn_blocking(work).await);
        }));
    }
}

/// Ends deleted messages of all databases that keep too much; with `all`, those that are too old as well.
fn end_deleted(
    databases: &Databases,
    tasks: &Tasks,
    all: bool,
    stop: &dyn Fn() -> bool,
) -> Result<(), DatabaseError> {
    let mut names = databases.take_too_much_deleted();
    if all {
        names.extend(databases.that_keep_deleted()?);
    }
    let mut task = None;
    for name in names {
        let database = match databases.get(&name) {
            Ok(database) => database,
            // It is gone, or on a volume that is.
            Err(DatabaseError::NotFound { .. } | DatabaseError::Unavailable { .. }) => continue,
            Err(error) => return Err(error),
        };
        loop {
            let gone = database.let_deleted_go()?;
            if gone.messages > 0 {
                let task = task.get_or_insert_with(|| tasks.start(KIND, None, None));
                task.advance(gone.messages);
                if task.is_cancelled() {
                    return Ok(());
                }
            }
            if !gone.is_more || stop() {
                break;
            }
        }
        if stop() {
            return Ok(());
        }
    }
    if let Some(task) = task {
        scrinium_statistics::Task::finish(task);
    }
    Ok(())
}

/// Deletes what folders of mail files keep no longer, of one mail file or of all, as a task.
///
/// # Errors
/// What the databases report.
pub(crate) fn apply_retention(
    databases: &Databases,
    tasks: &Tasks,
    (days, named): (RetentionDays, Option<&str>),
    stop: &dyn Fn() -> bool,
) -> Result<u64, DatabaseError> {
    let names = match named {
        Some(name) => vec![name.to_owned()],
        None => databases.names(&NameRange::default())?,
    };
    let names: Vec<String> = names.into_iter().filter(|name| is_mail_file(name)).collect();
    let task = tasks.start(RETENTION_KIND, named, Some(names.len() as u64));
    let mut deleted = 0;
    for name in names {
        let database = match databases.get(&name) {
            Ok(database) => database,
            Err(DatabaseError::NotFound { .. } | DatabaseError::Unavailable { .. }) => continue,
            Err(error) => return Err(error),
        };
        let goes_on = |_| !stop() && !task.is_cancelled();
        match delete_outdated(&database, &days, &goes_on) {
            Ok(gone) => deleted += gone,
            Err(DatabaseError::NotFound { .. }) => {}
            // One that is damaged keeps nobody from the others.
            Err(error) => tracing::warn!(database = name, %error, "old messages were not deleted"),
        }
        if stop() || task.is_cancelled() {
            return Ok(deleted);
        }
        task.advance(1);
        task.detail("deleted", deleted);
    }
    task.finish();
    Ok(deleted)
}

/// What the settings say of folders that say nothing.
pub(crate) fn retention_days(settings: &Settings) -> RetentionDays {
    let days = |days: usize| u32::try_from(days).unwrap_or(u32::MAX);
    RetentionDays { trash: days(settings.mail.trash_days), junk: days(settings.mail.junk_days) }
}

//! Backups and restores, as the command line and the console order them.
//!
//! Where no server runs on the data folder, a command does the work itself; else it asks the server, which does it as
//! a task, and shows how far it is.

pub(crate) mod command;
mod online;
mod order;
mod restore_database;
mod show;
mod task;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use scrinium_backup::{Created, ObjectLister, Progress, Repository, Source, create};
use scrinium_database::Databases;
use scrinium_objects::Needed;
use scrinium_store::Store;

use crate::config::Settings;

pub use order::{BackupOrder, RestoreOrder};
pub(crate) use restore_database::restore_database;
pub(crate) use task::{BackupFigures, back_up_as_task, restore_as_task};

/// What a backup of the server with these settings is made of.
pub(crate) fn source(
    settings: &Settings,
    server: &str,
    configuration: Option<&Path>,
    databases: &Databases,
) -> Source {
    let databases = databases.clone();
    Source {
        server: server.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        data_dir: settings.server.data_dir.clone(),
        leave_out: vec![
            settings.in_data_dir(&settings.log.dir),
            settings.in_data_dir(&settings.view.rebuild_dir),
            settings.in_data_dir(&settings.attachment.cache_dir),
        ],
        configuration: configuration.map(Path::to_owned),
        archive_dir: archive_dir(settings),
        objects: Some(ObjectLister::new(move |taken, give| list_objects(&databases, taken, give))),
    }
}

/// Gives the objects that documents referred to at a time.
fn list_objects(
    databases: &Databases,
    taken: SystemTime,
    give: &mut dyn FnMut(&Needed) -> Result<(), String>,
) -> Result<(), String> {
    let taken = taken.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let taken_ms = u64::try_from(taken.as_millis()).unwrap_or(u64::MAX);
    let mut given = Ok(());
    let listed = databases.each_object(|object| {
        let was_needed = object.removed_ms == 0 || object.removed_ms >= taken_ms;
        if was_needed && object.created_ms <= taken_ms {
            given = give(&object.needed);
        }
        Ok(given.is_ok())
    });
    listed.map_err(|error| error.to_string())?;
    given
}

/// Where the log is archived, if it is.
pub(crate) fn archive_dir(settings: &Settings) -> Option<PathBuf> {
    (settings.log.style == "archive").then(|| settings.in_data_dir(&settings.log.archive_dir))
}

/// Makes a backup as ordered.
pub(crate) fn back_up(
    store: &Store,
    source: &Source,
    order: &BackupOrder,
    progress: &dyn Progress,
) -> Result<Created, String> {
    let repository = Repository::create(&order.repository).map_err(|error| error.to_string())?;
    create(&repository, store, source, order.bytes_per_second, progress).map_err(|error| error.to_string())
}

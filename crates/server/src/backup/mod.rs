//! Backups and restores, as the command line and the console order them.
//!
//! Where no server runs on the data folder, a command does the work itself; else it asks the server, which does it as
//! a task, and shows how far it is.

pub(crate) mod command;
mod online;
mod order;
mod protection;
mod restore_database;
mod show;
mod targets;
mod task;

use std::path::{Path, PathBuf};

use scrinium_backup::{
    Created, Moment, ObjectLister, Progress, Protection, Repository, Source, Stores, create,
};
use scrinium_catalog::{Databases, FIRST_VOLUME};
use scrinium_objects::Needed;

use crate::config::Settings;
use crate::volumes::all_options;

pub use order::{BackupOrder, RestoreOrder};
pub(crate) use protection::protection;
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
        leave_out: left_out(settings),
        configuration: configuration.map(Path::to_owned),
        archive_dir: archive_dir(settings),
        objects: Some(ObjectLister::new(move |moment, give| list_objects(&databases, moment, give))),
    }
}

/// Gives the objects that documents of a volume referred to at a time.
fn list_objects(
    databases: &Databases,
    Moment { volume, taken }: Moment<'_>,
    give: &mut dyn FnMut(&Needed) -> Result<(), String>,
) -> Result<(), String> {
    let taken_ms = scrinium_clock::unix_ms(taken);
    let mut given = Ok(());
    let listed = databases.each_object(volume.unwrap_or(FIRST_VOLUME), |object| {
        let was_needed = object.removed_ms == 0 || object.removed_ms >= taken_ms;
        if was_needed && object.created_ms <= taken_ms {
            given = give(&object.needed);
        }
        Ok(given.is_ok())
    });
    listed.map_err(|error| error.to_string())?;
    given
}

/// Logs, what is made again, and the volumes, which are backed up as stores.
fn left_out(settings: &Settings) -> Vec<PathBuf> {
    let mut left_out = vec![
        settings.in_data_dir(&settings.log.dir),
        settings.in_data_dir(&settings.view.rebuild_dir),
        settings.in_data_dir(&settings.attachment.cache_dir),
    ];
    for (_, options) in all_options(settings) {
        left_out.push(options.dir);
        left_out.extend(options.log_dir);
    }
    left_out
}

/// Where the log is archived, if it is.
pub(crate) fn archive_dir(settings: &Settings) -> Option<PathBuf> {
    (settings.log.style == "archive").then(|| settings.in_data_dir(&settings.log.archive_dir))
}

/// Makes a backup as ordered. Volumes that are not there are told, and noted in it.
pub(crate) fn back_up(
    databases: &Databases,
    source: &Source,
    (repository, bytes_per_second): (&Path, Option<u64>),
    protection: Option<&Protection>,
    progress: &dyn Progress,
) -> Result<Created, String> {
    let repository = Repository::create(repository, protection).map_err(|error| error.to_string())?;
    let volumes = databases.volumes().map_err(|error| error.to_string())?;
    let missing: Vec<String> =
        volumes.into_iter().filter(|volume| volume.missing.is_some()).map(|volume| volume.name).collect();
    if !missing.is_empty() {
        tracing::warn!(?missing, "the backup is without the databases of volumes that are not there");
    }
    let mut open = databases.stores().into_iter();
    let (_, first) = open.next().ok_or("the databases are closed")?;
    let stores = Stores {
        first: &first,
        volumes: open.collect(),
        missing,
        while_still: &|work| {
            let _still = databases.still_catalog();
            work();
        },
        limits: databases.io_limits().clone(),
    };
    let created = create(&repository, &stores, source, bytes_per_second, progress);
    created.map_err(|error| error.to_string())
}

//! The volumes as the configuration wants them: how they are opened, where new databases go, and moves between them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use scrinium_catalog::{Databases, FIRST_VOLUME, Placement, is_mailbox};
use scrinium_database::DatabaseError;
use scrinium_directory::DIRECTORY_DATABASE;
use scrinium_statistics::Registry;
use scrinium_store::{StoreError, StoreOptions};

use crate::cli::Failure;
use crate::config::{Settings, VolumeSettings};
use crate::storage::{StorageError, budget_bytes, common_options, open_patiently};

/// How the configuration wants a volume's store to be opened.
pub(crate) fn volume_options(settings: &Settings, volume: &VolumeSettings) -> StoreOptions {
    let dir = settings.in_data_dir(Path::new(&volume.dir));
    let mut options = common_options(settings, &dir);
    options.log_dir = (!volume.log_dir.is_empty()).then(|| settings.in_data_dir(Path::new(&volume.log_dir)));
    options.budget_bytes = Some(volume.budget_bytes(budget_bytes(settings)));
    options.read_ahead_bytes = volume.read_ahead_bytes(settings.io.read_ahead);
    options.direct_reads = volume.file_cache == "direct";
    options
}

/// Attaches all volumes. One that cannot be opened is logged, and its databases are refused; all others are served.
pub(crate) fn attach_volumes(
    databases: &Databases,
    settings: &Settings,
    statistics: &Registry,
    open_files: Option<u32>,
) -> Result<(), StorageError> {
    let unusable = |error: DatabaseError| StorageError::Unusable(error.to_string());
    for (name, volume) in &settings.volumes {
        let options = {
            let clock = databases.clock().clone();
            StoreOptions { open_files, clock, ..volume_options(settings, volume) }
        };
        let known = databases.known_volume(name).map_err(unusable)?;
        let store = if known.is_some() && !options.dir.join("store.format").exists() {
            let dir = options.dir.display();
            Err(format!(
                "there is no store in {dir} any more; bring its device back, or restore it from a backup"
            ))
        } else {
            match open_patiently(&options, &statistics.within(&format!("Volume.{name}."))) {
                Err(error @ StoreError::Locked { .. }) => return Err(StorageError::InUse(error.to_string())),
                opened => opened.map_err(|error| error.to_string()),
            }
        };
        databases.attach(name, store).map_err(unusable)?;
    }
    Ok(())
}

/// Where new databases go, as the configuration says; the server's own stay in the first store.
#[derive(Default)]
pub(crate) struct Placed {
    volumes: RwLock<BTreeMap<String, VolumeSettings>>,
}

impl Placed {
    pub(crate) fn set(&self, settings: &Settings) {
        self.volumes.write().clone_from(&settings.volumes);
    }
}

impl Placement for Placed {
    fn volume_of_new(&self, name: &str) -> Option<String> {
        let volumes = self.volumes.read();
        let fitting = volumes.iter().filter_map(|(volume, settings)| Some((settings.takes(name)?, volume)));
        fitting.max().map(|(_, volume)| volume.clone())
    }

    /// A memo leaves its mailbox once it is delivered, so that a backup must not have the mailbox at a later moment than the
    /// mail file: mailboxes are where a backup begins.
    fn stays_first(&self, name: &str) -> bool {
        name == DIRECTORY_DATABASE || is_mailbox(name)
    }
}

/// Begins to move a database, in the background.
///
/// # Errors
/// Why not, in words.
pub(crate) fn begin_move(databases: &Databases, database: &str, volume: &str) -> Result<(), String> {
    databases.check_relocate(database, volume).map_err(|error| error.to_string())?;
    let (databases, database, volume) = (databases.clone(), database.to_owned(), volume.to_owned());
    let begun = std::thread::Builder::new().name("move".to_owned()).spawn(move || {
        if let Err(error) = databases.relocate(&database, &volume) {
            tracing::warn!(database, volume, %error, "a database was not moved");
        }
    });
    begun.map(drop).map_err(|error| format!("cannot start a thread for it: {error}"))
}

/// The options of the first store and of each volume, by name.
pub(crate) fn all_options(settings: &Settings) -> Vec<(String, StoreOptions)> {
    let volumes = settings.volumes.iter();
    let volumes = volumes.map(|(name, volume)| (name.clone(), volume_options(settings, volume)));
    std::iter::once((FIRST_VOLUME.to_owned(), crate::storage::store_options(settings)))
        .chain(volumes)
        .collect()
}

/// The options of a volume's store, or of the first one.
///
/// # Errors
/// There is no such volume.
pub(crate) fn options_of(settings: &Settings, volume: Option<&str>) -> Result<StoreOptions, Failure> {
    let wanted = volume.unwrap_or(FIRST_VOLUME);
    let mut all = all_options(settings).into_iter();
    let found = all.find(|(name, _)| name == wanted).map(|(_, options)| options);
    found.ok_or_else(|| Failure::Use(format!("the configuration names no volume {wanted}")))
}

/// Sets what changes while the server runs: memory, read-ahead, placement.
pub(crate) fn set_running(databases: &Databases, placed: &Arc<Placed>, settings: &Settings) {
    placed.set(settings);
    let all_bytes = budget_bytes(settings);
    for (name, store) in databases.stores() {
        let (bytes, read_ahead) = match settings.volumes.get(&name) {
            Some(volume) => (volume.budget_bytes(all_bytes), volume.read_ahead_bytes(settings.io.read_ahead)),
            None => (first_budget_bytes(settings), settings.io.read_ahead),
        };
        store.admin().set_read_ahead(read_ahead);
        if store.admin().budget() != bytes {
            store.admin().set_budget(bytes);
        }
    }
}

/// What the volumes leave of the memory budget.
pub(crate) fn first_budget_bytes(settings: &Settings) -> u64 {
    let all_bytes = budget_bytes(settings);
    let taken = settings.volumes.values().map(|volume| volume.budget_bytes(all_bytes)).sum();
    all_bytes.saturating_sub(taken)
}

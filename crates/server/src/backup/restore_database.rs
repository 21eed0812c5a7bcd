//! One database of a backup, next to the live one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scrinium_backup::{Identities, Order, Progress, Repository, Restored, restore};
use scrinium_catalog::Databases;
use scrinium_database::DatabaseOptions;
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};

use super::RestoreOrder;
use crate::config::Settings;

/// Memory for the store that the backup is opened as.
const BUDGET_BYTES: u64 = 64 << 20;

/// A folder that goes when this is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.0.display(), %error, "a temporary folder stays until the next start");
        }
    }
}

/// Restores the store of a backup into a folder that is emptied at the next start, if not before, opens it, and brings
/// in the database. The live databases go on meanwhile.
pub(crate) fn restore_database(
    settings: &Settings,
    (live, databases): (&Store, &Databases),
    order: &RestoreOrder,
    keys: Option<Arc<Identities>>,
    progress: &dyn Progress,
) -> Result<Restored, String> {
    if databases.get(&order.name).is_ok() {
        return Err(format!("there is a database {} already; give another name", order.name));
    }
    let repository = Repository::open(&order.repository).map_err(|error| error.to_string())?;
    let repository = repository.with_identities(keys);
    let scratch = Scratch(live.dir().join("backup").join(format!("restore-{:08x}", rand::random::<u32>())));
    let whole = Order {
        backup: order.backup.clone(),
        target: order.target,
        archive_dir: order.archive_dir.clone(),
        into: scratch.0.clone(),
        log_dir: PathBuf::from("log"),
        store_only: true,
        options: options(settings, &scratch.0),
        bytes_per_second: None,
    };
    let restored = restore(&repository, &whole, progress).map_err(|error| error.to_string())?;
    progress.step("bring in");
    let store =
        Store::open(options(settings, &scratch.0), &Registry::new()).map_err(|error| error.to_string())?;
    let others = Databases::open(&store, DatabaseOptions::default()).map_err(|error| error.to_string())?;
    for volume in &restored.manifest.volumes {
        let dir = scratch.0.join("volumes").join(&volume.name);
        let opened = Store::open(options_in(settings, &dir, dir.join("log")), &Registry::new());
        let opened = opened.map_err(|error| error.to_string());
        others.attach(&volume.name, opened).map_err(|error| error.to_string())?;
    }
    let adopted = databases.adopt(&others, &order.database, &order.name, &mut |_| !progress.is_cancelled());
    let adopted = adopted.map_err(|error| format!("{}: {error}", order.database));
    drop(others);
    // It is thrown away.
    drop(store);
    adopted.map(|_| restored)
}

fn options(settings: &Settings, into: &Path) -> StoreOptions {
    options_in(settings, &into.join("store"), into.join("log"))
}

fn options_in(settings: &Settings, dir: &Path, log_dir: PathBuf) -> StoreOptions {
    let mut options = StoreOptions::new(dir);
    options.log_dir = Some(log_dir);
    options.budget_bytes = Some(BUDGET_BYTES);
    options.log_extent_bytes = settings.log.extent_bytes;
    options.reserve_bytes = 0;
    options
}

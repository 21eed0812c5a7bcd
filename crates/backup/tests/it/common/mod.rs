//! What several tests of backups need.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use scrinium_backup::{
    BackupError, Created, Identity, Order, Protection, Quiet, Recipient, Repository, Restored, Source,
    Stores, Target, create, read_identities, restore,
};
use scrinium_fault::quick_folder;
use scrinium_statistics::Registry;
use scrinium_store::{Direction, Family, KeyRange, LogArchive, Store, StoreOptions};

pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// In memory where that is possible: what is asked here is not whether it is synced.
pub(crate) fn folder() -> tempfile::TempDir {
    quick_folder()
}

/// Options of a store in `data` within `dir`, which archives its small log in `archive`.
pub(crate) fn options(dir: &Path) -> StoreOptions {
    std::fs::create_dir_all(dir.join("archive")).unwrap();
    let mut options = StoreOptions::new(dir.join("data/store"));
    options.log_dir = Some(dir.join("data/log"));
    options.budget_bytes = Some(32 << 20);
    options.log_extent_bytes = 1 << 20;
    options.log_spare_extents = 1;
    options.reserve_bytes = 0;
    options.log_archive = Some(LogArchive { dir: dir.join("archive"), every: Duration::ZERO });
    options
}

pub(crate) fn open(dir: &Path) -> Store {
    Store::open(options(dir), &Registry::new()).unwrap()
}

pub(crate) fn source(dir: &Path) -> Source {
    Source {
        server: "test".to_owned(),
        version: "0".to_owned(),
        data_dir: dir.join("data"),
        leave_out: vec![dir.join("data/log")],
        configuration: None,
        archive_dir: Some(dir.join("archive")),
        objects: None,
    }
}

/// Encrypts all backups of this folder from now on.
pub(crate) fn encrypt(dir: &Path) {
    std::fs::write(dir.join("identity"), Identity::generate().unwrap().file_text()).unwrap();
}

fn public_key(identity: &Path) -> Recipient {
    let text = std::fs::read_to_string(identity).unwrap();
    text.lines().next().unwrap().trim_start_matches("# public key: ").parse().unwrap()
}

/// How backups of this folder are encrypted, if they are.
pub(crate) fn protection(dir: &Path) -> Option<Protection> {
    let identity = dir.join("identity");
    identity.exists().then(|| Protection { recipient: public_key(&identity), secret: [7; 32] })
}

/// The repository, for anyone who has the private key where there is one.
pub(crate) fn open_repository(dir: &Path) -> Result<Repository, BackupError> {
    let identity = dir.join("identity");
    let keys = identity.exists().then(|| read_identities(&identity).unwrap());
    Ok(Repository::open(&dir.join("repository"))?.with_identities(keys))
}

pub(crate) fn back_up(dir: &Path, store: &Store) -> Result<Created, BackupError> {
    let repository = Repository::create(&dir.join("repository"), protection(dir).as_ref())?;
    create(&repository, &Stores::one(store), &source(dir), None, &Quiet)
}

pub(crate) fn order(dir: &Path, into: &Path, target: Target) -> Order {
    let mut options = options(dir);
    options.log_archive = None;
    Order {
        backup: None,
        target,
        archive_dir: None,
        into: into.to_owned(),
        log_dir: "log".into(),
        store_only: false,
        options,
        bytes_per_second: None,
    }
}

pub(crate) fn restore_to(dir: &Path, into: &Path, target: Target) -> Result<Restored, BackupError> {
    restore(&open_repository(dir)?, &order(dir, into, target), &Quiet)
}

/// Opens what was restored, as a server would, and reads it.
pub(crate) fn read_restored(into: &Path) -> Model {
    let mut options = StoreOptions::new(into.join("store"));
    options.log_dir = Some(into.join("log"));
    options.budget_bytes = Some(32 << 20);
    options.reserve_bytes = 0;
    let store = Store::open(options, &Registry::new()).unwrap();
    let model = read(&store);
    store.close().unwrap();
    model
}

pub(crate) fn read(store: &Store) -> Model {
    let snapshot = store.snapshot();
    let mut cursor = snapshot.cursor(Family::Scan, KeyRange::ALL, Direction::Forward);
    let mut model = Model::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        model.insert(key.to_vec(), value.to_vec());
    }
    model
}

//! The repository: which backups there are, and its files by their prints.

use std::any::Any;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::local::Local;
use crate::manifest::MAX_BYTES;
use crate::place::Place;
use crate::remote::{Remote, is_remote};
use crate::{BackupError, FileEntry, Manifest};

const IDENTITY: &str = "repository.json";
const FORMAT: u64 = 1;

const BACKUPS: &str = "backups";
pub(crate) const FILES: &str = "files";

/// A backup's name, and what it consists of if that can be read.
pub type Listed = (String, Result<Manifest, BackupError>);

/// Backups in one place.
#[derive(Clone)]
pub struct Repository {
    pub(crate) place: Arc<dyn Place>,
}

impl Repository {
    /// Opens the repository in a folder, or at `s3://BUCKET/PREFIX`, or makes one where it is empty or missing.
    ///
    /// # Errors
    /// [`BackupError::NoRepository`] if something else lies there, and errors of the file system or the network.
    pub fn create(address: &Path) -> Result<Self, BackupError> {
        if is_remote(address) {
            return Self::create_at(Arc::new(Remote::open(address)?));
        }
        Self::create_at(Arc::new(Local::create(address)?))
    }

    /// Opens the repository in a folder, or at `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// [`BackupError::NoRepository`] if there is none, and errors of the file system or the network.
    pub fn open(address: &Path) -> Result<Self, BackupError> {
        if is_remote(address) {
            return Self::open_at(Arc::new(Remote::open(address)?));
        }
        Self::open_at(Arc::new(Local::open(address)?))
    }

    /// Whether an address is no folder's, so that it means the same wherever it is used.
    #[must_use]
    pub fn is_remote(address: &Path) -> bool {
        is_remote(address)
    }

    fn create_at(place: Arc<dyn Place>) -> Result<Self, BackupError> {
        if place.read(IDENTITY)?.is_none() {
            if !place.list("")?.is_empty() {
                return Err(BackupError::NoRepository { place: place.name() });
            }
            let identity = json!({"scrinium_repository": FORMAT});
            place.write(IDENTITY, format!("{identity}\n").as_bytes())?;
        }
        Self::open_at(place)
    }

    fn open_at(place: Arc<dyn Place>) -> Result<Self, BackupError> {
        let Some(identity) = place.read(IDENTITY)? else {
            return Err(BackupError::NoRepository { place: place.name() });
        };
        let what = || format!("{}/{IDENTITY}", place.name());
        let identity: Value = serde_json::from_slice(&identity)
            .map_err(|error| BackupError::damaged(what(), error.to_string()))?;
        match identity.get("scrinium_repository").and_then(Value::as_u64) {
            Some(found) if found > FORMAT => {
                Err(BackupError::NewerFormat { what: what(), found, supported: FORMAT })
            }
            Some(_) => Ok(Self { place }),
            None => Err(BackupError::damaged(what(), "it names no format")),
        }
    }

    /// Where it is, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        self.place.name()
    }

    /// Keeps those out who would change it.
    pub(crate) fn lock_to_read(&self) -> Result<Box<dyn Any + Send>, BackupError> {
        self.place.lock(false)
    }

    /// Keeps everybody out.
    pub(crate) fn lock_to_write(&self) -> Result<Box<dyn Any + Send>, BackupError> {
        self.place.lock(true)
    }

    /// All backups, oldest first, each as it could be read.
    ///
    /// # Errors
    /// If the repository cannot be read.
    pub fn backups(&self) -> Result<Vec<Listed>, BackupError> {
        let mut found = Vec::new();
        for (name, bytes) in self.place.list(BACKUPS)? {
            let Some(id) = id_of(&name) else { continue };
            let manifest = if bytes > MAX_BYTES {
                Err(BackupError::damaged(&name, "it is too long for what it is"))
            } else {
                self.read_manifest(&id)
            };
            found.push((id, manifest));
        }
        // Their names begin with the time.
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    }

    /// The backup of this name, or the newest.
    ///
    /// # Errors
    /// [`BackupError::NoBackup`], [`BackupError::Damaged`], or that the repository cannot be read.
    pub fn backup(&self, id: Option<&str>) -> Result<Manifest, BackupError> {
        let Some(id) = id else {
            let newest = self.backups()?.pop();
            return newest.ok_or_else(|| self.no_backup("yet"))?.1;
        };
        if id_of(&manifest_name(id)).is_none() {
            return Err(self.no_backup(id));
        }
        self.read_manifest(id)
    }

    fn read_manifest(&self, id: &str) -> Result<Manifest, BackupError> {
        let name = manifest_name(id);
        let bytes = self.place.read(&name)?.ok_or_else(|| self.no_backup(id))?;
        let manifest = Manifest::decode(&format!("{}/{name}", self.name()), &bytes)?;
        if manifest.id == id {
            Ok(manifest)
        } else {
            Err(BackupError::damaged(name, format!("it is that of the backup {}", manifest.id)))
        }
    }

    pub(crate) fn no_backup(&self, wanted: &str) -> BackupError {
        BackupError::NoBackup { place: self.name(), wanted: wanted.to_owned() }
    }

    /// Makes the backup one.
    pub(crate) fn add(&self, manifest: &Manifest) -> Result<(), BackupError> {
        self.place.write(&manifest_name(&manifest.id), &manifest.encode()?)
    }

    pub(crate) fn forget(&self, id: &str) -> Result<(), BackupError> {
        self.place.remove(&manifest_name(id))
    }

    /// Files that a backup vouches for, by print.
    pub(crate) fn known_files(&self) -> Result<HashMap<String, FileEntry>, BackupError> {
        let there: HashMap<String, u64> = self.place.list(FILES)?.into_iter().collect();
        let mut known = HashMap::new();
        for (id, manifest) in self.backups()? {
            let manifest = match manifest {
                Ok(manifest) => manifest,
                Err(error) => {
                    tracing::warn!(backup = id, %error, "a backup cannot be read; its files are not built on");
                    continue;
                }
            };
            for file in manifest.all_files() {
                if there.get(&file_name(&file.print)) == Some(&file.bytes) {
                    known.insert(file.print.clone(), file.clone());
                }
            }
        }
        Ok(known)
    }
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Repository").field(&self.name()).finish()
    }
}

fn manifest_name(id: &str) -> String {
    format!("{BACKUPS}/{id}.json")
}

/// The backup in a manifest's name; `None` if it is none.
fn id_of(name: &str) -> Option<String> {
    let id = name.strip_prefix(BACKUPS)?.strip_prefix('/')?.strip_suffix(".json")?;
    let plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain.then(|| id.to_owned())
}

/// Where the file of a print lies.
pub(crate) fn file_name(print: &str) -> String {
    format!("{FILES}/{}/{print}", print.get(..2).unwrap_or("00"))
}

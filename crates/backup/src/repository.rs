//! The repository: which backups there are, and its files by their prints.

use std::any::Any;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::age::Identities;
use crate::digests::Digests;
use crate::local::Local;
use crate::manifest::{MAX_BYTES, StoredEntry};
use crate::place::{BackupPlace, Pieces, Sink};
use crate::protection::{Nature, Protection, Writer};
use crate::remote::{Remote, is_remote};
use crate::sealed::{OpeningPieces, SealingSink, Stored, open, seal};
use crate::{BackupError, FileEntry, Manifest};

const IDENTITY: &str = "repository.json";

const BACKUPS: &str = "backups";
pub(crate) const FILES: &str = "files";

/// A backup's name, and what it consists of if that can be read.
pub type Listed = (String, Result<Manifest, BackupError>);

/// Backups in one place.
#[derive(Clone)]
pub struct Repository {
    pub(crate) place: Arc<dyn BackupPlace>,
    /// As its identity says, which is believed in nothing that matters.
    nature: Nature,
    /// How backups are written here; what is read says for itself.
    pub(crate) writer: Writer,
    /// What opens backups that are encrypted.
    pub(crate) keys: Option<Arc<Identities>>,
}

impl Repository {
    /// Opens the repository in a folder, or at `s3://BUCKET/PREFIX`, or makes one where it is empty or missing, for backups
    /// that are encrypted as `protection` says, or are not.
    ///
    /// # Errors
    /// [`BackupError::NoRepository`] if something else lies there, [`BackupError::OtherProtection`] if the backups there are
    /// encrypted otherwise, and errors of the file system or the network.
    pub fn create(address: &Path, protection: Option<&Protection>) -> Result<Self, BackupError> {
        let place: Arc<dyn BackupPlace> = if is_remote(address) {
            Arc::new(Remote::open(address)?)
        } else {
            Arc::new(Local::create(address)?)
        };
        if place.read(IDENTITY)?.is_none() {
            if !place.list("")?.is_empty() {
                return Err(BackupError::NoRepository { place: place.name() });
            }
            place.write(IDENTITY, Nature::new(protection)?.encode().as_bytes())?;
        }
        let opened = Self::open_at(place)?;
        let writer = opened.nature.writer(&opened.name(), protection)?;
        Ok(Self { writer, ..opened })
    }

    /// Opens the repository in a folder, or at `s3://BUCKET/PREFIX`, to read what is in it.
    ///
    /// # Errors
    /// [`BackupError::NoRepository`] if there is none, and errors of the file system or the network.
    pub fn open(address: &Path) -> Result<Self, BackupError> {
        if is_remote(address) {
            return Self::open_at(Arc::new(Remote::open(address)?));
        }
        Self::open_at(Arc::new(Local::open(address)?))
    }

    /// With private keys that open backups which are encrypted.
    #[must_use]
    pub fn with_identities(self, keys: Option<Arc<Identities>>) -> Self {
        Self { keys, ..self }
    }

    /// Whether an address is no folder's, so that it means the same wherever it is used.
    #[must_use]
    pub fn is_remote(address: &Path) -> bool {
        is_remote(address)
    }

    /// To whom its backups are encrypted, as it says of itself; `None`: they are not.
    #[must_use]
    pub fn recipient(&self) -> Option<&str> {
        self.nature.recipient.as_deref()
    }

    fn open_at(place: Arc<dyn BackupPlace>) -> Result<Self, BackupError> {
        let Some(identity) = place.read(IDENTITY)? else {
            return Err(BackupError::NoRepository { place: place.name() });
        };
        let nature = Nature::decode(&format!("{}/{IDENTITY}", place.name()), &identity)?;
        Ok(Self { place, nature, writer: Writer::default(), keys: None })
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
        let Writer { recipient: Some(recipient), key: Some(key), .. } = self.writer else {
            return self.place.write(&manifest_name(&manifest.id), &manifest.encode()?);
        };
        let name = sealed_name(&manifest.id);
        let sealed = seal(&manifest.encode_secret(key)?, &recipient);
        let sealed = sealed.map_err(|error| BackupError::cipher(&name, error))?;
        self.place.write(&name, &sealed)?;
        let entry =
            StoredEntry { bytes: sealed.len() as u64, blake3: blake3::hash(&sealed).to_hex().to_string() };
        self.place.write(&manifest_name(&manifest.id), &manifest.redacted(entry).encode()?)
    }

    pub(crate) fn forget(&self, id: &str) -> Result<(), BackupError> {
        self.place.remove(&manifest_name(id))
    }

    /// Removes what is encrypted of backups that are not there.
    pub(crate) fn forget_orphans(&self, kept: &[Manifest]) -> Result<(), BackupError> {
        for (name, _) in self.place.list(BACKUPS)? {
            let is_sealed = name.ends_with(SEALED);
            if is_sealed && !kept.iter().any(|manifest| sealed_name(&manifest.id) == name) {
                self.place.remove(&name)?;
            }
        }
        Ok(())
    }

    /// What is encrypted of a backup, as it lies there, if it is what was written.
    pub(crate) fn sealed_part(
        &self,
        manifest: &Manifest,
        entry: &StoredEntry,
    ) -> Result<Vec<u8>, BackupError> {
        let name = sealed_name(&manifest.id);
        if entry.bytes > MAX_BYTES {
            return Err(BackupError::damaged(name, "it is too long for what it is"));
        }
        let sealed = self.place.read(&name)?.ok_or_else(|| BackupError::damaged(&name, "it is missing"))?;
        let is_whole =
            sealed.len() as u64 == entry.bytes && blake3::hash(&sealed).to_hex().as_str() == entry.blake3;
        if is_whole {
            Ok(sealed)
        } else {
            Err(BackupError::damaged(name, "its content is not what was written"))
        }
    }

    /// All of a backup, and how its contents are digested. Where it is encrypted that takes a private key.
    ///
    /// # Errors
    /// [`BackupError::NeedsIdentity`], [`BackupError::Cipher`] if it is another key's, [`BackupError::Damaged`].
    pub(crate) fn whole(&self, manifest: &Manifest) -> Result<(Manifest, Digests), BackupError> {
        let Some(entry) = &manifest.sealed else { return Ok((manifest.clone(), Digests::Plain)) };
        let needs = || BackupError::NeedsIdentity { what: format!("the backup {}", manifest.id) };
        let keys = self.keys.as_ref().ok_or_else(needs)?;
        let name = sealed_name(&manifest.id);
        let secret = open(&self.sealed_part(manifest, entry)?, keys);
        let secret = secret.map_err(|error| BackupError::cipher(&name, error))?;
        let (whole, key) = Manifest::decode_secret(&name, &secret)?;
        if whole.redacted(entry.clone()) == *manifest {
            Ok((whole, Digests::Keyed(key)))
        } else {
            Err(BackupError::damaged(name, "it is not that of its backup"))
        }
    }

    /// A file of a backup, from beginning to end, decrypted where it is encrypted.
    pub(crate) fn open_file(&self, file: &FileEntry) -> Result<Box<dyn Pieces>, BackupError> {
        let name = file_name(&file.print);
        let pieces = self.place.open(&name)?;
        if file.stored.is_none() {
            return Ok(pieces);
        }
        let keys = self.keys.as_ref().ok_or_else(|| BackupError::NeedsIdentity { what: name.clone() })?;
        Ok(Box::new(OpeningPieces::new(pieces, &name, keys)))
    }

    /// Where the file of a print is written to, encrypted if backups here are; `stored` then tells what lies there.
    pub(crate) fn create_file(
        &self,
        print: &str,
        stored: &Stored,
    ) -> Result<Box<dyn Sink + '_>, BackupError> {
        let name = file_name(print);
        let sink = self.place.create(&name)?;
        match &self.writer.recipient {
            None => Ok(sink),
            Some(recipient) => Ok(Box::new(SealingSink::new(sink, &name, recipient, Stored::clone(stored))?)),
        }
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
                if there.get(&file_name(&file.print)) == Some(&file.stored_bytes()) {
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

/// The end of the name of what is encrypted of a backup.
const SEALED: &str = ".age";

pub(crate) fn sealed_name(id: &str) -> String {
    format!("{BACKUPS}/{id}{SEALED}")
}

/// The backup in a manifest's name; `None` if it names no backup.
fn id_of(name: &str) -> Option<String> {
    let id = name.strip_prefix(BACKUPS)?.strip_prefix('/')?.strip_suffix(".json")?;
    let plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain.then(|| id.to_owned())
}

/// Where the file of a print lies.
pub(crate) fn file_name(print: &str) -> String {
    format!("{FILES}/{}/{print}", print.get(..2).unwrap_or("00"))
}

//! What a backup consists of: one JSON file, written last.
//!
//! ```json
//! {"scrinium_backup": 1, "blake3": "<of the bytes of the value of backup>", "backup": {...}}
//! ```
//!
//! Of a backup that is encrypted this file (format 2) says only what is needed to make the next one, to look whether all
//! is there, and to let old ones go: times, records, sizes, prints, digests. The whole is in `backups/ID.age`, encrypted:
//!
//! ```json
//! {"key": "<of the digests, hexadecimal>", "backup": {...}}
//! ```

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::BackupError;
use crate::digests::DigestKey;

/// The format of a backup that anyone who has it can read.
const FORMAT_OPEN: u64 = 1;

/// That of one that is encrypted, and the newest that is read.
const FORMAT_SEALED: u64 = 2;

/// A longer one was not written by a server.
pub(crate) const MAX_BYTES: u64 = 1 << 30;

/// Nor was one with more bytes or objects: no sum of several is beyond 64 bits.
const MOST: u64 = 1 << 50;

/// A backup: what it is of, and its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Its name: when it was begun (UTC), and four digits.
    pub id: String,
    /// The server's name.
    pub server: String,
    /// The release that made it.
    pub version: String,
    /// When it was begun, when the state that it holds was reached, and when it was there (RFC 3339).
    pub started: String,
    /// All of it was written before this.
    pub taken: String,
    /// The same in milliseconds since 1970.
    pub taken_ms: u64,
    /// When all files were in the repository.
    pub finished: String,
    /// The store that it is of, 32 hexadecimal digits.
    pub store: String,
    /// The log that continues after it, 16 hexadecimal digits: its folder in the log's archive.
    pub log_key: String,
    /// The last record of the log whose effect it holds.
    pub sequence: u64,
    /// The volumes, further stores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<VolumeEntry>,
    /// Volumes that were not there when it was made: what lies on them is not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_volumes: Vec<String>,
    /// Where the log was archived.
    pub archive_dir: Option<String>,
    /// All its bytes, and those that were not in the repository before.
    pub bytes: u64,
    /// Bytes that were not in the repository before.
    pub new_bytes: u64,
    /// The configuration file.
    pub configuration: Option<FileEntry>,
    /// The attachments that lie in a store of objects, if there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectsEntry>,
    /// Everything else, by the place in the data folder.
    pub files: Vec<FileEntry>,
    /// Where it is encrypted, and this is what can be read of it: the rest of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<StoredEntry>,
}

/// Objects that a backup needs and does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectsEntry {
    /// How many.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The list of them.
    pub list: FileEntry,
}

/// A volume in a backup. Its files begin with `volumes/NAME/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeEntry {
    /// Its name.
    pub name: String,
    /// The store that it is, 32 hexadecimal digits.
    pub store: String,
    /// The log that continues after it, 16 hexadecimal digits.
    pub log_key: String,
    /// The last record of the log whose effect it holds.
    pub sequence: u64,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Where it belongs, beginning in the data folder. Empty where that is encrypted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Its permissions, as chmod takes them.
    #[serde(default)]
    pub mode: u32,
    /// Its print, which it is found by in the repository.
    pub print: String,
    /// Of its content; with the key of the repository where it is encrypted.
    pub blake3: String,
    /// As it lies in the repository, where it is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredEntry>,
}

/// An encrypted file as it lies in the repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredEntry {
    /// Its length.
    pub bytes: u64,
    /// Its plain digest.
    pub blake3: String,
}

impl FileEntry {
    /// Its length in the repository.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.stored.as_ref().map_or(self.bytes, |stored| stored.bytes)
    }

    /// What messages call it.
    pub(crate) fn called(&self) -> &str {
        if self.path.is_empty() { &self.print } else { &self.path }
    }

    /// Without what is nobody's business who cannot read it.
    fn redacted(&self) -> Self {
        Self { path: String::new(), mode: 0, ..self.clone() }
    }
}

/// What is encrypted of a backup.
#[derive(Serialize, Deserialize)]
struct Secret {
    key: String,
    backup: Manifest,
}

#[derive(Serialize)]
struct Written<'a> {
    scrinium_backup: u64,
    blake3: String,
    backup: &'a RawValue,
}

#[derive(Deserialize)]
struct Read<'a> {
    scrinium_backup: u64,
    #[serde(default)]
    blake3: String,
    #[serde(borrow, default)]
    backup: Option<&'a RawValue>,
}

impl Manifest {
    /// Its files, those of the configuration and the list of objects included.
    pub(crate) fn all_files(&self) -> impl Iterator<Item = &FileEntry> + Clone {
        self.files.iter().chain(&self.configuration).chain(self.objects.as_ref().map(|objects| &objects.list))
    }

    /// Whether the private key is needed to know what is in it.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.sealed.is_some()
    }

    /// All of it, for anyone who has the private key.
    pub(crate) fn encode_secret(&self, key: DigestKey) -> Result<Vec<u8>, BackupError> {
        let secret = Secret { key: key.to_hex(), backup: self.clone() };
        serde_json::to_vec(&secret).map_err(|error| BackupError::damaged(&self.id, error.to_string()))
    }

    /// Reads what [`Manifest::encode_secret`] wrote; `name` is for messages.
    pub(crate) fn decode_secret(name: &str, bytes: &[u8]) -> Result<(Self, DigestKey), BackupError> {
        let damaged = |problem: String| BackupError::damaged(name, problem);
        let Secret { key, backup } =
            serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        let key = DigestKey::from_hex(&key).ok_or_else(|| damaged("it has no key of digests".to_owned()))?;
        backup.check(name)?;
        Ok((backup, key))
    }

    /// What anybody may know of it who has the repository; `sealed` is the rest as it lies there.
    pub(crate) fn redacted(&self, sealed: StoredEntry) -> Self {
        let list = |objects: &ObjectsEntry| ObjectsEntry { list: objects.list.redacted(), ..objects.clone() };
        Self {
            archive_dir: None,
            configuration: None,
            objects: self.objects.as_ref().map(list),
            files: self.files.iter().chain(&self.configuration).map(FileEntry::redacted).collect(),
            sealed: Some(sealed),
            ..self.clone()
        }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, BackupError> {
        let failed = |error: serde_json::Error| BackupError::damaged(&self.id, error.to_string());
        let backup = serde_json::value::to_raw_value(self).map_err(failed)?;
        let blake3 = blake3::hash(backup.get().as_bytes()).to_hex().to_string();
        let scrinium_backup = if self.is_sealed() { FORMAT_SEALED } else { FORMAT_OPEN };
        serde_json::to_vec(&Written { scrinium_backup, blake3, backup: &backup }).map_err(failed)
    }

    /// Reads one; `name` is for messages.
    pub(crate) fn decode(name: &str, bytes: &[u8]) -> Result<Self, BackupError> {
        let damaged = |problem: String| BackupError::damaged(name, problem);
        let read: Read<'_> = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        if read.scrinium_backup > FORMAT_SEALED {
            let (what, found) = (name.to_owned(), read.scrinium_backup);
            return Err(BackupError::NewerFormat { what, found, supported: FORMAT_SEALED });
        }
        let text = read.backup.ok_or_else(|| damaged("it describes no backup".to_owned()))?.get();
        if blake3::hash(text.as_bytes()).to_hex().as_str() != read.blake3 {
            return Err(damaged("its checksum is not that of its content".to_owned()));
        }
        let manifest: Self = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        if manifest.is_sealed() != (read.scrinium_backup == FORMAT_SEALED) {
            return Err(damaged("it does not say clearly whether it is encrypted".to_owned()));
        }
        manifest.check(name)?;
        Ok(manifest)
    }

    /// Whether it says only what a server may have written, no matter who had the repository since: its prints and names of
    /// volumes become names of files, its lengths are added up.
    fn check(&self, name: &str) -> Result<(), BackupError> {
        let damaged = |problem: &str| Err(BackupError::damaged(name, problem));
        let is_digest = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !self.all_files().all(|file| is_digest(&file.print)) {
            return damaged("the fingerprint of a file is invalid");
        }
        if !self.volumes.iter().all(|volume| is_plain_name(&volume.name)) {
            return damaged("the name of a volume is invalid");
        }
        let lengths = self.all_files().flat_map(|file| [file.bytes, file.stored_bytes()]);
        let objects = self.objects.iter().flat_map(|objects| [objects.objects, objects.bytes]);
        let all = lengths.chain(objects).fold(0_u64, u64::saturating_add);
        if all > MOST {
            return damaged("it is of more than there can be");
        }
        Ok(())
    }
}

/// Whether a text can be the name of a folder within another one.
fn is_plain_name(text: &str) -> bool {
    let mut parts = Path::new(text).components();
    parts.next() == Some(Component::Normal(text.as_ref())) && parts.next().is_none()
}

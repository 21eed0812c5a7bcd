//! What a backup consists of: one JSON file, written last.
//!
//! ```json
//! {"scrinium_backup": 1, "blake3": "<of the bytes of the value of backup>", "backup": {...}}
//! ```

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::BackupError;

/// The format that is written, and the newest that is read.
const FORMAT: u64 = 1;

/// A longer one was not written by a server.
pub(crate) const MAX_BYTES: u64 = 1 << 30;

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
    /// The log that goes on after it, 16 hexadecimal digits: its folder in the log's archive.
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
    /// The log that goes on after it, 16 hexadecimal digits.
    pub log_key: String,
    /// The last record of the log whose effect it holds.
    pub sequence: u64,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Where it belongs, beginning in the data folder.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Its permissions, as chmod takes them.
    pub mode: u32,
    /// Its print, which it is found by in the repository.
    pub print: String,
    /// Of its content.
    pub blake3: String,
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

    pub(crate) fn encode(&self) -> Result<Vec<u8>, BackupError> {
        let failed = |error: serde_json::Error| BackupError::damaged(&self.id, error.to_string());
        let backup = serde_json::value::to_raw_value(self).map_err(failed)?;
        let blake3 = blake3::hash(backup.get().as_bytes()).to_hex().to_string();
        serde_json::to_vec(&Written { scrinium_backup: FORMAT, blake3, backup: &backup }).map_err(failed)
    }

    /// Reads one; `name` is for messages.
    pub(crate) fn decode(name: &str, bytes: &[u8]) -> Result<Self, BackupError> {
        let damaged = |problem: String| BackupError::damaged(name, problem);
        let read: Read<'_> = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        if read.scrinium_backup > FORMAT {
            let (what, found) = (name.to_owned(), read.scrinium_backup);
            return Err(BackupError::NewerFormat { what, found, supported: FORMAT });
        }
        let text = read.backup.ok_or_else(|| damaged("it describes no backup".to_owned()))?.get();
        if blake3::hash(text.as_bytes()).to_hex().as_str() != read.blake3 {
            return Err(damaged("its checksum is not that of its content".to_owned()));
        }
        serde_json::from_str(text).map_err(|error| damaged(error.to_string()))
    }
}

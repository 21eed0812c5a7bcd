//! The store's folder: its lock, its format, and the mark by which its log is known.
//!
//! ```text
//! store.lock     locked while a process has the store open; holds that process's number
//! store.format   "format 3" and "identity <32 hex digits>", one a line
//! tree/          RocksDB's files
//! ingest/        sorted files being written; emptied when the store is opened
//! backup/        checkpoints that a backup is made of; emptied when the store is opened
//! log/           the transaction log, unless another folder is named for it
//!   store.id     "identity ..." of the store that the log belongs to
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{StoreError, StoreOptions};

/// In the folder of a store that was restored with another one, until both have been opened together.
pub const RESTORED_VOLUME: &str = "volume.restored";

/// The layout of the folder and the meaning of what RocksDB holds. In format 1 what lies apart from a person's document was the hash of
/// a password; since format 2 it is a record, which a server of format 1 would take for a broken hash. Since format 3 the records of
/// folders have flags, sizes and dates of messages, which a server of format 2 would take for damage.
pub(crate) const FORMAT: u32 = 3;

/// What a store holds is for the server's own user alone.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Whether the log's folder is marked as this store's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogMark {
    /// It is.
    Right,
    /// It has no mark: new, or emptied.
    Missing,
}

/// The folders of an opened store. The lock is held until this is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) dir: PathBuf,
    pub(crate) tree: PathBuf,
    pub(crate) ingest: PathBuf,
    pub(crate) backup: PathBuf,
    pub(crate) log: PathBuf,
    lock: FolderLock,
}

/// Keeps other processes out of a store's folder until the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct FolderLock {
    _file: Arc<File>,
}

impl Folder {
    /// Makes or opens the folders, and takes the lock.
    pub(crate) fn open(options: &StoreOptions) -> Result<Self, StoreError> {
        make_folder(&options.dir)?;
        let folder = Self::lock(options)?;
        folder.finish_rewrite()?;
        let (identity, format) = folder.stamp()?;
        make_folder(&folder.log)?;
        folder.claim_log(&identity)?;
        if format < FORMAT {
            // An older server refuses it from now on, and misreads nothing.
            write_whole(&folder.format_path(), &format_text(&identity))?;
        }
        folder.empty_temporary()?;
        // Made here and not by RocksDB, which leaves it to others to make the name durable. It comes after the log has
        // been claimed, since a tree tells that there was a log. The names of both are durable from here on,
        // also where an earlier process made them and came no further.
        make_folder(&folder.tree)?;
        sync_folder(&folder.dir)?;
        Ok(folder)
    }

    /// Opens the folders of a store that exists, whatever became of its log. Another store's log is refused.
    pub(crate) fn open_without_log(options: &StoreOptions) -> Result<(Self, LogMark), StoreError> {
        let none = || StoreError::io("find a store in", &options.dir, std::io::ErrorKind::NotFound.into());
        if !options.dir.exists() {
            return Err(none());
        }
        let folder = Self::lock(options)?;
        folder.finish_rewrite()?;
        if !folder.tree.exists() {
            return Err(none());
        }
        let identity = folder.identity()?;
        let mark = match read_if_there(&folder.mark_path())? {
            Some(text) if field(&text, "identity") == Some(identity.as_str()) => LogMark::Right,
            Some(_) => return Err(folder.foreign("it belongs to another store; name the right folder")),
            None => LogMark::Missing,
        };
        folder.empty_temporary()?;
        Ok((folder, mark))
    }

    fn lock(options: &StoreOptions) -> Result<Self, StoreError> {
        let dir = options.dir.clone();
        let lock = lock(&dir)?;
        Ok(Self {
            tree: dir.join("tree"),
            ingest: dir.join("ingest"),
            backup: dir.join("backup"),
            log: options.log_dir.clone().unwrap_or_else(|| dir.join("log")),
            dir,
            lock,
        })
    }

    /// Its lock, for anyone who has something to do to the folder once the store is closed.
    pub(crate) fn keep_locked(&self) -> FolderLock {
        self.lock.clone()
    }

    fn empty_temporary(&self) -> Result<(), StoreError> {
        for temporary in [&self.ingest, &self.backup] {
            if temporary.exists() {
                fs::remove_dir_all(temporary).map_err(|error| StoreError::io("empty", temporary, error))?;
            }
            make_folder(temporary)?;
        }
        Ok(())
    }

    /// Marks a folder that is empty, or not there, as that of this store's log, though the store has had another.
    pub(crate) fn begin_log_anew(&self) -> Result<(), StoreError> {
        make_folder(&self.log)?;
        let mut entries =
            fs::read_dir(&self.log).map_err(|error| StoreError::io("list", &self.log, error))?;
        if entries.next().is_some() {
            let (log_dir, dir) = (self.log.clone(), self.dir.clone());
            let what = "it is not empty; move away what is there, or name another folder".to_owned();
            return Err(StoreError::ForeignLog { log_dir, dir, what });
        }
        self.mark_log()
    }

    /// Whether files in this folder can be written past the page cache.
    pub(crate) fn takes_direct_io(&self) -> bool {
        let path = self.ingest.join("direct-io");
        let flags = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).unwrap_or(0);
        let opened =
            OpenOptions::new().write(true).create(true).truncate(true).custom_flags(flags).open(&path);
        let _ = fs::remove_file(&path);
        opened.is_ok()
    }

    /// Bytes of the tree's files; 0 for a new store.
    pub(crate) fn tree_bytes(&self) -> u64 {
        let Ok(files) = fs::read_dir(&self.tree) else { return 0 };
        files.flatten().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    /// Bytes that an unprivileged process may still write to the file system of the folder.
    pub(crate) fn free_bytes(&self) -> Result<u64, StoreError> {
        let found = rustix::fs::statvfs(&self.dir)
            .map_err(|error| StoreError::io("measure", &self.dir, error.into()))?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// The identity in the format file, which is made for a new store.
    pub(crate) fn identity(&self) -> Result<String, StoreError> {
        self.stamp().map(|(identity, _)| identity)
    }

    fn format_path(&self) -> PathBuf {
        self.dir.join("store.format")
    }

    /// Identity and format.
    fn stamp(&self) -> Result<(String, u32), StoreError> {
        let path = self.format_path();
        let Some(text) = read_if_there(&path)? else {
            if self.tree.exists() {
                return Err(self.corrupt("store.format is missing"));
            }
            let identity = format!("{:032x}", rand::random::<u128>());
            write_whole(&path, &format_text(&identity))?;
            return Ok((identity, FORMAT));
        };
        let found: u32 = field(&text, "format")
            .and_then(|format| format.parse().ok())
            .ok_or_else(|| self.corrupt("store.format names no format"))?;
        if found > FORMAT {
            return Err(StoreError::NewerFormat { path, found, supported: FORMAT });
        }
        let identity =
            field(&text, "identity").ok_or_else(|| self.corrupt("store.format names no identity"))?;
        Ok((identity.to_owned(), found))
    }

    /// Marks a new log as this store's, or refuses the log of another one.
    fn claim_log(&self, identity: &str) -> Result<(), StoreError> {
        match read_if_there(&self.mark_path())? {
            Some(text) if field(&text, "identity") == Some(identity) => Ok(()),
            Some(_) => Err(self.foreign("it belongs to another store; name the right folder")),
            None if self.tree.exists() => Err(self.foreign(
                "it is new, and the store has had another one; name the right folder (log.dir), mount the log's \
                 device, or run `scrinium log salvage` if the log is lost (docs/operate/logging.md)",
            )),
            None => self.mark_log(),
        }
    }

    fn mark_path(&self) -> PathBuf {
        self.log.join("store.id")
    }

    /// Marks the log as this store's.
    pub(crate) fn mark_log(&self) -> Result<(), StoreError> {
        let identity = self.identity()?;
        write_whole(&self.mark_path(), &format!("identity {identity}\n"))
    }

    fn foreign(&self, what: &str) -> StoreError {
        StoreError::ForeignLog { log_dir: self.log.clone(), dir: self.dir.clone(), what: what.to_owned() }
    }

    pub(crate) fn corrupt(&self, what: impl Into<String>) -> StoreError {
        StoreError::Corrupt { path: self.dir.clone(), what: what.into() }
    }
}

/// Takes the lock. The operating system gives it back when the process ends, however that happens.
pub(crate) fn lock(dir: &Path) -> Result<FolderLock, StoreError> {
    let path = dir.join("store.lock");
    let io = |action| {
        let path = path.clone();
        move |error| StoreError::io(action, &path, error)
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .open(&path)
        .map_err(io("open"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            return Err(StoreError::Locked { dir: dir.to_path_buf(), pid: text.trim().parse().ok() });
        }
        Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &path, error)),
    }
    file.set_len(0).map_err(io("write"))?;
    file.rewind().map_err(io("write"))?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes()).map_err(io("write"))?;
    Ok(FolderLock { _file: Arc::new(file) })
}

fn format_text(identity: &str) -> String {
    format!("format {FORMAT}\nidentity {identity}\n")
}

/// Makes a folder and those above it, with names that survive a loss of power.
fn make_folder(path: &Path) -> Result<(), StoreError> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().unwrap_or_else(|| Path::new(""));
    make_folder(parent)?;
    match fs::DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(StoreError::io("make", path, error))
        }
        _ => sync_folder(parent),
    }
}

/// Makes the names in a folder durable.
fn sync_folder(path: &Path) -> Result<(), StoreError> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path).and_then(|folder| folder.sync_all()).map_err(|error| StoreError::io("sync", path, error))
}

pub(crate) fn read_if_there(path: &Path) -> Result<Option<String>, StoreError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(StoreError::Corrupt { path: path.to_path_buf(), what: "it is not text".to_owned() })
        }
        Err(error) => Err(StoreError::io("read", path, error)),
    }
}

/// The rest of the line that starts with `name` and a space.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::trim)
}

/// Writes a small file so that after a crash it is there whole or not at all.
fn write_whole(path: &Path, text: &str) -> Result<(), StoreError> {
    let draft = path.with_extension("draft");
    let io = |error| StoreError::io("write", path, error);
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).create(true).truncate(true).mode(FILE_MODE).open(&draft).map_err(io)?;
    file.write_all(text.as_bytes()).map_err(io)?;
    file.sync_all().map_err(io)?;
    fs::rename(&draft, path).map_err(io)?;
    path.parent().map_or(Ok(()), sync_folder)
}

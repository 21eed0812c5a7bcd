//! A repository in a folder, and reading and writing of files past the page cache.

use std::any::Any;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, OFlags};

use crate::BackupError;
use crate::aligned::Buffer;
use crate::place::{BackupPlace, Pieces, Sink};

/// The end of the name of a file that is being written.
const PART: &str = ".part";

const LOCK: &str = "repository.lock";

/// A backup holds keys and the hashes of passwords.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// A folder.
pub(crate) struct Local {
    dir: PathBuf,
}

impl Local {
    /// Makes the folder, if it is missing.
    pub(crate) fn create(dir: &Path) -> Result<Self, BackupError> {
        make_folder(dir)?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// A folder that is there.
    pub(crate) fn open(dir: &Path) -> Result<Self, BackupError> {
        fs::read_dir(dir).map_err(BackupError::io("open", dir))?;
        Ok(Self { dir: dir.to_owned() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

impl BackupPlace for Local {
    fn name(&self) -> String {
        self.dir.display().to_string()
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, BackupError> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let path = self.path(&folder);
            let failed = BackupError::io("list", &path);
            let entries = match fs::read_dir(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                entries => entries.map_err(&failed)?,
            };
            for entry in entries {
                let entry = entry.map_err(&failed)?;
                // Whatever has another name is not the repository's.
                let Ok(name) = entry.file_name().into_string() else { continue };
                let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                let metadata = entry.metadata().map_err(&failed)?;
                if metadata.is_dir() {
                    folders.push(name);
                } else if !name.ends_with(PART) && name != LOCK {
                    found.push((name, metadata.len()));
                }
            }
        }
        Ok(found)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, BackupError> {
        let path = self.path(name);
        match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some).map_err(BackupError::io("read", &path)),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), BackupError> {
        let (path, part) = (self.path(name), self.path(&format!("{name}{PART}")));
        let failed = BackupError::io("write", &path);
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let mut options = OpenOptions::new();
        let mut file =
            options.create(true).truncate(true).write(true).mode(FILE_MODE).open(&part).map_err(&failed)?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(&failed)?;
        fs::rename(&part, &path).map_err(&failed)?;
        path.parent().map_or(Ok(()), sync_folder)
    }

    fn open(&self, name: &str) -> Result<Box<dyn Pieces>, BackupError> {
        Ok(Box::new(FileReader::open(&self.path(name))?))
    }

    fn create(&self, name: &str) -> Result<Box<dyn Sink + '_>, BackupError> {
        Ok(Box::new(FileWriter::create(&self.path(name), FILE_MODE)?))
    }

    fn remove(&self, name: &str) -> Result<(), BackupError> {
        let path = self.path(name);
        fs::remove_file(&path).map_err(BackupError::io("remove", &path))
    }

    fn settle(&self) -> Result<(), BackupError> {
        let mut folders = vec![self.dir.clone()];
        while let Some(folder) = folders.pop() {
            let failed = BackupError::io("list", &folder);
            for entry in fs::read_dir(&folder).map_err(&failed)? {
                let entry = entry.map_err(&failed)?;
                let path = entry.path();
                if entry.file_type().map_err(&failed)?.is_dir() {
                    folders.push(path);
                } else if path.to_string_lossy().ends_with(PART) {
                    fs::remove_file(&path).map_err(BackupError::io("remove", &path))?;
                }
            }
            sync_folder(&folder)?;
        }
        Ok(())
    }

    fn free_bytes(&self) -> Option<u64> {
        free_bytes(&self.dir)
    }

    fn lock(&self, alone: bool) -> Result<Box<dyn Any + Send>, BackupError> {
        let path = self.path(LOCK);
        let mut options = OpenOptions::new();
        options.read(true).mode(FILE_MODE);
        let opened = match options.clone().write(true).create(true).truncate(false).open(&path) {
            // From a medium that is not written to one can still restore.
            Err(error)
                if !alone
                    && matches!(
                        error.kind(),
                        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied
                    ) =>
            {
                return Ok(Box::new(()));
            }
            opened => opened,
        };
        let file = opened.map_err(BackupError::io("open", &path))?;
        let locked = if alone { file.try_lock() } else { file.try_lock_shared() };
        match locked {
            Ok(()) => Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) => Err(BackupError::Locked { place: self.name() }),
            Err(TryLockError::Error(error)) => Err(BackupError::io("lock", &path)(error)),
        }
    }
}

/// Makes a folder and those above it, for the owner alone and durably: each name is synced where it stands.
pub(crate) fn make_folder(dir: &Path) -> Result<(), BackupError> {
    if dir.as_os_str().is_empty() || dir.is_dir() {
        return Ok(());
    }
    let parent = dir.parent().unwrap_or_else(|| Path::new(""));
    make_folder(parent)?;
    match fs::DirBuilder::new().mode(FOLDER_MODE).create(dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(BackupError::io("make", dir)(error)),
        _ => sync_folder(parent),
    }
}

pub(crate) fn sync_folder(dir: &Path) -> Result<(), BackupError> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(BackupError::io("sync", dir))
}

/// How much may still be written to the file system of a folder, where it tells.
pub(crate) fn free_bytes(dir: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(dir).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Opens past the page cache, where the file system takes it.
fn open(path: &Path, options: &OpenOptions) -> std::io::Result<(File, bool)> {
    let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
    match options.clone().custom_flags(flags).open(path) {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok((options.open(path)?, false)),
        opened => Ok((opened?, true)),
    }
}

/// From here on through the page cache.
fn make_indirect(file: &File) -> std::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags.difference(OFlags::DIRECT))?)
}

/// A file that is read once.
pub(crate) struct FileReader {
    path: PathBuf,
    file: File,
    offset: u64,
    direct: bool,
}

impl FileReader {
    pub(crate) fn open(path: &Path) -> Result<Self, BackupError> {
        let (file, direct) =
            open(path, OpenOptions::new().read(true)).map_err(BackupError::io("open", path))?;
        Ok(Self { path: path.to_owned(), file, offset: 0, direct })
    }

    fn fill(&mut self, buffer: &mut Buffer) -> std::io::Result<()> {
        let mut filled = 0;
        while let Some(rest) = buffer.whole().get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, self.offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Some file systems take the flag and refuse the read; at the end of a file others do.
                Err(error) if error.kind() == ErrorKind::InvalidInput && self.direct => {
                    self.direct = false;
                    make_indirect(&self.file)?;
                }
                Err(error) => return Err(error),
            }
        }
        buffer.filled = filled;
        if !self.direct {
            let read = std::num::NonZeroU64::new(filled as u64);
            // What is read once is not worth the place of what others read; if the system keeps it, so be it.
            let _kept = rustix::fs::fadvise(&self.file, self.offset, read, Advice::DontNeed);
        }
        self.offset += filled as u64;
        Ok(())
    }
}

impl Pieces for FileReader {
    fn next(&mut self, buffer: &mut Buffer) -> Result<(), BackupError> {
        self.fill(buffer).map_err(BackupError::io("read", &self.path))
    }
}

/// A file that gets its name when it is whole and synced. Dropped before, it is removed.
pub(crate) struct FileWriter {
    path: PathBuf,
    part: PathBuf,
    file: File,
    offset: u64,
    direct: bool,
    finished: bool,
}

impl FileWriter {
    pub(crate) fn create(path: &Path, mode: u32) -> Result<Self, BackupError> {
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let mut part = path.as_os_str().to_owned();
        part.push(PART);
        let part = PathBuf::from(part);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(mode);
        let (file, direct) = open(&part, &options).map_err(BackupError::io("create", &part))?;
        Ok(Self { path: path.to_owned(), part, file, offset: 0, direct, finished: false })
    }

    fn write(&mut self, piece: &mut Buffer) -> std::io::Result<()> {
        let length = piece.filled as u64;
        let mut rest = piece.padded();
        let mut at = self.offset;
        while !rest.is_empty() {
            match self.file.write_at(rest, at) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    at += written as u64;
                    rest = rest.get(written..).unwrap_or_default();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::InvalidInput && self.direct => {
                    self.direct = false;
                    make_indirect(&self.file)?;
                }
                Err(error) => return Err(error),
            }
        }
        self.offset += length;
        Ok(())
    }
}

impl Sink for FileWriter {
    fn put(&mut self, piece: &mut Buffer) -> Result<(), BackupError> {
        self.write(piece).map_err(BackupError::io("write", &self.part))
    }

    fn finish(mut self: Box<Self>) -> Result<(), BackupError> {
        // The last block was written whole.
        let ended = self.file.set_len(self.offset).and_then(|()| self.file.sync_all());
        ended.map_err(BackupError::io("sync", &self.part))?;
        if !self.direct {
            let _kept = rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed);
        }
        fs::rename(&self.part, &self.path).map_err(BackupError::io("rename", &self.part))?;
        self.finished = true;
        self.path.parent().map_or(Ok(()), sync_folder)
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if !self.finished {
            // What stays is removed by the next backup.
            drop(fs::remove_file(&self.part));
        }
    }
}

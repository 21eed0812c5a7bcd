//! What the log takes from the operating system, as a seam.
//!
//! The server uses [`OperatingSystem`]. Another implementation can refuse a write, lose what was not
//! synced, or run out of space at will, which no real disk does when asked.

use std::any::Any;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

/// Files, a random number and a thread.
pub trait System: Send + Sync + 'static {
    /// Makes a directory and those above it, durably. Nothing happens if it is there.
    ///
    /// # Errors
    /// Those of the operating system.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// The names of the files in a directory, in no order. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// Those of the operating system.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Opens a file; `direct` asks for writes past the page cache, in whole aligned blocks of 4,096 bytes.
    ///
    /// # Errors
    /// Those of the operating system. A file system without direct I/O is no error.
    fn open(&self, path: &Path, access: Access, direct: bool) -> io::Result<Box<dyn FileHandle>>;

    /// Gives a file another name, replacing what has that name. Durable after [`System::sync_dir`].
    ///
    /// # Errors
    /// Those of the operating system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Deletes a file.
    ///
    /// # Errors
    /// Those of the operating system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// Those of the operating system.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Takes an exclusive lock, held until the answer is dropped; `None` if another process holds it.
    ///
    /// # Errors
    /// Those of the operating system.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>>;

    /// A number that nobody can guess.
    ///
    /// # Errors
    /// Those of the operating system.
    fn random(&self) -> io::Result<u64>;

    /// Whether `path` still leads to the open `file`. A system whose files have no identity cannot tell, and
    /// says yes.
    ///
    /// # Errors
    /// Those of the operating system, but for a path that leads nowhere.
    fn leads_to(&self, path: &Path, file: &dyn FileHandle) -> io::Result<bool>;

    /// Starts a thread; `None` if this system runs none, and its work is then done where it is needed.
    ///
    /// # Errors
    /// Those of the operating system.
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<Option<JoinHandle<()>>>;
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// An existing file, to read.
    Read,
    /// An existing file, to read and write.
    Write,
    /// A new or emptied file, to read and write.
    Create,
}

/// An open file. Positions are explicit, so that handles can be shared.
pub trait FileHandle: Send + Sync {
    /// Its length in bytes.
    ///
    /// # Errors
    /// Those of the operating system.
    fn len_bytes(&self) -> io::Result<u64>;

    /// What tells it from every other file: device and inode; `None` where files have no such thing.
    ///
    /// # Errors
    /// Those of the operating system.
    fn identity(&self) -> io::Result<Option<(u64, u64)>>;

    /// Reads up to `buffer.len()` bytes; fewer only at the end, or when the system wishes.
    ///
    /// # Errors
    /// Those of the operating system.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes up to `bytes.len()` bytes and says how many.
    ///
    /// # Errors
    /// Those of the operating system.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Reserves space for a file of `bytes`, as far as the file system can.
    ///
    /// # Errors
    /// [`ErrorKind::StorageFull`] and the other errors of the operating system.
    fn reserve(&self, bytes: u64) -> io::Result<()>;

    /// Makes everything written durable, with the length.
    ///
    /// # Errors
    /// Those of the operating system; what is on the device is then unknown.
    fn sync_data(&self) -> io::Result<()>;
}

/// What a log holds is for the server's own user alone.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The operating system as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct OperatingSystem;

impl System for OperatingSystem {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        if let Some(parent) = dir.parent() {
            self.create_dir(parent)?;
        }
        match DirBuilder::new().mode(FOLDER_MODE).create(dir) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        dir.parent().map_or(Ok(()), |parent| self.sync_dir(parent))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn open(&self, path: &Path, access: Access, direct: bool) -> io::Result<Box<dyn FileHandle>> {
        let mut options = OpenOptions::new();
        options.read(true).write(access != Access::Read);
        options.create(access == Access::Create).truncate(access == Access::Create).mode(FILE_MODE);
        if direct {
            let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
            match options.clone().custom_flags(flags).open(path) {
                Err(error) if error.kind() == ErrorKind::InvalidInput => {}
                opened => return Ok(Box::new(SystemFile { file: opened?, direct: AtomicBool::new(true) })),
            }
        }
        Ok(Box::new(SystemFile { file: options.open(path)?, direct: AtomicBool::new(false) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(FILE_MODE).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn random(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        // The kernel hands out up to 256 bytes whole.
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn leads_to(&self, path: &Path, file: &dyn FileHandle) -> io::Result<bool> {
        let Some(identity) = file.identity()? else { return Ok(true) };
        match std::fs::metadata(path) {
            Ok(found) => Ok((found.dev(), found.ino()) == identity),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<Option<JoinHandle<()>>> {
        std::thread::Builder::new().name(name.to_owned()).spawn(work).map(Some)
    }
}

struct SystemFile {
    file: File,
    direct: AtomicBool,
}

impl FileHandle for SystemFile {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn identity(&self) -> io::Result<Option<(u64, u64)>> {
        let metadata = self.file.metadata()?;
        Ok(Some((metadata.dev(), metadata.ino())))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        match self.file.write_at(bytes, offset) {
            // Some file systems take the flag and refuse the write; nothing was written then.
            Err(error)
                if error.kind() == ErrorKind::InvalidInput && self.direct.swap(false, Ordering::Relaxed) =>
            {
                let flags = rustix::fs::fcntl_getfl(&self.file)?;
                rustix::fs::fcntl_setfl(&self.file, flags.difference(OFlags::DIRECT))?;
                self.file.write_at(bytes, offset)
            }
            written => written,
        }
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            // The zeros that follow reserve the space as well, only later.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            reserved => Ok(reserved?),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

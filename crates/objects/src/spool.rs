//! A content that is on its way to its store: in a file, since its name is known only at its end.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::ObjectError;

const FOLDER: &str = "spool";

/// Free space that is left for others.
const LEFT_FREE_BYTES: u64 = 256 << 20;

/// How often it is looked at.
const LOOK_EVERY_BYTES: u64 = 16 << 20;

/// A file that is written once and read again, and goes when this is dropped, or at the next start.
#[derive(Debug)]
pub struct Spool {
    file: File,
    path: PathBuf,
    looked_at_bytes: u64,
    bytes: u64,
}

impl Spool {
    /// Removes what an earlier process has left.
    pub(crate) fn clear(dir: &Path) {
        let dir = dir.join(FOLDER);
        if let Err(error) = fs::remove_dir_all(&dir)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(dir = %dir.display(), %error, "files that an earlier run left for upload stay");
        }
    }

    pub(crate) fn create(dir: &Path) -> Result<Self, ObjectError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let dir = dir.join(FOLDER);
        let path = dir.join(NEXT.fetch_add(1, Ordering::Relaxed).to_string());
        let failed = |source| ObjectError::Io { action: "make", path: path.clone(), source };
        fs::create_dir_all(&dir).map_err(failed)?;
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&path).map_err(failed)?;
        let mut spool = Self { file, path, looked_at_bytes: 0, bytes: 0 };
        spool.check_space()?;
        Ok(spool)
    }

    fn failed(&self, action: &'static str, source: std::io::Error) -> ObjectError {
        ObjectError::Io { action, path: self.path.clone(), source }
    }

    fn check_space(&mut self) -> Result<(), ObjectError> {
        let found = rustix::fs::fstatvfs(&self.file).map_err(|error| self.failed("measure", error.into()))?;
        if found.f_bavail.saturating_mul(found.f_frsize) < LEFT_FREE_BYTES {
            return Err(self.failed("write", ErrorKind::StorageFull.into()));
        }
        self.looked_at_bytes = self.bytes;
        Ok(())
    }

    /// Adds bytes at the end.
    ///
    /// # Errors
    /// [`ObjectError::Io`]
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ObjectError> {
        if self.bytes - self.looked_at_bytes >= LOOK_EVERY_BYTES {
            self.check_space()?;
        }
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|error| self.failed("write", error))
    }

    /// Reads it from its beginning.
    ///
    /// # Errors
    /// [`ObjectError::Io`]
    pub fn reader(&mut self) -> Result<&mut dyn Read, ObjectError> {
        match self.file.seek(SeekFrom::Start(0)) {
            Ok(_) => Ok(&mut self.file),
            Err(error) => Err(self.failed("read", error)),
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

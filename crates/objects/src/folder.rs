//! A store of objects in a folder, such as that of a file server: an object is a file.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::bucket::{Bucket, BucketError, BucketWriter};

/// The end of the names of files that are not whole yet.
const PART: &str = "part";

/// A folder that is there. Its device may go and come back.
pub(crate) struct Folder {
    dir: PathBuf,
}

fn away(action: &str, path: &Path) -> impl Fn(std::io::Error) -> BucketError + use<> {
    let what = format!("cannot {action} {}", path.display());
    move |error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            BucketError::Refused(format!("{what}: {error}"))
        }
        _ => BucketError::Away(format!("{what}: {error}")),
    }
}

impl Folder {
    /// The folder is not made, since what it lies on may be missing.
    pub(crate) fn open(dir: &Path) -> Result<Self, String> {
        if dir.is_dir() {
            return Ok(Self { dir: dir.to_owned() });
        }
        Err(format!(
            "{} is no folder; bring its device back, or make the folder if it is to be a new one",
            dir.display()
        ))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// An object that is not found is missing only if the folder is there.
    fn not_found(&self, path: &Path) -> impl Fn(std::io::Error) -> BucketError + use<> {
        let (is_there, other) = (self.dir.is_dir(), away("read", path));
        move |error| {
            if is_there && error.kind() == ErrorKind::NotFound { BucketError::Missing } else { other(error) }
        }
    }
}

impl Bucket for Folder {
    fn begin(&self, name: &str) -> Result<Box<dyn BucketWriter + '_>, BucketError> {
        if !self.dir.is_dir() {
            return Err(BucketError::Away(format!("{} is not there", self.dir.display())));
        }
        let path = self.path(name);
        let folder = path.parent().unwrap_or(&self.dir).to_owned();
        make_folders(&self.dir, &folder)?;
        let part = path.with_extension(PART);
        let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part);
        let file = file.map_err(away("write", &part))?;
        Ok(Box::new(Writer { file, part, path, folder, finished: false }))
    }

    fn read(&self, name: &str, from: u64, to: u64) -> Result<Bytes, BucketError> {
        let path = self.path(name);
        let length = usize::try_from(to.saturating_sub(from))
            .map_err(|error| BucketError::Refused(error.to_string()))?;
        let file = File::open(&path).map_err(self.not_found(&path))?;
        let mut bytes = vec![0; length];
        match file.read_exact_at(&mut bytes, from) {
            Ok(()) => Ok(bytes.into()),
            // It was cut: the rest is shown by its size.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Bytes::new()),
            Err(error) => Err(away("read", &path)(error)),
        }
    }

    fn size(&self, name: &str) -> Result<Option<u64>, BucketError> {
        let path = self.path(name);
        match fs::metadata(&path).map_err(self.not_found(&path)) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(BucketError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        let path = self.path(name);
        match fs::remove_file(&path).map_err(self.not_found(&path)) {
            Ok(()) => sync_folder(path.parent().unwrap_or(&self.dir)),
            Err(BucketError::Missing) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, BucketError> {
        let path = self.path(folder);
        let entries = match fs::read_dir(&path).map_err(self.not_found(&path)) {
            Ok(entries) => entries,
            Err(BucketError::Missing) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let failed = away("list", &path);
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(&failed)?;
            let metadata = entry.metadata().map_err(&failed)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if metadata.is_file() && !name.ends_with(PART) {
                found.push((format!("{folder}/{name}"), metadata.len()));
            }
        }
        Ok(found)
    }
}

struct Writer {
    file: File,
    part: PathBuf,
    path: PathBuf,
    folder: PathBuf,
    finished: bool,
}

impl BucketWriter for Writer {
    fn put(&mut self, bytes: &[u8]) -> Result<(), BucketError> {
        self.file.write_all(bytes).map_err(away("write", &self.part))
    }

    fn finish(mut self: Box<Self>) -> Result<(), BucketError> {
        self.file.sync_all().map_err(away("sync", &self.part))?;
        fs::rename(&self.part, &self.path).map_err(away("rename", &self.part))?;
        self.finished = true;
        sync_folder(&self.folder)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.finished {
            // What stays is no object; the next upload of the same name writes over it.
            drop(fs::remove_file(&self.part));
        }
    }
}

/// Makes the folders between, each name durable.
fn make_folders(dir: &Path, folder: &Path) -> Result<(), BucketError> {
    if folder == dir || folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(dir);
    make_folders(dir, above)?;
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(away("make", folder)(error)),
        _ => sync_folder(above),
    }
}

fn sync_folder(folder: &Path) -> Result<(), BucketError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(away("sync", folder))
}

//! Bringing many derived entries in at once, as sorted files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rocksdb::{ErrorKind, IngestExternalFileOptions, Options, SstFileWriter};

use crate::tree::Tree;
use crate::{Family, StoreError, tuning};

/// A folder of its own for one call, gone when this is dropped.
struct Workplace(PathBuf);

impl Workplace {
    fn make(parent: &Path) -> Result<Self, StoreError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let path = parent.join(NEXT.fetch_add(1, Ordering::Relaxed).to_string());
        fs::create_dir_all(&path).map_err(|error| StoreError::io("make", &path, error))?;
        Ok(Self(path))
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "a temporary folder was not removed");
        }
    }
}

/// Sorted files that wait to be brought in. They are removed when this is dropped before.
pub(crate) struct SortedFiles {
    workplace: Workplace,
    files: Vec<PathBuf>,
    entries: u64,
}

impl SortedFiles {
    /// Writes `sorted` into files on the tree's file system.
    pub(crate) fn write(
        tree: &Tree,
        family: Family,
        sorted: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<Self, StoreError> {
        let failed = |error| tree.error("write a sorted file for", &error);
        let mut this =
            Self { workplace: Workplace::make(&tree.folder.ingest)?, files: Vec::new(), entries: 0 };
        let options = tuning::family_options(Some(family), &tree.budget);
        // A file is held in memory until it is closed, since its dictionary is learned from all of it. Closed at this
        // size, files also can be compacted one at a time.
        let file_bytes = tree.budget.piece_bytes();
        let mut held_bytes = 0;
        let mut writer: Option<SstFileWriter<'_>> = None;
        let mut last: Option<Vec<u8>> = None;
        for (key, value) in sorted {
            if last.as_ref().is_some_and(|last| *last >= key) {
                return Err(StoreError::Unsorted { entry: this.entries });
            }
            let mut open = match writer.take() {
                Some(open) => open,
                None => this.next_file(&options).map_err(failed)?,
            };
            open.put(&key, &value).map_err(failed)?;
            this.entries += 1;
            held_bytes += (key.len() + value.len()) as u64;
            last = Some(key);
            if held_bytes >= file_bytes {
                open.finish().map_err(failed)?;
                held_bytes = 0;
            } else {
                writer = Some(open);
            }
        }
        if let Some(mut open) = writer {
            open.finish().map_err(failed)?;
        }
        Ok(this)
    }

    fn next_file<'a>(&mut self, options: &'a Options) -> Result<SstFileWriter<'a>, rocksdb::Error> {
        let path = self.workplace.0.join(format!("{}.sst", self.files.len()));
        let writer = SstFileWriter::create(options);
        writer.open(&path)?;
        self.files.push(path);
        Ok(writer)
    }

    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Moves all files into the tree if no key in memory lies between theirs; else `false`, and nothing is changed.
    pub(crate) fn bring_in_at_once(&self, tree: &Tree, family: Family) -> Result<bool, StoreError> {
        match self.move_into(tree, family, false) {
            Ok(()) => Ok(true),
            // "External file requires flush": no other error has this kind here.
            Err(error) if error.kind() == ErrorKind::InvalidArgument => Ok(false),
            Err(error) => Err(tree.error("bring sorted files into", &error)),
        }
    }

    /// Moves all files into the tree. Returns how many entries they held.
    pub(crate) fn bring_in(self, tree: &Tree, family: Family) -> Result<u64, StoreError> {
        let moved = self.move_into(tree, family, true);
        moved.map_err(|error| tree.error("bring sorted files into", &error))?;
        drop(self.workplace);
        Ok(self.entries)
    }

    fn move_into(&self, tree: &Tree, family: Family, may_flush: bool) -> Result<(), rocksdb::Error> {
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        options.set_allow_blocking_flush(may_flush);
        tree.db().ingest_external_file_cf_opts(tree.family(family), &options, self.files.clone())
    }
}

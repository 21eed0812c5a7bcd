//! Bringing many derived entries in at once, as sorted files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rocksdb::{ErrorKind, IngestExternalFileOptions, Options, SstFileWriter};

use crate::tree::Tree;
use crate::{Family, StoreError, tuning};

/// Files are closed when so much was written into them, uncompressed, so that they can be compacted one at a time.
const FILE_BYTES: u64 = 64 << 20;

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

/// Entries of one derived family in sorted files, which wait to be brought in ([`Derived::bring_in`](crate::Derived::bring_in)). They
/// are removed when this is dropped before.
pub struct SortedFiles {
    family: Family,
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
        let workplace = Workplace::make(&tree.folder.ingest)?;
        let mut this = Self { family, workplace, files: Vec::new(), entries: 0 };
        let mut options = tuning::family_options(Some(family), &tree.budget);
        tuning::write_in_pieces(&mut options);
        let mut file_bytes = 0;
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
            file_bytes += (key.len() + value.len()) as u64;
            last = Some(key);
            if file_bytes >= FILE_BYTES {
                open.finish().map_err(failed)?;
                file_bytes = 0;
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

    /// How many entries they hold.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }
}

impl std::fmt::Debug for SortedFiles {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SortedFiles")
            .field("family", &self.family)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

/// Sorted files by family, since those of one are moved in by one step.
#[derive(Default)]
pub(crate) struct Together(BTreeMap<Family, Vec<PathBuf>>);

impl Together {
    pub(crate) fn of(all: &[SortedFiles]) -> Self {
        let mut by_family: BTreeMap<Family, Vec<PathBuf>> = BTreeMap::new();
        for sorted in all.iter().filter(|sorted| !sorted.files.is_empty()) {
            by_family.entry(sorted.family).or_default().extend_from_slice(&sorted.files);
        }
        Self(by_family)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Moves the files into the tree, but not those of families where a key in memory lies between theirs; which stay.
    pub(crate) fn bring_in_at_once(&mut self, tree: &Tree) -> Result<(), StoreError> {
        while let Some((family, files)) = self.0.first_key_value() {
            match move_into(tree, *family, files, false) {
                Ok(()) => drop(self.0.pop_first()),
                // "External file requires flush": no other error has this kind here.
                Err(error) if error.kind() == ErrorKind::InvalidArgument => return Ok(()),
                Err(error) => return Err(tree.error("bring sorted files into", &error)),
            }
        }
        Ok(())
    }

    /// Moves the files into the tree.
    pub(crate) fn bring_in(self, tree: &Tree) -> Result<(), StoreError> {
        for (family, files) in self.0 {
            let moved = move_into(tree, family, &files, true);
            moved.map_err(|error| tree.error("bring sorted files into", &error))?;
        }
        Ok(())
    }
}

fn move_into(tree: &Tree, family: Family, files: &[PathBuf], may_flush: bool) -> Result<(), rocksdb::Error> {
    let mut options = IngestExternalFileOptions::default();
    options.set_move_files(true);
    options.set_allow_blocking_flush(may_flush);
    tree.db().ingest_external_file_cf_opts(tree.family(family), &options, files.to_vec())
}

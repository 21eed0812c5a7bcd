//! Bringing many derived entries in at once, as sorted files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rocksdb::{IngestExternalFileOptions, SstFileWriter};

use crate::tree::Tree;
use crate::{Family, StoreError, tuning};

/// A file is closed when it has this size, so that later compactions can take one at a time.
const FILE_BYTES: u64 = 64 << 20;

/// A folder of its own for one call, gone when this is dropped.
struct Workplace(PathBuf);

impl Workplace {
    fn make(parent: &Path) -> Result<Self, StoreError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let path = parent.join(NEXT.fetch_add(1, Ordering::Relaxed).to_string());
        fs::create_dir_all(&path).map_err(|e| StoreError::io("make", &path, e))?;
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

/// Writes `sorted` into files and moves them into the tree, all at once. Returns how many entries.
pub(crate) fn ingest(
    tree: &Tree,
    family: Family,
    sorted: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
) -> Result<u64, StoreError> {
    let workplace = Workplace::make(&tree.folder.ingest)?;
    let options = tuning::family_options(Some(family), &tree.budget);
    let mut files = Vec::new();
    let mut writer: Option<SstFileWriter<'_>> = None;
    let mut last: Option<Vec<u8>> = None;
    let mut entries = 0_u64;
    for (key, value) in sorted {
        if last.as_ref().is_some_and(|last| *last >= key) {
            return Err(StoreError::Unsorted { entry: entries });
        }
        let mut open = match writer.take() {
            Some(open) => open,
            None => {
                let path = workplace.0.join(format!("{}.sst", files.len()));
                let open = SstFileWriter::create(&options);
                open.open(&path).map_err(|e| tree.error("write a sorted file for", &e))?;
                files.push(path);
                open
            }
        };
        open.put(&key, &value).map_err(|e| tree.error("write a sorted file for", &e))?;
        entries += 1;
        last = Some(key);
        if open.file_size() >= FILE_BYTES {
            open.finish().map_err(|e| tree.error("write a sorted file for", &e))?;
        } else {
            writer = Some(open);
        }
    }
    if let Some(mut open) = writer {
        open.finish().map_err(|e| tree.error("write a sorted file for", &e))?;
    }
    if files.is_empty() {
        return Ok(0);
    }
    let mut options = IngestExternalFileOptions::default();
    options.set_move_files(true);
    let moved = tree.db().ingest_external_file_cf_opts(tree.family(family), &options, files);
    moved.map_err(|e| tree.error("bring sorted files into", &e))?;
    Ok(entries)
}

//! Merging the files of a range of keys, so that what was overwritten or deleted leaves the disk.
//!
//! A range is merged in slices of some tens of megabytes, each a call of its own: anyone who compacts can stop, wait or
//! slow down between two of them, and the old files of a slice go before the next one is begun, so that little more
//! disk is needed than one slice takes.

use std::fs::File;

use rocksdb::{BottommostLevelCompaction, CompactOptions, LiveFile, properties, statistics::Ticker};

use crate::admin::Admin;
use crate::tree::Tree;
use crate::{Family, StoreError, tuning};

/// The level that whatever is not overwritten comes to lie in.
const LAST_LEVEL: &str = "6";

/// Keys that are merged by one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactSlice {
    /// The family.
    pub family: Family,
    /// The first key.
    pub from: Vec<u8>,
    /// The first key left out.
    pub to: Vec<u8>,
    /// Bytes of disk that the keys take, about.
    pub bytes: u64,
    /// Bytes of disk that merging them takes until the old files are gone, at most.
    pub needed_bytes: u64,
}

/// What the disk of the store has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Free bytes.
    pub free_bytes: u64,
    /// This many of them are left alone.
    pub reserve_bytes: u64,
}

impl Room {
    /// Whether so much can be written besides what is left alone.
    #[must_use]
    pub fn takes(self, bytes: u64) -> bool {
        self.free_bytes.saturating_sub(self.reserve_bytes) >= bytes
    }
}

/// Large values, which lie in files of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobFigures {
    /// Bytes of the files.
    pub file_bytes: u64,
    /// Bytes of them that are values which are no more.
    pub garbage_bytes: u64,
}

impl Admin<'_> {
    /// Cuts a range into slices of about `slice_bytes`, along the files that it lies in. What is in memory only is not
    /// counted, and is merged with the slice that it belongs to.
    ///
    /// # Errors
    /// [`StoreError::Tree`] when the list of files cannot be had.
    pub fn slices(
        &self,
        family: Family,
        from: &[u8],
        to: &[u8],
        slice_bytes: u64,
    ) -> Result<Vec<CompactSlice>, StoreError> {
        let tree = self.store.tree();
        let bytes = self.size_of(family, from, to);
        let files = overlapping(tree, family, from, to)?;
        let mut bounds = vec![from.to_vec()];
        if bytes > slice_bytes {
            bounds.extend(cuts(&files, from, to, slice_bytes));
        }
        bounds.push(to.to_vec());
        let slices = bounds.iter().zip(bounds.iter().skip(1)).map(|(from, to)| CompactSlice {
            family,
            bytes: self.size_of(family, from, to),
            needed_bytes: needed_bytes(&files, from, to),
            from: from.clone(),
            to: to.clone(),
        });
        Ok(slices.collect())
    }

    /// Merges the files of a slice down to the last level, which drops all that was overwritten or deleted before the
    /// oldest snapshot. Files of the last level that nothing lies over have nothing to drop, and are left alone unless
    /// `rewrite` says otherwise. Returns how many bytes were written.
    ///
    /// # Errors
    /// [`StoreError::Full`], or [`StoreError::Tree`] if the merge failed; nothing is lost then.
    pub fn compact(&self, slice: &CompactSlice, rewrite: bool) -> Result<u64, StoreError> {
        let tree = self.store.tree();
        let mut options = CompactOptions::default();
        options.set_exclusive_manual_compaction(false);
        options.set_bottommost_level_compaction(if rewrite {
            BottommostLevelCompaction::ForceOptimized
        } else {
            BottommostLevelCompaction::Skip
        });
        let written = || tree.statistics().get_ticker_count(Ticker::CompactWriteBytes);
        let (before, failures) = (written(), background_errors(tree));
        let (from, to) = (Some(slice.from.as_slice()), Some(slice.to.as_slice()));
        tree.db().compact_range_cf_opt(tree.family(slice.family), from, to, &options);
        // RocksDB's interface for C answers nothing, but counts what went wrong.
        if background_errors(tree) > failures {
            self.store.check_writable()?;
            let message = "RocksDB could not write the merged files; its LOG in the store's folder says why";
            return Err(StoreError::Tree { action: "compact", message: message.to_owned() });
        }
        Ok(written().saturating_sub(before))
    }

    /// Takes what lies in the system's file cache of the files of a range out of it.
    ///
    /// # Errors
    /// [`StoreError::Tree`] when the list of files cannot be had. A file that has gone meanwhile is no error.
    pub fn drop_from_file_cache(&self, family: Family, from: &[u8], to: &[u8]) -> Result<(), StoreError> {
        let tree = self.store.tree();
        for file in overlapping(tree, family, from, to)? {
            let path = tree.folder.tree.join(file.name.trim_start_matches('/'));
            let Ok(file) = File::open(&path) else { continue };
            if let Err(error) = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed) {
                tracing::debug!(path = %path.display(), %error, "a file was not taken out of the file cache");
            }
        }
        Ok(())
    }

    /// The disk of the store.
    ///
    /// # Errors
    /// The file system does not tell.
    pub fn room(&self) -> Result<Room, StoreError> {
        let core = self.store.core();
        Ok(Room { free_bytes: core.tree.folder.free_bytes()?, reserve_bytes: core.health.reserve_bytes() })
    }

    /// Large values in their files, of all families.
    #[must_use]
    pub fn blob_figures(&self) -> BlobFigures {
        let tree = self.store.tree();
        let family = tree.family(Family::Blob);
        let figure = |name: &str| tree.db().property_int_value_cf(family, name).ok().flatten().unwrap_or(0);
        BlobFigures {
            file_bytes: figure("rocksdb.live-blob-file-size"),
            garbage_bytes: figure("rocksdb.live-blob-file-garbage-size"),
        }
    }

    /// Bytes of the keys and values of some families, and what they take on disk once they are merged. It looks at all
    /// files of the families, so it is not for every request.
    #[must_use]
    pub fn compression(&self, families: &[Family]) -> Compression {
        let tree = self.store.tree();
        let read = |family: Family, name: &str| {
            let text = tree.db().property_value_cf(tree.family(family), name).ok().flatten()?;
            Compression::parse(&text)
        };
        let merged = format!("rocksdb.aggregated-table-properties-at-level{LAST_LEVEL}");
        let figures = families.iter().filter_map(|family| {
            // Where nothing is merged yet, what lies above it compresses a little less.
            read(*family, &merged).or_else(|| read(*family, "rocksdb.aggregated-table-properties"))
        });
        figures.fold(Compression::default(), |sum, one| Compression {
            raw_bytes: sum.raw_bytes + one.raw_bytes,
            stored_bytes: sum.stored_bytes + one.stored_bytes,
        })
    }
}

/// What keys and values take on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// Bytes of the keys and values.
    pub raw_bytes: u64,
    /// Bytes of the files, with what finds the keys in them.
    pub stored_bytes: u64,
}

impl Compression {
    /// Reads RocksDB's `# entries=…; raw key size=…; …`; `None` where there are no keys.
    fn parse(text: &str) -> Option<Self> {
        let figure = |name: &str| -> Option<u64> {
            let found = text.split(';').filter_map(|figure| figure.trim().split_once('='));
            found.filter(|(known, _)| known.starts_with(name)).find_map(|(_, value)| value.parse().ok())
        };
        // RocksDB adds a number of eight bytes to each key.
        let numbers = figure("# entries")?.saturating_mul(8);
        let raw_bytes = (figure("raw key size")? + figure("raw value size")?).saturating_sub(numbers);
        let beside = figure("index block size").unwrap_or(0) + figure("filter block size").unwrap_or(0);
        (raw_bytes > 0).then_some(Self { raw_bytes, stored_bytes: figure("data block size")? + beside })
    }
}

fn background_errors(tree: &Tree) -> u64 {
    tree.db().property_int_value(properties::BACKGROUND_ERRORS).ok().flatten().unwrap_or(0)
}

/// The files that hold keys of a range.
fn overlapping(tree: &Tree, family: Family, from: &[u8], to: &[u8]) -> Result<Vec<LiveFile>, StoreError> {
    let mut files = tree.db().live_files().map_err(|error| tree.error("list the files of", &error))?;
    files.retain(|file| file.column_family_name == family.name() && overlaps(file, from, to));
    Ok(files)
}

fn overlaps(file: &LiveFile, from: &[u8], to: &[u8]) -> bool {
    let starts_before = file.start_key.as_ref().is_none_or(|start| start.as_slice() < to);
    starts_before && file.end_key.as_ref().is_none_or(|end| end.as_slice() >= from)
}

/// Where to cut a range: at beginnings of files, when those before have come to `slice_bytes`.
fn cuts(files: &[LiveFile], from: &[u8], to: &[u8], slice_bytes: u64) -> Vec<Vec<u8>> {
    let mut starts: Vec<(&[u8], u64)> =
        files.iter().map(|file| (file.start_key.as_deref().unwrap_or_default(), file.size as u64)).collect();
    starts.sort_unstable();
    let (mut cuts, mut bytes) = (Vec::new(), 0);
    for (start, size) in starts {
        if bytes >= slice_bytes && start > from && start < to {
            cuts.push(start.to_vec());
            bytes = 0;
        }
        bytes += size;
    }
    cuts
}

/// New files lie next to the old ones until a step is done. The files of level 0 are merged in one step with those that
/// they lie over; further down a step takes a bounded number of bytes.
fn needed_bytes(files: &[LiveFile], from: &[u8], to: &[u8]) -> u64 {
    let bytes = |level: fn(i32) -> bool| -> u64 {
        let touched = files.iter().filter(|file| level(file.level) && overlaps(file, from, to));
        touched.map(|file| file.size as u64).sum()
    };
    let (top, below) = (bytes(|level| level == 0), bytes(|level| level > 0));
    top + below.min(2 * tuning::COMPACTION_BYTES)
}

//! Writing the tree of a damaged store again, from everything in it that can be read.
//!
//! ```text
//! tree.rewritten         being written; complete once it has a file `complete`
//! tree.damaged-SECONDS   the tree as it was, whole, with its damaged files
//! ```
//!
//! The old tree is put aside and not touched, so nothing is lost that was not lost before. Derived families are left
//! out, since they can be made again, as is the log's tail, which is applied first. A crash at any moment leaves
//! either the old tree or the new one in its place.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rocksdb::{ColumnFamilyDescriptor, DB, FlushOptions, WriteBatch, WriteOptions};
use scrinium_assertion::never;
use scrinium_statistics::Registry;

use crate::budget::Budget;
use crate::folder::{self, Folder};
use crate::tree::{Direct, OWN_FAMILY, POSITION_KEY};
use crate::{Family, Gap, KeyRange, ScanStep, Store, StoreError, StoreOptions, damage, tuning};

const REWRITTEN: &str = "tree.rewritten";
const COMPLETE: &str = "complete";

/// Entries are written this many bytes at a time.
const WRITE_BYTES: usize = 4 << 20;

/// What became of a store whose tree was rewritten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Entries that could be read.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Keys that could not.
    pub gaps: Vec<Gap>,
    /// Where the old tree is kept.
    pub kept: PathBuf,
}

impl Store {
    /// Writes the tree of a store that nobody uses again, from what can be read of it, and puts the old one aside.
    /// `told` is called now and then with the bytes copied so far. Needs as much free space as the store takes.
    ///
    /// # Errors
    /// As [`Store::open`]: of a tree whose own list of files is damaged, nothing can be read. And [`StoreError::Full`]
    /// before anything is written.
    pub fn rewrite(options: &StoreOptions, mut told: impl FnMut(u64)) -> Result<Rewritten, StoreError> {
        // Not alongside a server, whose list of files may just be about to change.
        folder::lock(&options.dir).and_then(|_alone| restore_current(&options.dir))?;
        let store = Self::open(options.clone(), &Registry::new())?;
        // Held until the new tree is in its place: a server that opened the old one meanwhile would lose it.
        let _alone = store.tree().folder.keep_locked();
        let (from, to) = (options.dir.join("tree"), options.dir.join(REWRITTEN));
        let sorted: u64 = Family::ALL
            .iter()
            .filter(|family| !family.is_derived())
            .map(|family| store.admin().size_of(*family, &[], &[u8::MAX; 64]))
            .sum();
        let needed = sorted.saturating_add(store.admin().blob_figures().file_bytes);
        if store.free_bytes()? < needed.saturating_add(options.reserve_bytes) {
            return Err(StoreError::Full);
        }
        let mut rewritten = Rewritten::default();
        copy(&store, options, &to, &mut rewritten, &mut told)?;
        // What was applied is in memory and in the log only; the log continues from the position that was copied.
        let closed = store.close();
        if let Err(error) = closed {
            tracing::warn!(%error, "the damaged tree was not closed in order");
        }
        // One that was killed right after may have kept a tree in this very second.
        let mut names =
            (options.clock.now_s()..).map(|name| options.dir.join(format!("tree.damaged-{name}")));
        let kept = names.find(|kept| !kept.exists());
        rewritten.kept = kept.ok_or_else(|| never!("some second of all to come has no folder yet"))?;
        rename(&from, &rewritten.kept)?;
        finish(&options.dir)?;
        damage::forget(&options.dir)?;
        Ok(rewritten)
    }
}

/// Puts a tree in place that was rewritten, if the one before has been put aside. While that is there it is the one
/// that counts, and continues: what was written of another is old then, whole or not.
pub(crate) fn finish(dir: &Path) -> Result<(), StoreError> {
    let (tree, rewritten) = (dir.join("tree"), dir.join(REWRITTEN));
    if tree.exists() {
        return match fs::remove_dir_all(&rewritten) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(StoreError::io("remove", &rewritten, error))
            }
            _ => Ok(()),
        };
    }
    if !rewritten.join(COMPLETE).exists() {
        return Ok(());
    }
    rename(&rewritten, &tree)?;
    let complete = tree.join(COMPLETE);
    fs::remove_file(&complete).map_err(|error| StoreError::io("remove", &complete, error))
}

fn copy(
    store: &Store,
    options: &StoreOptions,
    to: &Path,
    rewritten: &mut Rewritten,
    told: &mut impl FnMut(u64),
) -> Result<(), StoreError> {
    let error = |error: &rocksdb::Error| StoreError::tree("rewrite", &options.dir, error);
    let budget = Budget::new(options.budget_bytes);
    let tree_options = tuning::tree_options(&budget, Direct::NOTHING).map_err(|found| error(&found))?;
    let families = std::iter::once((OWN_FAMILY, None))
        .chain(Family::ALL.into_iter().map(|family| (family.name(), Some(family))))
        .map(|(name, family)| ColumnFamilyDescriptor::new(name, tuning::family_options(family, &budget)));
    let db = DB::open_cf_descriptors(&tree_options, to, families).map_err(|found| error(&found))?;
    let mut writes = WriteOptions::default();
    writes.disable_wal(true);
    let snapshot = store.snapshot();
    let mut batch = WriteBatch::default();
    batch.put(POSITION_KEY, store.position()?.0.to_be_bytes());
    for family in Family::ALL.into_iter().filter(|family| !family.is_derived()) {
        let handle = db.cf_handle(family.name());
        let handle = handle.ok_or_else(|| never!("the new tree has every family", "{family}"))?;
        let mut scan = snapshot.tolerant(family, KeyRange::ALL);
        while let Some(step) = scan.next() {
            match step {
                ScanStep::Gap(gap) => rewritten.gaps.push(gap),
                ScanStep::Entry(key, value) => {
                    batch.put_cf(handle, key, value);
                    rewritten.entries += 1;
                    rewritten.bytes += (key.len() + value.len()) as u64;
                    if batch.size_in_bytes() >= WRITE_BYTES {
                        db.write_opt(std::mem::take(&mut batch), &writes).map_err(|found| error(&found))?;
                        told(rewritten.bytes);
                    }
                }
            }
        }
    }
    db.write_opt(batch, &writes).map_err(|found| error(&found))?;
    let names = std::iter::once(OWN_FAMILY).chain(Family::ALL.into_iter().map(Family::name));
    let handles: Vec<_> = names.filter_map(|name| db.cf_handle(name)).collect();
    let mut flush = FlushOptions::default();
    flush.set_wait(true);
    db.flush_cfs_opt(&handles, &flush).map_err(|found| error(&found))?;
    drop(handles);
    drop(db);
    let complete = to.join(COMPLETE);
    let written = File::create(&complete).and_then(|file| file.sync_all());
    written.and_then(|()| sync_folder(to)).map_err(|error| StoreError::io("write", &complete, error))
}

/// Names the newest list of files again where the file that names it is missing or damaged: RocksDB writes a whole list
/// before it names it.
fn restore_current(dir: &Path) -> Result<(), StoreError> {
    let tree = dir.join("tree");
    let current = tree.join("CURRENT");
    let lists = |name: &str| name.strip_prefix("MANIFEST-").and_then(|number| number.parse::<u64>().ok());
    let named = fs::read_to_string(&current).unwrap_or_default();
    if named.ends_with('\n') && lists(named.trim_end()).is_some() && tree.join(named.trim_end()).exists() {
        return Ok(());
    }
    let found = fs::read_dir(&tree).map_err(|error| StoreError::io("read", &tree, error))?;
    let names = found.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let newest = names.filter_map(|name| Some((lists(&name)?, name))).max();
    let Some((_, newest)) = newest else { return Ok(()) };
    if current.exists() {
        rename(&current, &tree.join("CURRENT.damaged"))?;
    }
    tracing::warn!(
        newest,
        "the file that names the tree's list of files was damaged; it names the newest again"
    );
    let draft = tree.join("CURRENT.draft");
    let io = |error| StoreError::io("write", &current, error);
    fs::write(&draft, format!("{newest}\n")).and_then(|()| File::open(&draft)?.sync_all()).map_err(io)?;
    rename(&draft, &current)
}

fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(|error| StoreError::io("rename", from, error))?;
    let folder = to.parent().unwrap_or(to);
    sync_folder(folder).map_err(|error| StoreError::io("sync", folder, error))
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

impl Folder {
    /// Completes what a crash interrupted.
    pub(crate) fn finish_rewrite(&self) -> Result<(), StoreError> {
        finish(&self.dir)
    }
}

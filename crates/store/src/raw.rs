//! Looking into a store without opening it: what its files hold, for support.

use std::path::Path;

use rocksdb::{ColumnFamilyDescriptor, DB};

use crate::budget::Budget;
use crate::tree::{Direct, OWN_FAMILY, read_options};
use crate::{Family, StoreError, tuning};

/// Memory for blocks while looking.
const BUDGET_BYTES: u64 = 32 << 20;

/// The files of a store's tree, read only. Nothing is changed and no lock is taken, so that it may be looked at while
/// a server has it open; what the log has and the files do not have yet is not seen.
pub struct RawStore {
    db: DB,
}

impl RawStore {
    /// Opens the tree of the store in `dir`, also a damaged one.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] or [`StoreError::Tree`] if the tree's list of files cannot be read.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let budget = Budget::new(Some(BUDGET_BYTES));
        let failed = |error| StoreError::tree("look into", dir, &error);
        let mut options = tuning::tree_options(&budget, Direct::NOTHING).map_err(failed)?;
        options.create_if_missing(false);
        options.create_missing_column_families(false);
        options.set_paranoid_checks(false);
        let families = std::iter::once((OWN_FAMILY, None))
            .chain(Family::ALL.into_iter().map(|family| (family.name(), Some(family))))
            .map(|(name, family)| ColumnFamilyDescriptor::new(name, tuning::family_options(family, &budget)));
        let db =
            DB::open_cf_descriptors_read_only(&options, dir.join("tree"), families, false).map_err(failed)?;
        Ok(Self { db })
    }

    /// The value of a key.
    ///
    /// # Errors
    /// In RocksDB's words, why it cannot be read.
    pub fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let handle = self.db.cf_handle(family.name()).ok_or("the family is missing")?;
        self.db.get_cf_opt(handle, key, &read_options()).map_err(|error| error.to_string())
    }

    /// Calls `look` with each key from `from` up to, not including, `to`, until it answers false.
    ///
    /// # Errors
    /// In RocksDB's words, why the next key cannot be read.
    pub fn each(
        &self,
        family: Family,
        from: &[u8],
        to: &[u8],
        mut look: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), String> {
        let handle = self.db.cf_handle(family.name()).ok_or("the family is missing")?;
        let mut reads = read_options();
        reads.set_iterate_upper_bound(to);
        reads.fill_cache(false);
        let mut iterator = self.db.raw_iterator_cf_opt(handle, reads);
        iterator.seek(from);
        while let Some((key, value)) = iterator.item() {
            if !look(key, value) {
                return Ok(());
            }
            iterator.next();
        }
        iterator.status().map_err(|error| error.to_string())
    }

    /// The files that may have a key, newest level first.
    #[must_use]
    pub fn files_with(&self, family: Family, key: &[u8]) -> Vec<String> {
        let mut files = self.db.live_files().unwrap_or_default();
        files.retain(|file| {
            file.column_family_name == family.name()
                && file.start_key.as_deref().is_some_and(|start| start <= key)
                && file.end_key.as_deref().is_some_and(|end| key <= end)
        });
        files.sort_by_key(|file| file.level);
        files.into_iter().map(|file| file.name.trim_start_matches('/').to_owned()).collect()
    }
}

impl std::fmt::Debug for RawStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RawStore").field("path", &self.db.path()).finish()
    }
}

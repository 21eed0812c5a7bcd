//! What runs a store: checkpoints, backups, the archive, memory and sizes.

use std::time::Duration;

use crate::backup::BackupPoint;
use crate::damage::DamagedFile;
use crate::memory;
use crate::{Family, KeyWatch, LogFavor, Purpose, Reservation, Store, StoreError, Usage};

/// The running of a store, besides its reads and writes ([`Store::admin`]).
#[derive(Clone, Copy, Debug)]
pub struct Admin<'s> {
    pub(crate) store: &'s Store,
}

impl<'s> Admin<'s> {
    pub(crate) fn new(store: &'s Store) -> Self {
        Self { store }
    }

    /// What tells this store from every other one, also from copies of it that were restored: its identity, of 32
    /// hexadecimal digits, and after a `-` the key of its log, of 16.
    ///
    /// # Errors
    /// [`StoreError::Closed`], or that `store.format` cannot be read.
    pub fn history(&self) -> Result<String, StoreError> {
        Ok(format!("{}-{:016x}", self.identity()?, self.log_key()?))
    }

    /// Favors running or restarting from now on.
    ///
    /// # Errors
    /// What RocksDB reports.
    pub fn set_log_favor(&self, favor: LogFavor) -> Result<(), StoreError> {
        let core = self.store.core();
        core.tree.set_memtable_bytes(favor.memtable_bytes())?;
        core.redo.favor(favor);
        core.bell.ring();
        Ok(())
    }

    /// Files of the store that were missing or damaged when it was opened: what lies in them cannot be read.
    #[must_use]
    pub fn damaged_files(&self) -> &'s [DamagedFile] {
        &self.store.core().tree.damaged
    }

    /// Writes memtables to files and lets go of the log before that, so that a crash has less to read
    /// again. Commits go on meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Full`] or an error of the file system; nothing is lost then.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        self.store.core().checkpoint()
    }

    /// Makes a checkpoint of the tree's files next to them, for a backup: everything that was answered before this
    /// call, and what is derived from it. It costs hard links, and disk only for what changes while it is kept.
    /// With an archive, the log up to there is archived when this returns.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Closed`], [`StoreError::Log`] if the archive takes nothing, or an error
    /// of the file system.
    pub fn backup_point(&self) -> Result<BackupPoint, StoreError> {
        BackupPoint::take(self.store.core(), self.store.clock())
    }

    /// Copies everything that was answered before this call into the log's archive, if there is one.
    ///
    /// # Errors
    /// [`StoreError::Log`] if it is not there after the time that is given.
    pub fn archive_log(&self, limit: Duration) -> Result<(), StoreError> {
        self.store.core().archive_log(limit)
    }

    /// Sets the memory for blocks, memtables and all that is [reserved](Self::reserve), at least 16 MB. Blocks beyond it
    /// are dropped before this returns, and their memory is the system's again; memtables and what is reserved shrink as
    /// they are given back.
    pub fn set_budget(&self, bytes: u64) {
        let tree = &self.store.core().tree;
        let is_smaller = bytes < tree.budget.bytes();
        tree.budget.set(bytes);
        if is_smaller {
            memory::give_back();
        }
    }

    /// Makes long scans read this much ahead from now on; 0: as the budget allows. Merging follows when the store is opened
    /// again.
    pub fn set_read_ahead(&self, bytes: u64) {
        self.store.core().tree.budget.set_read_ahead(bytes);
    }

    /// Notes which keys that begin with `number`, four bytes, big-endian, are changed from now on, `max` of them.
    #[must_use]
    pub fn watch_keys(&self, number: u32, max: usize) -> KeyWatch {
        KeyWatch::watch(&self.store.core().tree.watched, number, max)
    }

    /// What tells the store's log from all others; a store that was restored begins another one.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    pub fn log_key(&self) -> Result<u64, StoreError> {
        Ok(self.store.core().committer.read().as_ref().ok_or(StoreError::Closed)?.log_key())
    }

    /// What tells this store from all others, 32 hexadecimal digits.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] or an error of the file system.
    pub fn identity(&self) -> Result<String, StoreError> {
        self.store.core().tree.folder.identity()
    }

    /// From now on reports syncs of the log that take so long or longer; zero: none.
    pub fn report_syncs_above(&self, time: Duration) {
        self.store.syncs().report_above(time);
    }

    /// Takes memory for something else than blocks and memtables from the budget.
    #[must_use]
    pub fn reserve(&self, purpose: Purpose, bytes: u64) -> Reservation {
        Reservation::new(&self.store.core().tree.budget, purpose, bytes)
    }

    /// What is reserved for a purpose, in bytes.
    #[must_use]
    pub fn reserved(&self, purpose: Purpose) -> u64 {
        self.store.core().tree.budget.reserved_for(purpose)
    }

    /// The memory for blocks, memtables and all that is reserved, in bytes.
    #[must_use]
    pub fn budget(&self) -> u64 {
        self.store.core().tree.budget.bytes()
    }

    /// What was read and written under keys that begin with `number`, four bytes, big-endian, since the store was opened.
    /// Contents, which users share, are not among it.
    #[must_use]
    pub fn usage(&self, number: u32) -> Usage {
        self.store.core().tree.accounts.usage(number)
    }

    /// About how many bytes of disk the keys from `from` up to, not including, `to` take. What is still in
    /// memtables only is left out.
    #[must_use]
    pub fn size_of(&self, family: Family, from: &[u8], to: &[u8]) -> u64 {
        let tree = &self.store.core().tree;
        let sizes = tree.db().get_approximate_sizes_cf(tree.family(family), &[rocksdb::Range::new(from, to)]);
        sizes.into_iter().sum()
    }
}

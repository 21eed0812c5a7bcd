//! What is derived from commits: it goes past the log, and can be made again.

use crate::ingest::{SortedFiles, Together};
use crate::{Batch, Family, Store, StoreError};

/// The derived families of a store ([`Store::derived`]).
#[derive(Clone, Copy, Debug)]
pub struct Derived<'s> {
    store: &'s Store,
}

impl<'s> Derived<'s> {
    pub(crate) fn new(store: &'s Store) -> Self {
        Self { store }
    }

    /// Changes derived families: visible as a whole when this returns, and on disk with some later flush.
    /// After a crash, the derived families stand as they stood after one of their changes, with all
    /// before it and none after, but for sorted files that came in later ([`bring_in`](Self::bring_in)). What a change
    /// is derived from must have been committed before.
    ///
    /// On a full disk it continues longer than commits do, for half of the reserve.
    ///
    /// # Errors
    /// [`StoreError::WrongFamily`] for a logged family, [`StoreError::Full`], [`StoreError::Failed`],
    /// [`StoreError::Closed`].
    #[allow(clippy::needless_pass_by_value, reason = "a batch is used up by writing it, here as in submit")]
    pub fn write(&self, batch: Batch) -> Result<(), StoreError> {
        if let Some(family) = batch.family_that_is(false) {
            return Err(StoreError::WrongFamily { family, operation: "derived().write" });
        }
        if batch.is_empty() {
            return Ok(());
        }
        let core = self.store.core();
        core.health.admit_on_reserve(&core.tree, batch.len_bytes())?;
        self.store.check_committer()?;
        let mut write = core.tree.start_write();
        write.add(batch.as_bytes())?;
        write.finish().inspect_err(|error| self.store.note_failure(error))
    }

    /// Writes entries of a derived family into sorted files, which are not part of the store before
    /// [`bring_in`](Self::bring_in). Keys must come in strictly ascending order.
    ///
    /// # Errors
    /// [`StoreError::Unsorted`], [`StoreError::WrongFamily`], [`StoreError::Full`], or an error of the
    /// file system.
    pub fn sort(
        &self,
        family: Family,
        sorted: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<SortedFiles, StoreError> {
        if !family.is_derived() {
            return Err(StoreError::WrongFamily { family, operation: "derived().sort" });
        }
        let core = self.store.core();
        // As other derived changes, these go on longer than commits do when the disk is full.
        core.health.admit_on_reserve(&core.tree, 0)?;
        SortedFiles::write(&core.tree, family, sorted)
    }

    /// Brings sorted files in, between which no key may come twice; those of one family at once, one family after the
    /// other. They are on disk when this returns, and so is every change of derived families that was done before the
    /// call. Who writes meanwhile hardly waits.
    ///
    /// # Errors
    /// [`StoreError::Full`], or an error of the file system. Some of the files may be in then.
    #[allow(clippy::needless_pass_by_value, reason = "files are used up by bringing them in")]
    pub fn bring_in(&self, files: Vec<SortedFiles>) -> Result<(), StoreError> {
        self.store.check_committer()?;
        let mut together = Together::of(&files);
        if together.is_empty() {
            return Ok(());
        }
        // What was written before is on the disk before the files are.
        let tree = &self.store.core().tree;
        tree.flush()?;
        together.bring_in_at_once(tree)?;
        if together.is_empty() {
            return Ok(());
        }
        // Where somebody has written between the keys of the files, the tree flushes while all writes wait: the less there
        // is left to flush, the shorter.
        tree.flush()?;
        together.bring_in(tree)
    }
}

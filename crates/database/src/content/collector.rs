//! Removes contents that no document refers to any more.
//!
//! An update that takes a reference away notes the content as collectable in the same batch, so that
//! nothing has to be searched. A reference of a database that was dropped does not count.

use std::collections::HashSet;

use scrinium_store::{Batch, Direction, Family, KeyRange};

use super::record::{Placement, Record};
use super::{Contents, hex, object};
use crate::error::Result;
use crate::keys::{self, Digest};

/// How many contents one call looks at, so that a caller can stop in between.
const AT_ONCE: usize = 1000;

/// What one call of [`Databases::collect_contents`](crate::Databases::collect_contents) did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Contents looked at.
    pub examined: u64,
    /// Contents removed.
    pub removed: u64,
    /// Bytes of them, uncompressed.
    pub removed_bytes: u64,
}

impl Contents {
    /// Looks at the contents noted as collectable and removes those without a reference.
    pub(crate) fn collect(&self) -> Result<Collected> {
        let mut collected = Collected::default();
        let mut databases = HashSet::new();
        for digest in self.collectable()? {
            collected.examined += 1;
            self.collect_one(&digest, &mut databases, &mut collected)?;
        }
        Ok(collected)
    }

    fn collectable(&self) -> Result<Vec<Digest>> {
        let (from, to) = keys::collectable_range();
        let snapshot = self.store.snapshot();
        let mut cursor =
            snapshot.cursor(Family::Point, KeyRange { from: &from, to: Some(&to) }, Direction::Forward);
        let mut digests = Vec::new();
        while digests.len() < AT_ONCE
            && let Some((key, _)) = cursor.next()?
        {
            digests.extend(keys::digest_of(key));
        }
        Ok(digests)
    }

    fn collect_one(
        &self,
        digest: &Digest,
        databases: &mut HashSet<u32>,
        collected: &mut Collected,
    ) -> Result<()> {
        // Held until the removal is stored: whoever pins the content later finds it gone and writes it anew.
        let Some(_collecting) = self.collecting(digest) else { return Ok(()) };
        let mut batch = Batch::for_removing();
        let referenced = self.is_referenced(digest, databases, &mut batch)?;
        batch.delete(Family::Point, &keys::collectable(digest));
        let key = keys::content(digest);
        if !referenced && let Some(stored) = self.store.get(Family::Blob, &key)? {
            batch.delete(Family::Blob, &key);
            match Record::decode(&stored) {
                Some(record) => {
                    collected.removed_bytes += record.length;
                    match record.placement {
                        Placement::Inline(_) => {}
                        Placement::Upload { upload, .. } => {
                            let (from, to) = keys::chunk_range(upload);
                            batch.delete_range(Family::Blob, &from, &to);
                        }
                        Placement::Object(object) => {
                            let before = self.object_state(digest)?;
                            object::release(&mut batch, digest, (object, record.length), before);
                            self.places().totals.add(-1, object.stored_bytes);
                        }
                    }
                }
                None => tracing::warn!(digest = hex(digest), "removing a content that cannot be read"),
            }
            collected.removed += 1;
        }
        self.store.commit(batch)?;
        if referenced && !self.is_referenced(digest, &mut HashSet::new(), &mut Batch::new())? {
            // The last reference went, and left a note, just before this one was removed. A note helps to make space, too.
            let mut batch = Batch::for_removing();
            batch.put(Family::Point, &keys::collectable(digest), &[]);
            self.store.commit(batch)?;
        }
        Ok(())
    }

    /// Whether a document of a database that is there refers to the content. References of databases
    /// that are gone are removed with `batch`.
    pub(super) fn is_referenced(
        &self,
        digest: &Digest,
        databases: &mut HashSet<u32>,
        batch: &mut Batch,
    ) -> Result<bool> {
        let (from, to) = keys::reference_range(digest);
        let snapshot = self.store.snapshot();
        let mut cursor =
            snapshot.cursor(Family::Point, KeyRange { from: &from, to: Some(&to) }, Direction::Forward);
        while let Some((key, _)) = cursor.next()? {
            let Some(number) =
                key.get(37..41).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes)
            else {
                continue;
            };
            if databases.contains(&number) || self.store.contains(Family::Meta, &keys::header(number))? {
                databases.insert(number);
                return Ok(true);
            }
            batch.delete(Family::Point, key);
        }
        Ok(false)
    }
}

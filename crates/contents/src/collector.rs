//! Removes contents that no document refers to any more.
//!
//! An update that takes a reference away notes the content as collectable in the same batch, so that
//! nothing has to be searched. A reference of a database that was dropped does not count.

use std::collections::HashSet;

use scrinium_store::{Batch, Direction, Family, KeyRange};

use crate::contents::Contents;
use crate::error::Result;
use crate::hex::hex;
use crate::keys::{self, Digest};
use crate::object;
use crate::pins::Collecting;
use crate::record::{Placement, Record};

/// How many contents one call looks at, so that a caller can stop in between.
const AT_ONCE: usize = 1000;

/// How many of them one commit removes: each costs its share of a sync, and who needs one of them again waits for all.
const COMMITTED_AT_ONCE: usize = 250;

/// References of databases that are gone, in bytes of a batch, with which a commit is large enough.
const BATCH_BYTES: usize = 256 * 1024;

/// What one call of [`Contents::collect`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Contents looked at.
    pub examined: u64,
    /// Contents removed.
    pub removed: u64,
    /// Bytes of them, uncompressed.
    pub removed_bytes: u64,
}

impl Collected {
    /// Adds what another call did.
    pub const fn add(&mut self, other: Self) {
        self.examined += other.examined;
        self.removed += other.removed;
        self.removed_bytes += other.removed_bytes;
    }
}

/// What one commit removes.
struct Removal<'a> {
    batch: Batch,
    collected: Collected,
    /// Held until the removal is stored: anyone who pins one of these contents later finds it gone and writes it again.
    collecting: Vec<Collecting<'a>>,
    /// Contents that a document refers to, whose notes go.
    referenced: Vec<Digest>,
    /// Sizes of the objects that nobody needs any more.
    objects: Vec<u64>,
}

impl Removal<'_> {
    fn new() -> Self {
        Self {
            batch: Batch::for_removing(),
            collected: Collected::default(),
            collecting: Vec::new(),
            referenced: Vec::new(),
            objects: Vec::new(),
        }
    }

    fn is_large(&self) -> bool {
        self.collecting.len() >= COMMITTED_AT_ONCE || self.batch.len_bytes() >= BATCH_BYTES
    }
}

impl Contents {
    /// Looks at the contents noted as collectable, at most a thousand, and removes those without a reference.
    ///
    /// # Errors
    /// What the store reports.
    pub fn collect(&self) -> Result<Collected> {
        let mut collected = Collected::default();
        let mut databases = HashSet::new();
        let mut digests = self.collectable()?.into_iter();
        while digests.len() > 0 {
            collected.add(self.collect_some(&mut digests, &mut databases)?);
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

    /// Removes some contents by one commit.
    fn collect_some(
        &self,
        digests: &mut impl Iterator<Item = Digest>,
        databases: &mut HashSet<u32>,
    ) -> Result<Collected> {
        let mut removal = Removal::new();
        let mut gathered = Ok(());
        while gathered.is_ok()
            && !removal.is_large()
            && let Some(digest) = digests.next()
        {
            removal.collected.examined += 1;
            gathered = self.collect_one(&digest, databases, &mut removal);
        }
        // Those before one that cannot be read are removed all the same.
        if !removal.batch.is_empty() {
            self.store.commit(removal.batch)?;
        }
        removal.objects.iter().for_each(|stored_bytes| self.places().totals.add(-1, *stored_bytes));
        self.note_anew(&removal.referenced)?;
        gathered.map(|()| removal.collected)
    }

    fn collect_one<'a>(
        &'a self,
        digest: &Digest,
        databases: &mut HashSet<u32>,
        removal: &mut Removal<'a>,
    ) -> Result<()> {
        let Some(collecting) = self.collecting(digest) else { return Ok(()) };
        removal.collecting.push(collecting);
        let key = keys::content(digest);
        if self.is_referenced(digest, databases, &mut removal.batch)? {
            removal.batch.delete(Family::Point, &keys::collectable(digest));
            removal.referenced.push(*digest);
            return Ok(());
        }
        // Read before anything is noted of it: one that cannot be read keeps its note.
        let stored = self.store.get(Family::Blob, &key)?;
        let record = stored.as_deref().and_then(Record::decode);
        let before = match record.as_ref().and_then(Record::object) {
            Some(_) => self.object_state(digest)?,
            None => None,
        };
        let Removal { batch, collected, objects, .. } = removal;
        batch.delete(Family::Point, &keys::collectable(digest));
        if stored.is_none() {
            return Ok(());
        }
        batch.delete(Family::Blob, &key);
        collected.removed += 1;
        let Some(record) = record else {
            tracing::warn!(digest = hex(digest), "removing a content that cannot be read");
            return Ok(());
        };
        collected.removed_bytes += record.length;
        match record.placement {
            Placement::Inline(_) => {}
            Placement::Upload { upload, .. } => {
                let (from, to) = keys::chunk_range(upload);
                batch.delete_range(Family::Blob, &from, &to);
            }
            Placement::Object(object) => {
                object::release(batch, digest, (object, record.length), before, self.now_ms());
                objects.push(object.stored_bytes);
            }
        }
        Ok(())
    }

    /// Notes contents again whose last reference went, and left a note, just before their note was removed.
    fn note_anew(&self, referenced: &[Digest]) -> Result<()> {
        // A note helps to make space, too.
        let mut batch = Batch::for_removing();
        for digest in referenced {
            if !self.is_referenced(digest, &mut HashSet::new(), &mut Batch::new())? {
                batch.put(Family::Point, &keys::collectable(digest), &[]);
            }
        }
        if !batch.is_empty() {
            self.store.commit(batch)?;
        }
        Ok(())
    }

    /// Whether a document of a database that is there refers to the content. References of databases
    /// that are gone are removed with `batch`.
    pub(crate) fn is_referenced(
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

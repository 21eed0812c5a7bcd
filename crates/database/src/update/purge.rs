//! Purging by hand: leaves of a document are taken away as if they had never been.
//!
//! Whatever follows the changes must find out that they are gone, so that a document of which nothing is left becomes a
//! tombstone with a revision of its own, which compaction purges as others.

use std::collections::HashSet;
use std::sync::Arc;

use scrinium_document::{FieldsBuf, Revision, RevisionTree, new_revision};
use scrinium_store::Family;

use super::document::{Before, TreeChange};
use super::{MAX_EDITS, Transaction, check_number};
use crate::compaction_record::{CompactionRecord, PurgedDocument};
use crate::database::Database;
use crate::edit::SideEffects;
use crate::error::Result;
use crate::keys;
use crate::leaf::LeafParts;
use crate::writer::PrefetchedHeads;

/// What a document takes in a batch, about.
const DOCUMENT_BYTES: usize = 1024;

/// A document, and revisions of it that are to be purged, or were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgedLeaves {
    /// The document.
    pub id: String,
    /// Its revisions.
    pub revisions: Vec<String>,
}

impl Database {
    /// Purges leaves of documents, and their history as far as it is no other leaf's. Revisions that are no leaves are
    /// left out. What is purged is not told to replicas, which may bring it again. It is counted and remembered with the
    /// tombstones that are purged for their age. Durable when it returns.
    ///
    /// # Errors
    /// The database is gone, more than [`MAX_EDITS`] documents, an invalid revision, and what the store reports;
    /// nothing was purged then.
    pub fn purge_leaves(self: &Arc<Self>, wanted: Vec<PurgedLeaves>) -> Result<Vec<PurgedLeaves>> {
        let _stays = match self.pin_location() {
            Ok(stays) => stays,
            Err(there) => return there.purge_leaves(wanted),
        };
        self.check_there()?;
        self.check_not_held("its documents can be purged")?;
        let _purges = self.lock_purges();
        let (record, limit) = (self.compaction_record()?, self.purged_limit()?);
        check_number(wanted.len().min(MAX_EDITS + 1))?;
        let mut parsed = Vec::with_capacity(wanted.len());
        for PurgedLeaves { id, revisions } in wanted {
            let revisions = revisions.iter().map(|text| Revision::parse(text));
            parsed.push((id, revisions.collect::<std::result::Result<Vec<Revision>, _>>()?));
        }
        let prefetched = PrefetchedHeads::read(self, parsed.iter().map(|(id, _)| id.as_str()))?;
        let room_bytes = parsed.len().saturating_mul(DOCUMENT_BYTES);
        let update = self.transact(prefetched, room_bytes, |transaction| {
            transaction.batch.frees_space();
            let purged =
                transaction.each(parsed, |transaction, (id, revisions)| transaction.purge(id, &revisions));
            transaction.remember(purged.iter().flatten(), record, limit);
            purged
        })?;
        update.wait()?.into_iter().collect()
    }
}

impl Transaction<'_> {
    fn purge(&mut self, id: String, named: &[Revision]) -> Result<PurgedLeaves> {
        // It may be held since a moment.
        self.database.check_not_held("its documents can be purged")?;
        let mut before = self.take_before(&id)?;
        let result = self.purge_taken(&id, named, &mut before);
        self.put_back(&id, before);
        Ok(PurgedLeaves { revisions: result?, id })
    }

    /// Adds what was purged to what is remembered.
    fn remember<'a>(
        &mut self,
        purged: impl Iterator<Item = &'a PurgedLeaves>,
        mut record: CompactionRecord,
        limit: u64,
    ) {
        let number = self.database.number();
        let before = record.purged_documents;
        for PurgedLeaves { id, revisions } in purged.filter(|purged| !purged.revisions.is_empty()) {
            record.purged_documents += 1;
            let revisions = revisions.iter().filter_map(|text| Revision::parse(text).ok()).collect();
            let document = PurgedDocument { id: id.clone(), revisions };
            let key = keys::purged(number, record.purged_documents);
            self.batch.put(Family::Churn, &key, &document.encode());
            if let Some(forgotten) = record.purged_documents.checked_sub(limit) {
                self.batch.delete(Family::Churn, &keys::purged(number, forgotten));
            }
        }
        if record.purged_documents > before {
            self.batch.put(Family::Meta, &keys::compaction(number), &record.encode());
        }
    }

    fn purge_taken(&mut self, id: &str, named: &[Revision], before: &mut Before) -> Result<Vec<String>> {
        let named: HashSet<&Revision> = named.iter().collect();
        let leaves = before.head.tree.leaves().map(|leaf| leaf.revision.clone());
        let gone: Vec<Revision> = leaves.filter(|leaf| named.contains(leaf)).collect();
        let revisions = gone.iter().map(Revision::to_string).collect();
        if gone.is_empty() {
            return Ok(revisions);
        }
        let mut tree = before.head.tree.clone();
        tree.forget_leaves(&gone.iter().cloned().collect());
        let leaf = if tree.is_empty() { Some(self.bare_tombstone(before, &mut tree)?) } else { None };
        if tree.leaves().all(|leaf| leaf.deleted) {
            // Who has the id later is somebody else.
            self.records.delete(&mut self.batch, keys::secret(self.database.number(), id));
        }
        let created_ms = before.head.created_ms;
        self.write(id, before, TreeChange { tree, created_ms, leaf, gone: &gone })?;
        self.follow(id, &before.head.tree, &SideEffects::default());
        Ok(revisions)
    }

    /// A tombstone that follows nothing.
    fn bare_tombstone(&self, before: &Before, tree: &mut RevisionTree) -> Result<(Revision, bytes::Bytes)> {
        let fields = FieldsBuf::default();
        let revision = new_revision(None, true, fields.fields(), &[]);
        tree.add_edit(None, revision.clone(), true)?;
        let parts = LeafParts {
            revision: &revision,
            deleted: true,
            created_ms: before.head.created_ms,
            modified_ms: self.now_ms,
            attachments: &[],
            fields: fields.as_bytes(),
        };
        let record = parts.encode().into();
        Ok((revision, record))
    }
}

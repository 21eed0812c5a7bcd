//! The leaves of a document other than its winner, as views and Mango indexes tell them.
//!
//! An index has one entry for all who may read the document. So it tells only of those leaves that every one of them
//! may read.

use scrinium_store::{Direction, Family, KeyRange};

use crate::access::readers::digests_of;
use crate::database::Database;
use crate::error::Result;
use crate::keys;
use crate::leaf::Leaf;

/// Revisions other than the winner, the highest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherLeaves {
    /// `_conflicts`.
    pub conflicts: Vec<String>,
    /// `_deleted_conflicts`.
    pub deleted_conflicts: Vec<String>,
}

/// A document with leaves that exclude each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictedDocument {
    /// The document.
    pub id: String,
    /// Its leaves but the winner.
    pub conflicts: Vec<String>,
}

impl Database {
    /// Whether any document of the database has several leaves: one look, so that the documents of a database without
    /// conflicts need none of their own.
    pub fn has_losers(&self) -> Result<bool> {
        let (from, to) = keys::loser_range(self.number());
        self.has_key_within(&from, &to)
    }

    /// What an index tells of the leaves other than the winner.
    pub fn other_leaves(&self, id: &str, winner: &Leaf<'_>) -> Result<OtherLeaves> {
        let from = keys::losers(self.number(), id);
        let mut others = OtherLeaves::default();
        if !self.has_key_within(&from, &keys::successor(&from))? {
            return Ok(others);
        }
        let snapshot = self.store().snapshot();
        let Some(head) = self.head(&snapshot, id)? else { return Ok(others) };
        let readers = digests_of(self, id, winner)?;
        for (place, leaf) in head.tree.leaves().enumerate() {
            let revision = leaf.revision.to_string();
            if revision == winner.revision {
                continue;
            }
            let stored = self.leaf_record(&snapshot, id, (leaf.revision, place == 0))?;
            let is_told = match (digests_of(self, id, &Leaf::decode(id, &stored)?)?, &readers) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(of_leaf), Some(of_winner)) => of_winner.is_subset(&of_leaf),
            };
            match (is_told, leaf.deleted) {
                (false, _) => {}
                (true, false) => others.conflicts.push(revision),
                (true, true) => others.deleted_conflicts.push(revision),
            }
        }
        Ok(others)
    }

    /// Documents with conflicts that nobody has settled, at most `documents_max`, in no order that means anything but always the same;
    /// and whether there are more, which are had by asking again for those after the last. The cost goes with the leaves
    /// other than winners, not with the documents.
    pub fn conflicted_documents(
        &self,
        after: Option<&str>,
        documents_max: usize,
    ) -> Result<(Vec<ConflictedDocument>, bool)> {
        let snapshot = self.store().snapshot();
        let (first, to) = keys::loser_range(self.number());
        let from = after.map_or(first, |id| keys::successor(&keys::losers(self.number(), id)));
        let mut cursor =
            snapshot.cursor(Family::Scan, KeyRange { from: &from, to: Some(&to) }, Direction::Forward);
        let mut found = Vec::new();
        loop {
            let Some((key, _)) = cursor.next()? else { return Ok((found, false)) };
            let Some(id) = keys::id_of_loser(key).map(str::to_owned) else { continue };
            let behind = keys::successor(&keys::losers(self.number(), &id));
            if let Some(head) = self.head(&snapshot, &id)? {
                let living = head.tree.leaves().filter(|leaf| !leaf.deleted);
                let conflicts: Vec<String> = living.skip(1).map(|leaf| leaf.revision.to_string()).collect();
                if !conflicts.is_empty() {
                    if found.len() >= documents_max {
                        return Ok((found, true));
                    }
                    found.push(ConflictedDocument { id, conflicts });
                }
            }
            cursor.seek(&behind);
        }
    }

    /// The number of a document's last change.
    pub fn change_number_of(&self, id: &str) -> Result<Option<u64>> {
        Ok(self.head(&self.store().snapshot(), id)?.map(|head| head.change_number))
    }

    fn has_key_within(&self, from: &[u8], to: &[u8]) -> Result<bool> {
        let snapshot = self.store().snapshot();
        let range = KeyRange { from, to: Some(to) };
        let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
        Ok(cursor.next()?.is_some())
    }
}

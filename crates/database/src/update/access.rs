//! Whether the one who edits may replace what an edit replaces, wins over, or takes content from.

use std::collections::{BTreeSet, HashMap, HashSet};

use scrinium_document::Revision;

use super::Transaction;
use super::document::Before;
use crate::access::readable::hidden_leaves;
use crate::edit::Prepared;
use crate::edit_mode::EditMode;
use crate::error::{DatabaseError, Result};
use crate::leaf::{Leaf, StoredAttachment};

/// What the one who edits may do with the leaves of a document, as far as it was looked at. All edits of an update come from
/// one person.
#[derive(Default)]
pub(super) struct LeafRights {
    readable: HashMap<Revision, bool>,
    /// By what takes their place: something else, or a tombstone.
    replaceable: [HashSet<Revision>; 2],
}

impl Transaction<'_> {
    /// Whether the one who edits may replace what the edit replaces. A replicated edit may win over any leaf, so that all
    /// of them count. What the one who edits may not read is, to them, another edit that was faster.
    pub(super) fn check_access(
        &mut self,
        edit: &Prepared,
        before: &Before,
        parent: Option<&Revision>,
    ) -> Result<()> {
        if edit.access.is_everything() {
            return Ok(());
        }
        let replicated = self.mode == EditMode::Replicated;
        if replicated && before.is_changed && self.may_replace_all(edit, before) {
            return Ok(());
        }
        let replaces = |leaf: &Revision| replicated || Some(leaf) == parent;
        let hidden = self.hidden_leaves(edit, before)?;
        let mut is_new = true;
        for (place, leaf) in before.head.tree.leaves().enumerate() {
            if !replaces(leaf.revision) {
                continue;
            }
            is_new = false;
            if hidden.contains(leaf.revision) {
                return Err(if replicated { unwritable(&edit.id) } else { DatabaseError::Conflict });
            }
            self.check_replaceable(edit, before, (leaf.revision, place == 0))?;
        }
        if is_new { edit.access.check_create(&edit.id) } else { Ok(()) }
    }

    /// Whether the one who edits may replace every leaf. What was found for earlier edits of the update is not asked again.
    fn may_replace_all(&mut self, edit: &Prepared, before: &Before) -> bool {
        let mut rights = self.rights.remove(&edit.id).unwrap_or_default();
        let [others, tombstones] = &mut rights.replaceable;
        let known = if edit.deleted { tombstones } else { others };
        let mut all = true;
        for (leaf, is_winner) in before.head.tree.unordered_leaves() {
            if known.contains(leaf.revision) {
                continue;
            }
            if self.check_replaceable(edit, before, (leaf.revision, is_winner)).is_err() {
                all = false;
                break;
            }
            known.insert(leaf.revision.clone());
        }
        self.rights.insert(edit.id.clone(), rights);
        all
    }

    /// Whether the one who edits may have `winner` win from now on: an edit of a leaf that lost may win over one that it
    /// does not name.
    pub(super) fn check_win(
        &mut self,
        edit: &Prepared,
        before: &Before,
        parent: Option<&Revision>,
        winner: Option<&Revision>,
    ) -> Result<()> {
        let old = before.head.tree.winner().map(|winner| winner.revision);
        let is_another = old != parent && old != winner;
        match old.filter(|_| is_another && !edit.access.is_everything()) {
            None => Ok(()),
            Some(old) if self.hidden_leaves(edit, before)?.contains(old) => Err(DatabaseError::Conflict),
            Some(old) => self.check_replaceable(edit, before, (old, true)),
        }
    }

    fn check_replaceable(&self, edit: &Prepared, before: &Before, leaf: (&Revision, bool)) -> Result<()> {
        let bytes = self.known_leaf(&edit.id, before, leaf)?;
        let leaf = Leaf::decode(&edit.id, &bytes)?;
        let leaf = edit.access.readable(self.database, &edit.id, leaf)?.ok_or(DatabaseError::Conflict)?;
        edit.access.check_edit(self.database, &leaf, edit.deleted)
    }

    fn hidden_leaves(&mut self, edit: &Prepared, before: &Before) -> Result<BTreeSet<Revision>> {
        if edit.access.reads_everything() {
            return Ok(BTreeSet::new());
        }
        let winner = before.head.tree.winner().map(|winner| winner.revision);
        let mut rights = self.rights.remove(&edit.id).unwrap_or_default();
        let hidden = hidden_leaves(&before.head.tree, |revision| {
            if let Some(known) = rights.readable.get(revision) {
                return Ok(*known);
            }
            let bytes = self.known_leaf(&edit.id, before, (revision, Some(revision) == winner))?;
            let leaf = Leaf::decode(&edit.id, &bytes)?;
            let may_read = edit.access.readable(self.database, &edit.id, leaf)?.is_some();
            if before.is_changed {
                rights.readable.insert(revision.clone(), may_read);
            }
            Ok(may_read)
        });
        if before.is_changed {
            self.rights.insert(edit.id.clone(), rights);
        }
        hidden
    }

    /// The attachments of a leaf that the edit may take over.
    pub(super) fn attachments_of(&self, edit: &Prepared, bytes: &[u8]) -> Result<Vec<StoredAttachment>> {
        let leaf = Leaf::decode(&edit.id, bytes)?;
        match edit.access.readable(self.database, &edit.id, leaf)? {
            Some(leaf) => leaf.attachments(&edit.id),
            None => Ok(Vec::new()),
        }
    }

    /// The attachments of all leaves that the edit may take them over from.
    pub(super) fn attachments_of_all_leaves(
        &self,
        edit: &Prepared,
        before: &Before,
    ) -> Result<Vec<StoredAttachment>> {
        let mut attachments = Vec::new();
        for (place, leaf) in before.head.tree.leaves().enumerate() {
            let bytes = self.known_leaf(&edit.id, before, (leaf.revision, place == 0))?;
            attachments.extend(self.attachments_of(edit, &bytes)?);
        }
        Ok(attachments)
    }
}

/// Said to one who brings a revision of a document that they may not read.
fn unwritable(id: &str) -> DatabaseError {
    DatabaseError::Forbidden { reason: format!("You may not write document {id}.") }
}

//! Whether the one who edits may replace what an edit replaces, wins over, or takes content from.

use std::collections::BTreeSet;

use scrinium_document::Revision;

use super::Transaction;
use super::document::Before;
use crate::access::readable::hidden_leaves;
use crate::edit::{EditMode, Prepared};
use crate::error::{DatabaseError, Result};
use crate::leaf::{Leaf, StoredAttachment};

impl Transaction<'_> {
    /// Whether the one who edits may replace what the edit replaces. A replicated edit may win over any leaf, so that all
    /// of them count. What the one who edits may not read is, to them, another edit that was faster.
    pub(super) fn check_access(
        &self,
        edit: &Prepared,
        before: &Before,
        parent: Option<&Revision>,
    ) -> Result<()> {
        if edit.access.is_everything() {
            return Ok(());
        }
        let replicated = self.mode == EditMode::Replicated;
        let replaces = |leaf: &Revision| replicated || Some(leaf) == parent;
        let hidden = self.hidden_leaves(edit, before)?;
        let mut is_new = true;
        for leaf in before.head.tree.leaves().filter(|leaf| replaces(leaf.revision)) {
            is_new = false;
            if hidden.contains(leaf.revision) {
                return Err(if replicated { unwritable(&edit.id) } else { DatabaseError::Conflict });
            }
            self.check_replaceable(edit, before, leaf.revision)?;
        }
        if is_new { edit.access.check_create(&edit.id) } else { Ok(()) }
    }

    /// Whether the one who edits may have `winner` win from now on: an edit of a leaf that lost may win over one that it
    /// does not name.
    pub(super) fn check_win(
        &self,
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
            Some(old) => self.check_replaceable(edit, before, old),
        }
    }

    fn check_replaceable(&self, edit: &Prepared, before: &Before, revision: &Revision) -> Result<()> {
        let bytes = self.leaf(&edit.id, before, revision)?;
        let bytes = bytes.ok_or_else(|| DatabaseError::damaged("revision", &edit.id))?;
        let leaf = Leaf::decode(&edit.id, &bytes)?;
        let leaf = edit.access.readable(self.database, &edit.id, leaf)?.ok_or(DatabaseError::Conflict)?;
        edit.access.check_edit(self.database, &leaf, edit.deleted)
    }

    fn hidden_leaves(&self, edit: &Prepared, before: &Before) -> Result<BTreeSet<Revision>> {
        if edit.access.reads_everything() {
            return Ok(BTreeSet::new());
        }
        hidden_leaves(&before.head.tree, |revision| {
            let bytes = self.leaf(&edit.id, before, revision)?;
            let bytes = bytes.ok_or_else(|| DatabaseError::damaged("revision", &edit.id))?;
            let leaf = Leaf::decode(&edit.id, &bytes)?;
            Ok(edit.access.readable(self.database, &edit.id, leaf)?.is_some())
        })
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
        for leaf in before.head.tree.leaves() {
            if let Some(bytes) = self.leaf(&edit.id, before, leaf.revision)? {
                attachments.extend(self.attachments_of(edit, &bytes)?);
            }
        }
        Ok(attachments)
    }
}

/// Said to one who brings a revision of a document that they may not read.
fn unwritable(id: &str) -> DatabaseError {
    DatabaseError::Forbidden { reason: format!("You may not write document {id}.") }
}

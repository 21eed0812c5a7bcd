//! One edit held against its document: revisions, attachments, and the keys that change.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use scrinium_assertion::{always, never};
use scrinium_document::{Merged, Revision, RevisionTree, is_design, new_revision};
use scrinium_store::Family;

use super::earlier::with_earlier;
use super::{Transaction, Updated};
use crate::access::restriction::restricts;
use crate::edit::{Prepared, PreparedAttachment, SideEffects};
use crate::edit_mode::EditMode;
use crate::error::{DatabaseError, Result};
use crate::folder::record::MemberChangeKind;
use crate::head::{ChangeRecord, Head};
use crate::hold;
use crate::keys::{self, Digest};
use crate::leaf::{Leaf, LeafParts, StoredAttachment};
use crate::quota::TOMBSTONE_BYTES;
use crate::validation::replaced;
use crate::writer::Pending;

/// The most revisions of a document for each leaf that it may have; a database's limit (`_revs_limit`) is for each branch.
const REVISIONS_OF_LEAF: usize = 20;

/// A document as it stands before an edit.
#[derive(Default)]
pub(super) struct Before {
    pub(super) head: Head,
    /// Leaves that were written since what the store shows, by revision.
    pub(super) leaves: BTreeMap<Revision, Bytes>,
    is_new: bool,
    /// An earlier edit of the same update has changed it.
    pub(super) is_changed: bool,
    /// Leaves that have come with the same update, and that nobody can have read.
    pub(super) came_together: BTreeSet<Revision>,
}

/// What an edit makes of a document's revisions.
pub(super) struct TreeChange<'a> {
    pub(super) tree: RevisionTree,
    pub(super) created_ms: u64,
    /// The new leaf, if there is one, and its record.
    pub(super) leaf: Option<(Revision, Bytes)>,
    /// Revisions that are no leaves any more, among others that were none.
    pub(super) gone: &'a [Revision],
}

/// A document that one update changes again and again. It is written with the first edit and then once more, with the last:
/// each time takes as long as the document has leaves.
pub(super) struct Rewritten {
    /// As it stands in the batch.
    head: Head,
    /// Its leaves there that the store does not show.
    leaves: BTreeMap<Revision, Bytes>,
    /// Contents of leaves that have come since.
    contents: BTreeSet<Digest>,
}

/// Which revisions are leaves, and which of them wins.
#[derive(PartialEq, Eq)]
pub(super) struct Leaves {
    winner: Option<(Revision, bool)>,
    pub(super) all: BTreeSet<Revision>,
}

/// What an edit added to its document's revisions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HistoryChange {
    Leaf,
    /// Only what lies behind leaves that were there.
    History,
    Nothing,
}

impl Leaves {
    fn of(tree: &RevisionTree) -> Self {
        Self {
            winner: tree.winner().map(|leaf| (leaf.revision.clone(), leaf.deleted)),
            all: tree.leaves().map(|leaf| leaf.revision.clone()).collect(),
        }
    }

    pub(super) fn is_winner(&self, revision: &Revision) -> bool {
        self.winner.as_ref().is_some_and(|(winner, _)| winner == revision)
    }

    fn alive(&self) -> bool {
        matches!(self.winner, Some((_, false)))
    }
}

impl Transaction<'_> {
    /// Adds one edit to the batch.
    pub(super) fn apply(&mut self, mut edit: Prepared) -> Result<Updated> {
        let effects = std::mem::take(&mut edit.effects);
        // A replicated edit may begin a document or continue one.
        let builds = (self.mode == EditMode::Interactive).then_some(edit.revision.is_some());
        edit.access.check_write(&edit.id, builds)?;
        let id = edit.id.clone();
        let mut before = self.take_before(&id)?;
        self.keeps_replaced = self.database.is_held() && !effects.is_of_flags;
        let applied = self.apply_to(&mut edit, &effects, &mut before);
        self.put_back(&id, before);
        applied
    }

    fn apply_to(
        &mut self,
        edit: &mut Prepared,
        effects: &SideEffects,
        before: &mut Before,
    ) -> Result<Updated> {
        let parent = self.parent(edit, before)?;
        self.check_access(edit, before, parent.as_ref())?;
        self.check_validated(edit, before)?;
        let parent_leaf = match &parent {
            Some(parent) if edit.builds_on_leaf() => self.leaf(&edit.id, before, parent)?,
            _ => None,
        };
        let no_fields = scrinium_document::FieldsBuf::default();
        let fields = match (&edit.fields, &parent_leaf) {
            (Some(fields), _) => fields.as_bytes(),
            (None, Some(bytes)) => Leaf::decode(&edit.id, bytes)?.field_bytes(),
            (None, None) => no_fields.as_bytes(),
        };
        let generation = match self.mode {
            EditMode::Interactive => parent.as_ref().map_or(0, Revision::generation).saturating_add(1),
            EditMode::Replicated => edit.revision.as_ref().map_or(1, Revision::generation),
        };
        let attachments = self.attachments(edit, before, parent_leaf.as_ref(), generation)?;
        let mut tree = before.head.tree.clone();
        let (revision, growth) = self.grow(&mut tree, edit, parent.as_ref(), fields, &attachments)?;
        if self.mode == EditMode::Interactive {
            self.check_win(edit, before, parent.as_ref(), tree.winner().map(|winner| winner.revision))?;
        }
        let updated = Updated { id: edit.id.clone(), revision: revision.to_string() };
        self.check_changes(&edit.id, &effects.folders)?;
        if growth == HistoryChange::Nothing {
            let is_alive = before.head.tree.winner().is_some_and(|winner| !winner.deleted);
            self.place_all(&edit.id, is_alive, &effects.folders);
            return Ok(updated);
        }
        // Last, so that nobody learns from its words about what they may not read.
        if let Some(refusal) = edit.validated.as_mut().and_then(|validated| validated.refusal.take()) {
            return Err(refusal);
        }
        tree.stem(usize::try_from(self.header.revision_limit).unwrap_or(usize::MAX));
        check_size(&before.head.tree, &tree, self.database.context.options().leaves_max)?;
        let created_ms = if before.is_new { self.now_ms } else { before.head.created_ms };
        let mut leaf = None;
        if growth == HistoryChange::Leaf {
            self.restricts = self.restricts || restricts(fields)?;
            let parts = LeafParts {
                revision: &revision,
                deleted: edit.deleted,
                created_ms,
                modified_ms: self.now_ms,
                attachments: &attachments,
                fields,
            };
            let record: Bytes = parts.encode().into();
            self.check_room(edit, before, &record)?;
            leaf = Some((revision.clone(), record));
            self.keep_secret(edit, tree.is_deleted())?;
            self.keep_contents(std::mem::take(&mut edit.outside), std::mem::take(&mut edit.attachments));
        }
        self.note_deletion(&edit.id, before, &tree)?;
        let gone = if self.mode == EditMode::Replicated {
            edit.path.get(1..).unwrap_or_default()
        } else {
            parent.as_slice()
        };
        self.write(&edit.id, before, TreeChange { tree, created_ms, leaf, gone })?;
        self.follow(&edit.id, &before.head.tree, effects);
        Ok(updated)
    }

    /// Whether the database may hold what the edit brings.
    fn check_room(&mut self, edit: &Prepared, before: &Before, record: &Bytes) -> Result<()> {
        if self.database.quota.read().is_none() {
            return Ok(());
        }
        let brought_bytes = Leaf::decode(&edit.id, record)?.external_bytes(&edit.id)?;
        let tree = &before.head.tree;
        let was_alive = tree.winner().is_some_and(|winner| !winner.deleted);
        // Of a document with conflicts the other leaves stay; of one that this update has changed nothing is counted yet.
        let replaced_bytes =
            if tree.leaf_count() == 1 && !before.is_changed { before.head.external_bytes } else { 0 };
        let spared_bytes = if edit.deleted { TOMBSTONE_BYTES } else { 0 };
        let is_new = !was_alive && !edit.deleted;
        let grows = brought_bytes > replaced_bytes.max(spared_bytes) || is_new;
        let held_bytes = self.header.external_bytes + self.uncounted_bytes;
        let bytes = held_bytes.saturating_sub(replaced_bytes).saturating_add(brought_bytes);
        self.database.check_quota(bytes, self.header.document_count + u64::from(is_new), grows)?;
        if before.is_changed {
            self.uncounted_bytes += brought_bytes;
        }
        Ok(())
    }

    /// Whether the edit replaces what it was validated against; else nothing of the update is stored, and it is validated
    /// again. What earlier edits of the update did does not count, as in CouchDB.
    fn check_validated(&mut self, edit: &Prepared, before: &Before) -> Result<()> {
        let Some(validated) = &edit.validated else { return Ok(()) };
        let old = if !before.is_changed {
            replaced(&before.head.tree, edit, self.mode)
        } else if let Some(pending) = self.writer.pending(&edit.id) {
            replaced(&pending.head.tree, edit, self.mode)
        } else {
            let head = self.prefetched.head(self.writer, &edit.id)?;
            head.and_then(|head| replaced(&head.tree, edit, self.mode))
        };
        if !validated.holds(self.database, old.as_ref()) {
            self.failure = Some(DatabaseError::Stale);
        }
        Ok(())
    }

    /// Folders and marks follow the edit that was just added to the batch.
    pub(super) fn follow(&mut self, id: &str, old_tree: &RevisionTree, effects: &SideEffects) {
        let Some(head) = self.changed.get(id).map(|pending| &pending.head) else {
            let fault = never!("a document that was just written is among those changed", "{id}");
            return self.note_failure::<()>(Err(fault.into()));
        };
        let (old, new, change_number) = (old_tree.winner(), head.tree.winner(), head.change_number);
        let was_alive = old.is_some_and(|old| !old.deleted);
        let is_alive = new.is_some_and(|new| !new.deleted);
        let is_another = old.map(|old| old.revision) != new.map(|new| new.revision);
        if is_another && !effects.is_of_flags {
            let kept = self.follow_with_outline(id, old_tree, (is_alive, effects));
            self.note_failure(kept);
        }
        let mut is_other_message = false;
        if is_another && was_alive && !effects.is_of_flags {
            match self.follow_with_rendering(id, is_alive) {
                Ok(is_other) => is_other_message = is_other && is_alive,
                Err(error) => self.note_failure::<()>(Err(error)),
            }
        }
        let followed = match (was_alive, is_alive) {
            (true, false) => self.leave_all(id, change_number),
            (true, true) if is_another => self.follow_edit(id, change_number, effects),
            _ => Ok(()),
        };
        self.note_failure(followed);
        if is_other_message {
            let renumbered = self.renumber(id);
            self.note_failure(renumbered);
        }
        self.place_all(id, is_alive, &effects.folders);
        if let Some(person) = effects.read_by.as_deref().filter(|_| is_alive && !is_design(id)) {
            // Beyond MAX_READERS the document stays unread for that person; the edit is stored all the same.
            drop(self.mark(person, id.to_owned(), true));
        }
    }

    /// Others have not read what a document has become, and its folders say that it has changed.
    fn follow_edit(&mut self, id: &str, change_number: u64, effects: &SideEffects) -> Result<()> {
        let memberships = self.memberships(id)?;
        if !effects.keeps_marks {
            self.unread_for_others((id, &memberships), effects.editor.as_deref(), change_number)?;
        }
        let kind = if effects.is_of_flags { MemberChangeKind::Flags } else { MemberChangeKind::Content };
        self.change_members((id, memberships), change_number, kind)
    }

    /// The document as the edits before this one leave it. What was taken is put back by [`Self::put_back`].
    pub(super) fn take_before(&mut self, id: &str) -> Result<Before> {
        if let Some(Pending { head, leaves }) = self.changed.remove(id) {
            return Ok(Before { head, leaves, is_changed: true, ..Before::default() });
        }
        if let Some(pending) = self.writer.pending(id) {
            let Pending { head, leaves } = pending.clone();
            return Ok(Before { head, leaves, ..Before::default() });
        }
        let head = self.prefetched.head(self.writer, id)?;
        // No document has changed later than its database.
        if head.as_ref().is_some_and(|head| head.change_number > self.header.change_number) {
            return Err(DatabaseError::damaged("revision tree", id));
        }
        let is_new = head.is_none();
        Ok(Before { head: head.unwrap_or_default(), is_new, ..Before::default() })
    }

    /// Puts back what was taken, unless an edit has put something else in its place.
    pub(super) fn put_back(&mut self, id: &str, before: Before) {
        if before.is_changed && !self.changed.contains_key(id) {
            self.changed.insert(id.to_owned(), Pending { head: before.head, leaves: before.leaves });
        }
    }

    /// The revision that an edit builds on: the one it names, or else the tombstone that it replaces.
    fn parent(&self, edit: &Prepared, before: &Before) -> Result<Option<Revision>> {
        match self.mode {
            EditMode::Replicated => Ok(edit.path.get(1).cloned()),
            EditMode::Interactive => {
                let named = edit.revision.as_ref();
                let parent = before.head.tree.edit_parent(named).map_err(|conflict| match named {
                    // No document has it, and none may ever have.
                    Some(named) if !named.may_be_brought() => invalid_revision(),
                    _ => conflict.into(),
                })?;
                Ok(parent.cloned())
            }
        }
    }

    /// Adds the edit's revision to the tree.
    fn grow(
        &self,
        tree: &mut RevisionTree,
        edit: &Prepared,
        parent: Option<&Revision>,
        fields: &[u8],
        attachments: &[StoredAttachment],
    ) -> Result<(Revision, HistoryChange)> {
        if self.mode == EditMode::Replicated {
            let revision = edit.revision.clone().ok_or_else(|| {
                DatabaseError::bad_request(
                    "A replicated document must bring its revision: `_rev` is missing.",
                )
            })?;
            let growth = match tree.merge(&edit.path, edit.deleted)? {
                Merged::NewLeaf | Merged::NewBranch => HistoryChange::Leaf,
                Merged::Joined => HistoryChange::History,
                Merged::InternalNode | Merged::AlreadyThere => HistoryChange::Nothing,
            };
            return Ok((revision, growth));
        }
        let decoded = scrinium_document::Fields::decode(fields)?;
        let digests: Vec<(&str, String)> = attachments
            .iter()
            .map(|attachment| (attachment.name.as_str(), attachment.digest_text()))
            .collect();
        let named: Vec<(&str, &str)> =
            digests.iter().map(|(name, digest)| (*name, digest.as_str())).collect();
        let revision = new_revision(parent, edit.deleted, decoded, &named);
        tree.add_edit(parent, revision.clone(), edit.deleted)?;
        Ok((revision, HistoryChange::Leaf))
    }

    /// The new leaf's attachments: those that came, and those of the parent that the edit names.
    fn attachments(
        &mut self,
        edit: &Prepared,
        before: &Before,
        parent_leaf: Option<&Bytes>,
        generation: u64,
    ) -> Result<Vec<StoredAttachment>> {
        let mut known = match parent_leaf {
            Some(bytes) => self.attachments_of(edit, bytes)?,
            None => Vec::new(),
        };
        let (mut attachments, mut has_looked_everywhere) = (Vec::new(), false);
        if edit.fields.is_none() {
            let keeps = |attachment: &StoredAttachment| {
                !edit.remove_attachments.contains(&attachment.name)
                    && edit.attachments.iter().all(|new| new.name() != attachment.name)
            };
            attachments = known.iter().filter(|attachment| keeps(attachment)).cloned().collect();
        }
        for attachment in &edit.attachments {
            attachments.push(match attachment {
                PreparedAttachment::New { name, content_type, revpos, content } => StoredAttachment {
                    name: name.clone(),
                    content_type: content_type.clone(),
                    revpos: revpos.filter(|_| self.mode == EditMode::Replicated).unwrap_or(generation),
                    length: content.length(),
                    decoded_length: content.decoded_length(),
                    digest: *content.name(),
                    md5: content.md5(),
                },
                PreparedAttachment::Stub { name, digest, revpos } => {
                    if self.mode == EditMode::Replicated && !has_looked_everywhere && known.is_empty() {
                        known = self.attachments_of_all_leaves(edit, before)?;
                        has_looked_everywhere = true;
                    }
                    let same = |attachment: &&StoredAttachment| {
                        attachment.name == *name
                            && match self.mode {
                                EditMode::Interactive => {
                                    revpos.is_none_or(|revpos| revpos == attachment.revpos)
                                }
                                EditMode::Replicated => {
                                    digest.as_ref().is_none_or(|digest| *digest == attachment.digest_text())
                                }
                            }
                    };
                    known.iter().find(same).cloned().ok_or_else(|| DatabaseError::MissingStub {
                        reason: format!("Invalid attachment stub in {} for {name}", edit.id),
                    })?
                }
            });
        }
        // The content of a stub may lose its last other reference to another update meanwhile.
        for attachment in &attachments {
            self.pins.push(self.database.context.contents.pin(&attachment.digest));
        }
        Ok(attachments)
    }

    /// The record of a leaf; `None` if the revision is no leaf.
    pub(super) fn leaf(&self, id: &str, before: &Before, revision: &Revision) -> Result<Option<Bytes>> {
        if let Some(bytes) = before.leaves.get(revision) {
            return Ok(Some(bytes.clone()));
        }
        let tree = &before.head.tree;
        if tree.leaf(revision).is_none() {
            return Ok(None);
        }
        let is_winner = tree.winner().is_some_and(|winner| winner.revision == revision);
        self.known_leaf(id, before, (revision, is_winner)).map(Some)
    }

    /// The record of a leaf, of which is known whether it wins.
    pub(super) fn known_leaf(
        &self,
        id: &str,
        before: &Before,
        (revision, is_winner): (&Revision, bool),
    ) -> Result<Bytes> {
        if let Some(bytes) = before.leaves.get(revision) {
            return Ok(bytes.clone());
        }
        let number = self.database.number();
        let key = if is_winner { keys::winner(number, id) } else { keys::loser(number, id, revision) };
        let stored = self.database.store().get(Family::Scan, &key)?;
        let stored = stored.ok_or_else(|| DatabaseError::damaged("revision", id))?;
        Ok(Bytes::copy_from_slice(&stored))
    }

    fn keep_contents(&mut self, outside: Vec<scrinium_contents::Content>, brought: Vec<PreparedAttachment>) {
        let attached = brought.into_iter().filter_map(|attachment| match attachment {
            PreparedAttachment::New { content, .. } => Some(content),
            PreparedAttachment::Stub { .. } => None,
        });
        for content in outside.into_iter().chain(attached) {
            if !self.brought.contains(content.name()) {
                content.write(&mut self.batch);
            }
            self.contents.push(content);
        }
    }

    /// Takes over what an edit changes: into the batch, or into its end where the document is in the batch already.
    pub(super) fn write(&mut self, id: &str, before: &mut Before, change: TreeChange<'_>) -> Result<()> {
        if before.is_changed {
            return self.write_later(id, before, change);
        }
        let mut leaves = before.leaves.clone();
        leaves.extend(change.leaf);
        let head = Head {
            change_number: self.header.change_number + 1,
            created_ms: change.created_ms,
            tree: change.tree,
            ..Head::default()
        };
        self.put_document(id, before, Pending { head, leaves })?;
        self.header.change_number += 1;
        self.design_changed |= is_design(id);
        Ok(())
    }

    fn write_later(&mut self, id: &str, before: &mut Before, change: TreeChange<'_>) -> Result<()> {
        let record = change.leaf.as_ref().map(|(_, record)| Leaf::decode(id, record)?.contents(id));
        let contents = record.transpose()?.unwrap_or_default();
        let rewritten = self.rewritten.entry(id.to_owned());
        let rewritten = rewritten.or_insert_with(|| Rewritten {
            head: before.head.clone(),
            leaves: before.leaves.clone(),
            contents: BTreeSet::new(),
        });
        rewritten.contents.extend(contents);
        let mut leaves = std::mem::take(&mut before.leaves);
        for revision in change.gone {
            leaves.remove(revision);
        }
        leaves.extend(change.leaf);
        let change_number = self.next_change();
        let (tree, created_ms) = (change.tree, change.created_ms);
        let head = Head { change_number, created_ms, tree, ..Head::default() };
        self.changed.insert(id.to_owned(), Pending { head, leaves });
        Ok(())
    }

    /// Writes the documents that were changed again and again, as the last edit left them.
    pub(super) fn write_rewritten(&mut self) -> Result<()> {
        self.keeps_replaced = self.database.is_held();
        for (id, Rewritten { head, mut leaves, contents }) in std::mem::take(&mut self.rewritten) {
            let pending = self.changed.remove(&id);
            let pending =
                pending.ok_or_else(|| never!("a document that is rewritten was changed", "{id}"))?;
            leaves.extend(pending.leaves.clone());
            let came_together = self.came_together(&id, &head)?;
            let before = Before { head, leaves, came_together, ..Before::default() };
            self.put_document(&id, &before, pending)?;
            let kept = self.changed.get(&id).map(|pending| pending.head.contents.as_slice());
            let passing: Vec<Digest> = contents
                .into_iter()
                .filter(|digest| kept.is_none_or(|kept| kept.binary_search(digest).is_err()))
                .collect();
            passing.iter().for_each(|digest| self.let_collect(digest));
        }
        Ok(())
    }

    /// The leaves of a head in the batch that this update has brought.
    fn came_together(&mut self, id: &str, head: &Head) -> Result<BTreeSet<Revision>> {
        if !self.database.history().is_on() {
            return Ok(BTreeSet::new());
        }
        let mut came: BTreeSet<Revision> = head.tree.leaves().map(|leaf| leaf.revision.clone()).collect();
        let stored = match self.writer.pending(id) {
            Some(pending) => Some(pending.head.clone()),
            None => self.prefetched.head(self.writer, id)?,
        };
        came.retain(|revision| stored.as_ref().is_none_or(|stored| stored.tree.leaf(revision).is_none()));
        Ok(came)
    }

    /// Puts a document into the batch as it is from now on.
    fn put_document(&mut self, id: &str, before: &Before, pending: Pending) -> Result<()> {
        let Pending { head: Head { change_number, created_ms, tree, .. }, mut leaves } = pending;
        let number = self.database.number();
        let old = Leaves::of(&before.head.tree);
        let new = Leaves::of(&tree);
        let mut superseded = self.superseded(id, before, &old, &new)?;
        let is_noted = self.deletions.contains_key(id) && !new.alive();
        if let Some((winner, false)) = old.winner.as_ref().filter(|_| is_noted) {
            let record = self.known_leaf(id, before, (winner, true))?;
            if self.keeps_deleted(id, winner, &record)?
                && superseded.iter().all(|(revision, _)| revision != winner)
            {
                superseded.push((winner.clone(), record));
            }
        }
        self.place_leaves(id, before, &old, &new, &mut leaves)?;
        let earlier = self.keep_earlier(id, before, &tree, superseded)?;
        let (contents, external_bytes, leaf_bytes) = self.contents_of(id, before, &tree, &leaves)?;
        let contents = with_earlier(contents, &earlier);
        self.refer(id, &before.head.contents, &contents);
        let (previous, last) = (before.head.change_number, self.header.change_number);
        let is_next = previous < change_number && change_number <= last.saturating_add(1);
        always!(
            is_next,
            "a document's change follows its last one",
            "{previous}, {change_number} of {last}: {id}"
        )?;

        if before.head.change_number > 0 {
            self.batch.delete(Family::Churn, &keys::change(number, before.head.change_number));
        }
        let earlier_bytes: u64 = earlier.iter().map(|body| body.stored_bytes).sum();
        let mut others_bytes = leaf_bytes + earlier_bytes + keys::head(number, id).len() as u64;
        if let Some((winner, deleted)) = &new.winner {
            let several_leaves = new.all.len() > 1;
            let change =
                ChangeRecord { id: id.to_owned(), winner: winner.clone(), deleted: *deleted, several_leaves };
            let (key, record) = (keys::change(number, change_number), change.encode());
            others_bytes += (key.len() + record.len()) as u64;
            self.batch.put(Family::Churn, &key, &record);
        }
        let mut head =
            Head { change_number, created_ms, external_bytes, contents, tree, stored_bytes: 0, earlier };
        self.batch.put(Family::Point, &keys::head(number, id), &head.encode_counting(others_bytes));

        self.header.external_bytes =
            self.header.external_bytes.saturating_sub(before.head.external_bytes) + external_bytes;
        self.header.stored_bytes =
            self.header.stored_bytes.saturating_sub(before.head.stored_bytes) + head.stored_bytes;
        self.count(id, &old, &new);
        self.conflicts.note(&before.head.tree, &head.tree);
        self.changed.insert(id.to_owned(), Pending { head, leaves });
        Ok(())
    }

    /// Winner and losers lie under different keys: puts each leaf where it now belongs.
    fn place_leaves(
        &mut self,
        id: &str,
        before: &Before,
        old: &Leaves,
        new: &Leaves,
        leaves: &mut BTreeMap<Revision, Bytes>,
    ) -> Result<()> {
        let number = self.database.number();
        for revision in old.all.difference(&new.all) {
            if self.keeps_replaced {
                let leaf = self.known_leaf(id, before, (revision, old.is_winner(revision)))?;
                hold::keep(&mut self.batch, number, (id, revision), (self.now_ms, leaf.as_ref()))?;
            }
            leaves.remove(revision);
            if !old.is_winner(revision) {
                self.batch.delete(Family::Scan, &keys::loser(number, id, revision));
            }
        }
        for revision in &new.all {
            let was_there = old.all.contains(revision);
            let is_winner = new.is_winner(revision);
            if was_there && old.is_winner(revision) == is_winner {
                continue;
            }
            let record = match leaves.get(revision) {
                Some(record) => record.clone(),
                None => self.leaf(id, before, revision)?.ok_or_else(|| DatabaseError::damaged("leaf", id))?,
            };
            if is_winner {
                self.batch.put(Family::Scan, &keys::winner(number, id), &record);
                if was_there {
                    self.batch.delete(Family::Scan, &keys::loser(number, id, revision));
                }
            } else {
                self.batch.put(Family::Scan, &keys::loser(number, id, revision), &record);
            }
            leaves.insert(revision.clone(), record);
        }
        Ok(())
    }

    /// The contents that all leaves of a tree refer to, the leaves' bytes, and those of their keys and records.
    fn contents_of(
        &self,
        id: &str,
        before: &Before,
        tree: &RevisionTree,
        leaves: &BTreeMap<Revision, Bytes>,
    ) -> Result<(Vec<Digest>, u64, u64)> {
        let mut contents = BTreeSet::new();
        let (mut external_bytes, mut leaf_bytes) = (0, 0);
        let winner = before.head.tree.winner().map(|winner| winner.revision);
        for leaf in tree.leaves() {
            let record = match leaves.get(leaf.revision) {
                Some(record) => record.clone(),
                // It was a leaf before as well.
                None => self.known_leaf(id, before, (leaf.revision, Some(leaf.revision) == winner))?,
            };
            leaf_bytes += (keys::winner(0, id).len() + record.len()) as u64;
            let leaf = Leaf::decode(id, &record)?;
            contents.extend(leaf.contents(id)?);
            external_bytes += leaf.external_bytes(id)?;
        }
        Ok((contents.into_iter().collect(), external_bytes, leaf_bytes))
    }

    /// Notes which contents the document refers to, and which it does so no more.
    fn refer(&mut self, id: &str, old: &[Digest], new: &[Digest]) {
        let number = self.database.number();
        for digest in new.iter().filter(|digest| old.binary_search(digest).is_err()) {
            self.batch.put(Family::Point, &keys::reference(digest, number, id), &[]);
        }
        for digest in old.iter().filter(|digest| new.binary_search(digest).is_err()) {
            self.batch.delete(Family::Point, &keys::reference(digest, number, id));
            self.let_collect(digest);
        }
    }

    /// Notes that the document does not refer to a content any more.
    fn let_collect(&mut self, digest: &Digest) {
        // Pinned until the batch is stored: else the collector, which still sees the reference,
        // could remove the note that this batch writes.
        self.pins.push(self.database.context.contents.pin(digest));
        self.batch.put(Family::Point, &keys::collectable(digest), &[]);
    }

    fn count(&mut self, id: &str, old: &Leaves, new: &Leaves) {
        let header = &mut self.header;
        if is_design(id) {
            let others = header.design_count.saturating_sub(u64::from(old.alive()));
            header.design_count = others + u64::from(new.alive());
        }
        match (&old.winner, old.alive()) {
            (None, _) => {}
            (Some(_), true) => header.document_count = header.document_count.saturating_sub(1),
            (Some(_), false) => header.deleted_count = header.deleted_count.saturating_sub(1),
        }
        if new.alive() {
            header.document_count += 1;
        } else {
            header.deleted_count += 1;
        }
    }
}

/// Holds what a document may have of leaves and revisions against an edit that brings more of them. What ends or goes on
/// with a leaf is taken in any case.
fn check_size(old: &RevisionTree, new: &RevisionTree, leaves_max: usize) -> Result<()> {
    let revisions_max = leaves_max.saturating_mul(REVISIONS_OF_LEAF);
    let reason = if new.leaf_count() > leaves_max.max(old.leaf_count()) {
        format!("a document may have at most {leaves_max} leaf revisions")
    } else if new.len() > revisions_max.max(old.len() + 1) {
        format!("a document may have at most {revisions_max} revisions in all its branches")
    } else {
        return Ok(());
    };
    let reason =
        format!("This conflict is not stored: {reason}. Purge some of them (`_purge`), then bring it again.");
    Err(DatabaseError::Forbidden { reason })
}

fn invalid_revision() -> DatabaseError {
    DatabaseError::bad_request("Invalid rev format")
}

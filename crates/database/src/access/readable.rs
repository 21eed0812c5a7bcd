//! What somebody may read, as types: only the checks here make them, and what renders, evaluates or lists documents takes
//! nothing else.
//!
//! A leaf is read by those whom its `Readers` name. What a deleted leaf says of its document, that it is or was there, is
//! for those who may read a leaf that is not deleted; where there is none the document is gone, and everybody learns
//! that.

use std::collections::{BTreeSet, HashSet};
use std::ops::Deref;

use scrinium_document::{Revision, RevisionTree};
use scrinium_store::{Family, Slice, Snapshot};

use super::Access;
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::head::Head;
use crate::keys;
use crate::leaf::Leaf;

/// A leaf that the one who asks may read.
#[derive(Clone, Copy)]
pub(crate) struct ReadableLeaf<'a> {
    id: &'a str,
    leaf: Leaf<'a>,
}

impl<'a> ReadableLeaf<'a> {
    /// For indexes, which have an entry for each name that may read the document, and no other.
    pub(crate) const fn for_index(id: &'a str, leaf: Leaf<'a>) -> Self {
        Self { id, leaf }
    }

    pub(crate) const fn id(&self) -> &'a str {
        self.id
    }

    pub(crate) const fn leaf(&self) -> Leaf<'a> {
        self.leaf
    }
}

impl<'a> Deref for ReadableLeaf<'a> {
    type Target = Leaf<'a>;

    fn deref(&self) -> &Leaf<'a> {
        &self.leaf
    }
}

/// The id of a document that the one who asks may know to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadableId(String);

impl ReadableId {
    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

impl Deref for ReadableId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A document's revisions as the one who asks finds them: leaves that they may not read are not there, and neither are
/// revisions that lead to no other leaf.
pub(crate) struct ReadableHead<'a> {
    head: &'a Head,
    hidden: BTreeSet<Revision>,
    /// What leads to the leaves; only where some leaf is hidden.
    known: HashSet<Revision>,
}

impl<'a> ReadableHead<'a> {
    fn new(head: &'a Head, hidden: BTreeSet<Revision>) -> Self {
        let mut known = HashSet::new();
        if !hidden.is_empty() {
            known = head.tree.leading_to(|leaf| !hidden.contains(leaf));
        }
        Self { head, hidden, known }
    }

    /// The leaves, the one that wins over the others first.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = scrinium_document::Leaf<'_>> {
        self.head.tree.leaves().filter(|leaf| !self.hidden.contains(leaf.revision))
    }

    pub(crate) fn leaf(&self, revision: &Revision) -> Option<scrinium_document::Leaf<'_>> {
        self.head.tree.leaf(revision).filter(|leaf| !self.hidden.contains(leaf.revision))
    }

    /// The document's winner, if it may be read.
    pub(crate) fn winner(&self) -> Option<scrinium_document::Leaf<'_>> {
        self.head.tree.winner().filter(|leaf| !self.hidden.contains(leaf.revision))
    }

    /// The leaves that follow a revision, or are it.
    pub(crate) fn leaves_from(&self, revision: &Revision) -> Vec<Revision> {
        let leaves = self.head.tree.leaves_from(revision);
        let shown = leaves.into_iter().filter(|leaf| !self.hidden.contains(leaf.revision));
        shown.map(|leaf| leaf.revision.clone()).collect()
    }

    pub(crate) fn path(&self, revision: &Revision) -> Vec<Revision> {
        self.head.tree.path(revision).unwrap_or_default()
    }

    /// Whether the revision is known, as a leaf or superseded.
    pub(crate) fn contains(&self, revision: &Revision) -> bool {
        if self.hidden.is_empty() { self.head.tree.contains(revision) } else { self.known.contains(revision) }
    }

    /// Those that are not known, in the same order.
    pub(crate) fn missing(&self, revisions: &[Revision]) -> Vec<Revision> {
        if self.hidden.is_empty() {
            return self.head.tree.missing(revisions);
        }
        revisions.iter().filter(|revision| !self.contains(revision)).cloned().collect()
    }

    /// The leaves that could be ancestors of missing revisions.
    pub(crate) fn possible_ancestors(&self, missing: &[Revision]) -> Vec<Revision> {
        let mut ancestors = self.head.tree.possible_ancestors(missing);
        ancestors.retain(|ancestor| !self.hidden.contains(ancestor));
        ancestors
    }

    /// The leaves other than `revision`, tombstones or not, the highest revision first.
    pub(crate) fn other_leaves(&self, revision: &Revision, deleted: bool) -> Vec<String> {
        let leaves = self.leaves().filter(|leaf| leaf.deleted == deleted && leaf.revision != revision);
        let others: BTreeSet<String> = leaves.map(|leaf| leaf.revision.to_string()).collect();
        others.into_iter().rev().collect()
    }

    /// The document's id, if there is a leaf that may be read.
    pub(crate) fn readable_id(&self, id: String) -> Option<ReadableId> {
        self.leaves().next().map(|_| ReadableId(id))
    }

    /// The record of a leaf; `None` if the revision is no leaf, or may not be read.
    pub(crate) fn record(
        &self,
        database: &Database,
        snapshot: &Snapshot,
        id: &str,
        revision: &Revision,
    ) -> Result<Option<Slice>> {
        if self.hidden.contains(revision) {
            return Ok(None);
        }
        database.leaf_record(snapshot, id, self.head, revision)
    }

    pub(crate) const fn change_number(&self) -> u64 {
        self.head.change_number
    }
}

/// The leaves of a tree that somebody may not know of, where `may_read` says what the `Readers` of each say.
pub(crate) fn hidden_leaves(
    tree: &RevisionTree,
    mut may_read: impl FnMut(&Revision) -> Result<bool>,
) -> Result<BTreeSet<Revision>> {
    let mut hidden = BTreeSet::new();
    let (mut is_there, mut is_shown) = (false, false);
    for leaf in tree.leaves() {
        let readable = may_read(leaf.revision)?;
        is_there |= !leaf.deleted;
        is_shown |= !leaf.deleted && readable;
        if !readable {
            hidden.insert(leaf.revision.clone());
        }
    }
    // A deleted leaf alone would tell that the others are there.
    if is_there && !is_shown {
        hidden.extend(tree.leaves().map(|leaf| leaf.revision.clone()));
    }
    Ok(hidden)
}

impl Access {
    /// The leaf, if the person may read it: a winner, or one of a head that the person may read.
    pub(crate) fn readable<'a>(
        &self,
        database: &Database,
        id: &'a str,
        leaf: Leaf<'a>,
    ) -> Result<Option<ReadableLeaf<'a>>> {
        Ok(self.may_read(database, id, &leaf)?.then_some(ReadableLeaf { id, leaf }))
    }

    /// As [`readable`](Self::readable); what may not be read is as if it were not there.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if the person may not read the document.
    pub(crate) fn check_read<'a>(
        &self,
        database: &Database,
        id: &'a str,
        leaf: Leaf<'a>,
    ) -> Result<ReadableLeaf<'a>> {
        self.readable(database, id, leaf)?.ok_or_else(DatabaseError::missing)
    }

    /// The document's revisions, as the person finds them in a snapshot.
    pub(crate) fn readable_head<'a>(
        &self,
        database: &Database,
        snapshot: &Snapshot,
        id: &str,
        head: &'a Head,
    ) -> Result<ReadableHead<'a>> {
        if self.reads_everything() {
            return Ok(ReadableHead::new(head, BTreeSet::new()));
        }
        let winner = head.tree.winner().map(|winner| winner.revision);
        let hidden = hidden_leaves(&head.tree, |revision| {
            let key = match winner == Some(revision) {
                true => keys::winner(database.number(), id),
                false => keys::loser(database.number(), id, revision),
            };
            let stored = snapshot.get(Family::Scan, &key)?;
            let stored = stored.ok_or_else(|| DatabaseError::damaged("revision", id))?;
            self.may_read(database, id, &Leaf::decode(id, &stored)?)
        })?;
        Ok(ReadableHead::new(head, hidden))
    }

    /// The id of a document whose winner in a snapshot the person may read; also of one that is not there, of which there
    /// is nothing to hide.
    pub(crate) fn readable_id(
        &self,
        database: &Database,
        snapshot: &Snapshot,
        id: String,
    ) -> Result<Option<ReadableId>> {
        if !self.reads_everything() {
            let stored = snapshot.get(Family::Scan, &keys::winner(database.number(), &id))?;
            if let Some(stored) = stored
                && !self.may_read(database, &id, &Leaf::decode(&id, &stored)?)?
            {
                return Ok(None);
            }
        }
        Ok(Some(ReadableId(id)))
    }
}

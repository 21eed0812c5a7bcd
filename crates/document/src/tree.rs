//! The revisions of one document: CouchDB's revision tree.
//!
//! A forest of paths. Every known revision is a node with at most one parent, of the generation just below
//! its own; a node that nothing follows is a leaf. Merging is a union of paths, so replicas that have seen
//! the same paths, in whatever order, have the same leaves and the same winner.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::{DocumentError, Revision};

/// Above this many comparisons a merge looks its path up by hash; a short path is found sooner without.
const COMPARISONS_MAX: usize = 4096;
const SHORT_PATH: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) revision: Revision,
    pub(crate) parent: Option<usize>,
    pub(crate) leaf: bool,
    pub(crate) deleted: bool,
    pub(crate) body: bool,
}

/// The revision tree of one document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RevisionTree {
    pub(crate) nodes: Vec<Node>,
}

/// A revision in the tree, mostly a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf<'a> {
    /// The revision.
    pub revision: &'a Revision,
    /// Whether this revision deletes the document.
    pub deleted: bool,
    /// Whether the revision's body is stored. Set when a leaf is added, cleared when it is superseded.
    pub body: bool,
}

/// What a replicated path did to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merged {
    /// The path's newest revision is a new leaf: the first, or one that follows what was a leaf.
    NewLeaf,
    /// The path's newest revision is a new leaf besides those that were there.
    NewBranch,
    /// The newest revision was known, but the older part of the path was not, or ties known branches together:
    /// the tree changed and must be stored, there is no new body.
    Joined,
    /// The newest revision was known and has been superseded; nothing changed.
    InternalNode,
    /// The newest revision was known as a leaf; nothing changed.
    AlreadyThere,
}

impl Merged {
    /// Whether the path brought a leaf, whose body must be stored.
    #[must_use]
    pub fn is_new(self) -> bool {
        matches!(self, Self::NewLeaf | Self::NewBranch)
    }

    /// Whether the tree changed and must be stored.
    #[must_use]
    pub fn changed(self) -> bool {
        matches!(self, Self::NewLeaf | Self::NewBranch | Self::Joined)
    }
}

impl RevisionTree {
    /// A tree without revisions: a document that does not exist.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is no revision.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Number of revisions known, superseded ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The leaf that stands for the document: one that is not deleted before those that are, then the highest
    /// generation, then the highest digest.
    #[must_use]
    pub fn winner(&self) -> Option<Leaf<'_>> {
        self.leaf_nodes().max_by_key(|node| rank(node)).map(Node::as_leaf)
    }

    /// Whether the document is deleted: it has leaves, all of them deletions.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.winner().is_some_and(|winner| winner.deleted)
    }

    /// All leaves, the winner first, the others in the order in which they would win.
    pub fn leaves(&self) -> impl Iterator<Item = Leaf<'_>> {
        let mut leaves: Vec<&Node> = self.leaf_nodes().collect();
        leaves.sort_unstable_by_key(|node| Reverse(rank(node)));
        leaves.into_iter().map(Node::as_leaf)
    }

    /// The leaves that are not deleted and lost, in the order of CouchDB's `_conflicts`.
    pub fn conflicts(&self) -> impl Iterator<Item = Leaf<'_>> {
        self.leaves().skip(1).filter(|leaf| !leaf.deleted)
    }

    /// The deleted leaves other than the winner, as CouchDB's `_deleted_conflicts`.
    pub fn deleted_conflicts(&self) -> impl Iterator<Item = Leaf<'_>> {
        self.leaves().skip(1).filter(|leaf| leaf.deleted)
    }

    /// How many leaves there are.
    #[must_use]
    pub fn leaf_count(&self) -> usize {
        self.leaf_nodes().count()
    }

    /// All leaves, in no order, and whether each is the winner.
    pub fn unordered_leaves(&self) -> impl Iterator<Item = (Leaf<'_>, bool)> {
        let winner = self.winner().map(|winner| winner.revision);
        self.leaf_nodes().map(move |node| (node.as_leaf(), winner == Some(&node.revision)))
    }

    fn leaf_nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.leaf)
    }

    fn find(&self, revision: &Revision) -> Option<usize> {
        self.nodes.iter().position(|node| node.revision == *revision)
    }

    /// Whether the revision is known, as a leaf or superseded.
    #[must_use]
    pub fn contains(&self, revision: &Revision) -> bool {
        self.find(revision).is_some()
    }

    /// The leaf of that revision; `None` if it is unknown or superseded.
    #[must_use]
    pub fn leaf(&self, revision: &Revision) -> Option<Leaf<'_>> {
        self.node(revision).filter(|node| node.leaf).map(Node::as_leaf)
    }

    /// What is known of a revision, leaf or not: for `_revs_info`.
    #[must_use]
    pub fn revision(&self, revision: &Revision) -> Option<Leaf<'_>> {
        self.node(revision).map(Node::as_leaf)
    }

    fn node(&self, revision: &Revision) -> Option<&Node> {
        self.nodes.get(self.find(revision)?)
    }

    /// Notes whether the body of a leaf is stored; `false` if there is no such leaf.
    pub fn set_body(&mut self, leaf: &Revision, stored: bool) -> bool {
        let node = self.nodes.iter_mut().find(|node| node.leaf && node.revision == *leaf);
        node.map(|node| node.body = stored).is_some()
    }

    /// The revision that an interactive edit follows, given the one that the client named. An edit that names none
    /// may begin a document, or follow a winner that is deleted.
    ///
    /// # Errors
    /// [`DocumentError::Conflict`] if the client's revision is not a leaf, or it named none and the document is there.
    pub fn edit_parent(&self, named: Option<&Revision>) -> Result<Option<&Revision>, DocumentError> {
        match (named, self.winner()) {
            (Some(named), _) => {
                self.leaf(named).map(|leaf| Some(leaf.revision)).ok_or(DocumentError::Conflict)
            }
            (None, None) => Ok(None),
            (None, Some(winner)) if winner.deleted => Ok(Some(winner.revision)),
            (None, Some(_)) => Err(DocumentError::Conflict),
        }
    }

    /// Adds an interactive edit (`new_edits=true`). `new` must be of the generation that follows
    /// [`edit_parent`](Self::edit_parent)`(parent)`.
    ///
    /// # Errors
    /// [`DocumentError::Conflict`] as `edit_parent`, or if `new` is known; [`DocumentError::BadRequest`] if its
    /// generation does not follow.
    pub fn add_edit(
        &mut self,
        parent: Option<&Revision>,
        new: Revision,
        deleted: bool,
    ) -> Result<(), DocumentError> {
        let parent = self.edit_parent(parent)?;
        let generation = parent.map_or(0, Revision::generation).checked_add(1);
        if generation != Some(new.generation()) {
            return Err(DocumentError::BadRequest("Invalid rev format".into()));
        }
        if self.contains(&new) {
            return Err(DocumentError::Conflict);
        }
        let parent = parent.and_then(|parent| self.find(parent));
        if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(parent)) {
            parent.supersede();
        }
        self.nodes.push(Node { revision: new, parent, leaf: true, deleted, body: true });
        Ok(())
    }

    /// Adds a replicated edit (`new_edits=false`) with its history, newest first, as `_revisions` gives it.
    ///
    /// Two histories that give one revision different parents cannot come from edits, but may be sent; the
    /// greater parent is kept, so that the order of arrival does not show.
    ///
    /// # Errors
    /// [`DocumentError::BadRequest`] if the path is empty, reaches generation 0 or leaves a generation out.
    pub fn merge(&mut self, path: &[Revision], deleted: bool) -> Result<Merged, DocumentError> {
        let generations_fit = path
            .windows(2)
            .all(|pair| matches!(pair, [newer, older] if older.generation().checked_add(1) == Some(newer.generation())));
        if !generations_fit || path.last().is_none_or(|oldest| oldest.generation() == 0) {
            return Err(DocumentError::BadRequest("Invalid rev format".into()));
        }
        let was_empty = self.is_empty();
        let known = self.find_all(path);
        let head_known = known.first().copied().flatten();
        let followed = known.iter().flatten().next().and_then(|&index| self.nodes.get(index));
        let follows_leaf = followed.is_some_and(|node| node.leaf);
        let head_is_leaf = head_known.is_some() && follows_leaf;

        let mut changed = false;
        let mut older: Option<usize> = None;
        for (place, (revision, known)) in path.iter().zip(known).enumerate().rev() {
            let head = place == 0;
            let index = known.unwrap_or_else(|| {
                changed = true;
                let (deleted, body) = (deleted && head, head);
                self.nodes.push(Node { revision: revision.clone(), parent: None, leaf: head, deleted, body });
                self.nodes.len() - 1
            });
            if let Some(older) = older {
                changed |= self.link(index, older);
            }
            older = Some(index);
        }
        Ok(match head_known {
            None if was_empty || follows_leaf => Merged::NewLeaf,
            None => Merged::NewBranch,
            Some(_) if changed => Merged::Joined,
            Some(_) if head_is_leaf => Merged::AlreadyThere,
            Some(_) => Merged::InternalNode,
        })
    }

    /// Where each revision of the path is in the tree.
    fn find_all(&self, path: &[Revision]) -> Vec<Option<usize>> {
        if path.len() <= SHORT_PATH || path.len().saturating_mul(self.nodes.len()) <= COMPARISONS_MAX {
            return path.iter().map(|revision| self.find(revision)).collect();
        }
        let places: HashMap<&Revision, usize> =
            self.nodes.iter().enumerate().map(|(index, node)| (&node.revision, index)).collect();
        path.iter().map(|revision| places.get(revision).copied()).collect()
    }

    /// The first revision of `path` that is a leaf.
    #[must_use]
    pub fn first_leaf<'p>(&self, path: &'p [Revision]) -> Option<&'p Revision> {
        let is_leaf = |place: &Option<usize>| {
            place.and_then(|place| self.nodes.get(place)).is_some_and(|node| node.leaf)
        };
        let mut known = path.iter().zip(self.find_all(path));
        known.find(|(_, place)| is_leaf(place)).map(|(revision, _)| revision)
    }

    /// Makes `child` follow `parent`; `true` if that changed anything.
    fn link(&mut self, child: usize, parent: usize) -> bool {
        let revision_of = |index: usize| self.nodes.get(index).map(|node| &node.revision);
        let present = self.nodes.get(child).and_then(|node| node.parent);
        let replace = match present {
            None => true,
            Some(present) => revision_of(parent) > revision_of(present),
        };
        if let Some(child) = self.nodes.get_mut(child).filter(|_| replace) {
            child.parent = Some(parent);
        }
        let superseded = self.nodes.get_mut(parent).is_some_and(Node::supersede);
        replace || superseded
    }

    /// The known history of a revision, newest first, itself included; `None` if it is unknown.
    #[must_use]
    pub fn path(&self, revision: &Revision) -> Option<Vec<Revision>> {
        let node = self.node(revision)?;
        let parent = |node: &&Node| self.nodes.get(node.parent?);
        Some(std::iter::successors(Some(node), parent).map(|node| node.revision.clone()).collect())
    }

    /// All revisions that some leaves have come from, those leaves among them. Takes time for the whole tree once, however
    /// many leaves there are.
    #[must_use]
    pub fn leading_to(&self, is_wanted: impl Fn(&Revision) -> bool) -> HashSet<Revision> {
        let mut leading = HashSet::new();
        let mut seen = vec![false; self.nodes.len()];
        for (index, _) in
            self.nodes.iter().enumerate().filter(|(_, node)| node.leaf && is_wanted(&node.revision))
        {
            let mut at = Some(index);
            while let Some(slot) = at.and_then(|at| seen.get_mut(at)).filter(|slot| !**slot) {
                *slot = true;
                let node = at.and_then(|at| self.nodes.get(at));
                leading.extend(node.map(|node| node.revision.clone()));
                at = node.and_then(|node| node.parent);
            }
        }
        leading
    }

    /// The leaves that follow `revision`, or that are it: what `open_revs` with `latest=true` gives.
    #[must_use]
    pub fn leaves_from(&self, revision: &Revision) -> Vec<Leaf<'_>> {
        let Some(start) = self.find(revision) else { return Vec::new() };
        let above = |index: &usize| self.nodes.get(*index).and_then(|node| node.parent);
        let follows = |index: usize| {
            std::iter::successors(Some(index), above)
                .take_while(|&index| {
                    self.nodes
                        .get(index)
                        .is_some_and(|node| node.revision.generation() >= revision.generation())
                })
                .any(|index| index == start)
        };
        let leaves = self.nodes.iter().enumerate().filter(|(index, node)| node.leaf && follows(*index));
        let mut leaves: Vec<&Node> = leaves.map(|(_, node)| node).collect();
        leaves.sort_unstable_by_key(|node| Reverse(rank(node)));
        leaves.into_iter().map(Node::as_leaf).collect()
    }

    /// Those of `revisions` that are not known, in the same order: for `_revs_diff`.
    #[must_use]
    pub fn missing(&self, revisions: &[Revision]) -> Vec<Revision> {
        let known = self.find_all(revisions);
        revisions
            .iter()
            .zip(known)
            .filter(|(_, known)| known.is_none())
            .map(|(revision, _)| revision.clone())
            .collect()
    }

    /// The leaves that could be ancestors of the missing revisions, being of a lower generation than one of them:
    /// `possible_ancestors` of `_revs_diff`.
    #[must_use]
    pub fn possible_ancestors(&self, missing: &[Revision]) -> Vec<Revision> {
        let highest = missing.iter().map(Revision::generation).max().unwrap_or(0);
        self.leaves()
            .filter(|leaf| leaf.revision.generation() < highest)
            .map(|leaf| leaf.revision.clone())
            .collect()
    }

    /// Forgets all but the newest `limit` revisions of each branch (at least one). Leaves stay.
    pub fn stem(&mut self, limit: usize) {
        let limit = limit.max(1);
        if self.nodes.len() <= limit || self.generations() < limit as u64 {
            return;
        }
        // How many more revisions are kept from a node on; a walk stops where an earlier one kept as many.
        let mut kept = vec![0usize; self.nodes.len()];
        for (index, _) in self.nodes.iter().enumerate().filter(|(_, node)| node.leaf) {
            let (mut at, mut left) = (Some(index), limit);
            while let Some(slot) = at.and_then(|at| kept.get_mut(at)).filter(|slot| **slot < left) {
                *slot = left;
                left -= 1;
                at = at.and_then(|at| self.nodes.get(at)).and_then(|node| node.parent);
            }
        }
        let kept: Vec<bool> = kept.into_iter().map(|left| left > 0).collect();
        self.keep(&kept);
    }

    /// How far the generations of the oldest and the newest revision lie apart.
    fn generations(&self) -> u64 {
        let mut generations = self.nodes.iter().map(|node| node.revision.generation());
        let Some(first) = generations.next() else { return 0 };
        let (low, high) = generations.fold((first, first), |(low, high), one| (low.min(one), high.max(one)));
        high - low
    }

    /// Forgets leaves, and their history as far as it is no other leaf's.
    pub fn forget_leaves(&mut self, gone: &HashSet<Revision>) {
        let mut kept = vec![false; self.nodes.len()];
        for (index, _) in
            self.nodes.iter().enumerate().filter(|(_, node)| node.leaf && !gone.contains(&node.revision))
        {
            let mut at = Some(index);
            while let Some(slot) = at.and_then(|at| kept.get_mut(at)).filter(|slot| !**slot) {
                *slot = true;
                at = at.and_then(|at| self.nodes.get(at)).and_then(|node| node.parent);
            }
        }
        self.keep(&kept);
    }

    /// Forgets the nodes that are not kept.
    fn keep(&mut self, kept: &[bool]) {
        let mut places = Vec::with_capacity(kept.len());
        let mut next = 0;
        for &is_kept in kept {
            places.push(is_kept.then_some(next));
            next += usize::from(is_kept);
        }
        let mut place = places.iter();
        self.nodes.retain(|_| place.next().is_some_and(Option::is_some));
        for node in &mut self.nodes {
            node.parent = node.parent.and_then(|parent| places.get(parent).copied().flatten());
        }
    }
}

impl Node {
    fn as_leaf(&self) -> Leaf<'_> {
        Leaf { revision: &self.revision, deleted: self.deleted, body: self.body }
    }

    /// Notes that a revision follows; `true` if none did before.
    fn supersede(&mut self) -> bool {
        self.body = false;
        std::mem::replace(&mut self.leaf, false)
    }
}

/// What makes a leaf win.
pub(crate) fn rank(node: &Node) -> (bool, &Revision) {
    (!node.deleted, &node.revision)
}

//! What somebody may read, as types: only the checks here make them, and what renders, evaluates or lists documents takes
//! nothing else.
//!
//! A leaf is read by those whom its `Readers` name. What a deleted leaf says of its document, that it is or was there, is
//! for those who may read a leaf that is not deleted; where there is none the document is gone, and everybody learns
//! that.

#![allow(missing_docs, reason = "the names say it")]

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Deref;

use scrinium_document::{Revision, RevisionTree};
use scrinium_store::{Direction, Family, KeyRange, Slice, Snapshot};

use super::Access;
use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::head::Head;
use crate::keys;
use crate::leaf::Leaf;

/// A leaf that the one who asks may read.
#[derive(Clone, Copy)]
pub struct ReadableLeaf<'a> {
    id: &'a str,
    leaf: Leaf<'a>,
}

impl<'a> ReadableLeaf<'a> {
    /// For indexes, which have an entry for each name that may read the document, and no other.
    pub const fn for_index(id: &'a str, leaf: Leaf<'a>) -> Self {
        Self { id, leaf }
    }

    pub const fn id(&self) -> &'a str {
        self.id
    }

    pub const fn leaf(&self) -> Leaf<'a> {
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
pub struct ReadableId(String);

impl ReadableId {
    pub fn into_string(self) -> String {
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
pub struct ReadableHead<'a> {
    head: &'a Head,
    hidden: BTreeSet<Revision>,
    /// What leads to the leaves; only where some leaf is hidden.
    known: HashSet<Revision>,
    /// Which of the leaves that may be read wins; made when records of a document with many leaves are read.
    places: OnceCell<HashMap<&'a Revision, bool>>,
}

/// Revisions of fewer are found one by one.
const FEW_REVISIONS: usize = 64;

impl<'a> ReadableHead<'a> {
    fn new(head: &'a Head, hidden: BTreeSet<Revision>) -> Self {
        let mut known = HashSet::new();
        if !hidden.is_empty() {
            known = head.tree.leading_to(|leaf| !hidden.contains(leaf));
        }
        Self { head, hidden, known, places: OnceCell::new() }
    }

    /// The leaves, the one that wins over the others first.
    pub fn leaves(&self) -> impl Iterator<Item = scrinium_document::Leaf<'_>> {
        self.head.tree.leaves().filter(|leaf| !self.hidden.contains(leaf.revision))
    }

    pub fn leaf(&self, revision: &Revision) -> Option<scrinium_document::Leaf<'_>> {
        self.head.tree.leaf(revision).filter(|leaf| !self.hidden.contains(leaf.revision))
    }

    /// The document's winner, if it may be read.
    pub fn winner(&self) -> Option<scrinium_document::Leaf<'_>> {
        self.head.tree.winner().filter(|leaf| !self.hidden.contains(leaf.revision))
    }

    /// The leaves that follow a revision, or are it.
    pub fn leaves_from(&self, revision: &Revision) -> Vec<Revision> {
        let leaves = self.head.tree.leaves_from(revision);
        let shown = leaves.into_iter().filter(|leaf| !self.hidden.contains(leaf.revision));
        shown.map(|leaf| leaf.revision.clone()).collect()
    }

    pub fn path(&self, revision: &Revision) -> Vec<Revision> {
        self.head.tree.path(revision).unwrap_or_default()
    }

    /// Whether the revision is known, as a leaf or superseded.
    pub fn contains(&self, revision: &Revision) -> bool {
        if self.hidden.is_empty() { self.head.tree.contains(revision) } else { self.known.contains(revision) }
    }

    /// Those that are not known, in the same order.
    pub fn missing(&self, revisions: &[Revision]) -> Vec<Revision> {
        if self.hidden.is_empty() {
            return self.head.tree.missing(revisions);
        }
        revisions.iter().filter(|revision| !self.contains(revision)).cloned().collect()
    }

    /// The leaves that could be ancestors of missing revisions.
    pub fn possible_ancestors(&self, missing: &[Revision]) -> Vec<Revision> {
        let mut ancestors = self.head.tree.possible_ancestors(missing);
        ancestors.retain(|ancestor| !self.hidden.contains(ancestor));
        ancestors
    }

    /// The leaves other than `revision`, tombstones or not, the highest revision first.
    pub fn other_leaves(&self, revision: &Revision, deleted: bool) -> Vec<String> {
        let leaves = self.leaves().filter(|leaf| leaf.deleted == deleted && leaf.revision != revision);
        let others: BTreeSet<String> = leaves.map(|leaf| leaf.revision.to_string()).collect();
        others.into_iter().rev().collect()
    }

    /// The document's id, if there is a leaf that may be read.
    pub fn readable_id(&self, id: String) -> Option<ReadableId> {
        self.leaves().next().map(|_| ReadableId(id))
    }

    /// Whether a leaf wins over the others; `None` if it is no leaf, or may not be read.
    fn is_winner(&self, revision: &Revision) -> Option<bool> {
        let tree = &self.head.tree;
        if tree.len() > FEW_REVISIONS {
            let leaves = || tree.unordered_leaves().map(|(leaf, is_winner)| (leaf.revision, is_winner));
            let shown = || leaves().filter(|(revision, _)| !self.hidden.contains(*revision)).collect();
            return self.places.get_or_init(shown).get(revision).copied();
        }
        self.leaf(revision)?;
        Some(tree.winner().is_some_and(|winner| winner.revision == revision))
    }

    /// Whether the body of an earlier revision is there for those who may read it.
    pub fn keeps(&self, database: &Database, revision: &Revision) -> bool {
        let is_kept = || self.head.earlier.iter().any(|body| body.revision == *revision);
        database.history().is_on() && is_kept() && self.contains(revision)
    }

    /// The earlier revisions whose bodies are there for those who may read them.
    pub fn kept(&self, database: &Database) -> BTreeSet<&Revision> {
        let is_on = database.history().is_on();
        self.head.earlier.iter().filter(|_| is_on).map(|body| &body.revision).collect()
    }

    /// Whether a revision, a leaf or not, deletes the document.
    pub fn is_tombstone(&self, revision: &Revision) -> bool {
        self.head.tree.revision(revision).is_some_and(|revision| revision.deleted)
    }

    /// The record of a leaf, or of an earlier revision whose body is kept; `None` if it is neither, or may not be read. Who
    /// may read an earlier body is for its own `Readers` to say as well.
    pub fn record(
        &self,
        database: &Database,
        snapshot: &Snapshot,
        id: &str,
        revision: &Revision,
    ) -> Result<Option<Slice>> {
        match self.is_winner(revision) {
            Some(is_winner) => database.leaf_record(snapshot, id, (revision, is_winner)).map(Some),
            None if self.keeps(database, revision) => {
                let key = keys::earlier(database.number(), id, revision);
                snapshot.get(Family::Scan, &key).map_err(DatabaseError::from)
            }
            None => Ok(None),
        }
    }

    pub const fn change_number(&self) -> u64 {
        self.head.change_number
    }
}

/// The leaves of a tree that somebody may not know of, where `may_read` says what the `Readers` of each say.
pub fn hidden_leaves(
    tree: &RevisionTree,
    mut may_read: impl FnMut(&Revision) -> Result<bool>,
) -> Result<BTreeSet<Revision>> {
    let mut hidden = BTreeSet::new();
    let (mut is_there, mut is_shown) = (false, false);
    for (leaf, _) in tree.unordered_leaves() {
        let readable = may_read(leaf.revision)?;
        is_there |= !leaf.deleted;
        is_shown |= !leaf.deleted && readable;
        if !readable {
            hidden.insert(leaf.revision.clone());
        }
    }
    // A deleted leaf alone would tell that the others are there.
    if is_there && !is_shown {
        hidden.extend(tree.unordered_leaves().map(|(leaf, _)| leaf.revision.clone()));
    }
    Ok(hidden)
}

/// What is looked at of a document to say that it is not there, or not to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    AtWinner,
    AtHead,
}

impl Access {
    /// Looks at another document in the place of one that is not there, and forgets what it was. So it takes about as long to
    /// find nothing as to find what `Readers` hide, and the time of an answer does not tell which it was.
    pub(crate) fn look_past(&self, database: &Database, snapshot: &Snapshot, (id, looked): (&str, Looked)) {
        if !self.reads_everything() {
            // One that cannot be read is another one's concern.
            drop(self.look_at_next(database, snapshot, (id, looked)));
        }
    }

    fn look_at_next(
        &self,
        database: &Database,
        snapshot: &Snapshot,
        (id, looked): (&str, Looked),
    ) -> Result<()> {
        let number = database.number();
        let (first, end) = keys::winner_range(number);
        let wanted = keys::winner(number, id);
        for from in [wanted.as_slice(), first.as_slice()] {
            let range = KeyRange { from, to: Some(&end) };
            let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
            let Some((key, record)) = cursor.next()? else { continue };
            let next = keys::id_of(key).ok_or_else(|| DatabaseError::damaged("document", id))?;
            if looked == Looked::AtWinner {
                self.may_read(database, next, &Leaf::decode(next, record)?)?;
            } else if let Some(head) = database.head(snapshot, next)? {
                self.readable_head(database, snapshot, next, &head)?;
            }
            return Ok(());
        }
        Ok(())
    }

    /// The leaf, if the person may read it: a winner, or one of a head that the person may read.
    pub fn readable<'a>(
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
    pub fn check_read<'a>(
        &self,
        database: &Database,
        id: &'a str,
        leaf: Leaf<'a>,
    ) -> Result<ReadableLeaf<'a>> {
        self.readable(database, id, leaf)?.ok_or_else(DatabaseError::missing)
    }

    /// The document's revisions, as the person finds them in a snapshot.
    pub fn readable_head<'a>(
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
    pub fn readable_id(
        &self,
        database: &Database,
        snapshot: &Snapshot,
        id: String,
    ) -> Result<Option<ReadableId>> {
        if !self.reads_everything() {
            let stored = snapshot.get(Family::Scan, &keys::winner(database.number(), &id))?;
            match stored {
                Some(stored) if !self.may_read(database, &id, &Leaf::decode(&id, &stored)?)? => {
                    return Ok(None);
                }
                Some(_) => {}
                None => self.look_past(database, snapshot, (&id, Looked::AtWinner)),
            }
        }
        Ok(Some(ReadableId(id)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
pub(crate) mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use scrinium_statistics::Registry;
    use scrinium_store::{Store, StoreOptions};
    use serde_json::json;

    use super::*;
    use crate::access::SERVER;
    use crate::testing::TestServer;
    use crate::{AccessList, Edit, EditMode, Identity, OpenRevisions, ReadOptions, RowQuery};

    thread_local! {
        /// How many leaves this thread has held against somebody's names.
        pub(crate) static LOOKS: Cell<u64> = const { Cell::new(0) };
    }

    const REVISION: &str = "1-00000000000000000000000000000001";

    /// Every way to ask for one document.
    fn ask(database: &Arc<Database>, way: usize, id: &str, access: &Access) -> Option<()> {
        let conflicts = ReadOptions { conflicts: true, ..ReadOptions::default() };
        let named = ReadOptions { revision: Some(REVISION.to_owned()), ..ReadOptions::default() };
        let these = OpenRevisions::These(vec![REVISION.to_owned()]);
        let wanted = [(id.to_owned(), vec![REVISION.to_owned()])];
        let keys = Some(vec![json!(id)]);
        match way {
            0 => drop(database.read(id, &ReadOptions::default(), access)),
            1 => drop(database.read(id, &conflicts, access)),
            2 => drop(database.read(id, &named, access)),
            3 => drop(database.open_revisions(id, &OpenRevisions::All, &conflicts, access)),
            4 => drop(database.open_revisions(id, &these, &conflicts, access)),
            5 => drop(database.open_revision_names(id, &OpenRevisions::All, access)),
            6 => drop(database.open_attachment(id, "file", None, access)),
            7 => drop(database.open_attachment(id, "file", Some(REVISION), access)),
            8 => drop(database.revisions_difference(&wanted, access)),
            9 | 10 => {
                let query = RowQuery { keys, include_documents: way == 10, ..RowQuery::default() };
                let mut rows = database.all_documents(query, access).unwrap();
                while !rows.next_rows(9).unwrap().is_empty() {}
            }
            _ => return None,
        }
        Some(())
    }

    #[test]
    fn what_is_hidden_is_looked_at_no_more_than_what_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(StoreOptions::new(dir.path()), &Registry::new()).unwrap();
        let database = TestServer::new(&store).create("db");
        let list = AccessList::parse(&json!({"default": {"level": "reader"}})).unwrap();
        database.set_access_list(Some(list)).unwrap();
        let edit = |id: &str| {
            let json = json!({"_id": id, "_rev": REVISION, "Readers": ["ada"]});
            Edit { json: json.to_string().into(), ..Edit::default() }
        };
        let edits = ["b", "d", "f"].map(edit).into();
        let stored = database.update(edits, EditMode::Replicated, &SERVER).unwrap().wait().unwrap();
        stored.into_iter().for_each(|result| drop(result.unwrap()));
        let bob = database.access(&Identity::new("bob", Vec::new())).unwrap();
        let looks = |way: usize, id: &str| {
            LOOKS.set(0);
            ask(&database, way, id, &bob).map(|()| LOOKS.get())
        };
        let mut way = 0;
        while let Some(hidden) = looks(way, "d") {
            assert!(hidden > 0, "way {way} looks at what is hidden");
            for missing in ["a", "c", "z"] {
                assert_eq!(looks(way, missing), Some(hidden), "way {way}, document {missing}");
            }
            way += 1;
        }
        assert_eq!(way, 11);
        store.close().unwrap();
    }
}

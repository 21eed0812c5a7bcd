//! Bulk edits of several people, interactive and replicated, against a simple model of revision trees and of who may read
//! what.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use scrinium_database::{
    Access, AccessList, DatabaseError, EditMode, Identity, InitialAccess, OpenRevision, OpenRevisions,
    ReadOptions, Updated,
};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{Server, edit, get};

const IDS: [&str; 3] = ["a", "b", "c"];

/// The first one may do everything; the others are authors.
const PEOPLE: [&str; 3] = ["admin", "ada", "bob"];

/// One document of a bulk.
#[derive(Clone, Debug)]
struct Wish {
    id: usize,
    /// Which of the revisions that are known it builds on, if any.
    base: Option<prop::sample::Index>,
    letter: u8,
    deleted: bool,
    readers: Option<usize>,
    authors: Option<usize>,
}

#[derive(Clone, Debug)]
struct Bulk {
    person: usize,
    replicated: bool,
    wishes: Vec<Wish>,
}

fn wish() -> impl Strategy<Value = Wish> {
    let person = || prop::option::of(1..PEOPLE.len());
    (
        0..IDS.len(),
        prop::option::weighted(0.7, any::<prop::sample::Index>()),
        b'a'..=b'c',
        prop::bool::weighted(0.25),
        person(),
        person(),
    )
        .prop_map(|(id, base, letter, deleted, readers, authors)| Wish {
            id,
            base,
            letter,
            deleted,
            readers,
            authors,
        })
}

fn bulk() -> impl Strategy<Value = Bulk> {
    (0..PEOPLE.len(), any::<bool>(), prop::collection::vec(wish(), 1..5))
        .prop_map(|(person, replicated, wishes)| Bulk { person, replicated, wishes })
}

/// A revision as it sorts: those that are there before tombstones, then by generation and the bytes of the digest, which are
/// 16 where it is an MD5 (CouchDB's winner).
type Rank = (bool, u64, Vec<u8>);

/// What lies in a revision.
#[derive(Clone, Debug, PartialEq)]
struct Leaf {
    deleted: bool,
    readers: Option<usize>,
    authors: Option<usize>,
}

impl Leaf {
    fn is_readable_by(&self, person: usize) -> bool {
        person == 0 || self.readers.is_none() || self.readers == Some(person) || self.authors == Some(person)
    }

    fn is_editable_by(&self, person: usize) -> bool {
        person == 0 || self.is_readable_by(person) && self.authors == Some(person)
    }
}

/// A document's revisions: what each was made of, and what lies in those that nothing was made of.
#[derive(Clone, Debug, Default)]
struct Tree {
    parents: BTreeMap<String, Option<String>>,
    leaves: BTreeMap<String, Leaf>,
}

fn parts(revision: &str) -> (u64, String) {
    let (generation, digest) = revision.split_once('-').unwrap();
    (generation.parse().unwrap(), digest.to_owned())
}

impl Tree {
    fn rank(revision: &str, leaf: &Leaf) -> Rank {
        let (generation, digest) = parts(revision);
        let byte = |at: usize| u8::from_str_radix(digest.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..32).step_by(2).map(byte).collect();
        (
            !leaf.deleted,
            generation,
            bytes.filter(|_| digest.len() == 32).unwrap_or_else(|| digest.into_bytes()),
        )
    }

    fn winner(&self) -> Option<(&String, &Leaf)> {
        self.leaves.iter().max_by_key(|(revision, leaf)| Self::rank(revision, leaf))
    }

    fn is_there(&self) -> bool {
        self.winner().is_some_and(|(_, leaf)| !leaf.deleted)
    }

    /// The leaves that somebody finds. Of a document that is there and hidden, they find no tombstone either.
    fn readable_by(&self, person: usize) -> BTreeSet<String> {
        let readable = self.leaves.iter().filter(|(_, leaf)| leaf.is_readable_by(person));
        let readable: BTreeMap<&String, &Leaf> = readable.collect();
        if self.is_there() && readable.values().all(|leaf| leaf.deleted) {
            return BTreeSet::new();
        }
        readable.into_keys().cloned().collect()
    }

    /// The revision and all that it was made of, the newest first.
    fn chain(&self, revision: &str) -> Vec<String> {
        let mut chain = vec![revision.to_owned()];
        while let Some(Some(parent)) = self.parents.get(chain.last().unwrap()) {
            chain.push(parent.clone());
        }
        chain
    }

    fn add(&mut self, revision: &str, parent: Option<String>, leaf: Leaf) {
        if self.parents.contains_key(revision) {
            return;
        }
        if let Some(parent) = &parent {
            self.leaves.remove(parent);
        }
        self.parents.insert(revision.to_owned(), parent);
        self.leaves.insert(revision.to_owned(), leaf);
    }

    /// What an interactive edit by somebody who may do everything comes to; `None`: either is fine.
    fn succeeds(&self, base: Option<&String>, deleted: bool) -> Option<bool> {
        match base {
            Some(base) => match self.leaves.get(base) {
                Some(leaf) if leaf.deleted => None,
                leaf => Some(leaf.is_some()),
            },
            None if deleted => None,
            None => Some(!self.is_there()),
        }
    }
}

/// A wish as it is sent, and what it is to become in the tree if it is taken.
fn sent(wish: &Wish, replicated: bool, tree: &Tree, step: usize) -> (Value, Option<String>, Leaf) {
    let known: Vec<&String> = tree.parents.keys().collect();
    let base = wish.base.filter(|_| !known.is_empty()).map(|base| known[base.index(known.len())].clone());
    let mut json = json!({"_id": IDS[wish.id], "n": step});
    for (field, person) in [("Readers", wish.readers), ("Authors", wish.authors)] {
        if let Some(person) = person {
            json[field] = PEOPLE[person].into();
        }
    }
    if wish.deleted {
        json["_deleted"] = true.into();
    }
    let letter = char::from(wish.letter);
    match (&base, replicated) {
        (Some(base), false) => json["_rev"] = base.as_str().into(),
        (None, false) => {}
        (base, true) => {
            // A digest that holds its parent's, so that the same revision never has two.
            let (generation, digest) = base.as_deref().map_or((0, String::new()), parts);
            let digests: Vec<String> =
                base.iter().flat_map(|base| tree.chain(base)).map(|one| parts(&one).1).collect();
            let own = format!("{digest}{letter}{generation}");
            json["_rev"] = format!("{}-{own}", generation + 1).into();
            let ids: Vec<String> = std::iter::once(own).chain(digests).collect();
            json["_revisions"] = json!({"start": generation + 1, "ids": ids});
        }
    }
    let leaf = Leaf { deleted: wish.deleted, readers: wish.readers, authors: wish.authors };
    (json, base, leaf)
}

/// Holds the result of one edit against the model, and takes it over.
fn take(
    tree: &mut Tree,
    (person, replicated): (usize, bool),
    (base, leaf): (Option<String>, Leaf),
    result: &Result<Updated, DatabaseError>,
) {
    let before = tree.winner().map(|(revision, leaf)| (revision.clone(), leaf.clone()));
    let expected = if replicated { Some(true) } else { tree.succeeds(base.as_ref(), leaf.deleted) };
    let Ok(updated) = result else {
        assert!(person != 0 || expected != Some(true), "{result:?}");
        return;
    };
    assert_ne!(expected, Some(false), "{base:?} of {tree:?} was taken: {updated:?}");
    let replaced = base.as_ref().and_then(|base| tree.leaves.get(base)).filter(|leaf| !leaf.deleted).cloned();
    // What builds on nothing continues from a tombstone, if there is one.
    let on_tombstone = before.as_ref().filter(|_| !replicated).map(|(revision, _)| revision.clone());
    tree.add(&updated.revision, base.or(on_tombstone), leaf);
    if let Some(replaced) = replaced {
        assert!(replaced.is_editable_by(person), "{} replaced {replaced:?}", PEOPLE[person]);
    }
    let Some((revision, old)) = before.filter(|(_, old)| !old.deleted) else { return };
    if tree.winner().is_none_or(|(winner, _)| *winner != revision) {
        assert!(old.is_editable_by(person), "{} won over {old:?}", PEOPLE[person]);
    }
}

fn leaves(database: &OpenDatabase, id: &str, access: &Access) -> BTreeSet<String> {
    let options = ReadOptions::default();
    let found = database.open_revisions(id, &OpenRevisions::All, &options, access).unwrap_or_default();
    found
        .into_iter()
        .filter_map(|found| match found {
            OpenRevision::Found(document) => Some(document.revision),
            OpenRevision::Missing(_) => None,
        })
        .collect()
}

fn check(database: &OpenDatabase, trees: &[Tree]) {
    for (id, tree) in IDS.iter().zip(trees) {
        for (person, name) in PEOPLE.iter().enumerate() {
            let access = if person == 0 {
                Access::of_the_server("a test")
            } else {
                database.access(&Identity::new(name, Vec::new())).unwrap()
            };
            let expected = tree.readable_by(person);
            assert_eq!(leaves(database, id, &access), expected, "{id} as {name} finds it: {tree:?}");
        }
        let found = get(database, id).ok().map(|found| found["_rev"].as_str().unwrap().to_owned());
        let winner = tree.winner().filter(|(_, leaf)| !leaf.deleted).map(|(revision, _)| revision.clone());
        assert_eq!(found, winner, "{id}");
    }
    let info = database.info().unwrap();
    let count =
        |there: bool| trees.iter().filter(|tree| tree.winner().is_some() && tree.is_there() == there).count();
    assert_eq!((info.document_count, info.deleted_count), (count(true) as u64, count(false) as u64));
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::with_cases(scrinium_fault::cases(24)) })]

    #[test]
    fn bulk_edits_of_several_people_are_those_of_a_model(bulks in prop::collection::vec(bulk(), 1..25)) {
        let server = Server::quick();
        let database = server.databases.create("memos", &InitialAccess::Everybody).unwrap();
        let list = AccessList::parse(&json!({"default": {"level": "author"}})).unwrap();
        database.set_access_list(Some(list)).unwrap();
        let mut trees = vec![Tree::default(); IDS.len()];
        for (step, bulk) in bulks.into_iter().enumerate() {
            let Bulk { person, replicated, wishes } = bulk;
            let access = if person == 0 {
                Access::of_the_server("a test")
            } else {
                database.access(&Identity::new(PEOPLE[person], Vec::new())).unwrap()
            };
            let all: Vec<_> =
                wishes.iter().map(|wish| sent(wish, replicated, &trees[wish.id], step)).collect();
            let edits = all.iter().map(|(json, ..)| edit(json)).collect();
            let mode = if replicated { EditMode::Replicated } else { EditMode::Interactive };
            let results = database.update(edits, mode, &access).unwrap().wait().unwrap();
            prop_assert_eq!(results.len(), wishes.len());
            for ((wish, (_, base, leaf)), result) in wishes.iter().zip(all).zip(&results) {
                take(&mut trees[wish.id], (person, replicated), (base, leaf), result);
            }
            check(&database, &trees);
        }
    }
}

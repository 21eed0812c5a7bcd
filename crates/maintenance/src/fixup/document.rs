//! Making one document whole: from its head where that can be read, from the revisions that are stored, and from
//! nothing else. A revision whose record is gone is taken out of the document's tree, so that a replica that has it
//! brings it back; a tombstone would take it away from replicas.

use std::collections::{BTreeMap, BTreeSet};

use scrinium_database::head::{ChangeRecord, Head};
use scrinium_database::history::{self, EarlierBody};
use scrinium_database::{Result, keys};
use scrinium_document::{Revision, RevisionTree};
use scrinium_store::{Direction, Family, KeyRange};

use super::documents::{change_of, is_change_of, is_earlier};
use super::leaf::LeafSummary;
use super::mend::Mending;

/// Earlier revisions kept of a document that is put together from its revisions.
type Records = BTreeMap<Revision, (Vec<u8>, LeafSummary)>;

const LOST: &str = "a revision of a document cannot be read";
const OLD_HEAD: &str = "the record of a document's revisions, as it was before it was rebuilt";
const STRAY: &str = "a stored revision that its document does not have";

/// Everything that is stored of one document.
struct Stored {
    head_bytes: Option<Vec<u8>>,
    head: Option<Head>,
    /// Revisions that can be read, wherever they lie.
    records: Records,
    /// Where they lie.
    keys: Vec<(Vec<u8>, Option<Revision>, Vec<u8>)>,
    /// Keys and records of earlier bodies.
    earlier: Vec<(Vec<u8>, Vec<u8>)>,
}

pub(super) fn mend(mending: &mut Mending<'_>, id: &str) -> Result<()> {
    let stored = read(mending, id)?;
    let old_tree = stored.head.as_ref().map(|head| head.tree.clone()).unwrap_or_default();
    let tree = whole_tree(&stored, &old_tree);
    if let Some(head) = &stored.head_bytes
        && (stored.head.is_none() || tree != old_tree)
    {
        let key = keys::head(mending.number(), id);
        mending.aside.keep(&mut mending.batch, Family::Point, &key, head, OLD_HEAD);
    }
    place_records(mending, id, &stored, &tree);
    let earlier = sound_earlier(mending, id, &stored, &tree);
    let before = stored.head.as_ref().map(|head| head.contents.clone()).unwrap_or_default();
    if tree.is_empty() {
        return forget(mending, id, &stored, &before);
    }
    write_head(mending, id, &stored, (tree, earlier), &before)
}

fn read(mending: &Mending<'_>, id: &str) -> Result<Stored> {
    let number = mending.number();
    let head_bytes = mending.get(Family::Point, &keys::head(number, id))?;
    let head = head_bytes.as_deref().and_then(Head::decode).filter(|head| !head.tree.is_empty());
    let mut found = Vec::new();
    let winner_key = keys::winner(number, id);
    if let Some(winner) = mending.get(Family::Scan, &winner_key)? {
        found.push((winner_key, winner));
    }
    found.extend(all_from(mending, &keys::losers(number, id))?);
    let earlier = all_from(mending, &keys::earlier_of(number, id))?;
    let (mut records, mut keys) = (Records::new(), Vec::new());
    for (key, record) in found {
        let summary = LeafSummary::of(id, &record);
        keys.push((key, summary.as_ref().map(|summary| summary.revision.clone()), record.clone()));
        if let Some(summary) = summary {
            records.insert(summary.revision.clone(), (record, summary));
        }
    }
    Ok(Stored { head_bytes, head, records, keys, earlier })
}

/// All keys of revisions that begin like this, and their records.
fn all_from(mending: &Mending<'_>, from: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let to = keys::successor(from);
    let range = KeyRange { from, to: Some(&to) };
    let mut cursor = mending.snapshot.cursor(Family::Scan, range, Direction::Forward);
    let mut found = Vec::new();
    while let Some((key, record)) = cursor.next()? {
        found.push((key.to_vec(), record.to_vec()));
    }
    Ok(found)
}

/// The earlier bodies that a document keeps: those that it lists, that can be read and whose revisions it still knows. The
/// others are put aside.
fn sound_earlier(
    mending: &mut Mending<'_>,
    id: &str,
    stored: &Stored,
    tree: &RevisionTree,
) -> Vec<EarlierBody> {
    let number = mending.number();
    let listed = stored.head.iter().flat_map(|head| head.earlier.iter());
    let is_sound = |body: &&EarlierBody| {
        let key = keys::earlier(number, id, &body.revision);
        let record = stored.earlier.iter().find(|(of, _)| *of == key);
        history::is_earlier(tree, &body.revision)
            && record.is_some_and(|(_, record)| is_earlier(id, record, body))
    };
    let kept: Vec<EarlierBody> = listed.filter(is_sound).cloned().collect();
    for (key, record) in &stored.earlier {
        if kept.iter().all(|body| keys::earlier(number, id, &body.revision) != *key) {
            mending.aside.keep(&mut mending.batch, Family::Scan, key, record, STRAY);
            mending.batch.delete(Family::Scan, key);
        }
    }
    kept
}

/// The document's tree with those leaves that are stored; of a head that cannot be read, one of what is stored.
fn whole_tree(stored: &Stored, old: &RevisionTree) -> RevisionTree {
    let is_stored = |leaf: &scrinium_document::Leaf<'_>| {
        let record = stored.records.get(leaf.revision);
        record.is_some_and(|(_, summary)| summary.deleted == leaf.deleted)
    };
    if !old.is_empty() && old.leaves().all(|leaf| is_stored(&leaf)) {
        return old.clone();
    }
    let mut tree = RevisionTree::new();
    let mut add = |revision: &Revision, deleted| {
        let path = old.path(revision).unwrap_or_else(|| vec![revision.clone()]);
        // A path of the old tree, or a single revision, always fits.
        let _merged = tree.merge(&path, deleted);
    };
    old.leaves().filter(is_stored).for_each(|leaf| add(leaf.revision, leaf.deleted));
    let rest: Vec<_> = stored.records.values().map(|(_, summary)| summary).collect();
    if old.leaves().any(|leaf| is_stored(&leaf)) {
        return tree;
    }
    rest.iter().for_each(|summary| add(&summary.revision, summary.deleted));
    tree
}

/// Puts each record where it belongs, and those aside that belong nowhere.
fn place_records(mending: &mut Mending<'_>, id: &str, stored: &Stored, tree: &RevisionTree) {
    let number = mending.number();
    let winner = tree.winner().map(|winner| winner.revision.clone());
    let mut wanted: BTreeMap<Vec<u8>, &[u8]> = BTreeMap::new();
    for leaf in tree.leaves() {
        let Some((record, _)) = stored.records.get(leaf.revision) else { continue };
        let key = if Some(leaf.revision) == winner.as_ref() {
            keys::winner(number, id)
        } else {
            keys::loser(number, id, leaf.revision)
        };
        wanted.insert(key, record);
    }
    for (key, revision, record) in &stored.keys {
        let is_kept = wanted.values().any(|wanted| *wanted == record.as_slice());
        let reason = if revision.is_some() { STRAY } else { LOST };
        if !is_kept {
            mending.aside.keep(&mut mending.batch, Family::Scan, key, record, reason);
        }
        if !wanted.contains_key(key) {
            mending.batch.delete(Family::Scan, key);
        }
    }
    for (key, record) in wanted {
        let is_there = stored.keys.iter().any(|(of, _, stored)| *of == key && stored == record);
        if !is_there {
            mending.batch.put(Family::Scan, &key, record);
        }
    }
}

/// Nothing can be read of the document: what is left of it goes to what is put aside.
fn forget(mending: &mut Mending<'_>, id: &str, stored: &Stored, contents: &[keys::Digest]) -> Result<()> {
    let number = mending.number();
    mending.batch.delete(Family::Point, &keys::head(number, id));
    if let Some(head) = &stored.head {
        remove_change(mending, id, head.change_number)?;
    }
    for digest in contents {
        mending.batch.delete(Family::Point, &keys::reference(digest, number, id));
        mending.batch.put(Family::Point, &keys::collectable(digest), &[]);
    }
    Ok(())
}

fn write_head(
    mending: &mut Mending<'_>,
    id: &str,
    stored: &Stored,
    (tree, earlier): (RevisionTree, Vec<EarlierBody>),
    before: &[keys::Digest],
) -> Result<()> {
    let number = mending.number();
    let mut contents = BTreeSet::new();
    let (mut external_bytes, mut created_ms) = (0, u64::MAX);
    let mut others_bytes = keys::head(number, id).len();
    for leaf in tree.leaves() {
        if let Some((record, summary)) = stored.records.get(leaf.revision) {
            others_bytes += keys::winner(number, id).len() + record.len();
            contents.extend(summary.contents.iter().copied());
            external_bytes += summary.external_bytes;
            created_ms = created_ms.min(summary.created_ms);
        }
    }
    for body in &earlier {
        others_bytes += usize::try_from(body.stored_bytes).unwrap_or(usize::MAX);
        contents.extend(body.contents.iter().copied());
    }
    let contents: Vec<_> = contents.into_iter().collect();
    for digest in &contents {
        let key = keys::reference(digest, number, id);
        if mending.get(Family::Point, &key)?.is_none() {
            mending.batch.put(Family::Point, &key, &[]);
        }
    }
    for digest in before.iter().filter(|digest| contents.binary_search(digest).is_err()) {
        mending.batch.delete(Family::Point, &keys::reference(digest, number, id));
        mending.batch.put(Family::Point, &keys::collectable(digest), &[]);
    }
    let old = stored.head.as_ref();
    let same_tree = old.is_some_and(|old| old.tree == tree);
    let mut head = Head {
        change_number: old.map_or(0, |old| old.change_number),
        created_ms: old.map_or(created_ms, |old| old.created_ms),
        external_bytes,
        contents,
        tree,
        stored_bytes: 0,
        earlier,
    };
    let change = mending.get(Family::Churn, &keys::change(number, head.change_number))?;
    let change = change.and_then(|change| ChangeRecord::decode(&change));
    let is_in_feed =
        change.is_some_and(|change| change.id == id && is_change_of(&change, head.change_number, &head));
    let is_new = !same_tree || !is_in_feed;
    if is_new {
        remove_change(mending, id, head.change_number)?;
        head.change_number = mending.next_change();
    }
    if let Some(change) = change_of(id, &head) {
        let (key, record) = (keys::change(number, head.change_number), change.encode());
        others_bytes += key.len() + record.len();
        if is_new {
            mending.batch.put(Family::Churn, &key, &record);
        }
    }
    let record = head.encode_counting(others_bytes as u64);
    mending.batch.put(Family::Point, &keys::head(number, id), &record);
    Ok(())
}

/// Removes the entry of the feed of a document's last change, if that is there and no other document's.
fn remove_change(mending: &mut Mending<'_>, id: &str, change_number: u64) -> Result<()> {
    let key = keys::change(mending.number(), change_number);
    if let Some(stored) = mending.get(Family::Churn, &key)?
        && ChangeRecord::decode(&stored).is_some_and(|change| change.id == id)
    {
        mending.batch.delete(Family::Churn, &key);
    }
    Ok(())
}

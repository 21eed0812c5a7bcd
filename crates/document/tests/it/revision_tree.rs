//! Revision trees against a naive model: sets of revisions and of the pairs that follow each other.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_document::{Digest, DocumentError, Merged, Revision, RevisionTree};

fn revision(generation: u64, number: u8) -> Revision {
    let digest = if number.is_multiple_of(5) {
        Digest::parse(&format!("text{number}")).unwrap()
    } else {
        Digest::Hash([number; 16])
    };
    Revision::new(generation, digest)
}

/// A history that edits could have made: each revision has one parent, a deletion flag of its own.
#[derive(Debug, Clone)]
struct History {
    /// Parent by revision; `None` for a first one.
    parents: BTreeMap<Revision, Option<Revision>>,
    deleted: BTreeSet<Revision>,
}

fn history() -> impl Strategy<Value = History> {
    vec((any::<prop::sample::Index>(), any::<bool>(), 0..4u8), 1..40).prop_map(|steps| {
        let mut parents = BTreeMap::new();
        let mut made: Vec<Revision> = Vec::new();
        let mut deleted = BTreeSet::new();
        for (number, (parent, delete, root)) in (0u8..).zip(steps) {
            let parent = (!made.is_empty() && root > 0).then(|| made[parent.index(made.len())].clone());
            let new = revision(parent.as_ref().map_or(0, Revision::generation) + 1, number);
            if delete {
                deleted.insert(new.clone());
            }
            parents.insert(new.clone(), parent);
            made.push(new);
        }
        History { parents, deleted }
    })
}

impl History {
    fn path(&self, head: &Revision) -> Vec<Revision> {
        std::iter::successors(Some(head.clone()), |at| self.parents[at].clone()).collect()
    }

    fn heads(&self) -> Vec<Revision> {
        self.parents.keys().cloned().collect()
    }
}

/// What the merged paths say, kept as plainly as can be.
#[derive(Default)]
struct Model {
    known: BTreeSet<Revision>,
    followed: BTreeSet<Revision>,
}

impl Model {
    fn merge(&mut self, path: &[Revision]) {
        self.known.extend(path.iter().cloned());
        self.followed.extend(path.iter().skip(1).cloned());
    }

    fn leaves(&self) -> BTreeSet<Revision> {
        self.known.difference(&self.followed).cloned().collect()
    }

    fn winner(&self, deleted: &BTreeSet<Revision>) -> Option<Revision> {
        self.leaves().into_iter().max_by_key(|leaf| (!deleted.contains(leaf), leaf.clone()))
    }
}

fn leaves(tree: &RevisionTree) -> BTreeSet<Revision> {
    tree.leaves().map(|leaf| leaf.revision.clone()).collect()
}

proptest! {
    #[test]
    fn what_leads_to_some_leaves_is_their_paths(history in history(), chosen in any::<u64>()) {
        let mut tree = RevisionTree::new();
        for head in history.heads() {
            tree.merge(&history.path(&head), history.deleted.contains(&head)).unwrap();
        }
        let chosen: BTreeSet<Revision> = leaves(&tree)
            .into_iter()
            .enumerate()
            .filter_map(|(number, leaf)| (chosen >> number & 1 == 1).then_some(leaf))
            .collect();
        let paths = chosen.iter().flat_map(|leaf| tree.path(leaf).unwrap()).collect();
        prop_assert_eq!(tree.leading_to(|leaf| chosen.contains(leaf)), paths);
    }
}

fn round_trip(tree: &RevisionTree) {
    let bytes = tree.encode();
    let again = RevisionTree::decode(&bytes).unwrap();
    assert_eq!(again.encode(), bytes);
    assert_eq!(again.leaves().collect::<Vec<_>>(), tree.leaves().collect::<Vec<_>>());
    for leaf in tree.leaves() {
        assert_eq!(again.path(leaf.revision), tree.path(leaf.revision));
    }
}

/// Which revisions arrive, how much of their history comes with them, and in what order on each replica.
type Arrivals = (Vec<(prop::sample::Index, usize)>, Vec<prop::sample::Index>);

fn arrivals() -> impl Strategy<Value = Arrivals> {
    (vec((any::<prop::sample::Index>(), 1..6usize), 1..40), vec(any::<prop::sample::Index>(), 40))
}

proptest! {
    #[test]
    fn replicas_that_saw_the_same_paths_agree(history in history(), (arrivals, order) in arrivals()) {
        let heads = history.heads();
        let paths: Vec<Vec<Revision>> = arrivals
            .iter()
            .map(|(head, length)| {
                let mut path = history.path(&heads[head.index(heads.len())]);
                path.truncate(*length);
                path
            })
            .collect();
        let mut shuffled = paths.clone();
        for (at, other) in order.iter().take(shuffled.len()).enumerate() {
            let other = other.index(shuffled.len());
            shuffled.swap(at, other);
        }
        let (mut here, mut there, mut model) = (RevisionTree::new(), RevisionTree::new(), Model::default());
        for path in &paths {
            let before = here.clone();
            let known = here.contains(&path[0]);
            let merged = here.merge(path, history.deleted.contains(&path[0])).unwrap();
            prop_assert_eq!(merged.is_new(), !known);
            prop_assert_eq!(merged.changed(), here != before);
            model.merge(path);
            prop_assert_eq!(leaves(&here), model.leaves());
        }
        for path in &shuffled {
            there.merge(path, history.deleted.contains(&path[0])).unwrap();
        }
        // A revision that once came as another's ancestor carries no flag of its own, so winners are told by leaves
        // that have arrived as such; every leaf has.
        prop_assert_eq!(here.winner().map(|leaf| leaf.revision.clone()), model.winner(&history.deleted));
        prop_assert_eq!(leaves(&here), leaves(&there));
        prop_assert_eq!(here.winner(), there.winner());
        for leaf in here.leaves() {
            prop_assert_eq!(here.path(leaf.revision), there.path(leaf.revision));
            prop_assert_eq!(leaf.deleted, history.deleted.contains(leaf.revision));
            prop_assert!(leaf.body);
        }
        round_trip(&here);
    }

    #[test]
    fn contradicting_histories_leave_replicas_equal(
        paths in vec((vec(0..3u8, 1..5), 1..4u64), 1..12),
        order in vec(any::<prop::sample::Index>(), 12),
    ) {
        // Digests from a set of three: the same revision turns up with different parents.
        let paths: Vec<Vec<Revision>> = paths
            .iter()
            .map(|(digests, oldest)| {
                {
                    let mut path: Vec<Revision> =
                        (*oldest..).zip(digests).map(|(generation, digest)| revision(generation, *digest)).collect();
                    path.reverse();
                    path
                }
            })
            .collect();
        let mut shuffled = paths.clone();
        for (at, other) in order.iter().take(shuffled.len()).enumerate() {
            let other = other.index(shuffled.len());
            shuffled.swap(at, other);
        }
        let (mut here, mut there) = (RevisionTree::new(), RevisionTree::new());
        for path in &paths {
            here.merge(path, false).unwrap();
        }
        for path in &shuffled {
            there.merge(path, false).unwrap();
        }
        prop_assert_eq!(here.encode(), there.encode());
        round_trip(&here);
    }

    #[test]
    fn stemming_keeps_leaves_and_the_newest_of_each_branch(history in history(), limit in 1..6usize) {
        let mut tree = RevisionTree::new();
        for head in history.heads() {
            tree.merge(&history.path(&head), history.deleted.contains(&head)).unwrap();
        }
        let whole = tree.clone();
        tree.stem(limit);
        prop_assert_eq!(tree.leaves().collect::<Vec<_>>(), whole.leaves().collect::<Vec<_>>());
        let mut kept = BTreeSet::new();
        for leaf in whole.leaves() {
            kept.extend(whole.path(leaf.revision).unwrap().into_iter().take(limit));
        }
        prop_assert_eq!(tree.len(), kept.len());
        for revision in &kept {
            prop_assert!(tree.contains(revision));
        }
        for leaf in tree.leaves() {
            prop_assert!(tree.path(leaf.revision).unwrap().len() >= limit.min(whole.path(leaf.revision).unwrap().len()));
        }
        round_trip(&tree);
    }

    #[test]
    fn interactive_edits_follow_leaves_only(edits in vec((any::<prop::sample::Index>(), 0..4u8, any::<bool>()), 1..40)) {
        let mut tree = RevisionTree::new();
        let mut made: Vec<Revision> = Vec::new();
        for (number, (parent, kind, deleted)) in (0u8..).zip(edits) {
            let named = (kind > 0 && !made.is_empty()).then(|| made[parent.index(made.len())].clone());
            let leaves_before: Vec<Revision> = tree.leaves().map(|leaf| leaf.revision.clone()).collect();
            let winner = tree.winner().map(|leaf| (leaf.revision.clone(), leaf.deleted));
            let follows = match (&named, &winner) {
                (Some(named), _) => leaves_before.contains(named).then(|| Some(named.clone())),
                (None, Some((_, false))) => None,
                (None, winner) => Some(winner.as_ref().map(|winner| winner.0.clone())),
            };
            match (tree.edit_parent(named.as_ref()).map(|parent| parent.cloned()), follows) {
                (Ok(parent), Some(expected)) => {
                    prop_assert_eq!(&parent, &expected);
                    let new = revision(parent.as_ref().map_or(0, Revision::generation) + 1, number);
                    tree.add_edit(named.as_ref(), new.clone(), deleted).unwrap();
                    let leaf = tree.leaf(&new).unwrap();
                    prop_assert!(leaf.deleted == deleted && leaf.body);
                    prop_assert!(parent.is_none_or(|parent| tree.leaf(&parent).is_none()));
                    made.push(new);
                }
                (Err(DocumentError::Conflict), None) => {
                    let new = revision(named.as_ref().map_or(0, Revision::generation) + 1, number);
                    let before = tree.clone();
                    prop_assert_eq!(tree.add_edit(named.as_ref(), new, deleted), Err(DocumentError::Conflict));
                    prop_assert_eq!(&tree, &before);
                }
                other => prop_assert!(false, "{other:?}"),
            }
            round_trip(&tree);
        }
    }

    #[test]
    fn decoding_never_panics(bytes in vec(any::<u8>(), 0..200)) {
        let mut led = vec![1];
        led.extend_from_slice(&bytes);
        for bytes in [bytes, led] {
            if let Ok(tree) = RevisionTree::decode(&bytes) {
                let _ = (tree.winner(), tree.conflicts().count(), tree.encode());
            }
        }
    }

    #[test]
    fn decoding_survives_damage(history in history(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut tree = RevisionTree::new();
        for head in history.heads() {
            tree.merge(&history.path(&head), history.deleted.contains(&head)).unwrap();
        }
        let mut bytes = tree.encode();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(mut tree) = RevisionTree::decode(&bytes) {
            tree.stem(2);
            for leaf in tree.leaves() {
                tree.path(leaf.revision).unwrap();
            }
        }
        let _ = RevisionTree::decode(&bytes[..at]);
    }
}

#[test]
fn merge_tells_what_it_did() {
    let path = |generations: &[(u64, u8)]| -> Vec<Revision> {
        generations.iter().map(|&(generation, number)| revision(generation, number)).collect()
    };
    let mut tree = RevisionTree::new();
    assert_eq!(tree.merge(&path(&[(2, 2), (1, 1)]), false), Ok(Merged::NewLeaf));
    assert_eq!(tree.merge(&path(&[(4, 4), (3, 3), (2, 2)]), false), Ok(Merged::NewLeaf));
    assert_eq!(tree.merge(&path(&[(3, 9), (2, 2)]), false), Ok(Merged::NewBranch));
    assert_eq!(tree.merge(&path(&[(3, 9)]), false), Ok(Merged::AlreadyThere));
    assert_eq!(tree.merge(&path(&[(3, 3)]), false), Ok(Merged::InternalNode));
    assert_eq!(tree.merge(&path(&[(6, 6)]), false), Ok(Merged::NewBranch));
    assert_eq!(tree.merge(&path(&[(6, 6), (5, 6), (4, 4)]), false), Ok(Merged::Joined));
    assert_eq!(tree.conflicts().map(|leaf| leaf.revision.clone()).collect::<Vec<_>>(), path(&[(3, 9)]));
    assert_eq!(tree.path(&revision(6, 6)).unwrap(), path(&[(6, 6), (5, 6), (4, 4), (3, 3), (2, 2), (1, 1)]));
    assert_eq!(tree.missing(&path(&[(6, 6), (7, 7)])), path(&[(7, 7)]));
    assert_eq!(tree.possible_ancestors(&path(&[(6, 7)])), path(&[(3, 9)]));
    let latest: Vec<_> = tree.leaves_from(&revision(2, 2)).iter().map(|leaf| leaf.revision.clone()).collect();
    assert_eq!(latest, path(&[(6, 6), (3, 9)]));
    assert!(tree.merge(&path(&[(1, 1), (u64::MAX, 1)]), false).is_err());
    assert!(tree.merge(&[], false).is_err());
    assert!(tree.merge(&path(&[(3, 1), (1, 1)]), false).is_err());
    assert!(tree.merge(&path(&[(1, 1), (0, 1)]), false).is_err());
}

#[test]
fn long_histories_stay_quick_and_bounded() {
    let path = |from: u64, to: u64| -> Vec<Revision> {
        (from..=to).rev().map(|generation| revision(generation, (generation % 251) as u8)).collect()
    };
    let mut tree = RevisionTree::new();
    for step in 1..=20u64 {
        tree.merge(&path(step.saturating_sub(1) * 500 + 1, step * 500), false).unwrap();
        tree.merge(&path(step * 500, step * 500 + 10), false).unwrap();
        tree.stem(1000);
        assert!(tree.len() <= 2000);
    }
    assert_eq!(tree.winner().unwrap().revision.generation(), 10_010);
    round_trip(&tree);
}

/// Found by fuzzing: a chain that follows the highest generation there can be.
#[test]
fn the_highest_generation_is_followed_by_none() {
    let highest = revision(u64::MAX, 1);
    let mut tree = RevisionTree::new();
    tree.merge(std::slice::from_ref(&highest), true).unwrap();
    assert!(tree.add_edit(Some(&highest), revision(u64::MAX, 2), false).is_err());
    assert!(tree.add_edit(None, revision(1, 2), false).is_err());
    round_trip(&tree);
    let digest = [7; 17];
    let mut bytes = vec![1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    bytes.extend_from_slice(&digest[..16]);
    bytes.extend_from_slice(&[8, 1, 0]);
    bytes.extend_from_slice(&digest[..16]);
    assert!(RevisionTree::decode(&bytes).is_err());
}

/// The stored form. A change here must come with a new format version that still reads these bytes.
#[test]
fn golden_bytes() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut tree = RevisionTree::new();
    assert_eq!(hex(&tree.encode()), "01");
    tree.add_edit(None, revision(1, 0x11), false).unwrap();
    assert_eq!(hex(&tree.encode()), format!("010001{}", "11".repeat(16)));
    tree.add_edit(Some(&revision(1, 0x11)), revision(2, 0x22), true).unwrap();
    tree.add_edit(None, revision(3, 0x33), false).unwrap();
    tree.merge(&[revision(2, 5), revision(1, 0x11)], false).unwrap();
    assert!(tree.set_body(&revision(2, 5), false));
    let winner = format!("50030301{}{}{}", "33".repeat(16), "22".repeat(16), "11".repeat(16));
    assert_eq!(hex(&tree.encode()), format!("01{winner}2a02020574657874 35").replace(' ', ""));
    round_trip(&tree);
}

#[test]
fn revisions_are_spelled_and_ordered_as_couchdb_does() {
    let text = "3-917fa2381192822767f010b95b45325b";
    assert_eq!(Revision::parse(text).unwrap().to_string(), text);
    assert_eq!(Revision::parse(&text.to_uppercase()).unwrap().to_string(), text);
    assert_eq!(Revision::parse("12-abc").unwrap().to_string(), "12-abc");
    assert_eq!(Revision::parse("1-a-b").unwrap().to_string(), "1-a-b");
    let not_hexadecimal = format!("1-{}", "z".repeat(32));
    let too_long = format!("1-{}", "z".repeat(129));
    for bad in [
        "",
        "-",
        "1",
        "1-",
        "-abc",
        "a-b",
        "+1-abc",
        " 1-abc",
        "99999999999999999999-a",
        &not_hexadecimal,
        &too_long,
    ] {
        let error = Revision::parse(bad).unwrap_err();
        assert_eq!(
            (error.status(), error.error(), &*error.reason()),
            (400, "bad_request", "Invalid rev format"),
            "{bad}"
        );
    }
    let ordered = ["1-ff", "2-a", "2-b", "10-a"].map(|text| Revision::parse(text).unwrap());
    assert!(ordered.is_sorted());
}

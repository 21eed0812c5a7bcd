//! Whether a store holds what was promised.

use std::time::Duration;

use scrinium_fault::Cut;
use scrinium_statistics::Registry;
use scrinium_store::{Direction, Family, KeyRange, Store, StoreError};

use super::lives::options;
use crate::common::writers::{WRITERS, check_derived, key, number, update, version_of};

/// Commits that one writer has under way at most.
const UNDER_WAY: u64 = 2;

/// Entries of each batch that is brought in.
pub(crate) const INGESTED: u64 = 40;

pub(crate) fn ingested_key(batch: u64, entry: u64) -> Vec<u8> {
    [b"ingested".to_vec(), key(&[batch, entry])].concat()
}

/// How many batches were brought in. Each must be there as a whole.
pub(crate) fn ingested(store: &Store) -> u64 {
    let snapshot = store.snapshot();
    let (from, to) = (ingested_key(0, 0), ingested_key(u64::MAX, 0));
    let mut cursor = snapshot.cursor(Family::DerivedPoint, KeyRange::new(&from, &to), Direction::Forward);
    let mut entries = 0;
    while let Some((found, value)) = cursor.next().unwrap() {
        let batch = entries / INGESTED;
        assert_eq!((found, number(value)), (&*ingested_key(batch, entries % INGESTED), batch));
        entries += 1;
    }
    assert_eq!(entries % INGESTED, 0, "a part of what was brought in");
    entries / INGESTED
}

/// Holds a store against what was promised before the power went. The versions of all writers.
pub(crate) fn check(store: &Store, marks: &[String]) -> Vec<u64> {
    let mut promised = vec![0; usize::try_from(WRITERS).unwrap()];
    let (mut batches, mut round_before) = (0, 0);
    for mark in marks {
        let words: Vec<&str> = mark.split(' ').collect();
        let number = |word: usize| words[word].parse::<u64>().unwrap();
        match words[0] {
            "ack" => promised[usize::try_from(number(1)).unwrap()] = number(2),
            "ingested" => (batches, round_before) = (number(1) + 1, number(2)),
            _ => {}
        }
    }
    let snapshot = store.snapshot();
    let versions: Vec<_> = (0..WRITERS).map(|writer| version_of(&snapshot, writer)).collect();
    for (writer, (version, promised)) in versions.iter().zip(&promised).enumerate() {
        let may_be = *promised..=promised + UNDER_WAY;
        assert!(may_be.contains(version), "writer {writer} was promised {promised} and has {version}");
    }
    let round = check_derived(&snapshot, &versions);
    assert!(round >= round_before, "round {round} of {round_before}, which came before what was brought in");
    let found = ingested(store);
    assert!(found >= batches, "{found} of {batches} batches that were brought in are there");
    versions
}

/// A process that another check starts has this one's locks for a moment, until it becomes another program.
fn open(cut: &Cut) -> Store {
    for _ in 0..1000 {
        match Store::open(options(&cut.folder), &Registry::new()) {
            Err(StoreError::Locked { .. }) => std::thread::sleep(Duration::from_millis(5)),
            opened => return opened.unwrap(),
        }
    }
    panic!("the store stays locked");
}

/// What is on the disk opens, holds what was promised, takes more, and holds that when it is opened again.
pub(crate) fn check_disk(cut: &Cut) {
    let store = open(cut);
    let versions = check(&store, &cut.marks);
    if !cut.number.is_multiple_of(4) {
        return;
    }
    for (writer, version) in (0..).zip(&versions) {
        store.commit(update(writer, version + 1)).unwrap();
    }
    if cut.number.is_multiple_of(8) {
        store.close().unwrap();
    } else {
        drop(store);
    }
    let store = open(cut);
    let snapshot = store.snapshot();
    for (writer, version) in (0..).zip(versions) {
        assert_eq!(version_of(&snapshot, writer), version + 1);
    }
}

//! Writers that each make versions of one thing in all families, and what is derived of them: what is there can be
//! told from the newest version alone.

use scrinium_store::{Batch, Direction, Family, KeyRange, Snapshot, Store};

use super::all;

pub(crate) const WRITERS: u64 = 8;
const SLOTS: u64 = 16;
const ENTRIES: u64 = 4;

pub(crate) fn key(parts: &[u64]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.to_be_bytes()).collect()
}

pub(crate) fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes[..8].try_into().unwrap())
}

/// Everything that version `version` of `writer` changes.
pub(crate) fn update(writer: u64, version: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put(Family::Point, &key(&[writer]), &key(&[version]));
    let document = key(&[version]).repeat(128);
    batch.put(Family::Scan, &key(&[writer, version % SLOTS]), &document);
    batch.put(Family::Blob, &key(&[writer]), &document.repeat(6));
    if version.is_multiple_of(3) {
        batch.delete_range(Family::Churn, &key(&[writer, 0]), &key(&[writer, version]));
    } else {
        (0..ENTRIES).for_each(|entry| batch.delete(Family::Churn, &key(&[writer, version - 1, entry])));
    }
    (0..ENTRIES).for_each(|entry| batch.put(Family::Churn, &key(&[writer, version, entry]), b""));
    batch
}

/// Checks that exactly the changes up to some version of `writer` are there, and tells which.
pub(crate) fn version_of(snapshot: &Snapshot, writer: u64) -> u64 {
    let version = snapshot.get(Family::Point, &key(&[writer])).unwrap().map_or(0, |value| number(&value));
    for slot in 0..SLOTS {
        let found = snapshot.get(Family::Scan, &key(&[writer, slot])).unwrap().map(|value| number(&value));
        let age = (version + SLOTS - slot) % SLOTS;
        let wanted = version.checked_sub(age).filter(|wanted| *wanted > 0);
        assert_eq!(found, wanted, "writer {writer}, slot {slot} of version {version}");
    }
    let (from, to) = (key(&[writer]), key(&[writer + 1]));
    let mut cursor = snapshot.cursor(Family::Churn, KeyRange::new(&from, &to), Direction::Forward);
    for entry in 0..if version == 0 { 0 } else { ENTRIES } {
        let (found, _) = cursor.next().unwrap().unwrap();
        assert_eq!(found, key(&[writer, version, entry]));
    }
    assert_eq!(cursor.next().unwrap(), None);
    let blob = snapshot.get(Family::Blob, &key(&[writer])).unwrap();
    assert_eq!(blob.map_or(0, |value| number(&value)), version);
    version
}

/// One derived batch: the same round everywhere, and the versions that it was derived from.
pub(crate) fn derived(store: &Store, round: u64) -> Batch {
    let snapshot = store.snapshot();
    let mut batch = Batch::new();
    batch.put(Family::DerivedPoint, b"round", &key(&[round]));
    for writer in 0..WRITERS {
        let version = snapshot.get(Family::Point, &key(&[writer])).unwrap().map_or(0, |value| number(&value));
        batch.put(Family::DerivedScan, &key(&[writer]), &key(&[round, version]));
        batch.delete(Family::DerivedChurn, &key(&[round - 1, writer]));
        batch.put(Family::DerivedChurn, &key(&[round, writer]), b"");
    }
    batch
}

/// Checks that the derived families hold one whole round, derived from what is there. Tells which.
pub(crate) fn check_derived(snapshot: &Snapshot, versions: &[u64]) -> u64 {
    let round = snapshot.get(Family::DerivedPoint, b"round").unwrap().map_or(0, |value| number(&value));
    let scan = all(snapshot, Family::DerivedScan);
    let churn = all(snapshot, Family::DerivedChurn);
    let expected = if round == 0 { 0 } else { versions.len() };
    assert_eq!((scan.len(), churn.len()), (expected, expected));
    for (writer, ((_, value), (churn, _))) in scan.iter().zip(&churn).enumerate() {
        assert_eq!((number(value), number(churn)), (round, round));
        assert!(number(&value[8..]) <= versions[writer], "derived from what was lost");
    }
    round
}

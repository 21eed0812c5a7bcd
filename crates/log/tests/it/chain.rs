//! The digest over all records depends on them and their numbers alone.

use crate::common::{Disk, open, record};
use bytes::Bytes;
use proptest::prelude::*;
use scrinium_log::{Chain, LogError, Sequence};

#[test]
fn the_digest_of_known_records_is_known() {
    let chain = Chain::EMPTY.with(b"one").with(b"").with(b"three");
    assert_eq!((chain.last(), chain.next()), (Sequence(3), Sequence(4)));
    // Of Python's blake3: c = blake3(c + n.to_bytes(8, "little") + blake3(record)).
    let digest: String = chain.digest().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, "82ababfdcc02f9175b85065853a86687d80c05476171d1ec6f0e88906a9a6e07");
}

#[test]
fn another_record_another_number_and_another_order_have_another_digest() {
    let chain = Chain::EMPTY.with(b"a").with(b"b");
    for other in [
        Chain::EMPTY.with(b"b").with(b"a"),
        Chain::EMPTY.with(b"ab").with(b""),
        Chain::EMPTY.with(b"a").with(b"b").with(b""),
        Chain::new(Sequence(1), [0; 32]).with(b"a").with(b"b"),
    ] {
        assert_ne!(chain.digest(), other.digest());
    }
}

proptest! {
    #[test]
    fn groups_do_not_matter(lengths in prop::collection::vec(1_usize..2000, 1..12), cut in any::<prop::sample::Index>()) {
        let records: Vec<Bytes> = (0..).zip(&lengths).map(|(number, length)| record(number, *length)).collect();
        let expected = Chain::EMPTY.with_all(&records);
        let cut = cut.index(records.len() + 1);
        let (mut log, _) = open(&Disk::new()).unwrap();
        for group in [&records[..cut], &records[cut..]] {
            group.chunks(3).for_each(|group| { log.append(group).unwrap(); });
        }
        prop_assert_eq!(log.extend_chain(Chain::EMPTY).unwrap(), expected);
        // From any record on whose digest was noted.
        let noted = Chain::EMPTY.with_all(&records[..cut]);
        prop_assert_eq!(log.extend_chain(noted).unwrap(), expected);
        prop_assert_eq!(log.extend_chain(expected).unwrap(), expected);
    }
}

#[test]
fn a_chain_needs_the_records_after_its_end() {
    let (mut log, _) = open(&Disk::new()).unwrap();
    let records: Vec<Bytes> = (1..9).map(|number| record(number, 8000)).collect();
    records.iter().for_each(|record| {
        log.append(std::slice::from_ref(record)).unwrap();
    });
    log.release_before(Sequence(6)).unwrap();
    assert!(matches!(log.extend_chain(Chain::EMPTY), Err(LogError::NotHeld { .. })));
    let noted = Chain::EMPTY.with_all(&records[..5]);
    assert_eq!(log.extend_chain(noted).unwrap(), Chain::EMPTY.with_all(&records));
    assert!(matches!(log.extend_chain(Chain::new(Sequence(99), [0; 32])), Err(LogError::NotHeld { .. })));
}

//! Entries are read as they were written, and nothing else is read as one.

use bytes::Bytes;
use proptest::prelude::*;
use scrinium_cluster::{
    Entry, EntryError, EntryKind, Epoch, Keys, LARGEST_ENTRY_BYTES, LARGEST_RECORDS_BYTES, MemberId,
};
use scrinium_log::{Chain, Sequence};

fn kind() -> impl Strategy<Value = EntryKind> {
    prop_oneof![
        any::<u32>().prop_map(|id| EntryKind::Begin(MemberId(id))),
        any::<u32>().prop_map(|id| EntryKind::Claim(MemberId(id))),
        Just(EntryKind::Records),
        any::<u32>().prop_map(|id| EntryKind::HandOver(MemberId(id))),
        Just(EntryKind::Seal),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    let record = prop::collection::vec(any::<u8>(), 0..60).prop_map(Bytes::from);
    let records = prop::collection::vec(record, 1..6);
    (kind(), any::<u64>(), 0..u64::MAX - 10, any::<[u8; 32]>(), records).prop_map(
        |(kind, epoch, last, digest, records)| {
            Entry::new(kind, Epoch(epoch), Chain::new(Sequence(last), digest), records).unwrap()
        },
    )
}

proptest! {
    #[test]
    fn an_entry_is_read_as_it_was_written(entry in entry()) {
        prop_assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
    }

    #[test]
    fn one_other_bit_is_noticed(entry in entry(), chance in any::<prop::sample::Index>()) {
        let mut bytes = entry.encode().to_vec();
        let bit = chance.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Entry::decode(&bytes.into()).is_err());
    }

    #[test]
    fn a_part_of_an_entry_is_none(entry in entry(), chance in any::<prop::sample::Index>()) {
        let bytes = entry.encode();
        prop_assert_eq!(Entry::decode(&bytes.slice(..chance.index(bytes.len()))), Err(EntryError::Damaged));
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Entry::decode(&bytes.into()).is_err());
    }
}

#[test]
fn an_entry_is_bounded() {
    let new = |records| Entry::new(EntryKind::Records, Epoch(1), Chain::EMPTY, records);
    assert_eq!(new(Vec::new()), Err(EntryError::Empty));
    let fits = LARGEST_RECORDS_BYTES - 4;
    let largest = new(vec![vec![0; fits].into()]).unwrap();
    assert_eq!(largest.encode().len(), LARGEST_ENTRY_BYTES);
    assert!(new(vec![vec![0; fits + 1].into()]).is_err());
    assert!(matches!(new(vec![vec![0; LARGEST_ENTRY_BYTES].into()]), Err(EntryError::TooLarge { .. })));
    assert!(matches!(new(vec![Bytes::new(); 9_000]), Err(EntryError::TooLarge { .. })));
    let long = Bytes::from(vec![1; LARGEST_ENTRY_BYTES + 1]);
    assert!(matches!(Entry::decode(&long), Err(EntryError::TooLarge { .. })));
}

#[test]
fn keys_sort_as_numbers_do_and_names_cannot_leave_their_place() {
    let keys = Keys::new("office", "main").unwrap();
    assert_eq!(keys.entry(Sequence(255)), "s/office/log/main/00000000000000ff");
    let numbers = [0, 1, 9, 10, 255, 256, 1 << 40, u64::MAX];
    let sorted: Vec<Bytes> = numbers.iter().map(|number| keys.entry(Sequence(*number))).collect();
    assert!(sorted.is_sorted() && sorted.iter().all(|key| *key < keys.after_entries()));
    let other = Keys::new("office", "main2").unwrap();
    assert!(other.entry(Sequence(0)) > keys.after_entries());
    let long = "a".repeat(65);
    for name in ["", "a/b", "A", "ä", "a b", "\0", long.as_str()] {
        assert!(Keys::new(name, "main").is_err() && Keys::new("office", name).is_err(), "{name:?}");
    }
}

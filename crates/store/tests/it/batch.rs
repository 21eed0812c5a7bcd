//! The encoding of batches: fixed byte for byte, and safe to read from anywhere.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_store::{Batch, Family, Operation, StoreError};

/// Batches that older servers wrote must be read forever, so these bytes never change.
#[test]
fn the_encoding_is_fixed() {
    let mut batch = Batch::new();
    assert_eq!(batch.as_bytes(), [1]);
    assert!(batch.is_empty());
    batch.put(Family::Scan, b"key", b"value");
    batch.delete(Family::Meta, b"");
    batch.delete_range(Family::Churn, b"a", b"b");
    batch.delete_range(Family::Churn, b"b", b"b");
    batch.put(Family::DerivedChurn, &[7; 200], b"");
    let mut wanted = b"\x01\x12\x03key\x05value\x20\x00\x33\x01a\x01b\x17\xc8\x01".to_vec();
    wanted.extend([7; 200]);
    wanted.push(0);
    assert_eq!(batch.as_bytes(), wanted);
    assert_eq!(batch.len_bytes(), wanted.len());
}

#[test]
fn what_is_no_batch_is_refused_at_its_place() {
    let cases: [(&[u8], usize); 11] = [
        (b"", 0),
        (b"\x02", 0),
        (b"\x01\x41\x00", 1),
        (b"\x01\x18\x00\x00", 1),
        (b"\x01\x10", 2),
        (b"\x01\x10\x01a", 4),
        (b"\x01\x20\x05a", 3),
        (b"\x01\x20\x81\x00a", 2),
        (b"\x01\x20\xff\xff\xff\xff\x7f", 2),
        (b"\x01\x20\xff\xff\xff\xff\xff", 2),
        (b"\x01\x30\x01b\x01a", 1),
    ];
    for (bytes, place) in cases {
        match Batch::from_bytes(Bytes::from_static(bytes)) {
            Err(StoreError::Batch { offset, .. }) => assert_eq!(offset, place, "{bytes:x?}"),
            other => panic!("{bytes:x?} gave {other:?}"),
        }
    }
}

fn operation() -> impl Strategy<Value = (u8, Family, Vec<u8>, Vec<u8>)> {
    let part = || prop_oneof![9 => vec(any::<u8>(), 0..20), 1 => vec(any::<u8>(), 100..300)];
    (0..3_u8, proptest::sample::select(Family::ALL.to_vec()), part(), part())
}

fn build(operations: &[(u8, Family, Vec<u8>, Vec<u8>)]) -> Batch {
    let mut batch = Batch::new();
    for (kind, family, first, second) in operations {
        match kind {
            0 => batch.put(*family, first, second),
            1 => batch.delete(*family, first),
            _ => batch.delete_range(*family, first, second),
        }
    }
    batch
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(512), ..ProptestConfig::default() })]

    #[test]
    fn what_is_built_is_read_back(first in vec(operation(), 0..20), second in vec(operation(), 0..20)) {
        let mut batch = build(&first);
        batch.append(&build(&second));
        let wanted: Vec<_> = first.iter().chain(&second).filter(|(kind, _, a, b)| *kind < 2 || a < b).collect();
        let read = Batch::from_bytes(Bytes::copy_from_slice(batch.as_bytes())).unwrap();
        prop_assert_eq!(&read, &batch);
        prop_assert_eq!(read.is_empty(), wanted.is_empty());
        let mut found = read.operations();
        for (kind, family, first, second) in wanted {
            let operation = match kind {
                0 => Operation::Put { family: *family, key: first, value: second },
                1 => Operation::Delete { family: *family, key: first },
                _ => Operation::DeleteRange { family: *family, from: first, to: second },
            };
            prop_assert_eq!(found.next().unwrap().unwrap(), operation);
        }
        prop_assert!(found.next().is_none());
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in vec(any::<u8>(), 0..400)) {
        let _ = Batch::from_bytes(Bytes::from(bytes));
    }

    /// Nearly right bytes reach deeper than random ones.
    #[test]
    fn damaged_batches_are_read_without_panic(
        operations in vec(operation(), 1..10),
        cuts in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        keep in any::<prop::sample::Index>(),
    ) {
        let mut bytes = build(&operations).into_bytes().to_vec();
        for (place, byte) in cuts {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(keep.index(bytes.len()) + 1);
        if let Ok(batch) = Batch::from_bytes(Bytes::from(bytes.clone())) {
            // What is accepted has one encoding only.
            let mut again = Batch::new();
            for operation in batch.operations() {
                match operation.unwrap() {
                    Operation::Put { family, key, value } => again.put(family, key, value),
                    Operation::Delete { family, key } => again.delete(family, key),
                    Operation::DeleteRange { family, from, to } => again.delete_range(family, from, to),
                }
            }
            prop_assert_eq!(again.as_bytes(), bytes);
        }
    }
}

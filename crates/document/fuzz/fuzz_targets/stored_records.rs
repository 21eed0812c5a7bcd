//! Any bytes as a stored revision tree and a stored fields record: no panic, and what is read is written alike.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_document::{Fields, RevisionTree};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(mut tree) = RevisionTree::decode(bytes) {
        let written = tree.encode();
        let again = RevisionTree::decode(&written).expect("what was written is read");
        assert_eq!(again.encode(), written);
        for leaf in tree.leaves() {
            assert!(tree.path(leaf.revision).is_some());
        }
        tree.stem(3);
    }
    if let Ok(fields) = Fields::decode(bytes) {
        assert_eq!(fields.iter().count(), fields.len());
        for (name, value) in fields.iter() {
            assert!(fields.value(name).is_some());
            let _ = value.length();
        }
    }
});

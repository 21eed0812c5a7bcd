//! Any bytes as a document: no panic, and the same verdict on JSON as serde_json gives.

#![no_main]

use std::convert::Infallible;

use libfuzzer_sys::fuzz_target;
use scrinium_document::{FieldsBuf, Limits, collation, json, parse_document};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(document) = parse_document(bytes, &Limits::default()) {
        let mut out = json::JsonWriter::new();
        let Ok(()) = document.fields.fields().write_json(&mut out, |_, _| Ok::<(), Infallible>(()));
        let again = parse_document(out.into_string().as_bytes(), &Limits::default()).expect("what was written is taken again");
        assert_eq!(again.fields, document.fields);
        assert_eq!(FieldsBuf::decode(document.fields.as_bytes().to_vec()).as_ref(), Ok(&document.fields));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match (json::parse_value(text, 100), serde_json::from_str::<serde_json::Value>(text)) {
        (Ok(ours), Ok(theirs)) => {
            assert_eq!(ours, theirs);
            // A repeated name stands at its last place here, at its first with serde_json; keys tell the difference.
            let same_order = ours.to_string() == theirs.to_string();
            assert!(!same_order || collation::sort_key(&ours) == collation::sort_key(&theirs));
        }
        (Err(_), Err(_)) => {}
        (Err(error), Ok(_)) => assert!(error.to_string().contains("nested deeper")),
        (Ok(_), Err(error)) => panic!("taken, but serde_json says {error}"),
    }
});

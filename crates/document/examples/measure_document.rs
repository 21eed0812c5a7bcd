//! What the document model costs per document.
//!
//! `cargo run --release -p scrinium-document --example measure_document` prints one JSON object a line.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a measurement that fails stops")]

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

use scrinium_document::{
    Digest, FieldsBuf, Limits, Revision, RevisionTree, collation, json, new_revision, parse_document,
};

/// The best of ten rounds, in nanoseconds a call.
fn time<T>(case: &str, calls: u32, mut call: impl FnMut() -> T) {
    let round = |call: &mut dyn FnMut() -> T| {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(call());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
    };
    let best = (0..10).map(|_| round(&mut call)).fold(f64::INFINITY, f64::min);
    println!("{{\"name\":\"document\",\"case\":\"{case}\",\"value\":{best:.1},\"unit\":\"ns\"}}");
}

fn memo() -> String {
    let body = "Please find the minutes of yesterday's meeting below. ".repeat(12);
    format!(
        r#"{{"_id":"0123456789abcdef","_rev":"2-917fa2381192822767f010b95b45325b","Form":"Memo","From":"Anna Example/Sales/Example",
        "SendTo":["Berta Beispiel/Berlin/Example","carl@example.com"],"Subject":"Minutes of the meeting","PostedDate":"2026-03-01T10:11:12Z",
        "Size":12345,"Unread":true,"Categories":["minutes","sales"],"Body":"{body}"}}"#
    )
}

fn main() {
    let memo = memo();
    let limits = Limits::default();
    println!("{{\"name\":\"document\",\"case\":\"memo\",\"value\":{},\"unit\":\"bytes\"}}", memo.len());
    time("parse_document", 20_000, || parse_document(memo.as_bytes(), &limits).unwrap());
    time("serde_json::from_slice to Value, for comparison", 20_000, || {
        serde_json::from_slice::<serde_json::Value>(memo.as_bytes()).unwrap()
    });
    let document = parse_document(memo.as_bytes(), &limits).unwrap();
    let record = document.fields;
    let revision = document.revision.unwrap();
    time("new_revision", 20_000, || new_revision(Some(&revision), false, record.fields(), &[]));
    let bytes = record.as_bytes();
    time("fields: decode and get one", 100_000, || {
        scrinium_document::Fields::decode(bytes).unwrap().get("Categories").map(str::len)
    });
    time("fields: whole JSON", 20_000, || {
        let mut out = scrinium_document::json::JsonWriter::with_capacity(2048);
        let Ok(()) = record.fields().write_json(&mut out, |_, _| Ok::<(), Infallible>(()));
        out
    });
    time("fields: build", 20_000, || FieldsBuf::build(record.fields().iter()));

    let mut tree = RevisionTree::new();
    tree.add_edit(None, Revision::new(1, Digest::Hash([1; 16])), false).unwrap();
    time("tree of 1 revision: encode and decode", 100_000, || RevisionTree::decode(&tree.encode()).unwrap());
    for generation in 2..=1000 {
        let parent = tree.winner().map(|winner| winner.revision.clone());
        let mut digest = [0; 16];
        digest[8..].copy_from_slice(&u64::to_be_bytes(generation));
        tree.add_edit(parent.as_ref(), Revision::new(generation, Digest::Hash(digest)), false).unwrap();
    }
    time("tree of 1000 revisions: encode and decode", 1_000, || {
        RevisionTree::decode(&tree.encode()).unwrap()
    });

    let mut key = Vec::with_capacity(200);
    let mut text = |case: &str, text: &str| {
        time(case, 100_000, || {
            key.clear();
            collation::write_text_key(&mut key, text);
            key.len()
        });
    };
    text("text key, ASCII, 22 bytes", "Minutes of the meeting");
    text("text key, ASCII, 96 bytes", &"Minutes of the meeting, ".repeat(4));
    text("text key, Latin, 24 bytes", "Protokoll der Müßiggänge");
    text("text key, Chinese, 24 bytes", "会议记录会议记录");
    let value = json::parse_value(r#"["minutes", 20260301, {"a": true}]"#, 512).unwrap();
    time("sort_key of an array", 100_000, || collation::sort_key(&value));
}

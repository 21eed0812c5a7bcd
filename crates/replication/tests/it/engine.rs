//! One replication between two databases.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scrinium_contents::EncodedUpload;
use scrinium_database::{AccessList, Edit, EditMode, NewAttachment};
use scrinium_replication::{EngineOptions, ErrorKind, Filter};
use serde_json::json;

use crate::agree::Breaking;
use crate::ground::{Ground, bring, count, everything, leaves, options, put, replication, server};

#[tokio::test(flavor = "multi_thread")]
async fn documents_conflicts_tombstones_and_attachments_come_whole() {
    let ground = Ground::new();
    let (a, b) = (ground.create("a"), ground.create("b"));
    for number in 0..25 {
        put(&a, json!({"_id": format!("doc{number:02}"), "number": number, "text": "ä\u{1}\"\\"})).await;
    }
    bring(&a, json!({"_id": "twice", "_rev": "1-aa", "side": "left"})).await;
    bring(&a, json!({"_id": "twice", "_rev": "1-bb", "side": "right"})).await;
    let revision = put(&a, json!({"_id": "gone", "text": "x"})).await;
    put(&a, json!({"_id": "gone", "_rev": revision, "_deleted": true})).await;
    put(&a, json!({"_id": "_design/d", "filters": {"f": "function (doc) { return true; }"}})).await;
    // One that goes in the JSON, one that is streamed, one of no bytes.
    let long = STANDARD.encode(vec![7_u8; 300_000]);
    put(
        &a,
        json!({"_id": "attached", "_attachments": {
            "small.txt": {"content_type": "text/plain", "data": "aGVsbG8="},
            "long \"name\".bin": {"content_type": "application/octet-stream", "data": long},
            "empty": {"content_type": "text/plain", "data": ""}}}),
    )
    .await;
    put(&a, json!({"_id": "little", "_attachments": {"s": {"content_type": "text/plain", "data": "aGk="}}}))
        .await;
    let first = Arc::new(replication(ground.end("admin", "a"), ground.end("admin", "b")));
    let ended = first.run().await.unwrap();
    assert_eq!(everything(&a), everything(&b));
    assert_eq!(count(&first, "docs_written"), 31);
    assert_eq!(count(&first, "doc_write_failures"), 0);
    assert!(!ended.no_changes);
    // The next one begins where the first has ended.
    let next = Arc::new(replication(ground.end("admin", "a"), ground.end("admin", "b")));
    assert!(next.run().await.unwrap().no_changes);
    assert_eq!(count(&next, "revisions_checked"), 0);
    let history = ended.checkpoint["history"][0].clone();
    assert_eq!((&history["docs_read"], &history["doc_write_failures"]), (&json!(31), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attachment_that_is_kept_as_gzip_is_moved_so() {
    let ground = Ground::new();
    let (a, b) = (ground.create("a"), ground.create("b"));
    let text = vec![b'x'; 1_000_000];
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, &text).unwrap();
    let packed = packer.finish().unwrap();
    let mut upload = EncodedUpload::new(a.upload("text/plain"));
    upload.write(&packed).unwrap();
    let content = upload.finish().unwrap();
    let attached = NewAttachment { name: "f".to_owned(), content_type: "text/plain".to_owned(), content };
    let edit =
        Edit { json: br#"{"_id":"x"}"#.to_vec().into(), attachments: vec![attached], ..Edit::default() };
    a.update(vec![edit], EditMode::Interactive, &server()).unwrap().wait().unwrap().remove(0).unwrap();
    let once = Arc::new(replication(ground.end("admin", "a"), ground.end("admin", "b")));
    once.run().await.unwrap();
    assert_eq!(count(&once, "attachment_bytes"), packed.len() as u64);
    assert_eq!(everything(&a), everything(&b));
    let there = b.open_attachment("x", "f", None, &server()).unwrap();
    assert_eq!((there.length, there.encoded_length), (1_000_000, Some(packed.len() as u64)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attachment_that_the_target_has_is_not_sent_again() {
    let ground = Ground::new();
    let (a, b) = (ground.create("a"), ground.create("b"));
    let data = STANDARD.encode(vec![1_u8; 200_000]);
    let content = json!({"f": {"content_type": "a/b", "data": data}});
    let revision = put(&a, json!({"_id": "x", "_attachments": content})).await;
    let once = Arc::new(replication(ground.end("admin", "a"), ground.end("admin", "b")));
    once.run().await.unwrap();
    assert_eq!(count(&once, "attachment_bytes"), 200_000);
    put(&a, json!({"_id": "x", "_rev": revision, "n": 1, "_attachments": {"f": {"stub": true}}})).await;
    let again = Arc::new(replication(ground.end("admin", "a"), ground.end("admin", "b")));
    again.run().await.unwrap();
    assert_eq!(count(&again, "attachment_bytes"), 0);
    assert_eq!(everything(&a), everything(&b));
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_let_through_what_they_name() {
    let ground = Ground::new();
    let a = ground.create("a");
    for id in ["x", "y", "z"] {
        put(&a, json!({"_id": id, "kind": if id == "z" { "memo" } else { "note" }})).await;
    }
    bring(&a, json!({"_id": "x", "_rev": "1-00", "kind": "memo"})).await;
    let kind = "function (doc, req) { return doc.kind === req.query.kind; }";
    put(&a, json!({"_id": "_design/d", "language": "javascript", "filters": {"kind": kind}})).await;
    let ids = Filter::Ids(vec!["x".to_owned(), "none".to_owned()]);
    let selector = Filter::Selector(json!({"kind": "memo"}));
    let design = Filter::Function { name: "_design".to_owned(), parameters: serde_json::Map::new() };
    let of_kind = json!({"kind": "note"}).as_object().unwrap().clone();
    let function = Filter::Function { name: "d/kind".to_owned(), parameters: of_kind };
    let filters = [
        (ids, vec!["x"]),
        (selector, vec!["x", "z"]),
        (design, vec!["_design/d"]),
        (function, vec!["x", "y"]),
    ];
    for (place, (filter, expected)) in filters.into_iter().enumerate() {
        let name = format!("t{place}");
        let target = ground.create(&name);
        let mut filtered = replication(ground.end("admin", "a"), ground.end("admin", &name));
        filtered.filter = Arc::new(filter);
        Arc::new(filtered).run().await.unwrap();
        let found = everything(&target);
        assert_eq!(found.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), expected);
    }
    // Of a document the winner alone.
    let target = ground.create("winners");
    let mut winners = replication(ground.end("admin", "a"), ground.end("admin", "winners"));
    winners.winners_only = true;
    Arc::new(winners).run().await.unwrap();
    assert_eq!(leaves(&target, "x").len(), 1);
    assert_eq!(leaves(&a, "x").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_replicates_what_they_may_not_read_or_write() {
    let ground = Ground::new();
    let (a, b) = (ground.create("a"), ground.create("b"));
    let readers = json!({"default": {"level": "no_access"},
        "entries": [{"name": "bob", "kind": "person", "level": "reader"}]});
    a.set_access_list(Some(AccessList::parse(&readers).unwrap())).unwrap();
    put(&a, json!({"_id": "open", "n": 1})).await;
    put(&a, json!({"_id": "hidden", "Readers": ["ada"], "n": 2})).await;
    put(&a, json!({"_id": "_design/d", "views": {}})).await;
    let writers = json!({"default": {"level": "editor"}, "entries": []});
    b.set_access_list(Some(AccessList::parse(&writers).unwrap())).unwrap();
    let of_bob = Arc::new(replication(ground.end("bob", "a"), ground.end("bob", "b")));
    of_bob.run().await.unwrap();
    let found: Vec<String> = everything(&b).into_iter().map(|(id, _)| id).collect();
    assert_eq!(found, ["open"]);
    // The design document was refused, and that is counted and said.
    assert_eq!(count(&of_bob, "doc_write_failures"), 1);
    let refusal = of_bob.counts.place().last_refusal.unwrap();
    assert!(refusal.contains("_design/d"), "{refusal}");
    // Who has no access does not learn of the database.
    let of_eve = Arc::new(replication(ground.end("eve", "a"), ground.end("eve", "b")));
    let error = of_eve.run().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
    put(&b, json!({"_id": "new"})).await;
    // Who may only read writes nothing back.
    let back = Arc::new(replication(ground.end("bob", "b"), ground.end("bob", "a")));
    back.run().await.unwrap();
    assert_eq!((count(&back, "docs_written"), count(&back, "doc_write_failures")), (0, 1));
    assert!(leaves(&a, "new").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_made_where_that_is_ordered_by_an_administrator() {
    let ground = Ground::new();
    let a = ground.create("a");
    put(&a, json!({"_id": "x"})).await;
    let make = |name: &str, create_target: bool| {
        let mut made = replication(ground.end(name, "a"), ground.end(name, "new"));
        made.create_target = create_target;
        Arc::new(made)
    };
    assert_eq!(make("admin", false).run().await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(make("bob", true).run().await.unwrap_err().kind, ErrorKind::Unauthorized);
    make("admin", true).run().await.unwrap();
    assert_eq!(everything(&a), everything(&ground.databases.get("new").unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_any_size_bring_the_same() {
    let ground = Ground::new();
    let a = ground.create("a");
    for number in 0..40 {
        put(&a, json!({"_id": format!("{number}"), "text": "x".repeat(number * 50)})).await;
    }
    for (place, (page_changes, pages_at_once)) in
        [(1, 1), (1, 5), (7, 3), (40, 2), (1000, 1)].into_iter().enumerate()
    {
        let name = format!("t{place}");
        let target = ground.create(&name);
        let mut sized = replication(ground.end("admin", "a"), ground.end("admin", &name));
        sized.options = EngineOptions { page_changes, pages_at_once, ..options() };
        let sized = Arc::new(sized);
        sized.run().await.unwrap();
        assert_eq!(everything(&a), everything(&target), "{page_changes} {pages_at_once}");
        assert_eq!(count(&sized, "docs_written"), 40);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_repeated_after_a_break_is_less_than_the_pages_under_way() {
    const DOCUMENTS: u64 = 40;
    const BYTES: usize = 100_000;
    let ground = Ground::new();
    let a = ground.create("a");
    for number in 0..DOCUMENTS {
        let content = STANDARD.encode(vec![u8::try_from(number).unwrap(); BYTES]);
        let attached = json!({"f": {"content_type": "a/b", "data": content}});
        put(&a, json!({"_id": format!("{number}"), "_attachments": attached})).await;
    }
    for break_at in [20, 45, 90] {
        let name = format!("t{break_at}");
        let target = ground.create(&name);
        // An outage that no try survives.
        let breaks: Arc<BTreeSet<u32>> = Arc::new((break_at..break_at + 40).collect());
        let calls = Arc::new(AtomicU32::new(0));
        let breaking =
            |end| Arc::new(Breaking { end, calls: Arc::clone(&calls), breaks: Arc::clone(&breaks) });
        let ordered = |source, target| {
            let mut ordered = replication(source, target);
            ordered.options = EngineOptions {
                page_changes: 4,
                pages_at_once: 2,
                checkpoint_every: Duration::from_millis(1),
                ..options()
            };
            Arc::new(ordered)
        };
        let first = ordered(breaking(ground.end("admin", "a")), breaking(ground.end("admin", &name)));
        first.run().await.unwrap_err();
        let next = ordered(ground.end("admin", "a"), ground.end("admin", &name));
        next.run().await.unwrap();
        assert_eq!(everything(&a), everything(&target));
        let moved = count(&first, "attachment_bytes") + count(&next, "attachment_bytes");
        let (all, under_way) = (DOCUMENTS * BYTES as u64, 2 * 4 * BYTES as u64);
        assert!(moved <= all + under_way, "{moved} bytes were moved of {all}, broken off at {break_at}");
    }
}

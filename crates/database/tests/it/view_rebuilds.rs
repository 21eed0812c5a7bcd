//! Views that are rebuilt, together and apart.

use crate::common::mail::{filled, ids, read};
use crate::common::{get, put};
use scrinium_database::RowQuery;
use scrinium_store::{Batch, Direction, Family, KeyRange};
use serde_json::json;

/// Entries that have got lost or were never taken out are put right by building again, while readers go on.
#[test]
fn views_are_built_anew_from_all_documents() {
    let (server, database) = filled();
    let store = server.store.as_ref().unwrap();
    let before =
        (ids(&database, "inbox", RowQuery::default()), ids(&database, "by category", RowQuery::default()));
    let mut batch = Batch::new();
    let number = database.number().to_be_bytes();
    let snapshot = store.snapshot();
    let to = (database.number() + 1).to_be_bytes();
    let mut cursor =
        snapshot.cursor(Family::DerivedScan, KeyRange { from: &number, to: Some(&to) }, Direction::Forward);
    while let Some((key, _)) = cursor.next().unwrap() {
        batch.delete(Family::DerivedScan, key);
    }
    drop(cursor);
    store.derived().write(batch).unwrap();
    assert_eq!(ids(&database, "inbox", RowQuery::default()), "");
    assert_eq!(database.update_all_views(Some("inbox"), true).unwrap(), 1);
    assert_eq!(ids(&database, "inbox", RowQuery::default()), before.0);
    assert_eq!(ids(&database, "by category", RowQuery::default()), "");
    assert_eq!(database.update_all_views(None, true).unwrap(), 2);
    assert_eq!(ids(&database, "by category", RowQuery::default()), before.1);
    // Lists and counts are right afterwards.
    let old = get(&database, "b").unwrap();
    put(&database, &json!({"_id": "b", "_rev": old["_rev"], "_deleted": true})).unwrap();
    assert_eq!(ids(&database, "by category", RowQuery::default()), "c d a");
}

/// Views that were built together share records of what a document has in them. One of them is rebuilt, or the other
/// removed, and each keeps taking out what it put in; of lists that nobody needs nothing stays.
#[test]
fn views_built_together_part_without_losing_what_they_know() {
    let (server, database) = filled();
    ids(&database, "inbox", RowQuery::default());
    let change = |round: u32| {
        for (id, size) in [("a", round), ("c", round * 2)] {
            let mut document = get(&database, id).unwrap();
            document["Size"] = json!(size);
            document["Date"] = json!(format!("2026-02-{:02}", 28 - round));
            document["Categories"] = json!([format!("round {round}"), "work"]);
            put(&database, &document).unwrap();
        }
        let sizes = |view| {
            let rows = read(&database, view, RowQuery::default());
            rows.into_iter().map(|row| format!("{} {:?}", row.key, row.id)).collect::<Vec<_>>()
        };
        let (inbox, by_category) = (sizes("inbox"), sizes("by category"));
        assert_eq!((inbox.len(), by_category.len()), (3, 7), "{inbox:?} {by_category:?}");
    };
    let homes = || {
        let snapshot = server.store.as_ref().unwrap().snapshot();
        let from = [database.number().to_be_bytes(), [255, 255, 255, 254]].concat();
        let to = [database.number().to_be_bytes(), [255; 4]].concat();
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::DerivedPoint, range, Direction::Forward);
        let mut homes = std::collections::BTreeSet::new();
        while let Some((key, _)) = cursor.next().unwrap() {
            homes.insert(key[8..12].to_vec());
        }
        homes.len()
    };
    change(1);
    assert_eq!(homes(), 1);
    assert_eq!(database.update_all_views(Some("inbox"), true).unwrap(), 1);
    change(2);
    assert_eq!(homes(), 2);
    assert_eq!(database.update_all_views(None, true).unwrap(), 2);
    change(3);
    assert_eq!(homes(), 1, "they are together again, and what was before is cleared away");
    let mut only_inbox = get(&database, "_design/mail").unwrap();
    let removed = only_inbox["views"].as_object_mut().unwrap().remove("by category").unwrap();
    put(&database, &only_inbox).unwrap();
    ids(&database, "inbox", RowQuery::default());
    assert_eq!(database.clean_up_views().unwrap(), 1);
    let mut both = get(&database, "_design/mail").unwrap();
    both["views"]["by category"] = removed;
    put(&database, &both).unwrap();
    change(4);
    assert_eq!(homes(), 2);
}

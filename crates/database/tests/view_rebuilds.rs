//! Views that are built anew, together and apart.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use common::{Server, all_rows, get, put};
use scrinium_database::{Database, Row, RowQuery};
use scrinium_store::{Batch, Direction, Family, KeyRange};
use serde_json::{Value, json};

fn design() -> Value {
    json!({
        "_id": "_design/mail", "language": "formula",
        "views": {
            "inbox": {
                "selection": "SELECT Form = \"Memo\"",
                "columns": [
                    {"title": "Date", "formula": "Date", "sort": "desc"},
                    {"title": "From", "formula": "@LowerCase(From)"},
                    {"title": "Size", "formula": "Size", "total": true},
                ]
            },
            "by category": {
                "selection": "SELECT @All",
                "columns": [
                    {"title": "Category", "formula": "Categories", "category": true},
                    {"title": "From", "formula": "From", "sort": "asc"},
                    {"title": "Size", "formula": "Size", "total": true},
                ]
            },
        }
    })
}

fn read(database: &Arc<Database>, view: &str, query: RowQuery) -> Vec<Row> {
    all_rows(database.view("mail", view, query).unwrap())
}

fn ids(database: &Arc<Database>, view: &str, query: RowQuery) -> String {
    read(database, view, query).into_iter().filter_map(|row| row.id).collect::<Vec<_>>().join(" ")
}

fn memo(id: &str, date: &str, from: &str, size: u32, categories: &Value) -> Value {
    json!({"_id": id, "Form": "Memo", "Date": date, "From": from, "Size": size, "Categories": categories})
}

fn filled() -> (Server, Arc<Database>) {
    let server = Server::new();
    let database = server.databases.create("mail/ada").unwrap();
    put(&database, &design()).unwrap();
    put(&database, &memo("a", "2026-01-01", "Zoe", 10, &json!("work"))).unwrap();
    put(&database, &memo("b", "2026-01-03", "adam", 20, &json!(["work", "home"]))).unwrap();
    put(&database, &memo("c", "2026-01-02", "Bob", 30, &json!([]))).unwrap();
    put(&database, &json!({"_id": "d", "Form": "Note", "From": "Eve", "Size": 5})).unwrap();
    (server, database)
}

/// Entries that have got lost or were never taken out are put right by building anew, while readers go on.
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
    store.write_derived(batch).unwrap();
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

/// Views that were built together share records of what a document has in them. One of them is built anew, or the other
/// removed, and each goes on taking out what it put in; of lists that nobody needs nothing stays.
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

//! What is counted of views: builds, indexes that are read after they were discarded, views of the time, functions that fail.

use std::time::Duration;

use crate::common::{SERVER, Server, all_rows, edit, put};
use scrinium_database::{DatabaseOptions, EditMode, RowQuery};
use scrinium_statistics::Registry;
use serde_json::{Value, json};

/// More than are followed one by one.
const DOCUMENTS: u32 = 2500;

#[test]
fn builds_returns_refreshes_and_failures_are_counted() {
    // A view of the time is out of date at once.
    let server = Server::with(DatabaseOptions { time_variant_seconds: 0, ..DatabaseOptions::default() });
    let statistics = Registry::new();
    server.databases.register_statistics(&statistics);
    let names = ["View.Builds", "View.ReadAgain", "View.Refreshes", "View.Scripts.Failures"];
    let counted = || names.map(|name| statistics.snapshot().gauges[name]);
    let database = server.databases.create("counted", &scrinium_database::InitialAccess::Everybody).unwrap();
    let read =
        |design: &str| all_rows(database.view(design, "v", RowQuery::default(), &SERVER).unwrap()).len();

    let documents: Vec<Value> = (0..DOCUMENTS).map(|n| json!({"_id": format!("{n:05}"), "n": n})).collect();
    let edits = documents.iter().map(edit).collect();
    database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    let map = "function (doc) { if (doc.n < 3) throw new Error('no'); if (doc.n < 9) emit(doc.n); }";
    put(&database, &json!({"_id": "_design/script", "views": {"v": {"map": map}}})).unwrap();
    let column = json!({"title": "Now", "formula": "@Now", "sort": "asc"});
    let view = json!({"selection": "n < 5", "columns": [column]});
    put(&database, &json!({"_id": "_design/time", "language": "formula", "views": {"v": view}})).unwrap();

    assert_eq!(read("script"), 6);
    assert_eq!(counted(), [1.0, 0.0, 0.0, 3.0]);
    assert_eq!(read("time"), 5);
    assert_eq!(counted(), [2.0, 0.0, 0.0, 3.0], "what is built needs no refresh");
    assert_eq!(read("time"), 5);
    assert_eq!(counted(), [2.0, 0.0, 1.0, 3.0]);

    assert_eq!(server.databases.discard_unused_views(Duration::ZERO).unwrap(), 2);
    assert_eq!(read("script"), 6);
    assert_eq!(counted(), [3.0, 1.0, 1.0, 6.0]);
    assert_eq!(read("script"), 6);
    assert_eq!(counted(), [3.0, 1.0, 1.0, 6.0], "it is there");
    let gauges = statistics.snapshot().gauges;
    assert_eq!(gauges["View.Builds.SpilledBytes"], 0.0, "it fits into memory");
    assert!(gauges.contains_key("View.Scripts.Milliseconds"));
}

#[test]
fn it_is_counted_how_far_views_were_behind() {
    let server = Server::with(DatabaseOptions::default());
    let statistics = Registry::new();
    server.databases.register_statistics(&statistics);
    let counted = || ["View.Updates", "View.Updates.Changes"].map(|name| statistics.snapshot().gauges[name]);
    let database = server.databases.create("counted", &scrinium_database::InitialAccess::Everybody).unwrap();
    let column = json!({"title": "N", "formula": "n", "sort": "asc"});
    let views: Value = ["v", "w"]
        .iter()
        .map(|name| ((*name).to_owned(), json!({"selection": "n < 5", "columns": [column]})))
        .collect();
    put(&database, &json!({"_id": "_design/d", "language": "formula", "views": views})).unwrap();
    put(&database, &json!({"_id": "0", "n": 0})).unwrap();
    let read = |view: &str| all_rows(database.view("d", view, RowQuery::default(), &SERVER).unwrap()).len();
    assert_eq!((read("v"), counted()), (1, [0.0, 0.0]), "what is new was not behind");
    for n in 1..=3 {
        put(&database, &json!({"_id": n.to_string(), "n": n})).unwrap();
    }
    assert_eq!((read("v"), counted()), (4, [1.0, 3.0]));
    assert_eq!((read("w"), counted()), (4, [1.0, 3.0]), "it was brought up to date together with the other");
    put(&database, &json!({"_id": "4", "n": 4})).unwrap();
    database.update_view_group("d").unwrap();
    assert_eq!((read("v"), counted()), (5, [1.0, 3.0]), "no reader waited");
    let background = ["View.Updates.Background", "View.Updates.Background.Changes"];
    assert_eq!(background.map(|name| statistics.snapshot().gauges[name]), [1.0, 1.0]);
}

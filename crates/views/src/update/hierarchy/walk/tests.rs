//! Walks that are cut off between two batches, as by a crash, and what documents become before they are resumed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use scrinium_database::{Edit, EditMode, Freshness, ReadOptions, RowQuery};
use scrinium_fault::quick_folder;
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use serde_json::{Value, json};

use super::super::super::environment;
use super::Walk;
use crate::open::OpenDatabase;
use crate::testing::{SERVER, TestServer};

fn put(database: &OpenDatabase, mut json: Value) {
    if let Ok(present) = database.read(json["_id"].as_str().unwrap(), &ReadOptions::default(), &SERVER) {
        let present: Value = serde_json::from_str(&present.json).unwrap();
        json["_rev"] = present["_rev"].clone();
    }
    let edit = Edit { json: json.to_string().into(), ..Edit::default() };
    database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap().remove(0).unwrap();
}

/// Two views that hold the same; the second is built when the first has gone through everything.
fn design() -> Value {
    let view = |note: &str| {
        json!({"selection": "SELECT Form = \"Topic\" | @AllDescendants", "responses": {"order": "Order"},
        "note": note, "columns": [{"title": "Subject", "formula": "Subject", "sort": "asc"},
                                  {"title": "Size", "formula": "Size", "total": true}]})
    };
    json!({"_id": "_design/d", "language": "formula", "views": {"cut": view("1")}, "later": view("2")})
}

fn document(id: u8, parent: Option<u8>, size: u8) -> Value {
    let form = if parent.is_none() { "Topic" } else { "Response" };
    let mut json =
        json!({"_id": id.to_string(), "Form": form, "Subject": size % 3, "Order": size % 2, "Size": size});
    if let Some(parent) = parent {
        json["$REF"] = json!(parent.to_string());
    }
    json
}

fn contents(database: &OpenDatabase, view: &str, freshness: Freshness) -> Vec<String> {
    let mut all = Vec::new();
    for reduce in [None, Some(true)] {
        let query = RowQuery { freshness, reduce, ..RowQuery::default() };
        let mut rows = database.view("d", view, query, &SERVER).unwrap();
        while let Some(some) = Some(rows.next_rows(100).unwrap()).filter(|rows| !rows.is_empty()) {
            all.extend(some.into_iter().map(|row| format!("{row:?}")));
        }
    }
    all
}

/// Places a document and some of what follows, and writes that as a batch, or several; then the server is gone.
fn place_in_part(database: &OpenDatabase, id: u8, steps: u8) {
    let group = database.view_group("d").unwrap();
    let view = group.view("cut").unwrap();
    let (snapshot, environment) = (database.store().snapshot(), environment(database));
    let reached = view.index.reached();
    let mut walk = Walk::new(database, view, &view.index.index, &snapshot, &environment).unwrap();
    walk.go_on().unwrap();
    let id = id.to_string();
    let judged = walk.judge().judge(&id).unwrap();
    if walk.put(&id, judged, true).unwrap() {
        walk.push(id);
    }
    for _ in 0..steps {
        walk.write(reached).unwrap();
        walk.step(reached).unwrap();
    }
    walk.write(reached).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(40), max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_walk_that_was_cut_off_is_gone_on_with(
        first in prop::collection::vec((0..30_u8, prop::option::weighted(0.85, 0..12_u8), any::<u8>()), 20..60),
        cuts in prop::collection::vec(
            (0..12_u8, prop::option::weighted(0.7, 0..12_u8), any::<u8>(), 0..9_u8, any::<bool>()), 1..6),
    ) {
        let dir = quick_folder();
        let store = Store::open(StoreOptions::new(dir.path()), &Registry::new()).unwrap();
        let database = TestServer::new(&store).create("forum");
        put(&database, design());
        first.into_iter().for_each(|(id, parent, size)| put(&database, document(id, parent, size)));
        contents(&database, "cut", Freshness::UpToDate);
        for (id, parent, size, steps, looks) in cuts {
            let before = database.read(&id.to_string(), &ReadOptions::default(), &SERVER).ok();
            put(&database, document(id, parent, size));
            place_in_part(&database, id, steps);
            // Where it was before, so that nothing seems to have changed.
            if let Some(before) = before {
                let mut before: Value = serde_json::from_str(&before.json).unwrap();
                before.as_object_mut().unwrap().remove("_rev");
                put(&database, before);
            }
            if looks {
                contents(&database, "cut", Freshness::UpToDate);
            }
        }
        let found = contents(&database, "cut", Freshness::UpToDate);
        let mut design = design();
        design["views"]["later"] = design["later"].take();
        put(&database, design);
        prop_assert_eq!(found, contents(&database, "later", Freshness::UpToDate));
    }
}

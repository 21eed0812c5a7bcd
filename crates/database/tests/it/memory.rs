//! Memory that databases hold: trees of indexes count in the budget, and those of idle databases are given back.

use scrinium_catalog::Databases;
use scrinium_database::{DatabaseOptions, Edit, EditMode, RowQuery};
use scrinium_statistics::Registry;
use scrinium_store::{Purpose, Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::json;

use crate::common::SERVER;

const DOCUMENTS: u64 = 3000;

fn put(database: &OpenDatabase, documents: impl Iterator<Item = serde_json::Value>) {
    let edits = documents.map(|json| Edit { json: json.to_string().into(), ..Edit::default() }).collect();
    let results = database.update(edits, EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    results.into_iter().for_each(|result| drop(result.unwrap()));
}

fn rows(database: &OpenDatabase) -> Option<u64> {
    database.view("d", "keys", RowQuery::default(), &SERVER).unwrap().total_rows
}

#[test]
fn trees_of_indexes_count_in_the_budget_and_those_of_idle_databases_go_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = StoreOptions::new(dir.path());
    options.budget_bytes = Some(64 << 20);
    let store = Store::open(options, &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    let design = json!({"_id": "_design/d", "language": "formula",
        "views": {"keys": {"columns": [{"title": "Key", "formula": "Key", "sort": "asc"}]}}});
    let names = ["ada", "ben", "eve"];
    let mut opened = Vec::new();
    for name in names {
        let database = databases.create(name, &scrinium_database::InitialAccess::Everybody).unwrap();
        put(&database, (0..DOCUMENTS).map(|key| json!({ "Key": key })).chain([design.clone()]));
        assert_eq!(rows(&database), Some(DOCUMENTS));
        assert!(database.view_tree_bytes() > 1000);
        opened.push(database);
    }
    let trees = || store.admin().reserved(Purpose::ViewTrees);
    assert_eq!(trees(), opened.iter().map(|database| database.view_tree_bytes()).sum::<u64>());
    assert!(!databases.holds_too_many_trees());

    let all = databases.activity().unwrap();
    assert_eq!(all.iter().map(|database| database.name.as_str()).collect::<Vec<_>>(), names);
    for database in &all {
        let space = databases.space_of(database).unwrap();
        assert_eq!(space.document_count, DOCUMENTS + 1);
        assert!(
            database.usage.reads > 0 && database.usage.writes > DOCUMENTS && space.view_tree_bytes > 1000
        );
    }

    // Anyone else who holds as much releases all that nobody uses.
    let others = store.admin().reserve(Purpose::ViewTrees, 100 << 20);
    let used = opened.pop().unwrap();
    drop(opened);
    assert!(databases.holds_too_many_trees());
    assert_eq!(databases.release_view_trees(), 2);
    drop(others);
    assert_eq!(trees(), used.view_tree_bytes());
    for name in names {
        assert_eq!(rows(&databases.get(name).unwrap()), Some(DOCUMENTS));
    }
}

//! A store in a temporary folder, with databases on it.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use std::sync::Arc;

use scrinium_database::{
    Database, DatabaseError, DatabaseOptions, Databases, Edit, EditMode, ReadOptions, Updated,
};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use serde_json::Value;

pub struct Server {
    pub dir: tempfile::TempDir,
    pub store: Option<Store>,
    pub databases: Databases,
}

impl Server {
    pub fn new() -> Self {
        Self::with(DatabaseOptions::default())
    }

    pub fn with(options: DatabaseOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (store, databases) = open(dir.path(), options);
        Self { dir, store: Some(store), databases }
    }

    /// Closes the store and opens it again.
    pub fn reopen(self) -> Self {
        let Self { dir, store, databases } = self;
        drop(databases);
        store.unwrap().close().unwrap();
        let (store, databases) = open(dir.path(), DatabaseOptions::default());
        Self { dir, store: Some(store), databases }
    }
}

fn open(dir: &std::path::Path, options: DatabaseOptions) -> (Store, Databases) {
    let mut store_options = StoreOptions::new(dir);
    store_options.budget_bytes = Some(64 << 20);
    store_options.log_extent_bytes = 4 << 20;
    let store = Store::open(store_options, &Registry::new()).unwrap();
    let databases = Databases::open(&store, options).unwrap();
    (store, databases)
}

pub fn edit(json: &Value) -> Edit {
    Edit { json: json.to_string().into(), ..Edit::default() }
}

pub fn put(database: &Arc<Database>, json: &Value) -> Result<Updated, DatabaseError> {
    database.update(vec![edit(json)], EditMode::Interactive)?.wait()?.remove(0)
}

pub fn replicate(database: &Arc<Database>, json: &Value) -> Result<Updated, DatabaseError> {
    database.update(vec![edit(json)], EditMode::Replicated)?.wait()?.remove(0)
}

pub fn get(database: &Database, id: &str) -> Result<Value, DatabaseError> {
    get_with(database, id, &ReadOptions::default())
}

pub fn get_with(database: &Database, id: &str, options: &ReadOptions) -> Result<Value, DatabaseError> {
    database.read(id, options).map(|document| serde_json::from_str(&document.json).unwrap())
}

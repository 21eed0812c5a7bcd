//! A disk with less free than is to be left alone: nothing new is taken, reading and removing go on, and a server starts.
//!
//! What is left alone is said to be more than there is, so that no disk has to be filled.

use std::path::Path;

use rand::RngCore;
use scrinium_catalog::Databases;
use scrinium_database::{DatabaseError, DatabaseOptions};
use scrinium_fault::crash_image;
use scrinium_statistics::Registry;
use scrinium_store::{Direction, Family, KeyRange, Store, StoreOptions};
use scrinium_views::OpenDatabase;
use serde_json::json;

use crate::common::{Server, get, put};

const UPLOAD_BYTES: usize = 600_000;

fn open(dir: &Path, reserve_bytes: u64) -> (Store, Databases) {
    let mut options = StoreOptions::new(dir);
    options.budget_bytes = Some(64 << 20);
    options.log_extent_bytes = 4 << 20;
    options.reserve_bytes = reserve_bytes;
    let store = Store::open(options, &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    (store, databases)
}

/// More than is free, while more than half of it is.
fn more_than_free() -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let (store, _databases) = open(dir.path(), 0);
    let free_bytes = store.admin().room().unwrap().free_bytes;
    free_bytes + free_bytes / 2
}

fn uploaded_pieces(store: &Store) -> usize {
    let snapshot = store.snapshot();
    let mut cursor =
        snapshot.cursor(Family::Blob, KeyRange { from: b"u", to: Some(b"v") }, Direction::Forward);
    let mut pieces = 0;
    while cursor.next().unwrap().is_some() {
        pieces += 1;
    }
    pieces
}

fn refused(database: &OpenDatabase, id: &str) {
    let written = put(database, &json!({"_id": id, "Text": "new"}));
    assert!(matches!(written, Err(DatabaseError::Full { .. })), "{written:?}");
}

/// What a kill leaves in the middle of an upload, next to two documents and another database; the first one's revision.
fn killed_while_uploading(image: &Path) -> String {
    let server = Server::new();
    let database = server.databases.create("db", &scrinium_database::InitialAccess::Everybody).unwrap();
    server.databases.create("spare", &scrinium_database::InitialAccess::Everybody).unwrap();
    let first = put(&database, &json!({"_id": "first", "Text": "a"})).unwrap();
    put(&database, &json!({"_id": "second", "Text": "b"})).unwrap();
    let mut bytes = vec![0; UPLOAD_BYTES];
    rand::rng().fill_bytes(&mut bytes);
    let mut upload = database.upload("application/octet-stream");
    upload.write(&bytes).unwrap();
    crash_image(server.dir.path(), image);
    first.revision
}

#[test]
fn an_unfinished_upload_keeps_no_server_from_starting_on_a_full_disk() {
    let image = tempfile::tempdir().unwrap();
    killed_while_uploading(image.path());
    let (store, databases) = open(image.path(), u64::MAX);
    let database = databases.get("db").unwrap();
    assert_eq!(get(&database, "second").unwrap()["Text"], "b");
    refused(&database, "third");
    assert_ne!(uploaded_pieces(&store), 0, "half of what is left alone is used as well");
    drop((database, databases, store));

    let (store, databases) = open(image.path(), 0);
    assert_eq!(uploaded_pieces(&store), 0);
    put(&databases.get("db").unwrap(), &json!({"_id": "third"})).unwrap();
}

#[test]
fn what_takes_space_can_be_removed_on_a_full_disk() {
    let image = tempfile::tempdir().unwrap();
    let revision = killed_while_uploading(image.path());
    let (store, databases) = open(image.path(), more_than_free());
    assert_eq!(uploaded_pieces(&store), 0);
    let database = databases.get("db").unwrap();
    refused(&database, "third");
    let large = json!({"_id": "first", "_rev": revision, "_deleted": true, "Text": "x".repeat(1000)});
    let with_text = put(&database, &large);
    assert!(matches!(with_text, Err(DatabaseError::Full { .. })), "{with_text:?}");
    put(&database, &json!({"_id": "first", "_rev": revision, "_deleted": true})).unwrap();
    assert!(matches!(get(&database, "first"), Err(DatabaseError::NotFound { .. })));
    databases.delete("spare").unwrap();
    assert_eq!(databases.purge_dropped().unwrap(), 1);
    refused(&database, "third");
    assert_eq!(get(&database, "second").unwrap()["Text"], "b");
}

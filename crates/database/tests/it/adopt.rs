//! A database that is brought in from another store is the same under its new name.

use scrinium_catalog::Databases;
use scrinium_database::{DatabaseError, Edit, EditMode, FolderChange, NewAttachment, RowQuery};
use scrinium_fault::noise;
use scrinium_store::{Direction, Family, KeyRange, Store};
use scrinium_views::OpenDatabase;
use serde_json::json;

use crate::common::{SERVER, Server, edit, get, put, read_attachment, replicate};

fn with_attachment(database: &OpenDatabase, id: &str, bytes: &[u8]) {
    let mut upload = database.upload("application/octet-stream");
    upload.write(bytes).unwrap();
    let attachment = NewAttachment {
        name: "file".to_owned(),
        content_type: "application/octet-stream".to_owned(),
        content: upload.finish().unwrap(),
    };
    let edit = Edit { attachments: vec![attachment], ..edit(&json!({"_id": id})) };
    database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap().remove(0).unwrap();
}

/// Everything that lies under the database's number, without the number.
fn dump(store: &Store, number: u32) -> Vec<(Family, Vec<u8>, Vec<u8>)> {
    let (from, to) = (number.to_be_bytes(), (number + 1).to_be_bytes());
    let snapshot = store.snapshot();
    let mut found = Vec::new();
    for family in [Family::Point, Family::Scan, Family::Churn] {
        let mut cursor = snapshot.cursor(family, KeyRange::new(&from, &to), Direction::Forward);
        while let Some((key, value)) = cursor.next().unwrap() {
            found.push((family, key[4..].to_vec(), value.to_vec()));
        }
    }
    found
}

fn sample(databases: &Databases) -> OpenDatabase {
    let database = databases.create("mail/ada", &scrinium_database::InitialAccess::Everybody).unwrap();
    for number in 0..50 {
        put(&database, &json!({"_id": format!("memo-{number}"), "Subject": "x".repeat(number * 100)}))
            .unwrap();
    }
    let rev = get(&database, "memo-1").unwrap()["_rev"].clone();
    put(&database, &json!({"_id": "memo-1", "_rev": rev, "Subject": "second"})).unwrap();
    let conflict = json!({"_id": "memo-1", "_rev": "2-ffff", "Subject": "conflict",
        "_revisions": {"start": 2, "ids": ["ffff", "aaaa"]}});
    replicate(&database, &conflict).unwrap();
    let rev = get(&database, "memo-2").unwrap()["_rev"].clone();
    put(&database, &json!({"_id": "memo-2", "_rev": rev, "_deleted": true})).unwrap();
    with_attachment(&database, "small", b"short");
    with_attachment(&database, "large", &noise(7, 1_500_000));
    with_attachment(&database, "shared", &noise(7, 400_000));
    database.define_folder("Inbox", None).unwrap();
    let add = vec![("memo-3".to_owned(), FolderChange::Add { folder: "Inbox".to_owned() })];
    database.change_folders(add, &SERVER).unwrap().wait().unwrap();
    database.mark("ada", vec!["memo-4".to_owned()], true, &SERVER).unwrap().wait().unwrap();
    database.set_security(&json!({"members": {"names": ["ada"], "roles": []}})).unwrap();
    database
}

#[test]
fn a_database_that_is_brought_in_is_the_same() {
    let (from, to) = (Server::quick(), Server::quick());
    let original = sample(&from.databases);
    // Another number, and a content that is here already.
    let other = to.databases.create("other", &scrinium_database::InitialAccess::Everybody).unwrap();
    with_attachment(&other, "mine", &noise(7, 400_000));
    let mut copied = 0;
    let adopted = to.databases.adopt(&from.databases, "mail/ada", "mail/ada-restored", &mut |keys| {
        copied += keys;
        true
    });
    let adopted = adopted.unwrap();
    assert!(copied > 150, "{copied}");
    assert_ne!(adopted.number(), original.number());
    let (one, two) = (from.store.as_ref().unwrap(), to.store.as_ref().unwrap());
    assert!(dump(one, original.number()) == dump(two, adopted.number()));
    let (before, after) = (original.info().unwrap(), adopted.info().unwrap());
    assert_eq!(after.name, "mail/ada-restored");
    assert_ne!(before.uuid, after.uuid);
    assert_eq!((before.change_number, before.document_count), (after.change_number, after.document_count));
    assert_eq!(*adopted.security().unwrap(), *original.security().unwrap());

    // What nobody refers to any more is collected, and nothing else, also after a restart.
    other.update(vec![], EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
    to.databases.delete("other").unwrap();
    to.databases.purge_dropped().unwrap();
    to.databases.collect_contents().unwrap();
    drop((other, adopted));
    let to = to.reopen();
    let adopted = to.databases.get("mail/ada-restored").unwrap();
    assert_eq!(read_attachment(&adopted, "small").unwrap(), b"short");
    assert!(read_attachment(&adopted, "large").unwrap() == noise(7, 1_500_000));
    assert!(read_attachment(&adopted, "shared").unwrap() == noise(7, 400_000));
    assert!(adopted.is_read("ada", "memo-4").unwrap() && !adopted.is_read("ada", "memo-5").unwrap());
    assert_eq!(
        adopted.folder_rows("Inbox", RowQuery::default(), (None, &SERVER)).unwrap().total_rows,
        Some(1)
    );
    put(&adopted, &json!({"_id": "new"})).unwrap();
    assert_eq!(adopted.info().unwrap().change_number, before.change_number + 1);
}

#[test]
fn one_that_is_stopped_leaves_nothing() {
    let (from, to) = (Server::quick(), Server::quick());
    let original = sample(&from.databases);
    let stopped = to.databases.adopt(&from.databases, original.name(), "again", &mut |_| false);
    assert!(matches!(stopped, Err(DatabaseError::Unavailable { .. })));
    assert!(matches!(to.databases.get("again"), Err(DatabaseError::NotFound { .. })));
    assert_eq!(to.databases.purge_dropped().unwrap(), 1);
    to.databases.collect_contents().unwrap();
    assert!(dump(to.store.as_ref().unwrap(), 1).is_empty());
    let missing = to.databases.adopt(&from.databases, "none", "again", &mut |_| true);
    assert!(matches!(missing, Err(DatabaseError::NotFound { .. })));
    to.databases.adopt(&from.databases, original.name(), "again", &mut |_| true).unwrap();
    let taken = to.databases.adopt(&from.databases, original.name(), "again", &mut |_| true);
    assert!(matches!(taken, Err(DatabaseError::Exists { .. })));
}

//! The directory follows its database.

use std::sync::Arc;

use scrinium_database::{Edit, EditMode, ReadOptions};
use scrinium_directory::{DIRECTORY_DATABASE, Directory, Found, NameLookup};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{HASH, SERVER, approach, logins_of, open};

fn put(database: &OpenDatabase, document: Value) -> String {
    let edit = Edit { json: document.to_string().into(), ..Edit::default() };
    let update = database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap();
    update.wait().unwrap().remove(0).unwrap().revision
}

#[test]
fn an_answer_holds_every_change_before_the_question() {
    let folder = tempfile::tempdir().unwrap();
    let (store, databases) = open(folder.path());
    let directory = Arc::new(Directory::open(&databases).unwrap());
    let database = databases.get(DIRECTORY_DATABASE).unwrap();
    for number in 0..50 {
        let name = format!("p{number}");
        let revision = put(
            &database,
            json!({"_id": format!("person:{name}"), "Form": "Person", "FullName": name, "ShortName": name}),
        );
        assert!(matches!(directory.find(&name), Found::Person(_)));
        if number % 3 == 0 {
            put(&database, json!({"_id": format!("person:{name}"), "_rev": revision, "_deleted": true}));
            assert_eq!(directory.find(&name), Found::Nobody);
        }
    }
    assert_eq!(directory.len(), 33);

    // Another directory in its place: nobody of the old one is left.
    databases.delete(DIRECTORY_DATABASE).unwrap();
    databases.create(DIRECTORY_DATABASE, &scrinium_database::InitialAccess::Everybody).unwrap();
    assert_eq!(directory.find("p1"), Found::Nobody);
    assert!(directory.is_empty());
    drop((directory, database, databases));
    store.close().unwrap();
}

#[tokio::test]
async fn a_server_gets_one_administrator_and_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let (store, databases) = open(folder.path());
    let directory = Arc::new(Directory::open(&databases).unwrap());
    let made = directory.ensure_administrator(None).unwrap().unwrap();
    let password = made.made_password.unwrap();
    let logins = logins_of(&directory);
    assert!(logins.verify("admin", &password, &approach()).await.unwrap().person.has_role("_admin"));
    let stored =
        databases.get(DIRECTORY_DATABASE).unwrap().read("person:admin", &ReadOptions::default(), &SERVER);
    assert!(!stored.unwrap().json.contains(&password));
    drop((logins, directory, databases));
    store.close().unwrap();

    let (store, databases) = open(folder.path());
    let directory = Directory::open(&databases).unwrap();
    assert!(directory.ensure_administrator(Some("another")).unwrap().is_none(), "only at the first start");
    drop((directory, databases));
    store.close().unwrap();
}

#[tokio::test]
async fn hashes_that_an_earlier_version_kept_in_documents_are_moved_out_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let (store, databases) = open(folder.path());
    drop(Directory::open(&databases).unwrap());
    let database = databases.get(DIRECTORY_DATABASE).unwrap();
    let person = json!({"_id": "person:ada", "Form": "Person", "FullName": "Ada", "ShortName": "ada",
        "PasswordHash": HASH.as_str()});
    put(&database, person);
    let text = |id: &str| database.read(id, &ReadOptions::default(), &SERVER).unwrap().json.to_string();
    assert!(text("person:ada").contains("argon2"));
    let directory = Arc::new(Directory::open(&databases).unwrap());
    assert!(!text("person:ada").contains("argon2"), "{}", text("person:ada"));
    let logins = logins_of(&directory);
    let can_log_in = async || logins.verify("ada", "engine", &approach()).await.is_ok();
    assert!(can_log_in().await);
    // An edit that says nothing of the password leaves it, and a removed person leaves nothing.
    let revision = database.read("person:ada", &ReadOptions::default(), &SERVER).unwrap().revision;
    let edited = put(
        &database,
        json!({"_id": "person:ada", "_rev": revision, "Form": "Person", "FullName": "Ada", "ShortName": "ada"}),
    );
    assert!(can_log_in().await && database.secret("person:ada").unwrap().is_some());
    let gone = json!({"_id": "person:ada", "_rev": edited, "_deleted": true});
    let edit =
        Edit { json: gone.to_string().into(), secret: scrinium_database::Secret::Remove, ..Edit::default() };
    database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap().remove(0).unwrap();
    assert!(database.secret("person:ada").unwrap().is_none());
    assert!(!can_log_in().await);
    drop((logins, directory, database, databases));
    store.close().unwrap();
}

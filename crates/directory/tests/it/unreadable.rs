//! What cannot be read of people and groups: they were left out, or had no password, without a word.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use scrinium_accounting::{AccountOptions, Accounts};
use scrinium_database::{Edit, EditMode, ReadOptions, Secret};
use scrinium_directory::{
    CredentialOptions, Credentials, DIRECTORY_DATABASE, Directory, Found, HashingOptions, LoginAttempt,
    LoginError, Logins, NameLookup,
};
use scrinium_statistics::Registry;
use serde_json::{Value, json};

use crate::common::{HASH, SERVER, approach, document, open};

/// What was logged.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<u8>>>);

impl io::Write for Told {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_cannot_be_read_of_somebody_is_logged_and_counted_until_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let (store, databases) = open(folder.path());
    let directory = Arc::new(Directory::open(&databases).unwrap());
    let database = databases.get(DIRECTORY_DATABASE).unwrap();
    let statistics = Registry::new();
    let credentials = Credentials::new(directory.clone(), &CredentialOptions::default()).unwrap();
    let accounts = Accounts::new(AccountOptions::default());
    let watch = Box::new(|_: &LoginAttempt<'_>| {});
    let logins = Logins::new(credentials, accounts, HashingOptions::default(), (&statistics, watch)).unwrap();
    // Nothing checks what is written here.
    let put = |name: &str, fields: Value, secret: Secret| {
        let mut json = Value::Object(document(name));
        json.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        if let Ok(present) = database.read(&format!("person:{name}"), &ReadOptions::default(), &SERVER) {
            json["_rev"] = present.revision.into();
        }
        let edit = Edit { json: json.to_string().into(), secret, ..Edit::default() };
        database.update_one(edit, EditMode::Interactive, &SERVER).unwrap();
    };
    let unreadable = || {
        directory.catch_up().unwrap();
        statistics.snapshot().gauges["Directory.Unreadable"]
    };
    let told = Told::default();
    let writer = told.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || {
        put("ada", json!({}), Secret::Set(HASH.as_str().into()));
        assert_eq!(unreadable(), 0.0);
        put("bob", json!({"ShortName": "b ob"}), Secret::Keep);
        put("carl", json!({}), Secret::Set("$argon2id$cut-off".into()));
        put("dora", json!({}), Secret::Set(r#"{"version":9999,"cut-off":1}"#.into()));
        put("eve", json!({"PasswordHash": "$argon2id$cut-off"}), Secret::Keep);
        let group = json!({"_id": "group:staff", "Form": "Group", "ListName": "staff", "Members": 5});
        let edit = Edit { json: group.to_string().into(), ..Edit::default() };
        database.update_one(edit, EditMode::Interactive, &SERVER).unwrap();
        assert_eq!(unreadable(), 5.0);
    });
    let text = String::from_utf8(told.0.lock().clone()).unwrap();
    for id in ["person:bob", "person:carl", "person:dora", "person:eve", "group:staff"] {
        assert!(text.lines().any(|line| line.contains("ERROR") && line.contains(id)), "{id}: {text}");
    }
    assert!(!text.contains("person:ada") && !text.contains("cut-off"), "{text}");

    // Nobody comes in by what cannot be read, and the person is there still.
    assert!(matches!(directory.find("carl"), Found::Person(_)) && directory.find("bob") == Found::Nobody);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let come_in = |name: &str| {
        runtime.block_on(async {
            let approach = approach();
            let attempt = logins.verify(name, "engine", &approach);
            tokio::time::timeout(Duration::from_secs(60), attempt).await.unwrap()
        })
    };
    assert!(matches!(come_in("carl"), Err(LoginError::Refused)));
    assert!(matches!(come_in("dora"), Err(LoginError::Refused)));
    assert!(come_in("ada").is_ok());
    for name in ["bob", "carl", "dora"] {
        put(name, json!({}), Secret::Set(HASH.as_str().into()));
    }
    assert_eq!(unreadable(), 2.0);
    assert!(come_in("carl").is_ok());
    drop((logins, directory, database, databases));
    store.close().unwrap();
}

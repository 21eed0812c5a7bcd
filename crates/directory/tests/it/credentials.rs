//! The credentials of a person in the directory's secret place: what changes them, and that nothing shows them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use scrinium_accounting::{AccountOptions, Accounts};
use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_credentials::{
    Answer, NewAppPassword, NextStep, Proof, Protocol, ProtocolSet, STEP_S, StoredCredentials, Totp,
    TotpHash, code_of_step,
};
use scrinium_database::{ChangesQuery, Edit, EditMode, Guard, Guarded, ReadOptions, Secret, Submission};
use scrinium_directory::{
    Approach, CredentialError, CredentialRecords, DIRECTORY_DATABASE, Directory, LoginError, Logins,
    NameIndex,
};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{
    HASH, SERVER, address, approach, document, logins, logins_of, logins_with, open, stored,
};

pub(crate) const NOW_MS: u64 = 1_784_000_000_000;

/// Lets the directory check what is written into it, as the server does.
struct DirectoryGuard(Weak<Directory>);

impl Guard for DirectoryGuard {
    fn guards(&self, database: &str) -> bool {
        database == DIRECTORY_DATABASE
    }

    fn check(&self, submission: Submission<'_>) -> scrinium_database::Result<Guarded> {
        self.0.upgrade().unwrap().check(&submission)
    }
}

pub(crate) fn guarded(databases: &Databases) -> (Arc<Directory>, OpenDatabase) {
    let directory = Arc::new(Directory::open(databases).unwrap());
    databases.set_guard(Arc::new(DirectoryGuard(Arc::downgrade(&directory))));
    (directory, databases.get(DIRECTORY_DATABASE).unwrap())
}

fn write(database: &OpenDatabase, change: Value) {
    let mut json = Value::Object(document("ada"));
    if let Ok(present) = database.read("person:ada", &ReadOptions::default(), &SERVER) {
        json["_rev"] = present.revision.into();
    }
    for (field, value) in change.as_object().unwrap() {
        json[field] = value.clone();
    }
    let edit = Edit { json: json.to_string().into(), ..Edit::default() };
    database.update_one(edit, EditMode::Interactive, &SERVER).unwrap();
}

pub(crate) fn app(stored: &mut StoredCredentials, scope: ProtocolSet) -> String {
    let new = NewAppPassword { name: "phone", scope, expires_ms: None };
    stored.create_app_password(new, Some(4096), NOW_MS).unwrap().show()
}

/// Gives a person an authenticator; gives its code of a time and a recovery code.
pub(crate) fn with_totp(stored: &mut StoredCredentials, now_ms: u64) -> (Totp, String) {
    let begun = stored.begin_totp().unwrap();
    let before_ms = now_ms - 10 * STEP_S * 1000;
    let code = code_at(&begun, before_ms);
    let recovery = stored.confirm_totp(begun.clone(), &code, before_ms).unwrap().unwrap();
    (begun, recovery[0].clone())
}

pub(crate) fn code_at(totp: &Totp, now_ms: u64) -> String {
    let secret = BASE32_NOPAD.decode(totp.secret_text().as_bytes()).unwrap();
    code_of_step(&secret, now_ms / 1000 / STEP_S, 6, TotpHash::Sha1)
}

async fn first_step(logins: &Logins, browser: &Approach) -> NextStep {
    match logins.verify("ada", "engine", browser).await {
        Err(LoginError::SecondStep(next)) => next,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_old_hash_is_taken_over_and_stored_with_everything_else_when_it_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let (store, databases) = open(folder.path());
    let (directory, database) = guarded(&databases);
    write(&database, json!({}));
    // As an earlier version kept it: the hash, and nothing else.
    let edit = Edit {
        json: database.read("person:ada", &ReadOptions::default(), &SERVER).unwrap().json.to_string().into(),
        secret: Secret::Set(HASH.as_str().into()),
        ..Edit::default()
    };
    database.update_one(edit, EditMode::Interactive, &SERVER).unwrap();
    let logins = logins_of(&directory);
    let standing = directory.person("person:ada").unwrap().standing();
    logins.verify("ada", "engine", &approach()).await.unwrap();
    let record = || String::from_utf8(database.secret("person:ada").unwrap().unwrap().to_vec()).unwrap();
    for _ in 0..200 {
        if record().starts_with('{') {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(record().contains("\"version\":1") && record().contains("stored_key"), "{}", record());
    // It is the same password: no session ends by it, and what was remembered holds.
    assert_eq!(directory.person("person:ada").unwrap().standing(), standing);
    assert!(logins.recall("ada", "engine", &approach()).is_some());
    drop((logins, directory, database, databases));
    store.close().unwrap();
}

#[tokio::test]
async fn credentials_live_through_edits_and_restarts_and_are_in_no_document() {
    let folder = tempfile::tempdir().unwrap();
    let (store, databases) = open(folder.path());
    let (directory, database) = guarded(&databases);
    write(&database, json!({"password": "engine"}));
    let made = directory.change_credentials("person:ada", |stored| Ok(app(stored, ProtocolSet::mail())));
    let made = made.unwrap();
    let lets_in = async |directory: &Arc<Directory>, password: &str| {
        logins_of(directory).verify("ada", password, &approach()).await.is_ok()
    };
    assert!(lets_in(&directory, &made).await && lets_in(&directory, "engine").await);
    // Another password, and an edit that says nothing of it.
    write(&database, json!({"password": "another"}));
    write(&database, json!({"Colour": "green"}));
    assert!(lets_in(&directory, &made).await && lets_in(&directory, "another").await);
    assert!(!lets_in(&directory, "engine").await);
    let shown = database.read("person:ada", &ReadOptions::default(), &SERVER).unwrap().json.to_string();
    let query = ChangesQuery { include_documents: true, all_leaves: true, ..ChangesQuery::default() };
    let feed = database.changes(query, &SERVER).unwrap().next_changes(100).unwrap();
    let person = directory.person("person:ada").unwrap();
    for text in [shown, format!("{feed:?}")] {
        assert!(!text.contains("stored_key") && !text.contains("phone"), "{text}");
        assert!(!text.contains("argon2") && !text.contains(&made[4..]), "{text}");
    }
    let text = format!("{person:?}");
    assert!(!text.contains("argon2") && !text.contains(&made[9..]), "{text}");
    // Nobody who is not there has credentials.
    assert!(matches!(directory.change_credentials("person:eve", |_| Ok(())), Err(CredentialError::Nobody)));
    drop(person);
    // The last use of the app password is on its way to the disk.
    while Arc::strong_count(&directory) > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop((directory, database, databases));
    store.close().unwrap();

    let (store, databases) = open(folder.path());
    let (directory, database) = guarded(&databases);
    assert!(lets_in(&directory, &made).await && lets_in(&directory, "another").await);
    let id = made.split('-').nth(1).unwrap().to_owned();
    directory
        .change_credentials("person:ada", move |stored| Ok(stored.revoke_app_password(&id, NOW_MS)?))
        .unwrap();
    assert!(!lets_in(&directory, &made).await);
    // Without a password the rest stays; with the person everything goes.
    write(&database, json!({"password": null}));
    assert!(!lets_in(&directory, "another").await);
    assert_eq!(directory.person("person:ada").unwrap().credentials.app_passwords().count(), 1);
    write(&database, json!({"_deleted": true}));
    assert!(database.secret("person:ada").unwrap().is_none());
    while Arc::strong_count(&directory) > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop((directory, database, databases));
    store.close().unwrap();
}

/// Many at once: each change is made of what the one before left, and none is lost.
#[test]
fn changes_at_once_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (store, databases) = open(folder.path());
    let (directory, database) = guarded(&databases);
    write(&database, json!({}));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let all = ProtocolSet::all().without(Protocol::Browser);
                    let new = NewAppPassword { name: "x", scope: all, expires_ms: None };
                    let made = directory.change_credentials("person:ada", move |stored| {
                        Ok(stored.create_app_password(new, None, NOW_MS)?.show())
                    });
                    made.unwrap();
                    write_again(&database);
                }
            });
        }
    });
    assert_eq!(directory.person("person:ada").unwrap().credentials.app_passwords().count(), 32);
    drop((directory, database, databases));
    store.close().unwrap();
}

fn write_again(database: &OpenDatabase) {
    let present = database.read("person:ada", &ReadOptions::default(), &SERVER).unwrap();
    let edit = Edit { json: present.json.to_string().into(), ..Edit::default() };
    // A conflict with another thread's edit is what it may be.
    drop(database.update_one(edit, EditMode::Interactive, &SERVER));
}

#[tokio::test]
async fn a_disabled_account_is_closed_and_its_sessions_do_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (store, databases) = open(folder.path());
    let (directory, database) = guarded(&databases);
    write(&database, json!({"password": "engine"}));
    let standing = || directory.person("person:ada").unwrap().standing();
    let logins = logins_of(&directory);
    let before = standing();
    write(&database, json!({"Disabled": true}));
    let refused = logins.verify("ada", "engine", &approach()).await.unwrap_err();
    assert_eq!(refused, LoginError::Denied(Answer::Disabled, Protocol::Imap));
    assert_eq!(logins.verify("ada", "wrong", &approach()).await.unwrap_err(), LoginError::Refused);
    write(&database, json!({"Disabled": false}));
    logins.verify("ada", "engine", &approach()).await.unwrap();
    assert_ne!(standing(), before, "a session from before is over for good");
    drop((logins, directory, database, databases));
    store.close().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_code_is_good_for_once_and_the_password_does_not_give_more_tries() {
    let index = Arc::new(NameIndex::new());
    let mut credentials = stored(Some("engine"));
    let (totp, recovery) = with_totp(&mut credentials, NOW_MS);
    index.apply_with("person:ada", Some(&document("ada")), Some(credentials));
    let manual = Clock::manual(NOW_MS);
    let guesses = AccountOptions { clock: manual.clock(), ..AccountOptions::default() };
    let accounts = Accounts::new(guesses);
    let logins = logins_with(index.clone(), manual.clock(), Duration::from_hours(1), accounts);
    let browser = Approach::protected(Protocol::Browser, address(2));
    let show = async |code: &str, browser: &Approach| {
        let first = first_step(&logins, browser).await;
        logins.prove("ada", None, Proof::Code { first: &first, code }, browser).await
    };
    let login = show(&code_at(&totp, NOW_MS), &browser).await.unwrap();
    assert!(login.has_second_factor);
    assert_eq!(show(&code_at(&totp, NOW_MS), &browser).await.unwrap_err(), LoginError::Refused);
    show(&recovery, &browser).await.unwrap();
    assert_eq!(show(&recovery, &browser).await.unwrap_err(), LoginError::Refused);

    // By a protocol without a second step the password is wrong, like any other.
    assert_eq!(logins.verify("ada", "engine", &approach()).await.unwrap_err(), LoginError::Refused);
    assert!(logins.recall("ada", "engine", &approach()).is_none());

    // Somebody who knows the password tries codes.
    let thief = Approach { address: address(3), ..browser };
    let mut tries = 0;
    let locked = loop {
        tries += 1;
        assert!(tries < 50, "codes can be tried for ever");
        let first = match logins.verify("ada", "engine", &thief).await {
            Err(LoginError::SecondStep(next)) => next,
            Err(error) => break error,
            Ok(_) => panic!("the second step is missing"),
        };
        let code = format!("{tries:06}");
        drop(logins.prove("ada", None, Proof::Code { first: &first, code: &code }, &thief).await);
    };
    assert!(matches!(locked, LoginError::Locked { .. }), "{locked:?}");
    assert!(show(&code_at(&totp, NOW_MS + 30_000), &browser).await.is_ok(), "the owner comes from elsewhere");

    // They have many networks: then codes are not looked at, but for people who were here from the same network before.
    let mut tries = 0;
    let from = |number: u32| Approach {
        address: std::net::Ipv4Addr::from(0xc633_6400 + number * 256).into(),
        ..browser
    };
    while !matches!(show("000000", &from(tries)).await.unwrap_err(), LoginError::Locked { .. }) {
        tries += 1;
        assert!(tries < 50, "codes can be tried for ever from networks enough");
    }
    manual.advance(Duration::from_secs(60));
    let code = code_at(&totp, NOW_MS + 60_000);
    assert!(matches!(show(&code, &from(60)).await.unwrap_err(), LoginError::Locked { .. }));
    assert!(show(&code, &browser).await.is_ok(), "the owner is known here");
}

#[tokio::test(start_paused = true)]
async fn an_app_password_waits_for_no_hash_and_its_last_use_is_noted() {
    let index = Arc::new(NameIndex::new());
    let mut credentials = stored(Some("engine"));
    let made = app(&mut credentials, ProtocolSet::mail());
    index.apply_with("person:ada", Some(&document("ada")), Some(credentials));
    let manual = Clock::manual(NOW_MS);
    let logins = logins(index.clone(), manual.clock(), Duration::from_hours(1));
    assert!(logins.recall("ada", &made, &approach()).is_none(), "its use is not noted yet");
    let login = logins.verify("ada", &made, &approach()).await.unwrap();
    assert_eq!(login.app_password.as_deref(), made.split('-').nth(1));
    let used = || {
        let person = CredentialRecords::person(index.as_ref(), "person:ada").unwrap();
        person.credentials.app_passwords().next().unwrap().used_ms
    };
    for _ in 0..1000 {
        if used().is_some() {
            break;
        }
        tokio::task::yield_now().await;
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(used(), Some(NOW_MS));
    assert!(logins.recall("ada", &made, &approach()).is_some());
    let http = Approach { protocol: Protocol::Http, ..approach() };
    let refused = logins.verify("ada", &made, &http).await.unwrap_err();
    assert_eq!(refused, LoginError::Denied(Answer::NotByThis, Protocol::Http));

    // A device with one that was revoked does not lock its owner out.
    let wrong = format!("{}zzzz", &made[..made.len() - 4]);
    for _ in 0..50 {
        drop(logins.verify("ada", &wrong, &approach()).await);
    }
    logins.verify("ada", "engine", &approach()).await.unwrap();
}

//! Names and passwords, sessions, and how much hashing goes on at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use scrinium_directory::{
    CredentialOptions, Credentials, HashingError, HashingGate, LoginError, NameIndex, Person, SessionError,
    SessionKeeper, prepare_person,
};
use serde_json::{Map, Value, json};

fn person(short_name: &str, password: Option<&str>) -> Map<String, Value> {
    let Value::Object(document) = json!({
        "_id": format!("person:{short_name}"), "Form": "Person", "FullName": [format!("{short_name} Someone")],
        "ShortName": short_name, "password": password
    }) else {
        unreachable!()
    };
    prepare_person(document).unwrap()
}

#[test]
fn a_login_follows_the_document() {
    let index = Arc::new(NameIndex::new());
    let first = person("ada", Some("one"));
    index.apply("person:ada", Some(&first));
    index.apply("person:bob", Some(&person("bob", None)));
    let credentials = Credentials::new(index.clone(), &CredentialOptions::default()).unwrap();

    assert_eq!(credentials.check("ADA", "one").unwrap().id, "person:ada");
    for (name, password) in [("ada", "two"), ("bob", ""), ("bob", "nobody has this password"), ("eve", "one")]
    {
        assert_eq!(credentials.check(name, password).unwrap_err(), LoginError::Refused, "{name}");
    }
    // By any of the names; checked once, it is remembered, and only that.
    assert!(credentials.recall("Ada Someone", "one").is_some());
    assert!(credentials.recall("ada", "two").is_none());
    assert!(credentials.recall("eve", "one").is_none());

    // Another password in the document, and the remembered one is worth nothing at once.
    index.apply("person:ada", Some(&person("ada", Some("two"))));
    assert!(credentials.recall("ada", "one").is_none());
    assert_eq!(credentials.check("ada", "one").unwrap_err(), LoginError::Refused);
    credentials.check("ada", "two").unwrap();
    index.apply("person:ada", None);
    assert_eq!(credentials.check("ada", "two").unwrap_err(), LoginError::Refused);
}

#[test]
fn a_remembered_answer_ends() {
    let index = Arc::new(NameIndex::new());
    index.apply("person:ada", Some(&person("ada", Some("one"))));
    let options =
        CredentialOptions { remember_for: Duration::ZERO, waiting: 0, ..CredentialOptions::default() };
    let credentials = Credentials::new(index, &options).unwrap();
    credentials.check("ada", "one").unwrap();
    assert!(credentials.recall("ada", "one").is_none());
}

/// Who comes back before that time is over is not hashed again, however long that goes on.
#[test]
fn an_answer_that_is_used_stays_remembered() {
    let index = Arc::new(NameIndex::new());
    index.apply("person:ada", Some(&person("ada", Some("one"))));
    let remember_for = Duration::from_secs(1);
    let options = CredentialOptions { remember_for, ..CredentialOptions::default() };
    let credentials = Credentials::new(index, &options).unwrap();
    credentials.check("ada", "one").unwrap();
    let mut used = std::time::Instant::now();
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(200));
        let found = credentials.recall("ada", "one").is_some();
        // A machine that was held up for so long tells nothing.
        assert!(found || used.elapsed() >= remember_for);
        if !found {
            credentials.check("ada", "one").unwrap();
        }
        used = std::time::Instant::now();
    }
    std::thread::sleep(remember_for);
    assert!(credentials.recall("ada", "one").is_none());
}

#[test]
fn a_flood_of_logins_hashes_a_bounded_number_at_once() {
    let gate = HashingGate::new(2, 3, Duration::from_secs(20));
    let (running, most, refused) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let result = gate.run(|| {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(30));
                    running.fetch_sub(1, Ordering::SeqCst);
                });
                if result == Err(HashingError::Busy) {
                    refused.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert!(most.load(Ordering::SeqCst) <= 2);
    assert!(refused.load(Ordering::SeqCst) > 0);
    gate.run(|| ()).unwrap();
}

#[test]
fn sessions_slide_time_out_and_end_with_the_password() {
    let ada = Person::read(&person("ada", Some("one"))).unwrap();
    let keeper = SessionKeeper::new(b"secret", Duration::from_mins(10));
    let cookie = keeper.issue(&ada, 1_000);
    assert_eq!(SessionKeeper::claimed_person(&cookie).unwrap(), "person:ada");

    let session = keeper.check(&cookie, &ada, 1_030).unwrap();
    assert_eq!((session.person_id.as_str(), session.issued_s, session.renew), ("person:ada", 1_000, false));
    assert!(keeper.check(&cookie, &ada, 1_060).unwrap().renew);
    assert!(keeper.check(&cookie, &ada, 900).is_ok(), "a clock set back ends nothing");
    assert_eq!(keeper.check(&cookie, &ada, 1_600), Err(SessionError::TimedOut));

    let later = Person::read(&person("ada", Some("one"))).unwrap();
    assert_eq!(
        keeper.check(&cookie, &later, 1_030),
        Err(SessionError::Invalid),
        "the same word, another salt"
    );
    let bob = Person { id: "person:bob".to_owned(), ..ada.clone() };
    assert_eq!(keeper.check(&cookie, &bob, 1_030), Err(SessionError::Invalid));
    let elsewhere = SessionKeeper::new(b"another secret", Duration::from_mins(10));
    assert_eq!(elsewhere.check(&cookie, &ada, 1_030), Err(SessionError::Invalid));
}

#[test]
fn no_changed_cookie_is_accepted_and_none_does_harm() {
    let ada = Person::read(&person("ada", Some("one"))).unwrap();
    let keeper = SessionKeeper::new(b"secret", Duration::from_mins(10));
    let cookie = keeper.issue(&ada, 1_000);
    for position in 0..cookie.len() {
        for letter in ['A', 'z', '_', '!'] {
            let mut changed: Vec<char> = cookie.chars().collect();
            if changed[position] == letter {
                continue;
            }
            changed[position] = letter;
            let changed: String = changed.into_iter().collect();
            // The last letter carries two unused bits: another letter that means the same bytes is malformed.
            assert!(keeper.check(&changed, &ada, 1_001).is_err(), "{position} {letter}");
        }
    }
    for cookie in ["", "=", "::::", "AAAA", &"A".repeat(100_000)] {
        assert!(keeper.check(cookie, &ada, 1_001).is_err());
    }
}

//! Names and passwords, sessions, and how much hashing runs at once.

use std::sync::Arc;
use std::time::Duration;

use scrinium_accounting::{Network, NetworkPrefixes, Standing};
use scrinium_clock::Clock;
use scrinium_directory::{
    HashingError, HashingOptions, HashingThreads, LoginError, NameIndex, Person, SessionError, SessionKeeper,
    SessionOrigin, SessionTimes, SessionUse,
};

use crate::common::{approach, document, logins, person, stored};

const TIMES: SessionTimes = SessionTimes {
    timeout: Duration::from_mins(10),
    most: Duration::from_hours(30 * 24),
    most_of_administrators: Duration::from_hours(24),
};

fn with(index: &NameIndex, name: &str, password: Option<&str>) {
    index.apply_with(&format!("person:{name}"), Some(&document(name)), Some(stored(password)));
}

#[tokio::test]
async fn a_login_follows_the_document() {
    let index = Arc::new(NameIndex::new());
    with(&index, "ada", Some("one"));
    with(&index, "bob", None);
    let logins = logins(index.clone(), Clock::system(), Duration::from_hours(1));
    let verify = async |name, password| logins.verify(name, password, &approach()).await;
    let recall = |name, password| logins.recall(name, password, &approach());

    assert_eq!(verify("ADA", "one").await.unwrap().person.id, "person:ada");
    for (name, password) in [("ada", "two"), ("bob", ""), ("bob", "nobody has this password"), ("eve", "one")]
    {
        assert_eq!(verify(name, password).await.unwrap_err(), LoginError::Refused, "{name}");
    }
    // By any of the names; checked once, it is remembered, and only that.
    assert!(recall("Ada Someone", "one").is_some());
    assert!(recall("ada", "two").is_none());
    assert!(recall("eve", "one").is_none());

    // Another password, and the remembered one is worth nothing at once.
    with(&index, "ada", Some("two"));
    assert!(recall("ada", "one").is_none());
    assert_eq!(verify("ada", "one").await.unwrap_err(), LoginError::Refused);
    verify("ada", "two").await.unwrap();
    index.apply("person:ada", None);
    assert_eq!(verify("ada", "two").await.unwrap_err(), LoginError::Refused);
}

#[tokio::test]
async fn a_remembered_answer_ends() {
    let index = Arc::new(NameIndex::new());
    with(&index, "ada", Some("one"));
    let logins = logins(index, Clock::system(), Duration::ZERO);
    logins.verify("ada", "one", &approach()).await.unwrap();
    assert!(logins.recall("ada", "one", &approach()).is_none());
}

/// Who comes back before that time is over is not hashed again, however long that continues.
#[tokio::test]
async fn an_answer_that_is_used_stays_remembered() {
    let index = Arc::new(NameIndex::new());
    with(&index, "ada", Some("one"));
    let manual = Clock::manual(1_700_000_000_000);
    let remember_for = Duration::from_mins(10);
    let logins = logins(index, manual.clock(), remember_for);
    logins.verify("ada", "one", &approach()).await.unwrap();
    for _ in 0..8 {
        manual.advance(Duration::from_mins(9));
        assert!(logins.recall("ada", "one", &approach()).is_some());
    }
    manual.advance(remember_for);
    assert!(logins.recall("ada", "one", &approach()).is_none());
}

/// A queue whose one thread is held until the test lets it go.
#[test]
fn those_who_are_known_come_first_and_what_finds_no_place_is_refused_at_once() {
    let options = HashingOptions { threads: 1, waiting: 2, ..HashingOptions::default() };
    let hashing = HashingThreads::begin(options).unwrap();
    let network = |last: u8| Network::of([192, 0, 2, last].into(), NetworkPrefixes::default());
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let (begun, has_begun) = std::sync::mpsc::channel();
    let hold = move |_| {
        begun.send(()).unwrap();
        held.recv().unwrap();
    };
    hashing.submit(Standing::Fresh, network(1), hold).unwrap();
    has_begun.recv().unwrap();
    let (done, order) = std::sync::mpsc::channel();
    let submit = |standing, from: u8, name: &'static str| {
        let done = done.clone();
        hashing.submit(standing, network(from), move |in_time| done.send((name, in_time)).unwrap())
    };
    submit(Standing::Suspect, 1, "suspect").unwrap();
    submit(Standing::Fresh, 2, "many 1").unwrap();
    submit(Standing::Fresh, 2, "many 2").unwrap();
    submit(Standing::Fresh, 2, "many 3").unwrap();
    assert_eq!(submit(Standing::Suspect, 4, "too many"), Err(HashingError::Busy), "half of the places");
    submit(Standing::Fresh, 3, "one").unwrap();
    submit(Standing::Fresh, 3, "two").unwrap();
    assert_eq!(submit(Standing::Fresh, 5, "too many"), Err(HashingError::Busy), "three quarters");
    submit(Standing::Known, 2, "known").unwrap();
    submit(Standing::Known, 2, "known too").unwrap();
    let_go.send(()).unwrap();
    let order: Vec<&str> = order
        .iter()
        .take(8)
        .map(|(name, in_time)| {
            assert!(in_time);
            name
        })
        .collect();
    assert_eq!(order, ["known", "known too", "many 1", "one", "many 2", "two", "many 3", "suspect"]);
}

#[test]
fn who_has_waited_for_too_long_is_told_so_and_nothing_is_hashed_at_the_end() {
    let options = HashingOptions { threads: 1, longest_wait: Duration::ZERO, ..HashingOptions::default() };
    let hashing = HashingThreads::begin(options).unwrap();
    let network = Network::of([192, 0, 2, 1].into(), NetworkPrefixes::default());
    let (done, times) = std::sync::mpsc::channel();
    for _ in 0..3 {
        let done = done.clone();
        hashing.submit(Standing::Fresh, network, move |in_time| done.send(in_time).unwrap()).unwrap();
    }
    drop((hashing, done));
    assert_eq!(times.iter().collect::<Vec<_>>(), [false; 3]);
}

#[test]
fn sessions_slide_time_out_and_end_with_the_password() {
    let ada = person("ada", Some("one"));
    let keeper = SessionKeeper::new(b"secret", TIMES);
    let cookie = keeper.begin(&ada, &SessionOrigin::default(), 1_000);
    assert_eq!(SessionKeeper::claimed_person(&cookie).unwrap(), "person:ada");

    let session = keeper.check(&cookie, &ada, 1_030).unwrap();
    assert_eq!((session.person_id.as_str(), session.issued_s, session.renew), ("person:ada", 1_000, false));
    assert!(keeper.check(&cookie, &ada, 1_060).unwrap().renew);
    assert!(keeper.check(&cookie, &ada, 900).is_ok(), "a clock set back ends nothing");
    assert_eq!(keeper.check(&cookie, &ada, 1_600), Err(SessionError::TimedOut));

    let later = person("ada", Some("one"));
    assert_eq!(
        keeper.check(&cookie, &later, 1_030),
        Err(SessionError::Invalid),
        "the same word, another salt"
    );
    let bob = Person { id: "person:bob".to_owned(), ..ada.clone() };
    assert_eq!(keeper.check(&cookie, &bob, 1_030), Err(SessionError::Invalid));
    let promoted = Person { roles: vec!["_admin".to_owned()], ..ada.clone() };
    assert_eq!(keeper.check(&cookie, &promoted, 1_030), Err(SessionError::Invalid), "other roles");
    let elsewhere = SessionKeeper::new(b"another secret", TIMES);
    assert_eq!(elsewhere.check(&cookie, &ada, 1_030), Err(SessionError::Invalid));
}

#[test]
fn no_changed_cookie_is_accepted_and_none_does_harm() {
    let ada = person("ada", Some("one"));
    let keeper = SessionKeeper::new(b"secret", TIMES);
    let cookie = keeper.begin(&ada, &SessionOrigin::default(), 1_000);
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

/// A session of somebody who comes back every five minutes; how old it is when it ends.
fn lasts(keeper: &SessionKeeper, person: &Person) -> Duration {
    let (begun_s, mut now_s) = (1_000_000, 1_000_000);
    let mut cookie = keeper.begin(person, &SessionOrigin::default(), now_s);
    loop {
        now_s += 300;
        match keeper.check(&cookie, person, now_s) {
            Ok(session) => {
                assert_eq!(session.begun_s, begun_s);
                assert!(keeper.keep_for(person, begun_s, now_s) <= Duration::from_mins(10));
                cookie = keeper.renew(person, &session, now_s);
            }
            Err(error) => {
                assert_eq!(error, SessionError::TooOld);
                return Duration::from_secs(now_s - begun_s);
            }
        }
    }
}

#[test]
fn a_session_in_use_ends_at_its_age_and_an_administrators_sooner() {
    let keeper = SessionKeeper::new(b"secret", TIMES);
    let ada = person("ada", Some("one"));
    assert_eq!(lasts(&keeper, &ada), Duration::from_hours(30 * 24));
    let administrator = Person { roles: vec!["_admin".to_owned()], ..ada };
    assert_eq!(lasts(&keeper, &administrator), Duration::from_hours(24));
}

#[test]
fn a_token_that_was_replaced_and_is_used_again_is_a_copy() {
    let keeper = SessionKeeper::new(b"secret", TIMES);
    let ada = person("ada", Some("one"));
    let used = |cookie: &str, now_s| keeper.note_use(&keeper.check(cookie, &ada, now_s).unwrap(), now_s);
    let first = keeper.begin(&ada, &SessionOrigin::default(), 1_000);
    assert_eq!(used(&first, 1_100), SessionUse::Fine);
    let second = keeper.renew(&ada, &keeper.check(&first, &ada, 1_100).unwrap(), 1_100);
    // The answer with the new token was lost, or the client keeps to the old one: nobody else has it.
    assert_eq!(used(&first, 1_300), SessionUse::Fine);
    assert_eq!(used(&second, 1_310), SessionUse::Fine);
    // What was on its way at that time.
    assert_eq!(used(&first, 1_360), SessionUse::Fine);
    assert_eq!(used(&second, 1_400), SessionUse::Fine);
    assert_eq!(used(&first, 1_401), SessionUse::Copied);
    // Another session of the same person has nothing to do with it.
    assert_eq!(used(&keeper.begin(&ada, &SessionOrigin::default(), 1_050), 1_402), SessionUse::Fine);
}

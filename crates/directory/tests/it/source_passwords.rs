//! Passwords that another server checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use scrinium_accounting::{AccountOptions, Accounts};
use scrinium_clock::Clock;
use scrinium_credentials::{Method, Protocol};
use scrinium_directory::{Approach, LoginError, Logins, NameIndex, PasswordAnswer, PasswordSource};
use serde_json::{Value, json};

use crate::common::{address, approach, document, logins_with, stored};
use crate::credentials::{NOW_MS, with_totp};

const ENTRY: &str = "uid=ada,dc=example,dc=org";

/// A server elsewhere that knows one password, and notes what it is asked.
#[derive(Default)]
struct Elsewhere {
    asked: Mutex<Vec<String>>,
    is_away: AtomicBool,
}

impl PasswordSource for Elsewhere {
    fn check<'s>(&'s self, entry: &'s str, password: &'s str) -> PasswordAnswer<'s> {
        self.asked.lock().push(format!("{entry} {password}"));
        let answer = (!self.is_away.load(Ordering::Relaxed)).then(|| (entry, password) == (ENTRY, "engine"));
        Box::pin(std::future::ready(answer))
    }
}

struct World {
    index: Arc<NameIndex>,
    elsewhere: Arc<Elsewhere>,
    logins: Logins,
    clock: scrinium_clock::ManualClock,
}

impl World {
    fn new() -> Self {
        let (index, elsewhere) = (Arc::new(NameIndex::new()), Arc::new(Elsewhere::default()));
        let clock = Clock::manual(NOW_MS);
        let accounts = Accounts::new(AccountOptions { clock: clock.clock(), ..AccountOptions::default() });
        let logins = logins_with(index.clone(), clock.clock(), Duration::from_hours(1), accounts);
        let logins = logins.with_source(elsewhere.clone());
        let world = Self { index, elsewhere, logins, clock };
        world.put(json!({}), None);
        world
    }

    /// Ada, who comes from the source, with other fields.
    fn put(&self, fields: Value, password: Option<&str>) {
        let mut ada = document("ada");
        ada.extend(json!({"Source": "ldap", "SourceEntry": ENTRY}).as_object().unwrap().clone());
        ada.extend(fields.as_object().unwrap().clone());
        self.index.apply_with("person:ada", Some(&ada), Some(stored(password)));
    }

    async fn verify(&self, password: &str) -> Result<Method, LoginError> {
        self.logins.verify("ada", password, &approach()).await.map(|login| login.method)
    }

    fn asked(&self) -> usize {
        self.elsewhere.asked.lock().len()
    }
}

#[tokio::test]
async fn a_right_password_is_asked_for_once_in_some_minutes() {
    let world = World::new();
    assert!(world.logins.recall("ada", "engine", &approach()).is_none());
    for _ in 0..3 {
        assert_eq!(world.verify("engine").await, Ok(Method::Password));
        assert!(world.logins.recall("Ada Someone", "engine", &approach()).is_some());
    }
    assert_eq!(*world.elsewhere.asked.lock(), [format!("{ENTRY} engine")]);
    assert_eq!(world.verify("steam").await, Err(LoginError::Refused));
    // Others may be right there by now.
    world.clock.advance(Duration::from_mins(6));
    assert!(world.logins.recall("ada", "engine", &approach()).is_none());
    world.elsewhere.is_away.store(true, Ordering::Relaxed);
    assert!(matches!(world.verify("engine").await, Err(LoginError::Busy { .. })), "it is not there");
    world.elsewhere.is_away.store(false, Ordering::Relaxed);
    assert_eq!(world.verify("engine").await, Ok(Method::Password));
    // Who is disabled here, or is another entry's, is not believed any more.
    world.put(json!({"Disabled": true}), None);
    assert_eq!(world.verify("engine").await, Err(LoginError::Refused));
    assert!(world.logins.recall("ada", "engine", &approach()).is_none());
    world.put(json!({"SourceEntry": "uid=eve,dc=example,dc=org"}), None);
    assert_eq!(world.verify("engine").await, Err(LoginError::Refused));
}

#[tokio::test]
async fn a_password_goes_nowhere_where_it_could_not_let_its_person_in() {
    for (fields, own) in [
        (json!({"Disabled": true}), None),
        (json!({"Expires": "2026-07-01"}), None),
        (json!({"Protocols": ["http"]}), None),
        (json!({"SecondFactor": "required"}), None),
        (json!({"Roles": ["_admin"]}), None),
        (json!({"Source": "file"}), None),
        (json!({"SourceEntry": null}), None),
        (json!({}), Some("own")),
    ] {
        let world = World::new();
        world.put(fields.clone(), own);
        for password in ["engine", ""] {
            assert_eq!(world.verify(password).await, Err(LoginError::Refused), "{fields}");
        }
        assert_eq!(world.asked(), 0, "{fields} {:?}", world.elsewhere.asked.lock());
        if let Some(own) = own {
            assert_eq!(world.verify(own).await, Ok(Method::Password));
        }
    }
    let world = World::new();
    assert_eq!(world.verify("").await, Err(LoginError::Refused));
    assert_eq!(world.logins.verify("eve", "engine", &approach()).await.unwrap_err(), LoginError::Refused);
    assert_eq!(world.asked(), 0, "an empty password, and a name that nobody has");
}

#[tokio::test(start_paused = true)]
async fn guesses_of_passwords_elsewhere_lock_as_others_do() {
    let world = World::new();
    for number in 0..100 {
        drop(world.verify(&format!("guess {number}")).await);
    }
    assert!(matches!(world.verify("engine").await, Err(LoginError::Locked { .. })));
    let asked = world.asked();
    assert!(asked < 100, "{asked} guesses went on to the source");
    // From elsewhere the person comes in, by a page with a second step where there is one.
    let browser = Approach::protected(Protocol::Browser, address(9));
    assert!(world.logins.verify("ada", "engine", &browser).await.is_ok());
    let mut credentials = stored(None);
    drop(with_totp(&mut credentials, NOW_MS));
    let mut ada = document("ada");
    ada.extend(json!({"Source": "ldap", "SourceEntry": ENTRY}).as_object().unwrap().clone());
    world.index.apply_with("person:ada", Some(&ada), Some(credentials));
    let second = world.logins.verify("ada", "engine", &browser).await;
    assert!(matches!(second, Err(LoginError::SecondStep(_))), "{second:?}");
}

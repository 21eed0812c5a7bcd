//! People, and what lets them in, as tests need them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use scrinium_accounting::{AccountOptions, Accounts};
use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_credentials::{HashedPassword, Protocol, StoredCredentials};
use scrinium_database::{Access, DatabaseOptions};
use scrinium_directory::{
    Approach, CredentialOptions, CredentialRecords, Credentials, Directory, HashingOptions, Logins, Person,
};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use serde_json::{Map, Value, json};

/// The hash of the password "engine", as an earlier version wrote it.
pub(crate) static HASH: LazyLock<String> = LazyLock::new(|| {
    let hashed = HashedPassword::make("engine", None, None).unwrap().to_bytes().unwrap();
    let hashed: Value = serde_json::from_slice(&hashed).unwrap();
    hashed["credential"]["hash"].as_str().unwrap().to_owned()
});

/// Tests and measurements may do everything.
pub(crate) static SERVER: Access = Access::of_the_server("a test");

pub(crate) fn open(folder: &std::path::Path) -> (Store, Databases) {
    let mut options = StoreOptions::new(folder);
    options.budget_bytes = Some(64 << 20);
    options.log_extent_bytes = 4 << 20;
    let store = Store::open(options, &Registry::new()).unwrap();
    let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
    (store, databases)
}

pub(crate) fn document(short_name: &str) -> Map<String, Value> {
    let Value::Object(document) = json!({
        "_id": format!("person:{short_name}"), "Form": "Person", "FullName": [format!("{short_name} Someone")],
        "ShortName": short_name, "InternetAddress": format!("{short_name}@example.org")
    }) else {
        unreachable!()
    };
    document
}

pub(crate) fn stored(password: Option<&str>) -> StoredCredentials {
    let mut stored = StoredCredentials::default();
    if let Some(password) = password {
        stored.put_password(HashedPassword::make(password, None, None).unwrap(), 0);
    }
    stored
}

pub(crate) fn person(short_name: &str, password: Option<&str>) -> Person {
    let mut person = Person::read(&document(short_name)).unwrap();
    person.credentials = Arc::new(stored(password));
    person
}

pub(crate) const fn address(last: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + last * 256))
}

/// By a port of mail, which is like any other that knows no second step.
pub(crate) const fn approach() -> Approach {
    Approach::protected(Protocol::Imap, address(1))
}

pub(crate) fn logins(records: Arc<dyn CredentialRecords>, clock: Clock, remember_for: Duration) -> Logins {
    logins_with(records, clock, remember_for, Accounts::new(AccountOptions::default()))
}

pub(crate) fn logins_with(
    records: Arc<dyn CredentialRecords>,
    clock: Clock,
    remember_for: Duration,
    accounts: Accounts,
) -> Logins {
    let options = CredentialOptions { remember_for, clock, ..CredentialOptions::default() };
    let credentials = Credentials::new(records, &options).unwrap();
    let watch = Box::new(|_: &scrinium_directory::LoginAttempt<'_>| {});
    Logins::new(credentials, accounts, HashingOptions::default(), (&Registry::new(), watch)).unwrap()
}

pub(crate) fn logins_of(directory: &Arc<Directory>) -> Logins {
    logins(directory.clone(), Clock::system(), Duration::from_hours(1))
}

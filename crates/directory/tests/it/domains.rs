//! Domains: who is of one, and what its administrators may write.

use std::sync::Arc;

use scrinium_catalog::Databases;
use scrinium_database::{
    AccessList, DatabaseError, Edit, EditMode, Identity, InitialAccess, Level, ReadOptions, Result,
    domain_members,
};
use scrinium_directory::{DOMAIN_ADMINISTRATORS, Directory, Found, NameLookup};
use scrinium_store::Store;
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::{SERVER, open};
use crate::credentials::guarded;

struct Organisation {
    store: Store,
    databases: Databases,
    directory: Arc<Directory>,
    database: OpenDatabase,
    _folder: tempfile::TempDir,
}

impl Organisation {
    /// acme.example, which ada and eve administer, beta.example with bob, and carl of the server; eve administers beta.example too.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, databases) = open(folder.path());
        let (directory, database) = guarded(&databases);
        let list = AccessList::with_default(Level::Reader).with_group(DOMAIN_ADMINISTRATORS, Level::Editor);
        database.set_access_list(Some(list)).unwrap();
        let organisation = Self { store, databases, directory, database, _folder: folder };
        for (id, document) in [
            ("person:ada", person("ada", "acme.example")),
            ("person:al", person("al", "acme.example")),
            ("person:eve", person("eve", "acme.example")),
            ("person:root", with(person("root", "acme.example"), json!({"Roles": ["_admin"]}))),
            ("person:look", with(person("look", "acme.example"), json!({"Roles": ["_viewer"]}))),
            ("person:bob", person("bob", "beta.example")),
            ("person:carl", with(person("carl", ""), json!({"InternetAddress": null}))),
            (
                "group:beta",
                json!({"Form": "Group", "ListName": "Beta", "Members": ["bob"],
                "InternetAddress": "all@beta.example"}),
            ),
            (
                "group:acme",
                json!({"Form": "Group", "ListName": "Acme", "Members": ["ada", "Beta"],
                "InternetAddress": "all@acme.example"}),
            ),
            ("group:plain", json!({"Form": "Group", "ListName": "Plain", "Members": []})),
            ("domain:acme.example", json!({"Administrators": ["Ada Someone", "eve"]})),
            ("domain:beta.example", json!({"Administrators": ["eve"]})),
        ] {
            organisation.put(None, id, &document).unwrap();
        }
        organisation
    }

    /// Writes a document over the present one.
    fn put(&self, name: Option<&str>, id: &str, document: &Value) -> Result<()> {
        let mut document = with(document.clone(), json!({"_id": id}));
        if let Some(present) = self.present(id) {
            document["_rev"] = present["_rev"].clone();
        }
        let access = match name {
            None => SERVER.clone(),
            Some(name) => self.database.access(&self.identity(name)).unwrap(),
        };
        let edit = Edit { json: document.to_string().into(), ..Edit::default() };
        self.database.update_one(edit, EditMode::Interactive, &access).map(drop)
    }

    fn present(&self, id: &str) -> Option<Value> {
        let found = self.database.read(id, &ReadOptions::default(), &SERVER).ok()?;
        Some(serde_json::from_slice(found.json.to_string().as_bytes()).unwrap())
    }

    /// The present document with some fields changed, written by somebody.
    fn change(&self, name: &str, id: &str, fields: Value) -> Result<()> {
        self.put(Some(name), id, &with(self.present(id).unwrap(), fields))
    }

    fn identity(&self, name: &str) -> Identity {
        let Found::Person(person) = self.directory.find(name) else { panic!("{name}") };
        Identity::with_groups(&person.short_name, &person.roles, &self.directory.groups_of(&person))
    }

    fn close(self) {
        let Self { store, databases, directory, database, _folder } = self;
        drop((directory, database, databases));
        store.close().unwrap();
    }
}

fn with(mut document: Value, fields: Value) -> Value {
    for (field, value) in fields.as_object().unwrap() {
        document[field] = value.clone();
    }
    document
}

fn person(short_name: &str, domain: &str) -> Value {
    json!({
        "Form": "Person", "FullName": [format!("{short_name} Someone")], "ShortName": short_name,
        "InternetAddress": format!("{short_name}@{domain}")
    })
}

/// A person as an administrator of acme.example may add one.
fn added() -> Value {
    person("zoe.acme.example", "acme.example")
}

fn team() -> Value {
    json!({"Form": "Group", "ListName": "Team/acme.example", "Members": ["bob", "ada"],
        "InternetAddress": "team@acme.example"})
}

fn is_refused(result: Result<()>) -> bool {
    matches!(result, Err(DatabaseError::Forbidden { .. }))
}

#[test]
fn administrators_of_a_domain_add_change_and_disable_its_people_and_groups() {
    let place = Organisation::new();
    place.put(Some("ada"), "person:zoe.acme.example", &with(added(), json!({"password": "engine"}))).unwrap();
    assert!(place.directory.person("person:zoe.acme.example").unwrap().credentials.password().is_some());
    for fields in [
        json!({"FullName": ["Zoe Who/Acme"], "Addresses": ["zoe@acme.example"]}),
        json!({"password": "another engine"}),
        json!({"Disabled": true, "Protocols": ["imap"]}),
        json!({"OutOfOffice": true, "Language": "de"}),
    ] {
        place
            .change("ada", "person:zoe.acme.example", fields.clone())
            .unwrap_or_else(|e| panic!("{fields}: {e}"));
    }
    place
        .change("ada", "person:al", json!({"password": "steam", "InternetAddress": "al2@acme.example"}))
        .unwrap();
    place.put(Some("ada"), "group:team/acme.example", &team()).unwrap();
    place
        .change("ada", "group:team/acme.example", json!({"Members": ["al", "Acme"], "Owners": ["al"]}))
        .unwrap();
    place.change("ada", "group:acme", json!({"Members": ["al", "Beta"], "MayWrite": "everybody"})).unwrap();
    // What is theirs is theirs to change, as for anybody.
    place
        .change("ada", "person:ada", json!({"ForwardTo": ["ada@home.example"], "password": "mine"}))
        .unwrap();
    place.change("ada", "person:ada", json!({"Addresses": ["boss@acme.example"]})).unwrap();
    // Somebody of two domains.
    place.change("eve", "person:bob", json!({"password": "steam"})).unwrap();
    place.change("eve", "person:bob", json!({"InternetAddress": "bob@acme.example"})).unwrap();
    place.close();
}

#[test]
fn administrators_of_a_domain_reach_nothing_beyond_it() {
    let place = Organisation::new();
    let before: Vec<Option<Value>> = IDS.iter().map(|id| place.present(id)).collect();
    // Those of others: of another domain, of none, of the server, who look on, and who administer more.
    for id in ["person:bob", "person:carl", "person:root", "person:look", "person:eve"] {
        for fields in [json!({"password": "mine now"}), json!({"Disabled": true}), json!({"Language": "de"})]
        {
            assert!(is_refused(place.change("ada", id, fields.clone())), "{id} {fields}");
        }
        let taken = json!({"InternetAddress": "taken@acme.example"});
        assert!(is_refused(place.change("ada", id, taken)), "{id} is taken into the domain");
    }
    for (id, fields) in changes_out_of_reach() {
        assert!(is_refused(place.change("ada", id, fields.clone())), "{id} {fields}");
    }
    for (id, document) in documents_out_of_reach() {
        assert!(is_refused(place.put(Some("ada"), id, &document)), "{id} {document}");
    }
    // With a revision history of their own, nothing at all.
    let access = place.database.access(&place.identity("ada")).unwrap();
    let history = with(
        added(),
        json!({"_id": "person:zoe.acme.example", "_rev": format!("1-{}", "0".repeat(32)),
        "_revisions": {"start": 1, "ids": ["0".repeat(32)]}}),
    );
    let edit = Edit { json: history.to_string().into(), ..Edit::default() };
    assert!(place.database.update_one(edit, EditMode::Replicated, &access).is_err());
    let after: Vec<Option<Value>> = IDS.iter().map(|id| place.present(id)).collect();
    assert_eq!(before, after);
    // Who is of the domain and administers nothing may what anybody may.
    assert!(is_refused(place.put(Some("al"), "person:zoe.acme.example", &added()).map_err(as_forbidden)));
    place.close();
}

/// What ada may not change, of a document that is there.
fn changes_out_of_reach() -> Vec<(&'static str, Value)> {
    vec![
        ("person:ada", json!({"Roles": ["_admin"]})),
        ("person:ada", json!({"Roles": ["clerk"]})),
        ("person:ada", json!({"InternetAddress": "ada@beta.example"})),
        ("person:ada", json!({"MailFile": "mail/bob"})),
        ("person:ada", json!({"OtherNames": ["gone"]})),
        ("person:ada", json!({"ShortName": "bobby"})),
        ("person:ada", json!({"SecondFactor": "required"})),
        ("person:al", json!({"Roles": ["_admin"]})),
        ("person:al", json!({"InternetAddress": "al@beta.example"})),
        ("person:al", json!({"Addresses": ["boss@beta.example"]})),
        ("person:al", json!({"FullName": ["boss@beta.example"]})),
        ("person:al", json!({"FullName": ["boss@beta.example/x@acme.example"]})),
        ("person:al", json!({"FullName": ["_admin"]})),
        ("person:al", json!({"FullName": ["*/beta.example"]})),
        ("person:al", json!({"MailFile": "mail/bob"})),
        ("person:al", json!({"ForwardTo": ["ada"]})),
        ("person:al", json!({"MailReaders": ["ada"]})),
        ("person:al", json!({"SendAs": ["ada"]})),
        ("person:al", json!({"PasswordHash": *crate::common::HASH})),
        ("person:al", json!({"_deleted": true})),
        ("group:beta", json!({"Members": ["ada"]})),
        ("group:plain", json!({"Members": ["ada"]})),
        ("group:plain", json!({"InternetAddress": "plain@acme.example"})),
        ("group:acme", json!({"ListName": "clerk"})),
        ("group:acme", json!({"OtherNames": ["clerk"]})),
        ("group:acme", json!({"Addresses": ["boss@beta.example"]})),
        ("group:acme", json!({"Members": ["Plain"]})),
        ("group:acme", json!({"_deleted": true})),
        ("domain:acme.example", json!({"Administrators": ["ada"]})),
        ("domain:beta.example", json!({"Administrators": ["ada"]})),
    ]
}

/// What ada may not add.
fn documents_out_of_reach() -> Vec<(&'static str, Value)> {
    vec![
        ("person:zoe", person("zoe", "acme.example")),
        ("person:other", added()),
        ("org.couchdb.user:zoe.acme.example", added()),
        ("person:zoe.acme.example", person("zoe.acme.example", "beta.example")),
        ("person:zoe.acme.example", with(added(), json!({"InternetAddress": null}))),
        ("person:zoe.acme.example", with(added(), json!({"Roles": ["clerk"]}))),
        ("person:zoe.acme.example", with(added(), json!({"OtherNames": ["clerk"]}))),
        ("person:zoe.acme.example", with(added(), json!({"MailFile": "mail/bob"}))),
        ("person:zoe.acme.example", with(added(), json!({"ForwardTo": ["ada"]}))),
        ("person:zoe.acme.example", with(added(), json!({"Addresses": ["bob@beta.example"]}))),
        ("person:zoe.acme.example", with(added(), json!({"FullName": ["bob Someone"]}))),
        ("group:clerk", with(team(), json!({"ListName": "clerk"}))),
        ("group:team", team()),
        ("group:team/acme.example", with(team(), json!({"ListName": "clerk"}))),
        ("group:team/acme.example", with(team(), json!({"ListName": "*/acme.example"}))),
        ("group:team/acme.example", with(team(), json!({"ListName": "/acme.example"}))),
        ("group:team/acme.example", with(team(), json!({"Members": ["Beta"]}))),
        ("group:team/acme.example", with(team(), json!({"InternetAddress": null}))),
        ("domain:new.example", json!({"Administrators": ["ada"]})),
        (
            "mail-in:acme",
            json!({"Name": "Acme/acme.example", "Database": "mail/bob",
            "InternetAddress": "in@acme.example"}),
        ),
        ("note", json!({"Form": "Note"})),
    ]
}

const IDS: [&str; 12] = [
    "person:ada",
    "person:al",
    "person:eve",
    "person:root",
    "person:look",
    "person:bob",
    "person:carl",
    "group:beta",
    "group:acme",
    "group:plain",
    "domain:acme.example",
    "person:zoe.acme.example",
];

/// A reader is refused by the list before any document is looked at.
fn as_forbidden(error: DatabaseError) -> DatabaseError {
    match error {
        DatabaseError::Unauthorized { .. } | DatabaseError::Forbidden { .. } => {
            DatabaseError::Forbidden { reason: error.to_string() }
        }
        other => other,
    }
}

#[test]
fn a_list_that_names_a_domain_means_its_people_alone_and_at_once() {
    let place = Organisation::new();
    let list =
        AccessList::with_default(Level::NoAccess).with_group(&domain_members("Acme.Example"), Level::Author);
    let shared = place.databases.create("shared", &InitialAccess::List(list)).unwrap();
    let level = |name: &str| shared.access(&place.identity(name)).unwrap().level();
    let levels = |names: &[&str]| -> Vec<Level> { names.iter().map(|name| level(name)).collect() };
    assert_eq!(levels(&["ada", "al"]), [Level::Author; 2]);
    assert_eq!(levels(&["bob", "carl"]), [Level::NoAccess; 2]);
    // The default of the directory is for those of no domain with administrators of its own.
    let level_of = |name: &str| place.database.access(&place.identity(name)).unwrap().level();
    assert_eq!(["al", "bob", "carl"].map(level_of), [Level::NoAccess, Level::NoAccess, Level::Reader]);
    assert_eq!(place.database.access(&place.identity("ada")).unwrap().level(), Level::Editor);
    // Another main address, and a domain of which the directory says nothing any more.
    place.put(None, "person:bob", &person("bob", "acme.example")).unwrap();
    place
        .put(
            None,
            "person:al",
            &with(person("al", "beta.example"), json!({"Addresses": ["al@acme.example"]})),
        )
        .unwrap();
    assert_eq!(levels(&["bob", "al"]), [Level::Author, Level::NoAccess]);
    place.put(None, "domain:acme.example", &json!({"_deleted": true})).unwrap();
    assert_eq!(levels(&["ada", "bob"]), [Level::NoAccess; 2]);
    // Who administers nothing any more may nothing more.
    assert_eq!(place.database.access(&place.identity("ada")).unwrap().level(), Level::Reader);
    place.close();
}

#[test]
fn readers_follow_what_a_domain_says_also_after_a_stop_in_between() {
    let place = Organisation::new();
    let readers = |id: &str| place.present(id).unwrap()["Readers"].clone();
    let of_acme = json!(["*/acme.example", "*administrators/acme.example"]);
    let strict = json!(["ada"]);
    for number in 0..50 {
        let document = person(&format!("p{number}"), "acme.example");
        let document = if number == 7 { with(document, json!({"Readers": strict})) } else { document };
        place.put(None, &format!("person:p{number}"), &document).unwrap();
    }
    // What is written while the domain hides its people is hidden at once, the others when it is settled.
    assert_eq!((readers("person:p1"), readers("person:al")), (of_acme.clone(), Value::Null));
    assert!(place.directory.settle_readers(&|_, _| false).unwrap() <= 20, "it stops after the first piece");
    while place.directory.settle_readers(&|_, _| true).unwrap() > 0 {}
    for id in ["person:al", "person:eve", "group:acme"] {
        assert_eq!(readers(id), of_acme, "{id}");
    }
    for id in ["person:carl", "group:plain", "domain:acme.example"] {
        assert_eq!(readers(id), Value::Null, "{id}");
    }
    assert_eq!(readers("person:p7"), strict, "fewer may read it than the domain says");
    let is_shown = |name: &str, id: &str| {
        let access = place.database.access(&place.identity(name)).unwrap();
        place.database.read(id, &ReadOptions::default(), &access).is_ok()
    };
    assert!(is_shown("eve", "person:al") && is_shown("ada", "person:p1"));
    assert!(
        !is_shown("carl", "person:al") && !is_shown("carl", "group:acme") && is_shown("carl", "person:carl")
    );
    // It shows all, and the server stops in between: the next one goes on.
    let shows = json!({"Administrators": ["ada"], "OutsidersSee": "all"});
    place.put(None, "domain:acme.example", &shows).unwrap();
    place.directory.settle_readers(&|_, _| false).unwrap();
    let next = Directory::open(&place.databases).unwrap();
    while next.settle_readers(&|_, _| true).unwrap() > 0 {}
    let hidden = (0..50).filter(|number| readers(&format!("person:p{number}")) == of_acme).count();
    assert_eq!((hidden, readers("person:al"), readers("person:p7")), (0, Value::Null, strict));
    assert!(is_shown("carl", "person:al"));
    drop(next);
    place.close();
}

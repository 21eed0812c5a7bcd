//! Readers and authors: what somebody finds is what a filter over everything would leave.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use scrinium_database::{
    Access, AccessList, CONFINED, ChangesQuery, DatabaseError, EditMode, Freshness, Identity, Level,
    ReadOptions, Row, RowQuery, domain_members,
};
use scrinium_mango::Query;
use scrinium_store::{Direction, Family, KeyRange};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use crate::common::words::Words as _;
use crate::common::{SERVER, Seen, Server, all_rows, edit, put};

/// Somebody, with the groups of the directory and the roles of the list.
const PEOPLE: [(&str, &[&str], &[&str]); 5] = [
    ("ada", &[], &[]),
    ("bob", &["sales"], &[]),
    ("eve", &["sales", "staff"], &["[HR]"]),
    ("dan", &["staff"], &["[HR]", "[Board]"]),
    ("zoe", &[], &[]),
];

const NAMES: [&str; 8] = ["ada", "bob", "sales", "staff", "[HR]", "[Board]", "*", ""];

fn list() -> Value {
    json!({
        "default": {"level": "author"},
        "entries": [
            {"name": "eve", "level": "author", "roles": ["HR"]},
            {"name": "dan", "kind": "person", "level": "editor", "roles": ["HR", "[Board]"], "delete": false},
        ]
    })
}

/// Each level of a default, for each way to say whom it reaches, and everybody whom it may.
#[test]
fn a_default_reaches_people_of_domains_with_administrators_where_that_is_said() {
    let acme = domain_members("acme.example");
    let none = Vec::new();
    let (home, own) = (vec!["*/home.example".to_owned()], vec![acme, CONFINED.to_owned()]);
    let other = vec!["*/beta.example".to_owned(), CONFINED.to_owned(), "staff".to_owned()];
    let table: [(Option<&str>, [bool; 4]); 5] = [
        (None, [true, true, false, false]),
        (Some("*"), [true; 4]),
        (Some("Acme.Example"), [false, false, true, false]),
        (Some("beta.example"), [false, false, false, true]),
        (Some("home.example"), [false, true, false, false]),
    ];
    for level in Level::ALL {
        for (domain, reached) in &table {
            let mut json = json!({"default": {"level": level.text(), "roles": ["HR"]}});
            json["default"]
                .as_object_mut()
                .unwrap()
                .extend(domain.map(|name| ("domain".to_owned(), json!(name))));
            let list = AccessList::parse(&json).unwrap();
            assert_eq!(AccessList::parse(&list.to_json()).unwrap(), list);
            let people = [&none, &home, &own, &other].into_iter().zip(reached);
            for (groups, is_reached) in people {
                let is_reached = *is_reached || domain.is_none() && level == Level::Depositor;
                let grant = list.granted(Some("zoe"), groups);
                let expected = if is_reached { level } else { Level::NoAccess };
                assert_eq!(grant.level, expected, "{level:?} {domain:?} {groups:?}");
                assert_eq!(grant.roles.is_empty(), !is_reached, "{level:?} {domain:?} {groups:?}");
            }
            // Who is of a domain with administrators means their own, unless they say something else; others change nothing.
            let said = list.clone().said_by(&own);
            assert_eq!(said == list, domain.is_some());
            if domain.is_none() {
                let levels = [&own, &other, &home].map(|groups| said.level_of(Some("zoe"), groups));
                assert_eq!(levels, [level, Level::NoAccess, Level::NoAccess]);
            }
            assert_eq!(list.clone().said_by(&home), list);
        }
    }
    let wrong = json!({"anonymous": {"level": "reader", "domain": "*"}});
    assert!(AccessList::parse(&wrong).is_err(), "nobody who has no name is of a domain");
}

pub(crate) fn designs() -> [Value; 3] {
    [
        json!({"_id": "_design/f", "language": "formula", "views": {"all": {"columns": [
            {"title": "k", "formula": "k", "category": true},
            {"title": "n", "formula": "n", "sort": "desc"},
            {"title": "size", "formula": "n", "total": true},
        ]}}}),
        json!({"_id": "_design/j", "views": {"sums": {
            "map": "function (doc) { if (doc.k) { doc.k.forEach(function (k) { emit([k, doc.n], doc.n); }); } }",
            "reduce": "_sum",
        }}}),
        json!({"_id": "_design/m", "language": "query", "views": {"n": {
            "map": {"fields": {"n": "asc"}, "partial_filter_selector": {}},
            "reduce": "_count", "options": {"def": {"fields": ["n"]}},
        }}}),
    ]
}

#[derive(Clone, Debug)]
struct Memo {
    k: Vec<u8>,
    n: u8,
    readers: Vec<usize>,
    authors: Vec<usize>,
}

impl Memo {
    fn json(&self, id: &str) -> Value {
        let names = |of: &[usize]| of.iter().map(|name| NAMES[*name]).collect::<Vec<_>>();
        let mut json = json!({"_id": id, "k": self.k, "n": self.n});
        if !self.readers.is_empty() {
            json["Readers"] = match names(&self.readers).as_slice() {
                [one] => json!(one),
                several => json!(several),
            };
        }
        if !self.authors.is_empty() {
            json["Authors"] = json!(names(&self.authors));
        }
        json
    }

    /// The rule as a person would say it.
    fn is_readable_by(&self, own: &BTreeSet<&str>) -> bool {
        let named = |of: &[usize]| of.iter().any(|name| own.contains(NAMES[*name]));
        let is_open = self.readers.iter().all(|name| NAMES[*name].is_empty())
            || self.readers.iter().any(|name| NAMES[*name] == "*");
        is_open || named(&self.readers) || named(&self.authors)
    }
}

fn memo() -> impl Strategy<Value = Memo> {
    let names = || proptest::collection::vec(0..NAMES.len(), 0..3);
    (proptest::collection::vec(0..4u8, 1..3), 0..6u8, names(), names())
        .prop_map(|(k, n, readers, authors)| Memo { k, n, readers, authors })
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, Memo),
    Delete(u8),
    Rebuild,
    Read,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..20u8, memo()).prop_map(|(id, memo)| Step::Put(id, memo)),
        2 => (0..20u8).prop_map(Step::Delete),
        1 => Just(Step::Rebuild),
        2 => Just(Step::Read),
    ]
}

fn read(database: &Seen, design: &str, query: RowQuery) -> Vec<Row> {
    let view = if design == "f" { "all" } else { "sums" };
    all_rows(database.view(design, view, query).unwrap())
}

/// What the rows come to by the first element of their keys.
fn sums(rows: &[Row], value: impl Fn(&Row) -> f64) -> BTreeMap<String, (u64, f64)> {
    let mut sums: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    for row in rows {
        let key: Value = serde_json::from_str(&row.key).unwrap();
        let sum = sums.entry(key[0].to_string()).or_default();
        *sum = (sum.0 + 1, sum.1 + value(row));
    }
    sums
}

fn number(json: &str, pointer: &str) -> f64 {
    serde_json::from_str::<Value>(json).unwrap().pointer(pointer).unwrap().as_f64().unwrap()
}

fn check_view(database: &OpenDatabase, design: &str, access: &Access, may_read: &dyn Fn(&Row) -> bool) {
    let plain = |descending| RowQuery { descending, reduce: Some(false), ..RowQuery::default() };
    let own = Seen { database: database.clone(), access: access.clone() };
    let all = Seen::by_the_server(database);
    for descending in [false, true] {
        let expected: Vec<Row> = read(&all, design, plain(descending)).into_iter().filter(may_read).collect();
        assert_eq!(read(&own, design, plain(descending)), expected, "{design} {descending}");
        for (skip, limit) in [(1, 3), (expected.len() as u64 / 2, 2), (expected.len() as u64, 1)] {
            let query = RowQuery { skip, limit: Some(limit), ..plain(descending) };
            let some: Vec<Row> = expected.iter().skip(skip as usize).take(limit as usize).cloned().collect();
            let view = if design == "f" { "all" } else { "sums" };
            let rows = own.view(design, view, query).unwrap();
            let total = rows.total_rows.is_none_or(|total| total == expected.len() as u64);
            assert!(total, "{design}: {:?} of {} rows", rows.total_rows, expected.len());
            assert_eq!(all_rows(rows), some, "{design} {descending} {skip} {limit}");
        }
        if let Some(row) = expected.get(expected.len() / 2) {
            let at = RowQuery { at: row.id.clone(), ..plain(descending) };
            let from = read(&own, design, at);
            let first = expected.iter().position(|other| other.id == row.id).unwrap();
            assert_eq!(from, expected[first..].to_vec());
        }
    }
    let expected: Vec<Row> = read(&all, design, plain(false)).into_iter().filter(may_read).collect();
    let groups = read(&own, design, RowQuery { group_level: Some(1), ..RowQuery::default() });
    if design == "f" {
        let expected = sums(&expected, |row| number(row.value.as_ref().unwrap(), "/size"));
        let found = groups.iter().map(|row| {
            let key: Value = serde_json::from_str(&row.key).unwrap();
            let value = row.value.as_ref().unwrap();
            (key[0].to_string(), (number(value, "/count") as u64, number(value, "/totals/size")))
        });
        assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
    } else {
        let expected = sums(&expected, |row| number(row.value.as_ref().unwrap(), ""));
        let found = groups.iter().map(|row| {
            let key: Value = serde_json::from_str(&row.key).unwrap();
            (key[0].to_string(), number(row.value.as_ref().unwrap(), ""))
        });
        let expected: Vec<(String, f64)> = expected.into_iter().map(|(key, (_, sum))| (key, sum)).collect();
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}

fn check(database: &OpenDatabase, memos: &BTreeMap<String, Memo>) {
    for (name, groups, roles) in PEOPLE {
        let names: BTreeSet<&str> = [&[name], groups, roles].concat().into_iter().collect();
        let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        let access = database.access(&Identity::new(name, groups)).unwrap();
        let may_read = |id: &str| memos.get(id).is_some_and(|memo| memo.is_readable_by(&names));
        for design in ["f", "j"] {
            check_view(database, design, &access, &|row| may_read(row.id.as_ref().unwrap()));
        }
        let readable: Vec<&String> = memos.keys().filter(|id| may_read(id)).collect();
        let query = RowQuery { include_documents: true, ..RowQuery::default() };
        let listed =
            all_rows(database.all_documents(query, &access).unwrap()).into_iter().filter_map(|row| row.id);
        let listed: Vec<String> = listed.filter(|id| !id.starts_with('_')).collect();
        assert_eq!(listed.iter().collect::<Vec<_>>(), readable, "{name}");
        for selector in [json!({"n": {"$gte": 2}}), json!({"k": {"$size": 1}})] {
            let query = Query::parse(&json!({"selector": selector, "limit": 1000})).unwrap();
            let mut find = database.find(&query, &access).unwrap();
            let mut found = BTreeSet::new();
            while !find.is_at_end() {
                for document in find.next(10, 100).unwrap() {
                    let document: Value = serde_json::from_str(&document).unwrap();
                    found.insert(document["_id"].as_str().unwrap().to_owned());
                }
            }
            let matches =
                |memo: &Memo| if selector.get("n").is_some() { memo.n >= 2 } else { memo.k.len() == 1 };
            let expected: BTreeSet<String> =
                readable.iter().filter(|id| matches(&memos[**id])).map(|id| (*id).clone()).collect();
            assert_eq!(found, expected, "{name} {selector}");
        }
        let query = ChangesQuery { include_documents: true, ..ChangesQuery::default() };
        let mut changes = database.changes(query, &access).unwrap();
        let mut changed = BTreeSet::new();
        while !changes.is_at_end() {
            let alive = changes.next_changes(100).unwrap().into_iter().filter(|change| !change.deleted);
            changed.extend(alive.map(|change| change.id).filter(|id| !id.starts_with('_')));
        }
        assert_eq!(changed.iter().collect::<Vec<_>>(), readable, "{name}");
        for id in memos.keys() {
            match database.read(id, &ReadOptions::default(), &access) {
                Ok(_) => assert!(may_read(id), "{name} {id}"),
                // What may not be read is as if it were not there.
                Err(DatabaseError::NotFound { .. }) => assert!(!may_read(id), "{name} {id}"),
                Err(other) => panic!("{other}"),
            }
        }
    }
}

fn store(database: &OpenDatabase, json: &Value) {
    let id = json["_id"].as_str().unwrap();
    let mut json = json.clone();
    if let Ok(document) = database.read(id, &ReadOptions::default(), &SERVER) {
        json["_rev"] = document.revision.into();
    }
    put(database, &json).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::with_cases(scrinium_fault::cases(24)) })]

    #[test]
    fn everybody_finds_what_they_may_read(steps in proptest::collection::vec(step(), 1..60)) {
        let server = Server::new();
        let database = server.databases.create("memos", &scrinium_database::InitialAccess::Everybody).unwrap();
        database.set_access_list(Some(AccessList::parse(&list()).unwrap())).unwrap();
        designs().iter().for_each(|design| store(&database, design));
        let mut memos = BTreeMap::new();
        for step in steps {
            match step {
                Step::Put(id, memo) => {
                    let id = format!("m{id}");
                    store(&database, &memo.json(&id));
                    memos.insert(id, memo);
                }
                Step::Delete(id) => {
                    let id = format!("m{id}");
                    if memos.remove(&id).is_some() {
                        let revision = database.read(&id, &ReadOptions::default(), &SERVER).unwrap().revision;
                        put(&database, &json!({"_id": id, "_rev": revision, "_deleted": true})).unwrap();
                    }
                }
                Step::Rebuild => drop(database.update_all_views(None, true).unwrap()),
                Step::Read => {
                    let query = RowQuery { freshness: Freshness::UpToDate, ..RowQuery::default() };
                    drop(database.view("f", "all", query, &SERVER).unwrap());
                }
            }
        }
        check(&database, &memos);
        database.update_all_views(None, true).unwrap();
        check(&database, &memos);
    }
}

/// Stores a document as somebody.
pub(crate) fn store_as(
    database: &OpenDatabase,
    name: &str,
    groups: &[&str],
    json: &Value,
) -> Result<String, DatabaseError> {
    let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
    let access = database.access(&Identity::new(name, groups)).unwrap();
    let updated = database
        .update(vec![edit(json)], EditMode::Interactive, &access)
        .unwrap()
        .wait()
        .unwrap()
        .remove(0)?;
    Ok(updated.revision)
}

#[test]
fn levels_say_who_may_write_what() {
    let server = Server::new();
    let database = server.databases.create("memos", &scrinium_database::InitialAccess::Everybody).unwrap();
    let list = json!({
        "default": {"level": "reader"},
        "entries": [
            {"name": "post", "level": "depositor"},
            {"name": "ada", "level": "author"},
            {"name": "mute", "level": "author", "create": false},
            {"name": "editors", "kind": "group", "level": "editor", "delete": false},
            {"name": "editors", "kind": "person", "level": "reader"},
            {"name": "dora", "level": "designer"},
        ]
    });
    database.set_access_list(Some(AccessList::parse(&list).unwrap())).unwrap();
    let store = |name: &str, groups: &[&str], json: Value| store_as(&database, name, groups, &json);
    let refused = |result: Result<String, DatabaseError>| {
        assert!(matches!(result, Err(DatabaseError::Forbidden { .. })), "{result:?}");
    };
    let first = store("post", &[], json!({"_id": "a", "Authors": ["ada"]})).unwrap();
    refused(store("post", &[], json!({"_id": "a", "_rev": first, "x": 1})));
    refused(store("rita", &[], json!({"_id": "b"})));
    refused(store("mute", &[], json!({"_id": "b"})));
    refused(store("editors", &[], json!({"_id": "b"})));
    let second = store("ada", &[], json!({"_id": "a", "_rev": first, "Authors": ["mute"]})).unwrap();
    refused(store("ada", &[], json!({"_id": "a", "_rev": second, "x": 1})));
    let third = store("mute", &[], json!({"_id": "a", "_rev": second})).unwrap();
    let fourth = store("eric", &["editors"], json!({"_id": "a", "_rev": third, "Readers": "dora"})).unwrap();
    // One who may edit everything does not edit what they may not read, and does not learn whether it is there.
    let hidden = store("eric", &["editors"], json!({"_id": "a", "_rev": fourth}));
    assert!(matches!(hidden, Err(DatabaseError::Conflict)), "{hidden:?}");
    refused(store("eric", &["editors"], json!({"_id": "_design/x"})));
    let fifth = store("dora", &[], json!({"_id": "a", "_rev": fourth})).unwrap();
    refused(store("eric", &["editors"], json!({"_id": "a", "_rev": fifth, "_deleted": true})));
    store("dora", &[], json!({"_id": "_design/x"})).unwrap();
    store("dora", &[], json!({"_id": "a", "_rev": fifth, "_deleted": true})).unwrap();
    // A tombstone is nobody's: anyone who may make a document may make this one.
    store("ada", &[], json!({"_id": "a"})).unwrap();
    let anonymous = database.access(&Identity::anonymous()).unwrap();
    assert_eq!(anonymous.level(), Level::NoAccess);
}

#[test]
fn a_replicated_revision_does_not_win_over_what_its_sender_may_not_edit() {
    let server = Server::new();
    let database = server.databases.create("memos", &scrinium_database::InitialAccess::Everybody).unwrap();
    let list = json!({"default": {"level": "author"}});
    database.set_access_list(Some(AccessList::parse(&list).unwrap())).unwrap();
    store_as(&database, "ada", &[], &json!({"_id": "a", "Authors": "ada"})).unwrap();
    let forged = json!({"_id": "a", "_rev": "9-ffffffffffffffffffffffffffffffff"});
    let send = |name: &str| {
        let access = database.access(&Identity::new(name, Vec::new())).unwrap();
        database.update(vec![edit(&forged)], EditMode::Replicated, &access).unwrap().wait().unwrap().remove(0)
    };
    assert!(matches!(send("eve"), Err(DatabaseError::Forbidden { .. })));
    send("ada").unwrap();
}

/// Somebody may be in more groups than are known, and one of these may be kept out.
#[test]
fn who_is_in_more_groups_than_are_known_is_given_nothing_by_default() {
    let server = Server::quick();
    let database = server.databases.create("memos", &scrinium_database::InitialAccess::Everybody).unwrap();
    let list = json!({"default": {"level": "editor"}, "entries": [
        {"name": "lepers", "kind": "group", "level": "no_access"}, {"name": "bob", "level": "reader"}]});
    database.set_access_list(Some(AccessList::parse(&list).unwrap())).unwrap();
    let level = |name: &str, groups: usize| {
        let groups: Vec<String> = (0..groups).map(|number| format!("g{number}")).collect();
        database.access(&Identity::with_groups(name, &[], &groups)).unwrap().level()
    };
    let most = scrinium_database::GROUPS_MAX;
    assert_eq!((level("ada", most - 1), level("ada", most)), (Level::Editor, Level::NoAccess));
    assert_eq!(level("bob", most), Level::Reader);
}

#[test]
fn lists_are_kept_and_refused_with_reasons() {
    let server = Server::new();
    let database = server.databases.create("memos", &scrinium_database::InitialAccess::Everybody).unwrap();
    assert!(database.access_list().unwrap().is_none());
    database.set_access_list(Some(AccessList::parse(&list()).unwrap())).unwrap();
    let json = database.access_list().unwrap().unwrap().to_json();
    assert_eq!(json["entries"][1]["roles"], json!(["HR", "Board"]));
    assert_eq!(AccessList::parse(&json).unwrap(), *database.access_list().unwrap().unwrap());
    for (wrong, said) in [
        (json!([]), "must be a JSON object"),
        (json!({"defaults": {}}), "`defaults` is unknown"),
        (json!({"default": {"level": "boss"}}), "`level` of `default` must be one of no_access, depositor"),
        (json!({"entries": [{"level": "reader"}]}), "needs a `name`"),
        (json!({"entries": [{"name": "a", "level": "reader", "kind": "server"}]}), "`kind` of `a`"),
        (json!({"entries": [{"name": "a", "level": "reader", "delete": 1}]}), "`delete` of `a`"),
        (
            json!({"entries": [{"name": "a", "level": "reader"}, {"name": "a", "level": "author"}]}),
            "Two entries",
        ),
        (json!({"entries": [{"name": "a", "level": "reader", "roles": ["a]b"]}]}), "`roles` of `a`"),
    ] {
        let error = AccessList::parse(&wrong).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    database.set_access_list(None).unwrap();
    assert!(database.access_list().unwrap().is_none());
}

/// As many names as a document may have, and more, in such number that its entries would be without bound: those read it, nobody else
/// does, and it takes no more entries than a document may have. More names are refused, and hide what has them already.
#[test]
fn a_document_with_thousands_of_readers_is_bounded() {
    let server = Server::new();
    let database = server.databases.create("crowd", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&database, &designs()[0]).unwrap();
    let more: Vec<String> = (0..1001).map(|number| format!("person {number}")).collect();
    let blank: Vec<&str> = std::iter::repeat_n("", 1000).chain(["ada"]).collect();
    put(&database, &json!({"_id": "more", "k": "one", "n": 1, "Readers": more})).unwrap();
    put(&database, &json!({"_id": "blank", "k": "one", "n": 1, "Readers": blank})).unwrap();
    database.set_access_list(Some(AccessList::parse(&list()).unwrap())).unwrap();
    for readers in [json!(more), json!(blank)] {
        let refused = put(&database, &json!({"_id": "new", "Readers": readers})).unwrap_err();
        assert_eq!(refused.status(), 400, "{refused}");
    }
    for name in ["person 0", "person 1000", "ada", "zoe"] {
        let access = database.access(&Identity::new(name, Vec::new())).unwrap();
        for id in ["more", "blank"] {
            let read = database.read(id, &ReadOptions::default(), &access);
            assert!(matches!(read, Err(DatabaseError::NotFound { .. })), "{name} {id}");
        }
    }
    for id in ["more", "blank"] {
        let revision = crate::common::get(&database, id).unwrap()["_rev"].clone();
        put(&database, &json!({"_id": id, "_rev": revision, "_deleted": true})).unwrap();
    }
    let names = &more[..1000];
    put(&database, &json!({"_id": "few", "k": "one", "n": 1, "Readers": names})).unwrap();
    let categories: Vec<u32> = (0..900).collect();
    put(&database, &json!({"_id": "many", "k": categories, "n": 1, "Readers": names})).unwrap();
    let seen = |name: &str| {
        let access = database.access(&Identity::new(name, Vec::new())).unwrap();
        let row = |id: &str| database.read(id, &ReadOptions::default(), &access).is_ok();
        (
            row("few"),
            all_rows(database.view("f", "all", RowQuery::default(), &access).unwrap())
                .iter()
                .filter(|row| row.id.as_deref() == Some("few"))
                .count(),
        )
    };
    assert_eq!((seen("person 0"), seen("person 999")), ((true, 1), (true, 1)));
    assert_eq!((seen("person 1000"), seen("ada")), ((false, 0), (false, 0)));
    let info = database.view_info("f", &SERVER).unwrap();
    let all = all_rows(database.view("f", "all", RowQuery::default(), &SERVER).unwrap()).len();
    assert_eq!((all, &info["view_index"]["entries"]), (901, &json!(901)));
    let snapshot = server.store.as_ref().unwrap().snapshot();
    let mut cursor = snapshot.cursor(Family::DerivedScan, KeyRange::ALL, Direction::Forward);
    let entries = std::iter::from_fn(|| cursor.next().unwrap().map(|_| ())).count();
    assert!((1001 + 900..1001 + 20_000).contains(&entries), "{entries}");
    let old = crate::common::get(&database, "many").unwrap();
    put(&database, &json!({"_id": "many", "_rev": old["_rev"], "_deleted": true})).unwrap();
    assert_eq!(all_rows(database.view("f", "all", RowQuery::default(), &SERVER).unwrap()).len(), 1);
}

//! Who may send to a group, where mail is passed on to, and what becomes of mail for an address that nobody has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use scrinium_directory::{Found, NameIndex};
use scrinium_mail::{Resolver, Writer};
use serde_json::{Map, Value, json};

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("not an object: {other}"),
    }
}

/// A directory of these documents, next to Ada, Bob, Eve and Root, who administers the server.
fn resolver(documents: &[(&str, Value)]) -> Resolver {
    let index = NameIndex::new();
    let add = |id: &str, document: &Value| drop(index.apply(id, Some(&fields(document.clone()))));
    for name in ["ada", "bob", "eve", "root"] {
        let roles = if name == "root" { json!(["_admin"]) } else { json!([]) };
        add(
            &format!("person:{name}"),
            &json!({"Form": "Person", "ShortName": name, "FullName": name, "Roles": roles,
                "InternetAddress": format!("{name}@acme.example"), "Addresses": [format!("{name}.2@acme.example")]}),
        );
    }
    for (id, document) in documents {
        add(id, document);
    }
    Resolver::new(Arc::new(index), &["home.example".to_owned()]).reaching_outside()
}

fn person(resolver: &Resolver, name: &str) -> Writer {
    match resolver.find(name) {
        Found::Person(person) => Writer::Person(person),
        other => panic!("{name}: {other:?}"),
    }
}

fn stranger(address: &str) -> Writer {
    Writer::Stranger(Some(address.to_owned()))
}

/// Who gets what `writer` sends to `written`: short names, addresses elsewhere, and failures.
fn reached(resolver: &Resolver, written: &[&str], writer: &Writer) -> Vec<String> {
    let written: Vec<String> = written.iter().map(|text| (*text).to_owned()).collect();
    let expansion = resolver.expand(&written, writer);
    let people = expansion.people.iter().map(|person| person.short_name.clone());
    let outside = expansion.outside.iter().map(|recipient| recipient.address.to_string());
    people.chain(outside).chain(expansion.failures.iter().map(ToString::to_string)).collect()
}

#[test]
fn a_group_takes_mail_of_those_who_may_send_to_it() {
    let group = |name: &str, may_write: Value, writers: Value| {
        json!({"Form": "Group", "ListName": name, "Members": ["ada", "Inner"], "Owners": ["bob"],
            "InternetAddress": format!("{name}@acme.example"), "MayWrite": may_write, "Writers": writers})
    };
    let resolver = resolver(&[
        (
            "group:inner",
            json!({"Form": "Group", "ListName": "Inner", "Members": ["bob"], "MayWrite": "listed"}),
        ),
        ("group:usual", group("usual", Value::Null, Value::Null)),
        ("group:open", group("open", json!("everybody"), Value::Null)),
        ("group:members", group("members", json!("members"), Value::Null)),
        ("group:listed", group("listed", json!("listed"), Value::Null)),
        ("group:few", group("few", json!("listed"), json!(["Inner", "eve", "friend@far.example"]))),
    ]);
    let writers = [
        ("the server", Writer::Server, "usual open members listed few"),
        ("an administrator", person(&resolver, "root"), "usual open members listed few"),
        ("a member", person(&resolver, "ada"), "usual open members"),
        (
            "an owner, and a member of a group within it",
            person(&resolver, "bob"),
            "usual open members listed few",
        ),
        ("somebody named", person(&resolver, "eve"), "usual open few"),
        ("a stranger", stranger("stranger@far.example"), "open"),
        ("a stranger who is named", stranger("Friend@far.example"), "open few"),
        ("a stranger who says to be a member", stranger("ada@acme.example"), "open"),
        ("a stranger who says to be somebody named", stranger("eve@acme.example"), "open"),
        ("a stranger without an address", Writer::Stranger(None), "open"),
    ];
    for (who, writer, may) in writers {
        let may: BTreeSet<&str> = may.split(' ').collect();
        for name in ["usual", "open", "members", "listed", "few"] {
            for written in [name.to_owned(), format!("{name}@acme.example"), format!("{name}+x@acme.example")]
            {
                let expected = if may.contains(name) {
                    vec!["ada".to_owned(), "bob".to_owned()]
                } else {
                    vec![format!("{written}: you may not send to this group; ask one of its owners")]
                };
                assert_eq!(reached(&resolver, &[&written], &writer), expected, "{who} to {written}");
            }
        }
    }
}

#[test]
fn mail_is_passed_on_and_never_lost_on_the_way() {
    let with = |name: &str, to: Value, only: bool| {
        let document = json!({"Form": "Person", "ShortName": name, "FullName": name, "ForwardTo": to, "ForwardOnly": only,
            "InternetAddress": format!("{name}@acme.example")});
        (format!("person:{name}"), document)
    };
    let documents = [
        with("ada", json!(["bob", "friend@far.example"]), false),
        with("copy", json!("ada"), true),
        with("one", json!("other"), true),
        with("other", json!(["one"]), true),
        with("self", json!("self@acme.example"), true),
        with("lost", json!(["nobody@acme.example", "no such name"]), true),
        with("grouped", json!("Group"), true),
        with("closed", json!("Shut"), true),
        with("empty", json!("Void"), true),
    ];
    let documents: Vec<(&str, Value)> =
        documents.iter().map(|(id, document)| (id.as_str(), document.clone())).collect();
    let groups = [
        (
            "group:1",
            json!({"Form": "Group", "ListName": "Group", "Members": ["grouped", "eve"], "MayWrite": "everybody"}),
        ),
        ("group:2", json!({"Form": "Group", "ListName": "Shut", "Members": ["eve"]})),
        ("group:3", json!({"Form": "Group", "ListName": "Void", "Members": []})),
        ("domain:acme.example", json!({"Form": "Domain"})),
    ];
    let resolver = resolver(&[documents.as_slice(), groups.as_slice()].concat());
    let stranger = stranger("stranger@far.example");
    for (to, expected) in [
        (&["ada"][..], "ada bob friend@far.example"),
        (&["bob", "ada"], "bob ada friend@far.example"),
        (&["copy"], "ada bob friend@far.example"),
        (&["one"], "one"),
        (&["other", "one"], "other"),
        (&["self"], "self"),
        (&["lost"], "lost"),
        (&["grouped"], "grouped eve"),
        (&["Group"], "grouped eve"),
        (&["closed"], "closed"),
        (&["empty"], "empty"),
    ] {
        assert_eq!(reached(&resolver, to, &stranger).join(" "), expected, "to {to:?}");
    }
}

#[test]
fn what_nobody_has_goes_to_whom_the_domain_names() {
    let resolver = resolver(&[
        ("domain:acme.example", json!({"Form": "Domain", "CatchAll": "eve"})),
        ("domain:bare.example", json!({"Form": "Domain"})),
        ("domain:team.example", json!({"Form": "Domain", "CatchAll": "Team"})),
        ("group:team", json!({"Form": "Group", "ListName": "Team", "Members": ["ada"]})),
    ]);
    let stranger = stranger("stranger@far.example");
    for (to, expected) in [
        ("ada@acme.example", "ada"),
        ("ADA.2+x@Acme.example", "ada"),
        ("anything@ACME.example", "eve"),
        ("any+thing@acme.example", "eve"),
        ("ada@bare.example", "ada@bare.example: nobody in the directory has this name or address"),
        ("x@team.example", "x@team.example: you may not send to this group; ask one of its owners"),
        ("x@far.example", "x@far.example"),
    ] {
        assert_eq!(reached(&resolver, &[to], &stranger), [expected], "{to}");
    }
    assert_eq!(resolver.find("anything@acme.example"), Found::Nobody, "nobody sends as what they catch");
    assert!(resolver.is_local("Bare.example") && !resolver.is_local("far.example"));
}

proptest! {
    /// People p0..p5 who pass mail on to each other and to groups g0..g5 of such people and groups: whatever they say, mail to a person
    /// reaches somebody, nobody twice, and none but those whom it leads to.
    #[test]
    fn mail_to_a_person_reaches_somebody(
        forwards in prop::collection::vec((any::<bool>(), prop::collection::vec((any::<bool>(), 0..7_usize), 0..3)), 6),
        members in prop::collection::vec(prop::collection::vec((any::<bool>(), 0..7_usize), 0..3), 6),
        start in prop::collection::vec((any::<bool>(), 0..6_usize), 1..4),
    ) {
        let name = |(is_group, number): &(bool, usize)| format!("{}{number}", if *is_group { 'g' } else { 'p' });
        let names = |list: &Vec<(bool, usize)>| list.iter().map(name).collect::<Vec<String>>();
        let index = NameIndex::new();
        let mut leads: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (number, (only, to)) in forwards.iter().enumerate() {
            let person = json!({"Form": "Person", "ShortName": format!("p{number}"), "FullName": ["same"],
                "ForwardTo": names(to), "ForwardOnly": only});
            index.apply(&format!("person:{number}"), Some(&fields(person)));
            leads.insert(format!("p{number}"), names(to));
        }
        for (number, members) in members.iter().enumerate() {
            let group = json!({"Form": "Group", "ListName": format!("g{number}"), "Members": names(members)});
            index.apply(&format!("group:{number}"), Some(&fields(group)));
            leads.insert(format!("g{number}"), names(members));
        }
        let resolver = Resolver::new(Arc::new(index), &[]);
        for start in start.iter().map(name) {
            let mut all: BTreeSet<String> = BTreeSet::from([start.clone()]);
            loop {
                let more: BTreeSet<String> = all.iter().filter_map(|name| leads.get(name)).flatten().cloned().collect();
                let before = all.len();
                all.extend(more);
                if all.len() == before { break }
            }
            let expansion = resolver.expand(std::slice::from_ref(&start), &Writer::Server);
            let people: Vec<String> = expansion.people.iter().map(|person| person.short_name.clone()).collect();
            let once: BTreeSet<String> = people.iter().cloned().collect();
            prop_assert_eq!(once.len(), people.len(), "nobody twice: {:?}", people);
            prop_assert!(once.is_subset(&all), "{:?} of {:?}", once, all);
            if start.starts_with('p') {
                prop_assert!(!people.is_empty(), "mail to {} is lost", start);
                prop_assert!(expansion.failures.is_empty(), "{:?}", expansion.failures);
            }
            // Those who keep a copy get it.
            for (number, (only, _)) in forwards.iter().enumerate() {
                let name = format!("p{number}");
                if name == start && !only {
                    prop_assert!(once.contains(&name), "{} keeps a copy", name);
                }
            }
        }
    }
}

#[test]
fn who_is_put_into_a_domain_by_its_own_administrators_takes_no_address_of_another() {
    let documents = [
        ("domain:far.example", json!({"Form": "Domain", "Administrators": ["ada"]})),
        (
            "person:boss",
            json!({"Form": "Person", "ShortName": "chief.far.example", "FullName": ["Boss", "Chief"],
                "InternetAddress": "boss@far.example"}),
        ),
    ];
    let found = resolver(&documents);
    for taken in ["boss@home.example", "chief@home.example", "chief.far.example+x@home.example"] {
        assert_eq!(found.recipient(taken), Found::Nobody, "{taken}");
    }
    assert!(matches!(found.recipient("boss@far.example"), Found::Person(_)));
    assert!(matches!(found.recipient("ada@home.example"), Found::Person(_)));
    // Of a domain that administrators of the server alone fill, people have their short names everywhere.
    let mut plain = documents;
    plain[0].1 = json!({"Form": "Domain"});
    assert!(matches!(resolver(&plain).recipient("boss@home.example"), Found::Person(_)));
}

//! Finding people and groups by name, against a naive search through all documents.

use std::collections::BTreeMap;

use proptest::prelude::*;
use scrinium_directory::{Found, NameIndex, NameLookup};
use serde_json::{Map, Value, json};

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("not an object: {other}"),
    }
}

#[test]
fn every_form_of_a_name_finds_the_person() {
    let index = NameIndex::new();
    let ada = json!({"Form": "Person", "FullName": ["CN=Ada Lovelace/OU=Engines/O=Acme", "Countess"],
                     "ShortName": "ada", "InternetAddress": "Ada.L@Acme.example"});
    index.apply("person:ada", Some(&fields(ada)));
    for name in [
        "ada",
        " ADA ",
        "ada  lovelace",
        "Ada Lovelace/Engines/Acme",
        "cn=ada lovelace/ou=engines/o=acme",
        "countess",
        "ada.l@acme.EXAMPLE",
    ] {
        assert!(matches!(index.find(name), Found::Person(_)), "{name:?}");
    }
    for name in ["", "lovelace", "ada@acme.example", "Ada Lovelace/Acme"] {
        assert_eq!(index.find(name), Found::Nobody, "{name:?}");
    }
    assert!(!index.has_administrator());
}

/// A few names, so that they collide.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("ada"), Just("bob"), Just("Ada Lovelace"), Just("all"), Just("x@y")]
        .prop_map(str::to_owned)
}

fn document() -> impl Strategy<Value = Option<Map<String, Value>>> {
    let person = (name(), name(), any::<bool>()).prop_map(|(full, short, admin)| {
        let short = short.replace([' ', '@'], "-");
        let roles: &[&str] = if admin { &["_admin"] } else { &[] };
        Some(fields(json!({"Form": "Person", "FullName": [full], "ShortName": short, "Roles": roles})))
    });
    let group =
        name().prop_map(|name| Some(fields(json!({"Form": "Group", "ListName": name, "Members": []}))));
    let other = Just(Some(fields(json!({"Form": "Memo"}))));
    prop_oneof![4 => person, 2 => group, 1 => other, 2 => Just(None)]
}

fn naive_names(document: &Map<String, Value>) -> Vec<String> {
    let mut names = Vec::new();
    for field in ["ShortName", "ListName"] {
        names.extend(document.get(field).and_then(Value::as_str).map(str::to_lowercase));
    }
    names.extend(document.get("FullName").and_then(|list| list[0].as_str()).map(str::to_lowercase));
    names
}

proptest! {
    #[test]
    fn the_index_agrees_with_a_search(changes in prop::collection::vec((0..6_u8, document()), 0..60)) {
        let index = NameIndex::new();
        let mut documents: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        for (number, document) in changes {
            let id = format!("person:{number}");
            index.apply(&id, document.as_ref());
            match document {
                Some(document) => drop(documents.insert(id, document)),
                None => drop(documents.remove(&id)),
            }
        }
        for name in ["ada", "bob", "Ada Lovelace", "ada-lovelace", "all", "x@y", "x-y"] {
            let holders: Vec<&String> = documents.iter()
                .filter(|(_, document)| naive_names(document).contains(&name.to_lowercase()))
                .map(|(id, _)| id).collect();
            let found = match index.find(name) {
                Found::Nobody => vec![],
                Found::Person(person) => vec![person.id.clone()],
                Found::Group(group) => vec![group.id.clone()],
                Found::MailIn(mail_in) => vec![mail_in.id.clone()],
                Found::Several => { prop_assert!(holders.len() > 1); continue }
            };
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), holders, "{}", name);
        }
        for typed in ["a", "AD", "ada lov", "lovelace", "b", "all", "x", "y", "ada ada b", ""] {
            let words = |text: &str| -> Vec<String> {
                let words = text.split(|letter: char| !letter.is_alphanumeric());
                words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
            };
            let typed_words = words(typed);
            let is_meant = |document: &Map<String, Value>| {
                let own: Vec<String> = naive_names(document).iter()
                    .flat_map(|name| words(name.split('@').next().unwrap())).collect();
                !typed_words.is_empty() && typed_words.iter().all(|typed| own.iter().any(|own| own.starts_with(typed.as_str())))
            };
            let mut meant: Vec<&String> =
                documents.iter().filter(|(_, document)| is_meant(document)).map(|(id, _)| id).collect();
            let found = index.called_like(typed, 50);
            let mut ids: Vec<String> = found.iter().map(|found| match found {
                Found::Person(person) => person.id.clone(),
                Found::Group(group) => group.id.clone(),
                other => panic!("{other:?}"),
            }).collect();
            // Who is called exactly so comes first.
            if let Found::Person(person) = index.find(typed) {
                prop_assert_eq!(ids.first(), Some(&person.id), "{}", typed);
            }
            ids.sort();
            meant.sort();
            prop_assert_eq!(ids.iter().collect::<Vec<_>>(), meant, "{}", typed);
            prop_assert!(index.called_like(typed, 1).len() <= 1);
        }
        let administrators = documents.values().any(|d| d.get("Roles") == Some(&json!(["_admin"])));
        prop_assert_eq!(index.has_administrator(), administrators);
    }
}

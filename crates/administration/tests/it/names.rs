//! After a request no database names the old name, and everything else is as it was.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use scrinium_administration::{NOBODY, NewRequest, RequestKind, RequestState};
use scrinium_directory::{DIRECTORY_DATABASE, Found, NameLookup, fold_name};
use serde_json::{Value, json};

use crate::common::{Server, World, world};

/// What a field of names becomes, by a naive reading of what was asked for.
fn expected(value: &Value, old: &[&str], new: Option<&str>, closes: bool) -> Value {
    let is_old = |name: &str| old.iter().any(|old| fold_name(old) == fold_name(name));
    match value {
        Value::String(name) if is_old(name) => json!(new.unwrap_or(if closes { NOBODY } else { "" })),
        Value::Array(names) if names.iter().any(|name| is_old(name.as_str().unwrap())) => {
            let mut after: Vec<Value> = Vec::new();
            for name in names {
                if !is_old(name.as_str().unwrap()) {
                    after.push(name.clone());
                } else if let Some(new) = new.map(|new| json!(new)).filter(|new| !after.contains(new)) {
                    after.push(new);
                }
            }
            if after.is_empty() && closes {
                after.push(json!(NOBODY));
            }
            json!(after)
        }
        other => other.clone(),
    }
}

fn check_documents(server: &Server, name: &str, world: &World, (old, new): (&[&str], Option<&str>)) {
    let documents = server.documents(name);
    let database = server.database(name);
    assert_eq!(documents.len(), world.documents.len());
    for (id, (document, readers)) in &world.documents {
        let mut after = document.clone();
        after["_id"] = json!(id);
        for field in ["Readers", "Authors"] {
            if let Some(value) = document.get(field) {
                after[field] = expected(value, old, new, field == "Readers");
            }
        }
        assert_eq!(documents[id], after, "{name} {id}");
        for person in ["bob", "eve"] {
            assert_eq!(database.is_read(person, id).unwrap(), readers.contains(&person), "{person} {id}");
        }
        assert!(!database.is_read("ada", id).unwrap());
        assert_eq!(
            new.is_some_and(|new| database.is_read(new, id).unwrap()),
            new.is_some() && readers.contains(&"ada")
        );
    }
    let total = |person: &str| world.documents.len() as u64 - database.unread(person).unwrap().database;
    let read = |person: &str| {
        world.documents.values().filter(|(_, readers)| readers.contains(&person)).count() as u64
    };
    assert_eq!((total("ada"), total("bob")), (0, read("bob")));
    assert_eq!(total("adele"), if new.is_some() { read("ada") } else { 0 });
}

fn check_access(server: &Server, name: &str, world: &World, new: Option<&str>) {
    let database = server.database(name);
    let closed = Some(scrinium_database::Level::NoAccess);
    if let Some(list) = &world.list {
        let before = |person: &str| {
            let entry = list["entries"].as_array().unwrap().iter().find(|entry| entry["name"] == person);
            entry.map_or("no_access", |entry| entry["level"].as_str().unwrap()).to_owned()
        };
        let level = |person: &str| server.level(name, person, &[]).map(|level| level.text().to_owned());
        assert_eq!(level("bob"), Some(before("bob")));
        assert_eq!(server.level(name, "ada", &[]), closed);
        assert_eq!(level("adele"), Some(if new.is_some() { before("ada") } else { "no_access".to_owned() }));
    }
    let before = world.security["members"]["names"].as_array().unwrap();
    let after = database.security().unwrap();
    let after = after["members"]["names"].as_array().unwrap();
    assert!(!after.contains(&json!("ada")));
    assert_eq!(before.is_empty(), after.is_empty(), "what was closed is open, or the other way round");
    assert_eq!(before.contains(&json!("bob")), after.contains(&json!("bob")));
}

#[test]
fn nothing_names_the_old_name_and_everything_else_is_as_it_was() {
    let config = Config { cases: scrinium_fault::cases(12), failure_persistence: None, ..Config::default() };
    let worlds = (prop::collection::vec(world(20), 3), any::<bool>());
    TestRunner::new(config)
        .run(&worlds, |(worlds, removes)| {
            let folder = scrinium_fault::quick_folder();
            let server = Server::open(folder.path());
            server.people();
            for (number, world) in worlds.iter().enumerate() {
                server.fill(&format!("db{number}"), world);
            }
            let kind = if removes { RequestKind::RemovePerson } else { RequestKind::RenamePerson };
            let mut new = NewRequest::new(kind, "Ada Lovelace/Acme", "admin");
            new.new_name = Some("adele".to_owned());
            new.new_full_names = vec!["Adele King/Acme".to_owned()];
            let request = server.requests.order(&new).unwrap();
            server.requests.carry_out_all().unwrap();
            let done = server.requests.list().unwrap().pop().unwrap();
            assert_eq!((done.id, done.state), (request.id, RequestState::Done));
            let to = (!removes).then_some("adele");
            for (number, world) in worlds.iter().enumerate() {
                let name = format!("db{number}");
                // A field may have the full name, which becomes the new one.
                let full = (!removes).then_some("Adele King/Acme");
                let world_of_full = with_full_name(world, full);
                check_documents(&server, &name, &world_of_full, (&["ada"], to));
                check_access(&server, &name, world, to);
            }
            check_directory(&server, removes);
            server.store.close().unwrap();
            Ok(())
        })
        .unwrap();
}

/// The world with the full name changed already, so that the short one is left to be checked.
fn with_full_name(world: &World, full: Option<&str>) -> World {
    let mut world = world.clone();
    for (document, _) in world.documents.values_mut() {
        for field in ["Readers", "Authors"] {
            if let Some(value) = document.get(field) {
                // One removal of all names: the last of them leaves nobody.
                document[field] = match full {
                    Some(_) => expected(value, &["Ada Lovelace/Acme"], full, field == "Readers"),
                    None => rename_all(value),
                };
            }
        }
    }
    world
}

fn rename_all(value: &Value) -> Value {
    let text = value.to_string().replace("Ada Lovelace/Acme", "ada");
    serde_json::from_str(&text).unwrap()
}

fn check_directory(server: &Server, removes: bool) {
    let directory = &server.directory;
    let members = |group: &str| server.get(DIRECTORY_DATABASE, group).unwrap()["Members"].clone();
    if removes {
        for name in ["ada", "adele", "Ada Lovelace"] {
            assert_eq!(directory.find(name), Found::Nobody, "{name}");
        }
        assert_eq!((members("group:sales"), members("group:all")), (json!(["bob"]), json!(["sales", "eve"])));
        return;
    }
    for name in ["ada", "adele", "Adele King", "Ada Lovelace", "ada@acme.example"] {
        let Found::Person(person) = directory.find(name) else { panic!("{name} is nobody") };
        assert_eq!((person.id.as_str(), person.short_name.as_str()), ("person:ada", "adele"));
        assert_eq!(person.mail_file, "mail/ada");
    }
    let all = json!(["sales", "Adele King/Acme", "eve"]);
    assert_eq!((members("group:sales"), members("group:all")), (json!(["adele", "bob"]), all));
    let Found::Person(person) = directory.find("adele") else { panic!("gone") };
    let groups = directory.groups_of(&person);
    assert!(
        ["sales", "all", "ada"].iter().all(|name| groups.iter().any(|group| group == name)),
        "{groups:?}"
    );
}

//! People who are renamed, removed, imported, exported and erased, by commands and on the console of a server.

use std::path::Path;
use std::time::Duration;

use scrinium_fault::wait_until;
use serde_json::{Value, json};

use crate::common::{PASSWORD, SMALL, Server, answer, beside, small_with, start_with};

/// However loaded the machine is.
const SOON: Duration = Duration::from_secs(60);

fn console(server: &Server, command: &str) -> Value {
    let mut client = server.client();
    let asked = client.json("POST", "/_console", &json!({"command": command})).unwrap();
    assert_eq!(asked.status, 200, "{command}: {}", asked.text());
    asked.value()["data"].clone()
}

fn wait_for_requests(server: &Server) -> Vec<Value> {
    let all = || console(server, "show requests")["requests"].as_array().unwrap().clone();
    wait_until("the requests", SOON, || all().iter().all(|one| one["ended"].is_string()));
    all()
}

fn get(server: &Server, path: &str) -> Value {
    server.client().get(path).unwrap().value()
}

#[test]
fn a_person_is_renamed_and_erased_by_a_server_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    let mut client = server.client();
    for name in ["ada", "bob"] {
        let person = json!({"Form": "Person", "FullName": [name], "ShortName": name, "password": PASSWORD});
        client.json("PUT", &format!("/directory/person:{name}"), &person).unwrap().expect(201);
    }
    client.json("PUT", "/sales", &Value::Null).unwrap().expect(201);
    let list = json!({"default": {"level": "no_access"}, "entries": [{"name": "ada", "kind": "person", "level": "manager"}]});
    client.json("PUT", "/sales/_acl", &list).unwrap().expect(201);
    client.json("PUT", "/sales/secret", &json!({"Readers": ["ada"], "Number": 7})).unwrap().expect(201);
    let asked = console(&server, "rename person ada adele name=\"Adele King\"");
    assert_eq!((&asked["kind"], &asked["entry"]), (&json!("rename_person"), &json!("person:ada")));
    server.kill();
    let mut server = Server::start(folder.path(), &SMALL);
    let all = wait_for_requests(&server);
    assert_eq!((&all[0]["state"], &all[0]["new_name"]), (&json!("done"), &json!("adele")), "{all:?}");
    assert_eq!(get(&server, "/sales/secret")["Readers"], json!(["adele"]));
    assert_eq!(get(&server, "/sales/_acl")["entries"][0]["name"], json!("adele"));
    // Who is renamed logs in by both names, and is called by the new one.
    let mut client = server.client();
    for name in ["ada", "adele"] {
        let session = client.json("POST", "/_session", &json!({"name": name, "password": PASSWORD})).unwrap();
        assert_eq!(session.expect(200).value()["name"], json!("adele"));
    }
    let shown = console(&server, "show person ada");
    assert_eq!((&shown["person"], &shown["other_names"]), (&json!("adele"), &json!(["ada"])), "{shown}");
    assert!(shown["has_password"] == true && !shown.to_string().contains("argon2"), "{shown}");
    // Nobody writes a request but the server.
    let id = all[0]["id"].as_str().unwrap();
    let mut request = get(&server, &format!("/administration/{id}"));
    request["State"] = json!("running");
    server.client().json("PUT", &format!("/administration/{id}"), &request).unwrap().expect(403);

    let exported = console(&server, "export person adele");
    let exported = exported["folder"].as_str().unwrap().to_owned();
    wait_until("the export", SOON, || Path::new(&exported).join("manifest.json").exists());
    let documents =
        std::fs::read_to_string(Path::new(&exported).join("database-sales/documents.jsonl")).unwrap();
    assert!(documents.contains("\"Number\":7"), "{documents}");
    let person = std::fs::read_to_string(Path::new(&exported).join("person.json")).unwrap();
    assert!(person.contains("Adele King") && !person.contains("argon2"), "{person}");

    console(&server, "erase person adele");
    let all = wait_for_requests(&server);
    assert_eq!(all[1]["state"], json!("done"), "{all:?}");
    assert_eq!(get(&server, "/directory/person:ada")["error"], json!("not_found"));
    assert_eq!(get(&server, "/sales/secret")["Readers"], json!(["_removed"]));
    server.terminate(SOON);
}

const TABLE: &str = "Username,First name,Last name,Email\n\
    eve,Eve,Eaves,eve@example.org\n\
    mallory,Mal,Lory,mallory@example.org\n";

#[test]
fn a_table_of_people_is_imported_with_and_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("people.csv");
    std::fs::write(&table, TABLE).unwrap();
    let settings = small_with([]);
    let mut server = start_with(folder.path(), &settings);
    let table = table.to_str().unwrap();
    let listen = server.address().to_string();
    let run = |all: &[&str]| answer(&beside(folder.path(), settings.clone(), &listen, all).output().unwrap());
    let import = |more: &[&str]| run(&[&["--json", "person", "import", table], more].concat());
    let planned = import(&["--dry-run"]);
    assert_eq!(planned["new_people"], json!(["eve", "mallory"]), "{planned}");
    assert_eq!(get(&server, "/directory/person:eve")["error"], json!("not_found"));
    assert_eq!(import(&[])["written"], json!(2));
    assert_eq!(get(&server, "/directory/person:eve")["InternetAddress"], json!("eve@example.org"));
    assert_eq!(import(&[])["written"], json!(0));
    server.terminate(SOON);
    // Without a server: who is missing is disabled, and another one is new.
    std::fs::write(table, TABLE.replace("eve,Eve,Eaves,eve", "carol,Car,Ol,carol")).unwrap();
    let done = import(&["--complete", "--most-disabled", "100"]);
    assert_eq!(
        (&done["new_people"], &done["disabled_people"]),
        (&json!(["carol"]), &json!(["person:eve"])),
        "{done}"
    );
    let renamed = run(&["--json", "person", "rename", "carol", "caroline"]);
    assert_eq!((&renamed["state"], &renamed["new_name"]), (&json!("done"), &json!("caroline")), "{renamed}");
}

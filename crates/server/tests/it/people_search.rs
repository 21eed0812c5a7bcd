//! Whom people find while they type a name, and which rooms: what they see of the directory, and nothing else.

use serde_json::{Value, json};

use crate::common::{Client, SMALL, Server};

const SECRET: &str = "a-long-one-for-everybody";

fn put(server: &Server, id: &str, document: &Value) {
    server.client().json("PUT", &format!("/directory/{id}"), document).unwrap().expect(201);
}

fn person(server: &Server, name: &str, full: &str, more: &Value) {
    let mut document = json!({"Form": "Person", "ShortName": name, "FullName": [full], "password": SECRET});
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    put(server, &format!("person:{name}"), &document);
}

/// Somebody with a session.
fn signed_in(server: &Server, name: &str) -> Client {
    let login = json!({"name": name, "password": SECRET});
    let answer = server.client_with("").json("POST", "/_session", &login).unwrap().expect(200);
    server.client_with(answer.header("set-cookie").unwrap().split(';').next().unwrap())
}

fn names(client: &mut Client, query: &str) -> Vec<String> {
    let found = client.get(&format!("/_people?{query}")).unwrap().expect(200).value();
    let people = found["people"].as_array().unwrap().clone();
    people.iter().map(|person| person["name"].as_str().unwrap().to_owned()).collect()
}

fn filled(server: &Server) {
    person(server, "ada", "Ada Lovelace/Engines/Acme", &json!({"InternetAddress": "ada@acme.example"}));
    person(
        server,
        "adam",
        "Adam Smith",
        &json!({"InternetAddress": "adam@acme.example", "OfficePhoneNumber": "1"}),
    );
    person(server, "adolf", "Adolf Gone", &json!({"InternetAddress": "ad@acme.example", "Disabled": true}));
    person(server, "eve", "Eve Adams", &json!({"InternetAddress": "eve@beta.example"}));
    person(server, "hidden", "Adele Hidden", &json!({"Readers": ["ada"]}));
    put(server, "group:all", &json!({"Form": "Group", "ListName": "Admirers", "Members": ["ada"]}));
    for (name, site, seats) in [
        ("small", "Berlin", json!(4)),
        ("large", "Berlin", json!(20)),
        ("far", "Oslo", json!(8)),
        ("car", "Oslo", Value::Null),
    ] {
        let kind = if name == "car" { "resource" } else { "room" };
        let more = json!({"InternetAddress": format!("{name}@acme.example"), "Resource": kind, "Site": site, "Capacity": seats});
        person(server, name, &format!("The {name} one"), &more);
    }
}

#[test]
fn people_find_whom_they_may_see() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    filled(&server);
    let mut adam = signed_in(&server, "adam");
    // Who may not read the directory finds nobody, and nobody without a name does.
    adam.get("/_people?q=ada").unwrap().expect(403);
    assert_eq!(server.client_with("").get("/_people?q=ada").unwrap().status, 401);
    let list = json!({"default": {"level": "reader", "domain": "*"}});
    server.client().json("PUT", "/directory/_acl", &list).unwrap().expect(201);
    assert_eq!(names(&mut adam, "q=admir"), ["Admirers"]);
    assert_eq!(names(&mut adam, "q=ADA"), ["Ada Lovelace", "Adam Smith", "Eve Adams"]);
    assert_eq!(names(&mut adam, "q=lovelace%20a"), ["Ada Lovelace"]);
    assert_eq!(names(&mut adam, "q=eve%40beta.example"), ["Eve Adams"]);
    assert_eq!(names(&mut adam, "q=ad&limit=1").len(), 1);
    for nobody in ["q=engines", "q=acme", "q=", "q=%00", "q=gone", "q=hidden", ""] {
        assert_eq!(names(&mut adam, nobody), Vec::<String>::new(), "{nobody}");
    }
    let mut ada = signed_in(&server, "ada");
    assert_eq!(names(&mut ada, "q=adele"), ["Adele Hidden"]);
    let found = adam.get("/_people?q=adam").unwrap().expect(200).value();
    let shown =
        json!({"kind": "person", "name": "Adam Smith", "short_name": "adam", "address": "adam@acme.example"});
    assert_eq!(found["people"][0], shown);
    for wrong in [
        format!("q={}", "x".repeat(201)),
        "limit=-1".to_owned(),
        "kind=person".to_owned(),
        "capacity=x".to_owned(),
    ] {
        assert_eq!(adam.get(&format!("/_people?{wrong}")).unwrap().status, 400, "{wrong}");
    }
}

#[test]
fn a_domain_shows_others_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    filled(&server);
    let list = json!({"default": {"level": "reader", "domain": "*"}});
    server.client().json("PUT", "/directory/_acl", &list).unwrap().expect(201);
    let see = |what: &str, revision: Option<&str>| {
        let mut domain = json!({"Form": "Domain", "OutsidersSee": what});
        if let Some(revision) = revision {
            domain["_rev"] = json!(revision);
        }
        let stored =
            server.client().json("PUT", "/directory/domain:beta.example", &domain).unwrap().expect(201);
        stored.value()["rev"].as_str().unwrap().to_owned()
    };
    let revision = see("nothing", None);
    let hidden = json!({"Form": "Person", "ShortName": "eva", "FullName": ["Eva Adams"], "InternetAddress": "eva@beta.example"});
    put(&server, "person:eva", &hidden);
    let mut adam = signed_in(&server, "adam");
    assert_eq!(names(&mut adam, "q=eva"), Vec::<String>::new());
    see("addresses", Some(&revision));
    let seen = json!({"Form": "Person", "ShortName": "evi", "FullName": ["Evi Adams"], "InternetAddress": "evi@beta.example"});
    put(&server, "person:evi", &seen);
    assert_eq!(names(&mut adam, "q=evi"), ["Evi Adams"]);
    assert_eq!(adam.get("/directory/person:evi").unwrap().status, 404);
}

#[test]
fn rooms_are_found_by_where_they_are_and_how_large() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    filled(&server);
    let mut adam = signed_in(&server, "adam");
    adam.get("/_people?kind=room").unwrap().expect(403);
    let list = json!({"default": {"level": "reader", "domain": "*"}});
    server.client().json("PUT", "/directory/_acl", &list).unwrap().expect(201);
    assert_eq!(
        names(&mut adam, "kind=room"),
        ["The small one", "The far one", "The large one", "The car one"]
    );
    assert_eq!(names(&mut adam, "kind=room&capacity=5&site=Berlin"), ["The large one"]);
    assert_eq!(names(&mut adam, "kind=room&site=Rome"), Vec::<String>::new());
    assert_eq!(names(&mut adam, "kind=room&q=far&limit=5"), ["The far one"]);
    let found = adam.get("/_people?kind=room&site=Oslo&capacity=8").unwrap().expect(200).value();
    assert_eq!(found["sites"], json!(["Berlin", "Oslo"]));
    assert_eq!(found["people"][0]["capacity"], 8);
    assert_eq!(found["people"][1]["kind"], "resource");
    // What is no room is refused in words; other documents may have such fields for themselves.
    let odd = json!({"Form": "Person", "ShortName": "odd", "FullName": ["Odd"], "Resource": "zeppelin"});
    let refused = server.client().json("PUT", "/directory/person:odd", &odd).unwrap();
    assert!(refused.status == 403 || refused.status == 400, "{}", refused.text());
    let own =
        json!({"Form": "Person", "ShortName": "own", "FullName": ["Own"], "Site": 5, "Capacity": "much"});
    put(&server, "person:own", &own);
}

//! Who may read what a server makes by itself, who may write what of the directory, and who sends a memo.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine as _;
use scrinium_fault::wait_for;
use serde_json::{Value, json};

use crate::common::{Answer, SMALL, Server, read_answer};

/// However loaded the machine is.
const SOON: Duration = Duration::from_secs(60);

pub(crate) const PEOPLE_PASSWORD: &str = "a password of people";

/// Each database after the first start and the first mail, with what its owner, others and nobody may do.
const WHO_READS: [(&str, [u16; 3]); 7] = [
    ("directory", [404, 404, 401]),
    ("log", [404, 404, 401]),
    ("mail.box", [403, 403, 401]),
    ("mail/ada", [200, 404, 401]),
    ("mail1.box", [403, 403, 401]),
    ("mail2.box", [403, 403, 401]),
    ("mail3.box", [403, 403, 401]),
];

pub(crate) fn ask(server: &Server, name: &str, method: &str, path: &str, body: &Value) -> Answer {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n", body.len());
    if !body.is_empty() {
        head += "Content-Type: application/json\r\n";
    }
    if !name.is_empty() {
        let pair = format!("{name}:{PEOPLE_PASSWORD}");
        head +=
            &format!("Authorization: Basic {}\r\n", base64::engine::general_purpose::STANDARD.encode(pair));
    }
    stream.write_all(&[head.as_bytes(), b"\r\n", body.as_bytes()].concat()).unwrap();
    read_answer(&mut BufReader::new(stream)).unwrap()
}

fn with_people(folder: &std::path::Path) -> Server {
    let mut server = Server::start(folder, &SMALL);
    server.log_in();
    let mut client = server.client();
    for name in ["ada", "bob", "eve"] {
        let person = json!({"Form": "Person", "FullName": [format!("{name} Someone/Acme")], "ShortName": name,
            "InternetAddress": format!("{name}@acme.example"), "password": PEOPLE_PASSWORD});
        client.json("PUT", &format!("/directory/person:{name}"), &person).unwrap().expect(201);
    }
    server
}

#[test]
fn what_a_server_makes_is_for_those_whose_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_people(folder.path());
    let memo = |more: Value| {
        let mut memo = json!({"Form": "Memo", "SendTo": ["ada"], "Subject": "lunch", "Readers": ["eve"]});
        memo.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        memo
    };
    // Everybody may put memos into the mail.box, in their own name.
    ask(&server, "bob", "POST", "/mail.box", &memo(json!({}))).expect(201);
    ask(&server, "bob", "POST", "/mail.box", &memo(json!({"From": "bob@acme.example"}))).expect(201);
    let forged =
        ask(&server, "bob", "POST", "/mail.box", &memo(json!({"From": "eve@acme.example"}))).expect(403);
    assert!(forged.text().contains("not yours to send"), "{}", forged.text());
    ask(&server, "bob", "POST", "/mail.box", &memo(json!({"From": ["eve"]}))).expect(403);
    let mut client = server.client();
    let rows = wait_for("two memos of ada", SOON, || {
        let rows = client.get("/mail%2Fada/_all_docs?include_docs=true").unwrap();
        let rows = if rows.status == 200 { rows.value()["rows"].take() } else { json!([]) };
        (rows.as_array().unwrap().len() == 2).then_some(rows)
    });
    for row in rows.as_array().unwrap() {
        let from = row["doc"]["From"].as_str().unwrap();
        assert!(from.contains("bob@acme.example"), "{from}");
        assert!(row["doc"]["Sender"].is_null() && row["doc"]["Readers"].is_null(), "{row}");
    }
    check_delegates(&server, &memo);
    let names = client.get("/_all_dbs").unwrap().expect(200).value();
    let listed: Vec<&str> = WHO_READS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, json!(listed), "say who may read a database that the server makes");
    for (database, statuses) in WHO_READS {
        let path = format!("/{}/_all_docs", database.replace('/', "%2F"));
        for (name, status) in ["ada", "eve", ""].into_iter().zip(statuses) {
            let answer = ask(&server, name, "GET", &path, &Value::Null);
            assert_eq!(answer.status, status, "{name:?} {database}: {}", answer.text());
        }
    }
    // The administrator may read it, and that is on record.
    wait_for("record of the opening", SOON, || {
        let records =
            client.get("/log/_all_docs?include_docs=true&startkey=%22audit:%22").unwrap().expect(200);
        records.text().contains("mail file opened").then_some(())
    });
}

/// Who writes for ada is named with her, once she says so in the directory; and who reads her mail reads it as long as she says so.
fn check_delegates(server: &Server, memo: &impl Fn(Value) -> Value) {
    let (path, page) = ("/_users/org.couchdb.user:ada", "/mail%2Fada/_all_docs?include_docs=true");
    let set = |who: &str, fields: Value| {
        let mut document = ask(server, "ada", "GET", path, &Value::Null).expect(200).value();
        document.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        ask(server, who, "PUT", path, &document)
    };
    let sent = memo(json!({"From": "ada@acme.example", "Sender": "eve@acme.example"}));
    ask(server, "bob", "POST", "/mail.box", &sent).expect(403);
    ask(server, "bob", "GET", page, &Value::Null).expect(404);
    for who in ["bob", "eve"] {
        set(who, json!({"SendOnBehalf": [who]})).expect(404);
    }
    set("ada", json!({"SendOnBehalf": ["bob"], "MailReaders": ["bob"], "MailEditors": ["eve"]})).expect(201);
    ask(server, "bob", "POST", "/mail.box", &sent).expect(201);
    ask(server, "eve", "POST", "/mail.box", &sent).expect(403);
    let found = wait_for("memo with a sender", SOON, || {
        let rows = ask(server, "bob", "GET", page, &Value::Null).expect(200).value()["rows"].take();
        let text = "bob Someone/Acme <bob@acme.example>";
        rows.as_array().unwrap().iter().find(|row| row["doc"]["Sender"] == text).map(|row| row["doc"].clone())
    });
    let memo_path = format!("/mail%2Fada/{}", found["_id"].as_str().unwrap());
    let mut marked = found;
    marked["Marked"] = json!(true);
    ask(server, "bob", "PUT", &memo_path, &marked).expect(403);
    ask(server, "eve", "PUT", &memo_path, &marked).expect(201);
    ask(server, "eve", "GET", "/mail%2Fada/_acl", &Value::Null).expect(200);
    ask(server, "eve", "PUT", "/mail%2Fada/_acl", &json!({"default": {"level": "manager"}})).expect(401);
    // An editor of her mail file is nobody who says who else is.
    set("eve", json!({"MailReaders": ["eve", "bob"]})).expect(404);
    set("ada", json!({"SendOnBehalf": [], "MailReaders": null, "MailEditors": []})).expect(201);
    ask(server, "bob", "POST", "/mail.box", &sent).expect(403);
    for who in ["bob", "eve"] {
        ask(server, who, "GET", page, &Value::Null).expect(404);
    }
}

fn roles(server: &Server, name: &str) -> Value {
    ask(server, name, "GET", "/_session", &Value::Null).value()["userCtx"]["roles"].take()
}

#[test]
fn the_directory_gives_nobody_rights_that_they_have_not() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_people(folder.path());
    let mut client = server.client();
    // Shared with everybody, who may edit what is their own.
    let list = json!({"default": {"level": "author"}, "entries": [{"name": "eve", "level": "editor"}]});
    client.json("PUT", "/directory/_acl", &list).unwrap().expect(201);
    let read =
        |name: &str| ask(&server, "bob", "GET", &format!("/directory/person:{name}"), &Value::Null).value();
    assert!(
        !ask(&server, "bob", "GET", "/directory/_all_docs?include_docs=true", &Value::Null)
            .text()
            .contains("argon2")
    );
    let mut own = read("bob");
    own["Authors"] = json!(["bob"]);
    let own = client.json("PUT", "/directory/person:bob", &own).unwrap().expect(201);
    let changed = |name: &str, more: Value| {
        let mut person = read(name);
        person.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        person
    };
    assert_eq!(own.status, 201);
    for (by, name, more) in [
        ("bob", "bob", json!({"Roles": ["_admin"]})),
        ("bob", "bob", json!({"ShortName": "ada"})),
        ("bob", "bob", json!({"FullName": ["ada Someone/Acme"]})),
        ("bob", "bob", json!({"InternetAddress": "admin@acme.example"})),
        ("bob", "bob", json!({"MailFile": "mail/ada"})),
        (
            "bob",
            "bob",
            json!({"PasswordHash": "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA"}),
        ),
        ("eve", "bob", json!({"password": "of another one"})),
        ("eve", "admin", json!({"password": "of another one"})),
        ("eve", "admin", json!({"_deleted": true})),
        ("eve", "mallory", json!({"Form": "Person", "FullName": "Mallory", "ShortName": "mallory"})),
    ] {
        let person = if name == "mallory" { more.clone() } else { changed(name, more.clone()) };
        let refused = ask(&server, by, "PUT", &format!("/directory/person:{name}"), &person);
        assert_eq!(refused.status, 403, "{by} {name} {more}: {}", refused.text());
    }
    assert_eq!(roles(&server, "bob"), json!([]));
    // A name belongs to one person, no matter who writes it, and the administrator's is kept.
    for name in ["ADA", "Admin", "eve@acme.example"] {
        let person = json!({"Form": "Person", "FullName": [name], "ShortName": "mallory"});
        let refused = client.json("PUT", "/directory/person:mallory", &person).unwrap();
        assert_eq!(refused.status, 403, "{name}: {}", refused.text());
    }
    // One's own password is one's own, and nothing else of the document need change.
    let renewed = changed("bob", json!({"password": "another password", "Title": "Countess"}));
    ask(&server, "bob", "PUT", "/directory/person:bob", &renewed).expect(201);
    assert_eq!(ask(&server, "bob", "GET", "/_session", &Value::Null).status, 401);
}

/// Within others too, and at once.
#[test]
fn groups_count_where_their_names_stand() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_people(folder.path());
    let mut client = server.client();
    let group = |name: &str, members: Value| json!({"Form": "Group", "ListName": name, "Members": members});
    client
        .json("PUT", "/directory/group:inner", &group("inner", json!(["eve", "outer"])))
        .unwrap()
        .expect(201);
    let outer =
        client.json("PUT", "/directory/group:outer", &group("outer", json!(["inner"]))).unwrap().expect(201);
    assert_eq!(roles(&server, "eve"), json!(["inner", "outer"]));
    client.ask("PUT", "/papers", "", b"").unwrap().expect(201);
    let list = json!({"default": {"level": "no_access"}, "entries": [{"name": "Outer", "kind": "group", "level": "reader"}]});
    client.json("PUT", "/papers/_acl", &list).unwrap().expect(201);
    client.json("PUT", "/papers/a", &json!({"Readers": ["INNER"]})).unwrap().expect(201);
    client.json("PUT", "/papers/b", &json!({"Readers": ["others"]})).unwrap().expect(201);
    ask(&server, "eve", "GET", "/papers/a", &Value::Null).expect(200);
    ask(&server, "eve", "GET", "/papers/b", &Value::Null).expect(404);
    ask(&server, "ada", "GET", "/papers/a", &Value::Null).expect(404);
    let mut emptied = group("outer", json!([]));
    emptied["_rev"] = outer.value()["rev"].take();
    client.json("PUT", "/directory/group:outer", &emptied).unwrap().expect(201);
    ask(&server, "eve", "GET", "/papers/a", &Value::Null).expect(404);
}

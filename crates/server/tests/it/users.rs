//! `_users` as CouchDB's clients use it, against the directory of a whole server.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::common::{Answer, Client, PASSWORD, SMALL, Server, read_answer};

fn ask_as(server: &Server, (name, password): (&str, &str), method: &str, path: &str, body: &Value) -> Answer {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let login = STANDARD.encode(format!("{name}:{password}"));
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {login}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
    read_answer(&mut BufReader::new(stream)).unwrap()
}

fn user(name: &str, roles: &[&str], password: &str) -> Value {
    json!({"_id": format!("org.couchdb.user:{name}"), "type": "user", "name": name, "roles": roles, "password": password})
}

fn put(client: &mut Client, document: &Value) -> Answer {
    let path = format!("/_users/{}", document["_id"].as_str().unwrap());
    client.json("PUT", &path, document).unwrap()
}

#[test]
fn a_user_is_a_person_who_logs_in_and_changes_their_password_alone() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    let mut client = server.client();
    let described = client.get("/_users").unwrap().expect(200).value();
    assert_eq!(described["db_name"], "_users");
    client.json("PUT", "/_users", &Value::Null).unwrap().expect(412);
    client.json("DELETE", "/_users", &Value::Null).unwrap().expect(403);
    client.get("/_users/_design/_auth").unwrap().expect(200);

    put(&mut client, &user("carol", &["editors"], "a first password")).expect(201);
    put(&mut client, &user("dave", &[], "another password")).expect(201);
    // A bulk of them, as a restored backup brings them.
    let docs = json!({"docs": [user("erin", &["a"], "a third password"), {"_id": "org.couchdb.user:x", "type": "user"}]});
    let told = client.json("POST", "/_users/_bulk_docs", &docs).unwrap().expect(201).value();
    assert_eq!((&told[0]["ok"], &told[1]["error"]), (&json!(true), &json!("forbidden")));
    let path = "/_users/org.couchdb.user:carol";
    let read = client.get(path).unwrap().expect(200);
    assert!(!read.text().contains("first password") && !read.text().contains("argon2"), "{}", read.text());
    let read = read.value();
    assert_eq!(
        (&read["name"], &read["roles"], &read["type"]),
        (&json!("carol"), &json!(["editors"]), &json!("user"))
    );
    let carol = ("carol", "a first password");
    let session = ask_as(&server, carol, "GET", "/_session", &Value::Null).expect(200).value();
    assert_eq!(
        (&session["userCtx"]["name"], &session["userCtx"]["roles"]),
        (&json!("carol"), &json!(["editors"]))
    );

    // Their own document, and no other.
    ask_as(&server, carol, "GET", path, &Value::Null).expect(200);
    for other in ["org.couchdb.user:dave", "org.couchdb.user:nobody", "person:admin"] {
        ask_as(&server, carol, "GET", &format!("/_users/{other}"), &Value::Null)
            .expect_error(404, "not_found");
        ask_as(&server, carol, "PUT", &format!("/_users/{other}"), &json!({})).expect_error(404, "not_found");
    }
    for page in
        ["", "/_all_docs", "/_changes", "/_design/_auth", "/_security", "/_find", "/org.couchdb.user:carol/x"]
    {
        ask_as(&server, carol, "GET", &format!("/_users{page}"), &Value::Null).expect_error(403, "forbidden");
    }
    ask_as(&server, carol, "GET", "/directory/org.couchdb.user:carol", &Value::Null).expect(404);
    ask_as(&server, carol, "DELETE", path, &Value::Null).expect(404);
    let changed = |member: &str, value: Value| {
        let mut document = read.clone();
        document[member] = value;
        document
    };
    for (member, value) in [
        ("roles", json!(["editors", "_admin"])),
        ("roles", json!(["managers"])),
        ("name", json!("dave")),
        ("InternetAddress", json!("dave@example.com")),
        ("MailFile", json!("mail/dave")),
        ("Disabled", json!(true)),
        ("PasswordHash", json!("x")),
    ] {
        ask_as(&server, carol, "PUT", path, &changed(member, value)).expect_error(403, "forbidden");
    }
    ask_as(&server, carol, "PUT", path, &changed("password", json!("a second password"))).expect(201);
    ask_as(&server, carol, "GET", "/_session", &Value::Null).expect(401);
    let carol = ("carol", "a second password");
    ask_as(&server, carol, "GET", path, &Value::Null).expect(200);

    // An administrator takes a role away, and the person.
    let mut fewer = client.get(path).unwrap().expect(200).value();
    fewer["roles"] = json!([]);
    put(&mut client, &fewer).expect(201);
    let session = ask_as(&server, carol, "GET", "/_session", &Value::Null).expect(200).value();
    assert_eq!(session["userCtx"]["roles"], json!([]));
    let revision = client.get(path).unwrap().value()["_rev"].as_str().unwrap().to_owned();
    client.json("DELETE", &format!("{path}?rev={revision}"), &Value::Null).unwrap().expect(200);
    ask_as(&server, carol, "GET", "/_session", &Value::Null).expect(401);
}

#[test]
fn people_of_the_directory_are_users_of_couchdb_too() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    let mut client = server.client();
    let person = json!({"_id": "person:ada", "Form": "Person", "FullName": ["Ada Lovelace/Acme"], "ShortName": "ada",
        "Roles": ["engineers"], "hobby": "engines", "password": "a first password"});
    client.json("PUT", "/directory/person:ada", &person).unwrap().expect(201);
    let path = "/_users/org.couchdb.user:ada";
    let shown = client.get(path).unwrap().expect(200).value();
    let expected = json!({"_id": "org.couchdb.user:ada", "_rev": shown["_rev"], "type": "user", "name": "ada",
        "roles": ["engineers"]});
    assert_eq!(shown, expected);
    let ada = ("ada", "a first password");
    assert_eq!(ask_as(&server, ada, "GET", path, &Value::Null).expect(200).value(), expected);
    let mut wanted = shown;
    wanted["roles"] = json!(["engineers", "managers"]);
    ask_as(&server, ada, "PUT", path, &wanted).expect_error(403, "forbidden");
    wanted["roles"] = json!(["engineers"]);
    wanted["password"] = json!("a second password");
    let written = ask_as(&server, ada, "PUT", path, &wanted).expect(201).value();
    assert_eq!(written["id"], "org.couchdb.user:ada");
    ask_as(&server, ada, "GET", "/_session", &Value::Null).expect(401);
    let ada = ("ada", "a second password");
    ask_as(&server, ada, "GET", path, &Value::Null).expect(200);
    // What was read before is out of date.
    ask_as(&server, ada, "PUT", path, &wanted).expect_error(409, "conflict");
    let stored = client.get("/directory/person:ada").unwrap().expect(200).value();
    assert_eq!((&stored["hobby"], &stored["FullName"]), (&json!("engines"), &json!(["Ada Lovelace/Acme"])));
    // A name is one person's, whichever form the document has.
    let second = json!({"docs": [user("ada", &[], "a third password")]});
    let told = client.json("POST", "/_users/_bulk_docs", &second).unwrap().expect(201).value();
    assert_eq!(told[0]["error"], "forbidden", "{told}");
    ask_as(&server, ("admin", PASSWORD), "GET", "/_users/_all_docs", &Value::Null).expect(200);
}

//! Legal holds on a whole server: who sets them, what they keep, and what is on record.

use serde_json::{Value, json};

use crate::common::{Client, SMALL, Server};

const SECRET: &str = "a secret of Ada's";

fn console(client: &mut Client, command: &str) -> Result<Value, String> {
    let answer = client.json("POST", "/_console", &json!({"command": command})).unwrap();
    if answer.status == 200 { Ok(answer.value()["data"].clone()) } else { Err(answer.text()) }
}

/// A client of somebody else than the administrator.
fn of(server: &Server, name: &str) -> Client {
    let login = json!({"name": name, "password": SECRET});
    let answer = server.client_with("").json("POST", "/_session", &login).unwrap().expect(200);
    server.client_with(answer.header("set-cookie").unwrap().split(';').next().unwrap())
}

fn start(folder: &std::path::Path) -> Server {
    Server::start(folder, &SMALL)
}

#[test]
fn a_person_under_hold_deletes_and_nothing_is_lost_until_it_is_lifted() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path());
    let mut admin = server.client();
    let ada = json!({"_id": "person:ada", "Form": "Person", "ShortName": "ada", "FullName": ["Ada"], "password": SECRET});
    admin.json("PUT", "/directory/person:ada", &ada).unwrap().expect(201);
    let held = console(&mut admin, "set hold ada Miller v. Acme").unwrap();
    assert_eq!((&held["database"], &held["matter"]), (&json!("mail/ada"), &json!("Miller v. Acme")));
    assert!(console(&mut admin, "set hold nobody case").unwrap_err().contains("no person"));

    // Neither she nor a stranger sees, lifts or sets anything.
    let mut own = of(&server, "ada");
    for client in [&mut own, &mut server.client_with("")] {
        for path in ["/mail%2Fada/_held", "/mail%2Fada/_held?id=a&rev=1-a&attachments=true"] {
            assert!([401, 403].contains(&client.get(path).unwrap().status), "{path}");
        }
        assert!(console(client, "lift hold ada Miller v. Acme").is_err());
    }
    let put = |client: &mut Client, document: Value| {
        let answer = client.json("PUT", "/mail%2Fada/letter", &document).unwrap().expect(201);
        answer.value()["rev"].as_str().unwrap().to_owned()
    };
    let data = json!({"a.txt": {"content_type": "text/plain", "data": "dGhlIHByb29m"}});
    let first = put(&mut own, json!({"text": "what was said", "_attachments": data}));
    let second = put(&mut own, json!({"_rev": first, "text": "something else"}));
    own.ask("DELETE", &format!("/mail%2Fada/letter?rev={second}"), "application/json", &[])
        .unwrap()
        .expect(200);
    let purged = own.json("POST", "/mail%2Fada/_purge", &json!({"letter": [second]})).unwrap();
    assert!([401, 403].contains(&purged.status));
    let purged = admin.json("POST", "/mail%2Fada/_purge", &json!({"letter": [second]})).unwrap();
    purged.expect_error(403, "forbidden");
    let dropped = admin.ask("DELETE", "/mail%2Fada", "application/json", &[]).unwrap();
    assert!(dropped.status == 403 && dropped.text().contains("legal hold"), "{}", dropped.text());

    // A kill loses nothing of it.
    server.kill();
    server = start(folder.path());
    let mut admin = server.client();
    let shown = admin.get("/mail%2Fada/_held").unwrap().expect(200).value();
    let texts: Vec<&Value> =
        shown["held"].as_array().unwrap().iter().map(|held| &held["doc"]["text"]).collect();
    assert_eq!(texts, [&json!("what was said"), &json!("something else")]);
    let path = format!("/mail%2Fada/_held?id=letter&rev={first}&attachments=true");
    let whole = admin.get(&path).unwrap().expect(200).value();
    assert_eq!(whole["_attachments"]["a.txt"]["data"], "dGhlIHByb29m");
    let after = admin.get(&format!("/mail%2Fada/_held?id=letter&rev={first}&limit=1")).unwrap().expect(200);
    assert_eq!(after.value()["held"][0]["rev"], json!(second));
    admin.get("/mail%2Fada/_held?attachments=true").unwrap().expect_error(400, "bad_request");
    admin.get("/mail%2Fada/_held?limit=x").unwrap().expect_error(400, "query_parse_error");

    let holds = console(&mut admin, "show holds").unwrap();
    assert_eq!((&holds["holds"][0]["person"], &holds["holds"][0]["by"]), (&json!("ada"), &json!("admin")));
    assert!(console(&mut admin, "lift hold ada another").is_err());
    console(&mut admin, "lift hold ada Miller v. Acme").unwrap();
    assert_eq!(admin.get("/mail%2Fada/_held").unwrap().expect(200).value()["held"], json!([]));
    admin.ask("DELETE", "/mail%2Fada", "application/json", &[]).unwrap().expect(200);
}

//! An administrator looks for a message in all mail files, moves it, deletes it, and brings it back.

use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Client, SMALL, Server, answer, beside};

const PASSWORD: &str = "a secret of theirs";

fn console(client: &mut Client, command: &str) -> Result<Value, String> {
    let answer = client.json("POST", "/_console", &json!({"command": command})).unwrap();
    if answer.status == 200 { Ok(answer.value()["data"].clone()) } else { Err(answer.text()) }
}

/// Begins, and waits until it has ended.
fn searched(client: &mut Client, command: &str) -> Value {
    let number = console(client, command).unwrap()["search"].as_u64().unwrap();
    for _ in 0..600 {
        let shown = console(client, &format!("show mailsearch {number}")).unwrap();
        if shown["running"] == json!(false) {
            return shown;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{command} did not end");
}

fn deliver(client: &mut Client, person: &str, id: &str, subject: &str, day: u32) {
    let memo = json!({
        "_id": id, "Form": "Memo", "From": "Eve <eve@far.example>", "Subject": subject,
        "$MessageID": format!("<{id}@far.example>"), "$FileNames": ["Invoice.PDF.exe"],
        "DeliveredDate": format!("2026-11-{day:02}T10:00:00Z"),
    });
    client.json("PUT", &format!("/mail%2F{person}/{id}"), &memo).unwrap().expect(201);
    client.json("PUT", &format!("/mail%2F{person}/_folder/Inbox"), &json!({})).unwrap();
    client
        .json("POST", &format!("/mail%2F{person}/_folder/Inbox"), &json!({"add": [id]}))
        .unwrap()
        .expect(200);
}

fn members(client: &mut Client, person: &str, folder: &str) -> u64 {
    let list = client.get(&format!("/mail%2F{person}/_folder")).unwrap().expect(200).value();
    let found = list["folders"].as_array().unwrap().iter().find(|one| one["name"] == folder).cloned();
    found.map_or(0, |found| found["total"].as_u64().unwrap())
}

/// The audit, once it says all of this.
pub fn await_audit(client: &mut Client, words: &[&str]) {
    let mut audit = String::new();
    for _ in 0..600 {
        audit = console(client, "show log audit 1h -n 100").unwrap().to_string();
        if words.iter().all(|word| audit.contains(word)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("not all of {words:?} is in {audit}");
}

/// Three people with a message each, and two with one that is out for passwords.
fn filled(folder: &std::path::Path) -> Server {
    let server = Server::start(folder, &SMALL);
    let mut admin = server.client();
    for person in ["ada", "bob", "cy"] {
        let document = json!({"_id": format!("person:{person}"), "Form": "Person", "ShortName": person,
            "FullName": [person], "password": PASSWORD});
        admin.json("PUT", &format!("/directory/person:{person}"), &document).unwrap().expect(201);
        // Which makes the mail file.
        for order in ["set", "lift"] {
            console(&mut admin, &format!("{order} hold {person} case")).unwrap();
        }
        deliver(&mut admin, person, "innocent", "Lunch", 20);
    }
    for person in ["ada", "bob"] {
        deliver(&mut admin, person, "phish", "Your ACCOUNT expires", 21);
    }
    server
}

#[test]
fn only_an_administrator_looks_and_only_for_something() {
    let folder = tempfile::tempdir().unwrap();
    let server = filled(folder.path());
    let login = json!({"name": "ada", "password": PASSWORD});
    let answer = server.client_with("").json("POST", "/_session", &login).unwrap().expect(200);
    let mut own = server.client_with(answer.header("set-cookie").unwrap().split(';').next().unwrap());
    for client in [&mut own, &mut server.client_with("")] {
        for command in ["search mail subject=x", "show mailsearch", "move mail 1 Trash", "purge mail 1"] {
            console(client, command).unwrap_err();
        }
    }
    let wrong = [
        "search mail",
        "search mail subject=",
        "search mail since=never",
        "search mail x",
        "show mailsearch 99",
        "move mail 99 Trash",
        "move mail x Trash",
        "purge mail",
        "purge mail 99",
    ];
    let mut admin = server.client();
    for command in wrong {
        console(&mut admin, command).unwrap_err();
    }
    let criteria = [
        ("message=<phish@far.example>", 2),
        ("message=phish", 0),
        ("from=EVE@", 5),
        ("subject=account until=2026-11-20", 0),
        ("since=2026-11-21", 2),
        ("attachment=other", 0),
    ];
    for (criteria, count) in criteria {
        let found = searched(&mut admin, &format!("search mail {criteria}"));
        assert_eq!((&found["found"], &found["changed"]), (&json!(count), &json!(0)), "{criteria}");
    }
}

#[test]
fn a_message_that_has_reached_many_is_found_moved_deleted_and_brought_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = filled(folder.path());
    let mut admin = server.client();
    let search = "search mail subject=\"account expires\" from=eve attachment=.exe since=2026-11-01";
    let found = searched(&mut admin, search);
    assert_eq!((&found["found"], &found["mail_files_with"]), (&json!(2), &json!(2)));
    assert_eq!(found["messages"][0]["database"], "mail/ada");
    let number = found["search"].as_u64().unwrap();
    let moved = searched(&mut admin, &format!("move mail {number} \"Held back\""));
    assert_eq!((&moved["found"], &moved["changed"]), (&json!(2), &json!(2)));
    assert_eq!(searched(&mut admin, &format!("move mail {number} \"held back\""))["changed"], json!(0));
    assert_eq!((members(&mut admin, "ada", "Inbox"), members(&mut admin, "ada", "Held back")), (1, 1));
    // What has been done is no search.
    let done = moved["search"].as_u64().unwrap();
    console(&mut admin, &format!("purge mail {done}")).unwrap_err();
    let words = ["--json", "mail", "purge", &number.to_string()];
    let output = beside(folder.path(), SMALL, &server.address().to_string(), &words).output().unwrap();
    assert_eq!(answer(&output)["changed"], json!(2));
    assert_eq!(searched(&mut admin, "search mail subject=account")["found"], json!(0));
    assert_eq!(members(&mut admin, "ada", "Held back"), 0);
    let restored = console(&mut admin, "undelete bob all message=phish@far.example to=Inbox").unwrap();
    assert_eq!(restored["restored"].as_array().unwrap().len(), 1, "{restored}");
    assert_eq!(members(&mut admin, "bob", "Inbox"), 2);
    await_audit(&mut admin, &["mail searched", "mail moved", "mail purged", "mail restored"]);
}

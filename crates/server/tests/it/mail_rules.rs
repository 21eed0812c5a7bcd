//! Mail rules by HTTP: who sets whose, and that they hold for what comes in.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::common::Client;
use crate::mail_ports::{MailServer, SECRET};

fn rules(actions: &Value) -> Value {
    json!({"rules": [{"name": "one", "when": "@Contains(Subject; \"sort\")", "actions": actions}]})
}

fn ada(mail: &MailServer) -> Client {
    let login = json!({"name": "ada", "password": SECRET});
    let answer = mail.server.client_with("").json("POST", "/_session", &login).unwrap().expect(200);
    mail.server.client_with(answer.header("set-cookie").unwrap().split(';').next().unwrap())
}

/// Hands in one message by SMTP; the reply to its text.
fn send(mail: &MailServer, to: &str, subject: &str) -> String {
    let stream = TcpStream::connect(("127.0.0.1", mail.port("smtp"))).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut reply = || loop {
        let line = lines.next().unwrap().unwrap();
        if line.as_bytes().get(3) != Some(&b'-') {
            return line;
        }
    };
    reply();
    let envelope = [
        "EHLO far.example".to_owned(),
        "MAIL FROM:<eve@far.example>".to_owned(),
        format!("RCPT TO:<{to}@acme.example>"),
        "DATA".to_owned(),
    ];
    for command in envelope {
        (&stream).write_all(format!("{command}\r\n").as_bytes()).unwrap();
        let said = reply();
        assert!(said.starts_with('2') || said.starts_with("354"), "{command}: {said}");
    }
    let text = format!("Subject: {subject}\r\nMessage-ID: <{subject}@far.example>\r\n\r\nText.\r\n.\r\n");
    (&stream).write_all(text.as_bytes()).unwrap();
    reply()
}

#[test]
fn each_sets_their_own_and_administrators_those_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start(folder.path());
    let (mut admin, mut own, mut nobody) = (mail.server.client(), ada(&mail), mail.server.client_with(""));
    assert_eq!(own.get("/_mail_rules").unwrap().expect(200).value(), json!({"rules": []}));
    let sorted = rules(&json!([{"move": "Sorted"}]));
    own.json("PUT", "/_mail_rules", &sorted).unwrap().expect(200);
    assert_eq!(
        own.get("/_mail_rules").unwrap().expect(200).value()["rules"][0]["actions"],
        json!([{"move": "Sorted"}])
    );
    // Not even an administrator sees hers as their own.
    assert_eq!(admin.get("/_mail_rules").unwrap().expect(200).value(), json!({"rules": []}));
    for method in ["GET", "PUT"] {
        let refused = own.json(method, "/_mail_rules/server", &sorted).unwrap().status;
        assert!([401, 403].contains(&refused), "{method}: {refused}");
        for path in ["/_mail_rules", "/_mail_rules/server"] {
            assert_eq!(nobody.json(method, path, &sorted).unwrap().status, 401, "{method} {path}");
        }
    }
    for document in ["mailrules:of:person:ada", "mailrules:server"] {
        let path = format!("/directory/{document}");
        let written = admin.json("PUT", &path, &json!({"_id": document, "Rules": sorted})).unwrap();
        assert!([403, 409].contains(&written.status), "{document}: {}", written.text());
    }
    for wrong in [
        json!({"rules": 5}),
        json!([]),
        rules(&json!([{"hold": "of a person"}])),
        rules(&json!([{"forward": "a@b>\r\nDATA"}])),
        json!({"rules": [{"name": "n", "when": "@Nothing(", "actions": [{"move": "A"}]}]}),
    ] {
        own.json("PUT", "/_mail_rules", &wrong).unwrap().expect_error(400, "bad_request");
    }
    admin.json("PUT", "/_mail_rules/server", &rules(&json!([{"mark": ["server"]}]))).unwrap().expect(200);
    assert!(send(&mail, "ada", "sort-me").starts_with("250"));
    let members = own.get("/mail%2Fada/_folder/Sorted/_members").unwrap().expect(200).value();
    assert_eq!(members["members"].as_array().map(Vec::len), Some(1), "{members}");
    let documents = own.get("/mail%2Fada/_all_docs?include_docs=true").unwrap().expect(200).value();
    let rows = documents["rows"].as_array().unwrap();
    let sorted = rows.iter().find(|row| row["doc"]["Subject"] == "sort-me").unwrap();
    assert_eq!(sorted["doc"]["$Flags"], json!(["server"]));
    own.json("PUT", "/_mail_rules", &rules(&json!([{"reject": "Not today."}]))).unwrap().expect(200);
    let refused = send(&mail, "ada", "sort-again");
    assert!(refused.starts_with("550 5.7.1 Not today."), "{refused}");
}

#[test]
fn who_gets_an_id_that_somebody_had_gets_none_of_their_rules() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start(folder.path());
    let (mut admin, mut own) = (mail.server.client(), ada(&mail));
    own.json("PUT", "/_mail_rules", &rules(&json!([{"forward": "old@far.example"}]))).unwrap().expect(200);
    let person = "/directory/person:ada";
    let mut stored = admin.get(person).unwrap().expect(200).value();
    let revision = stored["_rev"].as_str().unwrap().to_owned();
    // An edit is of the same person.
    stored["JobTitle"] = json!("analyst");
    let edited = admin.json("PUT", person, &stored).unwrap().expect(201).value();
    assert_ne!(edited["rev"], json!(revision));
    assert_ne!(own.get("/_mail_rules").unwrap().expect(200).value(), json!({"rules": []}));
    let path = format!("{person}?rev={}", edited["rev"].as_str().unwrap());
    admin.json("DELETE", &path, &Value::Null).unwrap().expect(200);
    let another =
        json!({"Form": "Person", "ShortName": "ada", "FullName": ["Ada Another"], "password": SECRET});
    admin.json("PUT", person, &another).unwrap().expect(201);
    assert_eq!(ada(&mail).get("/_mail_rules").unwrap().expect(200).value(), json!({"rules": []}));
}

#[test]
fn each_sets_their_own_scripts_in_the_browser() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start(folder.path());
    let (mut own, mut nobody) = (ada(&mail), mail.server.client_with(""));
    let path = "/_mail_scripts";
    let none = own.get(path).unwrap().expect(200).value();
    assert_eq!((&none["active"], &none["scripts"]), (&json!(""), &json!({})));
    let sorted = |version: &Value| json!({"active": "a", "version": version, "scripts": {"a": "require \"fileinto\"; fileinto \"Sorted\";", "b": "keep;"}});
    own.json("PUT", path, &sorted(&none["version"])).unwrap().expect(200);
    let kept = own.get(path).unwrap().expect(200).value();
    assert_eq!(kept["scripts"], sorted(&Value::Null)["scripts"]);
    // Somebody else has set others in between.
    let other = json!({"active": "", "scripts": {}, "version": none["version"]});
    own.json("PUT", path, &other).unwrap().expect_error(409, "conflict");
    for wrong in [
        json!([]),
        json!({"active": "c", "scripts": {"a": "keep;"}}),
        json!({"active": "", "scripts": {"a": "no_such;"}}),
        json!({"active": "", "scripts": {"": "keep;"}}),
        json!({"active": "", "scripts": {"a": "x".repeat(300_000)}}),
        json!({"active": "", "scripts": {}, "more": 1}),
    ] {
        own.json("PUT", path, &wrong).unwrap().expect_error(400, "bad_request");
    }
    for method in ["GET", "PUT"] {
        assert_eq!(nobody.json(method, path, &other).unwrap().status, 401, "{method}");
    }
    assert!(send(&mail, "ada", "sort-me").starts_with("250"));
    let members = own.get("/mail%2Fada/_folder/Sorted/_members").unwrap().expect(200).value();
    assert_eq!(members["members"].as_array().map(Vec::len), Some(1), "{members}");
    // Without a version they are set in any case.
    own.json("PUT", path, &json!({"active": "", "scripts": {}})).unwrap().expect(200);
}

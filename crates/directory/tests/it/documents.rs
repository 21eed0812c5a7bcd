//! What may stand in the directory, and what becomes of it on its way there.

use scrinium_credentials::{Protocol, ProtocolSet};
use scrinium_directory::{DirectoryError, PasswordEdit, Person, first_administrator, hide_secrets, prepare};
use serde_json::{Map, Value, json};

use crate::common::HASH;

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("not an object: {other}"),
    }
}

fn ada() -> Map<String, Value> {
    fields(json!({
        "_id": "person:ada", "Form": "Person", "FullName": "Ada Lovelace/Engines/Acme", "ShortName": "ada",
        "InternetAddress": "ada@acme.example", "password": "Bernoulli",
        "Colour": "green", "_rev": "1-00000000000000000000000000000000"
    }))
}

#[test]
fn a_password_is_taken_out_and_the_rest_is_completed() {
    let prepared = prepare(ada()).unwrap();
    assert_eq!(prepared.password, PasswordEdit::Clear("Bernoulli".to_owned()));
    assert!(!format!("{prepared:?}").contains("Bernoulli"), "a password never reaches a log");
    let document = prepared.document;
    assert_eq!(document.get("password"), None);
    assert_eq!(document["FullName"], json!(["Ada Lovelace/Engines/Acme"]));
    assert_eq!(document["MailFile"], "mail/ada");
    assert_eq!(document["Roles"], json!([]));
    assert_eq!((&document["Colour"], document["_rev"].as_str().unwrap().len()), (&json!("green"), 34));
    // Writing again what was read says nothing of the password.
    let again = prepare(document.clone()).unwrap();
    assert_eq!((again.password, &again.document), (PasswordEdit::Keep, &document));

    // A hash that an administrator brings is taken out as well.
    let mut brought = document;
    brought.insert("PasswordHash".to_owned(), HASH.as_str().into());
    let person = Person::read(&brought).unwrap();
    assert!(person.credentials.password().unwrap().verify("engine"));
    assert!(!format!("{person:?}").contains("argon2"), "a hash never reaches a log");
    let prepared = prepare(brought.clone()).unwrap();
    assert!(
        matches!(prepared.password, PasswordEdit::Hashed(_))
            && !prepared.document.contains_key("PasswordHash")
    );
    hide_secrets(&mut brought);
    assert!(!serde_json::to_string(&brought).unwrap().contains("argon2"));
}

#[test]
fn how_an_account_stands_is_read_from_the_document() {
    let read = |change: Value| {
        let mut document = ada();
        document.extend(fields(change));
        Person::read(&document).map(|person| person.account)
    };
    let usual = read(json!({})).unwrap();
    assert!(!usual.is_disabled && usual.expires_ms.is_none() && usual.protocols == ProtocolSet::all());
    let account = read(json!({"Disabled": true, "Expires": "2027-01-31", "SecondFactor": "required",
        "Protocols": ["imap", "submission"]}));
    let account = account.unwrap();
    assert!(account.is_disabled && account.requires_second_factor);
    assert_eq!(account.expires_ms, Some(1_801_353_600_000));
    assert!(account.protocols.has(Protocol::Imap) && !account.protocols.has(Protocol::Http));
    let moment = read(json!({"Expires": "2027-01-31T01:00:00+01:00"})).unwrap();
    assert_eq!(moment.expires_ms, account.expires_ms);
    for wrong in [
        json!({"Disabled": "yes"}),
        json!({"Expires": "soon"}),
        json!({"Expires": "1969-01-01"}),
        json!({"Expires": 5}),
        json!({"SecondFactor": "perhaps"}),
        json!({"Protocols": ["gopher"]}),
        json!({"Protocols": 1}),
    ] {
        assert!(read(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn wrong_documents_are_refused_in_clear_words() {
    let cases = [
        (json!({"FullName": null}), "the field FullName is required"),
        (json!({"FullName": [1]}), "the field FullName must be a text or a list of texts"),
        (json!({"ShortName": "  "}), "the field ShortName is required"),
        (json!({"ShortName": "a da"}), "the field ShortName cannot be \"a da\""),
        (json!({"_id": "ada", "Form": "Person"}), "the id \"ada\" must start with \"person:\""),
        (json!({"_id": "person:"}), "the id \"person:\" must start with \"person:\""),
        (json!({"Form": "Folder"}), "Form must be \"Person\", not \"Folder\""),
        (json!({"InternetAddress": "ada"}), "an Internet address is of the form name@domain"),
        (json!({"MailFile": "directory"}), "a mail file is mail/NAME"),
        (json!({"MailFile": "mail/../directory"}), "a mail file is mail/NAME"),
        (json!({"MailFile": "mail/"}), "a mail file is mail/NAME"),
        (json!({"password": ""}), "a password has between 1 and 1024 bytes"),
        (json!({"password": 5}), "the field password must be a text"),
        (json!({"PasswordHash": "plain", "password": null}), "it is not a whole argon2id hash"),
        (
            json!({"password": null,
                   "PasswordHash": "$argon2id$v=19$m=4194304,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA"}),
            "that costs at most m=65536, t=10, p=4",
        ),
        (json!({"Roles": (0..200).map(|n| n.to_string()).collect::<Vec<_>>()}), "has 200 values"),
    ];
    for (change, expected) in cases {
        let mut document = ada();
        document.extend(fields(change.clone()));
        let error = prepare(document).unwrap_err().to_string();
        assert!(error.contains(expected), "{change}: {error}");
        assert!(!error.contains("Bernoulli"));
    }
    let group = fields(json!({"_id": "group:x", "Members": ["ada"]}));
    assert_eq!(prepare(group), Err(DirectoryError::Missing { field: "ListName" }));
}

#[test]
fn groups_deletions_and_other_documents_pass() {
    let group = fields(json!({"_id": "group:x", "ListName": "X", "Members": "ada"}));
    assert_eq!(prepare(group).unwrap().document["Members"], json!(["ada"]));
    for document in [
        json!({"_id": "person:ada", "_deleted": true}),
        json!({"_id": "_design/names", "views": {}}),
        json!({"_id": "note", "Form": "Note"}),
    ] {
        assert_eq!(prepare(fields(document.clone())).unwrap().document, fields(document));
    }
}

#[test]
fn a_short_name_of_any_letters_gives_a_mail_file() {
    for (short_name, mail_file) in [("Ada.L", "mail/ada$2el"), ("Ørsted", "mail/$f8rsted")] {
        let mut document = ada();
        document.extend(fields(json!({"ShortName": short_name, "password": null})));
        assert_eq!(prepare(document).unwrap().document["MailFile"], mail_file);
    }
}

#[test]
fn the_first_administrator_has_the_given_password_or_a_made_one() {
    let given = first_administrator(Some("from the environment")).unwrap();
    assert_eq!(given.made_password, None);
    let made = first_administrator(None).unwrap();
    let password = made.made_password.unwrap();
    assert_eq!(password.len(), 24);
    for (made, expected) in
        [(given, "from the environment"), (first_administrator(Some(&password)).unwrap(), &password)]
    {
        assert!(Person::read(&made.document).unwrap().has_role("_admin"));
        assert_eq!(made.password, PasswordEdit::Clear(expected.to_owned()));
    }
}

#[test]
fn mail_goes_into_databases_that_are_not_the_servers() {
    let read = |database: &str| {
        prepare(fields(
            json!({"_id": "mail-in:x", "Name": "X", "Database": database, "InternetAddress": "x@acme.example"}),
        ))
    };
    for database in ["tickets", "mail/shared", "a/b+c"] {
        assert_eq!(read(database).unwrap().document["Form"], "MailInDatabase");
    }
    for wrong in [
        "directory",
        "mail.box",
        "mail1.box",
        "smtp.box",
        "administration",
        "log",
        "_users",
        "_replicator",
        "a/_replicator",
        "",
        "Tickets",
        "tickets?",
        "../x",
        "/x",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    let nameless = fields(json!({"_id": "mail-in:x", "Database": "tickets"}));
    assert_eq!(prepare(nameless), Err(DirectoryError::Missing { field: "Name" }));
}

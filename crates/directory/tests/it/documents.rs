//! What may stand in the directory, and what becomes of it on its way there.

use scrinium_directory::{
    DirectoryError, Person, first_administrator, hide_secrets, prepare, verify_password,
};
use serde_json::{Map, Value, json};

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
fn a_password_is_replaced_by_its_hash_and_the_rest_is_completed() {
    let document = prepare(ada()).unwrap();
    assert_eq!(document.get("password"), None);
    assert_eq!(document["FullName"], json!(["Ada Lovelace/Engines/Acme"]));
    assert_eq!(document["MailFile"], "mail/ada");
    assert_eq!(document["Roles"], json!([]));
    assert_eq!((&document["Colour"], document["_rev"].as_str().unwrap().len()), (&json!("green"), 34));
    let person = Person::read(&document).unwrap();
    let hash = person.password_hash.clone().unwrap();
    assert!(hash.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
    assert!(verify_password("Bernoulli", &hash));
    assert!(!verify_password("bernoulli", &hash));
    assert!(!verify_password("", &hash));
    assert!(!format!("{person:?}").contains("argon2"), "a hash never reaches a log");

    // Writing again what was read keeps the hash; hiding takes it out.
    let mut again = prepare(document.clone()).unwrap();
    assert_eq!(again, document);
    hide_secrets(&mut again);
    assert!(!serde_json::to_string(&again).unwrap().contains("argon2"));
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
        (json!({"PasswordHash": "plain", "password": null}), "it is not a PHC string"),
        (
            json!({"password": null,
                   "PasswordHash": "$argon2id$v=19$m=4194304,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA"}),
            "it costs more than",
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
    assert_eq!(prepare(group).unwrap()["Members"], json!(["ada"]));
    for document in [
        json!({"_id": "person:ada", "_deleted": true}),
        json!({"_id": "_design/names", "views": {}}),
        json!({"_id": "note", "Form": "Note"}),
    ] {
        assert_eq!(prepare(fields(document.clone())).unwrap(), fields(document));
    }
}

#[test]
fn a_short_name_of_any_letters_gives_a_mail_file() {
    for (short_name, mail_file) in [("Ada.L", "mail/ada$2el"), ("Ørsted", "mail/$f8rsted")] {
        let mut document = ada();
        document.extend(fields(json!({"ShortName": short_name, "password": null})));
        assert_eq!(prepare(document).unwrap()["MailFile"], mail_file);
    }
}

#[test]
fn the_first_administrator_has_the_given_password_or_a_made_one() {
    let given = first_administrator(Some("from the environment")).unwrap();
    assert_eq!(given.made_password, None);
    let made = first_administrator(None).unwrap();
    let password = made.made_password.unwrap();
    assert_eq!(password.len(), 24);
    for (document, password) in [(given.document, "from the environment"), (made.document, &password)] {
        let person = Person::read(&document).unwrap();
        assert!(person.has_role("_admin"));
        assert!(verify_password(password, &person.password_hash.unwrap()));
    }
}

//! `scrinium person set`, `group set` and `domain`: with a server, and on a data folder that no server uses.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{SMALL, Server, beside};

/// Where commands run, and where the server listens, if there is one.
struct Place<'p> {
    root: &'p Path,
    listen: String,
}

/// What a command tells as data; else what it says, with its exit code.
fn run(place: &Place<'_>, arguments: &[&str]) -> Result<Value, (i32, String)> {
    let output =
        beside(place.root, SMALL, &place.listen, &[&["--json"], arguments].concat()).output().unwrap();
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout).unwrap());
    }
    Err((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn check(place: &Place<'_>, name: &str) {
    let address = format!("{name}.two@acme.example");
    run(place, &["person", "add", name, "--no-password", "--role", "clerk"]).unwrap();
    let set = [
        "person",
        "set",
        name,
        &format!("Addresses={address}, {name}@b.example"),
        "language=de",
        "ForwardOnly=true",
    ];
    let shown = run(place, &set).unwrap();
    assert_eq!(shown["Addresses"], json!([address, format!("{name}@b.example")]));
    assert_eq!((&shown["Language"], &shown["ForwardOnly"]), (&json!("de"), &json!(true)));
    let shown =
        run(place, &["person", "set", name, "Addresses=", "ForwardOnly=", "TimeZone=europe/berlin"]).unwrap();
    assert_eq!((&shown["Addresses"], shown.get("ForwardOnly")), (&json!([]), None));
    assert_eq!((&shown["Roles"], &shown["Language"]), (&json!(["clerk"]), &json!("de")), "others stay");
    for (wrong, code, words) in [
        ("ShortName=x", 2, "no field that can be set"),
        ("Addresses", 2, "FIELD=VALUE"),
        ("ForwardOnly=perhaps", 2, "true or false"),
        ("Addresses=nowhere", 1, "name@domain"),
        ("TimeZone=Mars/Olympus", 1, "time zone"),
        ("Language=a language", 1, "language"),
        ("OutOfOfficeUntil=tomorrow", 1, "2027-01-31"),
    ] {
        let (found, text) = run(place, &["person", "set", name, wrong]).unwrap_err();
        assert!(found == code && text.contains(words), "{wrong}: {found} {text}");
    }
    let group = format!("Group of {name}");
    run(place, &["group", "add", &group, name]).unwrap();
    let shown =
        run(place, &["group", "set", &group, "MayWrite=everybody", &format!("Owners={name}")]).unwrap();
    assert_eq!((&shown["MayWrite"], &shown["Members"]), (&json!("everybody"), &json!([name])));
    assert_eq!(run(place, &["group", "set", &group, "MayWrite=anybody"]).unwrap_err().0, 1);
    assert_eq!(run(place, &["group", "set", name, "MayWrite=people"]).unwrap_err().0, 1);
    check_domains(place, name);
    let (mail_in, address) = (format!("Tickets of {name}"), format!("tickets.{name}@acme.example"));
    let set = ["mail-in", "set", &mail_in, "Database=tickets", &format!("InternetAddress={address}")];
    assert_eq!(run(place, &set).unwrap()["Database"], json!("tickets"));
    let listed = run(place, &["mail-in", "list"]).unwrap();
    let expected = json!({"mail_in": mail_in, "database": "tickets", "addresses": [address]});
    assert!(listed.as_array().unwrap().contains(&expected), "{listed}");
    for wrong in ["Database=directory", "Database=", "InternetAddress=nowhere"] {
        assert_eq!(run(place, &["mail-in", "set", &mail_in, wrong]).unwrap_err().0, 1, "{wrong}");
    }
    assert_eq!(run(place, &["mail-in", "set", name, "Database=tickets"]).unwrap_err().0, 1);
    assert_eq!(run(place, &["mail-in", "set", "Other", "Database=x", set[4]]).unwrap_err().0, 1);
    run(place, &["mail-in", "remove", &mail_in]).unwrap();
    assert_eq!(run(place, &["mail-in", "remove", &mail_in]).unwrap_err().0, 1);
}

/// A domain from the first to the last.
fn check_domains(place: &Place<'_>, name: &str) {
    let domain = format!("{name}.example");
    run(place, &["domain", "add", &domain.to_uppercase(), &format!("CatchAll={name}")]).unwrap();
    let (code, words) = run(place, &["domain", "add", &domain]).unwrap_err();
    assert!(code == 1 && words.contains("already"), "{code} {words}");
    let listed = run(place, &["domain", "list"]).unwrap();
    let expected = json!({"domain": domain, "catch_all": name, "administrators": []});
    assert!(listed.as_array().unwrap().contains(&expected), "{listed}");
    let shown = run(place, &["domain", "set", &domain, &format!("Administrators={name}")]).unwrap();
    assert_eq!((&shown["CatchAll"], &shown["Administrators"]), (&json!(name), &json!([name])));
    run(place, &["domain", "set", &domain, &format!("Administrators={name}, Nobody Else")]).unwrap();
    run(place, &["person", "set", name, &format!("InternetAddress={name}@{domain}")]).unwrap();
    let shown = run(place, &["domain", "show", &domain.to_uppercase()]).unwrap();
    assert_eq!((&shown["people"], &shown["disabled"], &shown["groups"]), (&json!(1), &json!(0), &json!(0)));
    let administrators = json!([{"name": "Nobody Else", "person": null}, {"name": name, "person": name}]);
    assert_eq!((&shown["administrators"], &shown["catch_all"]), (&administrators, &json!(name)));
    assert_eq!(shown["outsiders_see"], "nothing", "it has administrators");
    assert_eq!(run(place, &["domain", "set", &domain, "OutsidersSee=half"]).unwrap_err().0, 1);
    run(place, &["domain", "set", &domain, "OutsidersSee=all"]).unwrap();
    assert_eq!(run(place, &["domain", "show", &domain]).unwrap()["outsiders_see"], "all");
    run(place, &["domain", "remove", &domain]).unwrap();
    assert_eq!(run(place, &["domain", "show", &domain]).unwrap_err().0, 1);
    assert!(!run(place, &["domain", "list"]).unwrap().to_string().contains(&domain));
    assert_eq!(run(place, &["domain", "remove", &domain]).unwrap_err().0, 1);
}

#[test]
fn fields_are_set_with_a_server_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    check(&Place { root: folder.path(), listen: server.address().to_string() }, "ada");
    assert!(server.terminate(std::time::Duration::from_secs(30)).success());
    check(&Place { root: folder.path(), listen: "127.0.0.1:1".to_owned() }, "bob");
}

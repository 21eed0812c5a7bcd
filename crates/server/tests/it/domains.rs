//! Several organisations on one server: what one gives to everybody does not reach the people of another, by any door.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use scrinium_fault::wait_for;
use serde_json::{Value, json};

use crate::common::{SMALL, Server};
use crate::who_reads::{PEOPLE_PASSWORD, ask};

/// However loaded the machine is.
const SOON: Duration = Duration::from_secs(60);

/// What LDAP shows of al of acme.example and of a group there beside names and addresses.
const TITLE: &str = "title: Taster";
const MEMBER: &str = "member: uid=al,ou=people,dc=home,dc=example";

/// What stands in the database of acme.example.
const SECRET: &str = "rosebud";

/// acme.example of ada and al, beta.example of bob and ben, each with an administrator of its own, and carl of neither. Others see
/// all of beta.example, and of acme.example what is given.
fn with_domains(folder: &Path, more: &[(&str, &str)]) -> Server {
    with_domains_that_show(folder, more, "all")
}

fn with_domains_that_show(folder: &Path, more: &[(&str, &str)], shown: &str) -> Server {
    let server = Server::start(folder, &[&SMALL[..], more].concat());
    let mut client = server.client();
    for name in ["ada", "al", "bob", "ben", "carl"] {
        let domain = domain_of(name);
        let person = json!({"Form": "Person", "FullName": [format!("{name} Someone")], "ShortName": name,
            "InternetAddress": format!("{name}@{domain}"), "password": PEOPLE_PASSWORD});
        client.json("PUT", &format!("/directory/person:{name}"), &person).unwrap().expect(201);
    }
    for (domain, administrator, shown) in [("acme.example", "ada", shown), ("beta.example", "bob", "all")] {
        let document = json!({"Form": "Domain", "Administrators": [administrator], "OutsidersSee": shown});
        client.json("PUT", &format!("/directory/domain:{domain}"), &document).unwrap().expect(201);
    }
    server
}

/// A database of ada's, open to everybody as she says it.
fn with_plans(folder: &Path) -> Server {
    let server = with_domains(folder, &[]);
    let mut client = server.client();
    client.ask("PUT", "/plans?owner=ada", "", b"").unwrap().expect(201);
    for name in ["bens", "carls", "als"] {
        client
            .ask("PUT", &format!("/{name}?owner={}", &name[..name.len() - 1]), "", b"")
            .unwrap()
            .expect(201);
    }
    for name in ["plans", "bens", "carls", "als"] {
        let kept = json!({"full_text": true});
        client.json("PUT", &format!("/{name}/_properties"), &kept).unwrap().expect(200);
    }
    let list = json!({"default": {"level": "editor"}, "entries": [{"name": "ada", "level": "manager"}]});
    ask(&server, "ada", "PUT", "/plans/_acl", &list).expect(201);
    let attachment = json!({"rosebud.txt": {"content_type": "text/plain", "data": "cm9zZWJ1ZA=="}});
    ask(&server, "ada", "PUT", "/plans/s", &json!({"word": SECRET, "_attachments": attachment})).expect(201);
    ask(&server, "ada", "PUT", "/plans/_folder/Inbox", &json!({})).expect(201);
    ask(&server, "ada", "PUT", "/plans/f?folder=Inbox", &json!({"word": SECRET})).expect(201);
    let views = json!({"views": {"words": {"map": "function (doc) { emit(doc.word, doc.word); }"}}});
    ask(&server, "ada", "PUT", "/plans/_design/d", &views).expect(201);
    server
}

/// All that reads or writes documents of `plans` for somebody who has a database of their own.
fn doors(own: &str) -> Vec<(&'static str, String, Value)> {
    let get = |path: &str| ("GET", path.to_owned(), Value::Null);
    let post = |path: &str, body: Value| ("POST", path.to_owned(), body);
    let edit = json!({"db": "plans", "doc": {"_id": format!("of-{own}")}});
    let condition = json!({"db": "plans", "id": "s", "selector": {"word": SECRET}});
    vec![
        get("/plans"),
        get("/plans/s"),
        get("/plans/s/rosebud.txt"),
        get("/plans/s?open_revs=all"),
        get("/plans/_all_docs?include_docs=true"),
        get("/plans/_changes?include_docs=true"),
        get("/plans/_changes?feed=continuous&timeout=10&include_docs=true"),
        get("/plans/_design/d"),
        get("/plans/_design/d/_view/words"),
        get("/plans/_folder/Inbox?include_docs=true"),
        get("/plans/_acl"),
        get("/plans/_security"),
        post("/plans/_find", json!({"selector": {"word": SECRET}})),
        post("/plans/_fulltext", json!({"q": SECRET})),
        post("/plans/_bulk_get", json!({"docs": [{"id": "s"}]})),
        post("/plans/_revs_diff", json!({"s": ["9-fadefadefadefadefadefadefadefade"]})),
        post("/plans/_bulk_docs", json!({"docs": [{"_id": format!("bulk-{own}")}]})),
        ("PUT", format!("/plans/put-{own}"), json!({})),
        post("/_transaction", json!({"edits": [edit]})),
        post(
            "/_transaction",
            json!({"conditions": [condition],
            "edits": [{"db": own, "doc": {"_id": "seen"}}]}),
        ),
        post("/_replicate", json!({"source": "plans", "target": own})),
        post("/_replicate", json!({"source": own, "target": "plans"})),
    ]
}

#[test]
fn a_default_does_not_reach_the_people_of_another_domain_by_any_door() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_plans(folder.path());
    let shown = ask(&server, "ada", "GET", "/plans/_acl", &Value::Null).expect(200).value();
    assert_eq!(shown["default"]["domain"], "acme.example", "what ada says is of her domain: {shown}");
    // Al goes in by each, so that the doors are good ones.
    for (name, own, goes_in) in [("ben", "bens", false), ("carl", "carls", false), ("al", "als", true)] {
        for (method, path, body) in doors(own) {
            let answer = ask(&server, name, method, &path, &body);
            let is_done = (200..300).contains(&answer.status);
            assert_eq!(
                is_done,
                goes_in,
                "{name} {method} {path} {body}: {} {}",
                answer.status,
                answer.text()
            );
            let is_hidden = goes_in || !answer.text().contains(SECRET) && answer.status != 500;
            assert!(is_hidden, "{name} {method} {path}: {}", answer.text());
        }
        let all = ask(&server, "ada", "GET", "/plans/_all_docs", &Value::Null).expect(200).text();
        assert_eq!(all.contains(own), goes_in, "{name}: {all}");
        let own = format!("/{own}/_all_docs?include_docs=true");
        let copied = ask(&server, name, "GET", &own, &Value::Null).expect(200).text();
        assert_eq!(
            (copied.contains(SECRET), copied.contains("seen")),
            (goes_in, goes_in),
            "{name}: {copied}"
        );
    }
    // What is said reaches others: everybody, or the people of another domain.
    let list = |domain: &str| json!({"default": {"level": "reader", "domain": domain}, "entries": [{"name": "ada", "level": "manager"}]});
    for (domain, statuses) in [("*", [200, 200, 200]), ("Beta.Example", [404, 200, 404])] {
        ask(&server, "ada", "PUT", "/plans/_acl", &list(domain)).expect(201);
        let read = |name| ask(&server, name, "GET", "/plans/s", &Value::Null).status;
        assert_eq!(["al", "ben", "carl"].map(read), statuses, "{domain}");
    }
    for wrong in
        [json!(""), json!(7), json!(["a"]), json!("a b"), json!("*/acme.example"), json!("x".repeat(300))]
    {
        let list = json!({"default": {"level": "reader", "domain": wrong}});
        server.client().json("PUT", "/plans/_acl", &list).unwrap().expect(400);
    }
}

#[test]
fn a_default_of_the_server_reaches_those_of_no_domain_and_lets_all_put_mail_in() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_domains(folder.path(), &[]);
    let mut client = server.client();
    client.ask("PUT", "/notes", "", b"").unwrap().expect(201);
    let read = |name| ask(&server, name, "GET", "/notes/_all_docs", &Value::Null).status;
    let list =
        json!({"default": {"level": "reader"}, "entries": [{"name": "*/beta.example", "level": "author"}]});
    client.json("PUT", "/notes/_acl", &list).unwrap().expect(201);
    let stored = client.get("/notes/_acl").unwrap().expect(200).value();
    assert_eq!(
        stored["default"].get("domain"),
        None,
        "an administrator of the server says what is said: {stored}"
    );
    assert_eq!(["al", "ben", "carl"].map(read), [404, 200, 200]);
    // A mail box takes what people of all domains put in, and shows it to none of them.
    for name in ["al", "ben", "carl"] {
        let memo = json!({"Form": "Memo", "SendTo": ["ada"], "Subject": name});
        ask(&server, name, "POST", "/mail.box", &memo).expect(201);
        ask(&server, name, "GET", "/mail.box/_all_docs", &Value::Null).expect(403);
    }
    wait_for("three memos of ada", SOON, || {
        let rows = ask(&server, "ada", "GET", "/mail%2Fada/_all_docs", &Value::Null);
        (rows.status == 200 && rows.value()["rows"].as_array().unwrap().len() == 3).then_some(())
    });
    // Without administrators of its own acme.example is a domain of the server like others.
    let mut domain = client.get("/directory/domain:acme.example").unwrap().expect(200).value();
    domain["Administrators"] = json!([]);
    client.json("PUT", "/directory/domain:acme.example", &domain).unwrap().expect(201);
    assert_eq!(["al", "ben", "carl"].map(read), [200; 3]);
}

#[test]
fn a_directory_that_is_open_by_default_is_closed_to_other_domains_by_ldap() {
    if !Path::new("/usr/bin/ldapsearch").exists() {
        scrinium_fault::skip("ldapsearch is not installed; scripts/peers brings it");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let more = [
        ("SCRINIUM_LDAP__LISTEN", "127.0.0.1:0"),
        ("SCRINIUM_LDAP__LOOPBACK_WITHOUT_TLS", "true"),
        ("SCRINIUM_MAIL__DOMAINS", "home.example"),
    ];
    let server = with_domains(folder.path(), &more);
    let search = |name: &str| ldap_search(&server, name);
    let mut client = server.client();
    client.json("PUT", "/directory/_acl", &json!({"default": {"level": "reader"}})).unwrap().expect(201);
    assert!(search("carl").contains("uid: ada"), "{}", search("carl"));
    assert!(search("ben").contains("Insufficient access"), "{}", search("ben"));
    let list = json!({"default": {"level": "reader", "domain": "*"}});
    client.json("PUT", "/directory/_acl", &list).unwrap().expect(201);
    assert!(search("ben").contains("uid: ada"), "{}", search("ben"));
}

/// All people whom somebody finds by LDAP, or why not.
fn ldap_search(server: &Server, name: &str) -> String {
    let messages = server.messages();
    let address =
        messages.lines().find_map(|line| line.split_once("listening url=ldap://")).unwrap().1.trim();
    let (url, name) = (format!("ldap://{address}"), format!("{name}@{}", domain_of(name)));
    let mut command = Command::new("/usr/bin/ldapsearch");
    command.args(["-x", "-LLL", "-H", &url, "-b", "dc=home,dc=example", "-D", &name, "-w", PEOPLE_PASSWORD]);
    let output = command.arg("(|(uid=*)(cn=*))").output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// What shows people and groups of the directory to somebody.
fn shows_of_the_directory() -> Vec<(&'static str, &'static str, Value)> {
    let with = json!({"selector": {"Form": "Person"}});
    vec![
        ("GET", "/directory/person:al", Value::Null),
        ("GET", "/directory/person:al?open_revs=all", Value::Null),
        ("GET", "/directory/_all_docs?include_docs=true", Value::Null),
        ("GET", "/directory/_changes?include_docs=true&style=all_docs", Value::Null),
        ("GET", "/directory/_design/d/_view/people", Value::Null),
        ("POST", "/directory/_find", with),
        ("POST", "/directory/_fulltext", json!({"q": "someone", "include_docs": true})),
        ("POST", "/directory/_bulk_get", json!({"docs": [{"id": "person:al"}, {"id": "group:acme"}]})),
    ]
}

/// Who finds al of acme.example, by each door.
fn finders(server: &Server, has_ldap: bool) -> Vec<String> {
    let mut finders = Vec::new();
    for name in ["ada", "al", "ben", "bob", "carl"] {
        for (method, path, body) in shows_of_the_directory() {
            let text = ask(server, name, method, path, &body).text();
            // A request by an id repeats it.
            let mut traces = vec!["al Someone", "al@acme.example", "all@acme.example"];
            traces.extend(path.contains("_fulltext").then_some("person:al"));
            if traces.iter().any(|trace| text.contains(trace)) {
                finders.push(format!("{name} {path}"));
            }
        }
        let found = if has_ldap { ldap_search(server, name) } else { String::new() };
        if found.contains("uid: al\n") && found.contains(TITLE) && found.contains(MEMBER) {
            finders.push(format!("{name} by LDAP"));
        }
    }
    finders
}

#[test]
fn others_see_nothing_of_a_domain_that_shows_them_nothing() {
    let has_ldap = Path::new("/usr/bin/ldapsearch").exists();
    let folder = tempfile::tempdir().unwrap();
    let more = [
        ("SCRINIUM_LDAP__LISTEN", "127.0.0.1:0"),
        ("SCRINIUM_LDAP__LOOPBACK_WITHOUT_TLS", "true"),
        ("SCRINIUM_MAIL__DOMAINS", "home.example"),
    ];
    let server = with_domains_that_show(folder.path(), &more, "all");
    let mut client = server.client();
    let mut al = client.get("/directory/person:al").unwrap().expect(200).value();
    al["JobTitle"] = json!("Taster");
    client.json("PUT", "/directory/person:al", &al).unwrap().expect(201);
    let group = json!({"Form": "Group", "ListName": "Acme", "Members": ["al"], "InternetAddress": "all@acme.example"});
    client.json("PUT", "/directory/group:acme", &group).unwrap().expect(201);
    let views =
        json!({"views": {"people": {"map": "function (doc) { emit(doc.ShortName, doc.InternetAddress); }"}}});
    client.json("PUT", "/directory/_design/d", &views).unwrap().expect(201);
    client.json("PUT", "/directory/_properties", &json!({"full_text": true})).unwrap().expect(200);
    let list = json!({"default": {"level": "reader", "domain": "*"},
        "entries": [{"name": "*administrators", "kind": "group", "level": "editor"}]});
    client.json("PUT", "/directory/_acl", &list).unwrap().expect(201);
    let doors = shows_of_the_directory().len() + usize::from(has_ldap);
    assert_eq!(finders(&server, has_ldap).len(), 5 * doors, "{:?}", finders(&server, has_ldap));
    let say = |shown: Value| {
        let mut client = server.client();
        let mut domain = client.get("/directory/domain:acme.example").unwrap().expect(200).value();
        domain["OutsidersSee"] = shown;
        client.json("PUT", "/directory/domain:acme.example", &domain).unwrap().expect(201);
    };
    let is_own = |finder: &String| finder.starts_with("ada ") || finder.starts_with("al ");
    // Where it is not said, a domain with administrators shows nothing; its own people see what they saw.
    for shown in [json!("nothing"), json!("all"), json!("addresses"), Value::Null] {
        say(shown.clone());
        let expected = if shown == "all" { 5 } else { 2 } * doors;
        // What somebody of no domain sees by LDAP: names and addresses, and more.
        let (is_addressed, is_more) = (shown == "addresses" || shown == "all", shown == "all");
        let is_as_said = |seen: &str| {
            let sees_more = seen.contains(TITLE) || seen.contains(MEMBER);
            (seen.contains("mail: al@acme.example"), sees_more) == (is_addressed, is_more)
        };
        let found = wait_for("readers of acme.example", SOON, || {
            let found = finders(&server, has_ldap);
            let is_settled = !has_ldap || is_as_said(&ldap_search(&server, "carl"));
            (found.len() == expected && is_settled).then_some(found)
        });
        assert!(shown == "all" || found.iter().all(is_own), "{shown}: {found:?}");
    }
    // Nobody who comes to the domain is seen for a moment, nor what an administrator of it leaves open.
    let zoe = json!({"Form": "Person", "FullName": ["Zoe"], "ShortName": "zoe.acme.example", "Readers": "*",
        "InternetAddress": "zoe@acme.example"});
    ask(&server, "ada", "PUT", "/directory/person:zoe.acme.example", &zoe).expect(201);
    for (name, status) in [("al", 200), ("ben", 404), ("bob", 404), ("carl", 404)] {
        ask(&server, name, "GET", "/directory/person:zoe.acme.example", &Value::Null).expect(status);
    }
    // Mail for them comes as before.
    ask(&server, "ben", "POST", "/mail.box", &json!({"Form": "Memo", "SendTo": ["al@acme.example"]}))
        .expect(201);
    wait_for("a memo of al", SOON, || {
        (ask(&server, "al", "GET", "/mail%2Fal/_all_docs", &Value::Null).status == 200).then_some(())
    });
    // Who leaves for another domain is that one's.
    let mut al = client.get("/directory/person:al").unwrap().expect(200).value();
    al["InternetAddress"] = json!("al@beta.example");
    client.json("PUT", "/directory/person:al", &al).unwrap().expect(201);
    ask(&server, "carl", "GET", "/directory/person:al", &Value::Null).expect(200);
}

fn domain_of(name: &str) -> &'static str {
    match name {
        "ada" | "al" => "acme.example",
        "bob" | "ben" => "beta.example",
        _ => "home.example",
    }
}

//! The directory by LDAP: asked by OpenLDAP's client as a program of its own, and by bytes of strangers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use scrinium_fault::skip;
use serde_json::{Value, json};

use crate::common::{PASSWORD, SMALL, Server};

const LDAPSEARCH: &str = "/usr/bin/ldapsearch";
/// That of Debian, whose package python3-ldap3 it has.
const PYTHON: &str = "/usr/bin/python3";

/// What a program in Python asks: it binds, reads all people in pages, asks as Thunderbird does, compares, and is refused.
const LDAP3: &str = r#"
import sys
from ldap3 import Connection, Server, ALL, SUBTREE
url, base, password = sys.argv[1:]
admin = "uid=admin,ou=people," + base
server = Server(url, get_info=ALL, connect_timeout=60)
connection = Connection(server, admin, password, raise_exceptions=False, receive_timeout=60)
assert connection.bind(), connection.result
assert base in server.info.naming_contexts, server.info
assert "inetOrgPerson" in server.schema.object_classes
pages = connection.extend.standard.paged_search(base, "(&(objectClass=inetOrgPerson)(title=engineer))", SUBTREE,
                                                attributes=["uid", "cn"], paged_size=7, generator=True)
found = [entry["attributes"]["uid"][0] for entry in pages]
assert sorted(found) == ["p%02d" % number for number in range(49)], found
word = "son 3"
assert connection.search(base, "(|(mail=*%s*)(cn=*%s*)(givenName=*%s*)(sn=*%s*))" % (word, word, word, word))
assert len(connection.entries) == 11, connection.entries
person = "uid=p07,ou=people," + base
assert connection.compare(person, "title", "ENGINEER") and not connection.compare(person, "title", "Countess")
assert connection.extend.standard.who_am_i() == "dn:" + admin, connection.extend.standard.who_am_i()
assert not connection.modify(person, {"title": [("MODIFY_REPLACE", ["Countess"])]})
assert not connection.delete(person)
connection.unbind()
wrong = Connection(server, admin, password + "x", receive_timeout=60)
assert not wrong.bind() and wrong.result["description"] == "invalidCredentials", wrong.result
print("done")
"#;

const BASE: &str = "dc=example,dc=org";
const PEOPLE: usize = 50;

/// However loaded the machine is.
const SOON: Duration = Duration::from_secs(60);

/// A server with ports for LDAP.
struct Ldap(Server);

impl Ldap {
    fn start(folder: &Path, more: &[(&str, &str)]) -> Self {
        let ports = [
            ("SCRINIUM_MAIL__DOMAINS", "example.org"),
            ("SCRINIUM_LDAP__LISTEN", "127.0.0.1:0"),
            ("SCRINIUM_LDAP__TLS_LISTEN", "127.0.0.1:0"),
            ("SCRINIUM_LDAP__MAX_ENTRIES", "20"),
        ];
        Self(Server::start(folder, &[&SMALL[..], &ports, more].concat()))
    }

    /// Where `ldap` or `ldaps` listens.
    fn address(&self, protocol: &str) -> SocketAddr {
        let messages = self.0.messages();
        let url = format!("listening url={protocol}://");
        let line = messages.lines().find_map(|line| line.split_once(&url)).unwrap();
        line.1.trim().parse().unwrap()
    }

    /// People p00 to p49, of whom p00 has a password and p49 is disabled, and a group.
    fn with_people(self) -> Self {
        let mut client = self.0.client();
        for number in 0..PEOPLE {
            let name = format!("p{number:02}");
            let mut person = json!({"Form": "Person", "FullName": [format!("Person {number}/Acme")], "ShortName": name,
                "JobTitle": "Engineer", "Diary": "nobody's business", "Disabled": number == 49});
            if number == 0 {
                person["password"] = json!(PASSWORD);
            } else {
                person["InternetAddress"] = json!(format!("Person.{number}@example.org"));
            }
            client.json("PUT", &format!("/directory/person:{name}"), &person).unwrap().expect(201);
        }
        let group = json!({"Form": "Group", "ListName": "All", "Members": ["p00", "p01", "p49", "x@elsewhere.example"]});
        client.json("PUT", "/directory/group:all", &group).unwrap().expect(201);
        drop(client);
        self
    }

    fn search(&self, arguments: &[&str]) -> (bool, String) {
        self.ldapsearch("ldap", arguments)
    }

    fn ldapsearch(&self, protocol: &str, arguments: &[&str]) -> (bool, String) {
        let url = format!("{protocol}://{}", self.address(protocol));
        let mut command = Command::new(LDAPSEARCH);
        // The certificate is one that the server has made.
        command.env("LDAPTLS_REQCERT", "never").args(["-x", "-LLL", "-H", &url, "-b", BASE]).args(arguments);
        let Output { status, stdout, stderr } = command.output().unwrap();
        (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }
}

/// Whether Debian's client is there.
fn is_there() -> bool {
    let is_there = Path::new(LDAPSEARCH).exists();
    if !is_there {
        skip("ldapsearch is not installed; scripts/peers brings it");
    }
    is_there
}

#[test]
fn a_program_in_python_asks_the_directory() {
    let has_ldap3 = Command::new(PYTHON).args(["-c", "import ldap3"]).output();
    if !has_ldap3.is_ok_and(|output| output.status.success()) {
        skip("python3-ldap3 is not installed; scripts/peers brings it");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut ldap =
        Ldap::start(folder.path(), &[("SCRINIUM_LDAP__LOOPBACK_WITHOUT_TLS", "true")]).with_people();
    for protocol in ["ldap", "ldaps"] {
        let url = format!("{protocol}://{}", ldap.address(protocol));
        let output = Command::new(PYTHON).args(["-c", LDAP3, &url, BASE, PASSWORD]).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success() && said.contains("done"), "{protocol}: {said}");
    }
    assert!(ldap.0.terminate(SOON).success());
}

#[test]
fn ldapsearch_finds_people_page_by_page() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut ldap =
        Ldap::start(folder.path(), &[("SCRINIUM_LDAP__LOOPBACK_WITHOUT_TLS", "true")]).with_people();
    let admin = ["-D", "uid=admin,ou=people,dc=example,dc=org", "-w", PASSWORD];
    let search = |more: &[&str]| ldap.search(&[&admin, more].concat());
    for size in ["1", "7", "20"] {
        let pages = format!("pr={size}/noprompt");
        let (done, found) = search(&["-E", &pages, "(&(objectClass=inetOrgPerson)(title=ENGINEER))", "uid"]);
        // All but the one who is disabled, each once.
        assert!(
            done && (0..49).all(|number| found.matches(&format!("\nuid: p{number:02}\n")).count() == 1),
            "{found}"
        );
        assert!(!found.contains("uid: p49"), "{found}");
    }
    let (_, all) = search(&["-E", "pr=1/noprompt", "(objectClass=*)", "1.1"]);
    assert_eq!(
        all.matches("dn: ").count(),
        3 + 49 + 1 + 1,
        "the base and its two, people, the administrator, a group: {all}"
    );
    // Thunderbird asks so for each word that is typed.
    let (_, found) = search(&["(|(mail=*son.3*)(cn=*son 3*)(givenName=*son 3*)(sn=*son 3*))", "cn", "mail"]);
    assert_eq!(found.matches("dn: ").count(), 11, "{found}");
    // A limit is said, and only where there is more.
    let (done, found) = search(&["(objectClass=inetOrgPerson)", "uid"]);
    assert!(
        !done && found.contains("Size limit exceeded") && found.matches("\nuid: ").count() == 20,
        "{found}"
    );
    for one in ["(uid=P07)", "(&(objectClass=person)(mail=person.7@EXAMPLE.org))", "(cn=person 7)"] {
        let (done, found) = search(&["-z", "1", one]);
        assert!(done && found.contains("uid: p07") && !found.contains("business"), "{one}: {found}");
    }
    // Who has no address of their own has one by the short name.
    assert!(search(&["(mail=p00@example.org)"]).1.contains("uid: p00"));
    assert_eq!(search(&["(uid=nobody)"]), (true, String::new()));
    assert!(search(&["(uid=p49)"]).1.is_empty(), "who is disabled is not shown");
    let group = search(&["(cn=all)"]).1;
    assert_eq!(group.matches("\nmember: uid=p0").count(), 2, "{group}");
    assert_eq!(group.matches("\nmember: ").count(), 2, "{group}");
    assert!(search(&["-b", "uid=p01,ou=people,dc=example,dc=org"]).1.contains("cn: Person 1"));
    for nowhere in
        ["uid=p99,ou=people,dc=example,dc=org", "dc=elsewhere", "uid=Person 1,ou=people,dc=example,dc=org"]
    {
        let (done, found) = search(&["-b", nowhere]);
        assert!(!done && found.contains("No such object"), "{nowhere}: {found}");
    }
    assert!(ldap.0.terminate(SOON).success());
}

#[test]
fn ldap_shows_what_the_directory_lets_somebody_read() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ldap = Ldap::start(folder.path(), &[("SCRINIUM_LDAP__LOOPBACK_WITHOUT_TLS", "true")]).with_people();
    let refused = |arguments: &[&str], why: &str| {
        let (done, found) = ldap.search(arguments);
        assert!(!done && found.contains(why) && !found.contains("uid:"), "{arguments:?}: {found}");
    };
    let person = ["-D", "p00@example.org", "-w", PASSWORD];
    // Who has not logged in sees the root entry alone.
    refused(&[], "Insufficient access");
    refused(&["-b", "cn=Subschema", "-s", "base"], "Insufficient access");
    let (_, root) = ldap.search(&["-b", "", "-s", "base", "namingContexts"]);
    assert!(root.contains(BASE), "{root}");
    // A name without a password is nobody's proof; a wrong one neither, and whether there is such a person is not said.
    refused(&["-D", "uid=admin,ou=people,dc=example,dc=org", "-w", ""], "unwilling to perform");
    refused(&["-D", "admin", "-w", "wrong"], "Invalid credentials");
    refused(&["-D", "nobody", "-w", "wrong"], "Invalid credentials");
    refused(&["-D", "p01", "-w", PASSWORD], "Invalid credentials");
    // The directory is closed until its access list says something else.
    refused(&person, "Insufficient access");
    let mut client = ldap.0.client();
    client.json("PUT", "/directory/_acl", &json!({"default": {"level": "reader"}})).unwrap().expect(201);
    let search = |filter: &str| ldap.search(&[&person[..], &[filter]].concat()).1;
    let found = search("(uid=p01)");
    assert!(found.contains("mail: Person.1@example.org") && !found.contains("argon2"), "{found}");
    // What somebody may not read is not there for them: in no search, and in no group.
    let mut hidden = client.get("/directory/person:p01").unwrap().expect(200).value();
    hidden["Readers"] = json!(["admin"]);
    client.json("PUT", "/directory/person:p01", &hidden).unwrap().expect(201);
    for filter in ["(uid=p01)", "(cn=Person 1)", "(mail=person.1@example.org)"] {
        assert_eq!(search(filter), "", "{filter}");
    }
    let group = search("(cn=all)");
    assert!(group.contains("member: uid=p00") && !group.contains("p01"), "{group}");
    // Who is disabled does not come in any more.
    let mut disabled: Value = client.get("/directory/person:p00").unwrap().expect(200).value();
    disabled["Disabled"] = json!(true);
    client.json("PUT", "/directory/person:p00", &disabled).unwrap().expect(201);
    assert!(!ldap.search(&person).0);
}

#[test]
fn passwords_of_ldap_take_tls() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ldap = Ldap::start(folder.path(), &[]);
    let admin = ["-D", "admin", "-w", PASSWORD, "-s", "one", "(ou=people)"];
    let (done, found) = ldap.search(&admin);
    assert!(!done && found.contains("Confidentiality required"), "{found}");
    let (done, found) = ldap.search(&[&["-ZZ"][..], &admin[..]].concat());
    assert!(done && found.contains("dn: ou=people"), "{found}");
    let (done, found) = ldap.ldapsearch("ldaps", &admin);
    assert!(done && found.contains("dn: ou=people"), "{found}");
    // SASL is not offered where others can read what follows.
    let mechanisms = ["-b", "", "-s", "base", "supportedSASLMechanisms"];
    assert!(!ldap.search(&mechanisms).1.contains("SCRAM"));
    assert!(ldap.ldapsearch("ldaps", &mechanisms).1.contains("SCRAM-SHA-256"));
}

#[test]
fn a_port_of_ldap_outlives_what_is_no_ldap() {
    let folder = tempfile::tempdir().unwrap();
    let mut ldap = Ldap::start(folder.path(), &[]);
    let before = ldap.0.resident_bytes();
    let start_tls = b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037";
    let root = b"\x30\x25\x02\x01\x01\x63\x20\x04\x00\x0a\x01\x00\x0a\x01\x00\x02\x01\x00\x02\x01\x00\x01\x01\x00\x87\x0bobjectClass\x30\x00";
    let hostile = [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0x30, 0x84, 0x7f, 0xff, 0xff, 0xff],
        vec![0x30; 5000],
        vec![0xff; 100],
        // Requests in the clear behind StartTLS may be somebody else's.
        [&start_tls[..], &root[..]].concat(),
        // Many that are answered at once, by one who takes nothing until the end.
        root.repeat(1000),
    ];
    for bytes in hostile {
        let mut stream = TcpStream::connect(ldap.address("ldap")).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        // The server may close before all is written.
        drop(stream.write_all(&bytes));
        drop(stream.shutdown(std::net::Shutdown::Write));
        let mut heard = Vec::new();
        drop(stream.take(8 << 20).read_to_end(&mut heard));
        assert!(heard.len() < bytes.len() * 100, "{} bytes for {}", heard.len(), bytes.len());
        assert!(!heard.windows(5).any(|text| text == b"admin"));
    }
    assert_eq!(ldap.0.client().get("/_up").unwrap().status, 200);
    let grown = ldap.0.resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "the server grew by {} MB", grown >> 20);
    assert!(!ldap.0.messages().contains("panicked"), "{}", ldap.0.messages());
    // One that says nothing does not keep the server from its end.
    let _idle = TcpStream::connect(ldap.address("ldap")).unwrap();
    assert!(ldap.0.terminate(SOON).success());
}

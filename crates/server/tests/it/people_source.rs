//! People and groups that are kept in step with OpenLDAP's server.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use scrinium_fault::{skip, wait_until};
use serde_json::{Value, json};

use crate::common::{Server, small_with, start_with};

const SLAPD: &str = "/usr/sbin/slapd";
const SCHEMA: &str = "/etc/ldap/schema";
const BASE: &str = "dc=example,dc=test";
/// People of the source; `SCRINIUM_PEOPLE=10000` for a long form, which says how long each step took.
fn people() -> usize {
    std::env::var("SCRINIUM_PEOPLE").ok().and_then(|number| number.parse().ok()).unwrap_or(60)
}

/// However loaded the machine is.
const SOON: Duration = Duration::from_secs(300);

/// The server, ended with the test.
struct Slapd(Child);

impl Drop for Slapd {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// People from number `first` on, with this title, and a group of all of them.
fn entries(first: usize, title: &str) -> String {
    let mut ldif =
        format!("dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\ndc: example\no: Example\n\n");
    let mut group = format!(
        "dn: cn=all,{BASE}\nobjectClass: groupOfNames\ncn: all\nentryUUID: 00000000-0000-4000-8000-00000000ffff\n"
    );
    for number in first..first + people() {
        let name = format!("uid=p{number},{BASE}");
        ldif += &format!(
            "dn: {name}\nobjectClass: inetOrgPerson\nuid: p{number}\ncn: Person {number}\nsn: {number}\ntitle: {title}\n\
             mail: p{number}@example.test\nuserPassword: secret{number}\nentryUUID: 00000000-0000-4000-8000-{number:012}\n\n"
        );
        group += &format!("member: {name}\n");
    }
    ldif + &group
}

fn slapd(folder: &Path, port: u16, ldif: &str) -> Slapd {
    let at = |name: &str| -> PathBuf { folder.join(name) };
    let schemas =
        ["core", "cosine", "inetorgperson"].map(|name| format!("include {SCHEMA}/{name}.schema\n")).concat();
    let database = at("slapd-database");
    drop(std::fs::remove_dir_all(&database));
    std::fs::create_dir(&database).unwrap();
    let configuration = format!(
        "{schemas}modulepath /usr/lib/ldap\nmoduleload back_mdb\nsizelimit 100\ndatabase mdb\nsuffix \"{BASE}\"\n\
         rootdn \"cn=admin,{BASE}\"\nrootpw secret\ndirectory {}\ndbnosync\n",
        database.display()
    );
    std::fs::write(at("slapd.conf"), configuration).unwrap();
    std::fs::write(at("people.ldif"), ldif).unwrap();
    // The tool that fills a database is the server itself by another name.
    let tool = ["-T", "add", "-q", "-f"];
    let filled =
        Command::new(SLAPD).args(tool).arg(at("slapd.conf")).arg("-l").arg(at("people.ldif")).output();
    let filled = filled.unwrap();
    assert!(filled.status.success(), "{}", String::from_utf8_lossy(&filled.stderr));
    let listen = format!("ldap://127.0.0.1:{port}");
    let mut serve = Command::new(SLAPD);
    serve.args(["-d", "0", "-h", &listen, "-f"]).arg(at("slapd.conf")).stderr(Stdio::null());
    let slapd = Slapd(serve.spawn().unwrap());
    wait_until("slapd", SOON, || TcpStream::connect(("127.0.0.1", port)).is_ok());
    slapd
}

fn get(server: &Server, id: &str) -> Value {
    server.client().get(&format!("/directory/{id}")).unwrap().value()
}

fn session_as(server: &Server, name: &str, password: &str) -> u16 {
    let login = json!({"name": name, "password": password});
    server.client_with("").json("POST", "/_session", &login).unwrap().status
}

/// Passwords are those of the source, but for who has one here.
fn check_log_ins(server: &Server) {
    for (name, password, status) in [
        ("p7", "secret7", 200),
        ("p7@example.test", "secret7", 200),
        ("p7", "secret8", 401),
        ("p8", "secret7", 401),
        ("p30", "secret30", 401),
    ] {
        assert_eq!(session_as(server, name, password), status, "{name} {password}");
    }
    let mut own = get(server, "person:p9");
    own["password"] = json!("a password of this server");
    server.client().json("PUT", "/directory/person:p9", &own).unwrap().expect(201);
    assert_eq!(session_as(server, "p9", "secret9"), 401);
    assert_eq!(session_as(server, "p9", "a password of this server"), 200);
}

#[test]
fn people_of_openldap_come_change_and_are_disabled_when_they_go() {
    if !Path::new(SLAPD).exists() {
        skip("slapd is not installed; scripts/peers brings it");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let first = slapd(folder.path(), port, &entries(0, "Engineer"));
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::write(folder.path().join("data/people_source.password"), "secret\n").unwrap();
    let keys = [
        ("SCRINIUM_PEOPLE_SOURCE__URL", format!("ldap://127.0.0.1:{port}")),
        ("SCRINIUM_PEOPLE_SOURCE__TLS", "off".to_owned()),
        ("SCRINIUM_PEOPLE_SOURCE__BIND_NAME", format!("cn=admin,{BASE}")),
        ("SCRINIUM_PEOPLE_SOURCE__BASE", BASE.to_owned()),
        ("SCRINIUM_PEOPLE_SOURCE__INTERVAL", "1s".to_owned()),
        ("SCRINIUM_PEOPLE_SOURCE__CHECK_PASSWORDS", "true".to_owned()),
    ];
    let mut server = start_with(folder.path(), &small_with(keys));
    let began = Instant::now();
    wait_until("everybody", SOON, || {
        get(&server, "group:all")["Members"].as_array().is_some_and(|all| all.len() == people())
    });
    eprintln!("{} people: in within {:?}", people(), began.elapsed());
    let person = get(&server, "person:p7");
    assert_eq!(
        (&person["JobTitle"], &person["InternetAddress"]),
        (&json!("Engineer"), &json!("p7@example.test"))
    );
    // An administrator's word stays.
    let mut disabled = get(&server, "person:p30");
    disabled["Disabled"] = json!(true);
    server.client().json("PUT", "/directory/person:p30", &disabled).unwrap().expect(201);

    check_log_ins(&server);

    drop(first);
    let _second = slapd(folder.path(), port, &entries(3, "Countess"));
    let began = Instant::now();
    wait_until("the changes", SOON, || get(&server, "person:p7")["JobTitle"] == "Countess");
    wait_until("who is gone", SOON, || get(&server, "person:p2")["Disabled"] == true);
    wait_until("who is new", SOON, || get(&server, &format!("person:p{}", people() + 2))["Form"] == "Person");
    eprintln!("{} people: changed and gone within {:?}", people(), began.elapsed());
    assert_eq!(get(&server, "person:p2")["DisabledBySource"], json!(true));
    let kept = get(&server, "person:p30");
    assert_eq!((&kept["Disabled"], &kept["DisabledBySource"]), (&json!(true), &Value::Null));
    let log_in = |name: &str| session_as(&server, name, "secret2");
    assert_eq!(log_in("p2"), 401, "who is gone there does not come in");
    assert!(server.messages().contains("brought in step"));
    server.terminate(SOON);
}

//! OpenLDAP's server as a source: people come, change and go.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use scrinium_ldap_wire::{
    Attribute, Authentication, BindRequest, Entry, Message, MessageId, MessageLimits, MessageReader,
    ModifyAction, ModifyRequest, Operation, Secret,
};
use scrinium_people_source::{
    Credentials, DirectoryKind, Encryption, Event, Outcome, Reading, SourceClient, SourceOptions,
    SourceRecords, Task, records_of,
};

const SLAPD: &str = "/usr/sbin/slapd";
const SCHEMA: &str = "/etc/ldap/schema";
const ADMINISTRATOR: &str = "cn=admin,dc=example,dc=test";
const PEOPLE: usize = 300;

/// The server, ended with the test.
struct Slapd {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Drop for Slapd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn entries() -> String {
    let mut ldif = "dn: dc=example,dc=test\nobjectClass: dcObject\nobjectClass: organization\ndc: example\no: Example\n\n".to_owned();
    let mut group = "dn: cn=all,dc=example,dc=test\nobjectClass: groupOfNames\ncn: all\n".to_owned();
    for number in 0..PEOPLE {
        let name = format!("uid=p{number},dc=example,dc=test");
        ldif += &format!(
            "dn: {name}\nobjectClass: inetOrgPerson\nuid: p{number}\ncn: Person {number}\nsn: {number}\n\
             mail: p{number}@example.test\nuserPassword: secret{number}\n\n"
        );
        group += &format!("member: {name}\n");
    }
    ldif + &group
}

impl Slapd {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let schemas = ["core", "cosine", "inetorgperson"]
            .map(|name| format!("include {SCHEMA}/{name}.schema\n"))
            .concat();
        let database = at("database");
        std::fs::create_dir(&database).unwrap();
        let configuration = format!(
            "{schemas}modulepath /usr/lib/ldap\nmoduleload back_mdb\nsizelimit 100\ndatabase mdb\n\
             suffix \"dc=example,dc=test\"\nrootdn \"{ADMINISTRATOR}\"\nrootpw secret\ndirectory {}\ndbnosync\n",
            database.display()
        );
        std::fs::write(at("slapd.conf"), configuration).unwrap();
        std::fs::write(at("people.ldif"), entries()).unwrap();
        // The tool that fills a database is the server itself by another name.
        let filled = Command::new(SLAPD)
            .args(["-T", "add", "-q", "-f"])
            .arg(at("slapd.conf"))
            .arg("-l")
            .arg(at("people.ldif"))
            .output();
        let filled = filled.unwrap();
        assert!(filled.status.success(), "{}", String::from_utf8_lossy(&filled.stderr));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(SLAPD)
            .args(["-d", "0", "-h", &format!("ldap://127.0.0.1:{port}"), "-f"])
            .arg(at("slapd.conf"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, port, _folder: folder }
    }

    fn connect(&self) -> TcpStream {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            match TcpStream::connect(("127.0.0.1", self.port)) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                    return stream;
                }
                Err(error) => assert!(Instant::now() < end, "slapd does not listen: {error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn run(&self, name: &str, password: &str, task: Task) -> Vec<Event> {
        let options = SourceOptions {
            kind: DirectoryKind::Standard,
            encryption: Encryption::None,
            allows_clear_password: true,
            credentials: Credentials::Simple { name: name.to_owned(), password: Secret(password.into()) },
            base: "dc=example,dc=test".to_owned(),
            filter: DirectoryKind::Standard.filter(),
            page_size: 50,
            entries_max: 10_000,
            values_max: 10_000,
            limits: MessageLimits::CLIENT,
        };
        let (mut stream, mut client) = (self.connect(), SourceClient::new(options, task).unwrap());
        client.connected().unwrap();
        let (mut events, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            stream.write_all(&client.take_output()).unwrap();
            if client.is_over() {
                return events;
            }
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "slapd closed the connection");
            let mut rest = &buffer[..count];
            loop {
                let (taken, event) = client.receive(rest).unwrap();
                rest = &rest[taken..];
                let is_silent = event.is_none();
                events.extend(event);
                if rest.is_empty() && is_silent {
                    break;
                }
            }
        }
    }

    fn read(&self, reading: Reading) -> (Vec<Entry>, Outcome) {
        let mut events = self.run(ADMINISTRATOR, "secret", Task::Read(reading));
        let Some(Event::Done(outcome)) = events.pop() else { panic!("it is over") };
        let entries = events
            .into_iter()
            .filter_map(|event| if let Event::Entry(entry) = event { Some(entry) } else { None });
        (entries.collect(), outcome)
    }

    /// Changes entries as an administrator there does.
    fn change(&self, operations: Vec<Operation>) {
        let (mut stream, mut reader) = (self.connect(), MessageReader::new(1 << 20));
        let authentication = Authentication::Simple(Secret(b"secret".to_vec()));
        let bind = BindRequest { version: 3, name: ADMINISTRATOR.to_owned(), authentication };
        let mut id = MessageId::UNSOLICITED;
        for operation in [vec![Operation::Bind(bind)], operations].concat() {
            id = id.next();
            stream.write_all(&Message::new(id, operation).to_bytes()).unwrap();
            let mut byte = [0];
            let answer = loop {
                stream.read_exact(&mut byte).unwrap();
                if let (_, Some(whole)) = reader.read(&byte).unwrap() {
                    break Message::parse(&whole, MessageLimits::CLIENT).unwrap();
                }
            };
            let result = answer.operation.result().unwrap();
            assert!(result.is_success(), "{result:?}");
        }
    }
}

fn records(entries: &[Entry]) -> SourceRecords {
    let records = records_of(entries, DirectoryKind::Standard);
    assert_eq!(records.left_out, []);
    records
}

#[test]
fn people_of_openldap_come_change_and_go() {
    if !Path::new(SLAPD).exists() || !Path::new(SCHEMA).exists() {
        return scrinium_fault::skip("there is no slapd here; scripts/peers brings it");
    }
    let slapd = Slapd::start();
    let (entries, first) = slapd.read(Reading::All);
    let all = records(&entries);
    // More than the server gives at once without pages.
    assert_eq!((all.people.len(), all.groups.len(), all.groups[0].members.len()), (PEOPLE, 1, PEOPLE));

    let title = Attribute::texts("title", ["Countess"]);
    let new = Entry::new("uid=new,dc=example,dc=test")
        .with("objectClass", ["inetOrgPerson"])
        .with("cn", ["Néw"])
        .with("sn", ["N"]);
    let change = ModifyRequest {
        name: "uid=p7,dc=example,dc=test".to_owned(),
        changes: vec![(ModifyAction::Replace, title)],
    };
    slapd.change(vec![
        Operation::Modify(change),
        Operation::Add(new.with("uid", ["new"])),
        Operation::Delete("uid=p8,dc=example,dc=test".to_owned()),
    ]);
    let (entries, second) = slapd.read(Reading::ChangedSince(first.mark.unwrap()));
    let changed: Vec<String> = records(&entries).people.into_iter().map(|person| person.short_name).collect();
    assert!(["p7", "new"].iter().all(|name| changed.iter().any(|one| one == name)), "{changed:?}");
    assert!(!second.is_complete && second.mark.is_some());
    let (entries, _) = slapd.read(Reading::Identities);
    assert_eq!(entries.len(), PEOPLE + 1);
    let mut known: Vec<&str> = all.people.iter().map(|person| person.identity.as_str()).collect();
    known.retain(|identity| !entries.iter().any(|entry| entry.text("entryUUID") == Some(*identity)));
    let gone: Vec<&str> = all
        .people
        .iter()
        .filter(|person| known.contains(&person.identity.as_str()))
        .map(|person| person.short_name.as_str())
        .collect();
    assert_eq!(gone, ["p8"]);

    let check = |password| slapd.run("uid=p7,dc=example,dc=test", password, Task::CheckPassword);
    assert_eq!(check("secret7"), [Event::PasswordChecked(true)]);
    assert_eq!(check("secret8"), [Event::PasswordChecked(false)]);
}

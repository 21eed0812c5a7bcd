//! A server with ports for mail and two people, for tests that send to it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Client, SMALL, Server};

/// Ada's password; Bob has none, and only gets mail.
pub const SECRET: &str = "a secret of Ada's";

const DELIVERED_WITHIN: Duration = Duration::from_secs(60);

/// Starts it, with ports for SMTP, LMTP and submission.
pub struct MailServer {
    pub server: Server,
    pub certificate: PathBuf,
}

pub const PORTS: [(&str, &str); 5] = [
    ("SCRINIUM_MAIL__DOMAINS", "acme.example"),
    ("SCRINIUM_SMTP__LISTEN", "127.0.0.1:0"),
    ("SCRINIUM_LMTP__LISTEN", "127.0.0.1:0"),
    ("SCRINIUM_SUBMISSION__LISTEN", "127.0.0.1:0"),
    ("SCRINIUM_SUBMISSION__TLS_LISTEN", "127.0.0.1:0"),
];

impl MailServer {
    pub fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    pub fn start_with(folder: &Path, more: &[(&str, &str)]) -> Self {
        let server = Server::start(folder, &[&SMALL[..], &PORTS, more].concat());
        let mut client = server.client();
        for (name, password) in [("ada", Some(SECRET)), ("bob", None)] {
            let mut person = json!({"_id": format!("person:{name}"), "Form": "Person", "ShortName": name,
                "FullName": [format!("{name} Someone")]});
            if let Some(password) = password {
                person["password"] = json!(password);
            }
            client.json("PUT", &format!("/directory/person:{name}"), &person).unwrap().expect(201);
        }
        Self { server, certificate: folder.join("data/tls/certificate.pem") }
    }

    /// Where a protocol listens: `smtp`, `lmtp`, `submission` or `submissions`.
    pub fn port(&self, protocol: &str) -> u16 {
        let messages = self.server.messages();
        let url = format!("listening url={protocol}://127.0.0.1:");
        let line = messages.lines().find_map(|line| line.split_once(&url)).unwrap();
        line.1.trim().parse().unwrap()
    }

    /// Bob's messages by their subjects, once there are this many: how many have it.
    pub fn mail_of_bob(&self, wanted: usize) -> BTreeMap<String, usize> {
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for document in self.await_bob(wanted) {
            let subject = document["Subject"].as_str().unwrap_or_default().to_owned();
            *found.entry(subject).or_default() += 1;
        }
        found
    }

    /// Id and return path of each of Bob's messages, once there are this many.
    pub fn sources_of_bob(&self, wanted: usize) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let found = self.await_bob(wanted);
        found.iter().map(|memo| (text(&memo["_id"]), text(&memo["$ReturnPath"]))).collect()
    }

    fn await_bob(&self, wanted: usize) -> Vec<Value> {
        let mut client = self.server.client();
        let began = Instant::now();
        loop {
            let found = memos(&mut client);
            if found.len() >= wanted {
                return found;
            }
            let count = found.len();
            assert!(began.elapsed() < DELIVERED_WITHIN, "{count} of {wanted} messages have come");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn memos(client: &mut Client) -> Vec<Value> {
    let answer = client.get("/mail%2Fbob/_all_docs?include_docs=true").unwrap();
    if answer.status == 404 {
        // Nothing arrived yet.
        return Vec::new();
    }
    let answer = answer.expect(200).value();
    let rows = answer["rows"].as_array().unwrap().iter();
    rows.map(|row| row["doc"].clone()).filter(|document| document["Form"] == "Memo").collect()
}

/// One message over a socket of the file system; the code of the last reply.
fn hand_in_by_file(path: &Path) -> String {
    let stream = std::os::unix::net::UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(DELIVERED_WITHIN)).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut last = || loop {
        let line = lines.next().unwrap().unwrap();
        if line.as_bytes().get(3) != Some(&b'-') {
            return line;
        }
    };
    assert!(last().starts_with("220"));
    let commands =
        ["LHLO front.example", "MAIL FROM:<eve@far.example>", "RCPT TO:<bob@acme.example>", "DATA"];
    for command in commands.into_iter().chain(["Subject: by file\r\n\r\nText.\r\n."]) {
        (&stream).write_all(format!("{command}\r\n").as_bytes()).unwrap();
        let reply = last();
        assert!(reply.starts_with('2') || reply.starts_with("354"), "{command}: {reply}");
        if command.starts_with("Subject") {
            return reply;
        }
    }
    String::new()
}

#[test]
fn a_server_in_front_hands_in_by_a_socket_also_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("data/lmtp");
    let more = [("SCRINIUM_LMTP__SOCKET", "lmtp")];
    let mut mail = MailServer::start_with(folder.path(), &more);
    assert!(mail.server.messages().contains("lmtp+unix:"));
    assert!(hand_in_by_file(&socket).starts_with("250"));
    mail.server.kill();
    assert!(socket.exists(), "a killed server leaves it");
    mail.server = Server::start(folder.path(), &[&SMALL[..], &PORTS, &more].concat());
    assert!(hand_in_by_file(&socket).starts_with("250"));
    assert_eq!(mail.mail_of_bob(2).get("by file"), Some(&2));
    assert!(mail.server.terminate(Duration::from_secs(30)).success());
    assert!(!socket.exists());
}

//! Inboxes read and emptied by POP3, and what strangers can do to the ports of mail programs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::imap::{IMAP, Talker};
use crate::mail_ports::{MailServer, SECRET};

const POP3: [(&str, &str); 2] =
    [("SCRINIUM_POP3__LISTEN", "127.0.0.1:0"), ("SCRINIUM_POP3__LOOPBACK_WITHOUT_TLS", "true")];

/// However loaded the machine is.
const WITHIN: Duration = Duration::from_secs(60);

fn start(folder: &std::path::Path) -> MailServer {
    MailServer::start_with(folder, &[IMAP, POP3].concat())
}

fn connect(mail: &MailServer, protocol: &str) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", mail.port(protocol))).unwrap();
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    BufReader::new(stream)
}

/// Sends lines, and gives the first line of each answer.
fn say(stream: &mut BufReader<TcpStream>, line: &str) -> String {
    stream.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_line(&mut answer).unwrap();
    answer.trim_end().to_owned()
}

fn logged_in(mail: &MailServer) -> BufReader<TcpStream> {
    let mut stream = connect(mail, "pop3");
    let mut greeting = String::new();
    stream.read_line(&mut greeting).unwrap();
    assert!(greeting.starts_with("+OK"), "{greeting}");
    assert!(say(&mut stream, "USER ada").starts_with("+OK"));
    assert!(say(&mut stream, &format!("PASS {SECRET}")).starts_with("+OK"));
    stream
}

#[test]
fn pythons_own_client_fetches_and_deletes() {
    let folder = tempfile::tempdir().unwrap();
    let mail = start(folder.path());
    let mut ada = Talker::logged_in(&mail, "ada", SECRET);
    let first =
        format!("Subject: one\r\nFrom: a@x.test\r\n\r\n.dot\r\n..two\r\n{}", "line\r\n".repeat(40_000));
    let second = "Subject: two\r\n\r\nsecond\r\nthird\r\nfourth\r\n";
    for message in [first.as_str(), second] {
        ada.ask(&format!("APPEND INBOX {{{}+}}\r\n{message}", message.len()));
    }
    let output = Command::new("python3")
        .args(["-c", include_str!("mail_programs/poplib.txt")])
        .args([mail.port("pop3").to_string().as_str(), SECRET])
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        println!("left out: there is no python3");
        return;
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && said.ends_with("done\n"), "{said}\n{complained}");
}

#[test]
fn what_quit_has_confirmed_is_gone_after_a_kill_and_a_memo_without_a_source_is_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let mut mail = start(folder.path());
    let mut ada = Talker::logged_in(&mail, "ada", SECRET);
    for number in 1..=3 {
        let message = format!("Subject: {number}\r\n\r\n{number}\r\n");
        ada.ask(&format!("APPEND INBOX {{{}+}}\r\n{message}", message.len()));
    }
    let memo = json!({"_id": "memo", "Form": "Memo", "From": "bob", "SendTo": ["ada"], "Subject": "Grün", "Body": "x"});
    let mut client = mail.server.client();
    client.json("PUT", "/mail%2Fada/memo", &memo).unwrap().expect(201);
    client.json("POST", "/mail%2Fada/_folder/Inbox", &json!({"add": ["memo"]})).unwrap();
    let mut pop = logged_in(&mail);
    // What comes, and what leaves, while a session has the inbox.
    let message = "Subject: late\r\n\r\nlate\r\n";
    ada.ask(&format!("APPEND INBOX {{{}+}}\r\n{message}", message.len()));
    ada.ask("SELECT INBOX");
    ada.ask("STORE 1 +FLAGS (\\Deleted)");
    ada.ask("EXPUNGE");
    assert!(say(&mut pop, "RETR 5").starts_with("-ERR"));
    assert!(say(&mut pop, "RETR 1").starts_with("-ERR"));
    assert!(say(&mut pop, "LIST 2").starts_with("+OK 2 "));
    assert!(say(&mut pop, "TOP 4 0").starts_with("+OK"));
    let mut lines = String::new();
    while !lines.ends_with("\r\n.\r\n") {
        pop.read_line(&mut lines).unwrap();
    }
    assert!(lines.contains("Subject: =?utf-8?"), "{lines}");
    assert!(say(&mut pop, "DELE 2").starts_with("+OK"));
    assert!(say(&mut pop, "DELE 4").starts_with("+OK"));
    assert!(say(&mut pop, "QUIT").starts_with("+OK"));
    mail.server.kill();
    let environment = [&crate::common::SMALL[..], &crate::mail_ports::PORTS, &IMAP, &POP3].concat();
    mail.server = crate::common::Server::start(folder.path(), &environment);
    let mut pop = logged_in(&mail);
    assert!(say(&mut pop, "STAT").starts_with("+OK 2 "));
    assert!(say(&mut pop, "TOP 1 0").starts_with("+OK"));
    let mut lines = String::new();
    while !lines.ends_with("\r\n.\r\n") {
        pop.read_line(&mut lines).unwrap();
    }
    assert!(lines.contains("Subject: 3"), "{lines}");
}

/// What a client may send that means no good, for each protocol.
fn hostile(protocol: &str) -> Vec<Vec<u8>> {
    let mut all = vec![
        vec![0; 100_000],
        vec![b'A'; 1 << 20],
        b"\r\n".repeat(50_000),
        b"\n\n\r\r\r\n\x00\xff\xfe \r\n".repeat(1000),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03],
    ];
    // Bytes that look like chance, and are the same each time.
    let mut state = 0x9e37_79b9_u32;
    let mut noise = |count: usize| -> Vec<u8> {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        (0..count).map(|_| next()).collect()
    };
    all.extend((1..=8).map(|size| noise(size * 5000)));
    if protocol == "imap" {
        for text in [
            "a LOGIN {4294967295}\r\n",
            "a LOGIN {99999999999999999999}\r\n",
            "a LOGIN {8000+}\r\n",
            "a APPEND INBOX {50000000+}\r\n",
            "a AUTHENTICATE PLAIN\r\n=\r\n",
            "a SEARCH ((((((((((((((((((((((((((((((((((((((((((((((((((((((\r\n",
        ] {
            all.push(text.as_bytes().to_vec());
        }
        all.push(b"a LOGIN ada wrong\r\nb SELECT INBOX\r\nc FETCH 1:* BODY[]\r\n".repeat(200));
        all.push([b"a ID (".as_slice(), &b"\"x\" \"y\" ".repeat(20_000), b")\r\n"].concat());
    } else {
        all.push(b"USER ada\r\nPASS wrong\r\nRETR 1\r\nDELE 1\r\nQUIT\r\n".repeat(200));
        all.push(b"AUTH PLAIN\r\n=\r\nAUTH SCRAM-SHA-256\r\n*\r\n".repeat(200));
        all.push([b"AUTH PLAIN ".as_slice(), &vec![b'A'; 100_000], b"\r\n"].concat());
    }
    all
}

#[test]
fn strangers_who_mean_no_good_are_sent_away_and_others_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let mail = start(folder.path());
    for protocol in ["imap", "pop3"] {
        for bytes in hostile(protocol) {
            let mut stream = connect(&mail, protocol);
            // It may be closed before all is sent.
            drop(stream.get_mut().write_all(&bytes));
            drop(stream.get_mut().shutdown(std::net::Shutdown::Write));
            let mut answer = Vec::new();
            drop(stream.read_to_end(&mut answer));
            assert!(answer.len() < 1 << 20, "{protocol} has answered {} bytes", answer.len());
            let text = String::from_utf8_lossy(&answer);
            assert!(!text.contains("BODY[]") && !text.contains("+OK 0 messages"), "{protocol}: {text}");
        }
    }
    // Who asks for much and takes nothing holds up nobody.
    let mut ada = Talker::logged_in(&mail, "ada", SECRET);
    let message = "x".repeat(1 << 20);
    ada.ask(&format!("APPEND INBOX {{{}+}}\r\n{message}", message.len()));
    let mut slow = Talker::logged_in(&mail, "ada", SECRET);
    slow.ask("SELECT INBOX");
    for number in 0..500 {
        slow.send(&format!("s{number} FETCH 1 BODY.PEEK[]\r\n"));
    }
    assert!(ada.ask("SELECT INBOX").iter().any(|line| line == "* 1 EXISTS"));
    assert!(say(&mut logged_in(&mail), "STAT").starts_with("+OK 1 "));
    let console = mail.server.messages();
    assert!(!console.contains("panicked"), "{console}");
}

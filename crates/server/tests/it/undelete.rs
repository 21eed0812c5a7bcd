//! Deleted mail is not gone: expunged by IMAP, fetched and deleted by POP3, deleted over HTTP, the server killed, and had back.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::common::{Client, SMALL, Server, answer, beside};
use crate::imap::{IMAP, Talker};
use crate::mail_ports::{MailServer, PORTS, SECRET};

const POP3: [(&str, &str); 2] =
    [("SCRINIUM_POP3__LISTEN", "127.0.0.1:0"), ("SCRINIUM_POP3__LOOPBACK_WITHOUT_TLS", "true")];

fn console(client: &mut Client, command: &str) -> Result<Value, String> {
    let answer = client.json("POST", "/_console", &json!({"command": command})).unwrap();
    if answer.status == 200 { Ok(answer.value()["data"].clone()) } else { Err(answer.text()) }
}

fn append(ada: &mut Talker, mailbox: &str, subject: &str) {
    let message =
        format!("Subject: {subject}\r\nMessage-ID: <{subject}@x.test>\r\nFrom: a@x.test\r\n\r\nText.\r\n");
    let date = "\"02-Mar-2020 10:00:00 +0100\"";
    ada.ask(&format!("APPEND {mailbox} (\\Flagged \\Seen work) {date} {{{}+}}\r\n{message}", message.len()));
}

/// Flags, date and subject of all messages of a mailbox.
fn fetched(ada: &mut Talker, mailbox: &str) -> Vec<String> {
    ada.ask(&format!("SELECT {mailbox}"));
    let lines = ada.ask("FETCH 1:* (FLAGS INTERNALDATE BODY.PEEK[HEADER.FIELDS (SUBJECT)])");
    let mut told: Vec<String> = lines.iter().filter(|line| !line.starts_with('t')).cloned().collect();
    told.retain(|line| line.contains("FLAGS") || line.contains("Subject"));
    told
}

fn delete_by_pop3(mail: &MailServer, number: u32) {
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", mail.port("pop3"))).unwrap());
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    for command in ["USER ada", &format!("PASS {SECRET}"), &format!("DELE {number}"), "QUIT"] {
        stream.get_mut().write_all(format!("{command}\r\n").as_bytes()).unwrap();
        line.clear();
        stream.read_line(&mut line).unwrap();
        assert!(line.starts_with("+OK"), "{command}: {line}");
    }
}

fn messages(shown: &Value) -> Vec<String> {
    let all = shown["messages"].as_array().unwrap().iter();
    all.map(|message| message["subject"].as_str().unwrap_or_default().to_owned()).collect()
}

fn settings() -> Vec<(&'static str, &'static str)> {
    [&SMALL[..], &PORTS, &IMAP, &POP3].concat()
}

/// Nobody but an administrator sees or restores anything; and it shows nowhere.
fn nobody_else_sees_it(server: &Server) {
    let login = json!({"name": "ada", "password": SECRET});
    let answer = server.client_with("").json("POST", "/_session", &login).unwrap().expect(200);
    let mut own = server.client_with(answer.header("set-cookie").unwrap().split(';').next().unwrap());
    for client in [&mut own, &mut server.client_with("")] {
        console(client, "show deleted ada").unwrap_err();
        console(client, "undelete ada all").unwrap_err();
    }
    let rows = own.get("/mail%2Fada/_all_docs").unwrap().expect(200).value();
    assert_eq!(rows["rows"], json!([]), "{rows}");
}

/// By folder, age and Message-ID; and what is no question.
fn shown_by(admin: &mut Client) {
    let mut of = |rest: &str| messages(&console(admin, &format!("show deleted ada {rest}")).unwrap());
    assert_eq!(of("folder=work"), ["three"]);
    assert_eq!(of("message=<two@x.test>"), ["two"]);
    assert_eq!(of("since=1h").len(), 3);
    assert!(of("until=1h").is_empty());
    assert_eq!(of("count=1").len(), 1);
    for wrong in ["", "eve", "ada since=yesterday", "ada count=0", "ada from=1", "ada bob", "database=none"] {
        console(admin, &format!("show deleted {wrong}")).unwrap_err();
        console(admin, &format!("undelete {wrong} all")).unwrap_err();
    }
    console(admin, "undelete ada 1:1-a:b").unwrap_err();
}

#[test]
fn mail_that_was_deleted_in_any_way_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let mut mail = MailServer::start_with(folder.path(), &[IMAP, POP3].concat());
    let mut ada = Talker::logged_in(&mail, "ada", SECRET);
    ada.ask("CREATE Work");
    append(&mut ada, "INBOX", "one");
    append(&mut ada, "INBOX", "two");
    append(&mut ada, "Work", "three");
    let before = (fetched(&mut ada, "Work"), fetched(&mut ada, "INBOX"));
    // Expunged by IMAP, with its folder, which goes as well; and by POP3.
    ada.ask("DELETE Work");
    ada.ask("UID STORE 1 +FLAGS.SILENT (\\Deleted)");
    ada.ask("EXPUNGE");
    ada.ask("LOGOUT");
    delete_by_pop3(&mail, 1);
    nobody_else_sees_it(&mail.server);

    // A kill loses nothing of it.
    mail.server.kill();
    mail.server = Server::start(folder.path(), &settings());
    let mut admin = mail.server.client();
    let shown = console(&mut admin, "show deleted ada").unwrap();
    let mut subjects = messages(&shown);
    subjects.sort_unstable();
    assert_eq!(subjects, ["one", "three", "two"]);
    assert_eq!(shown["kept"]["messages"], 3);
    shown_by(&mut admin);

    // One by its id, on the command line; then all that are left.
    let id = shown["messages"][0]["id"].as_str().unwrap().to_owned();
    let words = ["--json", "mail", "undelete", "ada", &id];
    let output =
        beside(folder.path(), settings(), &mail.server.address().to_string(), &words).output().unwrap();
    assert_eq!(answer(&output)["restored"].as_array().unwrap().len(), 1);
    assert_eq!(console(&mut admin, "undelete ada all").unwrap()["restored"].as_array().unwrap().len(), 2);
    assert_eq!(console(&mut admin, "undelete ada all").unwrap()["restored"], json!([]));
    let mut ada = Talker::logged_in(&mail, "ada", SECRET);
    assert_eq!(fetched(&mut ada, "Work"), before.0);
    let sorted = |mut lines: Vec<String>| {
        let flags = lines.iter_mut().filter(|line| line.contains("FLAGS"));
        flags.for_each(|line| *line = line.split_once('(').unwrap().1.to_owned());
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(fetched(&mut ada, "INBOX")), sorted(before.1));
    crate::mail_search::await_audit(&mut admin, &["mail restored", "mail file opened"]);
}

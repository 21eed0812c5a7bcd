//! Mail brought from another server by IMAP; the other server is this one, for whom it is like any.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use scrinium_fault::wait_until;
use serde_json::{Value, json};

use crate::common::{answer, beside};
use crate::imap::{IMAP, Talker};
use crate::mail_ports::{MailServer, SECRET};

const MAILBOXES: [&str; 3] = ["INBOX", "Arbeit/2026", "Sent"];
const COUNT: usize = 90;

fn message(number: usize) -> String {
    let body = "a line of it\r\n".repeat(number % 40);
    format!(
        "From: a{number}@far.example\r\nSubject: number {number}.\r\nMessage-ID: <{number}@x>\r\n\r\n{body}"
    )
}

fn fill(talker: &mut Talker) {
    talker.ask("CREATE Arbeit/2026");
    for number in 0..COUNT {
        let flags = ["", "\\Seen", "\\Flagged $Work", "\\Answered \\Seen"][number % 4];
        let text = message(number);
        let mailbox = MAILBOXES[number % 3];
        let date = "\"17-Jul-1996 02:44:25 -0700\"";
        talker.ask(&format!("APPEND {mailbox} ({flags}) {date} {{{}+}}\r\n{text}", text.len()));
    }
}

/// What a mail program sees of each mailbox, but for UIDs: sorted, since copies need not be in the same order.
fn seen(mail: &MailServer, name: &str) -> BTreeMap<&'static str, Vec<String>> {
    let mut talker = Talker::logged_in(mail, name, SECRET);
    let mut of = |mailbox: &str| {
        talker.ask(&format!("EXAMINE {mailbox}"));
        let fetched = talker.ask("FETCH 1:* (FLAGS INTERNALDATE RFC822.SIZE BODY.PEEK[])");
        let text = fetched.join("\n");
        let mut all: Vec<String> = text
            .split(" FETCH ")
            .skip(1)
            .map(|one| one.split("\n* ").next().unwrap_or(one).to_owned())
            .collect();
        all.iter_mut().for_each(|one| one.truncate(one.rfind("\n)").unwrap_or(one.len())));
        all.sort();
        all
    };
    MAILBOXES.iter().map(|mailbox| (*mailbox, of(mailbox))).collect()
}

struct Case<'c> {
    mail: &'c MailServer,
    folder: &'c std::path::Path,
}

impl Case<'_> {
    fn command(&self, more: &[&str]) -> Command {
        let host = format!("localhost:{}", self.mail.port("imaps"));
        let certificate = self.mail.certificate.display().to_string();
        let url = format!("http://{}", self.mail.server.address());
        let own = ["import", "imap", &host, "--authority", &certificate, "--url", &url, "--json"];
        let none: [(&str, &str); 0] = [];
        beside(self.folder, none, &self.mail.server.address().to_string(), &[&own[..], more].concat())
    }

    fn with_password(&self, more: &[&str], password: &str) -> Output {
        let mut command = self.command(more);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // One that refuses to begin does not read it.
        drop(child.stdin.take().unwrap().write_all(format!("{password}\n").as_bytes()));
        child.wait_with_output().unwrap()
    }
}

fn server(folder: &std::path::Path) -> MailServer {
    let tls = [("SCRINIUM_IMAP__TLS_LISTEN", "127.0.0.1:0")];
    let mail = MailServer::start_with(folder, &[&IMAP[..], &tls].concat());
    let mut client = mail.server.client();
    let mut bob: Value = client.get("/directory/person:bob").unwrap().value();
    bob["password"] = json!(SECRET);
    client.json("PUT", "/directory/person:bob", &bob).unwrap().expect(201);
    fill(&mut Talker::logged_in(&mail, "ada", SECRET));
    mail
}

#[test]
fn mail_comes_with_folders_flags_and_dates_and_once_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mail = server(folder.path());
    let case = Case { mail: &mail, folder: folder.path() };
    let table = folder.path().join("people.csv");
    fs::write(&table, format!("person,user,password\nbob,ada,\"{SECRET}\"\n")).unwrap();
    let table = table.display().to_string();
    let mut killed = case.command(&["--people", &table]);
    let mut child = killed.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut client = mail.server.client();
    let mut has_begun = || {
        let found = client.get("/mail%2Fbob").unwrap();
        found.status == 200 && found.value()["doc_count"].as_u64().unwrap() > 0
    };
    wait_until("the first of them", Duration::from_secs(60), || {
        has_begun() || child.try_wait().unwrap().is_some()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    answer(&case.command(&["--people", &table]).output().unwrap());
    assert_eq!(seen(&mail, "ada"), seen(&mail, "bob"));
    let again = answer(&case.command(&["--people", &table]).output().unwrap());
    assert_eq!(again["people"][0]["messages"], 0, "{again}");
    // What comes there later is brought by the next round, and what was deleted here stays deleted.
    let mut bob = Talker::logged_in(&mail, "bob", SECRET);
    bob.ask("SELECT Sent");
    bob.ask("STORE 1:* +FLAGS.SILENT (\\Deleted)");
    bob.ask("EXPUNGE");
    Talker::logged_in(&mail, "ada", SECRET).ask("APPEND Sent {16+}\r\nSubject: later\r\n");
    let later = answer(&case.with_password(&["--person", "bob", "--login", "ada"], SECRET));
    assert_eq!((&later["people"][0]["added"], seen(&mail, "bob")["Sent"].len()), (&json!(1), 1), "{later}");
}

#[test]
fn what_cannot_be_trusted_or_is_refused_brings_nothing_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let mail = server(folder.path());
    let case = Case { mail: &mail, folder: folder.path() };
    let person = ["--person", "bob", "--login", "ada"];
    let refused = case.with_password(&person, "wrong");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("it refuses the log-in"), "{refused:?}");
    let host = format!("localhost:{}", mail.port("imaps"));
    let url = format!("http://{}", mail.server.address());
    let none: [(&str, &str); 0] = [];
    let listen = mail.server.address().to_string();
    let table = folder.path().join("people.csv");
    fs::write(&table, format!("person,user,password\nbob,ada,\"{SECRET}\"\n")).unwrap();
    let table = table.display().to_string();
    let untrusted = ["import", "imap", &host, "--url", &url, "--people", &table];
    let output = beside(folder.path(), none, &listen, &untrusted).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no TLS with localhost"), "{output:?}");
}

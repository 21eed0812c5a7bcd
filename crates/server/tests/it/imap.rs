//! Mail databases read and changed by IMAP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::mail_ports::{MailServer, SECRET};

pub const IMAP: [(&str, &str); 2] =
    [("SCRINIUM_IMAP__LISTEN", "127.0.0.1:0"), ("SCRINIUM_IMAP__LOOPBACK_WITHOUT_TLS", "true")];

/// However loaded the machine is.
const WITHIN: Duration = Duration::from_secs(60);

/// A mail client that says what a test gives it.
pub struct Talker {
    stream: BufReader<TcpStream>,
    count: u32,
}

impl Talker {
    fn connect(mail: &MailServer) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", mail.port("imap"))).unwrap();
        stream.set_read_timeout(Some(WITHIN)).unwrap();
        let mut talker = Self { stream: BufReader::new(stream), count: 0 };
        assert!(talker.line().starts_with("* OK"));
        talker
    }

    pub fn logged_in(mail: &MailServer, name: &str, password: &str) -> Self {
        let mut talker = Self::connect(mail);
        talker.ask(&format!("LOGIN {name} \"{password}\""));
        talker
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        assert!(self.stream.read_until(b'\n', &mut line).unwrap() > 0, "the connection ended");
        String::from_utf8_lossy(&line).trim_end().to_owned()
    }

    fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// All that is answered, the tagged line last.
    pub fn answers(&mut self, command: &str) -> Vec<String> {
        self.count += 1;
        let tag = format!("t{} ", self.count);
        self.send(&format!("{tag}{command}\r\n"));
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            // A literal is read whole, as one more line.
            let literal = line.rsplit_once('{').and_then(|(_, rest)| rest.strip_suffix('}')?.parse().ok());
            let is_last = line.starts_with(&tag);
            lines.push(line);
            if let Some(bytes) = literal {
                let mut content = vec![0; bytes];
                self.stream.read_exact(&mut content).unwrap();
                lines.push(String::from_utf8_lossy(&content).into_owned());
            }
            if is_last {
                return lines;
            }
        }
    }

    /// The same of a command that succeeds.
    pub fn ask(&mut self, command: &str) -> Vec<String> {
        let lines = self.answers(command);
        assert!(lines.last().unwrap().contains(" OK "), "{command}: {lines:?}");
        lines
    }

    fn refused(&mut self, command: &str) -> String {
        let last = self.answers(command).pop().unwrap();
        assert!(last.contains(" NO ") || last.contains(" BAD "), "{command}: {last}");
        last
    }
}

fn send_by_smtp(mail: &MailServer, to: &str, subject: &str) {
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", mail.port("smtp"))).unwrap());
    let text =
        format!("HELO x.example\r\nMAIL FROM:<eve@far.example>\r\nRCPT TO:<{to}@acme.example>\r\nDATA\r\n");
    stream.get_mut().write_all(text.as_bytes()).unwrap();
    let mut line = String::new();
    while !line.starts_with("354") {
        line.clear();
        stream.read_line(&mut line).unwrap();
    }
    let text = format!("From: eve@far.example\r\nSubject: {subject}\r\n\r\nHello\r\n.\r\nQUIT\r\n");
    stream.get_mut().write_all(text.as_bytes()).unwrap();
    stream.read_line(&mut line).unwrap();
    assert!(line.contains("250"), "{line}");
}

#[test]
fn pythons_own_client_gets_what_it_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &IMAP);
    let output = Command::new("python3")
        .args(["-c", include_str!("mail_programs/imaplib.txt")])
        .args([mail.port("imap").to_string().as_str(), SECRET])
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
fn mail_that_comes_is_told_to_a_client_that_waits_and_each_knows_what_the_other_does() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &IMAP);
    let mut waiting = Talker::logged_in(&mail, "ada", SECRET);
    waiting.ask("SELECT INBOX");
    waiting.send("i IDLE\r\n");
    assert!(waiting.line().starts_with('+'));
    for number in 1..=3 {
        send_by_smtp(&mail, "ada", &format!("number {number}"));
        loop {
            if waiting.line() == format!("* {number} EXISTS") {
                break;
            }
        }
    }
    let mut other = Talker::logged_in(&mail, "ada", SECRET);
    other.ask("SELECT INBOX");
    let headers = other.ask("FETCH 1:3 (BODY.PEEK[HEADER.FIELDS (SUBJECT)])").join("\n");
    assert!(headers.contains("Subject: number 1") && headers.contains("Subject: number 3"), "{headers}");
    other.ask("STORE 2 +FLAGS (\\Flagged \\Seen)");
    loop {
        let line = waiting.line();
        if line.contains("FETCH") {
            assert!(line.starts_with("* 2 FETCH") && line.contains("\\Flagged"), "{line}");
            break;
        }
    }
    // The session hears of what the browser does, too.
    let mut client = mail.server.client();
    let page = client.get("/mail%2Fada/_folder/Inbox?limit=1&update=true").unwrap().value();
    let first = page["rows"][0]["id"].as_str().unwrap().to_owned();
    client.json("POST", "/mail%2Fada/_folder/Inbox", &json!({"remove": [first]})).unwrap();
    loop {
        if waiting.line().ends_with("EXPUNGE") {
            break;
        }
    }
    waiting.send("DONE\r\n");
    while !waiting.line().starts_with("i OK") {}
    assert_eq!(waiting.ask("FETCH 1:* (UID)").len(), 3);
}

#[test]
fn a_memo_that_has_no_source_is_a_message_and_lines_of_imported_ones_end_as_they_must() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &IMAP);
    let mut client = mail.server.client();
    let memo =
        json!({"Form": "Memo", "From": "ada", "SendTo": ["ada"], "Subject": "Grün", "Body": "Zeile\nzwei"});
    client.json("POST", "/mail.box", &memo).unwrap().expect(201);
    let mut talker = Talker::logged_in(&mail, "ada", SECRET);
    for _ in 0..600 {
        if talker.ask("STATUS INBOX (MESSAGES)").join(" ").contains("MESSAGES 1") {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let source = "Subject: one\nFrom: a@x.test\n\nfirst\nsecond\n";
    let attachment = json!({"message.eml": {"content_type": "message/rfc822", "data": base64(source)}});
    let imported = json!({"_id": "old", "Form": "Memo", "Subject": "one", "_attachments": attachment});
    client.json("PUT", "/mail%2Fada/old", &imported).unwrap().expect(201);
    client.json("POST", "/mail%2Fada/_folder/Inbox", &json!({"add": ["old"]})).unwrap();
    talker.ask("SELECT INBOX");
    let fetched = talker.ask("FETCH 1 (RFC822.SIZE BODY.PEEK[])");
    let content = fetched.iter().find(|line| line.contains("MIME-Version")).unwrap();
    assert!(content.contains("Subject: =?utf-8?B?") && content.contains("zwei"), "{content}");
    assert!(fetched[0].contains(&format!("RFC822.SIZE {}", content.len())), "{fetched:?}");
    let fetched = talker.ask("FETCH 2 (BODY.PEEK[])");
    assert_eq!(fetched[1], source.replace('\n', "\r\n"), "{fetched:?}");
    let long = source.repeat(3000);
    talker.ask(&format!("APPEND INBOX {{{}+}}\r\n{long}", long.len()));
    let told = talker.ask("FETCH 3 (RFC822.SIZE)");
    let wanted = format!("RFC822.SIZE {}", long.replace('\n', "\r\n").len());
    assert!(told[0].contains(&wanted), "{told:?}, {wanted}");
    let middle = talker.ask("FETCH 2 (BODY.PEEK[]<14.10>)");
    assert_eq!(middle[1], source.replace('\n', "\r\n")[14..24]);
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn who_has_not_logged_in_or_may_not_any_more_sees_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &IMAP);
    for command in ["SELECT INBOX", "LIST \"\" *", "FETCH 1 BODY[]", "LOGIN ada wrong", "LOGIN bob \"\""] {
        Talker::connect(&mail).refused(command);
    }
    let mut ada = Talker::logged_in(&mail, "ada", SECRET);
    ada.ask("SELECT INBOX");
    for mailbox in ["../bob", "mail/bob", "Users/bob/INBOX", "\"mail\\\\bob\"", "directory"] {
        ada.refused(&format!("SELECT {mailbox}"));
    }
    for command in
        ["GETACL INBOX", "SETACL INBOX bob lr", "SETMETADATA INBOX (/private/x \"y\")", "NOTIFY NONE"]
    {
        ada.refused(command);
    }
    let mut client = mail.server.client();
    let found = client.get("/directory/person:ada").unwrap().value();
    let mut person: Value = found;
    person["Disabled"] = json!(true);
    client.json("PUT", "/directory/person:ada", &person).unwrap().expect(201);
    let mut ada = ada;
    ada.refused("STATUS INBOX (MESSAGES)");
    let mut again = Talker::connect(&mail);
    again.refused(&format!("LOGIN ada \"{SECRET}\""));
}

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
    pub fn connect(mail: &MailServer) -> Self {
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

    pub fn line(&mut self) -> String {
        let mut line = Vec::new();
        assert!(self.stream.read_until(b'\n', &mut line).unwrap() > 0, "the connection ended");
        String::from_utf8_lossy(&line).trim_end().to_owned()
    }

    pub fn send(&mut self, text: &str) {
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

    /// All that comes until the server closes the connection.
    pub fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).unwrap();
        String::from_utf8_lossy(&rest).into_owned()
    }

    /// The same of a command that succeeds.
    pub fn ask(&mut self, command: &str) -> Vec<String> {
        let lines = self.answers(command);
        assert!(lines.last().unwrap().contains(" OK "), "{command}: {lines:?}");
        lines
    }

    pub fn refused(&mut self, command: &str) -> String {
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
fn all_sessions_of_a_person_hear_of_mail_although_few_may_work_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let few = [
        ("SCRINIUM_LIMITS__PERSON_THREADS", "1"),
        ("SCRINIUM_LIMITS__PERSON_REQUESTS", "1"),
        IMAP[0],
        IMAP[1],
    ];
    let mail = MailServer::start_with(folder.path(), &few);
    let mut all: Vec<Talker> = (0..50).map(|_| Talker::logged_in(&mail, "ada", SECRET)).collect();
    for waiting in &mut all {
        waiting.ask("SELECT INBOX");
        waiting.send("i IDLE\r\n");
        assert!(waiting.line().starts_with('+'));
    }
    send_by_smtp(&mail, "ada", "for all of them");
    for waiting in &mut all {
        while waiting.line() != "* 1 EXISTS" {}
    }
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

#[test]
fn calendars_are_no_mailboxes_and_no_name_means_two() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &IMAP);
    let mut talker = Talker::logged_in(&mail, "ada", SECRET);
    let mut client = mail.server.client();
    for (name, kind) in [("Diary", "calendar"), ("People", "contacts"), ("Notes", "plain")] {
        let answer =
            client.json("PUT", &format!("/mail%2Fada/_folder/{name}"), &json!({"kind": kind})).unwrap();
        assert!((200..300).contains(&answer.status), "{}", answer.status);
    }
    let listed = talker.ask("LIST \"\" *").join("\n");
    assert!(listed.contains("Notes") && !listed.contains("Diary") && !listed.contains("People"), "{listed}");
    assert!(talker.refused("SELECT Diary").contains("NONEXISTENT"));
    for command in ["CREATE \"a\\\\b\"", "RENAME Notes \"a\\\\b\"", "CREATE Diary"] {
        let refused = talker.refused(command);
        assert!(refused.contains("CANNOT") || refused.contains("ALREADYEXISTS"), "{command}: {refused}");
    }
    talker.ask("CREATE a/b");
    assert!(talker.refused("SELECT \"a\\\\b\"").contains("NONEXISTENT"));
}

#[test]
fn in_a_large_folder_words_are_found_by_the_index_as_they_would_be_by_reading() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &IMAP);
    let mut talker = Talker::logged_in(&mail, "ada", SECRET);
    for part in 0..3 {
        let mut command = "APPEND INBOX".to_owned();
        for number in part * 400 + 1..=part * 400 + 400 {
            let rare = match number {
                77 => "Quixotic undertakings",
                900 => "re: an-undertaking's end",
                _ => "weekly figures",
            };
            let message = format!(
                "Subject: {rare}\r\nFrom: Kim Ng <kim{number}@far.test>\r\nTo: ada@acme.example\r\nDate: Fri, 27 Nov 2026 08:00:00 +0000\r\nMessage-ID: <{number}@far.test>\r\nX-Odd: o{number}\r\n\r\nline {number}, {rare}\r\n"
            );
            command.push_str(&format!(" {{{}+}}\r\n{message}", message.len()));
        }
        talker.ask(&command);
    }
    assert!(talker.ask("SELECT INBOX").contains(&"* 1200 EXISTS".to_owned()));
    for (keys, wanted) in [
        ("SUBJECT undertaking", " 77 900"),
        ("SUBJECT \"an-UNDERtaking's e\"", " 900"),
        ("BODY dertaki", " 77 900"),
        ("TEXT quixotic", " 77"),
        ("TEXT quixotic SUBJECT figures", ""),
        ("FROM kim1111@far", " 1111"),
        ("OR FROM kim12@far SUBJECT quixot", " 12 77"),
        ("NOT SUBJECT figures", " 77 900"),
        ("HEADER X-Odd o1113", " 1113"),
        ("UID 70:80 BODY undertakings", " 77"),
        ("SUBJECT nowhere", ""),
    ] {
        assert_eq!(found(&mut talker, &format!("SEARCH {keys}")), format!("* SEARCH{wanted}"), "{keys}");
    }
    let sorted = found(&mut talker, "SORT (REVERSE ARRIVAL) UTF-8 SUBJECT undertaking");
    assert_eq!(sorted, "* SORT 900 77");
    // One that has just come is found at once.
    let late = "Subject: undertakings that come late\r\n\r\nx\r\n";
    talker.ask(&format!("APPEND INBOX {{{}+}}\r\n{late}", late.len()));
    assert_eq!(found(&mut talker, "SEARCH SUBJECT undertaking"), "* SEARCH 77 900 1201");
}

/// A message, as a test sorts them: UID, when it was sent, length, subject.
type Sortable = (usize, i64, usize, String);

fn sorted(messages: &[Sortable], key: &str) -> String {
    let mut order: Vec<&Sortable> = messages.iter().collect();
    order.sort_by(|one, other| {
        let by = match key {
            "REVERSE DATE" => other.1.cmp(&one.1),
            "SIZE" => one.2.cmp(&other.2),
            "SUBJECT REVERSE SIZE" => one.3.cmp(&other.3).then(other.2.cmp(&one.2)),
            _ => std::cmp::Ordering::Equal,
        };
        by.then(one.0.cmp(&other.0))
    });
    order.iter().map(|message| format!(" {}", message.0)).collect()
}

#[test]
fn messages_are_sorted_as_reading_each_of_them_would_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &IMAP);
    let mut talker = Talker::logged_in(&mail, "ada", SECRET);
    let append = |talker: &mut Talker, numbers: std::ops::Range<usize>| -> Vec<Sortable> {
        let mut command = "APPEND INBOX".to_owned();
        let mut messages = Vec::new();
        for number in numbers {
            let day = 1 + number * 7 % 28;
            let subject = ["alpha", "beta", "gamma"][number % 3].to_owned();
            let text = "x".repeat(number * 37 % 100);
            let message =
                format!("Subject: Re: {subject}\r\nDate: {day} Jan 2026 08:00:00 +0000\r\n\r\n{text}\r\n");
            command.push_str(&format!(" {{{}+}}\r\n{message}", message.len()));
            messages.push((number, day as i64, message.len(), subject));
        }
        talker.ask(&command);
        messages
    };
    let mut messages = append(&mut talker, 1..150);
    talker.ask("SELECT INBOX");
    let check = |talker: &mut Talker, messages: &[Sortable]| {
        for key in ["REVERSE DATE", "SIZE", "SUBJECT REVERSE SIZE"] {
            let found = found(talker, &format!("UID SORT ({key}) UTF-8 ALL"));
            assert_eq!(found, format!("* SORT{}", sorted(messages, key)), "{key}");
        }
        let some: Vec<Sortable> = messages.iter().filter(|one| one.0 % 3 == 1).cloned().collect();
        let found = found(talker, "UID SORT (REVERSE DATE) UTF-8 SUBJECT beta");
        assert_eq!(found, format!("* SORT{}", sorted(&some, "REVERSE DATE")));
    };
    check(&mut talker, &messages);
    // What was kept for sorting follows the folder.
    talker.ask("UID STORE 7,20:30 +FLAGS.SILENT (\\Flagged)");
    talker.ask("UID STORE 1:5,140 +FLAGS.SILENT (\\Deleted)");
    talker.ask("EXPUNGE");
    messages.retain(|one| !(1..=5).contains(&one.0) && one.0 != 140);
    messages.extend(append(&mut talker, 150..170));
    talker.ask("NOOP");
    check(&mut talker, &messages);
    // Flags alone are told as they are with everything else.
    let short = talker.ask("UID FETCH 1:* (FLAGS)");
    let long = talker.ask("UID FETCH 1:* (FLAGS RFC822.SIZE)");
    assert_eq!(short.len(), messages.len() + 1);
    for (short, long) in short.iter().zip(&long).take(messages.len()) {
        assert!(long.starts_with(short.trim_end_matches(')')), "{short}, {long}");
    }
}

/// What was found, behind signs that it is still looked for.
fn found(talker: &mut Talker, command: &str) -> String {
    let lines = talker.ask(command);
    lines.into_iter().find(|line| line.starts_with("* S")).unwrap()
}

#[test]
fn what_happens_in_other_mailboxes_is_told_without_asking_and_what_is_hidden_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let hidden =
        ("SCRINIUM_IMAP__HIDDEN_CAPABILITIES", "COMPRESS=DEFLATE,QUOTA person:ada,MOVE client:outlook");
    let mail = MailServer::start_with(folder.path(), &[&IMAP[..], &[hidden]].concat());
    let mut watching = Talker::connect(&mail);
    let welcome = watching.ask(&format!("LOGIN ada \"{SECRET}\"")).concat();
    for (name, is_there) in [("NOTIFY", true), ("MOVE", true), ("QUOTA", false), ("COMPRESS", false)] {
        assert_eq!(welcome.contains(name), is_there, "{name}: {welcome}");
    }
    watching.refused("GETQUOTAROOT INBOX");
    watching.ask("ID (\"name\" \"Microsoft Outlook\")");
    assert!(!watching.ask("CAPABILITY").concat().contains(" MOVE"));
    watching.ask("SELECT INBOX");
    let set = "NOTIFY SET STATUS (selected (MessageNew MessageExpunge)) (subtree (Archive Projects) (MessageNew FlagChange MailboxName)) (mailboxes Junk (MailboxName))";
    let told = watching.ask(set);
    assert!(told.iter().any(|line| line.starts_with("* STATUS Archive (MESSAGES 0 ")), "{told:?}");
    assert!(
        !told.iter().any(|line| line.contains("STATUS Junk") || line.contains("STATUS INBOX")),
        "{told:?}"
    );
    let mut other = Talker::logged_in(&mail, "ada", SECRET);
    let mut hears = |wanted: &str| loop {
        let line = watching.line();
        if line.contains(wanted) {
            break;
        }
        assert!(!line.contains("Trash"), "{line}");
    };
    other.ask("APPEND Trash {3+}\r\nA:b");
    other.ask("APPEND Archive {3+}\r\nA:b");
    hears("STATUS Archive (MESSAGES 1 ");
    other.ask("CREATE Projects/New");
    hears("Projects/New");
    other.ask("RENAME Projects/New Projects/Old");
    hears("OLDNAME");
    other.ask("APPEND INBOX {3+}\r\nA:b");
    hears("* 1 EXISTS");
    other.ask("DELETE Projects/Old");
    hears("\\NonExistent");
    watching.ask("NOTIFY NONE");
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
    for mailbox in
        ["../bob", "mail/bob", "Users/bob/INBOX", "Users/ada/INBOX", "\"mail\\\\bob\"", "directory"]
    {
        ada.refused(&format!("SELECT {mailbox}"));
    }
    for command in ["SETACL INBOX bob lr", "SETMETADATA \"\" (/shared/admin \"y\")"] {
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

//! rspamd, which looks at mail that comes in, and learns from what people move into and out of Junk.
//!
//! `scripts/spam-filters` brings Debian's; without it that test says so and is left out.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use scrinium_bench::process::command;
use serde_json::{Value, json};

use crate::imap::{IMAP, Talker};
use crate::mail_peers::{free_port, start};
use crate::mail_ports::{MailServer, SECRET};
use crate::mail_programs::cached;

/// However loaded the machine is.
const WITHIN: Duration = Duration::from_secs(60);

/// What rspamd was taught: the path, the password, and the subject.
type Lessons = Arc<Mutex<Vec<(String, String, String)>>>;

/// A controller of rspamd that takes every lesson, but the first only when it comes once more, as one that starts does.
fn controller() -> (SocketAddr, Lessons) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, lessons) = (listener.local_addr().unwrap(), Lessons::default());
    let kept = Arc::clone(&lessons);
    let is_ready = Arc::new(AtomicBool::new(false));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (kept, is_ready) = (Arc::clone(&kept), Arc::clone(&is_ready));
            std::thread::spawn(move || take_lessons(stream, &kept, &is_ready));
        }
    });
    (address, lessons)
}

fn take_lessons(stream: TcpStream, kept: &Lessons, is_ready: &AtomicBool) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut path, mut password, mut length) = (String::new(), String::new(), 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            match line.split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("password") => {
                    value.clone_into(&mut password);
                }
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().unwrap();
                }
                Some(_) => {}
                None => line.split(' ').nth(1).unwrap().clone_into(&mut path),
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        if !is_ready.swap(true, Ordering::Relaxed) {
            stream
                .get_mut()
                .write_all(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
                .ok()?;
            continue;
        }
        let body = String::from_utf8(body).unwrap();
        let subject = body.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap().to_owned();
        kept.lock().unwrap().push((path, password, subject));
        stream
            .get_mut()
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"success\":true}")
            .ok()?;
    }
}

/// Brings a message for Ada by SMTP; gives the last reply.
fn deliver(mail: &MailServer, subject: &str, body: &str) -> String {
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", mail.port("smtp"))).unwrap());
    stream.get_ref().set_read_timeout(Some(WITHIN)).unwrap();
    let mut ask = |text: &str| {
        stream.get_mut().write_all(text.as_bytes()).unwrap();
        let mut line = String::new();
        while line.as_bytes().get(3) != Some(&b' ') {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "the connection ended at {text}");
        }
        line
    };
    ask("");
    for command in ["HELO x.example", "MAIL FROM:<eve@far.example>", "RCPT TO:<ada@acme.example>", "DATA"] {
        ask(&format!("{command}\r\n"));
    }
    ask(&format!(
        "From: eve@far.example\r\nTo: ada@acme.example\r\nDate: Thu, 26 Nov 2026 09:20:51 +0000\r\n\
         Message-ID: <{subject}@far.example>\r\nSubject: {subject}\r\n\r\n{body}\r\n.\r\n"
    ))
}

#[test]
fn what_people_move_into_and_out_of_junk_teaches_rspamd() {
    let folder = tempfile::tempdir().unwrap();
    let (address, lessons) = controller();
    fs::create_dir_all(folder.path().join("data")).unwrap();
    fs::write(folder.path().join("data/rspamd.password"), "of rspamd\n").unwrap();
    let address = address.to_string();
    let more = [&IMAP[..], &[("SCRINIUM_FILTERS__RSPAMD_CONTROLLER", address.as_str())]].concat();
    let mut mail = MailServer::start_with(folder.path(), &more);
    for subject in ["one", "two", "three", "four"] {
        assert!(deliver(&mail, subject, "text").starts_with("250"));
    }
    let mut ada = Talker::logged_in(&mail, "ada", SECRET);
    ada.ask("SELECT INBOX");
    // Into Junk by a move, by a copy of an old program, and by HTTP; what is put there otherwise teaches nothing.
    ada.ask("MOVE 1 Junk");
    ada.ask("COPY 1 Junk");
    ada.ask("MOVE 1 Archive");
    let mut client = mail.server.client();
    let ids = client.get("/mail%2Fada/_all_docs?include_docs=true").unwrap().expect(200).value();
    let three = ids["rows"].as_array().unwrap().iter().find(|row| row["doc"]["Subject"] == "three").unwrap();
    let moved = json!({"move": {"to": "Junk", "ids": [three["id"]]}});
    client.json("POST", "/mail%2Fada/_folder/Inbox", &moved).unwrap().expect(200);
    // Out of it: into the Inbox is praise, into Trash is not.
    ada.ask("SELECT Junk");
    ada.ask("MOVE 1 INBOX");
    ada.ask("MOVE 1 Trash");
    let wanted =
        [("/learnspam", "one"), ("/learnspam", "two"), ("/learnspam", "three"), ("/learnham", "one")];
    let wanted = wanted.map(|(path, subject)| (path.to_owned(), "of rspamd".to_owned(), subject.to_owned()));
    let began = Instant::now();
    while lessons.lock().unwrap().len() < wanted.len() {
        assert!(began.elapsed() < WITHIN, "{:?} {}", lessons.lock().unwrap(), mail.server.messages());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(*lessons.lock().unwrap(), wanted);
    mail.server.terminate(WITHIN);
    assert_eq!(lessons.lock().unwrap().len(), wanted.len());
}

#[test]
fn a_move_does_not_wait_for_rspamd() {
    let folder = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let more = [&IMAP[..], &[("SCRINIUM_FILTERS__RSPAMD_CONTROLLER", address.as_str())]].concat();
    let mut mail = MailServer::start_with(folder.path(), &more);
    assert!(deliver(&mail, "one", "text").starts_with("250"));
    let mut ada = Talker::logged_in(&mail, "ada", SECRET);
    for _ in 0..20 {
        ada.ask("SELECT INBOX");
        ada.ask("MOVE 1 Junk");
        ada.ask("SELECT Junk");
        ada.ask("MOVE 1 INBOX");
    }
    assert!(mail.server.terminate(WITHIN).success(), "{}", mail.server.messages());
}

/// What an rspamd needs that has no network, no rules of its own and a small memory of words.
fn rspamd_settings(folder: &str, unpacked: &str, ports: [u16; 2]) -> String {
    let [normal, controller] = ports;
    let statfile = |symbol: &str, is_spam: bool| {
        format!("statfile {{ symbol = \"{symbol}\"; path = \"{folder}/{symbol}\"; spam = {is_spam}; }}")
    };
    format!(
        "options {{ filters = \"\"; gtube_patterns = \"all\"; pidfile = \"{folder}/pid\"; tempdir = \"{folder}\"; \
         url_tld = \"{folder}/tld\"; control_socket = \"{folder}/control\"; \
         dns {{ nameserver = [\"127.0.0.1:9\"]; timeout = 0.1s; retransmits = 1; }} }}\n\
         logging {{ type = \"console\"; level = \"notice\"; }}\n\
         worker \"normal\" {{ bind_socket = \"127.0.0.1:{normal}\"; count = 1; }}\n\
         worker \"controller\" {{ bind_socket = \"127.0.0.1:{controller}\"; count = 1; password = \"of rspamd\"; \
         enable_password = \"of rspamd\"; secure_ip = []; }}\n\
         actions {{ reject = 15; add_header = 6; }}\n\
         lua = \"{unpacked}/usr/share/rspamd/rules/rspamd.lua\"\n\
         classifier \"bayes\" {{ tokenizer {{ name = \"osb\"; }} backend = \"sqlite3\"; min_learns = 1; min_tokens = 1; {} {} }}\n",
        statfile("BAYES_HAM", false),
        statfile("BAYES_SPAM", true),
    )
}

#[test]
fn the_real_rspamd_refuses_and_learns() {
    let unpacked = cached("spam-filters-1");
    if !unpacked.join("usr/bin/rspamd").exists() {
        return scrinium_fault::skip("there is no rspamd to try; scripts/spam-filters brings it");
    }
    let (folder, ports) = (tempfile::tempdir().unwrap(), [free_port(), free_port()]);
    let (own, unpacked) = (folder.path().display().to_string(), unpacked.display().to_string());
    fs::write(folder.path().join("tld"), "com\nexample\n").unwrap();
    let settings = folder.path().join("rspamd.conf");
    fs::write(&settings, rspamd_settings(&own, &unpacked, ports)).unwrap();
    let share = format!("{unpacked}/usr/share/rspamd");
    let mut program = command(format!("{unpacked}/usr/bin/rspamd"), None);
    program.args(["-i", "-f", "-c"]).arg(&settings);
    for (name, path) in
        [("SHAREDIR", ""), ("LUALIBDIR", "/lualib"), ("RULESDIR", "/rules"), ("PLUGINSDIR", "/plugins")]
    {
        program.arg(format!("--var={name}={share}{path}"));
    }
    for name in ["CONFDIR", "LOCAL_CONFDIR", "DBDIR", "RUNDIR"] {
        program.arg(format!("--var={name}={own}"));
    }
    program.env("LD_LIBRARY_PATH", format!("{unpacked}/usr/lib/x86_64-linux-gnu:{unpacked}/usr/lib/rspamd"));
    program.env("LUA_PATH", format!("{share}/lualib/?.lua;{share}/lualib/?/init.lua"));
    let _rspamd = start(program, ports[1], &folder.path().join("log"));

    let data = folder.path().join("server");
    fs::create_dir_all(data.join("data")).unwrap();
    fs::write(data.join("data/rspamd.password"), "of rspamd\n").unwrap();
    let [normal, controller] = ports.map(|port| format!("127.0.0.1:{port}"));
    let more =
        [("SCRINIUM_FILTERS__RSPAMD", normal.as_str()), ("SCRINIUM_FILTERS__RSPAMD_CONTROLLER", &controller)];
    let mut mail = MailServer::start_with(&data, &[&IMAP[..], &more].concat());
    assert!(deliver(&mail, "fine", "cheap and good things for everybody in this town").starts_with("250"));
    let gtube = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X";
    let refused = deliver(&mail, "spam", gtube);
    assert!(refused.starts_with("550 5.7.1"), "{refused}");
    let mut ada = Talker::logged_in(&mail, "ada", SECRET);
    ada.ask("SELECT INBOX");
    ada.ask("MOVE 1 Junk");
    let began = Instant::now();
    while statistic(&mail, "Rspamd.Taught") < 1.0 {
        assert!(began.elapsed() < WITHIN, "{}", mail.server.messages());
        std::thread::sleep(Duration::from_millis(100));
    }
    mail.server.terminate(WITHIN);
}

fn statistic(mail: &MailServer, name: &str) -> f64 {
    let mut client = mail.server.client();
    let asked = json!({"command": format!("show stat {name}")});
    let answer: Value = client.json("POST", "/_console", &asked).unwrap().expect(200).value();
    answer["data"]["statistics"][name].as_f64().unwrap_or_default()
}

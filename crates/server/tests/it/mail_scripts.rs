//! Dialogues of SMTP as Apache James's protocol tests have them: what a client says, and with which codes a server answers.
//!
//! `scripts/mail-clients` brings the scripts; without them the test says so and is left out. Texts of replies, and what is offered, are
//! each server's own. Where a code is ours for a reason, [`OTHERWISE`] says so.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::mail_ports::{MailServer, SECRET};
use crate::mail_programs::cached;

/// A script, the code of a reply in it, and what ours answers instead: a code, or nothing where it ends the connection.
const OTHERWISE: [(&str, &str, &str); 2] = [
    // STARTTLS is taken within a transaction; nothing that was said before counts behind it (RFC 3207, section 4.2).
    ("starttls_session_fixation", "501", "220"),
    // What came in the clear behind STARTTLS ends the connection.
    ("starttls_with_injection", "451", ""),
];

/// A line of a script.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    Client(Vec<u8>),
    /// The code of a whole reply.
    Server(String),
}

/// Their people and domain are ours here.
fn localised(line: &str) -> String {
    line.replace("bob@mydomain.tld", "bob@acme.example").replace("starttls@mydomain.tld", "bob@acme.example")
}

fn turns(script: &str, log_in: bool) -> Vec<Turn> {
    use base64::Engine;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let mut turns = Vec::new();
    for line in script.lines() {
        let (who, said) = line.split_at(line.len().min(2));
        let said = said.strip_prefix(' ').unwrap_or(said);
        match who {
            "C:" => {
                let mut said = localised(said).replace("\\r\\n", "\r\n");
                if log_in {
                    // Bob has no password here, and Ada has.
                    said = said.replace(&encode("bob@mydomain.tld"), &encode("ada"));
                    said = said
                        .replace(&encode("secret"), &encode(SECRET))
                        .replace("bob@acme.example", "ada@acme.example");
                    said = said.replace("matthieu@yopmail.com", "bob@acme.example");
                }
                turns.push(Turn::Client(format!("{}\r\n", said.trim_end_matches("\r\n")).into_bytes()));
            }
            // Another line of this reply follows.
            "S:" if said.get(3..4) == Some("-") || said == "250.*" => {}
            "S:" => turns.push(Turn::Server(said.get(..3).unwrap_or_default().to_owned())),
            _ => {}
        }
    }
    turns
}

/// The code of a whole reply; empty where the connection ends.
fn code(stream: &mut BufReader<TcpStream>) -> String {
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).unwrap_or(0) == 0 {
            return String::new();
        }
        if line.as_bytes().get(3) != Some(&b'-') {
            return line.get(..3).unwrap_or_default().to_owned();
        }
    }
}

fn play(name: &str, turns: &[Turn], port: u16) {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut stream = BufReader::new(stream);
    for turn in turns {
        match turn {
            // A server that has ended the connection is found by its reply.
            Turn::Client(line) => drop(stream.get_mut().write_all(line)),
            Turn::Server(theirs) => {
                let other = OTHERWISE.iter().find(|(script, code, _)| *script == name && code == theirs);
                let wanted = other.map_or(theirs.as_str(), |(.., ours)| ours);
                let found = code(&mut stream);
                // The last word before the end may be lost with the connection.
                let is_end = wanted.is_empty() && found == "554";
                assert!(is_end || found == wanted, "{name}: {found} for {turn:?} of {turns:?}");
            }
        }
    }
}

#[test]
fn scripts_of_james_are_answered_by_the_same_codes() {
    let folder = cached("mail-clients-1").join("james");
    let Ok(files) = std::fs::read_dir(&folder) else {
        return scrinium_fault::skip("there are no scripts of James; scripts/mail-clients brings them");
    };
    let scratch = tempfile::tempdir().unwrap();
    let mail =
        MailServer::start_with(scratch.path(), &[("SCRINIUM_SUBMISSION__LOOPBACK_WITHOUT_TLS", "true")]);
    let mut played = 0;
    for path in files.map(|file| file.unwrap().path()) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let script = std::fs::read_to_string(&path).unwrap();
        let log_in = script.contains("AUTH LOGIN\n");
        let mut turns = turns(&script, log_in);
        if log_in && !script.contains("ehlo") {
            // AUTH is a part of ESMTP (RFC 4954, section 4): somebody has to greet before.
            turns.splice(
                1..1,
                [Turn::Client(b"EHLO yopmail.com\r\n".to_vec()), Turn::Server("250".to_owned())],
            );
        }
        play(&name, &turns, mail.port(if log_in { "submission" } else { "smtp" }));
        played += 1;
    }
    assert!(played >= 8, "{played} scripts");
}

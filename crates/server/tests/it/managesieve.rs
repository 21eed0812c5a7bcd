//! Scripts set by ManageSieve: by a client of others, by dialogues of Apache James's protocol tests, and by bytes of strangers.
//!
//! `scripts/mail-clients` brings both; without them the tests say so and are left out. Without TLS nobody logs in, so both speak
//! through Python's.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use scrinium_fault::skip;

use crate::mail_ports::{MailServer, SECRET};
use crate::mail_programs::cached;

const PORT: [(&str, &str); 1] = [("SCRINIUM_MANAGESIEVE__LISTEN", "127.0.0.1:0")];

/// However loaded the machine is.
const WITHIN: Duration = Duration::from_secs(60);

/// What a program in Python says; it ends with `done`.
fn python(mail: &MailServer, program: &str, what: &Path) {
    let output = Command::new("python3")
        .args(["-c", program, &mail.port("sieve").to_string(), SECRET])
        .arg(what)
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else { return skip("there is no python3") };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && said.ends_with("done\n"), "{said}\n{complained}");
}

fn connect(mail: &MailServer) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", mail.port("sieve"))).unwrap();
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    let mut stream = BufReader::new(stream);
    assert!(last_line(&mut stream).starts_with("OK"));
    stream
}

/// The line that ends an answer; empty where the connection has ended.
fn last_line(stream: &mut BufReader<TcpStream>) -> String {
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).unwrap_or(0) == 0 || !line.starts_with('"') {
            return line;
        }
    }
}

#[test]
fn a_client_of_pythons_sets_a_script_which_sorts_what_comes() {
    let client = cached("mail-clients-1").join("managesieve/managesieve.py");
    if !client.exists() {
        return skip("there is no managesieve of Python; scripts/mail-clients brings it");
    }
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &PORT);
    python(&mail, include_str!("mail_programs/managesieve.txt"), client.parent().unwrap());
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", mail.port("smtp"))).unwrap());
    let text = "HELO x.example\r\nMAIL FROM:<eve@far.example>\r\nRCPT TO:<ada@acme.example>\r\nDATA\r\n";
    stream.get_mut().write_all(text.as_bytes()).unwrap();
    let mut line = String::new();
    while !line.starts_with("354") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0);
    }
    stream
        .get_mut()
        .write_all(b"From: eve@far.example\r\nSubject: sorted\r\n\r\nHello\r\n.\r\nQUIT\r\n")
        .unwrap();
    let mut client = mail.server.client();
    let began = Instant::now();
    loop {
        let all = client.get("/mail%2Fada/_all_docs?include_docs=true").unwrap().text();
        if all.contains("by-script") && all.contains("sorted") {
            break;
        }
        assert!(began.elapsed() < WITHIN, "{all}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn dialogues_of_jamess_tests_are_answered_alike() {
    let scripts = cached("mail-clients-1").join("james-sieve");
    if !scripts.exists() {
        return skip("there are no dialogues of ManageSieve of James; scripts/mail-clients brings them");
    }
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &PORT);
    python(&mail, include_str!("mail_programs/managesieve_dialogue.txt"), &scripts);
}

/// Logs in, puts half of a script, and the rest when it gets a line.
const HALF: &str = r#"
import base64, socket, ssl, sys
port, secret = int(sys.argv[1]), sys.argv[2]
plain = socket.create_connection(("127.0.0.1", port))
def answer(stream):
    while True:
        line = stream.readline().decode()
        if not line.startswith('"'):
            return line.strip()
stream = plain.makefile("rwb", buffering=0)
answer(stream)
stream.write(b"STARTTLS\r\n")
answer(stream)
context = ssl._create_unverified_context()
safe = context.wrap_socket(plain)
stream = safe.makefile("rwb", buffering=0)
answer(stream)
login = base64.b64encode(b"\0ada\0" + secret.encode()).decode()
stream.write(f'AUTHENTICATE "PLAIN" "{login}"\r\n'.encode())
assert answer(stream).startswith("OK")
stream.write(b'PUTSCRIPT "late" {11+}\r\nkeep')
print("half", flush=True)
sys.stdin.readline()
stream.write(b"; # l\r\n\r\n")
print(answer(stream), flush=True)
print(answer(stream), flush=True)
"#;

#[test]
fn a_script_that_is_being_put_is_taken_before_the_server_stops() {
    let folder = tempfile::tempdir().unwrap();
    let mut mail = MailServer::start_with(folder.path(), &PORT);
    let client = Command::new("python3")
        .args(["-c", HALF, &mail.port("sieve").to_string(), SECRET])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut client) = client else { return skip("there is no python3") };
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("half"));
    let log = mail.server.messages().len();
    std::thread::scope(|scope| {
        let server = &mut mail.server;
        let stopped = scope.spawn(move || server.terminate(WITHIN));
        // It has been told by then; if it is slow, the test shows less, and does not fail.
        std::thread::sleep(Duration::from_millis(500));
        assert!(!stopped.is_finished(), "it waits");
        client.stdin.take().unwrap().write_all(b"\n").unwrap();
        let said: Vec<String> = lines.by_ref().collect();
        assert!(said.len() == 2 && said[0].starts_with("OK") && said[1].starts_with("BYE"), "{said:?}");
        assert!(stopped.join().unwrap().success());
    });
    assert!(mail.server.messages()[log..].contains("stopping"));
    client.wait().unwrap();
    let server = crate::common::Server::start(folder.path(), &crate::common::SMALL);
    let kept = server.client().get("/mail%2Fada/sieve:scripts").unwrap().expect(200).value();
    assert_eq!(kept["Scripts"]["late"], "keep; # l\r\n");
}

#[test]
fn strangers_get_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start_with(folder.path(), &PORT);
    let mut stream = connect(&mail);
    for (said, answered) in [
        ("LISTSCRIPTS", "NO"),
        ("PUTSCRIPT \"a\" {5+}\r\nkeep;", "NO"),
        ("GETSCRIPT \"a\"", "NO"),
        ("SETACTIVE \"\"", "NO"),
        ("AUTHENTICATE \"PLAIN\" \"AGFkYQBhIHNlY3JldCBvZiBBZGEncw==\"", "NO (ENCRYPT-NEEDED)"),
        ("AUTHENTICATE \"SCRAM-SHA-256\" \"biwsbj1hZGEscj1hYmM=\"", "NO (ENCRYPT-NEEDED)"),
        ("UNAUTHENTICATE", "NO"),
        ("\"quoted\"", "NO"),
        ("NOOP \"\u{e9}\"", "OK (TAG"),
        ("NO SUCH", "NO"),
    ] {
        stream.get_mut().write_all(format!("{said}\r\n").as_bytes()).unwrap();
        let line = last_line(&mut stream);
        assert!(line.starts_with(answered), "{said}: {line}");
    }
    // What was put in behind STARTTLS is not done, nor what is too long or no line.
    for said in [
        &b"STARTTLS\r\nLISTSCRIPTS\r\n"[..],
        b"PUTSCRIPT \"a\" {100000+}\r\n",
        b"NOOP\n",
        &[b"NOOP \"", &[b'x'; 20_000][..]].concat(),
        b"NOOP {1+}\r\na{1+}\r\nb{1+}\r\nc{1+}\r\nd\r\n",
        b"LOGOUT\r\n",
    ] {
        let mut stream = connect(&mail);
        stream.get_mut().write_all(said).unwrap();
        let line = last_line(&mut stream);
        let ends = line.starts_with("BYE") || said == b"LOGOUT\r\n" && line.starts_with("OK");
        assert!(ends, "{line}");
        let mut rest = Vec::new();
        // The end may come as a reset, since not all was read.
        assert!(stream.read_to_end(&mut rest).is_err() || rest.is_empty());
    }
}

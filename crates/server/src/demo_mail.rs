//! Mail of the demonstration: real messages come in by SMTP, one goes out to a server that stands for the rest of the world.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use scrinium_smtp_wire::{BareEnds, DotWriter};

use crate::cli::Failure;

/// The people's addresses end so.
pub(crate) const DOMAIN: &str = "demo.example";

/// Whom the message goes to that leaves.
const FRIEND: &str = "friend@elsewhere.example";

/// The folder of the messages that were dealt out, one of a person, is read up to this.
const MESSAGE_LIMIT_BYTES: u64 = 4 << 20;

/// Messages that come in.
const MESSAGES_MAX: u32 = 100;

/// The other side answers within this time, and what leaves arrives within it.
const WITHIN: Duration = Duration::from_secs(60);

/// The longest line of a reply or command (RFC 5321, section 4.5.3.1.5, and some more).
const LINE_LIMIT_BYTES: u64 = 4096;

/// Where the demonstration's server is reached by mail programs and other servers once it is started again.
const LASTING_PORTS: [(&str, u16); 3] = [("smtp", 2525), ("submission", 2587), ("submissions", 2465)];

/// Ports of the server, and the server that gets what leaves.
pub(crate) struct MailPorts {
    smtp: u16,
    submission: u16,
    submission_tls: u16,
    elsewhere: SocketAddr,
    taken: Receiver<Vec<u8>>,
}

impl MailPorts {
    /// Looks for free ports, and starts the server elsewhere.
    pub(crate) fn open() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let elsewhere = listener.local_addr()?;
        let (given, taken) = sync_channel(1);
        std::thread::Builder::new().name("demo-elsewhere".to_owned()).spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // One that breaks off comes again.
                if let Ok(Some(message)) = take_message(&stream) {
                    let _ = given.try_send(message);
                }
            }
        })?;
        let [smtp, submission, submission_tls] = [free_port()?, free_port()?, free_port()?];
        Ok(Self { smtp, submission, submission_tls, elsewhere, taken })
    }

    /// The server's settings.
    pub(crate) fn settings(&self) -> [(&'static str, String); 7] {
        let here = |port: u16| format!("127.0.0.1:{port}");
        [
            ("SCRINIUM_MAIL__DOMAINS", DOMAIN.to_owned()),
            ("SCRINIUM_SMTP__LISTEN", here(self.smtp)),
            ("SCRINIUM_SUBMISSION__LISTEN", here(self.submission)),
            ("SCRINIUM_SUBMISSION__TLS_LISTEN", here(self.submission_tls)),
            ("SCRINIUM_SUBMISSION__LOOPBACK_WITHOUT_TLS", "true".to_owned()),
            ("SCRINIUM_OUTBOUND__ROUTE", "relay".to_owned()),
            ("SCRINIUM_OUTBOUND__RELAY", self.elsewhere.to_string()),
        ]
    }

    /// Has each person get a real message that another one has, from elsewhere; or a short one where there are none. Then a person
    /// writes to somebody elsewhere. Gives sentences on what happened, which the report shows, too.
    pub(crate) fn exchange(
        &self,
        hands: Option<&Path>,
        people: &[String],
        password: &str,
    ) -> std::result::Result<Vec<String>, Failure> {
        let failed = |error: Error| Failure::Work(format!("mail by SMTP: {error}"));
        let began = Instant::now();
        let (taken, refused) = self.bring(hands, people).map_err(failed)?;
        let mut told = vec![format!(
            "Messages that came in by SMTP: {taken} in {:.1} s; {refused} were refused.",
            began.elapsed().as_secs_f64()
        )];
        let Some(author) = people.first() else { return Ok(told) };
        self.hand_in(author, password).map_err(failed)?;
        let message = self.taken.recv_timeout(WITHIN).map_err(|_| {
            Failure::Work(format!("the message to {FRIEND} did not leave within {} s", WITHIN.as_secs()))
        })?;
        told.push(format!(
            "{author}@{DOMAIN} handed in a message by submission; it went out by SMTP to {FRIEND}, {} bytes.",
            message.len()
        ));
        Ok(told)
    }

    /// How many were taken, and how many refused.
    fn bring(&self, hands: Option<&Path>, people: &[String]) -> Result<(u64, u64)> {
        let mut sender = Dialogue::open(self.smtp)?;
        let (mut taken, mut refused) = (0, 0);
        let most = people.len().min(usize::try_from(MESSAGES_MAX).unwrap_or(usize::MAX));
        for (owner, to) in people.iter().zip(people.iter().cycle().skip(1)).take(most) {
            let message = match hands.and_then(|hands| first_message(&hands.join(owner))) {
                Some(path) => read_message(&path)?,
                None => greeting(owner, to),
            };
            let is_taken = sender.send("from@elsewhere.example", &format!("{to}@{DOMAIN}"), &message)?;
            *(if is_taken { &mut taken } else { &mut refused }) += 1;
        }
        Ok((taken, refused))
    }

    /// A person's mail program hands a message in.
    fn hand_in(&self, author: &str, password: &str) -> Result<()> {
        let mut program = Dialogue::open(self.submission)?;
        let proof = STANDARD.encode(format!("\0{author}\0{password}"));
        program.ask(&format!("AUTH PLAIN {proof}"), "235")?;
        let text = format!(
            "From: {author}@{DOMAIN}\r\nTo: {FRIEND}\r\nSubject: Greetings from the demonstration\r\n\r\nIt works.\r\n"
        );
        if program.send(&format!("{author}@{DOMAIN}"), FRIEND, text.as_bytes())? {
            return Ok(());
        }
        Err(Error::other(format!("the message to {FRIEND} was refused")))
    }
}

/// The configuration of the server that people start afterwards, with ports that stay the same.
pub(crate) fn write_configuration(folder: &Path) -> Result<PathBuf> {
    let [smtp, submission, submissions] = LASTING_PORTS.map(|(_, port)| format!("127.0.0.1:{port}"));
    let path = folder.join("scrinium.toml");
    let text = format!(
        "# The demonstration's server, for programs of this machine alone.\n\
         [mail]\ndomains = [\"{DOMAIN}\"]\n\n[smtp]\nlisten = [\"{smtp}\"]\n\n\
         [submission]\nlisten = [\"{submission}\"]\ntls_listen = [\"{submissions}\"]\nloopback_without_tls = true\n"
    );
    std::fs::write(&path, text)?;
    Ok(path)
}

/// How to send to it then.
pub(crate) fn how_to(person: &str, password: &str) -> String {
    let [smtp, submission, submissions] = LASTING_PORTS.map(|(_, port)| port);
    format!(
        "Mail to it: curl smtp://127.0.0.1:{smtp}/elsewhere.example --mail-from you@elsewhere.example \
         --mail-rcpt {person}@{DOMAIN} --crlf --upload-file MESSAGE\n\
         Mail programs: {person}@{DOMAIN}, name {person}, password {password}; SMTP at 127.0.0.1 port {submissions} (TLS) \
         or {submission}"
    )
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The first of a person's messages.
fn first_message(hand: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(hand).ok()?.flatten();
    files.map(|file| file.path()).min()
}

fn read_message(path: &Path) -> Result<Vec<u8>> {
    let mut message = Vec::new();
    std::fs::File::open(path)?.take(MESSAGE_LIMIT_BYTES).read_to_end(&mut message)?;
    Ok(message)
}

fn greeting(from: &str, to: &str) -> Vec<u8> {
    format!(
        "From: A friend of {from} <from@elsewhere.example>\r\nTo: {to}@{DOMAIN}\r\nSubject: Hello {to}\r\n\
         Message-ID: <{from}.{to}@elsewhere.example>\r\n\r\nThis came by SMTP.\r\n"
    )
    .into_bytes()
}

/// One side of a connection that speaks SMTP.
struct Dialogue(BufReader<TcpStream>);

impl Dialogue {
    /// Connects to a port of the server and greets.
    fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        let mut dialogue = Self::on(stream)?;
        dialogue.expect("220")?;
        dialogue.ask("EHLO elsewhere.example", "250")?;
        Ok(dialogue)
    }

    fn on(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(WITHIN))?;
        stream.set_write_timeout(Some(WITHIN))?;
        Ok(Self(BufReader::new(stream)))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    fn line(&mut self) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        (&mut self.0).take(LINE_LIMIT_BYTES).read_until(b'\n', &mut line)?;
        if line.ends_with(b"\n") { Ok(line) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    /// The last line of a reply.
    fn reply(&mut self) -> Result<String> {
        loop {
            let line = self.line()?;
            if line.get(3) != Some(&b'-') {
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
        }
    }

    fn expect(&mut self, code: &str) -> Result<()> {
        let reply = self.reply()?;
        if reply.starts_with(code) { Ok(()) } else { Err(Error::other(format!("it answered: {reply}"))) }
    }

    fn ask(&mut self, command: &str, code: &str) -> Result<()> {
        self.write(format!("{command}\r\n").as_bytes())?;
        self.expect(code)
    }

    /// Sends a message to one recipient; whether it was taken.
    fn send(&mut self, from: &str, to: &str, message: &[u8]) -> Result<bool> {
        self.ask(&format!("MAIL FROM:<{from}> BODY=8BITMIME"), "250")?;
        self.ask(&format!("RCPT TO:<{to}>"), "250")?;
        self.ask("DATA", "354")?;
        let mut text = Vec::with_capacity(message.len() + message.len() / 32);
        let mut writer = DotWriter::new(BareEnds::Normalise);
        let is_written = writer.write(message, &mut text).and_then(|()| writer.finish(&mut text));
        is_written.map_err(|fault| Error::other(format!("the message cannot be sent: {fault:?}")))?;
        self.write(&text)?;
        Ok(self.reply()?.starts_with("250"))
    }
}

/// The server elsewhere: takes one message of a connection.
fn take_message(stream: &TcpStream) -> Result<Option<Vec<u8>>> {
    let mut dialogue = Dialogue::on(stream.try_clone()?)?;
    let mut message = None;
    dialogue.write(b"220 elsewhere.example ESMTP\r\n")?;
    loop {
        let command = dialogue.line()?.to_ascii_uppercase();
        match command.get(..4) {
            Some(b"DATA") => {
                dialogue.write(b"354 go on\r\n")?;
                message = Some(take_text(&mut dialogue)?);
                dialogue.write(b"250 2.0.0 taken\r\n")?;
                // What it is asked further is of no interest.
                return Ok(message);
            }
            Some(b"QUIT") => {
                dialogue.write(b"221 2.0.0 bye\r\n")?;
                return Ok(message);
            }
            _ => dialogue.write(b"250 2.0.0 ok\r\n")?,
        }
    }
}

/// Lines until the one that is a dot (RFC 5321, section 4.1.1.4).
fn take_text(dialogue: &mut Dialogue) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        let line = dialogue.line()?;
        if line == b".\r\n" {
            return Ok(text);
        }
        if text.len() as u64 > MESSAGE_LIMIT_BYTES {
            return Err(Error::other("the message is too long"));
        }
        text.extend_from_slice(line.strip_prefix(b".").unwrap_or(&line));
    }
}

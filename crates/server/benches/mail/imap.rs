//! Mail programs that speak IMAP, and where they speak it: at Scrinium and at Dovecot.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use scrinium_bench::client::Connection;
use serde_json::{Value, json};

use super::ours::Ours;
use super::sender::{Dialect, Sender};
use super::{PEOPLE, free_port, person};

/// No answer takes longer.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);

/// Everybody's password of old.
const PASSWORD: &str = "a password of benchmarks";

/// A server that people log in to.
pub struct Place {
    pub address: SocketAddr,
    /// Their passwords, by their numbers.
    pub passwords: Vec<String>,
}

impl Place {
    /// Whoever logs in comes in, by any password.
    pub fn open_to_all(address: SocketAddr, people: u64) -> Self {
        Self { address, passwords: (0..people).map(|_| "any".to_owned()).collect() }
    }

    pub fn log_in(&self, number: u64) -> Client<TcpStream> {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(ANSWER_WITHIN)).unwrap();
        let mut client = Client::greeted(stream);
        client.log_in(number, self);
        client
    }
}

/// Scrinium with ports for IMAP, and an app password for each of the first people.
pub fn ours_with_imap(people: u64, more: &[(&str, &str)]) -> (Ours, Place, SocketAddr) {
    let [plain, tls] = [free_port(), free_port()].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let (listen, tls_listen) = (plain.to_string(), tls.to_string());
    let own = [
        ("SCRINIUM_IMAP__LISTEN", listen.as_str()),
        ("SCRINIUM_IMAP__TLS_LISTEN", &tls_listen),
        ("SCRINIUM_IMAP__LOOPBACK_WITHOUT_TLS", "true"),
    ];
    let mut ours = Ours::start(&[&own, more].concat());
    let passwords = (0..people.min(PEOPLE)).map(|number| app_password(&mut ours, &person(number))).collect();
    (ours, Place { address: plain, passwords }, tls)
}

fn app_password(ours: &mut Ours, name: &str) -> String {
    let path = format!("/directory/person:{name}");
    let mut document = ours.request("GET", &path, &Value::Null);
    document["password"] = json!(PASSWORD);
    ours.request("PUT", &path, &document);
    let mut own = Connection::open(ours.server().address(), name, PASSWORD);
    let asked = json!({"name": "mail", "protocols": ["imap"]}).to_string();
    let made: Value =
        serde_json::from_str(own.request("POST", "/_credentials/app_passwords", &asked)).unwrap();
    made["password"].as_str().unwrap().to_owned()
}

/// A mail program over a connection of some kind.
pub struct Client<S> {
    stream: BufReader<S>,
    line: Vec<u8>,
}

impl<S: Read + Write> Client<S> {
    /// Hears the greeting.
    pub fn greeted(stream: S) -> Self {
        let mut client = Self { stream: BufReader::new(stream), line: Vec::new() };
        assert!(client.line().starts_with(b"* OK"));
        client
    }

    pub fn log_in(&mut self, number: u64, place: &Place) {
        let password = &place.passwords[usize::try_from(number).unwrap()];
        self.ask(&format!("LOGIN {} \"{password}\"", person(number)));
    }

    /// A line; literals are passed over where [`Self::answer`] reads.
    pub fn line(&mut self) -> &[u8] {
        self.next_line().expect("the connection goes on")
    }

    /// A line; nothing where the connection has ended.
    pub fn next_line(&mut self) -> Option<&[u8]> {
        self.line.clear();
        let count = self.stream.read_until(b'\n', &mut self.line).unwrap_or(0);
        (count > 0).then_some(self.line.as_slice())
    }

    pub fn send(&mut self, text: &[u8]) {
        self.stream.get_mut().write_all(text).unwrap();
        self.stream.get_mut().flush().unwrap();
    }

    /// Sends a command and reads what is answered; gives the number of lines before the last one. The command succeeds.
    pub fn ask(&mut self, command: &str) -> usize {
        self.answer(command).unwrap_or_else(|refusal| panic!("{command}: {refusal}"))
    }

    /// As [`Self::ask`], of a command that may be refused.
    pub fn answer(&mut self, command: &str) -> Result<usize, String> {
        self.send(format!("a {command}\r\n").as_bytes());
        let mut lines = 0;
        loop {
            let line = self.line();
            if line.starts_with(b"a ") {
                let text = String::from_utf8_lossy(line).trim().to_owned();
                return if line.starts_with(b"a OK") { Ok(lines) } else { Err(text) };
            }
            lines += 1;
            let end = String::from_utf8_lossy(&line[line.len().saturating_sub(24)..]).trim_end().to_owned();
            let announced = end.strip_suffix('}').and_then(|end| end.rsplit_once('{'));
            if let Some(bytes) = announced.and_then(|(_, bytes)| bytes.parse().ok()) {
                std::io::copy(&mut (&mut self.stream).take(bytes), &mut std::io::sink()).unwrap();
            }
        }
    }

    /// Hands a message in, which is acknowledged when it is durable.
    pub fn append(&mut self, mailbox: &str, text: &[u8]) {
        self.send(format!("a APPEND {mailbox} {{{}}}\r\n", text.len()).as_bytes());
        while !self.line().starts_with(b"+") {}
        self.send(&[text, b"\r\n"].concat());
        loop {
            let line = self.line();
            if line.starts_with(b"a ") {
                assert!(line.starts_with(b"a OK"), "{}", String::from_utf8_lossy(line));
                return;
            }
        }
    }
}

/// A message with a subject and a day of its own.
pub fn dated(number: u64, bytes: usize) -> Vec<u8> {
    let text = super::message(number, bytes);
    let text = String::from_utf8(text).unwrap();
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun"];
    let (day, month) = (1 + number % 28, months[usize::try_from(number / 28 % 6).unwrap()]);
    let date = format!("\r\nDate: {day} {month} {} 09:20:51 +0000", 2000 + number / 168 % 26);
    text.replacen("\r\nDate: Thu, 26 Nov 2026 09:20:51 +0000", &date, 1).into_bytes()
}

/// Puts messages into the first person's INBOX over some connections of LMTP.
pub fn fill(lmtp: SocketAddr, numbers: std::ops::Range<u64>, bytes: usize) {
    const CONNECTIONS: usize = 8;
    // A connection is ended after a thousand messages.
    const MESSAGES_EACH: usize = 500;
    std::thread::scope(|scope| {
        for first in 0..CONNECTIONS as u64 {
            let numbers = numbers.clone();
            scope.spawn(move || {
                let own: Vec<u64> = (numbers.start + first..numbers.end).step_by(CONNECTIONS).collect();
                for numbers in own.chunks(MESSAGES_EACH) {
                    let mut sender = Sender::open(lmtp, Dialect::Lmtp);
                    for number in numbers {
                        sender.send(0, &dated(*number, bytes));
                    }
                    sender.ask("QUIT");
                }
            });
        }
    });
}

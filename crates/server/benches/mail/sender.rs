//! Those who send: each has one connection and sends message after message over it, as servers do that have much to say.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{DOMAIN, message, person};

/// No reply takes longer.
const REPLY_WITHIN: Duration = Duration::from_secs(120);

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Smtp,
    Lmtp,
}

/// A connection that has greeted.
pub struct Sender(BufReader<TcpStream>);

impl Sender {
    pub fn open(to: SocketAddr, dialect: Dialect) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(REPLY_WITHIN)).unwrap();
        stream.set_write_timeout(Some(REPLY_WITHIN)).unwrap();
        let mut sender = Self(BufReader::new(stream));
        assert_eq!(sender.reply(), 220);
        let word = if dialect == Dialect::Lmtp { "LHLO" } else { "EHLO" };
        assert_eq!(sender.ask(&format!("{word} elsewhere.example")), 250);
        sender
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// The code of one whole reply.
    pub fn reply(&mut self) -> u16 {
        let mut line = String::new();
        loop {
            line.clear();
            self.0.read_line(&mut line).unwrap();
            assert!(line.len() >= 4, "the connection ended: {line:?}");
            if line.as_bytes()[3] != b'-' {
                return line[..3].parse().unwrap();
            }
        }
    }

    pub fn ask(&mut self, command: &str) -> u16 {
        self.write(format!("{command}\r\n").as_bytes());
        self.reply()
    }

    /// Sends a message to one person; the envelope goes out at once (RFC 2920).
    pub fn send(&mut self, number: u64, text: &[u8]) {
        let to = person(number);
        self.write(
            format!("MAIL FROM:<eve@elsewhere.example>\r\nRCPT TO:<{to}@{DOMAIN}>\r\nDATA\r\n").as_bytes(),
        );
        assert_eq!((self.reply(), self.reply(), self.reply()), (250, 250, 354), "to {to}");
        self.write(&[text, b".\r\n"].concat());
        assert_eq!(self.reply(), 250, "message {number} to {to}");
    }
}

/// What senders have done.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub messages: u64,
    pub began: Instant,
    /// Until the last was acknowledged.
    pub took: Duration,
}

/// Sends messages of this size over this number of connections for this time; `from` numbers them.
pub fn send_for(
    (to, dialect): (SocketAddr, Dialect),
    connections: u64,
    lasts: Duration,
    (from, bytes): (&AtomicU64, usize),
) -> Sent {
    let first = from.load(Ordering::Relaxed);
    // Messages are made before, so that what is measured is the server.
    let texts: Vec<Vec<u8>> = (0..64).map(|number| message(first + number, bytes)).collect();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..connections {
            let texts = &texts;
            scope.spawn(move || {
                let mut sender = Sender::open(to, dialect);
                while began.elapsed() < lasts {
                    let number = from.fetch_add(1, Ordering::Relaxed);
                    let mut text = texts[usize::try_from(number % 64).unwrap()].clone();
                    renumber(&mut text, number);
                    sender.send(number, &text);
                }
                sender.ask("QUIT");
            });
        }
    });
    Sent { messages: from.load(Ordering::Relaxed) - first, began, took: began.elapsed() }
}

/// Gives a text a Message-ID of its own.
fn renumber(text: &mut [u8], number: u64) {
    let at = text.windows(13).position(|window| window == b"Message-ID: <").unwrap() + 13;
    let fresh = format!("{:016x}", scrinium_bench::scatter(number));
    let room = text[at..].iter().position(|byte| *byte == b'.').unwrap();
    let fresh = &fresh.as_bytes()[fresh.len() - room.min(fresh.len())..];
    text[at..at + fresh.len()].copy_from_slice(fresh);
}

//! A mail server in memory: SMTP and LMTP put messages into mailboxes, IMAP and POP3 read them, each plain, encrypted from
//! the beginning or by its own command. It can lose a delivery, and make one twice.
#![allow(dead_code, unreachable_pub, reason = "each test uses another part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fall over")]

pub mod encryption;
mod reading;
mod sending;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub use encryption::Identity;

/// The password of everybody.
pub const PASSWORD: &str = "word";

/// When connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    Plain,
    /// Nobody gets anything before the protocol's own command.
    ByCommand,
    FromTheBeginning,
}

/// What the server does wrong: the delivery of this number, the first is 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lost: Option<u64>,
    pub twice: Option<u64>,
}

#[derive(Clone)]
pub struct Stored {
    pub uid: u32,
    pub text: Arc<Vec<u8>>,
    deleted: bool,
    seen: bool,
}

#[derive(Default)]
struct State {
    mailboxes: BTreeMap<String, Vec<Stored>>,
    uid: u32,
    deliveries: u64,
    logins: u64,
    pages: u64,
}

impl State {
    fn store(&mut self, name: &str, text: Arc<Vec<u8>>) {
        self.uid += 1;
        let stored = Stored { uid: self.uid, text, deleted: false, seen: false };
        self.mailboxes.entry(name.to_owned()).or_default().push(stored);
    }

    fn deliver(&mut self, address: &str, text: &Arc<Vec<u8>>, faults: Faults) {
        let name = address.split('@').next().unwrap_or_default();
        self.deliveries += 1;
        let copies = match Some(self.deliveries) {
            number if number == faults.lost => 0,
            number if number == faults.twice => 2,
            _ => 1,
        };
        for _ in 0..copies {
            self.store(name, Arc::clone(text));
        }
    }
}

/// Ports of a running server.
pub struct MailServer {
    pub smtp: u16,
    pub lmtp: u16,
    pub imap: u16,
    pub pop3: u16,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    security: Security,
    acceptor: Option<TlsAcceptor>,
    faults: Faults,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection, by lines.
struct Line {
    stream: BufReader<Box<dyn Stream>>,
    encrypted: bool,
    shared: Arc<Shared>,
}

#[derive(Clone, Copy)]
enum Protocol {
    Smtp,
    Lmtp,
    Imap,
    Pop3,
}

impl MailServer {
    pub async fn start(security: Security, identity: Option<&Identity>, faults: Faults) -> Self {
        let acceptor = identity.map(Identity::acceptor);
        let shared = Arc::new(Shared { state: Mutex::default(), security, acceptor, faults });
        let mut ports = [0; 4];
        let protocols = [Protocol::Smtp, Protocol::Lmtp, Protocol::Imap, Protocol::Pop3];
        for (port, protocol) in ports.iter_mut().zip(protocols) {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            *port = listener.local_addr().unwrap().port();
            tokio::spawn(listen(listener, protocol, Arc::clone(&shared)));
        }
        let [smtp, lmtp, imap, pop3] = ports;
        Self { smtp, lmtp, imap, pop3, shared }
    }

    /// Messages in somebody's mailbox.
    pub fn mailbox(&self, name: &str) -> Vec<Stored> {
        self.shared.state.lock().mailboxes.get(name).cloned().unwrap_or_default()
    }

    /// Deliveries that were taken over.
    pub fn deliveries(&self) -> u64 {
        self.shared.state.lock().deliveries
    }

    /// Lists of messages that IMAP was asked for.
    pub fn pages(&self) -> u64 {
        self.shared.state.lock().pages
    }

    /// How often somebody has logged in to IMAP.
    pub fn logins(&self) -> u64 {
        self.shared.state.lock().logins
    }

    /// Messages that somebody has marked as read.
    pub fn seen(&self) -> usize {
        self.shared.state.lock().mailboxes.values().flatten().filter(|message| message.seen).count()
    }
}

async fn listen(listener: TcpListener, protocol: Protocol, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).unwrap();
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let stream = BufReader::with_capacity(1 << 10, Box::new(stream) as Box<dyn Stream>);
            let mut line = Line { stream, encrypted: false, shared };
            if line.shared.security == Security::FromTheBeginning {
                let Some(encrypted) = line.encrypt().await else { return };
                line = encrypted;
            }
            match protocol {
                Protocol::Smtp => sending::serve(line, false).await,
                Protocol::Lmtp => sending::serve(line, true).await,
                Protocol::Imap => reading::imap(line).await,
                Protocol::Pop3 => reading::pop3(line).await,
            }
        });
    }
}

impl Line {
    /// Goes on encrypted; `None` if the client does not. What was read before counts no longer.
    async fn encrypt(self) -> Option<Self> {
        let acceptor = self.shared.acceptor.clone()?;
        let stream = acceptor.accept(self.stream.into_inner()).await.ok()?;
        let stream = BufReader::with_capacity(1 << 10, Box::new(stream) as Box<dyn Stream>);
        Some(Self { stream, encrypted: true, shared: self.shared })
    }

    /// Whether somebody may do anything but encrypt.
    fn is_open(&self) -> bool {
        self.encrypted || self.shared.security == Security::Plain
    }

    /// The next line, without its end; `None` at the end of all.
    async fn hear(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let read = self.stream.read_until(b'\n', &mut line).await.ok()?;
        (read > 0).then(|| String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned())
    }

    async fn hear_bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).await.ok()?;
        Some(bytes)
    }

    async fn say(&mut self, text: impl AsRef<[u8]>) -> Option<()> {
        self.stream.write_all(text.as_ref()).await.ok()?;
        self.stream.flush().await.ok()
    }
}

//! One connection: bytes between a stream and a session, and time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use scrinium_accounting::Busy;
use scrinium_credentials::Protection;
use scrinium_port::{Arrival, Ending, Link, PortStream, raised};
use scrinium_smtp::{Answer, Encryption, Peer, Request, ServerSession};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::guest::Guest;
use crate::protocol::{PortSecurity, SharedProtocol};

/// Read at a time while commands come; an idle connection holds this much.
const LEAST_READ_BYTES: usize = 2 << 10;

/// Read at a time while a text comes.
const MOST_READ_BYTES: usize = 32 << 10;

/// How long a client may take nothing of replies that are ready.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the end of a connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection under way.
pub(crate) struct Connection {
    /// `None` only while hands are shaken, and when that failed.
    stream: Option<PortStream>,
    link: Arc<Link>,
    session: ServerSession,
    guest: Box<dyn Guest>,
    shared: Arc<SharedProtocol>,
    /// What was read and the session has not taken.
    read: Vec<u8>,
    read_bytes: usize,
    /// While a message comes, the connection is not idle.
    message: Option<Busy>,
}

/// What ended a wait.
enum Event {
    Read(io::Result<usize>),
    Late,
    Stopping,
    Shed,
}

impl Connection {
    pub(crate) fn new(arrival: Arrival, shared: Arc<SharedProtocol>) -> Self {
        let Arrival { stream, link } = arrival;
        let address = link.peer.address;
        let is_private = shared.security.trusts_loopback && address.is_loopback();
        let peer = Peer { address: Some(address), name: None, is_private };
        // A proxy that is believed may say that it has encrypted.
        let encryption =
            encryption_of(&stream, &shared.security).or_else(|| link.peer.secure.then(Encryption::default));
        let session =
            ServerSession::new(Arc::clone(&shared.options), peer, encryption, shared.clock.now_ms());
        let guest = shared.surroundings.receive(&link);
        Self {
            stream: Some(stream),
            link,
            session,
            guest,
            shared,
            read: Vec::new(),
            read_bytes: LEAST_READ_BYTES,
            message: None,
        }
    }

    pub(crate) async fn serve(mut self, mut ending: Ending) {
        if let Err(error) = self.converse(&mut ending).await {
            tracing::debug!(address = %self.link.peer.address, %error, "a connection ended early");
        }
        self.session.disconnected();
        while let Some(request) = self.session.next(self.now_ms()) {
            let answer = self.guest.answer(request, self.protection()).await;
            self.session.answer(answer, self.now_ms());
        }
        if let Some(mut stream) = self.stream.take() {
            // The client may be gone; then there is nothing to close.
            drop(tokio::time::timeout(CLOSE_TIMEOUT, stream.shutdown()).await);
        }
    }

    fn protection(&self) -> Protection {
        if self.session.is_protected() { Protection::Protected } else { Protection::Open }
    }

    fn now_ms(&self) -> u64 {
        self.shared.clock.now_ms()
    }

    async fn converse(&mut self, ending: &mut Ending) -> io::Result<()> {
        loop {
            let request = self.session.next(self.now_ms());
            if self.session.wants_flush() {
                self.flush().await?;
            }
            match request {
                Some(Request::StartTls) => self.encrypt().await?,
                Some(request) => self.ask(request, ending).await,
                None if self.session.is_closed() => return self.flush().await,
                None if !self.read.is_empty() && self.session.wants_input() => self.offer(),
                None => self.wait(ending).await?,
            }
        }
    }

    /// Sends all replies that there are.
    async fn flush(&mut self) -> io::Result<()> {
        let output = self.session.take_output();
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        if output.is_empty() {
            return Ok(());
        }
        let sent = async {
            stream.write_all(&output).await?;
            stream.flush().await
        };
        tokio::time::timeout(WRITE_TIMEOUT, sent)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// STARTTLS: what is ready goes in the clear, then hands are shaken. What came in the clear behind the command was
    /// refused by the session, or is refused here.
    async fn encrypt(&mut self) -> io::Result<()> {
        self.flush().await?;
        let security = &self.shared.security;
        let (Some(stream), Some(tls)) = (self.stream.take(), &security.tls) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if !self.read.is_empty() {
            // RFC 3207 §4.2: it may be somebody else's.
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "commands came in the clear behind STARTTLS",
            ));
        }
        let patience = Duration::from_millis(self.shared.options.times.tls_ms);
        let stream = stream.encrypt(tls, patience).await?;
        let encryption = encryption_of(&stream, security).unwrap_or_default();
        self.stream = Some(stream);
        self.session.answer(Answer::Encrypted(encryption), self.now_ms());
        Ok(())
    }

    /// Asks the surroundings, for as long as the session waits. Only the answer to a whole message is waited for when the
    /// server stops.
    async fn ask(&mut self, request: Request, ending: &mut Ending) {
        let is_finish = matches!(request, Request::Finish(_));
        if matches!(request, Request::Begin(_)) {
            self.message = Some(self.link.connection.begin());
        }
        let is_last = is_finish || matches!(request, Request::Abandon);
        let _busy = self.link.connection.begin();
        let wait = self.session.deadline_ms().saturating_sub(self.now_ms());
        let protection = self.protection();
        let answer = tokio::select! {
            biased;
            answer = self.guest.answer(request, protection) => Some(answer),
            () = raised(if is_finish { &mut ending.aborting } else { &mut ending.stopping }) => None,
            () = tokio::time::sleep(Duration::from_millis(wait)) => None,
        };
        let now_ms = self.shared.clock.now_ms();
        if is_last {
            self.message = None;
        }
        match answer {
            Some(answer) => self.session.answer(answer, now_ms),
            None if now_ms >= self.session.deadline_ms() => self.session.time_passed(now_ms),
            None if is_finish => self.session.disconnected(),
            None => self.session.shut_down(now_ms),
        }
    }

    /// Gives the session what was read; what it does not take stays.
    fn offer(&mut self) {
        let taken = self.session.receive(&self.read, self.shared.clock.now_ms());
        self.read.drain(..taken.min(self.read.len()));
    }

    /// Waits for input, the session's deadline or the server's end.
    async fn wait(&mut self, ending: &mut Ending) -> io::Result<()> {
        let wait = Duration::from_millis(self.session.deadline_ms().saturating_sub(self.now_ms()));
        let wants_input = self.session.wants_input();
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        let limit = self.read_bytes;
        self.read.reserve_exact(limit);
        let mut bounded = stream.take(limit as u64);
        let event = tokio::select! {
            biased;
            () = raised(&mut ending.stopping) => Event::Stopping,
            read = bounded.read_buf(&mut self.read), if wants_input => Event::Read(read),
            () = self.link.shed() => Event::Shed,
            () = tokio::time::sleep(wait) => Event::Late,
        };
        let now_ms = self.now_ms();
        match event {
            Event::Read(read) => {
                let length = read?;
                if length == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.adapt(length);
                self.offer();
            }
            Event::Late => self.session.time_passed(now_ms),
            Event::Stopping | Event::Shed => self.session.shut_down(now_ms),
        }
        Ok(())
    }

    /// A long text is read in long pieces; who sends commands holds little.
    fn adapt(&mut self, length: usize) {
        if length == self.read_bytes {
            self.read_bytes = (self.read_bytes * 2).min(MOST_READ_BYTES);
        } else if length < self.read_bytes / 8 {
            self.read_bytes = LEAST_READ_BYTES;
            self.read.shrink_to(LEAST_READ_BYTES);
        }
    }
}

/// What a session knows of a stream's TLS.
fn encryption_of(stream: &PortStream, security: &PortSecurity) -> Option<Encryption> {
    let session = stream.session()?;
    let suite = session.negotiated_cipher_suite();
    let cipher = suite.and_then(|suite| suite.suite().as_str().map(str::to_owned));
    let mut encryption = Encryption { cipher, ..Encryption::default() };
    encryption.bindings.exporter = stream.exporter();
    encryption.bindings.server_end_point =
        security.server_end_point.as_ref().and_then(|end_point| end_point());
    Some(encryption)
}

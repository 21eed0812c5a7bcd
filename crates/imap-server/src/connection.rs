//! One connection: bytes between a stream and a session, time, and what changes in the folder that is selected.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use scrinium_credentials::Protection;
use scrinium_imap::{Answer, Encryption, Peer, Request, ServerSession, Watching};
use scrinium_port::{Arrival, Ending, Link, PortStream, raised};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::desk::Desk;
use crate::protocol::SharedProtocol;

/// Read at a time while commands come; an idle connection holds this much.
const LEAST_READ_BYTES: usize = 1 << 10;

/// Read at a time while a message comes.
const MOST_READ_BYTES: usize = 32 << 10;

/// How long a client may take nothing of what is ready.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// How long the end of a connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection under way.
pub(crate) struct Connection {
    /// `None` only while hands are shaken, and when that failed.
    stream: Option<PortStream>,
    link: Arc<Link>,
    session: ServerSession,
    desk: Desk,
    shared: Arc<SharedProtocol>,
    /// What was read and the session has not taken.
    read: Vec<u8>,
    read_bytes: usize,
}

/// What ended a wait.
enum Event {
    Read(io::Result<usize>),
    Changed,
    Late,
    Ending,
}

impl Connection {
    pub(crate) fn new(arrival: Arrival, shared: Arc<SharedProtocol>) -> Self {
        let Arrival { stream, link } = arrival;
        let address = link.peer.address;
        let is_private = shared.trusts_loopback && address.is_loopback();
        let options = if is_private { &shared.local_session } else { &shared.session };
        // A proxy that is believed may say that it has encrypted.
        let encryption =
            encryption_of(&stream, &shared).or_else(|| link.peer.secure.then(Encryption::default));
        let peer = Peer { address: Some(address) };
        let session = ServerSession::new(Arc::clone(options), peer, encryption, shared.clock.now_ms());
        let desk = Desk::new(Arc::clone(&shared.surroundings), Arc::clone(&link));
        Self {
            stream: Some(stream),
            link,
            session,
            desk,
            shared,
            read: Vec::new(),
            read_bytes: LEAST_READ_BYTES,
        }
    }

    pub(crate) async fn serve(mut self, mut ending: Ending) {
        if let Err(error) = self.converse(&mut ending).await {
            tracing::debug!(address = %self.link.peer.address, %error, "a connection ended early");
        }
        self.session.disconnected();
        while let Some(request) = self.session.next(self.now_ms()) {
            let answer = self.desk.answer(request, self.protection()).await;
            self.session.answer(answer, self.now_ms());
        }
        if let Some(mut stream) = self.stream.take() {
            // The client may be gone; then there is nothing to close.
            drop(tokio::time::timeout(CLOSE_TIMEOUT, stream.shutdown()).await);
        }
    }

    fn now_ms(&self) -> u64 {
        self.shared.clock.now_ms()
    }

    fn protection(&self) -> Protection {
        let is_encrypted = self.stream.as_ref().is_some_and(|stream| stream.session().is_some());
        let is_private = self.shared.trusts_loopback && self.link.peer.address.is_loopback();
        if is_encrypted || is_private || self.link.peer.secure {
            Protection::Protected
        } else {
            Protection::Open
        }
    }

    async fn converse(&mut self, ending: &mut Ending) -> io::Result<()> {
        loop {
            let request = self.session.next(self.now_ms());
            let has_sent = self.flush().await?;
            match request {
                Some(Request::StartTls) => self.encrypt().await?,
                Some(request) => self.ask(request, ending).await,
                // What waited for the client to take this goes on.
                None if has_sent => {}
                None if self.session.is_closed() => return Ok(()),
                None if !self.read.is_empty() && self.session.wants_input() => self.offer(),
                None => self.wait(ending).await?,
            }
        }
    }

    /// Sends what is ready, for as long as the client takes some of it now and then. Whether there was something.
    async fn flush(&mut self) -> io::Result<bool> {
        let output = self.session.take_output();
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        if output.is_empty() {
            return Ok(false);
        }
        let mut left = output.as_slice();
        while !left.is_empty() {
            let sent = tokio::time::timeout(WRITE_TIMEOUT, stream.write(left));
            let count = sent.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            left = left.get(count..).unwrap_or_default();
        }
        let flushed = tokio::time::timeout(WRITE_TIMEOUT, stream.flush());
        flushed.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok(true)
    }

    /// STARTTLS: what was ready has gone in the clear, now hands are shaken.
    async fn encrypt(&mut self) -> io::Result<()> {
        let (Some(stream), Some(tls)) = (self.stream.take(), &self.shared.tls) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if !self.read.is_empty() {
            // RFC 9051, section 6.2.1: it may be somebody else's.
            let what = "commands came in the clear behind STARTTLS";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let patience = Duration::from_millis(self.shared.session.times.tls_ms);
        let stream = stream.encrypt(tls, patience).await?;
        let encryption = encryption_of(&stream, &self.shared).unwrap_or_default();
        self.stream = Some(stream);
        self.session.answer(Answer::Encrypted(encryption), self.now_ms());
        Ok(())
    }

    /// Asks the surroundings, for as long as the session waits. Only messages that are being stored are waited for when the server
    /// stops.
    async fn ask(&mut self, request: Request, ending: &mut Ending) {
        let is_storing = matches!(request, Request::FinishAppend);
        let _busy = self.link.connection.begin();
        let wait = Duration::from_millis(self.session.deadline_ms().saturating_sub(self.now_ms()));
        let protection = self.protection();
        let answer = tokio::select! {
            biased;
            answer = self.desk.answer(request, protection) => Some(answer),
            () = raised(if is_storing { &mut ending.aborting } else { &mut ending.stopping }) => None,
            () = tokio::time::sleep(wait) => None,
        };
        let now_ms = self.now_ms();
        match answer {
            Some(answer) => self.session.answer(answer, now_ms),
            None if now_ms >= self.session.deadline_ms() => self.session.time_passed(now_ms),
            None if is_storing => self.session.disconnected(),
            None => self.session.shut_down(now_ms),
        }
    }

    /// Gives the session what was read; what it does not take stays.
    fn offer(&mut self) {
        let taken = self.session.receive(&self.read, self.now_ms());
        self.read.drain(..taken.min(self.read.len()));
        if self.read.is_empty() && self.read.capacity() > LEAST_READ_BYTES {
            self.read = Vec::new();
        }
    }

    /// Waits for input, a change in the folder that the client watches, the session's deadline or the server's end.
    async fn wait(&mut self, ending: &mut Ending) -> io::Result<()> {
        let wait = Duration::from_millis(self.session.deadline_ms().saturating_sub(self.now_ms()));
        let wants_input = self.session.wants_input();
        let is_watching = matches!(self.session.watches(), Watching::Folder(_));
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        let limit = self.read_bytes;
        self.read.reserve_exact(limit);
        let mut bounded = stream.take(limit as u64);
        let event = tokio::select! {
            biased;
            () = raised(&mut ending.stopping) => Event::Ending,
            read = bounded.read_buf(&mut self.read), if wants_input => Event::Read(read),
            () = self.desk.changed(), if is_watching => Event::Changed,
            () = self.link.shed() => Event::Ending,
            () = tokio::time::sleep(wait) => Event::Late,
        };
        let now_ms = self.now_ms();
        match event {
            Event::Read(read) => {
                let length = read?;
                if length == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.read_bytes = if length == limit { limit * 2 } else { length.next_power_of_two() };
                self.read_bytes = self.read_bytes.clamp(LEAST_READ_BYTES, MOST_READ_BYTES);
                self.offer();
            }
            Event::Changed => self.session.wake(now_ms),
            Event::Late => self.session.time_passed(now_ms),
            Event::Ending => self.session.shut_down(now_ms),
        }
        Ok(())
    }
}

/// What a session knows of a stream's TLS.
fn encryption_of(stream: &PortStream, shared: &SharedProtocol) -> Option<Encryption> {
    stream.session()?;
    let mut encryption = Encryption::default();
    encryption.bindings.exporter = stream.exporter();
    encryption.bindings.server_end_point = shared.server_end_point.as_ref().and_then(|end_point| end_point());
    Some(encryption)
}

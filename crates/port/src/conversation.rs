//! One connection of a protocol whose sessions know no sockets: bytes between a stream and the session, and time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use scrinium_clock::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::ending::{Ending, raised};
use crate::link::Link;
use crate::ports::Arrival;
use crate::security::{PortSecurity, Secrecy};
use crate::stream::PortStream;

/// Read at a time while commands come; an idle connection holds this much.
const LEAST_READ_BYTES: usize = 1 << 10;

/// Read at a time while something long comes.
const MOST_READ_BYTES: usize = 32 << 10;

/// Of what is ready a client takes this much within the patience that it has, or all that is left.
const LEAST_TAKEN_BYTES: usize = 16 << 10;

/// How long the end of a connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a request of a session needs of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// The connection itself answers: what is ready goes in the clear, and then hands are shaken.
    StartTls,
    /// Nobody needs the answer once the server stops.
    Question,
    /// Something is being made durable: its answer is waited for also while the server stops.
    Durable,
}

/// A session without sockets, and those who answer what it asks.
pub trait Conversation: Send + 'static {
    /// What the session asks.
    type Request: Send;
    /// What it is answered.
    type Answer: Send;

    /// Does what can be done; what is to be answered next.
    fn next(&mut self, now_ms: u64) -> Option<Self::Request>;

    /// What a request needs.
    fn kind(request: &Self::Request) -> RequestKind;

    /// Answers a request. Who does not wait for the answer drops this.
    fn reply(
        &mut self,
        request: Self::Request,
        secrecy: &Secrecy,
    ) -> impl Future<Output = Self::Answer> + Send;

    /// Gives the session the answer to the request that was handed out last.
    fn answer(&mut self, answer: Self::Answer, now_ms: u64);

    /// The answer to [`RequestKind::StartTls`]: the connection is encrypted now.
    fn encrypted(&mut self, secrecy: Secrecy, now_ms: u64);

    /// Takes bytes that have come; how many.
    fn receive(&mut self, bytes: &[u8], now_ms: u64) -> usize;

    /// Whether more input would be taken and looked at.
    fn wants_input(&self) -> bool;

    /// Whether what is ready should go now.
    fn wants_flush(&self) -> bool {
        true
    }

    /// What is to be sent.
    fn take_output(&mut self) -> Vec<u8>;

    /// Whether the connection is to be closed once the output is sent and [`Self::next`] gives nothing more.
    fn is_closed(&self) -> bool;

    /// When [`Self::time_passed`] has something to do, if nothing happens before.
    fn deadline_ms(&self) -> u64;

    /// The deadline may have passed.
    fn time_passed(&mut self, now_ms: u64);

    /// The server stops, or needs the place of this connection.
    fn shut_down(&mut self, now_ms: u64);

    /// The connection is gone. [`Self::next`] may still give requests, whose answers nobody hears.
    fn disconnected(&mut self);

    /// Completes when there is news that the session waits for.
    fn changed(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// There is such news.
    fn wake(&mut self, _now_ms: u64) {}
}

/// What the conversations of a protocol have in common.
pub struct ConversationSettings {
    /// How connections are kept from others' eyes.
    pub security: PortSecurity,
    /// The time.
    pub clock: Clock,
    /// How long shaking hands may take.
    pub tls_timeout: Duration,
    /// How long a client may take for 16 KB of what is ready.
    pub write_timeout: Duration,
}

/// Serves one connection until the client leaves, it is shed ([`Link::shed`]) or the server ends.
pub async fn converse<C: Conversation>(
    arrival: Arrival,
    conversation: C,
    settings: Arc<ConversationSettings>,
    mut ending: Ending,
) {
    let Arrival { stream, link } = arrival;
    let (read, read_bytes) = (Vec::new(), LEAST_READ_BYTES);
    let secrecy = settings.security.secrecy(&stream, &link);
    let mut talk = Talk { stream: Some(stream), link, secrecy, conversation, settings, read, read_bytes };
    if let Err(error) = talk.go_on(&mut ending).await {
        tracing::debug!(address = %talk.link.peer.address, %error, "a connection ended early");
    }
    talk.end().await;
}

/// A connection under way.
struct Talk<C> {
    /// `None` only while hands are shaken, and when that failed.
    stream: Option<PortStream>,
    link: Arc<Link>,
    secrecy: Secrecy,
    conversation: C,
    settings: Arc<ConversationSettings>,
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

impl<C: Conversation> Talk<C> {
    fn now_ms(&self) -> u64 {
        self.settings.clock.now_ms()
    }

    async fn go_on(&mut self, ending: &mut Ending) -> io::Result<()> {
        loop {
            let request = self.conversation.next(self.now_ms());
            let has_to_send = self.conversation.wants_flush() || self.conversation.is_closed();
            let has_sent = has_to_send && self.flush(ending).await?;
            match request.map(|request| (C::kind(&request), request)) {
                Some((RequestKind::StartTls, _)) => self.encrypt(ending).await?,
                Some((kind, request)) => self.ask(request, kind, ending).await,
                // What waited for the client to take this goes on.
                None if has_sent => {}
                None if self.conversation.is_closed() => return Ok(()),
                None if !self.read.is_empty() && self.conversation.wants_input() => self.offer(),
                None => self.wait(ending).await?,
            }
        }
    }

    async fn end(mut self) {
        self.conversation.disconnected();
        while let Some(request) = self.conversation.next(self.now_ms()) {
            let answer = self.conversation.reply(request, &self.secrecy).await;
            self.conversation.answer(answer, self.now_ms());
        }
        if let Some(mut stream) = self.stream.take() {
            // The client may be gone; then there is nothing to close.
            drop(tokio::time::timeout(CLOSE_TIMEOUT, stream.shutdown()).await);
        }
    }

    /// Sends what is ready, for as long as the client takes it. Whether there was something.
    async fn flush(&mut self, ending: &mut Ending) -> io::Result<bool> {
        let output = self.conversation.take_output();
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        if output.is_empty() {
            return Ok(false);
        }
        let patience = self.settings.write_timeout;
        let send = async {
            for piece in output.chunks(LEAST_TAKEN_BYTES) {
                timely(patience, stream.write_all(piece)).await?;
            }
            timely(patience, stream.flush()).await
        };
        let sent = tokio::select! {
            biased;
            sent = send => sent,
            // Who takes nothing keeps neither the server's end waiting nor a place that somebody else needs.
            () = raised(&mut ending.aborting) => Err(io::ErrorKind::ConnectionAborted.into()),
            () = self.link.shed() => Err(io::ErrorKind::ConnectionAborted.into()),
        };
        sent.map(|()| true)
    }

    /// What was ready goes in the clear, then hands are shaken.
    async fn encrypt(&mut self, ending: &mut Ending) -> io::Result<()> {
        self.flush(ending).await?;
        let security = &self.settings.security;
        let (Some(stream), Some(tls)) = (self.stream.take(), &security.tls) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if !self.read.is_empty() {
            // RFC 3207, section 4.2; RFC 9051, section 6.2.1: it may be somebody else's.
            let what = "commands came in the clear behind STARTTLS";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let stream = stream.encrypt(tls, self.settings.tls_timeout).await?;
        self.secrecy = security.secrecy(&stream, &self.link);
        self.stream = Some(stream);
        self.conversation.encrypted(self.secrecy.clone(), self.now_ms());
        Ok(())
    }

    /// Asks the surroundings, for as long as the session waits.
    async fn ask(&mut self, request: C::Request, kind: RequestKind, ending: &mut Ending) {
        let is_durable = kind == RequestKind::Durable;
        let _busy = self.link.connection.begin();
        let wait = self.conversation.deadline_ms().saturating_sub(self.now_ms());
        let answer = tokio::select! {
            biased;
            answer = self.conversation.reply(request, &self.secrecy) => Some(answer),
            () = raised(if is_durable { &mut ending.aborting } else { &mut ending.stopping }) => None,
            () = tokio::time::sleep(Duration::from_millis(wait)) => None,
        };
        let now_ms = self.now_ms();
        match answer {
            Some(answer) => self.conversation.answer(answer, now_ms),
            None if now_ms >= self.conversation.deadline_ms() => self.conversation.time_passed(now_ms),
            None if is_durable => self.conversation.disconnected(),
            None => self.conversation.shut_down(now_ms),
        }
    }

    /// Gives the session what was read; what it does not take stays.
    fn offer(&mut self) {
        let taken = self.conversation.receive(&self.read, self.settings.clock.now_ms());
        self.read.drain(..taken.min(self.read.len()));
        if self.read.is_empty() && self.read.capacity() > LEAST_READ_BYTES {
            self.read = Vec::new();
        }
    }

    /// Waits for input, news, the session's deadline or the server's end.
    async fn wait(&mut self, ending: &mut Ending) -> io::Result<()> {
        let wait = self.conversation.deadline_ms().saturating_sub(self.now_ms());
        let wants_input = self.conversation.wants_input();
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        let limit = self.read_bytes;
        self.read.reserve_exact(limit);
        let mut bounded = stream.take(limit as u64);
        let event = tokio::select! {
            biased;
            () = raised(&mut ending.stopping) => Event::Ending,
            read = bounded.read_buf(&mut self.read), if wants_input => Event::Read(read),
            () = self.conversation.changed() => Event::Changed,
            () = self.link.shed() => Event::Ending,
            () = tokio::time::sleep(Duration::from_millis(wait)) => Event::Late,
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
            Event::Changed => self.conversation.wake(now_ms),
            Event::Late => self.conversation.time_passed(now_ms),
            Event::Ending => self.conversation.shut_down(now_ms),
        }
        Ok(())
    }
}

async fn timely<T>(patience: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(patience, work).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

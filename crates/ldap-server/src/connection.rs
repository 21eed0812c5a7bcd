//! One connection: bytes between a stream and a session, and time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use scrinium_accounting::{Claim, Resource};
use scrinium_credentials::sasl::{ChannelBindings, SaslMechanism};
use scrinium_credentials::{Protection, Protocol};
use scrinium_directory::{Approach, Logins, SaslConnection, SaslLogin};
use scrinium_ldap::{Answer, Request, ServerSession};
use scrinium_ldap_wire::ResultCode;
use scrinium_port::{Arrival, Ending, Link, PortStream, raised};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::desk::{Desk, Reply};
use crate::protocol::SharedProtocol;

/// Bytes that are read at a time. What is asked in them is answered at once, so that they bound the small answers that wait together.
const READ_BYTES: usize = 4 << 10;

/// How long the next whole request may take: of somebody who has not logged in, and of somebody who has.
const UNBOUND_PATIENCE: Duration = Duration::from_secs(30);
const BOUND_PATIENCE: Duration = Duration::from_mins(10);

/// How long a client may take nothing of answers that are ready.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long shaking hands may take, and the end of a connection.
const TLS_TIMEOUT: Duration = Duration::from_secs(30);
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
    /// When the last answer had gone.
    answered: Instant,
    /// What the answer that is being sent holds.
    claim: Option<Claim>,
    /// What a request holds that is not whole yet.
    coming: Option<Claim>,
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
        let connection = sasl_connection(&shared, &link, Some(&stream));
        let is_protected = connection.approach.protection == Protection::Protected;
        let offered = mechanisms(&shared, &connection);
        let session = ServerSession::new(shared.session.clone(), is_protected, offered);
        let desk = Desk::new(Arc::clone(&shared), Arc::clone(&link));
        Self {
            stream: Some(stream),
            link,
            session,
            desk,
            shared,
            read: Vec::new(),
            answered: Instant::now(),
            claim: None,
            coming: None,
        }
    }

    pub(crate) async fn serve(mut self, mut ending: Ending) {
        let mut aborting = ending.aborting.clone();
        let conversed = tokio::select! {
            conversed = self.converse(&mut ending) => conversed,
            () = raised(&mut aborting) => return,
        };
        if let Err(error) = conversed {
            tracing::debug!(address = %self.link.peer.address, %error, "a connection ended early");
        }
        if let Some(mut stream) = self.stream.take() {
            // The client may be gone; then there is nothing to close.
            drop(tokio::time::timeout(CLOSE_TIMEOUT, stream.shutdown()).await);
        }
    }

    async fn converse(&mut self, ending: &mut Ending) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let mut exchange = None;
        loop {
            let taken = self.session.receive(&self.read);
            self.read.drain(..taken.min(self.read.len()));
            let request = self.session.take_request();
            if request.is_some() {
                self.coming = None;
            }
            // Before anything is asked for, so that one answer at most is held.
            self.flush().await?;
            match request {
                Some(Request::StartTls) => self.encrypt().await?,
                Some(request) => self.ask(request, &shared.logins, &mut exchange, ending).await,
                None if self.session.is_closed() => return Ok(()),
                None => self.wait(ending).await?,
            }
        }
    }

    /// Sends all answers that there are.
    async fn flush(&mut self) -> io::Result<()> {
        let output = self.session.take_output();
        let claim = self.claim.take();
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        if output.is_empty() {
            return Ok(());
        }
        let sent = async {
            stream.write_all(&output).await?;
            stream.flush().await
        };
        let sent = tokio::time::timeout(WRITE_TIMEOUT, sent).await;
        sent.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        drop(claim);
        self.coming = None;
        self.answered = Instant::now();
        Ok(())
    }

    /// StartTLS (RFC 4511, section 4.14): the answer goes in the clear, then hands are shaken. What came in the clear behind the
    /// request is refused by the session.
    async fn encrypt(&mut self) -> io::Result<()> {
        let goes_on = self.session.may_start_tls(!self.read.is_empty());
        self.flush().await?;
        if !goes_on {
            return Ok(());
        }
        let (Some(stream), Some(tls)) = (self.stream.take(), &self.shared.tls) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let stream = stream.encrypt(tls, TLS_TIMEOUT).await?;
        self.desk.forget();
        let offered = mechanisms(&self.shared, &sasl_connection(&self.shared, &self.link, Some(&stream)));
        self.stream = Some(stream);
        self.session.answer(Answer::Encrypted, Some(offered));
        Ok(())
    }

    /// Asks the surroundings. Nothing is changed by what is asked here, so that the server's end does not wait for it.
    async fn ask<'l>(
        &mut self,
        request: Request,
        logins: &'l Logins,
        exchange: &mut Option<SaslLogin<'l>>,
        ending: &mut Ending,
    ) {
        let _busy = self.link.connection.begin();
        let connection = sasl_connection(&self.shared, &self.link, self.stream.as_ref());
        let Reply { answer, claim } = tokio::select! {
            biased;
            reply = self.desk.reply(request, connection, (logins, exchange)) => reply,
            () = raised(&mut ending.stopping) => Reply::ended(ResultCode::UNAVAILABLE, "the server stops"),
        };
        if !self.desk.knows_who_asks() {
            self.session.forget();
        }
        self.claim = claim;
        self.session.answer(answer, None);
    }

    /// Takes what was read into the account of the one who sends it; false where that has too much.
    fn holds(&mut self, bytes: usize) -> bool {
        let desk = &self.desk;
        let claim = self.coming.get_or_insert_with(|| desk.account().claim_made(Resource::Bytes, 0));
        claim.grow(bytes).is_ok()
    }

    /// Waits for input, the deadline of the next request or the server's end.
    async fn wait(&mut self, ending: &mut Ending) -> io::Result<()> {
        let patience = if self.session.is_bound() { BOUND_PATIENCE } else { UNBOUND_PATIENCE };
        let deadline = self.answered + patience;
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        self.read.reserve_exact(READ_BYTES);
        let mut bounded = stream.take(READ_BYTES as u64);
        let event = tokio::select! {
            biased;
            () = raised(&mut ending.stopping) => Event::Stopping,
            // Before what comes, so that who sends a request byte by byte is not waited for longer.
            () = tokio::time::sleep_until(deadline) => Event::Late,
            read = bounded.read_buf(&mut self.read) => Event::Read(read),
            () = self.link.shed() => Event::Shed,
        };
        match event {
            Event::Read(Ok(0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Event::Read(Err(error)) => return Err(error),
            Event::Read(Ok(length)) if !self.holds(length) => {
                self.session.shut_down("too many requests are begun and not whole; try again in a moment");
            }
            Event::Read(Ok(_)) => {}
            Event::Late => self.session.shut_down("nothing was asked for too long"),
            Event::Stopping => self.session.shut_down("the server stops"),
            Event::Shed => self.session.shut_down("the server needs the place for somebody else"),
        }
        Ok(())
    }
}

/// From where, and over what, the client comes.
fn sasl_connection(shared: &SharedProtocol, link: &Link, stream: Option<&PortStream>) -> SaslConnection {
    let address = link.peer.address;
    // A proxy that is believed may say that it has encrypted.
    let is_protected = stream.is_some_and(PortStream::is_encrypted)
        || link.peer.secure
        || shared.trusts_loopback && address.is_loopback();
    let protection = if is_protected { Protection::Protected } else { Protection::Open };
    let approach = Approach { protocol: Protocol::Ldap, protection, address };
    let exporter = stream.and_then(PortStream::exporter);
    let server_end_point =
        stream.filter(|stream| stream.is_encrypted()).and_then(|_| shared.server_end_point.as_ref()?());
    SaslConnection { approach, bindings: ChannelBindings { exporter, server_end_point } }
}

/// The mechanisms of SASL that are offered. There are none where others can listen: what is read after a log-in would go in the
/// clear.
fn mechanisms(shared: &SharedProtocol, connection: &SaslConnection) -> Vec<&'static str> {
    if connection.approach.protection != Protection::Protected {
        return Vec::new();
    }
    shared.logins.mechanisms(connection, false).into_iter().map(SaslMechanism::name).collect()
}

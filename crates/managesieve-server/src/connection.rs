//! One connection: commands, one after the other.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use scrinium_credentials::sasl::{ChannelBindings, SaslMechanism};
use scrinium_credentials::{Protection, Protocol};
use scrinium_directory::{Approach, Login, SaslConnection, SaslReply};
use scrinium_managesieve_wire::{
    ClientLine, Command, InitialResponse, Mechanism, ResponseCode, Status, StatusKind, write_sasl_challenge,
};
use scrinium_port::{Arrival, Ending, Link, PortStream, raised};
use tokio::io::AsyncWriteExt;

use crate::desk::{Desk, capabilities, refused};
use crate::input::{Arrived, Input, Stop};
use crate::protocol::ManageSieveOptions;

/// Log-ins of one connection that may fail.
const FAILURES_MAX: usize = 3;

/// How long a client may take nothing of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long shaking hands may take, and the end of a connection.
const TLS_TIMEOUT: Duration = Duration::from_secs(30);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection under way.
pub(crate) struct Connection {
    /// `None` only while hands are shaken, and when that failed.
    stream: Option<PortStream>,
    link: Arc<Link>,
    shared: Arc<ManageSieveOptions>,
    input: Input,
    stop: Stop,
    login: Option<Login>,
    failures: usize,
}

impl Connection {
    pub(crate) fn new(arrival: Arrival, shared: Arc<ManageSieveOptions>, ending: &Ending) -> Self {
        let Arrival { stream, link } = arrival;
        let stop = Stop { stopping: ending.stopping.clone(), link: Arc::clone(&link) };
        Self { stream: Some(stream), link, shared, input: Input::new(), stop, login: None, failures: 0 }
    }

    /// Serves the client until one of both wants no more. A command that has begun is done before the server stops.
    pub(crate) async fn serve(mut self, mut ending: Ending) {
        let conversed = tokio::select! {
            biased;
            () = raised(&mut ending.aborting) => return,
            conversed = self.converse() => conversed,
        };
        match conversed {
            Ok(None) => {}
            // The client may be gone; then there is nothing to tell.
            Ok(Some(why)) => {
                let status = Status::bye(Some(ResponseCode::TryLater), why);
                drop(tokio::time::timeout(CLOSE_TIMEOUT, self.answer(&status)).await);
            }
            Err(error) => {
                tracing::debug!(address = %self.link.peer.address, %error, "a connection ended early");
            }
        }
        if let Some(mut stream) = self.stream.take() {
            drop(tokio::time::timeout(CLOSE_TIMEOUT, stream.shutdown()).await);
        }
    }

    /// Greets (RFC 5804 §1.7), and does commands until one of both wants no more. Why the server does not, if it does not.
    async fn converse(&mut self) -> io::Result<Option<&'static str>> {
        self.offer("ManageSieve is ready.").await?;
        loop {
            let account = self.desk().account();
            let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            let status = match self.input.next(stream, &account, &mut self.stop).await? {
                Arrived::Frame(frame) => match Command::parse(&frame) {
                    Ok(command) => self.obey(command).await?,
                    Err(error) => error.status(),
                },
                Arrived::TooLong => Status::no(Some(ResponseCode::QuotaMaxSize), "The script is too long."),
                Arrived::Stopped(why) => return Ok(Some(why)),
                Arrived::Late => Status::bye(None, "Nothing was asked for too long."),
                Arrived::Busy => Status::bye(
                    Some(ResponseCode::TryLater),
                    "Too much of you is under way; try again later.",
                ),
                Arrived::Wrong(why) => Status::bye(None, &format!("The connection cannot go on: {why}.")),
            };
            self.answer(&status).await?;
            if status.kind == StatusKind::Bye || status == closing() {
                return Ok(None);
            }
        }
    }

    /// Does a command. What it answers before its status is sent when this returns.
    async fn obey(&mut self, command: Command) -> io::Result<Status> {
        match command {
            Command::Logout => Ok(closing()),
            Command::Noop(text) => Ok(Status { code: text.map(ResponseCode::Tag), ..Status::ok("Done.") }),
            Command::Capability => {
                self.send(&self.offered()).await?;
                Ok(Status::ok("Done."))
            }
            Command::StartTls => self.encrypt().await,
            Command::Authenticate(..) if self.login.is_some() => {
                Ok(Status::no(None, "You have logged in already."))
            }
            Command::Authenticate(mechanism, initial) => self.authenticate(&mechanism, initial).await,
            _ if self.login.is_none() => Ok(Status::no(None, "Log in first.")),
            Command::Unauthenticate => {
                self.login = None;
                self.input.set_known(false);
                Ok(Status::ok("Log in again."))
            }
            command => {
                let _busy = self.link.connection.begin();
                let (data, status) = self.desk().answer(command).await;
                self.send(&data).await?;
                Ok(status)
            }
        }
    }

    fn desk(&self) -> Desk {
        Desk { shared: Arc::clone(&self.shared), link: Arc::clone(&self.link), login: self.login.clone() }
    }

    /// STARTTLS (RFC 5804 §2.2).
    async fn encrypt(&mut self) -> io::Result<Status> {
        if self.is_protected() {
            return Ok(Status::no(None, "The connection is encrypted already."));
        }
        if self.input.has_more() {
            // What others could have put in is not done as if it had come encrypted.
            return Ok(Status::bye(None, "Nothing may be sent behind STARTTLS before TLS has begun."));
        }
        self.answer(&Status::ok("Begin TLS.")).await?;
        let stream = self.stream.take().ok_or(io::ErrorKind::NotConnected)?;
        self.stream = Some(stream.encrypt(&self.shared.tls, TLS_TIMEOUT).await?);
        self.send(&self.offered()).await?;
        Ok(Status::ok("TLS has begun."))
    }

    /// AUTHENTICATE (RFC 5804 §2.1).
    async fn authenticate(
        &mut self,
        mechanism: &Mechanism,
        initial: Option<InitialResponse>,
    ) -> io::Result<Status> {
        let connection = self.sasl_connection();
        if !self.is_protected() {
            let code = Some(ResponseCode::EncryptNeeded);
            return Ok(Status::no(code, "The connection must be encrypted first: STARTTLS."));
        }
        let offered = self.shared.logins.mechanisms(&connection, self.shared.tokens.is_some());
        let Some(mechanism) =
            SaslMechanism::parse(mechanism.as_str()).filter(|mechanism| offered.contains(mechanism))
        else {
            return Ok(Status::no(None, "This way to log in is not offered here."));
        };
        let shared = Arc::clone(&self.shared);
        let mut exchange = shared.logins.begin_sasl(mechanism, connection, shared.tokens.as_deref());
        let mut reply = exchange.start(initial.as_ref().map(|initial| initial.0.as_slice())).await;
        loop {
            match reply {
                SaslReply::Challenge(challenge) => match self.ask(&challenge).await? {
                    Ok(response) => reply = exchange.respond(&response).await,
                    Err(status) => return Ok(status),
                },
                SaslReply::Accepted { login, data } => {
                    // From now on the connection is the person's.
                    let _account = self.link.account(&login.person.holder(), &self.shared.accounts);
                    self.login = Some(login);
                    self.input.set_known(true);
                    return Ok(Status { code: data.map(ResponseCode::Sasl), ..Status::ok("Welcome.") });
                }
                SaslReply::Refused { error, data } => {
                    if let Some(data) = data {
                        // Whatever is answered to it.
                        let _answered = self.ask(&data).await?;
                    }
                    self.failures += 1;
                    return Ok(refused(&error, self.failures >= FAILURES_MAX));
                }
            }
        }
    }

    /// Sends a challenge, and gives what the client responds, or why that is nothing.
    async fn ask(&mut self, challenge: &[u8]) -> io::Result<Result<Vec<u8>, Status>> {
        let mut out = Vec::new();
        write_sasl_challenge(challenge, &mut out);
        self.send(&out).await?;
        let account = self.desk().account();
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        Ok(match self.input.next(stream, &account, &mut self.stop).await? {
            Arrived::Frame(frame) => match frame.sasl_line() {
                Ok(ClientLine::Response(response)) => Ok(response),
                Ok(ClientLine::Cancel) => Err(Status::no(None, "You have given up.")),
                Err(error) => Err(Status::no(None, &format!("{error}."))),
            },
            Arrived::Wrong(why) => Err(Status::bye(None, &format!("The connection cannot go on: {why}."))),
            Arrived::Stopped(why) => Err(Status::bye(Some(ResponseCode::TryLater), why)),
            Arrived::TooLong | Arrived::Late | Arrived::Busy => {
                Err(Status::bye(Some(ResponseCode::TryLater), "The log-in was not finished."))
            }
        })
    }

    fn is_protected(&self) -> bool {
        self.stream.as_ref().is_some_and(PortStream::is_encrypted) || self.link.peer.secure
    }

    fn sasl_connection(&self) -> SaslConnection {
        let stream = self.stream.as_ref().filter(|stream| stream.is_encrypted());
        let protection = if self.is_protected() { Protection::Protected } else { Protection::Open };
        let address = self.link.peer.address;
        let approach = Approach { protocol: Protocol::ManageSieve, protection, address };
        let exporter = stream.and_then(PortStream::exporter);
        let server_end_point = stream.and_then(|_| self.shared.server_end_point.as_ref()?());
        SaslConnection { approach, bindings: ChannelBindings { exporter, server_end_point } }
    }

    /// The capabilities as they are now.
    fn offered(&self) -> Vec<u8> {
        let is_protected = self.is_protected();
        let connection = self.sasl_connection();
        let mechanisms = if is_protected && self.login.is_none() {
            self.shared.logins.mechanisms(&connection, self.shared.tokens.is_some())
        } else {
            Vec::new()
        };
        capabilities(&self.shared.version, &mechanisms, (is_protected, self.login.as_ref()))
    }

    async fn offer(&mut self, text: &str) -> io::Result<()> {
        self.send(&self.offered()).await?;
        self.answer(&Status::ok(text)).await
    }

    async fn answer(&mut self, status: &Status) -> io::Result<()> {
        let mut out = Vec::new();
        status.write(&mut out);
        self.send(&out).await
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let sent = async {
            stream.write_all(bytes).await?;
            stream.flush().await
        };
        tokio::time::timeout(WRITE_TIMEOUT, sent)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

/// The answer after which the connection ends (RFC 5804 §2.3).
fn closing() -> Status {
    Status::ok("Good bye.")
}

//! A connection to a server of LDAP, on a thread of its own: every wait has an end, and the whole has one.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use scrinium_ldap_wire::Entry;
use scrinium_people_source::{ClientError, Encryption, Event, Outcome, SourceClient, SourceOptions, Task};

/// Another server gets this long for a connection, and for each answer.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// It is looked so often whether the work goes on.
const LOOK_EVERY: Duration = Duration::from_millis(500);

const PIECE_BYTES: usize = 64 * 1024;

/// Why a source was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    #[error("{0}:{1}: {2}")]
    Network(String, u16, io::Error),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("no TLS with it: {0}")]
    Tls(String),
    #[error("it closed the connection before it had answered")]
    Closed,
    #[error("it took longer than {} s in all", .0.as_secs())]
    TooLong(Duration),
}

/// Where a source is, and whom it must show to be.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) host: String,
    pub(super) port: u16,
    /// Certificates of authorities that are trusted besides the system's.
    pub(super) trusted: Vec<PathBuf>,
    /// All of it must be over by then.
    pub(super) within: Duration,
}

enum Wire {
    Plain(TcpStream),
    Encrypted(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Wire {
    fn stream(&mut self) -> &mut dyn ReadWrite {
        match self {
            Self::Plain(stream) => stream,
            Self::Encrypted(stream) => stream.as_mut(),
        }
    }
}

trait ReadWrite: Read + Write {}

impl<T: Read + Write> ReadWrite for T {}

/// What a source has said: its entries, and how far it was read; of a password, whether it is right.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) entries: Vec<Entry>,
    pub(super) outcome: Option<Outcome>,
    pub(super) is_password_right: Option<bool>,
}

/// Asks a source.
///
/// # Errors
/// [`ConnectionError`]
pub(super) fn ask(
    target: &Target,
    options: SourceOptions,
    task: Task,
    goes_on: &dyn Fn() -> bool,
) -> Result<Told, ConnectionError> {
    let end = Instant::now() + target.within;
    let encryption = options.encryption;
    let mut client = SourceClient::new(options, task)?;
    let mut wire = Wire::Plain(connect(target)?);
    if encryption == Encryption::FromTheStart {
        wire = encrypted(wire, target, goes_on)?;
    }
    client.connected()?;
    let (mut told, mut buffer) = (Told::default(), vec![0; PIECE_BYTES]);
    loop {
        let network = |error| ConnectionError::Network(target.host.clone(), target.port, error);
        wire.stream().write_all(&client.take_output()).map_err(network)?;
        wire.stream().flush().map_err(network)?;
        if client.is_over() {
            return Ok(told);
        }
        if Instant::now() > end {
            return Err(ConnectionError::TooLong(target.within));
        }
        let count = patiently(|| wire.stream().read(&mut buffer), goes_on).map_err(network)?;
        let mut rest =
            buffer.get(..count).filter(|piece| !piece.is_empty()).ok_or(ConnectionError::Closed)?;
        loop {
            let (taken, event) = client.receive(rest)?;
            rest = rest.get(taken..).unwrap_or_default();
            match event {
                Some(Event::Entry(entry)) => told.entries.push(entry),
                Some(Event::Done(outcome)) => told.outcome = Some(outcome),
                Some(Event::PasswordChecked(is_right)) => told.is_password_right = Some(is_right),
                Some(Event::StartTls) => {
                    wire = encrypted(wire, target, goes_on)?;
                    client.tls_started()?;
                }
                None if rest.is_empty() => break,
                None => {}
            }
        }
    }
}

/// Waits for an answer, as long as another server has for it and the work goes on.
fn patiently<T>(mut look: impl FnMut() -> io::Result<T>, goes_on: &dyn Fn() -> bool) -> io::Result<T> {
    let end = Instant::now() + ANSWER_WITHIN;
    loop {
        match look() {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
                    && Instant::now() < end
                    && goes_on() => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn connect(target: &Target) -> Result<TcpStream, ConnectionError> {
    let network = |error| ConnectionError::Network(target.host.clone(), target.port, error);
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (target.host.as_str(), target.port).to_socket_addrs().map_err(network)? {
        match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
            Ok(stream) => {
                stream.set_read_timeout(Some(LOOK_EVERY)).map_err(network)?;
                stream.set_write_timeout(Some(ANSWER_WITHIN)).map_err(network)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(network(last))
}

/// Shakes hands; the certificate must be for the host.
fn encrypted(wire: Wire, target: &Target, goes_on: &dyn Fn() -> bool) -> Result<Wire, ConnectionError> {
    let Wire::Plain(stream) = wire else { return Ok(wire) };
    let tls = |error: &dyn std::fmt::Display| ConnectionError::Tls(error.to_string());
    let config: Arc<ClientConfig> = crate::tls::client(&target.trusted).map_err(|error| tls(&error))?;
    let name = ServerName::try_from(target.host.clone()).map_err(|error| tls(&error))?;
    let connection = ClientConnection::new(config, name).map_err(|error| tls(&error))?;
    let mut stream = StreamOwned::new(connection, stream);
    while stream.conn.is_handshaking() {
        let step = patiently(|| stream.conn.complete_io(&mut stream.sock), goes_on);
        step.map_err(|error| tls(&error))?;
    }
    Ok(Wire::Encrypted(Box::new(stream)))
}

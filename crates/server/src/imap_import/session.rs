//! A session at another server of IMAP, from which mail is brought: every wait has an end, and nothing that the server sends is
//! kept beyond limits.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use scrinium_imap_wire::{
    Command, CommandFault, Decision, FrameError, FrameLimits, FrameReader, FrameStep, NameEncoding, Next,
    Part, Response, ResponseCode, Segment, Speaker, Status, Tag, ValueLimits, WriteOptions,
};
use scrinium_mail::SourceWriter;
use scrinium_mail::import::MessageSource;

const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// Large mailboxes take their server a while.
const ANSWER_WITHIN: Duration = Duration::from_secs(300);

const PIECE_BYTES: usize = 64 * 1024;

/// What is kept of one response besides the message in it.
const LIMITS: FrameLimits = FrameLimits { bytes: 8 << 20, literals: 1_000, bare_line_feed: true };

/// How a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ImapTls {
    /// From the first byte, at port 993
    Immediate,
    /// By STARTTLS, at port 143
    Starttls,
    /// Not at all: at port 143 of this machine alone
    None,
}

/// Where mail comes from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls: ImapTls,
    /// Certificates of authorities that are trusted besides the system's.
    pub(super) trusted: Vec<PathBuf>,
}

/// Why a server was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error("{0}:{1}: {2}")]
    Network(String, u16, io::Error),
    #[error("no TLS with {0}: {1}")]
    Tls(String, String),
    #[error("without TLS a password goes to this machine alone; {0} is another one")]
    NotLoopback(String),
    #[error("it closed the connection: {0}")]
    Closed(String),
    #[error("it refuses {0}: {1}")]
    Refused(&'static str, String),
    #[error("what it sends is no IMAP: {0}")]
    Frame(#[from] FrameError),
    #[error("what it sends is no IMAP: {0}")]
    Response(#[from] CommandFault),
    #[error("a message cannot be kept: {0}")]
    Spool(io::Error),
    #[error("{0} cannot be written as a command")]
    Unwritable(&'static str),
}

/// What a response brings, with the message in it if there is one.
pub(super) struct Heard {
    pub(super) response: Response,
    /// `None` in the place of a message that is larger than any that is kept.
    pub(super) message: Option<Option<MessageSource>>,
}

trait ReadWrite: Read + Write {}

impl<T: Read + Write> ReadWrite for T {}

pub(super) struct Session {
    wire: Box<dyn ReadWrite>,
    reader: FrameReader,
    read: Vec<u8>,
    at: usize,
    count: u64,
    message_limit: u64,
    origin: Origin,
}

impl Session {
    /// Connects, encrypts, and hears the greeting.
    pub(super) fn open(origin: &Origin, message_limit: u64) -> Result<Self, SessionError> {
        let stream = connect(origin)?;
        let is_loopback = stream.peer_addr().is_ok_and(|address| address.ip().is_loopback());
        if origin.tls == ImapTls::None && !is_loopback {
            return Err(SessionError::NotLoopback(origin.host.clone()));
        }
        let plain = stream.try_clone().map_err(|error| network(origin, error))?;
        let wire: Box<dyn ReadWrite> = match origin.tls {
            ImapTls::Immediate => encrypted(plain, origin)?,
            ImapTls::None | ImapTls::Starttls => Box::new(plain),
        };
        let mut session = Self {
            wire,
            reader: FrameReader::new(LIMITS, Speaker::Server),
            read: Vec::new(),
            at: 0,
            count: 0,
            message_limit,
            origin: origin.clone(),
        };
        session.greeting()?;
        if origin.tls == ImapTls::Starttls {
            session.ask("STARTTLS", &Command::StartTls)?;
            // What came in the clear behind it counts for nothing (RFC 9051, section 6.2.1).
            session.reader = FrameReader::new(LIMITS, Speaker::Server);
            (session.read, session.at) = (Vec::new(), 0);
            session.wire = encrypted(stream, origin)?;
        }
        Ok(session)
    }

    fn greeting(&mut self) -> Result<(), SessionError> {
        match self.hear()?.response {
            Response::Status { status: Status::Ok, .. } => Ok(()),
            Response::Status { text, .. } => Err(SessionError::Closed(text)),
            _ => Err(CommandFault::Syntax.into()),
        }
    }

    pub(super) fn log_in(&mut self, name: &str, password: &str) -> Result<(), SessionError> {
        let password = password.as_bytes().to_vec();
        self.ask("the log-in", &Command::Login { name: name.to_owned(), password }).map(drop)
    }

    /// Sends a command; gives what is heard besides, and the code of the last word.
    pub(super) fn ask(
        &mut self,
        name: &'static str,
        command: &Command,
    ) -> Result<(Vec<Response>, Option<ResponseCode>), SessionError> {
        let mut heard = Vec::new();
        let code = self.ask_with(name, command, |one| {
            heard.push(one.response);
            Ok(())
        })?;
        Ok((heard, code))
    }

    /// As [`Self::ask`], where each response is taken as it comes.
    pub(super) fn ask_with(
        &mut self,
        name: &'static str,
        command: &Command,
        mut take: impl FnMut(Heard) -> Result<(), SessionError>,
    ) -> Result<Option<ResponseCode>, SessionError> {
        self.count += 1;
        let tag = Tag::new(&format!("s{}", self.count)).ok_or(SessionError::Unwritable(name))?;
        for Segment { bytes, next } in command.write(&tag, NameEncoding::Utf7, WriteOptions::CLIENT) {
            self.send(&bytes)?;
            match next {
                Next::End => {}
                Next::Continuation => self.until_asked_for_more(name)?,
                Next::Data { .. } => return Err(SessionError::Unwritable(name)),
            }
        }
        loop {
            let heard = self.hear()?;
            match heard.response {
                Response::Status { tag: Some(told), status, code, text } if told == tag => {
                    return match status {
                        Status::Ok => Ok(code),
                        _ => Err(SessionError::Refused(name, text)),
                    };
                }
                Response::Status { tag: None, status: Status::Bye, text, .. } if name != "LOGOUT" => {
                    return Err(SessionError::Closed(text));
                }
                _ => take(heard)?,
            }
        }
    }

    fn until_asked_for_more(&mut self, name: &'static str) -> Result<(), SessionError> {
        loop {
            match self.hear()?.response {
                Response::Continuation(_) => return Ok(()),
                Response::Status { tag: Some(_), text, .. } => {
                    return Err(SessionError::Refused(name, text));
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        let sent = self.wire.write_all(bytes).and_then(|()| self.wire.flush());
        sent.map_err(|error| network(&self.origin, error))
    }

    /// The next response. A message is taken aside while it comes.
    fn hear(&mut self) -> Result<Heard, SessionError> {
        let mut writer: Option<SourceWriter> = None;
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            if self.at >= self.read.len() {
                let count = self.wire.read(&mut buffer).map_err(|error| network(&self.origin, error))?;
                let piece = buffer.get(..count).filter(|piece| !piece.is_empty());
                let piece = piece.ok_or_else(|| SessionError::Closed("without a word".to_owned()))?;
                (self.read, self.at) = (piece.to_vec(), 0);
            }
            let rest = self.read.get(self.at..).unwrap_or_default();
            let (taken, step) = self.reader.read(rest)?;
            self.at += taken;
            match step {
                FrameStep::More | FrameStep::Refused(_) => {}
                FrameStep::Data(bytes) => {
                    if let Some(writer) = &mut writer {
                        writer.push(bytes).map_err(SessionError::Spool)?;
                    }
                }
                FrameStep::Announced(_) => {
                    let before = self.reader.text_before().to_ascii_uppercase();
                    let is_message = before.ends_with(b"BODY[] ") && writer.is_none();
                    if is_message {
                        writer = Some(SourceWriter::new(self.message_limit));
                    }
                    self.reader.decide(if is_message { Decision::Stream } else { Decision::Keep })?;
                }
                FrameStep::Frame(parts) => return heard(&parts, writer, self.message_limit),
            }
        }
    }
}

fn heard(parts: &[Part], writer: Option<SourceWriter>, limit: u64) -> Result<Heard, SessionError> {
    let response = Response::parse(parts, NameEncoding::Utf7, ValueLimits::default())?;
    let message = match writer {
        Some(writer) if writer.len() > limit => Some(None),
        Some(writer) => Some(Some(writer.finish(0).map_err(SessionError::Spool)?)),
        None => None,
    };
    Ok(Heard { response, message })
}

fn network(origin: &Origin, error: io::Error) -> SessionError {
    SessionError::Network(origin.host.clone(), origin.port, error)
}

fn connect(origin: &Origin) -> Result<TcpStream, SessionError> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    let name = (origin.host.as_str(), origin.port);
    for address in name.to_socket_addrs().map_err(|error| network(origin, error))? {
        match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
            Ok(stream) => {
                let set = stream.set_read_timeout(Some(ANSWER_WITHIN));
                set.and_then(|()| stream.set_write_timeout(Some(ANSWER_WITHIN)))
                    .and_then(|()| stream.set_nodelay(true))
                    .map_err(|error| network(origin, error))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(network(origin, last))
}

/// Shakes hands; the certificate must be for the host.
fn encrypted(mut stream: TcpStream, origin: &Origin) -> Result<Box<dyn ReadWrite>, SessionError> {
    let tls = |error: &dyn std::fmt::Display| SessionError::Tls(origin.host.clone(), error.to_string());
    let config = crate::tls::client(&origin.trusted).map_err(|error| tls(&error))?;
    let name = ServerName::try_from(origin.host.clone()).map_err(|error| tls(&error))?;
    let mut connection = ClientConnection::new(config, name).map_err(|error| tls(&error))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|error| tls(&error))?;
    }
    Ok(Box::new(StreamOwned::new(connection, stream)))
}

//! Sends console commands and requests to a running server, over its HTTP port.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use scrinium_mail::import::MessageSource;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::cli::Failure;
use crate::config::{Address, Settings};
use crate::console::Reply;
use crate::credentials::{Credentials, PASSWORD_VARIABLE, Wanted};

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_secs(120);
const ANSWER_LIMIT_BYTES: usize = 64 << 20;

/// Somebody who sends much has more time, by so much a second.
const SLOWEST_BYTES: u64 = 256 * 1024;

/// A message is read and sent in pieces of this size.
const SENT_BYTES: usize = 64 * 1024;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is invalid.
    #[error("{0:?} is no address of a server: write it like http://127.0.0.1:5984")]
    Address(String),
    /// Nobody answers there.
    #[error("no server answers at {url}: {cause}")]
    Unreachable {
        /// The address.
        url: String,
        /// Why.
        cause: String,
    },
    /// It closed the connection before it had answered.
    #[error("the server at {url} closed the connection: {cause}")]
    Broken {
        /// The address.
        url: String,
        /// Why.
        cause: String,
    },
    /// It shows a certificate that nobody here trusts.
    #[error(
        "the certificate of {url} is not trusted: {cause}. If it is the server's own, name it with --trust FILE"
    )]
    Untrusted {
        /// The address.
        url: String,
        /// Why.
        cause: String,
    },
    /// The name or the password is wrong, or they are not an administrator's.
    #[error("the server does not take {name} as an administrator: {reason}")]
    NotAllowed {
        /// Who asked.
        name: String,
        /// What the server says.
        reason: String,
    },
    /// The server says what is wrong with the command.
    #[error("{0}")]
    Refused(String),
    /// The answer is not one of a console.
    #[error("{url} answers {status}, not as a console does")]
    NoConsole {
        /// The address.
        url: String,
        /// The status of the answer.
        status: StatusCode,
    },
}

/// A server that commands can be sent to.
#[derive(Clone)]
pub struct ConsoleClient {
    url: String,
    host: String,
    port: u16,
    /// None: only what anybody may ask.
    credentials: Option<Credentials>,
    tls: Option<Arc<ClientConfig>>,
    answer_bytes_max: usize,
    /// What `Authorization` says instead of the credentials.
    authorization: Option<String>,
}

/// The address of the server that these settings describe, as seen from its own machine.
#[must_use]
pub fn own_url(settings: &Settings) -> Option<String> {
    let mut address: Address = settings.http.listen.first()?.clone();
    // What listens on every address is reached by the machine's own.
    if let Ok(everywhere) = address.host.parse::<IpAddr>()
        && everywhere.is_unspecified()
    {
        address.host = String::from(if everywhere.is_ipv4() { "127.0.0.1" } else { "::1" });
    }
    Some(format!("{}://{address}", if settings.http.tls { "https" } else { "http" }))
}

impl ConsoleClient {
    /// A client of the server at `url`; `tls` says whom to trust and is called for https only.
    ///
    /// # Errors
    /// [`ClientError::Address`]; or what `tls` answers, as [`ClientError::Refused`].
    pub fn new(
        url: &str,
        credentials: Credentials,
        tls: impl FnOnce() -> Result<Arc<ClientConfig>, crate::tls::TlsError>,
    ) -> Result<Self, ClientError> {
        Ok(Self { credentials: Some(credentials), ..Self::without_credentials(url, tls)? })
    }

    /// A client that does not say who asks.
    ///
    /// # Errors
    /// As [`ConsoleClient::new`].
    pub(crate) fn without_credentials(
        url: &str,
        tls: impl FnOnce() -> Result<Arc<ClientConfig>, crate::tls::TlsError>,
    ) -> Result<Self, ClientError> {
        let wrong = || ClientError::Address(url.to_owned());
        let uri: Uri = url.trim_end_matches('/').parse().map_err(|_| wrong())?;
        let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        let (port, tls) = match uri.scheme_str() {
            Some("http") => (80, None),
            Some("https") => (443, Some(tls().map_err(|error| ClientError::Refused(error.to_string()))?)),
            _ => return Err(wrong()),
        };
        let port = uri.port_u16().unwrap_or(port);
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            host,
            port,
            credentials: None,
            tls,
            answer_bytes_max: ANSWER_LIMIT_BYTES,
            authorization: None,
        })
    }

    /// One that takes no longer answers.
    pub(crate) fn with_answers_of(self, answer_bytes_max: usize) -> Self {
        Self { answer_bytes_max, ..self }
    }

    /// One that says who asks in a header as it is.
    pub(crate) fn with_authorization(self, authorization: Option<String>) -> Self {
        Self { authorization, ..self }
    }

    /// A client of the server that these settings describe, with the administrator's credentials that lie next to them or in
    /// the environment.
    ///
    /// # Errors
    /// Where no credentials are found, or the settings name no port.
    pub(crate) fn of_own_server(settings: &Settings) -> Result<Self, Failure> {
        let credentials = Credentials::find(&Wanted {
            environment: std::env::var(PASSWORD_VARIABLE).ok(),
            data_dir: settings.server.data_dir.clone(),
            ..Wanted::default()
        })
        .map_err(Failure::work)?;
        let url = own_url(settings).ok_or_else(|| Failure::Use("http.listen names no port".to_owned()))?;
        let (trust, _key) = crate::tls::places(settings);
        Self::new(&url, credentials, || crate::tls::client(std::slice::from_ref(&trust)))
            .map_err(Failure::work)
    }

    /// Whether the password would be readable on its way to another machine.
    #[must_use]
    pub fn exposes_password(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        let local = self.host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        self.tls.is_none() && !local
    }

    /// Sends one command.
    ///
    /// # Errors
    /// [`ClientError`], with what the server says.
    pub async fn send(&self, command: &str) -> Result<Reply, ClientError> {
        let body = json!({"command": command}).to_string();
        let (status, body) = self.request(Method::POST, "/_console", Some(body.into())).await?;
        self.read_answer(status, &body)
    }

    /// Sends one request with a JSON body, if any, and gives status and body of the answer.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`], [`ClientError::Untrusted`], [`ClientError::Broken`].
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        self.send_pieces(method, path, "application/json", body.into_iter().map(BodyPiece::Bytes).collect())
            .await
    }

    /// Sends one request with a body in pieces, which are not copied, and gives status and body of the answer. Of a message
    /// no more is in memory than is on its way.
    ///
    /// # Errors
    /// As [`ConsoleClient::request`].
    pub(crate) async fn send_pieces(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Vec<BodyPiece>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let connected = tokio::time::timeout(CONNECT_WITHIN, self.connect()).await;
        let stream = connected.map_err(|_| self.unreachable(&"no answer for 10 s"))??;
        let pieces = Pieces::of(body);
        let within = ANSWER_WITHIN + Duration::from_secs(pieces.left / SLOWEST_BYTES);
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, content_type);
        let answered = tokio::time::timeout(within, self.ask(stream, request, pieces)).await;
        let late = || self.unreachable(&format_args!("no answer for {} s", within.as_secs()));
        answered.map_err(|_| late())?.map_err(|cause| ClientError::Broken { url: self.url.clone(), cause })
    }

    fn unreachable(&self, cause: &dyn Display) -> ClientError {
        ClientError::Unreachable { url: self.url.clone(), cause: cause.to_string() }
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, ClientError> {
        let connected = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = connected.map_err(|error| self.unreachable(&error))?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(self.host.clone()).map_err(|error| self.unreachable(&error))?;
        let stream = TlsConnector::from(tls.clone()).connect(name, stream).await.map_err(|error| {
            let tls_error = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            match tls_error {
                Some(cause @ rustls::Error::InvalidCertificate(_)) => {
                    ClientError::Untrusted { url: self.url.clone(), cause: cause.to_string() }
                }
                _ => self.unreachable(&error),
            }
        })?;
        Ok(Box::new(stream))
    }

    async fn ask(
        &self,
        stream: Box<dyn Stream>,
        mut request: http::request::Builder,
        body: Pieces,
    ) -> Result<(StatusCode, Bytes), String> {
        let told = |error: hyper::Error| error.to_string();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
        let connection = tokio::spawn(connection);
        let authority = Address { host: self.host.clone(), port: self.port };
        request = request.header(HOST, authority.to_string());
        if let Some(Credentials { name, password }) = &self.credentials {
            let basic = STANDARD.encode(format!("{name}:{password}"));
            request = request.header(AUTHORIZATION, format!("Basic {basic}"));
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(body).map_err(|error| error.to_string())?;
        let (head, body) = sender.send_request(request).await.map_err(told)?.into_parts();
        let body =
            Limited::new(body, self.answer_bytes_max).collect().await.map_err(|error| error.to_string())?;
        connection.abort();
        Ok((head.status, body.to_bytes()))
    }

    /// The error of an answer that says that the one who asks may not.
    pub(crate) fn not_allowed(&self, reason: &str) -> ClientError {
        let name = self.credentials.as_ref().map(|credentials| credentials.name.clone());
        ClientError::NotAllowed { name: name.unwrap_or_default(), reason: reason.to_owned() }
    }

    fn read_answer(&self, status: StatusCode, body: &[u8]) -> Result<Reply, ClientError> {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let field = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        match (status, field("text"), field("reason")) {
            (StatusCode::OK, Some(text), _) => {
                Ok(Reply { text, data: body.get("data").cloned().unwrap_or_default() })
            }
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _, Some(reason)) => {
                Err(self.not_allowed(&reason))
            }
            (_, _, Some(reason)) if !status.is_success() => Err(ClientError::Refused(reason)),
            _ => Err(ClientError::NoConsole { url: self.url.clone(), status }),
        }
    }
}

/// A part of a request's body.
pub(crate) enum BodyPiece {
    /// Bytes.
    Bytes(Bytes),
    /// A message, which is read as it is sent.
    Message(MessageSource),
}

impl BodyPiece {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Message(message) => message.len(),
        }
    }
}

/// The body of a request, in pieces.
struct Pieces {
    pieces: VecDeque<BodyPiece>,
    /// What was sent of the first of them, if it is a message.
    position: u64,
    left: u64,
}

impl Pieces {
    fn of(pieces: Vec<BodyPiece>) -> Self {
        Self { left: pieces.iter().map(BodyPiece::length).sum(), position: 0, pieces: pieces.into() }
    }

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        let (piece, is_over) = match self.pieces.front()? {
            BodyPiece::Bytes(bytes) => (bytes.clone(), true),
            BodyPiece::Message(message) => match message.piece(self.position, SENT_BYTES) {
                Ok(piece) => {
                    let is_over = self.position + piece.len() as u64 == message.len();
                    (piece, is_over)
                }
                Err(error) => return Some(Err(error)),
            },
        };
        self.position += piece.len() as u64;
        if is_over {
            self.position = 0;
            self.pieces.pop_front();
        }
        Some(Ok(piece))
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let next = self.next();
        if let Some(Ok(piece)) = &next {
            self.left -= piece.len() as u64;
        }
        Poll::Ready(next.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// A connection, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

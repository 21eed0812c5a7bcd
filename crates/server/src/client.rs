//! Sends console commands and requests to a running server, over its HTTP port.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
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

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is none.
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
        Ok(Self { url: url.trim_end_matches('/').to_owned(), host, port, credentials: None, tls })
    }

    /// A client of the server that these settings describe, with the administrator's credentials that lie beside them or in
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
        let trust = settings.in_data_dir(&settings.http.tls_certificate);
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
    /// [`ClientError::Unreachable`].
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let unreachable = |cause: String| ClientError::Unreachable { url: self.url.clone(), cause };
        let connected = tokio::time::timeout(CONNECT_WITHIN, self.connect()).await;
        let stream =
            connected.map_err(|_| unreachable("no answer for 10 s".to_owned()))?.map_err(unreachable)?;
        let answered = tokio::time::timeout(ANSWER_WITHIN, self.ask(stream, method, path, body)).await;
        answered.map_err(|_| unreachable("no answer for 120 s".to_owned()))?.map_err(unreachable)
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, String> {
        let stream =
            TcpStream::connect((self.host.as_str(), self.port)).await.map_err(|error| error.to_string())?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(self.host.clone()).map_err(|error| error.to_string())?;
        let connector = TlsConnector::from(tls.clone());
        let stream = connector.connect(name, stream).await.map_err(|error| {
            format!("{error}; name the certificate to trust with --trust FILE if it is the server's own")
        })?;
        Ok(Box::new(stream))
    }

    async fn ask(
        &self,
        stream: Box<dyn Stream>,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<(StatusCode, Bytes), String> {
        let told = |error: hyper::Error| error.to_string();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
        let connection = tokio::spawn(connection);
        let authority = Address { host: self.host.clone(), port: self.port };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, authority.to_string())
            .header(CONTENT_TYPE, "application/json");
        if let Some(Credentials { name, password }) = &self.credentials {
            let basic = STANDARD.encode(format!("{name}:{password}"));
            request = request.header(AUTHORIZATION, format!("Basic {basic}"));
        }
        let request = request.body(Full::new(body.unwrap_or_default())).map_err(|error| error.to_string())?;
        let (head, body) = sender.send_request(request).await.map_err(told)?.into_parts();
        let body =
            Limited::new(body, ANSWER_LIMIT_BYTES).collect().await.map_err(|error| error.to_string())?;
        connection.abort();
        Ok((head.status, body.to_bytes()))
    }

    fn read_answer(&self, status: StatusCode, body: &[u8]) -> Result<Reply, ClientError> {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let field = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        match (status, field("text"), field("reason")) {
            (StatusCode::OK, Some(text), _) => {
                Ok(Reply { text, data: body.get("data").cloned().unwrap_or_default() })
            }
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _, Some(reason)) => {
                let name = self.credentials.as_ref().map(|credentials| credentials.name.clone());
                Err(ClientError::NotAllowed { name: name.unwrap_or_default(), reason })
            }
            (_, _, Some(reason)) if !status.is_success() => Err(ClientError::Refused(reason)),
            _ => Err(ClientError::NoConsole { url: self.url.clone(), status }),
        }
    }
}

/// A connection, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

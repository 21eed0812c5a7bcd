//! One persistent HTTP/1.1 connection.

use std::io::Read;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HOST, HeaderName, HeaderValue,
    SERVER,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::failure::{Failure, FailureKind};
use super::tls::Tls;

/// A longer answer is refused, so that no server can fill the driver's memory.
const LONGEST_ANSWER_BYTES: usize = 64 << 20;

/// hyper's read buffer grows no further than this; bodies pass through it.
const BUFFER_BYTES: usize = 16 << 10;

/// The one encoding that is asked for (RFC 9110, section 8.4.1.3).
const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// A request that a busy server refused is sent again so often where its caller has time, first after [`BUSY_WAIT`], then
/// after twice as long each time: half a minute in all.
const BUSY_RETRIES: u32 = 5;
const BUSY_WAIT: Duration = Duration::from_secs(1);

/// How much of an answer is kept in an error's text.
const KEPT_CHARACTERS: usize = 300;

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub(super) struct Address {
    pub(super) encrypted: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// What stands before every path, without a slash at its end.
    pub(super) base: String,
}

impl Address {
    /// Reads `http://host:port/base`, or `https://`.
    pub(super) fn parse(target: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{target} is no address of a server: {why}");
        let uri: http::Uri = target.parse().map_err(|error| wrong(&format!("{error}")))?;
        let encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("it begins with http:// or https://")),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it has no host"))?;
        Ok(Self {
            encrypted,
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 }),
            base: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// As it is written for others, without a slash at its end.
    pub(super) fn url(&self) -> String {
        let scheme = if self.encrypted { "https" } else { "http" };
        format!("{scheme}://{}:{}{}", self.host, self.port, self.base)
    }
}

/// An answer, whole.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) server: Option<String>,
    pub(super) etag: Option<String>,
    pub(super) body: Bytes,
    /// The request, for error texts.
    pub(super) request: String,
}

impl Answer {
    /// The answer as a failure of this kind.
    pub(super) fn failure(&self, kind: FailureKind, why: &str) -> Failure {
        let body = String::from_utf8_lossy(&self.body);
        let body: String = body.trim().chars().take(KEPT_CHARACTERS).collect();
        let status = self.status.as_u16();
        Failure::new(kind, format!("{} \u{2192} {status}: {why}{body}", self.request))
    }

    /// Fails unless the status is one of these.
    pub(super) fn expect(self, statuses: &[u16]) -> Result<Self, Failure> {
        let status = self.status.as_u16();
        if statuses.contains(&status) {
            return Ok(self);
        }
        let kind = match status {
            404 => FailureKind::Missing,
            409 => FailureKind::Conflict,
            _ => FailureKind::Status(status),
        };
        Err(self.failure(kind, ""))
    }
}

/// The task that drives a connection ends with the connection's owner.
struct Task(JoinHandle<Result<(), hyper::Error>>);

impl Task {
    /// Whether the connection ended because the server had said what nobody asked for. It has ended, or is about
    /// to.
    async fn was_unexpected(&mut self) -> bool {
        match (&mut self.0).await {
            Ok(Err(error)) => {
                let broke =
                    std::error::Error::source(&error).is_some_and(|cause| cause.is::<std::io::Error>());
                !broke && !error.is_incomplete_message() && !error.is_canceled() && !error.is_closed()
            }
            _ => false,
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A connection that is made when it is first needed, and again after it was lost.
pub(super) struct Connection {
    address: Arc<Address>,
    authorization: Option<HeaderValue>,
    time_out: Duration,
    compressed: bool,
    busy_retries: u32,
    open: Option<(SendRequest<Full<Bytes>>, Task)>,
}

impl Connection {
    pub(super) fn new(address: Arc<Address>, authorization: Option<HeaderValue>, time_out: Duration) -> Self {
        Self { address, authorization, time_out, compressed: false, busy_retries: 0, open: None }
    }

    /// From now on asks for compressed answers, and takes them.
    pub(super) fn asking_for_compression(mut self, asks: bool) -> Self {
        self.compressed = asks;
        self
    }

    /// From now on waits at least so long for an answer.
    pub(super) fn wait_at_least(&mut self, time_out: Duration) {
        self.time_out = self.time_out.max(time_out);
    }

    /// From now on asks again what the server is too busy for (429, RFC 6585 §4; 503, RFC 9110 §15.6.4). It has done nothing
    /// of that. Only where nothing is measured.
    pub(super) fn ask_again_when_busy(&mut self) {
        self.busy_retries = BUSY_RETRIES;
    }

    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// Sends a request, whose body is JSON, and reads its answer. `path` begins with a slash and is encoded already.
    pub(super) async fn exchange(
        &mut self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<Answer, Failure> {
        let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        let headers = if body.is_some() { json.as_slice() } else { &[] };
        self.exchange_with(method, path, headers, body).await
    }

    /// The same with headers of the caller's.
    pub(super) async fn exchange_with(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Option<Bytes>,
    ) -> Result<Answer, Failure> {
        let mut retries = 0;
        loop {
            let answer = self.exchange_once(method.clone(), path, headers, body.clone()).await?;
            let is_busy =
                matches!(answer.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
            if !is_busy || retries == self.busy_retries {
                return Ok(answer);
            }
            tokio::time::sleep(BUSY_WAIT * 2_u32.pow(retries)).await;
            retries += 1;
        }
    }

    async fn exchange_once(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Option<Bytes>,
    ) -> Result<Answer, Failure> {
        let request = format!("{method} {path}");
        let time_out = self.time_out;
        let answer = tokio::time::timeout(time_out, self.send_and_read(method, path, headers, body)).await;
        let failure = match answer {
            Ok(Ok((response, body))) => {
                let header = |name: HeaderName| {
                    response.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
                };
                return Ok(Answer {
                    status: response.status,
                    server: header(SERVER),
                    etag: header(ETAG),
                    body,
                    request,
                });
            }
            Ok(Err((kind, why))) => Failure::new(kind, format!("{request}: {why}")),
            Err(_) => Failure::new(
                FailureKind::TimeOut,
                format!("{request}: no answer in {} s", time_out.as_secs_f64()),
            ),
        };
        self.close();
        Err(failure)
    }

    async fn send_and_read(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Option<Bytes>,
    ) -> Result<(http::response::Parts, Bytes), (FailureKind, String)> {
        let response = self.send(method, path, headers, body).await?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, LONGEST_ANSWER_BYTES).collect().await;
        let body = body.map_err(|why| (FailureKind::Connection, why.to_string()))?.to_bytes();
        let body = match head.headers.get(CONTENT_ENCODING) {
            None => body,
            Some(encoding) if self.compressed && encoding == GZIP => inflate(&body)?,
            Some(encoding) => {
                let why = format!("the answer is encoded as {encoding:?}, which was not asked for");
                return Err((FailureKind::WrongAnswer, why));
            }
        };
        Ok((head, body))
    }

    /// A connection that the server closed while it was idle is replaced without a word: the request that
    /// finds it closed was not sent. One on which more answers came than were asked for is a wrong answer, which
    /// is found when the connection is used again.
    async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Option<Bytes>,
    ) -> Result<Response<Incoming>, (FailureKind, String)> {
        let broken = |why: String| (FailureKind::Connection, why);
        let mut request = self.request(method, path, headers, body).map_err(broken)?;
        if let Some((sender, task)) = &mut self.open {
            if sender.ready().await.is_ok() {
                match sender.try_send_request(request).await {
                    Ok(response) => return Ok(response),
                    Err(mut error) => match error.take_message() {
                        Some(unsent) => request = unsent,
                        None => return Err(broken(error.into_error().to_string())),
                    },
                }
            }
            if task.was_unexpected().await {
                let why = "not sent: an answer that nobody asked for came after the one before".to_owned();
                return Err((FailureKind::WrongAnswer, why));
            }
        }
        let (mut sender, task) = self.connect().await.map_err(broken)?;
        let response = sender.send_request(request).await.map_err(|error| broken(error.to_string()));
        self.open = Some((sender, task));
        response
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Option<Bytes>,
    ) -> Result<Request<Full<Bytes>>, String> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.address.base))
            .header(HOST, format!("{}:{}", self.address.host, self.address.port));
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if self.compressed {
            request = request.header(ACCEPT_ENCODING, GZIP);
        }
        for (name, value) in headers {
            request = request.header(name, value.clone());
        }
        request.body(Full::new(body.unwrap_or_default())).map_err(|error| error.to_string())
    }

    async fn connect(&self) -> Result<(SendRequest<Full<Bytes>>, Task), String> {
        let host = self.address.host.trim_matches(['[', ']']);
        let stream =
            TcpStream::connect((host, self.address.port)).await.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        if self.address.encrypted {
            shake_hands(system_tls()?.connect(host, stream).await?).await
        } else {
            shake_hands(stream).await
        }
    }
}

/// What a compressed answer stands for; one that is broken, or longer than any may be, is wrong.
fn inflate(body: &[u8]) -> Result<Bytes, (FailureKind, String)> {
    let mut inflated = Vec::new();
    let longest = LONGEST_ANSWER_BYTES as u64;
    let read = MultiGzDecoder::new(body).take(longest + 1).read_to_end(&mut inflated);
    let wrong = |why: String| (FailureKind::WrongAnswer, format!("the compressed answer {why}"));
    read.map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if inflated.len() > LONGEST_ANSWER_BYTES {
        return Err(wrong(format!("stands for more than {LONGEST_ANSWER_BYTES} bytes")));
    }
    Ok(inflated.into())
}

async fn shake_hands(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<(SendRequest<Full<Bytes>>, Task), String> {
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(BUFFER_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    // How a connection ends is seen by the request that is waiting for an answer, or by the next one.
    let task = tokio::spawn(connection);
    Ok((sender, Task(task)))
}

/// Believes the certificates that the system believes, or those of `SSL_CERT_FILE`; read once.
fn system_tls() -> Result<&'static Tls, String> {
    static TLS: OnceLock<Result<Tls, String>> = OnceLock::new();
    TLS.get_or_init(|| Tls::new(None)).as_ref().map_err(Clone::clone)
}

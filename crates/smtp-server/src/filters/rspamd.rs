//! rspamd over HTTP: what it says of a message (`/checkv2`), and teaching it what people take for spam (`/learnspam`, `/learnham`).
//!
//! A message goes out in pieces as rspamd takes them; nothing holds it whole. Connections are used again while rspamd keeps them.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use scrinium_mail_filters::milter::{Change, Verdict};
use scrinium_mail_filters::{RSPAMD_ANSWER_BYTES_MAX, RspamdAction, RspamdAnswer};
use scrinium_smtp::Envelope;
use scrinium_worker::WorkerPool;

use super::talk::{Conclusion, connect};
use super::{FilterAddress, FilterFault, FilteredMessage};
use crate::desk::address_of;

/// Read of a message at a time.
const PIECE_BYTES: usize = 64 << 10;

/// The head of an answer has no more bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Connections that are kept for later.
const IDLE_MAX: usize = 16;

/// Recipients of a message that rspamd hears of.
const RECIPIENTS_MAX: usize = 100;

type Sender = SendRequest<UnsyncBoxBody<Bytes, io::Error>>;

/// Gives at most this many bytes of a text from this place on; none at its end.
type ReadPieces = Arc<dyn Fn(u64, usize) -> io::Result<Bytes> + Send + Sync>;

/// A message on its way to rspamd.
#[derive(Clone)]
pub struct RspamdMessage {
    /// What it begins with.
    beginning: Bytes,
    /// The rest, which lies in `read` from the first place to the second.
    read: ReadPieces,
    rest: (u64, u64),
}

/// A server of rspamd.
pub struct Rspamd {
    address: FilterAddress,
    workers: WorkerPool,
    idle: Mutex<Vec<Sender>>,
}

impl RspamdMessage {
    /// A message of this many bytes, which `read` gives by their place and number.
    #[must_use]
    pub fn new(bytes: u64, read: impl Fn(u64, usize) -> io::Result<Bytes> + Send + Sync + 'static) -> Self {
        Self { beginning: Bytes::new(), read: Arc::new(read), rest: (0, bytes) }
    }

    /// As filters have left it so far.
    fn of(message: &FilteredMessage) -> Self {
        let source = message.source.clone();
        let (beginning, rest) = match &message.body {
            Some(body) => ([&message.head[..], b"\r\n", body].concat(), (0, 0)),
            None => (message.head.clone(), (message.head_end, source.len())),
        };
        let read: ReadPieces = Arc::new(move |place, bytes| source.piece(place, bytes));
        Self { beginning: beginning.into(), read, rest }
    }

    fn bytes(&self) -> u64 {
        self.beginning.len() as u64 + self.rest.1.saturating_sub(self.rest.0)
    }

    fn body(&self, workers: &WorkerPool) -> UnsyncBoxBody<Bytes, io::Error> {
        let first = (!self.beginning.is_empty()).then(|| Ok(Frame::data(self.beginning.clone())));
        let read = Arc::clone(&self.read);
        let (workers, (start, end)) = (workers.clone(), self.rest);
        let rest = stream::try_unfold(start, move |place| {
            let (read, workers) = (Arc::clone(&read), workers.clone());
            async move {
                let left = usize::try_from(end.saturating_sub(place)).unwrap_or(usize::MAX);
                if left == 0 {
                    return Ok(None);
                }
                // What is in a file is read where waiting for the disk is allowed.
                let piece = workers.run(move || read(place, left.min(PIECE_BYTES))).await;
                let piece = piece.map_err(|error| io::Error::other(error.to_string()))??;
                if piece.is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let next = place + piece.len() as u64;
                Ok(Some((Frame::data(piece), next)))
            }
        });
        StreamBody::new(futures_util::StreamExt::chain(stream::iter(first), rest)).boxed_unsync()
    }
}

impl Rspamd {
    /// The one that answers there. What is sent is read on `workers`.
    #[must_use]
    pub fn new(address: FilterAddress, workers: WorkerPool) -> Self {
        Self { address, workers, idle: Mutex::default() }
    }

    pub(super) const fn address(&self) -> &FilterAddress {
        &self.address
    }

    /// What it says of a message; the caller bounds the time.
    pub(super) async fn about(
        &self,
        message: &FilteredMessage,
        envelope: &Envelope,
        (server, submitter): (&str, Option<&str>),
    ) -> Result<Conclusion, FilterFault> {
        let headers = headers(envelope, server, submitter);
        let (status, answer) = self.ask("/checkv2", headers, &RspamdMessage::of(message)).await?;
        if status != StatusCode::OK {
            return Err(FilterFault::Status(status.as_u16()));
        }
        Ok(conclusion(RspamdAnswer::parse(&answer)?))
    }

    /// Teaches it that a message is spam, or is not. `password` is the one of its controller. False: it has known that.
    ///
    /// # Errors
    /// Why it has not learnt it. The caller bounds the time.
    pub async fn learn(
        &self,
        is_spam: bool,
        password: Option<&str>,
        message: &RspamdMessage,
    ) -> Result<bool, FilterFault> {
        let mut headers = HeaderMap::new();
        if let Some(password) = password {
            let mut value = HeaderValue::from_str(password).map_err(|_| FilterFault::Password)?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static("password"), value);
        }
        let path = if is_spam { "/learnspam" } else { "/learnham" };
        let (status, _) = self.ask(path, headers, message).await?;
        match status {
            StatusCode::OK => Ok(true),
            // It has learnt the message before, or finds too little in it.
            StatusCode::ALREADY_REPORTED | StatusCode::NO_CONTENT => Ok(false),
            status => Err(FilterFault::Status(status.as_u16())),
        }
    }

    /// Asks over a connection that is there, or a new one.
    async fn ask(
        &self,
        path: &str,
        headers: HeaderMap,
        message: &RspamdMessage,
    ) -> Result<(StatusCode, Bytes), FilterFault> {
        let used = self.idle.lock().pop();
        if let Some(used) = used {
            // It may have ended a moment ago; a question may be asked twice.
            if let Ok(answered) = self.ask_over(used, path, headers.clone(), message).await {
                return Ok(answered);
            }
        }
        let stream = connect(&self.address).await?;
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(async move {
            // Who asks over it hears how it ended.
            drop(connection.await);
        });
        self.ask_over(sender, path, headers, message).await
    }

    async fn ask_over(
        &self,
        mut sender: Sender,
        path: &str,
        headers: HeaderMap,
        message: &RspamdMessage,
    ) -> Result<(StatusCode, Bytes), FilterFault> {
        let mut request = Request::new(message.body(&self.workers));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = path.parse().map_err(|error| FilterFault::Broken(io::Error::other(error)))?;
        *request.headers_mut() = headers;
        request.headers_mut().insert(HOST, HeaderValue::from_static("rspamd"));
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(message.bytes()));
        let answer = sender.send_request(request).await.map_err(broken)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), RSPAMD_ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| FilterFault::Broken(io::Error::other(error)))?.to_bytes();
        if sender.ready().await.is_ok() {
            let mut idle = self.idle.lock();
            if idle.len() < IDLE_MAX {
                idle.push(sender);
            }
        }
        Ok((status, body))
    }
}

fn broken(error: hyper::Error) -> FilterFault {
    FilterFault::Broken(io::Error::other(error))
}

/// What rspamd hears of how a message comes. What no HTTP header can say is left out.
fn headers(envelope: &Envelope, server: &str, submitter: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut tell = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.append(HeaderName::from_static(name), value);
        }
    };
    if let Some(address) = envelope.peer.address {
        tell("ip", &address.to_canonical().to_string());
    }
    if let Some(name) = &envelope.peer.name {
        tell("hostname", name);
    }
    tell("helo", &envelope.hello.1.to_string());
    tell("mta-name", server);
    tell("queue-id", &format!("{:016x}", rand::random::<u64>()));
    if let Some(submitter) = submitter {
        tell("user", submitter);
    }
    if let Some(sender) = envelope.sender.mailbox() {
        tell("from", &sender.to_string());
    }
    for recipient in envelope.recipients.iter().take(RECIPIENTS_MAX) {
        tell("rcpt", &address_of(&recipient.path));
    }
    headers
}

fn conclusion(answer: RspamdAnswer) -> Conclusion {
    let RspamdAnswer { action, mut changes } = answer;
    match action {
        RspamdAction::Accept => Conclusion::Changes(changes),
        RspamdAction::PutAside(reason) => {
            changes.push(Change::Quarantine(reason));
            Conclusion::Changes(changes)
        }
        RspamdAction::Postpone(words) => Conclusion::Refused(Verdict::Reply(451, format!("4.7.1 {words}"))),
        RspamdAction::Reject(words) => Conclusion::Refused(Verdict::Reply(550, format!("5.7.1 {words}"))),
        RspamdAction::Discard => Conclusion::Discarded,
    }
}

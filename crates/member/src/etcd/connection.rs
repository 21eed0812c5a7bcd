//! One connection to one server: gRPC over HTTP/2 for calls, HTTP/1.1 for what etcd shows of itself.
//!
//! A call of gRPC is a POST whose body is one message behind five bytes (0, and the length), as is its answer; how it ended
//! is in the headers or trailers (`grpc-status`).

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, TE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::messages::{Answer, Question};
use super::{EtcdAddress, EtcdError};

/// The longest answer: a look brings 65 entries of 256 KB at most, and little else.
const LARGEST_ANSWER_BYTES: usize = 24 << 20;

/// The longest piece of a watch, which etcd cuts at 1.5 MB.
const LARGEST_PIECE_BYTES: usize = 4 << 20;

/// The longest page of figures.
const LARGEST_PAGE_BYTES: usize = 8 << 20;

/// What may be under way to us at once. The runtime that reads does nothing slow.
const WINDOW_BYTES: u32 = 4 << 20;

/// A connection on which nothing comes is asked whether it lives. etcd ends those that ask more often than each five seconds.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_WITHIN: Duration = Duration::from_secs(5);

const FRAME_HEAD_BYTES: usize = 5;

/// Of HTTP/2, shared by all calls.
#[derive(Clone)]
pub(super) struct Connection {
    address: EtcdAddress,
    sender: http2::SendRequest<RequestBody>,
}

/// One message. The stream stays open after it, if more than one answer is to come.
pub(super) struct RequestBody {
    message: Option<Bytes>,
    stays_open: bool,
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.message.take() {
            Some(message) => Poll::Ready(Some(Ok(Frame::data(message)))),
            // Nothing wakes it: it ends with its stream.
            None if self.stays_open => Poll::Pending,
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && !self.stays_open
    }
}

impl Connection {
    /// Must be dropped where it takes too long.
    pub(super) async fn open(
        address: &EtcdAddress,
        tls: Option<&Arc<ClientConfig>>,
    ) -> Result<Self, EtcdError> {
        let stream = connect(address, tls).await?;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(2 * WINDOW_BYTES)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_WITHIN);
        let shaken = builder.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|error| unreachable(address, &error))?;
        // It ends with the last sender and stream.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self { address: address.clone(), sender })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    pub(super) fn address(&self) -> &EtcdAddress {
        &self.address
    }

    /// One call with one answer. The server hears of `within` as well, and gives up then.
    pub(super) async fn call<A: Answer>(
        &mut self,
        method: &'static str,
        request: &(impl Question + Sync),
        within: Duration,
    ) -> Result<A, EtcdError> {
        let response = self.send(method, request, Some(within)).await?;
        self.check_status(response.headers())?;
        let collected = Limited::new(response.into_body(), LARGEST_ANSWER_BYTES).collect().await;
        let collected = collected.map_err(|error| unreachable(&self.address, error.as_ref()))?;
        // Where it failed, it says so behind an empty body.
        let trailers = collected.trailers().cloned().unwrap_or_default();
        self.check_status(&trailers)?;
        let mut body = collected.to_bytes();
        let message = take_message(&mut body, LARGEST_ANSWER_BYTES);
        match message.map_err(|problem| self.malformed(problem))? {
            Some(message) if body.is_empty() => A::decode(message).map_err(|problem| self.malformed(problem)),
            _ => Err(self.malformed("not one message")),
        }
    }

    /// A call whose answers come until either side ends it.
    pub(super) async fn stream(
        &mut self,
        method: &'static str,
        request: &(impl Question + Sync),
    ) -> Result<Stream, EtcdError> {
        let response = self.send(method, request, None).await?;
        self.check_status(response.headers())?;
        Ok(Stream { address: self.address.clone(), body: response.into_body(), read: BytesMut::new() })
    }

    async fn send(
        &mut self,
        method: &'static str,
        request: &(impl Question + Sync),
        within: Option<Duration>,
    ) -> Result<Response<Incoming>, EtcdError> {
        let encoded = request.encode();
        let mut message = BytesMut::with_capacity(FRAME_HEAD_BYTES + encoded.len());
        message.put_u8(0);
        message.put_u32(u32::try_from(encoded.len()).unwrap_or(u32::MAX));
        message.put_slice(&encoded);
        let body = RequestBody { message: Some(message.freeze()), stays_open: within.is_none() };
        let scheme = if self.address.is_secure { "https" } else { "http" };
        let mut builder = Request::post(format!("{scheme}://{}{method}", self.address.authority()))
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers");
        if let Some(within) = within {
            builder = builder.header("grpc-timeout", format!("{}m", within.as_millis().clamp(1, 99_999_999)));
        }
        let request = builder.body(body).map_err(|error| self.malformed(error.to_string()))?;
        self.sender.ready().await.map_err(|error| unreachable(&self.address, &error))?;
        let response = self.sender.send_request(request).await;
        let response = response.map_err(|error| unreachable(&self.address, &error))?;
        if response.status() != StatusCode::OK {
            return Err(self.malformed(format!("HTTP status {}", response.status().as_u16())));
        }
        Ok(response)
    }

    /// Headers without a status say nothing yet.
    fn check_status(&self, headers: &HeaderMap) -> Result<(), EtcdError> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let Some(status) = text("grpc-status") else { return Ok(()) };
        let code = status.parse().map_err(|_| self.malformed("grpc-status is no number"))?;
        if code == 0 {
            return Ok(());
        }
        let reason = percent_decode_str(text("grpc-message").unwrap_or_default()).decode_utf8_lossy();
        Err(EtcdError::of_status(&self.address, code, &reason))
    }

    fn malformed(&self, problem: impl Into<String>) -> EtcdError {
        EtcdError::Malformed { address: self.address.clone(), problem: problem.into() }
    }
}

/// Answers that come one after the other.
pub(super) struct Stream {
    address: EtcdAddress,
    body: Incoming,
    read: BytesMut,
}

impl Stream {
    /// The next answer. Dropping this loses nothing.
    pub(super) async fn next<A: Answer>(&mut self) -> Result<A, EtcdError> {
        loop {
            let malformed = |problem: String| EtcdError::Malformed { address: self.address.clone(), problem };
            if let Some(message) =
                take_buffered(&mut self.read).map_err(|problem| malformed(problem.into()))?
            {
                return A::decode(message).map_err(|problem| malformed(problem.into()));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(unreachable(&self.address, &error)),
                None => {
                    return Err(unreachable(&self.address, &io::Error::other("the stream has ended")));
                }
            }
        }
    }
}

fn take_buffered(read: &mut BytesMut) -> Result<Option<Bytes>, &'static str> {
    let Some(length) = message_length(read, LARGEST_PIECE_BYTES)? else { return Ok(None) };
    if read.len() < FRAME_HEAD_BYTES + length {
        return Ok(None);
    }
    read.advance(FRAME_HEAD_BYTES);
    Ok(Some(read.split_to(length).freeze()))
}

/// The message at the beginning, if it is there whole.
fn take_message(read: &mut Bytes, largest_bytes: usize) -> Result<Option<Bytes>, &'static str> {
    let Some(length) = message_length(read, largest_bytes)? else { return Ok(None) };
    if read.len() < FRAME_HEAD_BYTES + length {
        return Ok(None);
    }
    read.advance(FRAME_HEAD_BYTES);
    Ok(Some(read.split_to(length)))
}

fn message_length(read: &[u8], largest_bytes: usize) -> Result<Option<usize>, &'static str> {
    let Some([compressed, a, b, c, d]) = read.first_chunk() else { return Ok(None) };
    if *compressed != 0 {
        return Err("a message is compressed, which was not asked for");
    }
    let length = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap_or(usize::MAX);
    if length > largest_bytes {
        return Err("a message is longer than any that was asked for");
    }
    Ok(Some(length))
}

/// What a server shows under a path of HTTP/1.1. Must be dropped where it takes too long.
pub(super) async fn page(
    address: &EtcdAddress,
    tls: Option<&Arc<ClientConfig>>,
    path: &'static str,
) -> Result<Bytes, EtcdError> {
    let stream = connect(address, tls).await?;
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| unreachable(address, &error))?;
    tokio::spawn(async move { drop(connection.await) });
    let malformed = |problem: String| EtcdError::Malformed { address: address.clone(), problem };
    let request = Request::get(path).header(HOST, address.authority()).body(Empty::<Bytes>::new());
    let request = request.map_err(|error| malformed(error.to_string()))?;
    let response = sender.send_request(request).await.map_err(|error| unreachable(address, &error))?;
    if response.status() != StatusCode::OK {
        return Err(malformed(format!("HTTP status {} for {path}", response.status().as_u16())));
    }
    let body = Limited::new(response.into_body(), LARGEST_PAGE_BYTES).collect().await;
    Ok(body.map_err(|error| unreachable(address, error.as_ref()))?.to_bytes())
}

trait Bidirectional: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bidirectional for T {}

async fn connect(
    address: &EtcdAddress,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<Box<dyn Bidirectional>, EtcdError> {
    let failed = |error: &(dyn Error + 'static)| unreachable(address, error);
    let stream = TcpStream::connect((address.host.as_str(), address.port)).await;
    let stream = stream.map_err(|error| failed(&error))?;
    // A call is one small packet, which is not to wait for another.
    stream.set_nodelay(true).map_err(|error| failed(&error))?;
    match tls.filter(|_| address.is_secure) {
        None if address.is_secure => Err(failed(&io::Error::other("there is no certificate for it"))),
        None => Ok(Box::new(stream)),
        Some(tls) => {
            let name = ServerName::try_from(address.host.clone()).map_err(|error| failed(&error))?;
            let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await;
            Ok(Box::new(stream.map_err(|error| failed(&error))?))
        }
    }
}

/// With the reasons below: hyper's own sentences say little.
fn unreachable(address: &EtcdAddress, error: &(dyn Error + 'static)) -> EtcdError {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(below) = source {
        reason.push_str(": ");
        reason.push_str(&below.to_string());
        source = below.source();
    }
    EtcdError::Unreachable { address: address.clone(), reason }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_are_found_however_they_come(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6),
            piece in 1_usize..20,
        ) {
            let mut sent = BytesMut::new();
            for message in &messages {
                sent.put_u8(0);
                sent.put_u32(u32::try_from(message.len()).unwrap());
                sent.put_slice(message);
            }
            let (mut read, mut found) = (BytesMut::new(), Vec::new());
            for piece in sent.chunks(piece) {
                read.extend_from_slice(piece);
                while let Some(message) = take_buffered(&mut read).unwrap() {
                    found.push(message.to_vec());
                }
            }
            prop_assert_eq!(found, messages);
        }

        #[test]
        fn no_bytes_are_too_long_or_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..30)) {
            let mut read = BytesMut::from(bytes.as_slice());
            if let Ok(Some(message)) = take_buffered(&mut read) {
                prop_assert!(message.len() + FRAME_HEAD_BYTES <= bytes.len());
            }
            if bytes.len() >= FRAME_HEAD_BYTES && (bytes[0] != 0 || bytes[1] != 0) {
                prop_assert!(take_buffered(&mut BytesMut::from(bytes.as_slice())).is_err());
            }
        }
    }
}

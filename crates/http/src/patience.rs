//! A connection's stream that loses patience: with an idle client, with one who sends a request's head
//! drop by drop, and with one who does not take the answer.
//!
//! Hyper's own timer for heads runs between requests as well, so that it could not tell an idle reader,
//! who may stay for minutes, from a slow attacker, who may not.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use scrinium_accounting::{Busy, Claim, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::delivery::Delivery;
use crate::error::HttpError;
use crate::framing::HeadGuard;
use crate::linger::Linger;

/// Read at once where no body is.
const HEAD_PIECE_BYTES: usize = 4096;

/// Every HTTP/2 connection begins with these bytes (RFC 9113 §3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2";

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) idle: Duration,
    pub(crate) head: Duration,
    pub(crate) write: Duration,
}

/// What the requests of one connection tell its stream.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    in_flight: AtomicU32,
    requests: AtomicU64,
    /// The number of a request that its stream refused, and why.
    refused: Mutex<Option<(u64, HttpError)>>,
    /// A request was answered before all of its body had come.
    is_unread: AtomicBool,
}

impl Clock {
    /// Whether a request is being answered.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }
}

/// A request being answered, and what it holds; dropped with the last of its body.
#[derive(Debug)]
pub(crate) struct InFlight {
    clock: Arc<Clock>,
    /// The connection is not idle meanwhile.
    _busy: Busy,
    request: Option<Claim>,
    answer: Option<Claim>,
    /// How the answer reaches the client, over HTTP/2.
    delivery: Option<Arc<Delivery>>,
    refusal: Option<HttpError>,
}

impl InFlight {
    pub(crate) fn begin(
        clock: &Arc<Clock>,
        connection: &Arc<Connection>,
        delivery: Option<Arc<Delivery>>,
    ) -> Self {
        let number = clock.requests.fetch_add(1, Ordering::Relaxed) + 1;
        clock.in_flight.fetch_add(1, Ordering::Relaxed);
        let refusal = clock.refused.lock().take_if(|(refused, _)| *refused == number);
        Self {
            clock: Arc::clone(clock),
            _busy: connection.begin(),
            request: None,
            answer: None,
            delivery,
            refusal: refusal.map(|(_, refusal)| refusal),
        }
    }

    /// Why the stream let nothing of the request through, if that is so.
    pub(crate) const fn take_refusal(&mut self) -> Option<HttpError> {
        self.refusal.take()
    }

    /// Says that the answer goes out while the client may still be sending the body.
    pub(crate) fn leave_unread(&self) {
        self.clock.is_unread.store(true, Ordering::Relaxed);
    }

    /// Keeps what the request, and then its answer, have claimed.
    pub(crate) fn hold(&mut self, request: Option<Claim>, answer: Option<Claim>) {
        (self.request, self.answer) = (request, answer);
    }

    /// What the answer has claimed, to be kept with its bytes.
    pub(crate) const fn take_answer_claim(&mut self) -> Option<Claim> {
        self.answer.take()
    }

    pub(crate) const fn delivery(&self) -> Option<&Arc<Delivery>> {
        self.delivery.as_ref()
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.clock.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

enum Reading {
    Idle(Instant),
    Head(Instant),
    Busy,
}

/// The stream with its patience.
pub(crate) struct Patient<S> {
    stream: S,
    clock: Arc<Clock>,
    times: Times,
    reading: Reading,
    requests_seen: u64,
    /// `None`: nothing has arrived yet.
    http2: Option<bool>,
    guard: HeadGuard,
    read_alarm: Alarm,
    blocked_since: Option<Instant>,
    write_alarm: Alarm,
    linger: Option<Linger>,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S, clock: Arc<Clock>, times: Times, most_head_bytes: usize) -> Self {
        Self {
            stream,
            clock,
            times,
            // The first request's head is waited for no longer than any other's.
            reading: Reading::Head(Instant::now()),
            requests_seen: 0,
            http2: None,
            guard: HeadGuard::new(most_head_bytes),
            read_alarm: Alarm::default(),
            blocked_since: None,
            write_alarm: Alarm::default(),
            linger: None,
        }
    }

    /// Whether the client may still be sending what was refused: the body of a request, or a head that Hyper did not take.
    fn is_still_sent_to(&mut self) -> bool {
        self.follow_requests();
        self.clock.is_unread.load(Ordering::Relaxed)
            || (self.http2 == Some(false) && matches!(self.reading, Reading::Head(_)))
    }

    fn follow_requests(&mut self) {
        let requests = self.clock.requests.load(Ordering::Relaxed);
        if self.clock.in_flight.load(Ordering::Relaxed) > 0 {
            self.reading = Reading::Busy;
        } else if requests != self.requests_seen || matches!(self.reading, Reading::Busy) {
            self.reading = Reading::Idle(Instant::now());
        }
        self.requests_seen = requests;
    }

    fn received(&mut self, bytes: &[u8]) {
        let http2 = *self.http2.get_or_insert_with(|| bytes.starts_with(HTTP2_PREFACE));
        self.follow_requests();
        if http2 {
            // Its frames are not heads: a ping is as good a sign of life as a request.
            self.reading = Reading::Idle(Instant::now());
        } else if matches!(self.reading, Reading::Idle(_)) {
            self.reading = Reading::Head(Instant::now());
        }
    }

    fn wait_to_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.follow_requests();
        let deadline = match self.reading {
            // Hyper may look here for the last time before it drops the answer's body, so that the end of
            // the request is seen only when the alarm rings: an idle client may get up to twice its time.
            Reading::Busy => Instant::now() + self.times.idle,
            Reading::Idle(since) => since + self.times.idle,
            Reading::Head(since) => since + self.times.head,
        };
        self.read_alarm.poll(deadline, context)
    }

    fn watch_write<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.blocked_since = None;
            return written;
        }
        let since = *self.blocked_since.get_or_insert_with(Instant::now);
        match self.write_alarm.poll::<()>(since + self.times.write, context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if self.give(buffer) || buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            if self.guard.is_at_end() {
                return self.wait_to_read(context);
            }
            let read = if self.guard.is_within_body() {
                self.poll_body(context, buffer)
            } else {
                self.poll_head(context)
            };
            match read {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return self.wait_to_read(context),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> Patient<S> {
    /// Gives what the guard lets through; whether there was something.
    fn give(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let ready = self.guard.ready();
        let length = ready.len().min(buffer.remaining());
        buffer.put_slice(ready.get(..length).unwrap_or_default());
        self.guard.give(length);
        length > 0
    }

    /// Reads what is not a body's, into the guard; false at the end of the stream.
    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut piece = [const { MaybeUninit::uninit() }; HEAD_PIECE_BYTES];
        let mut piece = ReadBuf::uninit(&mut piece);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut piece))?;
        let bytes = piece.filled();
        if bytes.is_empty() {
            return Poll::Ready(Ok(false));
        }
        self.received(bytes);
        self.take(bytes);
        Poll::Ready(Ok(true))
    }

    /// Reads a body where it is wanted; what lies behind it goes to the guard. False where bytes were given, or the stream
    /// is at its end.
    fn poll_body(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<bool>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let bytes = buffer.filled().get(before..).unwrap_or_default();
        if bytes.is_empty() {
            return Poll::Ready(Ok(false));
        }
        self.received(bytes);
        let passed = self.guard.pass(bytes.len());
        if let Some(behind) = bytes.get(passed..).filter(|behind| !behind.is_empty()) {
            self.take(behind);
        }
        buffer.set_filled(before + passed);
        Poll::Ready(Ok(passed == 0))
    }

    fn take(&mut self, bytes: &[u8]) {
        self.guard.take(bytes);
        if let Some(refused) = self.guard.take_refusal() {
            *self.clock.refused.lock() = Some(refused);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch_write(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch_write(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch_write(context, flushed)
    }

    /// Ends the server's side, then throws away for a moment what the client still sends, see [`Linger`].
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            let shut = Pin::new(&mut this.stream).poll_shutdown(context);
            ready!(this.watch_write(context, shut))?;
            if !this.is_still_sent_to() {
                return Poll::Ready(Ok(()));
            }
        }
        let linger = this.linger.get_or_insert_with(Linger::begin);
        linger.poll(&mut this.stream, context).map(Ok)
    }
}

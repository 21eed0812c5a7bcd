//! Answers: their bodies, and JSON text written by hand where that saves a copy.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Frame, SizeHint};
use scrinium_accounting::Claim;
use scrinium_document::json::{JsonText, JsonWriter};
use serde::Serialize;

use crate::budget::Share;
use crate::delivery::Delivery;
use crate::error::HttpError;
use crate::observer::Usage;
use crate::patience::InFlight;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const MUST_REVALIDATE: HeaderValue = HeaderValue::from_static("must-revalidate");

/// What a piece should come to: large enough that its hand-off does not matter, small enough for many
/// clients at once.
pub(crate) const PIECE_BYTES: usize = 32 << 10;

/// Rows or documents are read for one piece until they hold this: one of them may be many times a piece.
pub(crate) const READ_AT_ONCE_BYTES: usize = 256 << 10;

/// Pieces of a body. An error ends the connection, so that a client never takes half an answer for whole.
pub(crate) type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, HttpError>> + Send>>;

/// The body of an answer: whole, or made piece by piece as fast as the client takes it.
pub struct Body {
    kind: Kind,
    /// What is left of the last piece.
    rest: Bytes,
    /// Dropped with the body, which tells the connection that the request is answered.
    guard: Option<InFlight>,
    usage: Option<Box<Usage>>,
    /// What the request and its answer hold of the budget, until the client has taken all.
    shares: Vec<Share>,
}

enum Kind {
    Whole(Bytes),
    Pieces { pieces: Pieces, length: Option<u64> },
}

/// The bytes of a whole answer, which count for as long as they wait to be sent.
struct CountedBytes {
    bytes: Bytes,
    _shares: Vec<Share>,
    _claim: Option<Claim>,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Body {
    fn of(kind: Kind) -> Self {
        Self { kind, rest: Bytes::new(), guard: None, usage: None, shares: Vec::new() }
    }

    /// The same, with something that is dropped when all of it is on its way.
    pub(crate) fn with_guard(mut self, guard: InFlight) -> Self {
        self.guard = Some(guard);
        self
    }

    /// The same, with what counts the bytes that are sent.
    pub(crate) fn with_usage(mut self, usage: Option<Box<Usage>>) -> Self {
        self.usage = usage;
        self
    }

    /// The same, with its pieces made into others. What is whole is on its way already.
    pub(crate) fn map_pieces<S>(self, map: impl FnOnce(Pieces) -> S) -> Self
    where
        S: Stream<Item = Result<Bytes, HttpError>> + Send + 'static,
    {
        match self.kind {
            Kind::Whole(_) => self,
            Kind::Pieces { pieces, length } => {
                let pieces = Box::pin(map(pieces));
                Self { kind: Kind::Pieces { pieces, length }, ..self }
            }
        }
    }

    /// Bytes that it holds in memory, or those of a piece that waits to be taken.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.kind {
            Kind::Whole(bytes) => bytes.len(),
            Kind::Pieces { .. } => PIECE_BYTES,
        }
    }

    /// The same, with a share of the budget.
    pub(crate) fn with_share(mut self, share: Share) -> Self {
        self.shares.push(share);
        self
    }

    /// Whether its bytes are counted already, or are none that wait.
    pub(crate) fn is_counted(&self) -> bool {
        !self.shares.is_empty() || matches!(self.kind, Kind::Pieces { .. })
    }

    /// No bytes at all.
    #[must_use]
    pub fn empty() -> Self {
        Self::of(Kind::Whole(Bytes::new()))
    }

    /// All of `bytes`.
    #[must_use]
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::of(Kind::Whole(bytes.into()))
    }

    /// Pieces whose number nobody knows beforehand.
    pub(crate) fn pieces(pieces: impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static) -> Self {
        Self::of(Kind::Pieces { pieces: Box::pin(pieces), length: None })
    }

    /// Pieces that are `length` bytes together.
    pub(crate) fn pieces_of_length(
        pieces: impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static,
        length: u64,
    ) -> Self {
        Self::of(Kind::Pieces { pieces: Box::pin(pieces), length: Some(length) })
    }

    /// The delivery of its pieces, where the client has a window for them (HTTP/2).
    fn delivery(&self) -> Option<&Arc<Delivery>> {
        self.guard.as_ref().and_then(InFlight::delivery)
    }

    /// The next bytes to be sent.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, HttpError>>> {
        if self.rest.is_empty() {
            self.rest = match &mut self.kind {
                Kind::Whole(bytes) if bytes.is_empty() => return Poll::Ready(None),
                Kind::Whole(bytes) => std::mem::take(bytes),
                Kind::Pieces { pieces, .. } => match ready!(pieces.as_mut().poll_next(context)) {
                    Some(Ok(bytes)) => bytes,
                    ended => return Poll::Ready(ended),
                },
            };
        }
        let most = if self.delivery().is_some() { PIECE_BYTES } else { usize::MAX };
        Poll::Ready(Some(Ok(self.rest.split_to(self.rest.len().min(most)))))
    }

    /// `bytes`, so that it is seen when they were sent. A stream of HTTP/2 waits for that, and then for its end; a
    /// connection of HTTP/1.1 is done with an answer once it holds the last of it, which counts until it has gone.
    fn handed_over(&mut self, bytes: Bytes) -> Bytes {
        if let Some(delivery) = self.delivery() {
            return if bytes.is_empty() { bytes } else { delivery.hand_over(bytes) };
        }
        if matches!(self.kind, Kind::Pieces { .. }) {
            return bytes;
        }
        let claim = self.guard.as_mut().and_then(InFlight::take_answer_claim);
        self.shares.retain(|share| !share.is_empty());
        if claim.is_none() && self.shares.is_empty() {
            return bytes;
        }
        Bytes::from_owner(CountedBytes { bytes, _shares: std::mem::take(&mut self.shares), _claim: claim })
    }

    /// How many bytes there are, where that is known.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match &self.kind {
            Kind::Whole(bytes) => Some(bytes.len() as u64),
            Kind::Pieces { length, .. } => *length,
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Body").field("length", &self.length()).finish()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Some(delivery) = self.delivery() {
            ready!(delivery.poll_taken(context));
        }
        let piece = ready!(self.poll_piece(context));
        if let (Some(Ok(bytes)), Some(usage)) = (&piece, &mut self.usage) {
            usage.sent_bytes += bytes.len() as u64;
        }
        Poll::Ready(piece.map(|piece| piece.map(|bytes| Frame::data(self.handed_over(bytes)))))
    }

    /// Over HTTP/2 an answer ends when all of it was taken: a stream that has ended cannot be given up any more.
    fn is_end_stream(&self) -> bool {
        matches!(&self.kind, Kind::Whole(bytes) if bytes.is_empty() && self.rest.is_empty())
            && !self.delivery().is_some_and(|delivery| delivery.is_under_way())
    }

    fn size_hint(&self) -> SizeHint {
        self.length().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// An answer of JSON text, complete with its closing newline.
pub(crate) fn json(status: StatusCode, text: JsonWriter) -> Response<Body> {
    json_body(status, Body::whole(text))
}

/// A whole value and a newline.
pub(crate) fn json_text(status: StatusCode, value: JsonText) -> Response<Body> {
    let mut text = JsonWriter::from(value);
    text.literal("\n");
    json(status, text)
}

/// An answer whose body is JSON, whole or in pieces.
pub(crate) fn json_body(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response.headers_mut().insert(CACHE_CONTROL, MUST_REVALIDATE);
    response
}

/// A value as JSON and a newline.
pub(crate) fn json_value(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    let mut text = JsonWriter::new();
    text.serialized(value).literal("\n");
    json(status, text)
}

/// A refusal: CouchDB's JSON object and a newline.
pub(crate) fn refusal(error: HttpError) -> Response<Body> {
    let mut text = JsonWriter::with_capacity(error.error.len() + error.reason.len() + 32);
    text.literal("{");
    push_error_members(&mut text, &error.error, &error.reason);
    text.literal("}\n");
    let mut response = json(error.status, text);
    if let Some((name, value)) = error.header.map(|header| *header) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// `{"ok":true}` with `status`.
pub(crate) fn ok(status: StatusCode) -> Response<Body> {
    json(status, JsonWriter::of_literal("{\"ok\":true}\n"))
}

/// `{"ok":true,"id":…,"rev":…}` with `status`, and the revision as ETag.
pub(crate) fn updated(status: StatusCode, id: &str, revision: &str) -> Response<Body> {
    let mut text = JsonWriter::with_capacity(id.len() + revision.len() + 40);
    text.literal("{\"ok\":true,\"id\":").string(id).literal(",\"rev\":").string(revision).literal("}\n");
    let mut response = json(status, text);
    insert_etag(response.headers_mut(), revision);
    response
}

/// Sets the ETag to `tag` in quotes. There is none for a revision that cannot stand in one (RFC 9110 §8.8.3).
pub(crate) fn insert_etag(headers: &mut HeaderMap, tag: &str) {
    if tag.contains('"') {
        return;
    }
    let mut quoted = String::with_capacity(tag.len() + 2);
    quoted.push('"');
    quoted.push_str(tag);
    quoted.push('"');
    if let Ok(value) = HeaderValue::try_from(quoted) {
        headers.insert(http::header::ETAG, value);
    }
}

/// 304 with the ETag that the client knows already.
pub(crate) fn not_modified(tag: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().insert(CACHE_CONTROL, MUST_REVALIDATE);
    insert_etag(response.headers_mut(), tag);
    response
}

/// Appends `"error":…,"reason":…`.
pub(crate) fn push_error_members(text: &mut JsonWriter, error: &str, reason: &str) {
    text.literal("\"error\":").string(error).literal(",\"reason\":").string(reason);
}

//! Request bodies: within the limits of their route, in bounded pieces, within a time and a budget.
//!
//! Before a byte is read, its sender is known to be one who may ask ([`RequestBody::admit`]), and the limits of the table
//! of routes hold. What is held counts against the budget as it comes, and what parsing makes of it too, until the answer
//! was taken. Bodies that are not short are inflated and parsed on the worker pool, never on a thread of the network.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use scrinium_document::json::{ContentSeparator, JsonCounts, NESTING_MAX, parse_value};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::budget::{Arrival, Share, UNCOUNTED_BYTES};
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::gzip::{self, Encoding};
use crate::intake::{HELD_WHOLE_BYTES, Intake, Received};
use crate::port_options::PortOptions;
use crate::routes::{BodyLimit, Limits, Need};
use crate::state::HttpState;

/// Bodies up to this length are parsed where they came.
const SHORT_BYTES: usize = 8 << 10;

/// A body must come at least this fast on average, once it has taken longer than the read timeout.
const LEAST_BYTES_PER_SECOND: u64 = 256;

/// And what is held of it in memory, or has arrived of an attachment, at least so fast once the route's time has passed.
const LEAST_HELD_BYTES_PER_SECOND: u64 = 384 << 10;
const LEAST_STREAMED_BYTES_PER_SECOND: u64 = 4 << 10;

/// CouchDB's `max_http_request_size`.
const COUCHDB_MOST_BYTES: u64 = 4 << 30;

/// At most this much of a body that nobody wants is read, so that the connection can go on.
const DRAIN_BYTES: u64 = 64 << 10;

/// And no longer than this.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// What a JSON value takes in memory: itself, and room for as many more in a list that grows.
const VALUE_BYTES: usize = 224;

/// What the name of a member adds to that, and its place in an object.
const MEMBER_BYTES: usize = 256;

/// The body of a request, not read yet.
pub(crate) struct RequestBody {
    incoming: Incoming,
    port: Arc<PortOptions>,
    state: HttpState,
    /// What `Content-Length` says.
    declared: Option<u64>,
    arrival: Arc<Arrival>,
    limits: Limits,
    encoding: Encoding,
    /// The longest body that is held, by the route's limits and the server's settings.
    most_bytes: usize,
    /// Most of it is passed on as it comes.
    is_passed_on: bool,
    share: Option<Share>,
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming, port: Arc<PortOptions>, state: HttpState) -> Self {
        let declared = http_body::Body::size_hint(&incoming).exact();
        Self {
            incoming,
            port,
            state,
            declared,
            arrival: Arrival::new(),
            limits: Limits { body: BodyLimit::Nothing, gzip: false, elements: 0, seconds: 0 },
            encoding: Encoding::Identity,
            most_bytes: 0,
            is_passed_on: false,
            share: None,
        }
    }

    /// Bytes that have come so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.arrival.received_bytes()
    }

    /// How it is encoded.
    pub(crate) const fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// What the body holds of its sender's account.
    pub(crate) fn claimed_bytes(&self) -> usize {
        self.share.as_ref().map_or(0, Share::claimed_bytes)
    }

    /// What the body holds of the budget, to be kept until the answer was taken.
    pub(crate) fn into_share(self) -> Option<Share> {
        self.share
    }

    /// Holds the request against the limits of its route before any of its body is read. Who sends more than is not
    /// counted must be one who may: that is asked of the database first, behind the pool's admission.
    ///
    /// # Errors
    /// 413 where it is declared to be too long, 415 for an encoding that the route does not take, and what refuses its
    /// sender.
    pub(crate) async fn admit(&mut self, context: &Context) -> Result<()> {
        self.limits = context.entry.limits;
        if self.limits.body == BodyLimit::Nothing {
            return Ok(());
        }
        self.encoding = Encoding::of(&context.headers)?;
        if self.encoding != Encoding::Identity && !self.limits.gzip {
            let named = context.header(&CONTENT_ENCODING).unwrap_or("?").to_owned();
            return Err(Encoding::unsupported(&named));
        }
        self.most_bytes = self.most_bytes();
        let is_multipart = context.header(&CONTENT_TYPE).is_some_and(|kind| kind.starts_with("multipart/"));
        self.is_passed_on = self.limits.body == BodyLimit::Attachment
            || (self.limits.body == BodyLimit::Document && is_multipart);
        if self.declared.is_some_and(|declared| declared > self.most_declared_bytes()) {
            return Err(self.too_large());
        }
        let share = context.state.budget.for_body(&context.account, &self.arrival);
        self.share = Some(share);
        let may_be_large = self.declared.is_none_or(|declared| declared > UNCOUNTED_BYTES as u64)
            && self.most_bytes > UNCOUNTED_BYTES;
        if may_be_large && matches!(context.entry.need, Need::Database(_)) {
            context.with_database(|_| Ok(())).await?;
        }
        Ok(())
    }

    fn most_bytes(&self) -> usize {
        let document = self.state.databases.options().document_max_bytes;
        match self.limits.body {
            BodyLimit::Nothing => 0,
            BodyLimit::Bytes(bytes) => bytes.min(self.port.max_request_bytes),
            BodyLimit::PlainDocument => document.min(self.port.max_request_bytes),
            BodyLimit::Document | BodyLimit::Port => self.port.max_request_bytes,
            BodyLimit::Attachment => usize::MAX,
        }
    }

    /// The longest body that a request may announce: JSON of documents may have contents of attachments in it, which are
    /// not held: up to what CouchDB takes by default, or four of the longest.
    fn most_declared_bytes(&self) -> u64 {
        let has_contents = matches!(self.limits.body, BodyLimit::Document | BodyLimit::Port);
        if self.is_passed_on {
            u64::MAX
        } else if has_contents && self.encoding == Encoding::Identity {
            let contents =
                self.state.databases.options().attachment_max_bytes.saturating_mul(4).max(COUCHDB_MOST_BYTES);
            contents.saturating_add(self.most_bytes as u64)
        } else {
            self.most_bytes as u64
        }
    }

    fn too_large(&self) -> HttpError {
        match self.limits.body {
            BodyLimit::Bytes(bytes) => HttpError::beyond_route(bytes.min(self.port.max_request_bytes)),
            _ => HttpError::too_large(),
        }
    }

    /// The next piece, or `None` at the end; it may be of any length that the network gave.
    ///
    /// # Errors
    /// 408 where it comes too slowly, 400 where it breaks off.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        let patience = Duration::from_millis(self.port.read_timeout_ms);
        loop {
            let arrival = Arc::clone(&self.arrival);
            let frame = tokio::select! {
                frame = tokio::time::timeout(patience, self.incoming.frame()) => frame,
                () = arrival.ended() => return Err(HttpError::timed_out()),
            };
            let Some(frame) = frame.map_err(|_| HttpError::timed_out())? else {
                self.arrival.finish();
                return Ok(None);
            };
            let frame = frame.map_err(|_| HttpError::bad_request("The request's body ended early."))?;
            let Ok(bytes) = frame.into_data() else { continue };
            self.arrival.received(bytes.len() as u64);
            if self.is_too_slow(patience) {
                return Err(HttpError::timed_out());
            }
            return Ok(Some(bytes));
        }
    }

    /// The least rate grows with time and size: a body of which much is held must come fast, since nobody else can have
    /// that memory meanwhile.
    fn is_too_slow(&self, patience: Duration) -> bool {
        let (received, elapsed) = (self.received_bytes(), self.arrival.elapsed());
        if elapsed > patience && received < LEAST_BYTES_PER_SECOND * elapsed.as_secs() {
            return true;
        }
        let rate =
            if self.is_passed_on { LEAST_STREAMED_BYTES_PER_SECOND } else { LEAST_HELD_BYTES_PER_SECOND };
        let usual = self.limits.seconds.max(patience.as_secs());
        received > UNCOUNTED_BYTES as u64 && elapsed.as_secs() > usual.saturating_add(received / rate)
    }

    /// Reads what nobody wanted of the body, if it is short and comes at once; false if some is left, so
    /// that the connection cannot be used again.
    pub(crate) async fn drain(&mut self, expects_leave: bool) -> bool {
        if http_body::Body::is_end_stream(&self.incoming) {
            return true;
        }
        // A client that waits for leave to send must not get it now.
        if expects_leave || self.declared.is_some_and(|declared| declared > DRAIN_BYTES) {
            return false;
        }
        let drained = async {
            let before = self.received_bytes();
            while self.received_bytes() - before <= DRAIN_BYTES {
                match self.next().await {
                    Ok(Some(_)) => {}
                    Ok(None) => return true,
                    Err(_) => return false,
                }
            }
            false
        };
        tokio::time::timeout(DRAIN_TIME, drained).await.unwrap_or(false)
    }

    /// The whole body, no longer than the route allows, inflated if it came compressed.
    ///
    /// # Errors
    /// 413 where it is longer, 503 where the budget of all bodies is used up, and those of [`Self::next`].
    pub(crate) async fn collect(&mut self) -> Result<Bytes> {
        let bytes = self.gather().await?;
        if self.encoding == Encoding::Identity {
            return Ok(bytes);
        }
        let (mut share, most) = (self.taken_share()?, self.most_bytes);
        let too_large = self.too_large();
        let inflated = self.state.run(move || {
            let compressed = bytes.len();
            let inflated = gzip::inflate(&bytes, |length| {
                if length > most {
                    return Err(too_large.clone());
                }
                share.cover(compressed + length)
            });
            Ok((inflated?, share))
        });
        let (inflated, mut share) = inflated.await?;
        share.shrink(inflated.len());
        self.share = Some(share);
        Ok(inflated.into())
    }

    /// The whole body as JSON of documents, from which long contents of attachments are taken out as they come. What comes
    /// compressed is held whole.
    ///
    /// # Errors
    /// Those of [`Self::collect`] for what is left, a content that is no base64 or too long, and what the store reports.
    pub(crate) async fn receive(
        &mut self,
        context: &Context,
        separator: ContentSeparator,
    ) -> Result<Received> {
        let is_short = self.declared.is_some_and(|declared| declared <= HELD_WHOLE_BYTES as u64);
        if is_short || self.encoding != Encoding::Identity {
            return Ok(Received::whole(self.collect().await?));
        }
        let mut gathered = BytesMut::new();
        let (mut intake, mut separator) = (None::<Box<Intake>>, Some(separator.for_text_of(self.most_bytes)));
        loop {
            let piece = self.next().await?;
            let held = intake.as_ref().map_or((0, 0), |intake| intake.held_bytes());
            let more = gathered.len() + piece.as_ref().map_or(0, Bytes::len);
            self.cover_beside(held.0 + more, held.1).await?;
            gathered.extend_from_slice(piece.as_deref().unwrap_or_default());
            if piece.is_none() && intake.is_none() {
                return Ok(Received::whole(gathered.freeze()));
            }
            if piece.is_some() && gathered.len() < HELD_WHOLE_BYTES {
                continue;
            }
            let taking = match (intake.take(), separator.take()) {
                (None, Some(separator)) => {
                    let database = context.with_database(Ok).await?;
                    Intake::new(separator, database)
                }
                (Some(intake), _) => intake,
                (None, None) => return Err(not_admitted()),
            };
            let taking = taking.push(context, gathered.split().freeze()).await?;
            self.is_passed_on |= taking.passes_on();
            if piece.is_none() {
                return Ok(taking.finish());
            }
            intake = Some(taking);
        }
    }

    /// Counts bytes that a handler holds of the body, instead of [`Self::collect`].
    ///
    /// # Errors
    /// 413 and 503, as [`Self::collect`].
    pub(crate) async fn cover(&mut self, bytes: usize) -> Result<()> {
        self.cover_beside(bytes, 0).await
    }

    /// As [`Self::cover`], with bytes of contents that are held besides those of the body.
    async fn cover_beside(&mut self, bytes: usize, contents: usize) -> Result<()> {
        if bytes > self.most_bytes {
            return Err(self.too_large());
        }
        match &mut self.share {
            Some(share) => share.cover_or_end_slow(bytes.saturating_add(contents)).await,
            None => Err(not_admitted()),
        }
    }

    /// Counts what parsing makes of a JSON text that a handler holds of the body.
    ///
    /// # Errors
    /// 413 and 503, as [`Self::collect`].
    pub(crate) fn cover_values(&mut self, json: &[u8]) -> Result<()> {
        let bytes = value_bytes(JsonCounts::of(json)).saturating_add(json.len());
        self.share.as_mut().ok_or_else(not_admitted)?.cover(bytes)
    }

    fn taken_share(&mut self) -> Result<Share> {
        self.share.take().ok_or_else(not_admitted)
    }

    async fn gather(&mut self) -> Result<Bytes> {
        let Some(first) = self.next().await? else { return Ok(Bytes::new()) };
        self.cover(first.len()).await?;
        if self.declared == Some(first.len() as u64) {
            self.arrival.finish();
            return Ok(first);
        }
        let declared = usize::try_from(self.declared.unwrap_or(0)).unwrap_or(usize::MAX);
        let mut whole = BytesMut::with_capacity(declared.min(UNCOUNTED_BYTES).max(first.len()));
        whole.extend_from_slice(&first);
        while let Some(piece) = self.next().await? {
            self.cover(whole.len() + piece.len()).await?;
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// The whole body, made into something by `parse`, on the worker pool unless it is short. What that takes in memory
    /// is counted by the values that stand in the body, for as long as the request lives.
    async fn parsed<T: Send + 'static>(
        &mut self,
        parse: impl FnOnce(&Bytes) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let bytes = self.collect().await?;
        let (mut share, most) = (self.taken_share()?, self.limits.elements);
        let work = move || {
            let counts = JsonCounts::of(&bytes);
            if counts.values > most {
                return Err(HttpError::too_many_values("the request", most));
            }
            share.cover(bytes.len().saturating_add(value_bytes(counts)))?;
            let parsed = parse(&bytes)?;
            // From here on the values are held, and the text is not.
            let length = bytes.len();
            drop(bytes);
            share.shrink(value_bytes(counts).saturating_add(length));
            Ok((parsed, share))
        };
        let (parsed, share) =
            if self.received_bytes() <= SHORT_BYTES as u64 && self.encoding == Encoding::Identity {
                work()?
            } else {
                self.state.run(work).await?
            };
        self.share = Some(share);
        Ok(parsed)
    }

    /// The whole body as a JSON value of type `T`.
    pub(crate) async fn json<T: DeserializeOwned + Send + 'static>(&mut self) -> Result<T> {
        self.parsed(|bytes| parse_json(bytes)).await
    }

    /// The whole body as a JSON value, nested as deep as documents may be.
    pub(crate) async fn deep_value(&mut self) -> Result<Value> {
        self.parsed(|bytes| {
            let text = std::str::from_utf8(bytes).map_err(|_| HttpError::invalid_json())?;
            parse_value(text, NESTING_MAX).map_err(|_| HttpError::invalid_json())
        })
        .await
    }

    /// The whole body as a JSON object.
    pub(crate) async fn object(&mut self) -> Result<Map<String, Value>> {
        match self.json().await? {
            Value::Object(members) => Ok(members),
            _ => Err(HttpError::not_object()),
        }
    }

    /// The whole body as a JSON object; none at all is an empty one.
    pub(crate) async fn object_or_nothing(&mut self) -> Result<Map<String, Value>> {
        let parsed =
            self.parsed(|bytes| if bytes.is_empty() { Ok(None) } else { parse_json(bytes).map(Some) });
        match parsed.await? {
            None => Ok(Map::new()),
            Some(Value::Object(members)) => Ok(members),
            Some(_) => Err(HttpError::not_object()),
        }
    }
}

fn not_admitted() -> HttpError {
    HttpError::internal("This route does not accept a body.")
}

/// `bytes` as a JSON value of type `T`, or CouchDB's complaint.
pub(crate) fn parse_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|_| HttpError::invalid_json())
}

/// What the values of a JSON text take in memory, with its strings left out.
const fn value_bytes(counts: JsonCounts) -> usize {
    counts.values.saturating_mul(VALUE_BYTES).saturating_add(counts.members.saturating_mul(MEMBER_BYTES))
}

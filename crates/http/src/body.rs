//! Request bodies: read in bounded pieces, within a time and a budget.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use scrinium_document::json::{NESTING_MAX, parse_value};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{HttpError, Result};
use crate::gzip::{self, Encoding};
use crate::port::PortOptions;
use crate::state::HttpState;

/// Bodies up to this length do not count against the budget: connections are bounded anyway.
const UNCOUNTED_BYTES: usize = 64 << 10;

/// How much of the budget a body of unknown length takes at a time.
const STEP_BYTES: usize = 1 << 20;

/// A body must come at least this fast on average, once it has taken longer than the read timeout.
const LEAST_BYTES_PER_SECOND: u64 = 256;

/// So much of a body that nobody wants is read, so that the connection can go on.
const DRAIN_BYTES: u64 = 64 << 10;

/// And no longer than this.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// The body of a request, not read yet.
pub(crate) struct RequestBody {
    incoming: Incoming,
    port: Arc<PortOptions>,
    state: HttpState,
    /// What `Content-Length` says.
    declared: Option<u64>,
    received: u64,
    started: Instant,
}

/// A whole body, with its share of the budget as long as it is held.
pub(crate) struct Collected {
    pub(crate) bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming, port: Arc<PortOptions>, state: HttpState) -> Self {
        let declared = http_body::Body::size_hint(&incoming).exact();
        Self { incoming, port, state, declared, received: 0, started: Instant::now() }
    }

    /// Bytes that have come so far.
    pub(crate) const fn received_bytes(&self) -> u64 {
        self.received
    }

    /// The next piece, or `None` at the end; it may be of any length that the network gave.
    ///
    /// # Errors
    /// 408 where it comes too slowly, 400 where it breaks off.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        let patience = Duration::from_millis(self.port.read_timeout_ms);
        loop {
            let frame = tokio::time::timeout(patience, self.incoming.frame());
            let Some(frame) = frame.await.map_err(|_| HttpError::timed_out())? else { return Ok(None) };
            let frame = frame.map_err(|_| HttpError::bad_request("The request's body broke off."))?;
            let Ok(bytes) = frame.into_data() else { continue };
            self.received += bytes.len() as u64;
            let elapsed = self.started.elapsed();
            if elapsed > patience && self.received < LEAST_BYTES_PER_SECOND * elapsed.as_secs() {
                return Err(HttpError::timed_out());
            }
            return Ok(Some(bytes));
        }
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
            let before = self.received;
            while self.received - before <= DRAIN_BYTES {
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

    /// The whole body, no longer than the port's `max_request_bytes`, inflated if it came compressed.
    ///
    /// # Errors
    /// 413 where it is longer, 503 where the budget of all bodies is used up, and those of [`Self::next`].
    pub(crate) async fn collect(&mut self, headers: &HeaderMap) -> Result<Collected> {
        let encoding = Encoding::of(headers)?;
        let mut share = self.share();
        let bytes = self.gather(&mut share).await?;
        match encoding {
            Encoding::Identity => Ok(share.collected(bytes)),
            Encoding::Gzip => {
                let inflated = self.state.run(move || {
                    let inflated = gzip::inflate(&bytes, |bytes| share.cover(bytes))?;
                    Ok(share.collected(inflated.into()))
                });
                inflated.await
            }
        }
    }

    /// A share of what all bodies may hold in memory, for this one.
    pub(crate) fn share(&self) -> Share {
        Share::new(Arc::clone(&self.state.body_budget), self.port.max_request_bytes)
    }

    async fn gather(&mut self, share: &mut Share) -> Result<Bytes> {
        let declared = usize::try_from(self.declared.unwrap_or(0)).unwrap_or(usize::MAX);
        share.cover(declared)?;
        let Some(first) = self.next().await? else { return Ok(Bytes::new()) };
        if self.declared == Some(first.len() as u64) {
            return Ok(first);
        }
        let mut whole = BytesMut::with_capacity(declared.max(first.len()).min(STEP_BYTES));
        whole.extend_from_slice(&first);
        while let Some(piece) = self.next().await? {
            share.cover(whole.len() + piece.len())?;
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// The whole body as a JSON value of type `T`.
    pub(crate) async fn json<T: DeserializeOwned>(&mut self, headers: &HeaderMap) -> Result<T> {
        parse_json(&self.collect(headers).await?.bytes)
    }

    /// The whole body as a JSON value, nested as deep as documents may be.
    pub(crate) async fn deep_value(&mut self, headers: &HeaderMap) -> Result<Value> {
        let collected = self.collect(headers).await?;
        let text = std::str::from_utf8(&collected.bytes).map_err(|_| HttpError::invalid_json())?;
        parse_value(text, NESTING_MAX).map_err(|_| HttpError::invalid_json())
    }

    /// The whole body as a JSON object.
    pub(crate) async fn object(&mut self, headers: &HeaderMap) -> Result<Map<String, Value>> {
        match self.json(headers).await? {
            Value::Object(members) => Ok(members),
            _ => Err(HttpError::not_object()),
        }
    }

    /// The whole body as a JSON object; none at all is an empty one.
    pub(crate) async fn object_or_nothing(&mut self, headers: &HeaderMap) -> Result<Map<String, Value>> {
        let collected = self.collect(headers).await?;
        if collected.bytes.is_empty() {
            return Ok(Map::new());
        }
        match parse_json(&collected.bytes)? {
            Value::Object(members) => Ok(members),
            _ => Err(HttpError::not_object()),
        }
    }
}

/// `bytes` as a JSON value of type `T`, or CouchDB's complaint.
pub(crate) fn parse_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|_| HttpError::invalid_json())
}

/// A growing share of the budget, given back when it is dropped.
pub(crate) struct Share {
    budget: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    covered: usize,
    most: usize,
}

impl Share {
    fn new(budget: Arc<Semaphore>, most: usize) -> Self {
        Self { budget, permit: None, covered: UNCOUNTED_BYTES, most }
    }

    /// Makes the share large enough for `bytes`, or refuses them (413, 503). It never waits: two half-read bodies that
    /// wait for each other's share would wait for ever.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.most {
            return Err(HttpError::too_large());
        }
        if bytes <= self.covered {
            return Ok(());
        }
        let more = (bytes - self.covered).max(STEP_BYTES);
        let kibibytes = u32::try_from(more.div_ceil(1024)).map_err(|_| HttpError::too_large())?;
        let permit = Arc::clone(&self.budget)
            .try_acquire_many_owned(kibibytes)
            .map_err(|_| HttpError::unavailable("Too many large requests at the same time; try again."))?;
        match &mut self.permit {
            Some(held) => held.merge(permit),
            None => self.permit = Some(permit),
        }
        self.covered += more;
        Ok(())
    }

    fn collected(self, bytes: Bytes) -> Collected {
        Collected { bytes, _share: self.permit }
    }
}

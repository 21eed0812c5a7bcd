//! One request: who asks, what was asked, and the ways to the databases.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::header::{CONTENT_TYPE, HOST, HeaderValue, IF_MATCH, IF_NONE_MATCH, LOCATION};
use http::{HeaderMap, HeaderName, Method};
use scrinium_accounting::Account;
use scrinium_database::Level;

use crate::access::{self, Opened};
use crate::authority::Identity;
use crate::client::Client;
use crate::encoding;
use crate::error::{HttpError, Result};
use crate::port::PortOptions;
use crate::query::Query;
use crate::response::Body;
use crate::state::HttpState;

/// One request, apart from its body.
pub(crate) struct Context {
    pub(crate) state: HttpState,
    pub(crate) port: Arc<PortOptions>,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    pub(crate) identity: Identity,
    /// Where the request comes from, and by which scheme.
    pub(crate) client: Client,
    /// What it holds is counted here: of the person, or of the network of one who has not logged in.
    pub(crate) account: Account,
    /// By which means the sender was known: `cookie` or `default` (Basic).
    pub(crate) authenticated_by: Option<&'static str>,
    /// How long it has waited for places in the worker pool, in microseconds.
    pub(crate) waited_us: AtomicU64,
}

impl Context {
    /// Opens a database and does `work` with it, all in one hand-off to the worker pool.
    pub(crate) async fn with_database<T: Send + 'static>(
        &self,
        name: &str,
        need: Level,
        work: impl FnOnce(Opened) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let databases = self.state.databases.clone();
        let identity = self.identity.clone();
        let name = name.to_owned();
        let asked = Instant::now();
        // Given back by the work itself, which goes on when the client has left.
        let thread = self.account.thread().await;
        let work = move || {
            let _thread = thread;
            Ok((asked.elapsed(), work(access::open(&databases, &name, &identity, need)?)?))
        };
        let (waited, done) = self.state.run(work).await?;
        self.note_wait(waited);
        Ok(done)
    }

    /// Counts a wait for a place in the worker pool.
    pub(crate) fn note_wait(&self, waited: Duration) {
        let microseconds = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.waited_us.fetch_add(microseconds, Ordering::Relaxed);
    }

    /// A header as text; absent or not text is `None`.
    pub(crate) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Whether `Accept` names `media_type` itself (not by `*/*`).
    pub(crate) fn accepts_explicitly(&self, media_type: &str) -> bool {
        self.headers
            .get_all(http::header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|item| {
                item.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(media_type))
            })
    }

    /// Refuses a body that is not declared to be JSON (CouchDB: 415).
    pub(crate) fn require_json(&self) -> Result<()> {
        let declared = self.header(&CONTENT_TYPE).and_then(|value| value.split(';').next());
        match declared {
            Some(kind) if kind.trim().eq_ignore_ascii_case("application/json") => Ok(()),
            _ => Err(HttpError::not_json()),
        }
    }

    /// Refuses one who is not a server administrator.
    pub(crate) fn require_administrator(&self) -> Result<()> {
        access::require_administrator(&self.identity)
    }

    /// The revision that the request is about, from `?rev=` or `If-Match`; they must not differ.
    pub(crate) fn revision(&self) -> Result<Option<String>> {
        let from_query = self.query.get("rev");
        let from_header = self.header(&IF_MATCH).map(|tag| tag.trim().trim_matches('"'));
        match (from_query, from_header) {
            (Some(query), Some(header)) if query != header => {
                Err(HttpError::bad_request("Document rev and etag have different values"))
            }
            (query, header) => Ok(query.or(header).map(str::to_owned)),
        }
    }

    /// Whether `If-None-Match` holds `tag` (RFC 9110 §13.1.2, weak comparison).
    pub(crate) fn knows(&self, tag: &str) -> bool {
        any_tag(self.headers.get_all(IF_NONE_MATCH).iter(), tag)
    }

    /// Sets `Location` to the address of what `segments` name, absolute where the client said its host.
    pub(crate) fn locate(&self, response: &mut http::Response<Body>, segments: &[&str]) {
        let mut address = String::with_capacity(96);
        if let Some(host) = self.header(&HOST) {
            address.push_str(if self.client.secure { "https://" } else { "http://" });
            address.push_str(host);
        }
        for segment in segments {
            address.push('/');
            encoding::push_segment(&mut address, segment);
        }
        if let Ok(value) = HeaderValue::try_from(address) {
            response.headers_mut().insert(LOCATION, value);
        }
    }
}

/// Whether one of the headers' tags is `tag`.
pub(crate) fn any_tag<'a>(mut headers: impl Iterator<Item = &'a HeaderValue>, tag: &str) -> bool {
    headers.any(|value| {
        let items = value.to_str().unwrap_or("").split(',').map(str::trim);
        items
            .into_iter()
            .any(|item| item == "*" || item.strip_prefix("W/").unwrap_or(item).trim_matches('"') == tag)
    })
}

//! One request: who asks, what was asked, and the ways to the databases.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::header::{CONTENT_TYPE, HeaderValue, IF_MATCH, IF_NONE_MATCH, LOCATION};
use http::{HeaderMap, HeaderName, Method, Uri};
use parking_lot::Mutex;
use scrinium_accounting::Account;
use scrinium_views::Reading;
use scrinium_worker::Admission;

use crate::access::{self, Opened};
use crate::address::Address;
use crate::authority::Identity;
use crate::client::Client;
use crate::encoding;
use crate::error::{HttpError, Result};
use crate::operations::Operation;
use crate::port_options::PortOptions;
use crate::query::Query;
use crate::response::Body;
use crate::routes::MethodRoute;
use crate::state::HttpState;
use crate::users::USERS_DATABASE;

/// What CouchDB says of a revision that is another one in `If-Match`.
pub(crate) const TAG_DIFFERS: &str = "Document rev and etag have different values";

/// So often a request waits, where views are rebuilt or discarded meanwhile.
const WAITS_MAX: usize = 5;

/// One request, apart from its body.
pub(crate) struct Context {
    pub(crate) state: HttpState,
    pub(crate) port: Arc<PortOptions>,
    pub(crate) method: Method,
    pub(crate) address: Address,
    /// What was asked for, as it came.
    pub(crate) target: Uri,
    /// What the table of routes says of the request.
    pub(crate) entry: &'static MethodRoute,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    pub(crate) identity: Identity,
    /// Where the request comes from, and by which scheme.
    pub(crate) client: Client,
    /// What it holds is counted here: of the person, or of the network of one who has not logged in.
    pub(crate) account: Account,
    /// The host that the client asked, where a trusted proxy says so.
    pub(crate) forwarded_host: Option<String>,
    /// By which means the sender was known: `cookie` or `default` (Basic).
    pub(crate) authenticated_by: Option<&'static str>,
    /// How long it has waited for places in the worker pool, in microseconds.
    pub(crate) waited_us: AtomicU64,
    /// What the request turned out to be.
    pub(crate) operation: Mutex<Option<Operation>>,
    /// Set once the request's database was opened for its sender.
    pub(crate) authorised: Arc<AtomicBool>,
}

impl Context {
    /// Opens the request's database, for somebody who has the level there that the table of routes declares, and does
    /// `work` with it, all in one hand-off to the worker pool.
    pub(crate) async fn with_database<T: Send + 'static>(
        &self,
        work: impl FnOnce(Opened) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.admitted(work).await.map(|(_, done)| done)
    }

    /// As [`with_database`](Self::with_database) for what reads views. `work` begins again when the views that it needs
    /// have been brought up to date, with the change that they have reached; meanwhile it has neither a thread of the pool nor a
    /// place among the transactions that are admitted.
    pub(crate) async fn with_views<T: Send + 'static>(
        &self,
        work: impl Fn(Opened, Option<u64>) -> Result<Reading<T>> + Clone + Send + 'static,
    ) -> Result<T> {
        let mut reached = None;
        for _ in 0..WAITS_MAX {
            let again = work.clone();
            let update = match self.with_database(move |opened| again(opened, reached)).await? {
                Reading::Ready(ready) => return Ok(ready),
                Reading::Behind(update) => update,
            };
            let _waits = self.state.view_waits.enter(self.identity.name().unwrap_or_default())?;
            reached = Some(update.done().await?);
        }
        Err(HttpError::unavailable("The view keeps being rebuilt; try again later."))
    }

    /// As [`with_database`](Self::with_database), for a transaction that goes on behind `work`: it stays admitted until the admission is dropped.
    pub(crate) async fn admitted<T: Send + 'static>(
        &self,
        work: impl FnOnce(Opened) -> Result<T> + Send + 'static,
    ) -> Result<(Admission, T)> {
        let open = self.opener();
        let asked = Instant::now();
        // Nobody has all threads. Given back by the work itself, which continues when the client has left.
        let thread = self.account.thread().await;
        let admission = self.state.workers.admit().await?;
        let work = move || {
            let _thread = thread;
            Ok::<_, HttpError>((asked.elapsed(), work(open()?)?))
        };
        let (waited, done) = admission.run(work).await??;
        self.note_wait(waited);
        Ok((admission, done))
    }

    /// Does `work` that has no database of its own on a worker thread, once fewer of them work for the holder than may.
    pub(crate) async fn on_worker<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let thread = self.account.thread().await;
        let work = move || {
            let _thread = thread;
            work()
        };
        Ok(self.state.workers.run(work).await?)
    }

    /// What opens the request's database, with the level that the table of routes declares. Blocks.
    pub(crate) fn opener(&self) -> impl FnOnce() -> Result<Opened> + Send + 'static {
        let databases = self.state.databases.clone();
        let identity = self.identity.clone();
        let (name, need) = (self.database_name().to_owned(), self.entry.need.level());
        let authorised = Arc::clone(&self.authorised);
        let (state, address) = (self.state.clone(), self.client.address);
        let is_own = self.address.users.as_ref().is_some_and(|users| users.is_own);
        move || {
            let opened = if is_own {
                databases.open_own_for(&name, &identity)?
            } else {
                access::open(&databases, &name, &identity, need)?
            };
            authorised.store(true, Ordering::Relaxed);
            if identity.is_administrator() {
                crate::audit_record::by_office(&state, &opened, &identity, address);
            }
            Ok(opened)
        }
    }

    /// Whether the request's database was opened for its sender.
    pub(crate) fn is_authorised(&self) -> bool {
        self.authorised.load(Ordering::Relaxed)
    }

    /// As clients know the database that the address names.
    pub(crate) fn shown_database_name(&self) -> &str {
        if self.address.users.is_some() { USERS_DATABASE } else { self.database_name() }
    }

    /// The database that the address names; empty where it names none.
    pub(crate) fn database_name(&self) -> &str {
        self.address.get("db").unwrap_or_default()
    }

    /// What the request is for statistics and logs.
    pub(crate) fn operation(&self) -> Operation {
        let told = *self.operation.lock();
        told.unwrap_or_else(|| self.entry.operation.of(&self.query, self.database_name()))
    }

    /// Says what the request is, where its body alone tells.
    pub(crate) fn tell_operation(&self, operation: Operation) {
        *self.operation.lock() = Some(operation);
    }

    /// Counts a wait for a place in the worker pool.
    fn note_wait(&self, waited: Duration) {
        let microseconds = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.waited_us.fetch_add(microseconds, Ordering::Relaxed);
    }

    /// A header as text; absent or not text is `None`.
    pub(crate) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Whether the client takes `media_type`, by its name or by `*`. Who says nothing takes everything, as in CouchDB.
    pub(crate) fn accepts(&self, media_type: &str) -> bool {
        accepts(&self.headers, media_type)
    }

    /// Refuses a body that is not declared to be JSON (CouchDB: 415).
    pub(crate) fn require_json(&self) -> Result<()> {
        let declared = self.header(&CONTENT_TYPE).and_then(|value| value.split(';').next());
        match declared {
            Some(kind) if kind.trim().eq_ignore_ascii_case("application/json") => Ok(()),
            _ => Err(HttpError::not_json()),
        }
    }

    /// The revision that the request is about, from `?rev=` or `If-Match`; they must not differ.
    pub(crate) fn revision(&self) -> Result<Option<String>> {
        let from_query = self.query.get("rev");
        let from_header = self.header(&IF_MATCH).map(|tag| tag.trim().trim_matches('"'));
        match (from_query, from_header) {
            (Some(query), Some(header)) if query != header => Err(HttpError::bad_request(TAG_DIFFERS)),
            (query, header) => Ok(query.or(header).map(str::to_owned)),
        }
    }

    /// The revision in `If-Match`, where the address has none.
    pub(crate) fn tag_alone(&self) -> Option<String> {
        let tag = self.header(&IF_MATCH).filter(|_| self.query.get("rev").is_none());
        tag.map(|tag| tag.trim().trim_matches('"').to_owned())
    }

    /// Whether `If-None-Match` holds `tag` (RFC 9110 §13.1.2, weak comparison).
    pub(crate) fn knows(&self, tag: &str) -> bool {
        any_tag(self.headers.get_all(IF_NONE_MATCH).iter(), tag)
    }

    /// Sets `Location` to the address of what `segments` name: whole where a trusted proxy says what the client asked,
    /// else the path alone, since the client says in `Host` what it likes (RFC 9110 §10.2.2 allows a relative reference).
    pub(crate) fn locate(&self, response: &mut http::Response<Body>, segments: &[&str]) {
        let mut address = String::with_capacity(96);
        if let Some(host) = &self.forwarded_host {
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

/// Whether `Accept` takes a media type (RFC 9110 §12.5.1), by its name or by `*`, unless it gives it the weight 0.
fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let class = media_type.split('/').next().unwrap_or_default();
    let (mut says_anything, mut accepts, mut refuses) = (false, false, false);
    let values = headers.get_all(http::header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    for item in values.flat_map(|value| value.split(',')) {
        says_anything = true;
        let mut parts = item.split(';').map(str::trim);
        let range = parts.next().unwrap_or_default();
        let is_anything = range == "*/*";
        let is_named = range.eq_ignore_ascii_case(media_type)
            || range.strip_suffix("/*").is_some_and(|range| range.eq_ignore_ascii_case(class));
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.trim().parse::<f32>().ok());
        if weight.is_some_and(|weight| weight <= 0.0) {
            refuses |= is_named;
        } else {
            accepts |= is_named || is_anything;
        }
    }
    !refuses && (accepts || !says_anything)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_media_type_is_accepted_by_its_name_or_by_a_star() {
        for (header, expected) in [
            (None, true),
            (Some("*/*"), true),
            (Some("multipart/*"), true),
            (Some("Multipart/Mixed"), true),
            (Some("application/json"), false),
            (Some("application/json, multipart/mixed;q=0.1"), true),
            (Some("*/*, multipart/mixed;q=0"), false),
            (Some("*/*;q=0.5, multipart/*; q=0.0"), false),
            (Some("*/*;q=0"), false),
            (Some("text/html, */*;q=0.8"), true),
            (Some(""), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(http::header::ACCEPT, HeaderValue::from_static(header));
            }
            assert_eq!(accepts(&headers, "multipart/mixed"), expected, "{header:?}");
        }
    }
}

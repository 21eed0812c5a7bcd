//! CalDAV and CardDAV: requests are handed to what keeps calendars and address books.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderValue, LOCATION};
use http::{HeaderMap, Method, Response, StatusCode};
use scrinium_database::{Identity, TransactionUpdate, Update, Updated};

use crate::address::Address;
use crate::authority::Service;
use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::Body;
use crate::routes::BodyLimit;

/// A request for calendars or address books. Who asks has logged in.
#[derive(Debug)]
pub struct DavRequest {
    /// GET for HEAD too.
    pub method: Method,
    /// As it came, still encoded.
    pub path: String,
    /// All headers.
    pub headers: HeaderMap,
    /// The whole body, within the limit of its route.
    pub body: Bytes,
    /// Who asks.
    pub identity: Identity,
}

/// What becomes of an update, once it is durable or has failed.
pub type DavFinish = Box<
    dyn FnOnce(scrinium_database::Result<Vec<scrinium_database::Result<Updated>>>) -> Response<Bytes> + Send,
>;

/// What is being stored: in one database, or in several.
#[must_use = "it is durable only when it was waited for"]
pub enum DavUpdate {
    /// In one.
    Alone(Update),
    /// In several, as one batch. What becomes of the edits of the first one counts.
    Together(TransactionUpdate),
}

impl DavUpdate {
    /// Waits until it is durable, without holding a thread.
    ///
    /// # Errors
    /// What the store reports; then nothing of it may be taken as stored.
    pub async fn durable(self) -> scrinium_database::Result<Vec<scrinium_database::Result<Updated>>> {
        match self {
            Self::Alone(update) => update.durable().await,
            Self::Together(update) => update.durable().await.map(first_part),
        }
    }

    /// The same on a thread that waits.
    ///
    /// # Errors
    /// As there.
    pub fn wait(self) -> scrinium_database::Result<Vec<scrinium_database::Result<Updated>>> {
        match self {
            Self::Alone(update) => update.wait(),
            Self::Together(update) => update.wait().map(first_part),
        }
    }
}

fn first_part(parts: Vec<Vec<Updated>>) -> Vec<scrinium_database::Result<Updated>> {
    parts.into_iter().next().unwrap_or_default().into_iter().map(Ok).collect()
}

/// An answer that waits until something is durable.
pub struct DavStoring {
    /// What is being stored.
    pub update: DavUpdate,
    /// Makes the answer.
    pub finish: DavFinish,
}

/// What comes of a request.
pub enum DavOutcome {
    /// This.
    Answered(Response<Bytes>),
    /// What is stored is not durable yet.
    Storing(DavStoring),
}

/// Keeps calendars and address books. Its function blocks for as long as the disk does, and for nothing that a client does.
pub trait Dav: Send + Sync + 'static {
    /// Answers a request.
    fn answer(&self, request: &DavRequest) -> DavOutcome;

    /// What a secret link gives: a calendar that its owner has published. Anybody asks.
    fn published(&self, path: &str) -> Response<Bytes>;
}

/// `GET /_published/{person}/{secret}.ics` and `.ifb`.
pub(crate) async fn published(context: &Context) -> Result<Response<Body>> {
    let dav = context.state.dav().cloned().ok_or_else(|| HttpError::not_found("missing"))?;
    let path = context.target.path().to_owned();
    // Nobody has all threads.
    let thread = context.account.thread().await;
    let admission = context.state.workers.admit().await?;
    let work = move || {
        let _thread = thread;
        dav.published(&path)
    };
    let response = admission.run(work).await?;
    drop(admission);
    Ok(response.map(Body::whole))
}

/// Any request below `/_dav`, and PROPFIND of `/`.
pub(crate) async fn answer(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let dav = context.state.dav().cloned().ok_or_else(|| HttpError::not_found("missing"))?;
    let has_body = context.entry.limits.body != BodyLimit::Nothing;
    let body = if has_body { body.collect().await? } else { Bytes::new() };
    let request = DavRequest {
        method: context.method.clone(),
        path: context.target.path().to_owned(),
        headers: context.headers.clone(),
        body,
        identity: context.identity.clone(),
    };
    // Nobody has all threads. Given back by the work itself, which goes on when the client has left.
    let thread = context.account.thread().await;
    let admission = context.state.workers.admit().await?;
    let work = move || {
        let _thread = thread;
        dav.answer(&request)
    };
    let response = match admission.run(work).await? {
        DavOutcome::Answered(response) => response,
        DavOutcome::Storing(DavStoring { update, finish }) => {
            // Apart, so that what others wait for ends when the client has left, too.
            let stored = tokio::spawn(async move { finish(update.durable().await) });
            stored.await.map_err(|_| HttpError::internal("The update was not followed to its end."))?
        }
    };
    drop(admission);
    Ok(response.map(Body::whole))
}

/// What somebody comes in for who asks this.
pub(crate) fn service_of(address: &Address, method: &Method) -> Service {
    match (address.route.path, address.get("dav_path")) {
        ("/", _) if method.as_str() == "PROPFIND" => Service::Calendars,
        ("/_dav", _) => Service::Calendars,
        (_, Some(path)) if path == "contacts" || path.starts_with("contacts/") => Service::Contacts,
        // Files are for who may read documents: a password of a calendar program opens none.
        (_, Some(path)) if path == "files" || path.starts_with("files/") => Service::Documents,
        (_, Some(_)) => Service::Calendars,
        _ => Service::Documents,
    }
}

/// `/.well-known/caldav` and `/.well-known/carddav` (RFC 6764 §5), for every method.
pub(crate) fn well_known() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static("/_dav/"));
    response
}

/// What keeps calendars, if anything does.
pub(crate) type Keeper = Arc<dyn Dav>;

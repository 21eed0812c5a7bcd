//! One request from its head to its answer: who asks, may they, what is it, and the headers of every answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, COOKIE, ETAG, EXPECT,
    HeaderMap, HeaderName, HeaderValue, ORIGIN, SERVER, SET_COOKIE, STRICT_TRANSPORT_SECURITY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use parking_lot::Mutex;
use scrinium_accounting::{Claim, Holder, Overdrawn, Resource};

use crate::authority::Identity;
use crate::body::RequestBody;
use crate::client::Client;
use crate::compress::Uncompressed;
use crate::context::Context;
use crate::dispatch;
use crate::error::{HttpError, Result};
use crate::observer::Usage;
use crate::operation_log::{LoggedAnswer, LoggedRequest};
use crate::patience::InFlight;
use crate::port_options::PortOptions;
use crate::query::Query;
use crate::response::{self, Body};
use crate::router;
use crate::standing::{self, StandingWatch};
use crate::state::HttpState;
use crate::{audit_record, compress, cors, dav, framing, session, users};
use scrinium_port::Link;

/// Without a version: it would tell everybody which of its faults are still there.
const NAME: HeaderValue = HeaderValue::from_static("Scrinium");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-couch-request-id");
/// As long as a UUID with its dashes.
const REQUEST_ID_BYTES_MAX: usize = 36;
const BODY_TIME: HeaderName = HeaderName::from_static("x-couchdb-body-time");
const CHALLENGE: HeaderName = HeaderName::from_static("x-couchdb-www-authenticate");
/// A browser that has used TLS once, be it to a trusted proxy, does not ask without it for a year (RFC 6797).
const TRANSPORT_SECURITY: HeaderValue = HeaderValue::from_static("max-age=31536000");
const METHOD_OVERRIDE: HeaderName = HeaderName::from_static("x-http-method-override");
const BASIC: HeaderValue = HeaderValue::from_static("Basic realm=\"Scrinium\"");

/// Shorter answers are not counted: the limit of requests bounds them.
const COUNTED_BYTES: usize = 32 << 10;

/// Answers a request. It never fails: whatever goes wrong is an answer too.
pub(crate) async fn answer(
    state: HttpState,
    port: Arc<PortOptions>,
    link: Arc<Link>,
    mut in_flight: InFlight,
    request: Request<Incoming>,
) -> std::result::Result<Response<Body>, Infallible> {
    state.counters.requests.add(1);
    let (parts, incoming) = request.into_parts();
    let (method, is_deletion) = (effective_method(&parts), parts.method == Method::DELETE);
    let version = parts.version;
    let request_id = request_id(&parts.headers).unwrap_or_else(|| state.next_request_id());
    let mut body = RequestBody::new(incoming, Arc::clone(&port), state.clone());
    let wanted = Wanted::of(&parts.headers, &method);
    let (client, forwarded_host) = Client::of(&link.peer, &parts.headers, &port.trusted_proxies);
    let refused = in_flight.take_refusal();
    let mut response = match (refused, cors::preflight(&port, &method, &parts.headers)) {
        (Some(refused), _) => {
            in_flight.leave_unread();
            let mut response = finish(&state, &port, &wanted, Err(refused)).await;
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            response
        }
        (None, Some(preflight)) => preflight,
        (None, None) => {
            let mut under_way = UnderWay { body: &mut body, usage: None, in_flight: &mut in_flight };
            let answered = answer_parts(
                &state,
                Arc::clone(&port),
                (&link, client, forwarded_host),
                (method, parts),
                &mut under_way,
            )
            .await;
            let usage = counted(under_way.usage, &answered, &body);
            let mut response = finish(&state, &port, &wanted, answered).await;
            if !body.drain(wanted.expects_leave).await && version < Version::HTTP_2 {
                in_flight.leave_unread();
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            let share = body.into_share();
            let response = response.map(|body| body.with_usage(usage));
            match share {
                Some(share) => response.map(|body| body.with_share(share)),
                None => response,
            }
        }
    };
    let headers = response.headers_mut();
    headers.insert(SERVER, NAME);
    headers.insert(REQUEST_ID, request_id);
    headers.insert(BODY_TIME, HeaderValue::from_static("0"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Over a plain connection browsers ignore it (RFC 6797 §8.1), and it may not be sent (§7.2).
    if client.secure {
        headers.insert(STRICT_TRANSPORT_SECURITY, TRANSPORT_SECURITY);
    }
    // No cache keeps what answers DELETE (RFC 9110 §9.3.5), and CouchDB's clients look at the header when a session ends.
    if !is_deletion {
        keep_private(headers, wanted.is_personal);
    }
    Ok(response.map(|body| body.with_guard(in_flight)))
}

/// The number that a client, or a proxy, gave the request already.
fn request_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let may_stand = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let is_one = |value: &&HeaderValue| {
        (1..=REQUEST_ID_BYTES_MAX).contains(&value.len()) && value.as_bytes().iter().all(may_stand)
    };
    headers.get(REQUEST_ID).filter(is_one).cloned()
}

/// Says that an answer to somebody is nobody else's: `must-revalidate` alone would let a shared cache keep what was asked
/// for with `Authorization` (RFC 9111 §3.5). What opens a session is kept nowhere.
fn keep_private(headers: &mut HeaderMap, is_personal: bool) {
    let kept = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or("must-revalidate");
    if headers.contains_key(SET_COOKIE) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    } else if is_personal && let Ok(private) = HeaderValue::try_from(format!("private, {kept}")) {
        headers.insert(CACHE_CONTROL, private);
    }
}

/// What comes and goes with a request.
struct UnderWay<'r> {
    body: &'r mut RequestBody,
    usage: Option<Box<Usage>>,
    in_flight: &'r mut InFlight,
}

/// Begins to add up what a request uses. `None`: nobody wants to know, or it is no request on a database.
fn usage(context: &Context) -> Option<Box<Usage>> {
    Some(Box::new(Usage {
        observer: Arc::clone(context.state.observer()?),
        database: context.address.get("db")?.to_owned(),
        person: context.identity.shared_name(),
        writes: context.entry.writes,
        counts: false,
        received_bytes: 0,
        sent_bytes: 0,
    }))
}

fn logged_request(context: &Context) -> LoggedRequest<'_> {
    LoggedRequest {
        database: context.address.get("db"),
        person: context.identity.name().unwrap_or_default(),
        writes: context.entry.writes,
        sent_bytes: context.header(&CONTENT_LENGTH).and_then(|length| length.parse().ok()),
    }
}

fn logged_answer(context: &Context, answered: &Result<Response<Body>>) -> LoggedAnswer {
    let (status, length) = match answered {
        Ok(response) => (response.status().as_u16(), response.body().length()),
        Err(error) => (error.status.as_u16(), None),
    };
    LoggedAnswer {
        operation: context.operation(),
        status,
        length,
        is_first_revision: is_first_revision(answered),
    }
}

/// A document that was written for the first time has a revision that begins with 1.
fn is_first_revision(answer: &Result<Response<Body>>) -> bool {
    let tag = answer.as_ref().ok().and_then(|response| response.headers().get(ETAG));
    tag.and_then(|tag| tag.to_str().ok()).is_some_and(|tag| tag.starts_with("\"1-"))
}

/// What a request used, if it was answered as it was meant: what was refused used nothing worth telling, and may
/// name a database that is not there.
fn counted(
    usage: Option<Box<Usage>>,
    answered: &Result<Response<Body>>,
    body: &RequestBody,
) -> Option<Box<Usage>> {
    let mut usage = usage?;
    usage.counts = answered.is_ok();
    usage.received_bytes = body.received_bytes();
    Some(usage)
}

/// What the end of an answer needs of the request.
struct Wanted {
    head: bool,
    /// It brought what says who asks.
    is_personal: bool,
    origin: Option<HeaderValue>,
    accepted_encodings: Option<HeaderValue>,
    challenge: Option<HeaderValue>,
    /// The client sends its body only when it gets 100 (Continue).
    expects_leave: bool,
}

impl Wanted {
    fn of(headers: &HeaderMap, method: &Method) -> Self {
        Self {
            head: method == Method::HEAD,
            is_personal: headers.contains_key(AUTHORIZATION) || headers.contains_key(COOKIE),
            origin: headers.get(ORIGIN).cloned(),
            accepted_encodings: headers.get(ACCEPT_ENCODING).cloned(),
            challenge: headers.get(CHALLENGE).cloned(),
            expects_leave: headers.contains_key(EXPECT),
        }
    }
}

async fn finish(
    state: &HttpState,
    port: &PortOptions,
    wanted: &Wanted,
    answered: Result<Response<Body>>,
) -> Response<Body> {
    let mut response = answered.unwrap_or_else(|error| {
        state.counters.errors.add(1);
        refuse(error, wanted.challenge.clone())
    });
    cors::allow(port, wanted.origin.as_ref(), response.headers_mut());
    if port.compression
        && !wanted.head
        && let Some(accepted) = &wanted.accepted_encodings
    {
        response = Box::pin(compress::compress(accepted, response)).await;
    }
    if wanted.head {
        let length = response.body().length();
        response = response.map(|_| Body::empty());
        if let Some(length) = length {
            response.headers_mut().entry(http::header::CONTENT_LENGTH).or_insert(HeaderValue::from(length));
        }
    }
    response
}

/// A refusal, with the challenge that makes a browser ask for a password (unless a page names another, as
/// CouchDB has it).
fn refuse(error: HttpError, named: Option<HeaderValue>) -> Response<Body> {
    if error.status.is_server_error() && error.status != StatusCode::NOT_IMPLEMENTED {
        tracing::warn!(status = error.status.as_u16(), reason = %error.reason, "a request failed");
    }
    let challenge = error.status == StatusCode::UNAUTHORIZED;
    let mut response = response::refusal(error);
    if challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, named.unwrap_or(BASIC));
    }
    response
}

/// A client behind a proxy that knows only GET and POST says what it means in a header.
fn effective_method(parts: &Parts) -> Method {
    let named = parts.headers.get(METHOD_OVERRIDE).filter(|_| parts.method == Method::POST);
    named.and_then(|name| Method::from_bytes(name.as_bytes()).ok()).unwrap_or_else(|| parts.method.clone())
}

async fn answer_parts(
    state: &HttpState,
    port: Arc<PortOptions>,
    (link, client, forwarded_host): (&Link, Client, Option<String>),
    (method, parts): (Method, Parts),
    under_way: &mut UnderWay<'_>,
) -> Result<Response<Body>> {
    framing::check_host(parts.version, &parts.uri, &parts.headers)?;
    let mut address = router::parse(parts.uri.path())?;
    let query = Query::parse(parts.uri.query())?;
    let service = dav::service_of(&address, &method);
    let known = session::authenticate(state, &parts.headers, service, client).await?;
    users::enter(state, &mut address, &method, &known.identity)?;
    let entry = dispatch::entry(&address, &method, &known.identity)?;
    let account = link.account(&holder(state, &known.identity, client), &state.options.accounts);
    let claim = overdrawn(state, account.claim(Resource::Requests, 1))?;
    let context = Context {
        state: state.clone(),
        port,
        method: if method == Method::HEAD { Method::GET } else { method },
        address,
        target: parts.uri,
        entry,
        headers: parts.headers,
        query,
        identity: known.identity,
        client,
        forwarded_host,
        account,
        authenticated_by: known.by,
        waited_us: AtomicU64::new(0),
        operation: Mutex::new(None),
        authorised: Arc::default(),
    };
    under_way.usage = usage(&context);
    let logged = state.operation_log.entry(&logged_request(&context));
    let people = written_people(&context);
    let answered = dispatch::dispatch(&context, under_way.body).await;
    if let Some((database, id)) = people {
        audit_record::people(&context, &database, id).await;
    }
    if let Some(logged) = logged {
        state.operation_log.record(&logged, &logged_answer(&context, &answered));
    }
    let mut response = answered?;
    if let Some(renewed) = known.renewed {
        session::insert_cookie(response.headers_mut(), &context, &renewed);
    }
    let untaken = claim_answer(&context, under_way.body, &response)?;
    under_way.in_flight.hold(Some(claim), untaken);
    Ok(watched(&context, response))
}

/// The database of people that a request may write into, and which document of it, where it is one.
fn written_people(context: &Context) -> Option<(String, Option<String>)> {
    let database = context.database_name();
    if context.method == Method::GET || !context.state.authenticator.keeps_people(database) {
        return None;
    }
    // A copy, or what an update function makes, is another document than the one in the address.
    let is_other = context.method.as_str() == "COPY" || context.address.get("handler").is_some();
    let id = context.address.document_id().ok().filter(|_| !is_other);
    Some((database.to_owned(), id))
}

/// For whom this request is counted.
fn holder(state: &HttpState, identity: &Identity, client: Client) -> Holder {
    match identity.shared_name() {
        None => Holder::Network(state.options.accounts.network(client.address)),
        Some(name) if identity.is_administrator() => Holder::Administrator(name),
        Some(name) => Holder::Person(name),
    }
}

fn overdrawn<T>(state: &HttpState, claimed: std::result::Result<T, Overdrawn>) -> Result<T> {
    claimed.map_err(|error| {
        state.counters.overdrawn.add(1);
        error.into()
    })
}

/// Counts what an answer holds until the client has taken it. One answer may be as long as it is; several of one person
/// that nobody takes may not. What was changed is reported in any case.
fn claim_answer(context: &Context, body: &RequestBody, response: &Response<Body>) -> Result<Option<Claim>> {
    let bytes = response.body().held_bytes();
    if bytes < COUNTED_BYTES {
        return Ok(None);
    }
    let of_others = context.account.held(Resource::Bytes).saturating_sub(body.claimed_bytes());
    if context.entry.writes || of_others == 0 {
        return Ok(Some(context.account.claim_made(Resource::Bytes, bytes)));
    }
    overdrawn(&context.state, context.account.claim(Resource::Bytes, bytes)).map(Some)
}

/// The answer, which breaks off when the one who asked may not have it any more. A feed ends by itself, in its own way.
fn watched(context: &Context, response: Response<Body>) -> Response<Body> {
    if context.identity.is_anonymous() || response.extensions().get::<Uncompressed>().is_some() {
        return response;
    }
    let standing = || StandingWatch::new(&context.state, &context.identity);
    response.map(|body| body.map_pieces(|pieces| standing::while_it_holds(pieces, standing())))
}

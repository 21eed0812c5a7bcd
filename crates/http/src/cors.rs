//! Cross-origin requests (the Fetch standard), with the headers that CouchDB sends.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue, ORIGIN, VARY,
};
use http::{Method, Response, StatusCode};

use crate::port_options::PortOptions;
use crate::response::Body;

const METHODS: &str = "GET, HEAD, POST, PUT, DELETE, TRACE, CONNECT, COPY, OPTIONS";

/// Request headers that a page may set.
const HEADERS: [&str; 20] = [
    "accept",
    "accept-language",
    "authorization",
    "cache-control",
    "content-length",
    "content-range",
    "content-type",
    "destination",
    "expires",
    "if-match",
    "if-none-match",
    "last-modified",
    "origin",
    "pragma",
    "range",
    "x-couch-full-commit",
    "x-couch-id",
    "x-couch-persist",
    "x-couchdb-www-authenticate",
    "x-http-method-override",
];

const REQUESTED_WITH: &str = "x-requested-with";

/// Answer headers that a page may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "accept-ranges, cache-control, content-encoding, content-md5, content-range, content-type, etag, location, \
     server, x-couch-request-id, x-couchdb-body-time",
);

/// How long a browser may remember the answer to a preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The answer to a preflight, where this is one that may pass; others go on as ordinary requests.
pub(crate) fn preflight(port: &PortOptions, method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
    if method != Method::OPTIONS || port.cors_origins.is_empty() {
        return None;
    }
    let wanted = headers.get(ACCESS_CONTROL_REQUEST_METHOD)?.to_str().ok()?;
    if !METHODS.split(", ").any(|known| known == wanted) {
        return None;
    }
    let asked = headers.get(ACCESS_CONTROL_REQUEST_HEADERS);
    if !asked.is_none_or(|asked| asked.to_str().is_ok_and(headers_are_known)) {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if !allow(port, headers.get(ORIGIN), response.headers_mut()) {
        return None;
    }
    let answer = response.headers_mut();
    answer.remove(ACCESS_CONTROL_EXPOSE_HEADERS);
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    answer.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    if let Some(asked) = asked {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    Some(response)
}

fn headers_are_known(asked: &str) -> bool {
    asked
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase())
        .all(|name| name.is_empty() || name == REQUESTED_WITH || HEADERS.contains(&name.as_str()))
}

/// Whether pages of `origin` may act for their readers.
pub(crate) fn lets_in(port: &PortOptions, origin: &str) -> bool {
    port.cors_credentials && port.cors_origins.iter().any(|allowed| allowed == origin && allowed != "*")
}

/// Adds the headers that let a page of an allowed origin read the answer; false where it may not.
pub(crate) fn allow(port: &PortOptions, origin: Option<&HeaderValue>, answer: &mut HeaderMap) -> bool {
    if port.cors_origins.is_empty() {
        return false;
    }
    answer.append(VARY, HeaderValue::from_static("Origin"));
    let Some(origin) = origin else { return false };
    let everyone = port.cors_origins.iter().any(|allowed| allowed == "*");
    if !everyone && !port.cors_origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()) {
        return false;
    }
    if everyone {
        // Never with credentials: any page could act as anyone who looks at it.
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    } else {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        if port.cors_credentials {
            answer.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
    }
    answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    true
}

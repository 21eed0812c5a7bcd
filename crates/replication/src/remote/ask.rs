//! One request to another server: who asks, where it leads, how much of an answer is taken, and what an error says.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderValue, LOCATION, RETRY_AFTER,
};
use http::{HeaderMap, Method, StatusCode};
use reqwest::{Body, Response, Url};
use serde_json::Value;

use super::RemoteEnd;
use crate::error::{ErrorKind, ReplicationError, Result};

/// Steps of redirections that are followed.
const REDIRECTS_MAX: usize = 5;

/// What is read of an answer that says what went wrong.
const ERROR_BYTES: usize = 16 << 10;

/// What is shown of what another server says.
const REASON_LETTERS: usize = 300;

/// The longest that an end may make others wait.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(5);

/// The first wait between two tries; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// What shows who asks.
pub(crate) enum Proof {
    /// The cookie of a session.
    Cookie(HeaderValue),
    /// Name and password.
    Basic(HeaderValue),
}

/// A request below a database's address.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    pub(crate) segments: Vec<&'a str>,
    pub(crate) query: Vec<(&'a str, String)>,
    /// JSON.
    pub(crate) body: Option<Bytes>,
    pub(crate) headers: HeaderMap,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(method: Method, segments: &[&'a str]) -> Self {
        Self { method, segments: segments.to_vec(), query: Vec::new(), body: None, headers: HeaderMap::new() }
    }

    pub(crate) fn get(segments: &[&'a str]) -> Self {
        Self::new(Method::GET, segments)
    }

    pub(crate) fn post(segments: &[&'a str], body: impl Into<Bytes>) -> Self {
        Self { body: Some(body.into()), ..Self::new(Method::POST, segments) }
    }

    pub(crate) fn with(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }
}

impl RemoteEnd {
    /// The address of something in the database.
    pub(crate) fn url(&self, segments: &[&str], query: &[(&str, String)]) -> Result<Url> {
        let mut url = self.base.clone();
        // A URL takes them for steps to other folders.
        if segments.iter().any(|segment| matches!(*segment, "." | ".." | "")) {
            let reason = format!("{segments:?} cannot be named in a URL.");
            return Err(ReplicationError::new(ErrorKind::Refused, reason));
        }
        if let Ok(mut path) = url.path_segments_mut() {
            path.extend(segments);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    /// Asks, and takes an answer of at most `most` bytes.
    pub(crate) async fn ask(&self, ask: &Ask<'_>, most: usize) -> Result<Bytes> {
        let response = self.answer(ask).await?;
        self.whole(response, most).await
    }

    /// Asks until there is an answer that is no error, following where it leads.
    pub(crate) async fn answer(&self, ask: &Ask<'_>) -> Result<Response> {
        let mut url = self.url(&ask.segments, &ask.query)?;
        let mut renewed = false;
        let mut steps = 0;
        loop {
            let body = ask.body.clone().map(Body::from);
            let proof = self.proof(&url).await?;
            let response = self.send(&ask.method, &url, (&ask.headers, proof.as_ref()), body).await?;
            let status = response.status();
            if status == StatusCode::UNAUTHORIZED && !renewed && self.session_is_over(proof.as_ref()).await {
                renewed = true;
                continue;
            }
            if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
                steps += 1;
                url = self.next_step(&ask.method, &url, &response, steps)?;
                continue;
            }
            if status.is_success() {
                return Ok(response);
            }
            return Err(self.refused(response).await);
        }
    }

    /// Sends one request to one address, with what shows who asks where that is the end's own host.
    pub(crate) async fn send(
        &self,
        method: &Method,
        url: &Url,
        (headers, proof): (&HeaderMap, Option<&Proof>),
        body: Option<Body>,
    ) -> Result<Response> {
        let client = self.transport.client(url, self.proxy.as_ref())?;
        let mut request = client.request(method.clone(), url.clone());
        let mut all = HeaderMap::new();
        if same_host(url, &self.base) {
            all.extend(self.headers.clone());
            match proof {
                Some(Proof::Cookie(cookie)) => drop(all.insert(COOKIE, cookie.clone())),
                Some(Proof::Basic(basic)) => drop(all.insert(AUTHORIZATION, basic.clone())),
                None => {}
            }
        }
        all.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        // Nothing is inflated, so nothing can burst.
        all.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if body.is_some() {
            all.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        }
        for (name, value) in headers {
            all.insert(name.clone(), value.clone());
        }
        request = request.headers(all);
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let encoding = response.headers().get(http::header::CONTENT_ENCODING);
        let is_asked_for = encoding == headers.get(http::header::ACCEPT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity" && !is_asked_for) {
            return Err(ReplicationError::protocol(format!(
                "{} answers with an encoding that was not asked for.",
                self.shown
            )));
        }
        Ok(response)
    }

    /// What shows who asks at an address of the end's own host.
    pub(crate) async fn proof(&self, url: &Url) -> Result<Option<Proof>> {
        let Some(login) = self.login.as_ref().filter(|_| same_host(url, &self.base)) else { return Ok(None) };
        let client = self.transport.client(url, self.proxy.as_ref())?;
        Ok(Some(match self.session(&client, login).await? {
            Some(cookie) => Proof::Cookie(cookie),
            None => Proof::Basic(login.basic.clone()),
        }))
    }

    fn next_step(&self, method: &Method, from: &Url, response: &Response, steps: usize) -> Result<Url> {
        let status = response.status();
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let next = location.and_then(|location| from.join(location).ok());
        let Some(next) = next.filter(|_| steps <= REDIRECTS_MAX) else {
            return Err(ReplicationError::protocol(format!("{} redirects without an end.", self.shown)));
        };
        let keeps = matches!(status.as_u16(), 307 | 308) || matches!(*method, Method::GET | Method::HEAD);
        let is_weaker = from.scheme() == "https" && next.scheme() != "https";
        if !keeps || is_weaker {
            let mut shown = next;
            hide_credentials(&mut shown);
            return Err(ReplicationError::new(
                ErrorKind::Refused,
                format!("{} is to be found at {}: name that.", self.shown, one_line(shown.as_str())),
            ));
        }
        self.transport.check(&next)?;
        Ok(next)
    }

    /// All of an answer, if it is no longer than it may be.
    pub(crate) async fn whole(&self, mut response: Response, most: usize) -> Result<Bytes> {
        let too_long = || {
            let shown = &self.shown;
            ReplicationError::new(
                ErrorKind::TooLarge,
                format!("{shown} answers with more than {most} bytes."),
            )
        };
        let announced = usize::try_from(response.content_length().unwrap_or_default()).unwrap_or(usize::MAX);
        if announced > most {
            return Err(too_long());
        }
        let mut whole = BytesMut::with_capacity(announced);
        while let Some(bytes) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if whole.len() + bytes.len() > most {
                return Err(too_long());
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }

    /// What an answer with an error says.
    pub(crate) async fn refused(&self, response: Response) -> ReplicationError {
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = retry_after.and_then(|value| value.trim().parse().ok());
        let retry_after = retry_after.map(|seconds| Duration::from_secs(seconds).min(RETRY_AFTER_MAX));
        let body = self.whole(response, ERROR_BYTES).await.unwrap_or_default();
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        let text = |name: &str| said.get(name).and_then(Value::as_str).map(one_line).unwrap_or_default();
        let (word, reason) = (text("error"), text("reason"));
        let kind = match status.as_u16() {
            401 => ErrorKind::Unauthorized,
            403 => ErrorKind::Forbidden,
            404 => ErrorKind::NotFound,
            408 | 423 | 425 | 429 | 500..=599 => ErrorKind::Unavailable,
            412 if word == "missing_stub" => ErrorKind::MissingStub,
            413 => ErrorKind::TooLarge,
            _ => ErrorKind::Refused,
        };
        let said = if word.is_empty() { String::new() } else { format!(": {word}: {reason}") };
        let shown = &self.shown;
        let reason = match kind {
            ErrorKind::NotFound => format!("could not open {shown}{said}"),
            ErrorKind::Unauthorized => format!("unauthorized to access or create database {shown}{said}"),
            _ => format!("{shown} answers {}{said}", status.as_u16()),
        };
        ReplicationError { kind, reason, retry_after }
    }

    pub(crate) fn unreachable(&self, error: &reqwest::Error) -> ReplicationError {
        let mut last: &dyn std::error::Error = error;
        while let Some(source) = last.source() {
            last = source;
        }
        let kind = if error.is_connect() || error.is_timeout() {
            ErrorKind::Unavailable
        } else {
            ErrorKind::Protocol
        };
        // The last cause names no URL, which might hold a password.
        let what = if error.is_timeout() { "does not answer" } else { "cannot be asked" };
        let cause = one_line(&last.to_string());
        let is_rule = cause.contains("replication.allowed_networks");
        let kind = if is_rule { ErrorKind::Forbidden } else { kind };
        ReplicationError::new(kind, format!("{} {what}: {cause}", self.shown))
    }

    /// Does the same again where that may help.
    pub(crate) async fn retried<T, F: Future<Output = Result<T>>>(&self, work: impl Fn() -> F) -> Result<T> {
        let mut failures = 0;
        loop {
            let error = match work().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            failures += 1;
            if !error.is_transient() || failures >= self.tries {
                return Err(error);
            }
            let wait = FIRST_WAIT * 2_u32.pow(failures - 1);
            tokio::time::sleep(error.retry_after.unwrap_or(wait).max(wait)).await;
        }
    }
}

/// Whether what shows who asks may be sent there as well.
fn same_host(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host() == other.host()
        && one.port_or_known_default() == other.port_or_known_default()
}

/// Takes name and password out of a URL.
pub(crate) fn hide_credentials(url: &mut Url) {
    // Neither fails for a URL that has a host, and others have none.
    if url.set_username("").is_err() || url.set_password(None).is_err() {
        url.set_path("");
    }
}

/// What another server says, as part of a line of ours.
fn one_line(text: &str) -> String {
    scrinium_statistics::one_line(text, REASON_LETTERS).into_owned()
}

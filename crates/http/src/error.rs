//! Errors as CouchDB words them: a status, a short name and a reason.

use std::borrow::Cow;
use std::time::Duration;

use http::header::{ALLOW, CONTENT_RANGE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use scrinium_accounting::Overdrawn;
use scrinium_contents::ContentError;
use scrinium_database::DatabaseError;
use scrinium_document::DocumentError;
use scrinium_document::json::JsonWriter;
use scrinium_mango::MangoError;
use scrinium_worker::WorkerError;

use crate::authority::LoginRefusal;
use crate::response::{self, Body};

/// A refusal, on its way to becoming `{"error":…,"reason":…}`.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}: {reason}")]
pub struct HttpError {
    /// The HTTP status.
    pub status: StatusCode,
    /// CouchDB's short name of what went wrong.
    pub error: Cow<'static, str>,
    /// CouchDB's sentence.
    pub reason: Cow<'static, str>,
    /// Boxed, because few have one and all are moved about.
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

type Words = Cow<'static, str>;

impl HttpError {
    pub(crate) fn new(status: StatusCode, error: impl Into<Words>, reason: impl Into<Words>) -> Self {
        Self { status, error: error.into(), reason: reason.into(), header: None }
    }

    pub(crate) fn bad_request(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", reason)
    }

    pub(crate) fn query_parse(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "query_parse_error", reason)
    }

    pub(crate) fn invalid_json() -> Self {
        Self::bad_request("invalid UTF-8 JSON")
    }

    pub(crate) fn not_object() -> Self {
        Self::bad_request("Request body must be a JSON object")
    }

    pub(crate) fn not_found(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", reason)
    }

    pub(crate) fn unauthorized(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", reason)
    }

    pub(crate) fn forbidden(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", reason)
    }

    /// `allow` as in the header: `GET,HEAD`.
    pub(crate) fn method_not_allowed(allow: &str) -> Self {
        let reason = format!("Only {allow} allowed");
        let mut error = Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", reason);
        error.header = HeaderValue::try_from(allow).ok().map(|value| Box::new((ALLOW, value)));
        error
    }

    pub(crate) fn not_json() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "bad_content_type",
            "Content-Type must be application/json",
        )
    }

    pub(crate) fn not_implemented(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "not_implemented", reason)
    }

    pub(crate) fn too_large() -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the request entity is too large")
    }

    /// The route's own limit.
    pub(crate) fn beyond_route(bytes: usize) -> Self {
        let reason = format!("the request entity is too large: it may have {bytes} bytes here");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", reason)
    }

    /// What no request can have, however idle the server is.
    pub(crate) fn beyond_budget(bytes: usize) -> Self {
        let reason = format!(
            "the request is too large: parsed, it may use at most {bytes} bytes of memory \
             (http.body_budget_bytes); send it in parts"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", reason)
    }

    /// A content that is not what its digest says.
    pub(crate) fn corrupted() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "content_md5_mismatch", "Possible message corruption.")
    }

    /// A revision of an attachment's document that is not there, in CouchDB's words.
    pub(crate) fn missing_revision() -> Self {
        Self::new(StatusCode::CONFLICT, "not_found", "missing_rev")
    }

    /// The JSON of a document whose attachments come beside it.
    pub(crate) fn document_too_large(most: usize) -> Self {
        let reason = format!("the document's JSON may have at most {most} bytes (document.max_bytes)");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "document_too_large", reason)
    }

    /// More than `most` of `what`.
    pub(crate) fn too_many_values(what: &str, most: usize) -> Self {
        let reason = format!("{what} may hold at most {most} values here; send it in parts");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", reason)
    }

    /// 503 that passes by itself.
    pub(crate) fn busy(reason: impl Into<Words>) -> Self {
        let mut refusal = Self::unavailable(reason);
        refusal.header = Some(Box::new((RETRY_AFTER, HeaderValue::from_static("1"))));
        refusal
    }

    /// What storing an attachment's content refused.
    pub(crate) fn of_attachment(error: impl Into<DatabaseError>) -> Self {
        let error = error.into();
        let too_large = matches!(error, DatabaseError::TooLarge { .. });
        let error = Self::from(error);
        if too_large { Self { error: "attachment_too_large".into(), ..error } } else { error }
    }

    fn with_retry_after(mut self, seconds: u64) -> Self {
        self.header = Some(Box::new((RETRY_AFTER, HeaderValue::from(seconds))));
        self
    }

    pub(crate) fn unavailable(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason)
    }

    pub(crate) fn internal(reason: impl Into<Words>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_server_error", reason)
    }

    pub(crate) fn timed_out() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "timeout", "The request came too slowly.")
    }

    /// RFC 9110 §15.5.17: the answer says how long the content is.
    pub(crate) fn range_not_satisfiable(length: u64) -> Self {
        let mut error = Self::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            "requested_range_not_satisfiable",
            "Requested range not satisfiable",
        );
        let text = format!("bytes */{length}");
        error.header = HeaderValue::try_from(text).ok().map(|value| Box::new((CONTENT_RANGE, value)));
        error
    }

    /// The answer: CouchDB's JSON object and a newline.
    pub(crate) fn into_response(self) -> Response<Body> {
        let mut text = JsonWriter::with_capacity(self.error.len() + self.reason.len() + 32);
        text.literal("{");
        response::push_error_members(&mut text, &self.error, &self.reason);
        text.literal("}\n");
        let mut response = response::json(self.status, text);
        if let Some((name, value)) = self.header.map(|header| *header) {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl From<DatabaseError> for HttpError {
    fn from(error: DatabaseError) -> Self {
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let refusal = Self::new(status, error.error(), error.reason());
        match error {
            DatabaseError::Busy { retry_after_s, .. } => refusal.with_retry_after(retry_after_s),
            _ => refusal,
        }
    }
}

impl From<ContentError> for HttpError {
    fn from(error: ContentError) -> Self {
        DatabaseError::from(error).into()
    }
}

impl From<DocumentError> for HttpError {
    fn from(error: DocumentError) -> Self {
        DatabaseError::from(error).into()
    }
}

impl From<MangoError> for HttpError {
    fn from(error: MangoError) -> Self {
        DatabaseError::from(error).into()
    }
}

impl HttpError {
    /// 429 (RFC 6585 §4), with the whole seconds after which it may go well.
    pub(crate) fn too_many(reason: impl Into<Words>, retry_after: Duration) -> Self {
        let mut refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", reason);
        let seconds = retry_after.as_millis().div_ceil(1000).max(1);
        let seconds = HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX));
        refusal.header = Some(Box::new((RETRY_AFTER, seconds)));
        refusal
    }
}

impl From<Overdrawn> for HttpError {
    fn from(error: Overdrawn) -> Self {
        Self::too_many(error.to_string(), Duration::from_secs(1))
    }
}

impl From<LoginRefusal> for HttpError {
    fn from(error: LoginRefusal) -> Self {
        let reason = error.to_string();
        match error {
            LoginRefusal::Wrong => Self::unauthorized(reason),
            LoginRefusal::Locked { .. } => Self::forbidden(reason),
            LoginRefusal::Busy { retry_after } => Self::too_many(reason, retry_after),
        }
    }
}

impl From<WorkerError> for HttpError {
    fn from(error: WorkerError) -> Self {
        let reason = error.to_string();
        match error {
            WorkerError::Busy { retry_after, .. } => {
                Self::unavailable(reason).with_retry_after(retry_after.as_secs())
            }
            WorkerError::Closed => Self::unavailable(reason),
            WorkerError::Panicked { .. } => Self::internal(reason),
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, HttpError>;

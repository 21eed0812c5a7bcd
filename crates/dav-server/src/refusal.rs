//! Answers that refuse.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use scrinium_database::{DatabaseError, Oversized};
use scrinium_dav::object::ObjectError;
use scrinium_dav_wire::request::BodyError;
use scrinium_dav_wire::xml::{Element, XmlError};
use scrinium_dav_wire::{CALDAV, DAV};

/// XML, as answers have it.
pub(crate) const XML: HeaderValue = HeaderValue::from_static("application/xml; charset=utf-8");

/// Why a request is not carried out.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// What the database said, where it was the database.
    error: Option<Box<DatabaseError>>,
    /// What `DAV:error` holds, if something was violated.
    condition: Option<Box<Element>>,
    reason: String,
}

pub(crate) type Result<T> = std::result::Result<T, Refusal>;

impl Refusal {
    pub(crate) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, error: None, condition: None, reason: reason.into() }
    }

    /// What the database said, or else why it is refused.
    pub(crate) fn into_error(self) -> std::result::Result<DatabaseError, String> {
        self.error.map(|error| *error).ok_or(self.reason)
    }

    /// With the precondition that was violated.
    pub(crate) fn of_condition(
        status: StatusCode,
        (namespace, local): (&str, &str),
        reason: impl Into<String>,
    ) -> Self {
        Self { condition: Some(Box::new(Element::new(namespace, local))), ..Self::new(status, reason) }
    }

    /// With what the condition's element holds.
    pub(crate) fn with(mut self, child: Element) -> Self {
        self.condition = self.condition.map(|condition| Box::new(condition.with(child)));
        self
    }

    pub(crate) fn forbidden(condition: (&str, &str), reason: impl Into<String>) -> Self {
        Self::of_condition(StatusCode::FORBIDDEN, condition, reason)
    }

    /// The same for what is not there and for what nobody is to know of.
    pub(crate) fn missing() -> Self {
        Self::new(StatusCode::NOT_FOUND, "There is no such resource.")
    }

    pub(crate) fn not_allowed(reason: &str) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, reason)
    }

    pub(crate) fn read_only() -> Self {
        Self::forbidden((DAV, "need-privileges"), "You may only read here.")
    }

    pub(crate) fn condition_failed() -> Self {
        Self::new(StatusCode::PRECONDITION_FAILED, "The resource is not as the request wants it.")
    }

    pub(crate) fn into_response(self) -> Response<Bytes> {
        let mut error = Element::new(DAV, "error");
        if let Some(condition) = self.condition {
            error = error.with(*condition);
        }
        let reason = Element::new(DAV, "responsedescription").with_text(&self.reason);
        let mut response = Response::new(Bytes::from(error.with(reason).write()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, XML);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<DatabaseError> for Refusal {
    fn from(error: DatabaseError) -> Self {
        let refusal = Self::of_error(&error);
        Self { error: Some(Box::new(error)), ..refusal }
    }
}

impl Refusal {
    fn of_error(error: &DatabaseError) -> Self {
        let status = match error {
            DatabaseError::NotFound { .. } => return Self::missing(),
            DatabaseError::Forbidden { .. } | DatabaseError::Unauthorized { .. } => return Self::read_only(),
            DatabaseError::Conflict => return Self::condition_failed(),
            DatabaseError::Exists { .. } => StatusCode::METHOD_NOT_ALLOWED,
            DatabaseError::Invalid { .. } | DatabaseError::Query(_) | DatabaseError::MissingStub { .. } => {
                StatusCode::BAD_REQUEST
            }
            DatabaseError::TooLarge { what: Oversized::Database, .. } | DatabaseError::Full { .. } => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            DatabaseError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            DatabaseError::Busy { .. } | DatabaseError::Unavailable { .. } | DatabaseError::Stale => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            DatabaseError::Damaged { .. }
            | DatabaseError::Store(_)
            | DatabaseError::Internal { .. }
            | DatabaseError::Fault(_) => {
                tracing::warn!(%error, "a calendar program was not served");
                return Self::new(StatusCode::INTERNAL_SERVER_ERROR, "The server could not do that.");
            }
        };
        Self::new(status, error.reason())
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        let status = match &error {
            BodyError::Xml(
                XmlError::TooLong(_)
                | XmlError::TooDeep(_)
                | XmlError::TooManyElements(_)
                | XmlError::TooManyAttributes(_),
            ) => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, error.to_string())
    }
}

impl From<ObjectError> for Refusal {
    fn from(error: ObjectError) -> Self {
        Self::forbidden(error.precondition(), error.to_string())
    }
}

/// Another resource of the collection has the UID.
pub(crate) fn uid_conflict(namespace: &str, href: &str) -> Refusal {
    let reason = "Another resource of this collection has the same UID, or this one has another UID.";
    Refusal::forbidden((namespace, "no-uid-conflict"), reason).with(Element::new(DAV, "href").with_text(href))
}

/// A query that would give more than an answer may have.
pub(crate) fn too_many() -> Refusal {
    Refusal::of_condition(
        StatusCode::INSUFFICIENT_STORAGE,
        (DAV, "number-of-matches-within-limits"),
        "There are too many of them; ask for less at a time.",
    )
}

/// A filter that asks for what is not known here.
pub(crate) fn unsupported_collation() -> Refusal {
    Refusal::forbidden((CALDAV, "supported-collation"), "The collation is not known here.")
}
